package pool

import (
	"cmp"
	"slices"

	"github.com/google/btree"

	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset/internal/children"
)

// degree is that of the trees.
const degree = 32

// A span is a range of consecutive ranks in the same state. Spans are never changed,
// only replaced, so copies of a pool share them.
type span struct {
	first, last uint32
	state
}

// A state is all there is to know of a node.
type state struct {
	all    *children.Set // what it has
	free   *children.Set // what of it no job holds
	owners []owner       // what each job holds, by job; never changed
	up     bool          // may be allocated
	clash  bool          // two owners hold the same
}

// An owner is a job that holds children of a node.
type owner struct {
	job  jobid.ID
	what *children.Set
}

func (s *state) idle() bool { return len(s.owners) == 0 }

// equal reports whether two nodes are in the same state. That two hold the same
// follows from the rest.
func (s *state) equal(t *state) bool {
	return s.up == t.up && s.all.Equal(t.all) && s.free.Equal(t.free) &&
		slices.EqualFunc(s.owners, t.owners, func(a, b owner) bool { return a.job == b.job && a.what.Equal(b.what) })
}

// find returns where a job is among the owners, or would be, and whether it is.
func (s *state) find(job jobid.ID) (int, bool) {
	return slices.BinarySearchFunc(s.owners, job, func(o owner, job jobid.ID) int { return cmp.Compare(o.job, job) })
}

// take makes a job an owner of children of the node.
func (s *state) take(job jobid.ID, k *children.Set) {
	owners := make([]owner, 0, len(s.owners)+1)
	i, found := s.find(job)
	owners = append(owners, s.owners[:i]...)
	if found {
		owners = append(owners, owner{job, s.owners[i].what.Union(k)})
		owners = append(owners, s.owners[i+1:]...)
	} else {
		owners = append(owners, owner{job, k})
		owners = append(owners, s.owners[i:]...)
	}
	s.owners = owners
	// What was free belongs to no other job.
	s.clash = s.clash || !s.free.Contains(k) && s.overlaps()
	s.free = s.free.Subtract(k)
}

// drop takes children of the node, which it holds, from a job, and returns
// those of them that no job holds any more.
func (s *state) drop(job jobid.ID, k *children.Set) *children.Set {
	i, _ := s.find(job)
	rest := s.owners[i].what.Subtract(k)
	if rest == nil {
		s.owners = slices.Delete(slices.Clone(s.owners), i, i+1)
	} else {
		s.owners = slices.Clone(s.owners)
		s.owners[i].what = rest
	}
	if len(s.owners) == 0 {
		s.free, s.clash = s.all, false
		return k
	}
	if s.clash {
		for j, o := range s.owners {
			if j != i || rest == nil {
				k = k.Subtract(o.what)
			}
		}
		s.clash = s.overlaps()
	}
	s.free = s.free.Union(k)
	return k
}

// overlaps reports whether two owners hold the same.
func (s *state) overlaps() bool {
	var sum *children.Set
	for _, o := range s.owners {
		if sum.Intersects(o.what) {
			return true
		}
		sum = sum.Union(o.what)
	}
	return false
}

// A rankItem finds a span by its first rank.
type rankItem struct {
	first uint32
	sp    *span
}

func newRankTree() *btree.BTreeG[rankItem] {
	return btree.NewG(degree, func(a, b rankItem) bool { return a.first < b.first })
}

// A fitItem finds a span by what it can give: nodes that are in use before
// those that are idle, those with less before those with more, and lower ranks
// before higher ones.
type fitItem struct {
	free  *children.Set
	first uint32
	idle  bool
	sp    *span
}

func (a fitItem) compareClass(b fitItem) int {
	if a.idle != b.idle {
		if b.idle {
			return -1
		}
		return 1
	}
	return compareCounts(a.free, b.free)
}

func newFitTree() *btree.BTreeG[fitItem] {
	return btree.NewG(degree, func(a, b fitItem) bool {
		if d := a.compareClass(b); d != 0 {
			return d < 0
		}
		return a.first < b.first
	})
}

// at returns the span that has a rank, nil if there is none.
func (p *Pool) at(rank uint32) *span {
	var found *span
	p.spans.DescendLessOrEqual(rankItem{first: rank}, func(it rankItem) bool {
		if it.sp.last >= rank {
			found = it.sp
		}
		return false
	})
	return found
}

// within calls f, in order, with the spans that have ranks of a range, cut to
// it, and false for what is between them.
func (p *Pool) within(first, last uint32, f func(first, last uint32, sp *span)) {
	at, start := first, first
	if sp := p.at(first); sp != nil {
		start = sp.first
	}
	p.spans.AscendGreaterOrEqual(rankItem{first: start}, func(it rankItem) bool {
		sp := it.sp
		if sp.first > last {
			return false
		}
		if sp.first > at {
			f(at, sp.first-1, nil)
			at = sp.first
		}
		f(at, min(last, sp.last), sp)
		at = sp.last + 1
		return at <= last
	})
	if at <= last {
		f(at, last, nil)
	}
}

