package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/loop"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
	"github.com/joblife/joblife/rset/pool"
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

// A scheduler gives resources first come, first served.
type scheduler struct {
	now       func() time.Time
	put       put
	inventory *rset.R
	pool      *pool.Pool
	waiting   []request
	void      bool // until the next Hello
}

// A request is a job that waits for resources.
type request struct {
	id   jobid.ID
	need *pool.Request
}

func (s *scheduler) send(hello *alloc.Announcement, messages []alloc.Message) {
	switch {
	case hello != nil:
		s.adopt(hello)
	case s.void: // messages of the session before
		return
	}
	for _, msg := range messages {
		switch msg := msg.(type) {
		case alloc.Request:
			s.ask(msg)
		case alloc.Cancel:
			if i := slices.IndexFunc(s.waiting, func(r request) bool { return r.id == msg.ID }); i >= 0 {
				s.waiting = slices.Delete(s.waiting, i, i+1)
				s.put(joblife.SchedResponse{ID: msg.ID, Type: alloc.ResponseCancel})
			} // else it has its response
		case alloc.Free:
			_, err := s.pool.Free(msg.ID, msg.R, msg.Final)
			warn(err)
		}
	}
	for len(s.waiting) > 0 {
		first := s.waiting[0]
		r, err := s.pool.Alloc(first.id, first.need, eventlog.FromTime(s.now()))
		if errors.Is(err, pool.ErrBusy) && s.pool.Len() > 0 {
			return // until a job frees its nodes
		}
		s.waiting = s.waiting[1:]
		if err != nil {
			s.deny(first.id, err)
			continue
		}
		s.put(joblife.SchedResponse{ID: first.id, R: r})
	}
}

// ask lets a job wait. The message is gone when the Ready is done.
func (s *scheduler) ask(msg alloc.Request) {
	spec, err := jobspec.Parse(msg.Jobspec)
	var need *pool.Request
	if err == nil {
		need, err = pool.NewRequest(spec)
	}
	if err != nil {
		s.deny(msg.ID, err)
		return
	}
	s.waiting = append(s.waiting, request{msg.ID, need})
}

func (s *scheduler) deny(id jobid.ID, err error) {
	s.put(joblife.SchedResponse{ID: id, Type: alloc.ResponseDeny, Note: err.Error()})
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
		warn(s.pool.Update(pool.Change{Down: d.Ranks}))
		s.put(joblife.Drained{Ranks: d.Ranks.Clone()})
	}
}

// adopt begins a session: it gives each job what it has already.
func (s *scheduler) adopt(hello *alloc.Announcement) {
	s.void, s.waiting = false, nil
	s.pool, _ = pool.New(s.inventory, pool.Config{}) // which is not empty
	for _, h := range hello.Responses {
		warn(s.pool.Adopt(h.ID, h.R, h.Free))
	}
	warn(s.pool.Update(pool.Change{Up: s.inventory.Ranks()}))
}

// inventory is the nodes, with one core each.
func inventory() (*rset.R, error) {
	return rset.New(rset.Config{Entries: []rset.Entry{{
		Ranks: idset.Range(0, size-1), Children: map[string]*idset.Set{"core": idset.Of(0)},
	}}})
}
