package main

import (
	"container/heap"
	"fmt"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/rset/pool"
)

// An event happens at a time; those of one time, in the order in which they were added.
type event struct {
	at     seconds
	number int
	happen func()
}

// events are a heap.
type events []event

func (q events) Len() int      { return len(q) }
func (q events) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *events) Push(e any)   { *q = append(*q, e.(event)) }

func (q events) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].number < q[j].number
}

func (q *events) Pop() any {
	last := len(*q) - 1
	e := (*q)[last]
	(*q)[last] = event{}
	*q = (*q)[:last]
	return e
}

// after has something happen after a time.
func (c *cluster) after(wait seconds, happen func()) {
	c.added++
	heap.Push(&c.queue, event{c.now + wait, c.added, happen})
}

// happen lets happen what is due. What it adds for now follows.
func (c *cluster) happen() {
	for len(c.queue) > 0 && c.queue[0].at <= c.now {
		heap.Pop(&c.queue).(event).happen()
	}
}

// fail draws when a node fails next.
func (c *cluster) fail() {
	wait := c.rng.ExpFloat64() * float64(c.o.mtbf) / float64(len(c.nodes))
	rank := uint32(c.rng.IntN(len(c.nodes)))
	c.after(max(1, seconds(wait)), func() { c.failed(rank) })
}

// failed takes a node down, with all that runs on it. Its jobs end.
func (c *cluster) failed(rank uint32) {
	c.fail()
	if !c.offline.Insert(rank) {
		return // it is down already
	}
	c.failures++
	if c.waiting > 0 {
		c.vain++
	}
	if c.vain > 100*len(c.nodes) {
		c.check(fmt.Errorf("nodes failed %d times, and no job began or was over meanwhile: give a longer -mtbf or a shorter -repair", c.vain))
	}
	c.repair(rank)
	tenants := c.nodes[rank]
	for i := range tenants {
		if t := &tenants[i]; t.acts() {
			c.exit(rank, t, perilog.ReportUnreachable)
		}
	}
	c.put(joblife.Offline{Ranks: c.offline.Clone()})
	for _, t := range tenants {
		if c.jobs[t.job].running {
			c.nodeFailed(t.job, rank)
		}
	}
	c.change(pool.Change{Down: idset.Of(rank)})
}

func (c *cluster) nodeFailed(id jobid.ID, rank uint32) {
	c.put(joblife.Raise{ID: id, Type: "node-failure", Note: fmt.Sprintf("node %d is down", rank)})
}

// repair has a node repaired. If a drained node has failed meanwhile, only the repair of the
// failure counts, which ends later.
func (c *cluster) repair(rank uint32) {
	failed := c.offline.Contains(rank)
	c.after(c.o.repair, func() {
		if !failed && c.offline.Contains(rank) {
			return
		}
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
		for _, t := range n {
			if t.last.Kind != 0 {
				inputs = append(inputs, joblife.Report{Job: t.job, Report: t.last})
			}
		}
	}
	return c.connect(m, inputs...)
}
