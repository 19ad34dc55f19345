package perilog

import (
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/rset"
)

// A Scratch is memory that the Jobs of one goroutine share, so that thousands of them
// that do nothing stay small. The zero Scratch is ready for use. What Take and Settle
// return is then valid until the next input or Take of any of these Jobs.
type Scratch struct {
	event, own   jobstate.Event // of Apply, and of what a Job posts
	ended        idset.Set      // ranks on which the current event ends a hold
	want         idset.Set      // ranks that the current event names
	none         rset.R         // the empty one
	checked      *Config        // the last that was good, which does not change
	noNodes      nodes          // of Jobs without an allocation: never changed
	noDrains     drains         // of Jobs on which no rank failed: never changed
	noFailures   failures       // of Jobs on which no rank failed: never changed
	noAllocation allocation     // of Jobs without an allocation: never changed
	noEffects    buffers        // of Jobs without effects: never changed
	free         []*buffers
	taken        *buffers // those that Take returned last
}

// checkConfig checks a configuration once for all Jobs that have it.
func (s *Scratch) checkConfig(c *Config) error {
	if s.checked == c {
		return nil
	}
	err := c.Check()
	if err == nil {
		s.checked = c
	}
	return err
}

// noneYet returns the nodes and the effects of a Job that has none.
func (s *Scratch) noneYet() (*nodes, *buffers) {
	s.noNodes.drains = &s.noDrains
	return &s.noNodes, &s.noEffects
}

// buffers are the memory of effects.
type buffers struct {
	effects Effects
	settled int    // how many of effects.Post Settle has returned
	text    []byte // contexts of effects.Post
}

// open gives a Job the memory for effects.
func (j *Job) open() {
	s := j.holds.scratch
	if j.buffers != &s.noEffects {
		return
	}
	if n := len(s.free); n > 0 {
		j.buffers, s.free[n-1] = s.free[n-1], nil
		s.free = s.free[:n-1]
	} else {
		j.buffers = new(buffers)
	}
}

// close takes the effects of a Job out, and the memory of the last ones back.
func (j *Job) close() Effects {
	s := j.holds.scratch
	if j.buffers == &s.noEffects {
		return Effects{}
	}
	if last := s.taken; last != nil {
		e := &last.effects
		e.Post = e.Post[:0] // which refers to the text alone
		e.Launch, e.Signal, e.Drain, e.Outcomes = clearTo(e.Launch), clearTo(e.Signal), clearTo(e.Drain), clearTo(e.Outcomes)
		e.Start, e.Free = false, rset.Fragment{}
		last.text, last.settled = last.text[:0], 0
		s.free = append(s.free, last)
	}
	s.taken, j.buffers = j.buffers, &s.noEffects
	return s.taken.effects
}

// clearTo returns s emptied, with its room.
func clearTo[T any](s []T) []T {
	clear(s)
	return s[:0]
}
