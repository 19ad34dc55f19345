package sched

import (
	"fmt"

	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset"
)

// Follows reports whether the policy is asked only for what is new.
func (s *Scheduler) Follows() bool { return s.follows }

// PlanOnly makes a scheduler reserve by Pool.Plan alone.
func (s *Scheduler) PlanOnly() { s.shared++ }

// ByCount reports whether the last pass counted nodes.
func (s *Scheduler) ByCount() bool { return s.byCount }

// Known returns how many jobspecs are known.
func (s *Scheduler) Known() int { return len(s.requests.known) }

// Anew makes the next decision begin anew.
func (s *Scheduler) Anew() { s.full = true }

// Check returns an error if a scheduler breaks a rule of its own.
func (s *Scheduler) Check() error {
	if s.pool == nil {
		return nil
	}
	if len(s.jobs) != s.pool.Len()+s.queue.n {
		return fmt.Errorf("%d jobs, %d wait and %d have resources", len(s.jobs), s.queue.n, s.pool.Len())
	}
	n := 0
	for c, at := range s.queue.chunks {
		if len(at.entries) == 0 || len(at.entries) > chunkLen {
			return fmt.Errorf("a chunk has %d entries", len(at.entries))
		}
		least := at.entries[0].need
		for i, e := range at.entries {
			if s.jobs[e.id] != e.job || e.job.state != waits || e.job.entry() != e {
				return fmt.Errorf("job %v is in the queue", e.id)
			}
			if i > 0 && at.entries[i-1].compare(e.key) >= 0 || i == 0 && c > 0 && s.queue.chunks[c-1].entries[len(s.queue.chunks[c-1].entries)-1].compare(e.key) >= 0 {
				return fmt.Errorf("job %v is out of order", e.id)
			}
			least = least.least(e.need)
		}
		if least != at.least {
			return fmt.Errorf("a chunk needs %v, and says %v", least, at.least)
		}
		n += len(at.entries)
	}
	if n != s.queue.n {
		return fmt.Errorf("%d jobs in the queue, %d counted", n, s.queue.n)
	}
	return nil
}

// Held returns what a job holds.
func (s *Scheduler) Held(id jobid.ID) *rset.R {
	h, _ := s.pool.Allocation(id)
	return h.Held
}
