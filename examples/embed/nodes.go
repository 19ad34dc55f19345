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
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/loop"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
	"github.com/joblife/joblife/rset/pool"
	"github.com/joblife/joblife/rset/sched"
)

const size = 8 // nodes

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
		if err != nil {
			return nil, fmt.Errorf("job %q: %w", command, err)
		}
		text, err := spec.MarshalJSON()
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
	for ctx.Err() == nil {
		<-interrupt
		var cancel []joblife.Input
		err := l.View(ctx, func(m *joblife.Manager) {
			for v := range m.Jobs(jobstate.StateNew | jobstate.StateActive) {
				cancel = append(cancel, joblife.Raise{ID: v.ID(), Type: "cancel"})
			}
		})
		warn(err)
		warn(l.Put(cancel...))
	}
}

// show prints events.
func show(journal []joblife.JournalEntry) {
	for _, e := range journal {
		fmt.Println(strings.TrimSpace(fmt.Sprintf("%v %s %s", e.Job, e.Entry.Name, e.Entry.Context)))
	}
}

// A put has inputs dispatched later.
type put func(...joblife.Input)

// A scheduler serves jobs in the order of their priority. Each session has its own.
type scheduler struct {
	*sched.Scheduler
	now       func() time.Time
	put       put
	inventory *rset.R
	gone      idset.Set // the nodes out of service: no job waits for them
	void      bool      // until the next Hello
}

func (s *scheduler) send(hello *alloc.Announcement, messages []alloc.Message) {
	switch {
	case hello != nil:
		s.begin(hello)
	case s.void || s.Scheduler == nil: // messages of the session before
		return
	}
	for _, msg := range messages {
		warn(s.Take(msg))
	}
	for _, r := range s.Decide(eventlog.FromTime(s.now())) {
		s.put(joblife.SchedResponse(r))
	}
}

// begin begins a session: each job keeps what it has already.
func (s *scheduler) begin(hello *alloc.Announcement) {
	s.void, s.Scheduler = false, sched.New(sched.Config{})
	warn(s.Acquire(pool.Acquire{Resources: s.inventory, Change: pool.Change{
		Up: idset.Difference(s.inventory.Ranks(), &s.gone), Shrink: &s.gone,
	}}))
	for _, h := range hello.Responses {
		warn(s.Take(h))
	}
	_, err := s.EndHello()
	warn(err)
}

// heed warns of an input that was refused. If it is an answer of the scheduler's, another
// session begins, since it believes what is not so: the hello tells it what is held. A lost
// prolog of a job that is ending does not run again.
func (s *scheduler) heed(in joblife.Input, err error) {
	if !warn(err) {
		return
	}
	switch in := in.(type) {
	case joblife.SchedResponse:
		if !s.void {
			s.void = true
			s.put(joblife.SchedHello{PartialOK: true}, joblife.SchedReady{})
		}
	case joblife.Rerun:
		s.put(joblife.ForceFinish{Action: in.Action, Status: 1, Who: "embed"})
	}
}

// drain takes nodes out of service.
func (s *scheduler) drain(drain []joblife.Drain) {
	for _, d := range drain {
		warn(fmt.Errorf("out of service: rank %v: %s", d.Ranks, d.Reason))
		if s.gone.UnionWith(d.Ranks); s.Scheduler != nil {
			warn(s.Acquire(pool.Acquire{Change: pool.Change{Shrink: d.Ranks}}))
		}
		s.put(joblife.Drained{Ranks: d.Ranks.Clone()})
	}
}

// inventory is the nodes, with one core each.
func inventory() (*rset.R, error) {
	return rset.New(rset.Config{Entries: []rset.Entry{{
		Ranks: idset.Range(0, size-1), Children: map[string]*idset.Set{"core": idset.Of(0)},
	}}})
}
