package pool

import (
	"math"

	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/internal/children"
)

// Freed is what a Free did. Returned, Gone and Contested have nothing in common
// and are together what the job held of the fragment, and of Rest. None is nil;
// they have no hosts and times, but that Returned may be the fragment itself.
type Freed struct {
	Returned  *rset.R // is nobody's any more, and may be allocated where it is up
	Gone      *rset.R // is not in the inventory, and does not come back
	Contested *rset.R // is still held by another job: see Adopt
	Rest      *rset.R // what final released that the fragment did not name
}

// Free takes a fragment of its resources from a job. All of it must be held by
// that job: the error is a *NotHeldError that names what is not, or a *JobError
// (ErrJob), and then nothing has changed. What the job holds that is not in the
// inventory any more may be named.
//
// The job stays a holder, perhaps of nothing, until final. Then all that it
// still holds is released too and told as Rest: fragments that do not add up to
// the allocation are the manager's fault, and no reason to keep resources from
// everybody. The fragment may be nil or empty.
//
// It costs by ranges of the fragment, and for each by the logarithm of what the
// pool has.
func (p *Pool) Free(id jobid.ID, fragment *rset.R, final bool) (Freed, error) {
	if _, ok := p.holder(id); !ok {
		return Freed{}, jobError(id, ErrJob)
	}
	var pl plan
	for e := range fragment.Entries() {
		k := children.FromMap(e.Children)
		for first, last := range e.Ranks.Ranges() {
			p.planFree(&pl, id, first, last, k)
		}
	}
	if !pl.excess.isEmpty() {
		return Freed{}, &NotHeldError{Job: id, Excess: pl.excess.r(rset.Config{})}
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

// A plan is what is to be released, and what can not be because it is not held.
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