// edit changes the state of a range of ranks. The function is called in order
// with parts of the range that are in the same state; what is not in the
// inventory is left out, and what the function leaves nothing of. Neighbours that
// come to be in the same state become one span, so that the spans follow from
// the states alone.
func (p *Pool) edit(first, last uint32, change func(first, last uint32, s *state)) {
	start := first
	if first > 0 {
		if sp := p.at(first - 1); sp != nil {
			start = sp.first
		}
	}
	var old, made []*span
	p.spans.AscendGreaterOrEqual(rankItem{first: start}, func(it rankItem) bool {
		if it.first > last+1 {
			return false
		}
		old = append(old, it.sp)
		return true
	})
	for _, sp := range old {
		if sp.last < first || sp.first > last {
			made = join(made, sp)
			continue
		}
		if sp.first < first {
			made = join(made, &span{sp.first, first - 1, sp.state})
		}
		mid := &span{max(first, sp.first), min(last, sp.last), sp.state}
		if change(mid.first, mid.last, &mid.state); mid.all != nil {
			made = join(made, mid)
		}
		if sp.last > last {
			made = join(made, &span{last + 1, sp.last, sp.state})
		}
	}
	p.replace(old, made)
}

// join appends a span, or makes one of it and the span before.
func join(made []*span, sp *span) []*span {
	if k := len(made) - 1; k >= 0 && made[k].last+1 == sp.first && made[k].state.equal(&sp.state) {
		made[k] = &span{made[k].first, sp.last, made[k].state}
		return made
	}
	return append(made, sp)
}

// replace puts spans in the place of others.
func (p *Pool) replace(old, made []*span) {
	// The first and the last may be neighbours that stayed.
	if len(old) > 0 && len(made) > 0 && old[0] == made[0] {
		old, made = old[1:], made[1:]
	}
	if i, j := len(old)-1, len(made)-1; i >= 0 && j >= 0 && old[i] == made[j] {
		old, made = old[:i], made[:j]
	}
	for _, sp := range old {
		p.spans.Delete(rankItem{first: sp.first})
		if sp.fits() {
			p.fit.Delete(sp.item())
		}
		if sp.clash {
			p.clashes.Delete(rankItem{first: sp.first})
		}
	}
	for _, sp := range made {
		p.spans.ReplaceOrInsert(rankItem{sp.first, sp})
		if sp.fits() {
			p.fit.ReplaceOrInsert(sp.item())
		}
		if sp.clash {
			p.clashes.ReplaceOrInsert(rankItem{sp.first, sp})
		}
	}
}

// fits reports whether something of a span can be allocated.
func (sp *span) fits() bool { return sp.up && sp.free != nil }

func (sp *span) item() fitItem { return fitItem{sp.free, sp.first, sp.idle(), sp} }

// A share is what a job holds of a range of ranks.
type share struct {
	job         jobid.ID
	gone        bool // not in the inventory
	first, last uint32
	what        *children.Set
}

func newShareTree() *btree.BTreeG[share] {
	return btree.NewG(degree, func(a, b share) bool {
		if a.job != b.job {
			return a.job < b.job
		}
		if a.gone != b.gone {
			return b.gone
		}
		return a.first < b.first
	})
}

// sharesOf calls f, in order, with what a job holds of a range of ranks, in the
// inventory or gone.
func (p *Pool) sharesOf(job jobid.ID, gone bool, first, last uint32, f func(share)) {
	start := first
	p.shares.DescendLessOrEqual(share{job: job, gone: gone, first: first}, func(s share) bool {
		if s.job == job && s.gone == gone && s.last >= first {
			start = s.first
		}
		return false
	})
	p.shares.AscendGreaterOrEqual(share{job: job, gone: gone, first: start}, func(s share) bool {
		if s.job != job || s.gone != gone || s.first > last {
			return false
		}
		f(s)
		return true
	})
}

// reshare changes what a job holds of a range of ranks: the function is called
// in order with what it holds, nil for nothing, and returns what it is to be.
func (p *Pool) reshare(job jobid.ID, gone bool, first, last uint32, change func(k *children.Set) *children.Set) {
	var old, made []share
	start := first
	if first > 0 {
		start = first - 1 // so that a neighbour can be joined
	}
	p.sharesOf(job, gone, start, last+1, func(s share) { old = append(old, s) })
	put := func(first, last uint32, k *children.Set) {
		switch i := len(made) - 1; {
		case k == nil || first > last:
		case i >= 0 && made[i].last+1 == first && made[i].what.Equal(k):
			made[i].last = last
		default:
			made = append(made, share{job, gone, first, last, k})
		}
	}
	at := first
	for _, s := range old {
		if s.first < first {
			put(s.first, min(s.last, first-1), s.what)
		}
		if from, to := max(s.first, first), min(s.last, last); from <= to {
			if at < from {
				put(at, from-1, change(nil))
			}
			put(from, to, change(s.what))
			at = to + 1
		}
		if s.last > last {
			if at <= last {
				put(at, last, change(nil))
				at = last + 1
			}
			put(max(s.first, last+1), s.last, s.what)
		}
	}
	if at <= last {
		put(at, last, change(nil))
	}
	for _, s := range old {
		p.shares.Delete(s)
	}
	for _, s := range made {
		p.shares.ReplaceOrInsert(s)
	}
}
