//go:build unix

package proc

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/examples/internal/files"
	"github.com/joblife/joblife/examples/internal/lines"
	"github.com/joblife/joblife/examples/internal/nodes"
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
	nodes   []*Runner

	executor *nodes.Nodes
	sessions []exec.Session  // like done, for executor.Do and command
	done     []chan struct{} // closed when a node has done what it was asked last
}

// open opens the folder, or makes it, and restores the manager. The nodes are in service, but
// for those where an action runs that was given up: they were drained.
func (p *Program) open() (*Cluster, error) {
	if err := files.MakeDir(p.Dir); err != nil {
		return nil, fmt.Errorf("-dir: %w", err)
	}
	store, err := lines.Open(func() (*boltstore.Store, error) { return boltstore.Open(filepath.Join(p.Dir, "jobs.db")) })
	if err != nil {
		return nil, fmt.Errorf("-dir: %s", strings.TrimPrefix(err.Error(), "boltstore: "))
	}
	c, err := newCluster(p.Dir, p.Nodes, p.warn)
	if err == nil {
		c.Store, c.Program = store, p
		err = c.restore()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("-dir: %w", err), store.Close())
	}
	return c, nil
}

// newCluster returns n nodes with what they run.
func newCluster(dir string, n int, report func(error)) (*Cluster, error) {
	c := &Cluster{report: report, nodes: make([]*Runner, n), sessions: make([]exec.Session, n), done: make([]chan struct{}, n)}
	c.executor = &nodes.Nodes{Command: c.command, Warn: report}
	idle := make(chan struct{})
	close(idle)
	var err error
	c.executor.Do(func(*exec.Executor) { // a task of an earlier life may end at any time
		for rank := range c.nodes {
			c.done[rank] = idle
			c.nodes[rank], err = NewRunner(filepath.Join(dir, fmt.Sprint("node-", rank)), rank, func(task exec.Task) { c.said(rank, task) }, c.warn)
			if err != nil {
				return
			}
		}
	})
	return c, err
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
	c.executor.Recover(left)
	if err := p.Scheduler.Acquire(pool.Acquire{Resources: nodes, Change: pool.Change{Up: nodes.Ranks()}}); err != nil {
		return err
	}
	return p.Scheduler.Drain(c.givenUp())
}

// givenUp returns the ranks where an action runs for which the manager does not wait any more.
func (c *Cluster) givenUp() *idset.Set {
	held := make(map[jobid.ID]*idset.Set)
	for h := range c.manager.Holders() {
		held[h.Job] = idset.Union(held[h.Job], h.Ranks)
	}
	ranks := new(idset.Set)
	for rank, node := range c.nodes {
		for _, st := range node.List() {
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
	c.executor.Do(func(x *exec.Executor) {
		for rank, node := range c.nodes {
			s, helloErr := x.Hello(uint32(rank), node.List())
			c.sessions[rank], err = s, errors.Join(err, helloErr)
		}
	})
	return err
}

// said takes what a node says now: by this time the task may be forgotten, and another one
// with its name may run. Before its session begins, its hello will say it.
func (c *Cluster) said(rank int, task exec.Task) {
	c.executor.Do(func(x *exec.Executor) {
		st, ok := c.nodes[rank].Last(task)
		if !ok {
			return
		}
		if err := x.Update(c.sessions[rank], st); !errors.Is(err, exec.ErrSession) {
			c.warn(err)
		}
	})
}

// command sends a command to its nodes. Each does them in order. A start waits for a disk, and
// neither the manager nor another node does.
func (c *Cluster) command(cmd exec.Command, args []string, _ *jobspec.Spec) {
	for rank := range cmd.Ranks.All() {
		before, done := c.done[rank], make(chan struct{})
		c.done[rank] = done
		go func() {
			<-before
			c.warn(c.nodes[rank].Do(cmd, args))
			close(done)
		}()
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
	var asked []chan struct{}
	c.executor.Do(func(*exec.Executor) { asked = slices.Clone(c.done) })
	for _, done := range asked {
		<-done
	}
}

func (c *Cluster) warn(err error) {
	if err != nil {
		c.report(err)
	}
}
