package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"sync"
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
	pexec "github.com/joblife/joblife/perilog/exec"
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
}

// A request is a job that waits for resources.
type request struct {
	id   jobid.ID
	need *pool.Request
}

func (s *scheduler) send(hello *alloc.Announcement, messages []alloc.Message) {
	if hello != nil {
		s.adopt(hello)
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
// session begins, since it believes what is not so: the hello tells it what is held.
func (s *scheduler) heed(in joblife.Input, err error) {
	if _, ok := in.(joblife.SchedResponse); warn(err) && ok {
		s.put(joblife.SchedHello{PartialOK: true}, joblife.SchedReady{})
	}
}

// adopt begins a session: it gives each job what it has already.
func (s *scheduler) adopt(hello *alloc.Announcement) {
	s.waiting = nil
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

// An executor runs jobs. It does not find those of the life before.
type executor struct {
	put put
	processes
}

func (x *executor) send(messages []pexec.Message, raised []joblife.Raised) {
	for _, msg := range messages {
		start, ok := msg.(pexec.Start)
		if !ok {
			continue // an expiration, which no job has here
		}
		say := func(r pexec.Response) {
			r.ID = start.ID
			x.put(joblife.ExecResponse(r))
		}
		ended := func(status int32) {
			say(pexec.Response{Type: pexec.ResponseFinish, Status: status})
			say(pexec.Response{Type: pexec.ResponseRelease, Final: true})
		}
		if start.Reattach {
			say(pexec.Response{Type: pexec.ResponseException, Exception: pexec.Exception{Type: "exec", Note: "lost in a restart"}})
			ended(killed)
			continue
		}
		say(pexec.Response{Type: pexec.ResponseStart})
		spec, _ := jobspec.Parse(start.Jobspec) // which the manager has parsed before
		x.start(start.ID, spec.Tasks()[0].Command, ended)
	}
	for _, r := range raised {
		if r.Severity == 0 {
			x.signal(r.Job, syscall.SIGKILL)
		}
	}
}

// The nodes run prologs and epilogs.
type nodes struct {
	put       put
	scheduler *scheduler
	processes
}

// where is where an attempt of an action runs.
type where struct {
	job     jobid.ID
	action  perilog.Key
	attempt uint32
	rank    uint32
}

func (n *nodes) do(launch []joblife.Launch, signal []joblife.Signal, drain []joblife.Drain) {
	for _, l := range launch {
		for rank := range l.Ranks.All() {
			report := perilog.Report{Action: l.Action, Attempt: l.Attempt, Rank: rank, Kind: perilog.ReportExited}
			n.start(where{l.Job, l.Action, l.Attempt, rank}, l.Command, func(status int32) {
				report.Status = status
				n.put(joblife.Report{Job: l.Job, Report: report})
			})
		}
	}
	for _, s := range signal {
		for rank := range s.Ranks.All() {
			n.signal(where{s.Job, s.Action, s.Attempt, rank}, syscall.Signal(s.Signal.Signal))
		}
	}
	for _, d := range drain {
		warn(fmt.Errorf("out of service: rank %v: %s", d.Ranks, d.Reason))
		warn(n.scheduler.pool.Update(pool.Change{Down: d.Ranks}))
		n.put(joblife.Drained{Ranks: d.Ranks.Clone()})
	}
}

// killed is the wait status of what a signal has ended.
const killed = 9

// processes are the commands that run, by whom or where they are.
type processes struct{ running sync.Map }

// start starts a command, and tells its wait status when it has ended.
func (p *processes) start(key any, args []string, ended func(status int32)) {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if warn(cmd.Start()) {
		ended(127 << 8)
		return
	}
	p.running.Store(key, cmd.Process)
	go func() {
		_ = cmd.Wait() // the state tells
		p.running.Delete(key)
		if code := cmd.ProcessState.ExitCode(); code >= 0 {
			ended(int32(code) << 8)
		} else {
			ended(killed)
		}
	}()
}

// signal signals a command if it still runs.
func (p *processes) signal(key any, s os.Signal) {
	if cmd, ok := p.running.Load(key); ok {
		_ = cmd.(*os.Process).Signal(s) // it may have ended meanwhile
	}
}
