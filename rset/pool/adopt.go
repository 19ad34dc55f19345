package pool

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/internal/children"
)

// Adopt tells the pool of a job that has resources already, as a hello of RFC 27 does:
// its allocation, and the ranks of it that have been freed; nil means none. The job
// holds the rest. Do not adopt a job whose resources are not from the scheduler.
//
// Adopt again with the same job, allocation and freed ranks changes nothing and returns
// the same. The expiration may be the one of SetExpiration.
//
// Some errors, alone or joined, are reports. The job then holds its resources all the
// same, since its processes may be running there:
//
//   - ErrConflict: other jobs hold some of them too. What several jobs hold is free when
//     the last of them has freed it. Holder.Conflicts lists it until then.
//   - ErrMissing: some are not in the inventory. They are held as gone: Free takes and
//     reports them. If their rank comes into the inventory, they are held there.
//   - ErrInvalid: r does not have all freed ranks. The others are ignored.
//   - rset.ErrHosts: ranks are on other hosts than in the inventory.
//
// After any other error nothing has changed: ErrExists if the job has other resources,
// ErrInvalid if r has none, ErrLimit if too many jobs have some.
func (p *Pool) Adopt(id jobid.ID, r *rset.R, freed *idset.Set) error {
	if r.IsEmpty() {
		return invalid("allocation: %w", errEmpty)
	}
	ranks := r.Ranks()
	var unknown error
	if !ranks.ContainsAll(freed) {
		unknown = ranksError("freed", idset.Difference(freed, ranks), notOfThis)
	}
	ranks.SubtractWith(freed)
	held := must(r.Restrict(ranks))
	h, again := p.holder(id)
	if again && !(h.isOf(r) && rset.SameResources(held, p.all(id))) {
		return jobError(id, ErrExists)
	}
	if !again {
		if err := p.room(); err != nil {
			return err
		}
		p.setHolder(&holder{
			id: id, r: r, since: r.Start(), expiration: r.Expiration(), cut: held.Len() < r.Len(),
		})
		for e := range held.Entries() {
			k := children.New(e.Children)
			for first, last := range e.Ranks.Ranges() {
				p.reshare(id, true, first, last, func(*children.Set) *children.Set { return k })
				p.hold(id, first, last, k)
			}
		}
	}
	missing := p.held(id, true)
	var reports []error
	if conflicts := p.conflicts(id); len(conflicts) > 0 {
		first, more := conflicts[0], ""
		if n := len(conflicts); n > 1 {
			more = fmt.Sprintf(", %d conflicts in all", n)
		}
		reports = append(reports, fmt.Errorf("%w: jobs %s and %s both hold %s%s", ErrConflict, id, first.Other, plain(first.Overlap), more))
	}
	if !missing.IsEmpty() {
		if !again {
			p.cut(id)
		}
		reports = append(reports, fmt.Errorf("%w: job %s: %s", ErrMissing, id, plain(missing)))
	}
	for _, err := range []error{unknown, p.checkHosts(id, held)} {
		if err != nil {
			reports = append(reports, err)
		}
	}
	if len(reports) == 1 {
		return reports[0]
	}
	return errors.Join(reports...)
}

// checkHosts returns an error if resources are on other hosts than in the
// inventory.
func (p *Pool) checkHosts(id jobid.ID, r *rset.R) error {
	both := must(p.inventory.Restrict(idset.Intersect(r.Ranks(), p.ranks)))
	if _, err := rset.Intersect(both, r); err != nil {
		return fmt.Errorf("pool: job %s: %w", id, err)
	}
	return nil
}

// hold makes what is gone of a job, as far as the inventory has it, held.
func (p *Pool) hold(id jobid.ID, first, last uint32, k *children.Set) {
	p.edit(first, last, func(first, last uint32, s *state) {
		have := k.Intersect(s.all)
		if have == nil {
			return
		}
		s.take(id, have)
		p.reshare(id, false, first, last, func(k *children.Set) *children.Set { return k.Union(have) })
		p.reshare(id, true, first, last, func(k *children.Set) *children.Set { return k.Subtract(have) })
	})
}

// conflicts returns what a job and others hold both, by the other job. It costs
// by the ranges of the job, if there is any conflict in the pool.
func (p *Pool) conflicts(id jobid.ID) []Conflict {
	if p.clashes.Len() == 0 {
		return nil
	}
	both := make(map[jobid.ID]*collector)
	add := func(it rankItem) bool {
		sp := it.sp
		i, _ := sp.find(id)
		for j, o := range sp.owners {
			if common := o.what.Intersect(sp.owners[i].what); j != i && common != nil {
				if both[o.job] == nil {
					both[o.job] = new(collector)
				}
				both[o.job].add(sp.first, sp.last, common)
			}
		}
		return true
	}
	// What a job holds is the same all over a span, so that none goes beyond
	// a share.
	p.sharesOf(id, false, 0, math.MaxUint32, func(s share) {
		p.clashes.AscendRange(rankItem{first: s.first}, rankItem{first: s.last + 1}, add)
	})
	var out []Conflict
	for _, other := range slices.Sorted(maps.Keys(both)) {
		out = append(out, Conflict{Other: other, Overlap: both[other].r(rset.Config{})})
	}
	return out
}
