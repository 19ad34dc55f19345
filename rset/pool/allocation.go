package pool

import (
	"fmt"
	"iter"
	"slices"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/internal/guard"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/children"
)

// A holder is a job that has resources. It is never changed, only replaced.
type holder struct {
	id         jobid.ID
	r          *rset.R // the allocation
	since      eventlog.Timestamp
	expiration eventlog.Timestamp
	gone       *rset.R  // what it holds that is not in the inventory, without hosts; nil: nothing
	cut        bool     // what it holds in the inventory is not, or may not be, all of r
	returned   int64    // nodes that it gave back; -1: not known
	owned      [1]owner // the owners of most of its nodes, as they were allocated
}

// isOf reports whether r is the allocation, as it was made or as it expires now.
func (h *holder) isOf(r *rset.R) bool {
	now, err := h.r.WithTimes(h.r.Start(), h.expiration)
	return rset.Equal(h.r, r) || err == nil && rset.Equal(now, r)
}

// An Allocation is a job with its resources, and the part that it still holds.
type Allocation struct {
	ID         jobid.ID
	R          *rset.R            // the allocation, as it was made or adopted
	Held       *rset.R            // the part of R that it holds and that is in the inventory; without hosts, unless it is R itself
	Gone       *rset.R            // the part of R that it holds and that is not in the inventory; without hosts
	Since      eventlog.Timestamp // the start of R
	Expiration eventlog.Timestamp // 0: never. After it the job still holds its resources
}

func (p *Pool) holder(id jobid.ID) (*holder, bool) {
	it, ok := p.holders.Get(jobItem[*holder]{id: id})
	return it.of, ok
}

// end returns when the job expires, never if it does not.
func (h *holder) end() eventlog.Timestamp { return endOf(h.expiration) }

func (p *Pool) setHolder(h *holder) {
	if old, ok := p.holders.ReplaceOrInsert(jobItem[*holder]{h.id, h}); ok && old.of.expiration != h.expiration {
		p.ends.Delete(event{at: old.of.end(), id: h.id})
	}
	p.addEnd(event{at: h.end(), id: h.id, holder: h})
}

func (p *Pool) removeHolder(h *holder) {
	p.holders.Delete(jobItem[*holder]{id: h.id})
	p.ends.Delete(event{at: h.end(), id: h.id})
}

// setGone notes that a job does not hold all of its allocation, and what is gone.
func (p *Pool) setGone(h *holder, gone *rset.R) *holder {
	c := *h
	c.gone, c.cut, c.returned = gone, true, -1
	p.setHolder(&c)
	return &c
}

// Allocation returns a job until its final Free, even if it holds nothing; false for another.
func (p *Pool) Allocation(id jobid.ID) (Allocation, bool) {
	h, ok := p.holder(id)
	if !ok {
		return Allocation{}, false
	}
	return p.show(h), true
}

// Allocations returns an iterator over the jobs that have resources, by id. The pool must not
// change meanwhile. A job takes a step, or one for each range if it does not hold its whole R.
func (p *Pool) Allocations() iter.Seq[Allocation] {
	return func(yield func(Allocation) bool) {
		p.holders.Ascend(func(it jobItem[*holder]) bool { return yield(p.show(it.of)) })
	}
}

// Len returns the number of jobs that have resources.
func (p *Pool) Len() int { return p.holders.Len() }

// show returns a holder as others see it.
func (p *Pool) show(h *holder) Allocation {
	out := Allocation{
		ID: h.id, R: h.r, Held: h.r, Gone: new(rset.R), Since: h.since, Expiration: h.expiration,
	}
	if h.cut {
		out.Held = p.held(h)
	}
	if h.gone != nil {
		out.Gone = h.gone
	}
	return out
}

// SetExpiration sets when the allocation of a job expires, for Plan; 0 means never. It frees
// nothing. The error is ErrNotFound for a job without resources, or about an invalid time.
func (p *Pool) SetExpiration(id jobid.ID, t eventlog.Timestamp) error {
	h, ok := p.holder(id)
	if !ok {
		return jobError(id, ErrNotFound)
	}
	if err := checkTime("expiration of job "+id.String(), t); err != nil {
		return err
	}
	p.shortages = nil // what is planned may leave more
	c := *h
	c.expiration = t + 0 // no negative zero
	p.setHolder(&c)
	for _, pt := range p.pieces(h) {
		p.edit(pt.First, pt.Last, func(_, _ uint32, s *state) {
			s.owners = slices.Clone(s.owners)
			i, _ := s.find(id)
			s.owners[i].end = c.end()
		})
	}
	return nil
}

// Free takes a fragment of its resources from a job: nil, empty, or with resources that left the
// inventory too. The error is ErrNotFound if the job has no resources, and there is one if it
// does not hold all of the fragment. Then nothing has changed.
//
// The job stays a holder, perhaps of nothing, until a final Free, which also releases what the
// manager did not free, and returns it, without hosts.
//
// It takes logarithmic time for each range of the fragment; a final Free, for each range of the
// allocation. If some of the fragment left the inventory, it also goes over all that the job
// holds of that.
func (p *Pool) Free(id jobid.ID, fragment *rset.R, final bool) (rest *rset.R, err error) {
	h, ok := p.holder(id)
	if !ok {
		return nil, jobError(id, ErrNotFound)
	}
	var room [2][4]children.Part
	named, beyond := parts(room[0][:0]), parts(room[1][:0]) // beyond is not held in the inventory: it may be gone
	for pt := range fragment.Parts() {
		p.within(pt.First, pt.Last, func(first, last uint32, sp *span) {
			what := sp.heldBy(id)
			named = named.add(first, last, pt.What.Intersect(what))
			beyond = beyond.add(first, last, pt.What.Subtract(what))
		})
	}
	gone := h.gone
	if len(beyond) > 0 {
		var excess *rset.R
		gone, excess, _ = rset.Subtract(h.gone, beyond.r()) // fails on hosts alone: there are none
		if !excess.IsEmpty() {
			return nil, fmt.Errorf("%w: job %s: %s", errNotHeld, id, guard.Plain(excess.String()))
		}
	}
	nodes := p.release(id, named)
	switch {
	case final:
		if h.returned >= 0 && h.returned+nodes == int64(h.r.Len()) {
			// Nothing is left.
		} else if left := p.pieces(h); len(left) > 0 || !gone.IsEmpty() {
			rest = must(rset.UnionDisjoint(left.r(), gone))
			p.release(id, left)
		}
		p.removeHolder(h)
	case !fragment.IsEmpty():
		c := *h
		if c.gone, c.cut = gone, true; c.returned >= 0 {
			c.returned += nodes
		}
		p.setHolder(&c)
	}
	return rest, nil
}

// release takes from a job what it holds, and returns on how many nodes it holds nothing any more.
func (p *Pool) release(id jobid.ID, what parts) (nodes int64) {
	for _, pt := range what {
		p.ease(int64(pt.Last-pt.First) + 1)
		p.edit(pt.First, pt.Last, func(first, last uint32, s *state) {
			s.drop(id, pt.What)
			if _, held := s.find(id); !held {
				nodes += int64(last-first) + 1
			}
		})
	}
	return nodes
}
