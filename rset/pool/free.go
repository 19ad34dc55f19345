package pool

import (
	"fmt"

	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/children"
)

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
			return nil, fmt.Errorf("%w: job %s: %s", errNotHeld, id, plain(excess))
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
