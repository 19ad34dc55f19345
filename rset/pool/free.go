package pool

import (
	"fmt"
	"math"

	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/internal/children"
)

// Freed is what [Pool.Free] did. Returned, Gone and Contested are disjoint and together
// what the job held of the fragment and of Rest. None is nil. They have no hosts and
// times, but Returned may be the fragment itself.
type Freed struct {
	Returned  *rset.R // no job holds it; it can be allocated where it is up
	Gone      *rset.R // it is not in the inventory
	Contested *rset.R // another job still holds it: see Adopt
	Rest      *rset.R // what final released beside the fragment
}

// Free takes a fragment of its resources from a job. The error is ErrNotHeld if the job
// does not hold all of it, or ErrNotFound if it has no resources; then nothing has
// changed. The fragment may be nil or empty, and may name resources that have left the
// inventory.
//
// The job stays a holder, perhaps of nothing, until final. Then all that it still holds
// is released too and told as Rest: fragments that do not add up are an error of the
// manager and no reason to keep resources from other jobs.
//
// It takes logarithmic time for each range of the fragment.
func (p *Pool) Free(id jobid.ID, fragment *rset.R, final bool) (Freed, error) {
	if _, ok := p.holder(id); !ok {
		return Freed{}, jobError(id, ErrNotFound)
	}
	var pl plan
	for e := range fragment.Entries() {
		k := children.New(e.Children)
		for first, last := range e.Ranks.Ranges() {
			p.planFree(&pl, id, first, last, k)
		}
	}
	if !pl.excess.isEmpty() {
		return Freed{}, fmt.Errorf("%w: job %s: %s", ErrNotHeld, id, plain(pl.excess.r(rset.Config{})))
	}
	var r released
	for _, s := range pl.shares {
		p.release(&r, s)
	}
	freed := r.freed(fragment)
	if !final {
		if !fragment.IsEmpty() {
			p.cut(id)
		}
		return freed, nil
	}
	if left := p.sharesList(id); len(left) > 0 {
		// It has nothing in common with what the fragment named.
		all := p.all(id)
		var rest released
		for _, s := range left {
			p.release(&rest, s)
		}
		more := rest.freed(nil)
		freed = Freed{
			Returned:  must(rset.Append(r.freed(nil).Returned, more.Returned)),
			Gone:      must(rset.Append(freed.Gone, more.Gone)),
			Contested: must(rset.Append(freed.Contested, more.Contested)),
			Rest:      all,
		}
	}
	p.holders.Delete(holderItem{id: id})
	return freed, nil
}

// A plan is what is to be released, and what cannot be because it is not held.
type plan struct {
	shares []share
	excess collector
}

// planFree adds children of a range of ranks to a plan.
func (p *Pool) planFree(pl *plan, id jobid.ID, first, last uint32, k *children.Set) {
	at := first
	// beyond takes what is not held in the inventory: it may be gone.
	beyond := func(first, last uint32, k *children.Set) {
		if k == nil || first > last {
			return
		}
		at := first
		p.sharesOf(id, true, first, last, func(s share) {
			from, to := max(s.first, first), min(s.last, last)
			if at < from {
				pl.excess.add(at, from-1, k)
			}
			at = to + 1
			if have := k.Intersect(s.what); have != nil {
				pl.shares = append(pl.shares, share{id, true, from, to, have})
			}
			pl.excess.add(from, to, k.Subtract(s.what))
		})
		if at <= last {
			pl.excess.add(at, last, k)
		}
	}
	p.sharesOf(id, false, first, last, func(s share) {
		from, to := max(s.first, first), min(s.last, last)
		if at < from {
			beyond(at, from-1, k)
		}
		at = to + 1
		if have := k.Intersect(s.what); have != nil {
			pl.shares = append(pl.shares, share{id, false, from, to, have})
		}
		beyond(from, to, k.Subtract(s.what))
	})
	if at <= last {
		beyond(at, last, k)
	}
}

// released gathers what became of what was released.
type released struct {
	returned, gone, contested collector
}

// freed returns what was gathered, of which nothing is a rest: the fragment
// itself where all of it came back.
func (r *released) freed(fragment *rset.R) Freed {
	none := rset.Config{}
	f := Freed{Returned: fragment, Gone: r.gone.r(none), Contested: r.contested.r(none), Rest: new(rset.R)}
	if fragment == nil || !f.Gone.IsEmpty() || !f.Contested.IsEmpty() {
		f.Returned = r.returned.r(none)
	}
	return f
}

// release takes from a job what it holds.
func (p *Pool) release(r *released, s share) {
	p.reshare(s.job, s.gone, s.first, s.last, func(k *children.Set) *children.Set { return k.Subtract(s.what) })
	if s.gone {
		r.gone.add(s.first, s.last, s.what)
		return
	}
	p.edit(s.first, s.last, func(first, last uint32, st *state) {
		back := st.drop(s.job, s.what)
		r.returned.add(first, last, back)
		if back != s.what {
			r.contested.add(first, last, s.what.Subtract(back))
		}
	})
}

// sharesList returns all that a job holds, what is gone last.
func (p *Pool) sharesList(id jobid.ID) []share {
	var out []share
	for _, gone := range []bool{false, true} {
		p.sharesOf(id, gone, 0, math.MaxUint32, func(s share) { out = append(out, s) })
	}
	return out
}
