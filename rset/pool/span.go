package pool

import (
	"cmp"
	"slices"

	"github.com/google/btree"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/children"
)

// degree is the degree of the trees.
const degree = 32

// A span is a range of ranks in one state. It is never changed, only replaced: clones share it.
type span struct {
	first, last uint32
	state
}

// A state is all there is to know of a node.
type state struct {
	all    *children.Set // what it has
	free   *children.Set // what of it no job holds
	owners []owner       // what each job holds, by job; never changed
	claims []claim       // what each planned job is to have, by job; never changed
	up     bool          // may be allocated
	clash  bool          // two owners hold the same
}

// An owner is a job that holds children of a node.
type owner struct {
	job  jobid.ID
	end  eventlog.Timestamp // when it expires; never if it does not
	what *children.Set
}

func (s *state) idle() bool { return len(s.owners) == 0 }

// equal reports whether two nodes are in the same state. clash follows from the rest.
func (s *state) equal(t *state) bool {
	return s.up == t.up && s.all.Equal(t.all) && s.free.Equal(t.free) && slices.Equal(s.claims, t.claims) &&
		slices.EqualFunc(s.owners, t.owners, func(a, b owner) bool {
			return a.job == b.job && a.end == b.end && a.what.Equal(b.what)
		})
}

// find returns where a job is among the owners, or would be, and whether it is.
func (s *state) find(job jobid.ID) (int, bool) {
	return slices.BinarySearchFunc(s.owners, job, func(o owner, job jobid.ID) int { return cmp.Compare(o.job, job) })
}

// heldBy returns what a job holds of each node of a span; of no span it is nothing.
func (sp *span) heldBy(job jobid.ID) *children.Set {
	if sp != nil {
		if i, ok := sp.find(job); ok {
			return sp.owners[i].what
		}
	}
	return nil
}

// take makes a job, which is none yet, an owner of children of the node. rest stays free. An
// idle node keeps o.
func (s *state) take(o *[1]owner, rest *children.Set) {
	if s.idle() {
		s.owners = o[:]
	} else {
		i, _ := s.find(o[0].job)
		s.owners = slices.Concat(s.owners[:i], o[:], s.owners[i:])
	}
	// No other job holds what was free, so only the rest can clash.
	s.clash = s.clash || !s.free.Contains(o[0].what) && s.overlaps()
	s.free = rest
}

