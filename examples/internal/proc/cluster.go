//go:build unix

package proc

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/examples/internal/lines"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/loop"
	"github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/purge/boltstore"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/pool"
)

// A Cluster is nodes of this machine, the executor of their manager, and a store of its jobs.
type Cluster struct {
	*loop.Loop // of the manager
	Store      *boltstore.Store
	Program    *Program

	manager *joblife.Manager
	report  func(error)
	nodes   []*runner

	mu       sync.Mutex             // what nodes say comes from any goroutine
	put      func(...joblife.Input) // from Run on
	executor exec.Executor
	sessions []exec.Session
	timer    *time.Timer
	done     []chan struct{} // closed when a node has done what it was asked last
}

// open opens the folder, or makes it, and restores the manager. The nodes are in service, but
// for those where an action runs that was given up: they were drained.
func (p *Program) open() (*Cluster, error) {
	if min(p.Nodes, p.Cores) < 1 || max(p.Nodes, p.Cores) > 1024 {
		return nil, fmt.Errorf("%d nodes of %d cores: each number must be 1 to 1024", p.Nodes, p.Cores)
	}
	if err := os.MkdirAll(p.Dir, 0o700); err != nil {
		return nil, err
	}
	store, err := lines.Open(func() (*boltstore.Store, error) { return boltstore.Open(filepath.Join(p.Dir, "jobs.db")) })
	if err != nil {
		return nil, err
	}
	c, err := newCluster(p.Dir, p.Nodes, p.warn)
	if err == nil {
		c.Store, c.Program = store, p
		err = c.restore()
	}
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return c, nil
}

// newCluster returns n nodes with what they run.
func newCluster(dir string, n int, report func(error)) (*Cluster, error) {
	c := &Cluster{report: report, nodes: make([]*runner, n), sessions: make([]exec.Session, n), done: make([]chan struct{}, n)}
	c.timer = time.AfterFunc(time.Hour, func() { c.execute(new(joblife.Ready)) })
	c.mu.Lock() // a task of an earlier life may end at any time
	defer c.mu.Unlock()
	idle := make(chan struct{})
	close(idle)
	for rank := range c.nodes {
		var err error
		c.done[rank] = idle
		c.nodes[rank], err = newRunner(filepath.Join(dir, fmt.Sprint("node-", rank)), rank, func(task exec.Task) { c.said(rank, task) }, c.warn)
		if err != nil {
			return nil, err
		}
	}
	return c, nil
}

// restore restores the manager, and gives the scheduler the nodes.
func (c *Cluster) restore() error {
	p := c.Program
	m, left, err := joblife.Restore(time.Now(), p.Manager, c.Store.Records())
	if err != nil {
		return err
	}
	nodes, err := rset.New(rset.Config{Entries: []rset.Entry{{
		Ranks: idset.Range(0, uint32(p.Nodes-1)), Children: map[string]*idset.Set{"core": idset.Range(0, uint32(p.Cores-1))},
	}}})
	if err != nil {
		return err
	}
	c.manager = m
	c.recover(left)
	if err := p.Scheduler.Acquire(pool.Acquire{Resources: nodes, Change: pool.Change{Up: nodes.Ranks()}}); err != nil {
		return err
	}
	return p.Scheduler.Drain(c.givenUp())
}

// recover has the executor hear what a restart of the manager has left.
func (c *Cluster) recover(left joblife.Recovered) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, u := range left.Unresolved {
		c.warn(c.executor.Recover(u.Job, u.Unresolved))
	}
	for _, q := range left.Quarantined {
		c.warn(fmt.Errorf("job %v cannot be read: %w", q.Job, q.Err))
		c.executor.Keep(q.Job)
	}
}

// givenUp returns the ranks where an action runs for which the manager does not wait any more.
func (c *Cluster) givenUp() *idset.Set {
	held := make(map[jobid.ID]*idset.Set)
	for h := range c.manager.Holders() {
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

// connect begins the sessions of all nodes.
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
		c.warn(err)
	}
	c.act()
}

// execute does what the manager wants done by the executor and its nodes. It warns of drains, which
// are the scheduler's, and of faults.
func (c *Cluster) execute(rd *joblife.Ready) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, msg := range rd.Exec {
		c.warn(c.executor.Handle(msg))
	}
	for _, r := range rd.Raised {
		if r.Severity == 0 {
			c.executor.Kill(r.Job)
		}
	}
	for _, l := range rd.Launch {
		c.warn(c.executor.Launch(l.Job, l.Launch))
	}
	for _, s := range rd.Signal {
		c.executor.Signal(s.Job, s.Signal)
	}
	for _, e := range rd.Journal {
		if e.Entry.Name == jobstate.EventClean {
			c.executor.Forget(e.Job, false)
		}
	}
	for _, r := range rd.Append {
		if endsHousekeeping(r) {
			c.executor.Forget(r.Job, true)
		}
	}
	for _, d := range rd.Drain {
		c.warn(fmt.Errorf("out of service: rank %v: %s", d.Ranks, d.Reason))
	}
	for _, f := range rd.Faults {
		c.warn(f)
	}
	c.act()
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

// refused warns of an input that the manager has refused. A lost prolog of a job that is
// ending does not run again.
func (c *Cluster) refused(in joblife.Input, err error) {
	c.warn(err)
	if in, ok := in.(joblife.Rerun); ok {
		c.put(joblife.ForceFinish{Action: in.Action, Status: 1, Operator: "executor"})
	}
}

// act does what the executor wants done. Each node does it in order. A start waits for a disk,
// and neither the manager nor another node does.
func (c *Cluster) act() {
	todo := c.executor.Take(eventlog.FromTime(time.Now()))
	for _, cmd := range todo.Commands {
		args := c.args(cmd)
		for rank := range cmd.Ranks.All() {
			before, done := c.done[rank], make(chan struct{})
			c.done[rank] = done
			go func() {
				<-before
				c.warn(c.nodes[rank].do(cmd, args))
				close(done)
			}()
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

// close waits for the nodes, and closes the Store. What the nodes were not asked when the
// program ended, they are asked in its next life.
func (c *Cluster) close() error {
	c.wait()
	return c.Store.Close()
}

// wait waits until the nodes have done what they were asked before.
func (c *Cluster) wait() {
	c.mu.Lock()
	asked := slices.Clone(c.done)
	c.mu.Unlock()
	for _, done := range asked {
		<-done
	}
}

// args returns the program that a command starts.
func (c *Cluster) args(cmd exec.Command) []string {
	switch {
	case cmd.Launch != nil:
		return cmd.Launch.Command
	case cmd.Start != nil:
		spec, err := jobspec.Parse(cmd.Start.Jobspec)
		if c.warn(err); err == nil {
			return spec.Command()
		}
	}
	return nil
}

func (c *Cluster) warn(err error) {
	if err != nil {
		c.report(err)
	}
}
