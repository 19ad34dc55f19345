package main

import (
	"fmt"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/perilog"
)

// What happens.
const (
	finishes = iota // the processes of a job end
	exits           // a prolog or an epilog ends on some nodes
	fails           // a node fails
	repairs         // nodes are repaired
	restarts        // the manager and the scheduler die, and come back
)

// An event happens at a time.
type event struct {
	at      seconds
	serial  uint64
	kind    int
	job     jobid.ID
	ends    seconds // when the job was to end
	action  jobstate.ActionKey
	attempt uint32
	ranks   []uint32
}

// before reports whether an event comes before another: of one time, in the order in
// which they were added.
func (e *event) before(f *event) bool { return e.at < f.at || e.at == f.at && e.serial < f.serial }

// events is a heap.
type events []event

func (q *events) push(e event) {
	h := append(*q, e)
	i := len(h) - 1
	for up := (i - 1) / 2; i > 0 && e.before(&h[up]); up = (i - 1) / 2 {
		h[i], i = h[up], up
	}
	h[i] = e
	*q = h
}

func (q *events) pop() event {
	h := *q
	first, last := h[0], h[len(h)-1]
	h[len(h)-1] = event{}
	h = h[:len(h)-1]
	for i := 0; len(h) > 0; {
		down := 2*i + 1
		if down+1 < len(h) && h[down+1].before(&h[down]) {
			down++
		}
		if down >= len(h) || last.before(&h[down]) {
			h[i] = last
			break
		}
		h[i], i = h[down], down
	}
	*q = h
	return first
}

func (c *cluster) after(wait seconds, e event) {
	c.serial++
	e.at, e.serial = c.now+wait, c.serial
	c.queue.push(e)
}

func (c *cluster) happen(e event) error {
	switch e.kind {
	case finishes:
		if j := &c.jobs[e.job]; j.running && j.exits == e.ends {
			c.finish(e.job, status(j.fails))
		}
	case exits:
		for _, rank := range e.ranks {
			if n := &c.nodes[rank]; n.acts() && n.holder == e.job && n.last.Action == e.action && n.last.Attempt == e.attempt {
				c.exit(rank, perilog.ReportExited)
			}
		}
	case fails:
		return c.failed(e.ranks[0])
	case repairs:
		return c.repaired(e.ranks)
	case restarts:
		return c.restart()
	}
	return nil
}

func status(fails bool) int32 {
	if fails {
		return 1 << 8
	}
	return 0
}

// fail draws when a node fails next.
func (c *cluster) fail() {
	wait := c.rng.ExpFloat64() * float64(c.o.mtbf) / float64(len(c.nodes))
	c.after(max(1, seconds(wait)), event{kind: fails, ranks: []uint32{uint32(c.rng.IntN(len(c.nodes)))}})
}

// failed takes a node down, with all that runs on it. The job ends.
func (c *cluster) failed(rank uint32) error {
	c.fail()
	if !c.offline.Insert(rank) {
		return nil // it is down already
	}
	c.failures++
	c.after(c.o.repair, event{kind: repairs, ranks: []uint32{rank}})
	n := &c.nodes[rank]
	if n.acts() {
		c.exit(rank, perilog.ReportUnreachable)
	}
	c.put(joblife.Offline{Ranks: c.offline.Clone()})
	if n.holder != 0 && c.jobs[n.holder].running {
		c.put(joblife.Raise{ID: n.holder, Type: "node-failure", Note: fmt.Sprintf("node %d is down", rank)})
	}
	return c.sched.nodes(nil, idset.Of(rank))
}

func (c *cluster) repaired(ranks []uint32) error {
	up := idset.Of(ranks...)
	c.offline.SubtractWith(up)
	c.drained.SubtractWith(up)
	c.put(joblife.Offline{Ranks: c.offline.Clone()})
	return c.sched.nodes(up, nil)
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
