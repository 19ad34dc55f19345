package pool

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/children"
)

// Check returns an error if the pool breaks I1 or a rule of its own: what is free and
// what jobs hold are disjoint and together the inventory; each job holds at most its
// allocation; and the indexes agree with the jobs. Only a bug in this package breaks a
// rule.
func (p *Pool) Check() error {
	for _, check := range []func() error{p.checkSpans, p.checkIndexes, p.checkHolders, p.checkPlans} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (p *Pool) checkSpans() error {
	var all parts
	var err error
	var before *span
	p.each(func(sp *span) {
		all = all.add(sp.first, sp.last, sp.all)
		err = errors.Join(err, sp.check(before))
		before = sp
	})
	if err != nil {
		return err
	}
	have := all.r()
	if !rset.SameResources(have, p.inventory) || !rset.SameResources(have, p.bare) || !have.Ranks().Equal(p.ranks) {
		return fmt.Errorf("pool: the ranks have %s, the inventory %s", plain(have), plain(p.inventory))
	}
	return nil
}

// check checks a span, and that it is not equal to its neighbour before.
func (sp *span) check(before *span) error {
	switch {
	case sp.first > sp.last || before != nil && before.last >= sp.first:
		return fmt.Errorf("pool: ranks %d-%d are out of order", sp.first, sp.last)
	case before != nil && before.last+1 == sp.first && before.state.equal(&sp.state):
		return fmt.Errorf("pool: ranks %d and %d are in one state, but not joined", before.last, sp.first)
	case sp.clash != sp.overlaps():
		return fmt.Errorf("pool: ranks %d-%d: whether two jobs hold the same is wrong", sp.first, sp.last)
	}
	var held *children.Set
	for i, o := range sp.owners {
		if o.what == nil || i > 0 && sp.owners[i-1].job >= o.job {
			return fmt.Errorf("pool: ranks %d-%d: job %s holds nothing, or is out of order", sp.first, sp.last, o.job)
		}
		held = held.Union(o.what)
	}
	if held.Intersects(sp.free) || !held.Union(sp.free).Equal(sp.all) {
		return fmt.Errorf("pool: ranks %d-%d: what is held and what is free is not what is there", sp.first, sp.last)
	}
	return nil
}

// checkIndexes checks that the indexes have the spans that they should.
func (p *Pool) checkIndexes() error {
	fit, clashes, cores := 0, 0, int64(0)
	var err error
	p.each(func(sp *span) {
		it, ok := p.fit.Get(sp.item())
		if ok != sp.fits() || ok && it.sp != sp {
			err = fmt.Errorf("pool: ranks %d-%d are in the index of what can be allocated, or not, wrongly", sp.first, sp.last)
		}
		if ok {
			fit++
			cores += sp.cores()
		}
		if sp.clash {
			clashes++
		}
	})
	if err == nil && (fit != p.fit.Len() || clashes != p.clashes || cores != p.cores) {
		err = errors.New("pool: an index has ranks that are not there")
	}
	for _, s := range p.shortages.known() {
		have := int64(0)
		one := search{p: p, q: &Request{per: []need{{"core", s.cores}}}}
		p.each(func(sp *span) {
			if sp.fits() && one.roomBeside(&sp.state, 0, s.to, fitting(sp.free, one.q.per)) > 0 {
				have += int64(sp.last-sp.first) + 1
			}
		})
		if have > s.nodes {
			err = fmt.Errorf("pool: %d nodes have %d cores, at most %d are known", have, s.cores, s.nodes)
		}
	}
	var whole parts
	p.whole.Ascend(func(it fitItem) bool {
		if it.sp.free == it.sp.all && it.sp.idle() && it.sp.up {
			whole = whole.add(it.sp.first, it.sp.last, it.sp.all)
		}
		return true
	})
	slices.SortFunc(whole, func(a, b children.Part) int { return cmp.Compare(a.First, b.First) })
	if err == nil && !rset.SameResources(whole.r(), p.inventory) {
		err = errors.New("pool: what could be met is not looked for in the inventory")
	}
	return err
}

// checkHolders checks that each job holds what it was given, or less, and that no other
// job holds anything.
func (p *Pool) checkHolders() error {
	owned := make(map[jobid.ID]parts)
	p.each(func(sp *span) {
		for _, o := range sp.owners {
			owned[o.job] = owned[o.job].add(sp.first, sp.last, o.what)
		}
	})
	var err error
	p.holders.Ascend(func(it jobItem[*holder]) bool {
		h, held := it.of, new(rset.R)
		if c := owned[it.id]; c != nil {
			held = c.r()
			delete(owned, it.id)
		}
		all, overlap := rset.UnionDisjoint(held, h.gone)
		_, excess, failed := rset.Subtract(h.r, all)
		there, _ := rset.Intersect(h.gone, p.inventory)
		switch {
		case it.id != h.id || overlap != nil || failed != nil || !excess.IsEmpty():
			err = fmt.Errorf("pool: job %s holds more than it has", it.id)
		case !there.IsEmpty():
			err = fmt.Errorf("pool: job %s: what is gone is in the inventory: %s", it.id, plain(there))
		case !h.cut && !rset.SameResources(h.r, held):
			err = fmt.Errorf("pool: job %s holds less than all, which is not noted", it.id)
		}
		return err == nil
	})
	for _, id := range slices.Sorted(maps.Keys(owned)) {
		err = errors.Join(err, fmt.Errorf("pool: job %s holds resources and is not known", id))
	}
	return err
}

// checkPlans checks that the indexes of starts and ends have the planned jobs and the
// holders, and that each claim belongs to a planned job.
func (p *Pool) checkPlans() error {
	var err error
	ends := 0
	end := func(e event) {
		if e.at == never {
			return
		}
		if got, ok := p.ends.Get(e); !ok || got != e {
			err = fmt.Errorf("pool: the end of job %s is not known", e.id)
		}
		ends++
	}
	p.holders.Ascend(func(it jobItem[*holder]) bool {
		end(event{at: it.of.end(), id: it.id, holder: it.of})
		return true
	})
	p.planned.Ascend(func(it jobItem[*plan]) bool {
		pl := it.of
		if got, ok := p.starts.Get(event{at: pl.start, id: pl.id}); !ok || got.plan != pl {
			err = fmt.Errorf("pool: the start of job %s is not known", pl.id)
		}
		end(event{at: pl.end, id: pl.id, plan: pl})
		return true
	})
	if err == nil && (p.ends.Len() != ends || p.starts.Len() != p.planned.Len()) {
		err = errors.New("pool: the start or end of a job is known that is not there")
	}
	p.each(func(sp *span) {
		for i, c := range sp.claims {
			if p.plan(c.plan.id) != c.plan || c.slots < 1 || i > 0 && sp.claims[i-1].plan.id >= c.plan.id {
				err = fmt.Errorf("pool: ranks %d-%d: job %s has a claim and no plan, or is out of order", sp.first, sp.last, c.plan.id)
			}
		}
		for _, o := range sp.owners {
			if h, ok := p.holder(o.job); ok && h.end() != o.end {
				err = fmt.Errorf("pool: ranks %d-%d: the end of job %s is another", sp.first, sp.last, o.job)
			}
		}
	})
	return err
}
