package pool

import (
	"fmt"

	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/internal/children"
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

// Free takes a fragment of its resources from a job. The error is ErrNotHeld if the job
// does not hold all of the fragment, or ErrNotFound if the job has no resources; then
// nothing has changed. The fragment may be nil or empty, and may have resources that
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
	var named []piece
	var beyond collector // what is not held in the inventory: it may be gone
	for e := range fragment.Entries() {
		k := children.New(e.Children)
		for first, last := range e.Ranks.Ranges() {
			p.within(first, last, func(first, last uint32, sp *span) {
				what := sp.heldBy(id)
				if have := k.Intersect(what); have != nil {
					named = append(named, piece{first, last, have})
				}
				beyond.add(first, last, k.Subtract(what))
			})
		}
	}
	out := Freed{Returned: fragment, Gone: beyond.r(rset.Config{}), Rest: new(rset.R)}
	gone := h.gone
	if !out.Gone.IsEmpty() {
		var excess *rset.R
		gone, excess, _ = rset.Subtract(h.gone, out.Gone) // fails on hosts alone: there are none
		if !excess.IsEmpty() {
			return Freed{}, fmt.Errorf("%w: job %s: %s", ErrNotHeld, id, plain(excess))
		}
	}
	var returned, contested collector
	release := func(pieces []piece) {
		for _, pc := range pieces {
			p.release(id, pc, func(first, last uint32, back *children.Set) {
				returned.add(first, last, back)
				if back != pc.what {
					contested.add(first, last, pc.what.Subtract(back))
				}
			})
		}
	}
	release(named)
	switch {
	case final:
		if left := p.pieces(h); len(left) > 0 || !gone.IsEmpty() {
			out.Rest = must(rset.Append(p.held(h), gone))
			out.Gone = must(rset.Append(out.Gone, gone))
			release(left)
		}
		p.holders.Delete(holderItem{id: id})
	case !fragment.IsEmpty():
		p.setGone(h, gone)
	}
	out.Contested = contested.r(rset.Config{})
	if fragment == nil || !out.Gone.IsEmpty() || !out.Contested.IsEmpty() || !out.Rest.IsEmpty() {
		out.Returned = returned.r(rset.Config{})
	}
	return out, nil
}

// release takes from a job what it holds, and reports the part that no job
// holds any more.
func (p *Pool) release(id jobid.ID, pc piece, tell func(first, last uint32, back *children.Set)) {
	p.edit(pc.first, pc.last, func(first, last uint32, s *state) { tell(first, last, s.drop(id, pc.what)) })
}
