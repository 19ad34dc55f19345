package pool

import (
	"fmt"

	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/children"
)

// Freed is the result of [Pool.Free]. Returned, Gone and Contested are disjoint; their
// union is the union of the fragment and Rest. No field is nil. The fields have no hosts
// and times, except that Returned may be the fragment itself.
type Freed struct {
	Returned  *rset.R // resources that no job holds now; those on ranks that are up can be allocated
	Gone      *rset.R // resources that are not in the inventory
	Contested *rset.R // resources that another job still holds: see Pool.Adopt
	Rest      *rset.R // resources that a final Free released in addition to the fragment
}

// Free takes a fragment of its resources from a job. The error is ErrNotFound if the
// job has no resources. It is an error too if the job does not hold all of the fragment.
// Then nothing has changed. The fragment may be nil or empty, and may have resources that
// left the inventory.
//
// The job stays a holder, perhaps of nothing, until a final Free, which also releases all
// that the job still holds and returns it as Rest. A Rest that is not empty means that
// the manager did not free everything; other jobs get the resources anyway.
//
// It takes logarithmic time for each range of the fragment; a final Free, for each
// range of the allocation.
func (p *Pool) Free(id jobid.ID, fragment *rset.R, final bool) (Freed, error) {
	h, ok := p.holder(id)
	if !ok {
		return Freed{}, jobError(id, ErrNotFound)
	}
	var room [3][4]children.Part
	named, beyond := parts(room[0][:0]), parts(room[1][:0]) // beyond is not held in the inventory: it may be gone
	for pt := range fragment.Parts() {
		p.within(pt.First, pt.Last, func(first, last uint32, sp *span) {
			what := sp.heldBy(id)
			named = named.add(first, last, pt.What.Intersect(what))
			beyond = beyond.add(first, last, pt.What.Subtract(what))
		})
	}
	out := Freed{Returned: fragment, Gone: p.none, Contested: p.none, Rest: p.none}
	gone := h.gone
	if len(beyond) > 0 {
		out.Gone = beyond.r()
		var excess *rset.R
		gone, excess, _ = rset.Subtract(h.gone, out.Gone) // fails on hosts alone: there are none
		if !excess.IsEmpty() {
			return Freed{}, fmt.Errorf("%w: job %s: %s", errNotHeld, id, plain(excess))
		}
	}
	back, contested := p.release(id, named, room[2][:0])
	if len(contested) > 0 {
		out.Contested = contested.r()
	}
	var more *rset.R // returned in addition to the fragment
	switch {
	case final:
		if left := p.pieces(h); len(left) > 0 || !gone.IsEmpty() {
			out.Rest = must(rset.UnionDisjoint(left.r(), gone))
			out.Gone = must(rset.UnionDisjoint(out.Gone, gone))
			back, contested := p.release(id, left, nil)
			more = back.r()
			out.Contested = must(rset.UnionDisjoint(out.Contested, contested.r()))
		}
		p.removeHolder(h)
	case !fragment.IsEmpty():
		p.setGone(h, gone)
	}
	if fragment == nil || !out.Gone.IsEmpty() || !out.Contested.IsEmpty() || !out.Rest.IsEmpty() {
		out.Returned = must(rset.UnionDisjoint(back.r(), more))
	}
	return out, nil
}

// release takes from a job what it holds. It appends to back what no job holds any more,
// and returns back and what another job still holds.
func (p *Pool) release(id jobid.ID, what, back parts) (_, contested parts) {
	for _, pt := range what {
		p.shortages.ease(int64(pt.Last-pt.First) + 1)
		p.edit(pt.First, pt.Last, func(first, last uint32, s *state) {
			got := s.drop(id, pt.What)
			back = back.add(first, last, got)
			contested = contested.add(first, last, pt.What.Subtract(got))
		})
	}
	return back, contested
}