// drop takes from a job some of the children that it holds of the node.
func (s *state) drop(job jobid.ID, k *children.Set) {
	i, _ := s.find(job)
	rest := s.owners[i].what.Subtract(k)
	switch {
	case rest == nil && len(s.owners) == 1:
		s.owners = nil
	case rest == nil:
		s.owners = slices.Concat(s.owners[:i], s.owners[i+1:])
	default:
		s.owners = slices.Clone(s.owners)
		s.owners[i].what = rest
	}
	if len(s.owners) == 0 {
		s.free, s.clash = s.all, false
		return
	}
	if s.clash {
		dropped := k
		for j := 0; j < len(s.owners) && k != nil; j++ {
			if j != i || rest == nil {
				k = k.Subtract(s.owners[j].what)
			}
		}
		s.clash = k == dropped || s.overlaps() // what no other job holds was no clash
	}
	s.free = s.free.Union(k)
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

// A jobItem finds a holder or a plan by its job.
type jobItem[T any] struct {
	id jobid.ID
	of T
}

func newJobTree[T any]() *btree.BTreeG[jobItem[T]] {
	return btree.NewG(degree, func(a, b jobItem[T]) bool { return a.id < b.id })
}

// A fitItem finds a span by what it can give, in the order of the Fit.
type fitItem struct {
	free  *children.Set
	sp    *span
	cores int // that are free
	first uint32
	idle  bool
}

func (a fitItem) compareClass(b fitItem) int {
	switch {
	case a.idle != b.idle && b.idle:
		return -1
	case a.idle != b.idle:
		return 1
	case a.cores != b.cores:
		return cmp.Compare(a.cores, b.cores)
	}
	return compareCounts(a.free, b.free)
}

func newFitTree(fit Fit) *btree.BTreeG[fitItem] {
	return btree.NewG(degree, func(a, b fitItem) bool {
		d := a.compareClass(b)
		if fit == FitWorst && a.idle != b.idle {
			d = cmp.Or(compareCounts(a.free, b.free), d)
		}
		switch {
		case d == 0:
			return a.first < b.first
		case fit == FitWorst:
			return d > 0
		}
		return d < 0
	})
}

// touching appends the spans that have ranks of a range, in order.
func (p *Pool) touching(dst []*span, first, last uint32) []*span {
	n := len(dst)
	p.spans.DescendLessOrEqual(rankItem{first: last}, func(it rankItem) bool {
		if it.sp.last < first {
			return false
		}
		dst = append(dst, it.sp)
		return it.first > first
	})
	slices.Reverse(dst[n:])
	return dst
}

// within calls f, in order, with the spans of a range, cut to it, and nil for ranks between.
func (p *Pool) within(first, last uint32, f func(first, last uint32, sp *span)) {
	var room [4]*span
	for _, sp := range p.touching(room[:0], first, last) {
		if sp.first > first {
			f(first, sp.first-1, nil)
			first = sp.first
		}
		f(first, min(last, sp.last), sp)
		first = sp.last + 1
	}
	if first <= last {
		f(first, last, nil)
	}
}

// edit changes the state of a range of ranks. It calls the function, in order, with the parts of
// the range that are in the inventory and in one state. Ranks without children after that leave
// the pool. Neighbours in one state become one span: the spans follow from the states alone.
func (p *Pool) edit(first, last uint32, change func(first, last uint32, s *state)) {
	var room [2][4]*span
	old, made := p.touching(room[0][:0], max(first, 1)-1, last+1), room[1][:0]
	for _, sp := range old {
		if sp.last < first || sp.first > last {
			made = join(made, sp, first)
			continue
		}
		if sp.first < first {
			made = join(made, &span{sp.first, first - 1, sp.state}, first)
		}
		mid := &span{max(first, sp.first), min(last, sp.last), sp.state}
		if change(mid.first, mid.last, &mid.state); mid.all != nil {
			made = join(made, mid, first)
		}
		if sp.last > last {
			made = join(made, &span{last + 1, sp.last, sp.state}, first)
		}
	}
	p.replace(old, made)
}

// join appends a span, or joins it to the span before if their states are equal. A span
// that ends at the first edited rank or behind it is new, so it may be changed.
func join(made []*span, sp *span, edited uint32) []*span {
	k := len(made) - 1
	if k < 0 || made[k].last+1 != sp.first || !made[k].state.equal(&sp.state) {
		return append(made, sp)
	}
	if made[k].last >= edited {
		made[k].last = sp.last
	} else {
		sp.first = made[k].first
		made[k] = sp
	}
	return made
}

func (p *Pool) replace(old, made []*span) {
	// The first and the last may be neighbours that did not change.
	if len(old) > 0 && len(made) > 0 && old[0] == made[0] {
		old, made = old[1:], made[1:]
	}
	if i, j := len(old)-1, len(made)-1; i >= 0 && j >= 0 && old[i] == made[j] {
		old, made = old[:i], made[:j]
	}
	for i, sp := range old {
		if i >= len(made) || made[i].first != sp.first { // else insert overwrites it
			p.spans.Delete(rankItem{first: sp.first})
		}
		if sp.fits() {
			p.fit.Delete(sp.item())
		}
		p.tally.add(sp, -1)
	}
	for _, sp := range made {
		p.insert(sp)
	}
}

func (p *Pool) insert(sp *span) {
	p.spans.ReplaceOrInsert(rankItem{sp.first, sp})
	if sp.fits() {
		p.fit.ReplaceOrInsert(sp.item())
	}
	p.tally.add(sp, 1)
}

// A tally is what the spans are together.
type tally struct {
	cores, idle int64 // that are up and free
	spare       int64 // ranks that are up and idle, and on which no job is planned
	down        int64 // ranks
	clashes     int64 // spans with resources that two jobs hold
	parts       int64 // spans with nodes of which jobs have a part
}

// add adds a span, or takes it away if sign is -1.
func (t *tally) add(sp *span, sign int64) {
	ranks := sign * (int64(sp.last-sp.first) + 1)
	if !sp.up {
		t.down += ranks
	} else if t.cores += ranks * int64(sp.free.Len("core")); sp.idle() {
		t.idle += ranks
		if len(sp.claims) == 0 {
			t.spare += ranks
		}
	}
	if sp.clash {
		t.clashes += sign
	}
	if len(sp.owners) > 1 || len(sp.owners) == 1 && sp.free != nil {
		t.parts += sign
	}
}

// fits reports whether something of a span can be allocated.
func (sp *span) fits() bool { return sp.up && sp.free != nil }

func (sp *span) item() fitItem {
	return fitItem{free: sp.free, sp: sp, cores: sp.free.Len("core"), first: sp.first, idle: sp.idle()}
}

// pieces returns what a job holds in the inventory, in order.
func (p *Pool) pieces(h *holder) (list parts) {
	for pt := range h.r.Parts() {
		p.within(pt.First, pt.Last, func(first, last uint32, sp *span) {
			list = list.add(first, last, sp.heldBy(h.id))
		})
	}
	return list
}

func (p *Pool) held(h *holder) *rset.R { return p.pieces(h).r() }
