package main

import (
	"cmp"
	"container/heap"
	"fmt"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/rset/pool"
)

// An event happens at a time; of one time, in the order in which they were added.
type event struct {
	at     seconds
	serial uint64
	happen func()
}

// events is a heap.
type events []*event

func (q events) Len() int      { return len(q) }
func (q events) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *events) Push(e any)   { *q = append(*q, e.(*event)) }

func (q events) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(q[i].at, q[j].at), cmp.Compare(q[i].serial, q[j].serial)) < 0
}

func (q *events) Pop() any {
	last := len(*q) - 1
	e := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	return e
}

// after has something happen after a time.
func (c *cluster) after(wait seconds, happen func()) {
	c.serial++
	heap.Push(&c.queue, &event{c.now + wait, c.serial, happen})
}

// fail draws when a node fails next.
func (c *cluster) fail() {
	wait := c.rng.ExpFloat64() * float64(c.o.mtbf) / float64(len(c.nodes))
	rank := uint32(c.rng.IntN(len(c.nodes)))
	c.after(max(1, seconds(wait)), func() { c.failed(rank) })
}

// failed takes a node down, with all that runs on it. The job ends.
func (c *cluster) failed(rank uint32) {
	c.fail()
	if !c.offline.Insert(rank) {
		return // it is down already
	}
	c.failures++
	c.repair(rank)
	n := &c.nodes[rank]
	if n.acts() {
		c.exit(rank, perilog.ReportUnreachable)
	}
	c.put(joblife.Offline{Ranks: c.offline.Clone()})
	if n.holder != 0 && c.jobs[n.holder].running {
		c.put(joblife.Raise{ID: n.holder, Type: "node-failure", Note: fmt.Sprintf("node %d is down", rank)})
	}
	c.change(pool.Change{Down: idset.Of(rank)})
}

// repair has a node repaired.
func (c *cluster) repair(rank uint32) {
	c.after(c.o.repair, func() {
		up := idset.Of(rank)
		c.offline.SubtractWith(up)
		c.drained.SubtractWith(up)
		c.put(joblife.Offline{Ranks: c.offline.Clone()})
		c.change(pool.Change{Up: up})
	})
}

// change tells the scheduler of nodes that are up or down.
func (c *cluster) change(nodes pool.Change) {
	c.check(c.sched.Acquire(pool.Acquire{Change: nodes}))
}

// restart ends the manager and the scheduler, and makes others of what is durable.
// The jobs go on meanwhile, and so do prologs and epilogs. Nodes repeat what they said
// last.
func (c *cluster) restart() error {
	if err := c.settle(); err != nil {
		return err
	}
	m, left, err := joblife.Restore(c.time(), c.cfg, func(yield func(joblife.Record, error) bool) {
		for _, r := range c.stored {
			if !yield(r, nil) {
				return
			}
		}
	})
	if err != nil {
		return err
	}
	for _, q := range left.Quarantined {
		return fmt.Errorf("job %v cannot be read after a restart: %w", q.Job, q.Err)
	}
	inputs := []joblife.Input{joblife.Offline{Ranks: c.offline.Clone()}}
	for _, n := range c.nodes {
		if n.last.Kind != 0 {
			inputs = append(inputs, joblife.Report{Job: n.holder, Report: n.last})
		}
	}
	return c.connect(m, inputs...)
}
