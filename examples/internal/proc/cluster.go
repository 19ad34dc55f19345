package proc

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/loop"
	"github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/rset/alloc"
)

// A Cluster is nodes of this machine, and the executor of a manager.
type Cluster struct {
	put   func(...joblife.Input)
	warn  func(error)
	nodes []*runner

	mu       sync.Mutex // what nodes say comes from any goroutine
	executor exec.Executor
	sessions []exec.Session
	timer    *time.Timer
	todo     [][]func() // what each node has to do, in order
	idle     sync.Cond  // a node has done it
}

// NewCluster returns n nodes with what they run. Each has a folder in dir. Put puts inputs in
// the line of a manager, and warn gets what goes wrong.
func NewCluster(dir string, n int, put func(...joblife.Input), warn func(error)) (*Cluster, error) {
	c := &Cluster{put: put, warn: warn, nodes: make([]*runner, n), sessions: make([]exec.Session, n), todo: make([][]func(), n)}
	c.timer = time.AfterFunc(time.Hour, func() { c.Do(new(joblife.Ready)) })
	c.idle.L = &c.mu
	c.mu.Lock() // a task of an earlier life may end at any time
	defer c.mu.Unlock()
	for rank := range c.nodes {
		var err error
		c.nodes[rank], err = newRunner(filepath.Join(dir, fmt.Sprint("node-", rank)), func(task exec.Task) { c.said(rank, task) }, warn)
		if err != nil {
			return nil, err
		}
	}
	return c, nil
}

// Recover says what a restart of the manager has left, before the manager is asked for more.
func (c *Cluster) Recover(left joblife.Recovered) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, u := range left.Unresolved {
		c.check(c.executor.Recover(u.Job, u.Unresolved))
	}
	for _, q := range left.Quarantined {
		c.warn(fmt.Errorf("job %v cannot be read: %w", q.Job, q.Err))
		c.executor.Keep(q.Job)
	}
}

// GivenUp returns the ranks where an action runs for which m does not wait any more. They were
// drained, and a restart must not put them in service. Call it before m is asked for more.
func (c *Cluster) GivenUp(m *joblife.Manager) *idset.Set {
	held := make(map[jobid.ID]*idset.Set)
	for h := range m.Holders() {
		held[h.Job] = idset.Union(held[h.Job], h.Ranks)
	}
	ranks := new(idset.Set)
	for rank, node := range c.nodes {
		for _, st := range node.list() {
			if st.State == exec.TaskRunning && st.Task.Action != (jobstate.ActionKey{}) && !held[st.Task.Job].Contains(uint32(rank)) {
				ranks.Insert(uint32(rank))
				c.warn(fmt.Errorf("node %d is drained: %v was given up, and still runs", rank, st.Task))
			}
		}
	}
	return ranks
}

// Connect says the hello of the executor to the manager of l. Then its nodes say what they
// run: what the manager did not ask for is killed.
func (c *Cluster) Connect(ctx context.Context, l *loop.Loop) error {
	if _, err := l.Call(ctx, joblife.ExecHello{}); err != nil {
		return err
	}
	return c.connect()
}

func (c *Cluster) connect() (err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for rank, node := range c.nodes {
		s, helloErr := c.executor.Hello(uint32(rank), node.list())
		c.sessions[rank], err = s, errors.Join(err, helloErr)
	}
	c.act()
	return err
}

// said takes what a node says now: by this time the task may be forgotten, and another one
// with its name may run. Before its session begins, its hello will say it.
func (c *Cluster) said(rank int, task exec.Task) {
	c.mu.Lock()
	defer c.mu.Unlock()
	st, ok := c.nodes[rank].last(task)
	if !ok {
		return
	}
	if err := c.executor.Update(c.sessions[rank], st); !errors.Is(err, exec.ErrSession) {
		c.check(err)
	}
	c.act()
}

// Do does what the manager wants done by the executor and its nodes: all but Drain.
func (c *Cluster) Do(rd *joblife.Ready) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, msg := range rd.Exec {
		c.check(c.executor.Handle(msg))
	}
	for _, r := range rd.Raised {
		if r.Severity == 0 {
			c.executor.Kill(r.Job)
		}
	}
	for _, l := range rd.Launch {
		c.check(c.executor.Launch(l.Job, l.Launch))
	}
	for _, s := range rd.Signal {
		c.executor.Signal(s.Job, s.Signal)
	}
	for _, e := range rd.Journal {
		if e.Entry.Name == jobstate.EventClean {
			c.executor.Forget(e.Job, false)
		}
	}
	for _, msg := range rd.Sched {
		if f, ok := msg.(alloc.Free); ok && f.Final {
			c.executor.Forget(f.ID, true)
		}
	}
	c.act()
}

// Refused warns of an input that the manager has refused. A lost prolog of a job that is
// ending does not run again.
func (c *Cluster) Refused(in joblife.Input, err error) {
	c.warn(err)
	if in, ok := in.(joblife.Rerun); ok {
		c.put(joblife.ForceFinish{Action: in.Action, Status: 1, Operator: "executor"})
	}
}

// act does what the executor wants done.
func (c *Cluster) act() {
	todo := c.executor.Take(eventlog.FromTime(time.Now()))
	for _, cmd := range todo.Commands {
		args := c.args(cmd)
		for rank := range cmd.Ranks.All() {
			c.todo[rank] = append(c.todo[rank], func() { c.check(c.nodes[rank].do(cmd, args)) })
			if len(c.todo[rank]) == 1 {
				go c.obey(rank)
			}
		}
	}
	for _, r := range todo.Responses {
		c.put(joblife.ExecResponse(r))
	}
	for _, r := range todo.Refused {
		c.put(joblife.ExecRefused(r))
	}
	for _, r := range todo.Reports {
		c.put(joblife.Report{Job: r.Job, Report: r.Report})
	}
	for _, r := range todo.Missing {
		c.put(joblife.Rerun{Action: joblife.Action{Job: r.Job, Key: r.Action, Ranks: idset.Of(r.Rank)}})
	}
	if todo.Deadline > 0 {
		c.timer.Reset(time.Until(todo.Deadline.Time()))
	}
}

// obey does what a node has to do. A start waits for a disk, and the manager does not.
func (c *Cluster) obey(rank uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.todo[rank]) > 0 {
		do := c.todo[rank][0]
		c.mu.Unlock()
		do()
		c.mu.Lock()
		c.todo[rank] = c.todo[rank][1:]
	}
	c.idle.Broadcast()
}

// Wait waits until the nodes have done what they were asked before. What they were not when
// the program ended, they are asked in its next life.
func (c *Cluster) Wait() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for slices.ContainsFunc(c.todo, func(left []func()) bool { return len(left) > 0 }) {
		c.idle.Wait()
	}
}

// args returns the program that a command starts.
func (c *Cluster) args(cmd exec.Command) []string {
	switch {
	case cmd.Launch != nil:
		return cmd.Launch.Command
	case cmd.Start != nil:
		spec, err := jobspec.Parse(cmd.Start.Jobspec)
		if c.check(err); err == nil {
			return spec.Command()
		}
	}
	return nil
}

func (c *Cluster) check(err error) {
	if err != nil {
		c.warn(err)
	}
}
