package loop

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/perilog/exec"
)

// Hear calls f with the Executor of [Config], after the inputs that were put before, and returns
// what f does. f says what became of a node: Hello, Update, Close or Fail. What follows is not
// delayed by the store. Hear waits for f, so each goroutine that reads from nodes has one message
// in the Loop, and until the Executor knows what ran before a restart, so a node may connect at
// any time. f may Put, Do and Step; a Hear inside it is a deadlock. Beside the error of f there are
// ErrFull and ErrEnded: then f is never called. Hear panics without an Executor.
func (l *Loop) Hear(f func(x *exec.Executor) error) error {
	if l.cfg.Executor == nil {
		panic("loop: Hear without Config.Executor")
	}
	if err := l.until(context.Background(), l.hailed); err != nil {
		return err
	}
	var said error
	done := make(chan struct{})
	if err := l.admit(1, request{hear: func() { said = f(l.cfg.Executor); close(done) }}); err != nil {
		return err
	}
	if err := l.until(context.Background(), done); err != nil {
		return err
	}
	return said
}

// until waits for done, or for the end of ctx or of the Loop.
func (l *Loop) until(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-l.ended:
	}
	select {
	case <-done: // just before the end
		return nil
	default:
		return l.endError()
	}
}

// hail has the Executor expect what a restart has left, and its first session begin.
func (l *Loop) hail() error {
	x := l.cfg.Executor
	l.inbox = append(l.inbox, request{in: joblife.ExecHello{}, call: &call{done: l.hailed}})
	for _, u := range l.cfg.Recovered.Unresolved {
		if err := x.Recover(u.Job, u.Unresolved); err != nil {
			return fmt.Errorf("loop: job %v: %w", u.Job, err)
		}
		if u.Reason == perilog.ReasonRemoved && u.Action.Kind != jobstate.ActionHousekeeping { // there is nothing to run
			a := joblife.Action{Job: u.Job, Key: u.Action, Ranks: u.Ranks}
			l.inbox = append(l.inbox, request{in: joblife.ForceFinish{Action: a, Status: 1, Operator: "executor"}})
		}
	}
	for _, q := range l.cfg.Recovered.Quarantined {
		x.Keep(q.Job)
	}
	l.cfg.Recovered = joblife.Recovered{} // it may be large
	return nil
}

// order passes a Ready to the Executor, and what goes wrong to Faults.
func (l *Loop) order(rd *joblife.Ready) {
	x := l.cfg.Executor
	for _, msg := range rd.Exec {
		fault(rd, x.Handle(msg))
	}
	for _, r := range rd.Raised {
		if r.Severity == 0 {
			x.Kill(r.Job, r.WaitStatus)
		}
	}
	for _, a := range rd.Launch {
		fault(rd, x.Launch(a.Job, a.Launch))
	}
	for _, s := range rd.Signal {
		x.Signal(s.Job, s.Signal)
	}
	for _, e := range rd.Journal {
		if e.Entry.Name == jobstate.EventClean {
			x.Forget(e.Job, false)
		}
	}
	for _, id := range rd.Over {
		x.Forget(id, true)
	}
}

// fault adds an error to Faults. The Manager's list stays as it is.
func fault(rd *joblife.Ready, err error) {
	if err != nil {
		rd.Faults = append(slices.Clip(rd.Faults), joblife.Fault{Err: err})
	}
}

// execute passes on the commands of the Executor, dispatches what it says, and reports whether
// there was anything. At the end of the Loop no time passes, and what it says is lost, as in a
// crash: the next life hears it again.
func (l *Loop) execute() (busy bool) {
	x, now := l.cfg.Executor, eventlog.Timestamp(0)
	if x == nil || l.broken != nil {
		return false
	}
	if !l.stopping {
		now = eventlog.FromTime(l.Now())
		if at, ok := x.Deadline(); ok && !at.Time().After(l.Now()) {
			now = max(now, at) // which may be rounded down
		}
	}
	for _, id := range x.Expiring(now) {
		if v, ok := l.m.Job(id); ok {
			if at, ok := v.Job().Expiration(); ok && (at == 0 || at > now) { // it is not durable yet
				_ = x.Handle(exec.Expiration{ID: id, Expiration: at}) // which takes any
			}
		}
	}
	todo := x.Take(now)
	if busy = len(todo.Commands) > 0; busy {
		l.cfg.Commands(todo.Commands)
	}
	if l.stopping {
		return busy
	}
	for _, r := range todo.Responses {
		_ = l.tell(joblife.ExecResponse(r))
	}
	for _, r := range todo.Refused {
		_ = l.tell(joblife.ExecRefused(r))
	}
	if n := len(todo.Reports); n > 0 {
		list := make([]joblife.Report, n)
		for i, r := range todo.Reports {
			list[i] = joblife.Report{Job: r.Job, Report: r.Report}
		}
		_ = l.tell(joblife.Reports{List: list}) // those that end together are one event
	}
	l.rerun(todo.Missing)
	return busy || len(todo.Responses)+len(todo.Refused)+len(todo.Reports)+len(todo.Missing) > 0
}

// tell dispatches what the Executor says.
func (l *Loop) tell(in joblife.Input) error {
	err := l.Step(in)
	if err != nil && l.broken == nil {
		l.cfg.Refused(in, err)
	}
	return err
}

// rerun launches again what nodes do not have, with one input for each action if it can.
func (l *Loop) rerun(missing []exec.Report) {
	type key struct {
		job    jobid.ID
		action jobstate.ActionKey
	}
	var order []key
	ranks := make(map[key]*idset.Set)
	for _, r := range missing {
		k := key{r.Job, r.Action}
		if ranks[k] == nil {
			ranks[k], order = new(idset.Set), append(order, k)
		}
		ranks[k].Insert(r.Rank)
	}
	for _, k := range order {
		a := joblife.Action{Job: k.job, Key: k.action, Ranks: ranks[k]}
		if a.Ranks.Len() > 1 && l.Step(joblife.Rerun{Action: a}) == nil {
			continue
		}
		for rank := range ranks[k].All() { // some may be over meanwhile
			a.Ranks = idset.Of(rank)
			err := l.tell(joblife.Rerun{Action: a})
			if err != nil && !errors.Is(err, perilog.ErrStopped) { // of a prolog of a job that is ending
				_ = l.Step(joblife.ForceFinish{Action: a, Status: 1, Operator: "executor"}) // or it is over
			}
		}
	}
}
