package purge

import (
	"fmt"
	"iter"

	"github.com/joblife/joblife/jobstate/jobid"
)

// Compared returns how often the order of two jobs was asked for.
func (x *Index) Compared() uint64 { return x.jobs.compared }

// Durable returns the watermark that the index believes to be stored.
func (x *Index) Durable() uint64 { return uint64(x.durable) }

// Check returns the first of the package's invariants that does not hold.
func (x *Index) Check() error {
	if err := x.jobs.check("job", map[meta]*order{whereFree: &x.free, wherePinned: &x.pinned}, x.leaving); err != nil {
		return err
	}
	if err := x.tombs.check("tombstone", map[meta]*order{whereFree: &x.ended}, 0); err != nil {
		return err
	}
	var counts Counts
	for id, at := range x.jobs.byID.all() {
		counts.add(x.jobs.job(at).Result, 1)
		if _, ok := x.tombs.byID.get(id); ok {
			return fmt.Errorf("I3: %v is resident and a tombstone", id)
		}
		if got := len(x.pins[id]) > 0; got != (x.jobs.where(at) == wherePinned) {
			return fmt.Errorf("I3: %v has pins: %v, is pinned: %v", id, got, !got)
		}
		if id > x.high {
			return fmt.Errorf("I9: %v is above the watermark %v", id, x.high)
		}
	}
	if counts != x.resident {
		return fmt.Errorf("I4: %v are resident, counted are %v", counts, x.resident)
	}
	if len(x.pins) != x.pinned.len() {
		return fmt.Errorf("I3: %d jobs have pins, %d are pinned", len(x.pins), x.pinned.len())
	}
	leaving := 0
	for _, c := range x.claims {
		leaving += len(c.jobs)
		for _, j := range c.jobs {
			if at, ok := x.jobs.byID.get(j.ID); !ok || x.jobs.where(at) != whereLeaving || x.jobs.job(at) != j.Job {
				return fmt.Errorf("I3: %v is claimed and not leaving", j.ID)
			}
		}
	}
	if leaving != x.leaving {
		return fmt.Errorf("I3: %d jobs are claimed, %d are leaving", leaving, x.leaving)
	}
	if x.durable > x.high {
		return fmt.Errorf("I9: the watermark %v is below the stored %v", x.high, x.durable)
	}
	return nil
}

// check returns the first thing that is wrong with a shelf and its orders.
func (s *shelf) check(what string, orders map[meta]*order, leaving int) error {
	if s.byID.len()+s.empties != s.used {
		return fmt.Errorf("%ss: %d held, %d empty, %d used", what, s.byID.len(), s.empties, s.used)
	}
	for id, at := range s.byID.all() {
		if s.job(at).ID != id {
			return fmt.Errorf("%s %v is %v", what, id, s.job(at).ID)
		}
	}
	at := s.empty
	for range s.empties {
		c, i := s.chunks[at/chunkSize], at%chunkSize
		if c.times[i] != 0 || c.metas[i] != 0 {
			return fmt.Errorf("empty %s %d is not zero", what, at)
		}
		at = slot(c.ids[i])
	}
	n := leaving
	for where, o := range orders {
		n += o.len()
		var last *Job
		var err error
		o.each(func(at slot) bool {
			j := s.job(at)
			switch {
			case s.where(at) != where:
				err = fmt.Errorf("I3: %s %v is in order %x and at %x", what, j.ID, where, s.where(at))
			case !s.is(j.ID, at):
				err = fmt.Errorf("I3: %s %v is found elsewhere", what, j.ID)
			case last != nil && !less(*last, j):
				err = fmt.Errorf("I1: %s %v is after %v", what, *last, j)
			}
			last = &j
			return err == nil
		})
		if err != nil {
			return err
		}
	}
	if n != s.byID.len() {
		return fmt.Errorf("I3: %d %ss have a place, %d are held", n, what, s.byID.len())
	}
	return nil
}

// is reports whether at is found for an id.
func (s *shelf) is(id jobid.ID, at slot) bool {
	got, ok := s.byID.get(id)
	return ok && got == at
}

// all ranges over the ids and slots.
func (t *table) all() iter.Seq2[jobid.ID, slot] {
	return func(yield func(jobid.ID, slot) bool) {
		for _, m := range t {
			for id, at := range m {
				if !yield(id, at) {
					return
				}
			}
		}
	}
}
