//go:build unix

package proc

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/examples/internal/files"
	"github.com/joblife/joblife/examples/internal/lines"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
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

	manager  *joblife.Manager
	left     joblife.Recovered
	executor exec.Executor
	nodes    []*Runner

	// Of the Loop's goroutine.
	sessions []exec.Session
	done     []chan struct{} // closed when a node has done what it was asked last; nil: nothing
}

// open opens the folder, or makes it, and restores the manager.
func (p *Program) open() (*Cluster, error) {
	if err := files.MakeDir(p.Dir); err != nil {
		return nil, fmt.Errorf("-dir: %w", err)
	}
	store, err := lines.Open(func() (*boltstore.Store, error) { return boltstore.Open(filepath.Join(p.Dir, "jobs.db")) })
	if err != nil {
		return nil, fmt.Errorf("-dir: %s", strings.TrimPrefix(err.Error(), "boltstore: "))
	}
	c := &Cluster{Store: store, Program: p, sessions: make([]exec.Session, p.Nodes), done: make([]chan struct{}, p.Nodes)}
	if c.manager, c.left, err = joblife.Restore(time.Now(), p.Manager, store.Records()); err != nil {
		return nil, errors.Join(fmt.Errorf("-dir: %w", err), store.Close())
	}
	for _, q := range c.left.Quarantined {
		c.warn(fmt.Errorf("job %v cannot be read, and keeps its nodes: %s", q.Job, lines.Why(q.Err)))
	}
	for id, r := range c.manager.Allocated() { // until its node says hello, a job does not end
		_, ends := c.manager.Job(id) // but for one that cannot be read
		if last, ok := r.Ranks().Max(); ends && ok && int(last) >= p.Nodes {
			return nil, errors.Join(fmt.Errorf("-nodes %d: job %v has node %d: give at least %d until it is over", p.Nodes, id, last, last+1), store.Close())
		}
	}
	return c, nil
}

// openNodes opens the nodes with what they run, and gives them to the scheduler, in service but
// for those where an action runs that was given up: they were drained.
func (c *Cluster) openNodes() error {
	p := c.Program
	for rank := range p.Nodes {
		node, err := NewRunner(filepath.Join(p.Dir, fmt.Sprint("node-", rank)), rank, func(task exec.Task) { c.said(rank, task) }, c.warn)
		if err != nil {
			return fmt.Errorf("-dir: %w", err)
		}
		c.nodes = append(c.nodes, node)
	}
	nodes, err := rset.New(rset.Config{Entries: []rset.Entry{{
		Ranks: idset.Range(0, uint32(p.Nodes-1)), Children: map[string]*idset.Set{"core": idset.Range(0, uint32(p.Cores-1))},
	}}})
	if err != nil {
		return err
	}
	if err := p.Scheduler.Acquire(pool.Acquire{Resources: nodes, Change: pool.Change{Up: nodes.Ranks()}}); err != nil {
		return err
	}
	return p.Scheduler.Drain(c.givenUp())
}

// givenUp returns the ranks where an action runs for which the manager does not wait any more.
func (c *Cluster) givenUp() *idset.Set {
	waits := make(map[exec.Task]*idset.Set) // of any attempt: an earlier one ends before the one that is lost
	for _, u := range c.left.Unresolved {
		task := exec.Task{Job: u.Job, Action: u.Action}
		waits[task] = idset.Union(waits[task], u.Ranks)
	}
	ranks := new(idset.Set)
	for rank, node := range c.nodes {
		for _, st := range node.List() {
			waited := waits[exec.Task{Job: st.Task.Job, Action: st.Task.Action}]
			if st.State == exec.TaskRunning && st.Task.Action != (jobstate.ActionKey{}) && !waited.Contains(uint32(rank)) {
				ranks.Insert(uint32(rank))
				c.warn(fmt.Errorf("node %d is drained: %v was given up, and still runs", rank, st.Task))
			}
		}
	}
	return ranks
}

// connect begins the sessions of all nodes.
func (c *Cluster) connect() error {
	return c.Hear(func(x *exec.Executor) (err error) {
		for rank, node := range c.nodes {
			s, helloErr := x.Hello(uint32(rank), node.List())
			c.sessions[rank], err = s, errors.Join(err, helloErr)
		}
		return err
	})
}

// said passes on what a node says now: by this time the task may be forgotten, and another one
// with its name may run. Before its session begins, its hello will say it. It waits while the
// inbox is full, since nobody says an end twice.
func (c *Cluster) said(rank int, task exec.Task) {
	hear := func() error {
		return c.Hear(func(x *exec.Executor) error {
			if st, ok := c.nodes[rank].Last(task); ok {
				return x.Update(c.sessions[rank], st)
			}
			return nil
		})
	}
	err := hear()
	for ; errors.Is(err, loop.ErrFull); err = hear() {
		time.Sleep(10 * time.Millisecond)
	}
	if !errors.Is(err, exec.ErrSession) && !errors.Is(err, loop.ErrEnded) {
		c.warn(err)
	}
}

// commands passes commands to their nodes. Each does them in order. A start waits for a disk, and
// neither the manager nor another node does.
func (c *Cluster) commands(list []exec.Command) {
	for _, cmd := range list {
		args, err := argsOf(cmd)
		c.warn(err)
		for rank := range cmd.Ranks.All() {
			before, done := c.done[rank], make(chan struct{})
			c.done[rank] = done
			go func() {
				if before != nil {
					<-before
				}
				c.warn(c.nodes[rank].Do(cmd, args))
				close(done)
			}()
		}
	}
}

func (c *Cluster) effects(_ *joblife.Manager, rd *joblife.Ready) {
	c.Program.Journal(rd.Journal)
	for _, d := range rd.Drain {
		c.warn(fmt.Errorf("out of service: rank %v: %s", d.Ranks, d.Reason))
	}
	for _, f := range rd.Faults {
		c.warn(f)
	}
}

func (c *Cluster) refused(_ joblife.Input, err error) { c.warn(err) }

// argsOf returns the program that a command starts.
func argsOf(cmd exec.Command) ([]string, error) {
	switch {
	case cmd.Launch != nil:
		return cmd.Launch.Command, nil
	case cmd.Start == nil:
		return nil, nil
	}
	spec, err := jobspec.Parse(cmd.Start.Jobspec)
	if err != nil {
		return nil, err
	}
	return spec.Command(), nil
}

// close waits for the nodes, after the Loop, and closes the Store. What the nodes were not asked
// when the program ended, they are asked in its next life.
func (c *Cluster) close() error {
	for _, done := range c.done {
		if done != nil {
			<-done
		}
	}
	return c.Store.Close()
}

func (c *Cluster) warn(err error) {
	if err != nil {
		c.Program.warn(err)
	}
}
