package pool

import (
	"errors"
	"fmt"
	"math"

	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/internal/children"
)

// Check returns an error if the pool breaks I1 or a rule of its own: what is free and
// what is held are disjoint and together the inventory; ranks and jobs agree on who holds
// what; and every index has what it should. Only a bug of this package can break them.
func (p *Pool) Check() error {
	for _, check := range []func() error{p.checkSpans, p.checkIndexes, p.checkShares, p.checkHolders} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// checkSpans checks every rank by itself.
func (p *Pool) checkSpans() error {
	var all collector
	var err error
	var before *span
	p.each(func(sp *span) {
		all.add(sp.first, sp.last, sp.all)
		err = errors.Join(err, sp.check(before))
		before = sp
	})
	if err != nil {
		return err
	}
	have := all.r(rset.Config{})
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

// checkIndexes checks that each index has the spans that it should.
func (p *Pool) checkIndexes() error {
	fit, clashes := 0, 0
	var err error
	p.each(func(sp *span) {
		it, ok := p.fit.Get(sp.item())
		if ok != sp.fits() || ok && it.sp != sp {
			err = fmt.Errorf("pool: ranks %d-%d are in the index of what can be allocated, or not, wrongly", sp.first, sp.last)
		}
		clash, found := p.clashes.Get(rankItem{first: sp.first})
		if found != sp.clash || found && clash.sp != sp {
			err = fmt.Errorf("pool: ranks %d-%d are in the index of conflicts, or not, wrongly", sp.first, sp.last)
		}
		if ok {
			fit++
		}
		if found {
			clashes++
		}
	})
	if err == nil && (fit != p.fit.Len() || clashes != p.clashes.Len()) {
		err = errors.New("pool: an index has ranks that are not there")
	}
	var whole collector
	p.whole.Ascend(func(it fitItem) bool {
		if it.sp.free == it.sp.all && it.sp.idle() && it.sp.up {
			whole.add(it.sp.first, it.sp.last, it.sp.all)
		}
		return true
	})
	if err == nil && !rset.SameResources(whole.r(rset.Config{}), p.inventory) {
		err = errors.New("pool: what could be met is not looked for in the inventory")
	}
	return err
}

// checkShares checks that jobs and ranks know the same of each other.
func (p *Pool) checkShares() error {
	var err error
	fail := func(first, last uint32, job jobid.ID) {
		err = errors.Join(err, fmt.Errorf("pool: ranks %d-%d and job %s do not agree on what it holds", first, last, job))
	}
	var before share
	p.shares.Ascend(func(s share) bool {
		same := before.what != nil && before.job == s.job && before.gone == s.gone
		if s.what == nil || s.first > s.last || same && (before.last >= s.first || before.last+1 == s.first && before.what.Equal(s.what)) {
			fail(s.first, s.last, s.job)
		}
		before = s
		if _, ok := p.holder(s.job); !ok {
			fail(s.first, s.last, s.job)
		}
		p.within(s.first, s.last, func(first, last uint32, sp *span) {
			switch {
			case s.gone:
				if sp != nil && sp.all.Intersects(s.what) {
					fail(first, last, s.job)
				}
			case sp == nil:
				fail(first, last, s.job)
			default:
				if i, ok := sp.find(s.job); !ok || !sp.owners[i].what.Equal(s.what) {
					fail(first, last, s.job)
				}
			}
		})
		return err == nil
	})
	p.each(func(sp *span) {
		for _, o := range sp.owners {
			ranks := uint32(0)
			p.sharesOf(o.job, false, sp.first, sp.last, func(s share) {
				if s.what.Equal(o.what) {
					ranks += min(s.last, sp.last) - max(s.first, sp.first) + 1
				}
			})
			if ranks != sp.last-sp.first+1 {
				fail(sp.first, sp.last, o.job)
			}
		}
	})
	return err
}

// checkHolders checks that no job holds what it was not given.
func (p *Pool) checkHolders() error {
	var err error
	p.holders.Ascend(func(it holderItem) bool {
		h := it.h
		_, excess, failed := rset.Subtract(h.r, p.all(h.id))
		switch {
		case it.id != h.id || failed != nil || !excess.IsEmpty():
			err = fmt.Errorf("pool: job %s holds more than it has", it.id)
		case !h.cut && !rset.SameResources(h.r, p.held(h.id, false)):
			err = fmt.Errorf("pool: job %s holds less than all, which is not noted", it.id)
		}
		return err == nil
	})
	return err
}

// held returns what a job holds in the inventory, or what is gone.
func (p *Pool) held(id jobid.ID, gone bool) *rset.R {
	var c collector
	p.sharesOf(id, gone, 0, math.MaxUint32, func(s share) { c.add(s.first, s.last, s.what) })
	return c.r(rset.Config{})
}

// all returns what a job holds, in the inventory or gone.
func (p *Pool) all(id jobid.ID) *rset.R {
	return must(rset.Append(p.held(id, false), p.held(id, true)))
}
