// Package nodes connects a loop.Loop with the exec.Executor of its jobs:
//
//	n := &nodes.Nodes{Command: send, Put: put, Warn: log}
//	n.Recover(left) // of joblife.Restore, before the first hello of a node
//	l, err := loop.New(m, loop.Config{Effects: n.Execute, Refused: n.Refused, …})
//	err = l.Put(joblife.ExecHello{})
//	n.Do(func(x *exec.Executor) { session, err = x.Hello(rank, tasks) }) // a node has connected
package nodes

import (
	"fmt"
	"sync"
	"time"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/examples/internal/lines"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/perilog/exec"
)

// Nodes is the executor of a manager, and its clock. Any goroutine may use it.
type Nodes struct {
	// Command sends it to the nodes of cmd.Ranks, in order, and does not wait. To start something
	// they run args. The Spec is that of the start of a job, else nil.
	Command func(cmd exec.Command, args []string, spec *jobspec.Spec)
	Flush   func()                 // if set, is called after some calls of Command
	Put     func(...joblife.Input) // into the Loop
	Warn    func(error)

	mu       sync.Mutex
	executor exec.Executor
	timer    *time.Timer
	stopped  bool
}

// Do calls f with the Executor, and then does what follows. Only f, Command and Put may change
// the fields of n after its first use.
func (n *Nodes) Do(f func(x *exec.Executor)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f(&n.executor)
	n.act()
}

// Stop has nothing follow any more, at no time. Call it when the manager ends before the program.
func (n *Nodes) Stop() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.stopped = true
	if n.timer != nil {
		n.timer.Stop()
	}
}

// Recover has the Executor expect what a restart of the manager has left. What follows waits for
// the next call of Do or Execute.
func (n *Nodes) Recover(left joblife.Recovered) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, u := range left.Unresolved {
		n.warn(n.executor.Recover(u.Job, u.Unresolved))
	}
	for _, q := range left.Quarantined {
		n.warn(fmt.Errorf("job %v cannot be read, and keeps its nodes: %s", q.Job, lines.Why(q.Err)))
		n.executor.Keep(q.Job)
	}
}

// Execute does what the manager wants done by the Executor and its nodes. It warns of drains,
// which are the scheduler's, and of faults.
func (n *Nodes) Execute(rd *joblife.Ready) {
	n.Do(func(x *exec.Executor) {
		for _, msg := range rd.Exec {
			n.warn(x.Handle(msg))
		}
		for _, r := range rd.Raised {
			if r.Severity == 0 {
				x.Kill(r.Job, r.WaitStatus)
			}
		}
		for _, l := range rd.Launch {
			n.warn(x.Launch(l.Job, l.Launch))
		}
		for _, s := range rd.Signal {
			x.Signal(s.Job, s.Signal)
		}
		for _, e := range rd.Journal {
			if e.Entry.Name == jobstate.EventClean {
				x.Forget(e.Job, false)
			}
		}
		for _, r := range rd.Append {
			if endsHousekeeping(r) {
				x.Forget(r.Job, true)
			}
		}
		for _, d := range rd.Drain {
			n.warn(fmt.Errorf("out of service: rank %v: %s", d.Ranks, d.Reason))
		}
		for _, f := range rd.Faults {
			n.warn(f)
		}
	})
}

// endsHousekeeping reports whether a record says that the last node of a job went back. A final
// Free says so too, but only in a session of the scheduler.
func endsHousekeeping(r joblife.Record) bool {
	if r.Kind != joblife.RecordHousekeeping {
		return false
	}
	var ev jobstate.Event
	if e, err := eventlog.Parse(r.Data); err != nil || ev.Decode(e) != nil {
		return false
	}
	c, ok := ev.Context().(*jobstate.ReleaseContext)
	return ok && c.Final
}

// Refused warns of an input that the manager has refused. A lost prolog of a job that is
// ending does not run again.
func (n *Nodes) Refused(in joblife.Input, err error) {
	n.warn(err)
	if in, ok := in.(joblife.Rerun); ok {
		n.Put(joblife.ForceFinish{Action: in.Action, Status: 1, Operator: "executor"})
	}
}

// act does what the Executor wants done.
func (n *Nodes) act() {
	if n.stopped {
		return
	}
	todo := n.executor.Take(eventlog.FromTime(time.Now()))
	for _, cmd := range todo.Commands {
		args, spec := n.args(cmd)
		n.Command(cmd, args, spec)
	}
	if len(todo.Commands) > 0 && n.Flush != nil {
		n.Flush()
	}
	for _, r := range todo.Responses {
		n.Put(joblife.ExecResponse(r))
	}
	for _, r := range todo.Refused {
		n.Put(joblife.ExecRefused(r))
	}
	for _, r := range todo.Reports {
		n.Put(joblife.Report{Job: r.Job, Report: r.Report})
	}
	for _, r := range todo.Missing {
		n.Put(joblife.Rerun{Action: joblife.Action{Job: r.Job, Key: r.Action, Ranks: idset.Of(r.Rank)}})
	}
	if todo.Deadline > 0 {
		if n.timer != nil {
			n.timer.Stop()
		}
		n.timer = time.AfterFunc(time.Until(todo.Deadline.Time()), func() { n.Do(func(*exec.Executor) {}) })
	}
}

// args returns the program that a command starts.
func (n *Nodes) args(cmd exec.Command) ([]string, *jobspec.Spec) {
	switch {
	case cmd.Launch != nil:
		return cmd.Launch.Command, nil
	case cmd.Start != nil:
		spec, err := jobspec.Parse(cmd.Start.Jobspec)
		if n.warn(err); err == nil {
			return spec.Command(), spec
		}
	}
	return nil, nil
}

func (n *Nodes) warn(err error) {
	if err != nil {
		n.Warn(err)
	}
}
