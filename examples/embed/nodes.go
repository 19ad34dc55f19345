package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/loop"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/rset/alloc"
	"github.com/joblife/joblife/rset/pool"
	"github.com/joblife/joblife/rset/sched"
)

// The nodes, with one core each, as R (RFC 20).
const (
	size  = 8
	nodes = `{"version":1,"execution":{"R_lite":[{"rank":"0-7","children":{"core":"0"}}]}}`
)

// warn prints an error, and reports whether there is one.
func warn(err error) bool {
	if err != nil {
		fmt.Fprintln(os.Stderr, "embed:", err)
	}
	return err != nil
}

// submissions are the inputs that submit shell commands as jobs.
func submissions(n int64, commands []string) (jobs []joblife.Input, err error) {
	if n < 1 || n > size {
		return nil, fmt.Errorf("-n must be 1 to %d", size)
	}
	for _, command := range commands {
		spec, err := jobspec.New(jobspec.Job{Nodes: n, Exclusive: true, Command: []string{"sh", "-c", command}})
		var text []byte
		if err == nil {
			text, err = spec.MarshalJSON()
		}
		if err != nil {
			return nil, fmt.Errorf("job %q: %w", command, err)
		}
		jobs = append(jobs, joblife.Submit{Jobspec: text, Urgency: jobstate.UrgencyDefault})
	}
	return jobs, nil
}

// action is a prolog or an epilog that runs a shell command on each node, if there is one.
func action(command string) []perilog.ActionConfig {
	if command == "" {
		return nil
	}
	return []perilog.ActionConfig{{Command: []string{"sh", "-c", command}, PerRank: true}}
}

// cancelOnInterrupt cancels the jobs when the user interrupts the program.
func cancelOnInterrupt(ctx context.Context, l *loop.Loop) {
	interrupt := make(chan os.Signal, 1)
	signal.Notify(interrupt, os.Interrupt, syscall.SIGTERM)
	for range interrupt {
		var cancel []joblife.Input
		warn(l.View(ctx, func(m *joblife.Manager) {
			for v := range m.Jobs(jobstate.StateNew | jobstate.StateActive) {
				cancel = append(cancel, joblife.Raise{ID: v.ID(), Type: "cancel"})
			}
		}))
		warn(l.Put(cancel...))
	}
}

// show prints events.
func show(journal []joblife.JournalEntry) {
	for _, e := range journal {
		fmt.Println(strings.TrimSpace(fmt.Sprintf("%v %s %s", e.Job, e.Entry.Name, e.Entry.Context)))
	}
}

// A scheduler serves jobs in the order of their priority.
type scheduler struct {
	*sched.Scheduler
	put func(...joblife.Input)
}

func (s *scheduler) send(hello *alloc.Announcement, messages []alloc.Message) {
	var err error
	if hello != nil {
		s.Scheduler, err = s.Next(*hello)
		warn(err)
	}
	for _, msg := range messages {
		warn(s.Handle(msg))
	}
	for _, r := range s.Decide(eventlog.FromTime(time.Now())) {
		s.put(joblife.SchedResponse(r))
	}
}

// heed warns of an input that was refused. If it is a response of the scheduler, another
// session begins, since it believes what is not so: the hello tells it what is held. A lost
// prolog of a job that is ending does not run again.
func (s *scheduler) heed(in joblife.Input, err error) {
	warn(err)
	switch in := in.(type) {
	case joblife.SchedResponse:
		if s.End() {
			s.put(joblife.SchedHello{PartialOK: true}, joblife.SchedReady{})
		}
	case joblife.Rerun:
		s.put(joblife.ForceFinish{Action: in.Action, Status: 1, Operator: "embed"})
	}
}

// drain takes nodes out of service: no job waits for them.
func (s *scheduler) drain(drain []joblife.Drain) {
	for _, d := range drain {
		warn(fmt.Errorf("out of service: rank %v: %s", d.Ranks, d.Reason))
		warn(s.Acquire(pool.Acquire{Change: pool.Change{Shrink: d.Ranks}}))
		s.put(joblife.Drained{Ranks: d.Ranks.Clone()})
	}
}
