package pool

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"github.com/google/btree"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/rset/children"
)

// A grant is a range of ranks and what a job gets of each.
type grant struct {
	first, last uint32
	free        *children.Set // what is free there now
	room        int64         // how many slots fit on each rank
	slots       int64         // how many slots the job gets on each rank
}

func (g grant) len() int64 { return int64(g.last-g.first) + 1 }

// A choice says where a job goes or, if the room is not enough, how much there is.
type choice struct {
	grants []grant
	nodes  int64
	slots  int64 // on each node for a request by node, else in all
}

// A search looks for what a request asks for.
type search struct {
	p        *Pool
	q        *Request
	eligible *idset.Set // nil: every rank
	dry      bool       // only whether there is room: no grants
	fit      *btree.BTreeG[fitItem]
	later    []grant            // where to look first: ranks that gain room before from
	from, to eventlog.Timestamp // when there must be room; from may be present
	self     *plan              // the plan that does not count; nil: all count
	seen     int64              // how many nodes have room, planned for others or not
}

// present is before all times: even jobs that have expired hold what they have.
const present eventlog.Timestamp = -1

// choose returns where a job goes, and whether it can. The next search overwrites the grants.
func (s *search) choose() (c choice, ok bool) {
	c.grants = s.p.memory.grants[:0]
	if s.q.nodes.IsZero() {
		ok = s.bySlot(&c)
	} else {
		ok = s.byNode(&c)
	}
	s.p.memory.grants = c.grants
	return c, ok
}

func (s *search) byNode(c *choice) bool {
	most, _ := s.q.nodes.Floor(jobspec.MaxCount)
	most *= s.q.nodesPerSlot
	s.each(s.q.slots.Min(), func(g grant) bool {
		n := min(g.len(), most-c.nodes)
		if !s.dry {
			g.last, g.slots = g.first+uint32(n)-1, 1
			c.grants = append(c.grants, g)
		}
		c.nodes += n
		return c.nodes < most
	})
	n, ok := s.q.nodes.Floor(c.nodes / s.q.nodesPerSlot)
	if !ok || s.dry {
		return ok
	}
	n *= s.q.nodesPerSlot
	c.keep(n)
	c.nodes = n
	c.slots, _ = s.q.slots.Floor(jobspec.MaxCount)
	for _, g := range c.grants {
		c.slots = min(c.slots, g.room)
	}
	// Each node has room for the least.
	c.slots, _ = s.q.slots.Floor(c.slots)
	for i := range c.grants {
		c.grants[i].slots = c.slots
	}
	return true
}

func (s *search) bySlot(c *choice) bool {
	most, _ := s.q.slots.Floor(jobspec.MaxCount)
	s.each(most, func(g grant) bool {
		g.last, g.slots = g.first, most
		c.grants, c.slots = append(c.grants, g), most
		return false
	})
	// The slots that are left fill node by node: none, if one node has room for all.
	s.each(1, func(g grant) bool {
		for left := most - c.slots; left > 0 && g.first <= g.last; left = most - c.slots {
			some := g
			some.slots = min(g.room, left)
			n := min(left/some.slots, g.len())
			some.last = g.first + uint32(n) - 1
			if !s.dry {
				c.grants = append(c.grants, some)
			}
			c.slots += n * some.slots
			g.first += uint32(n)
		}
		return c.slots < most
	})
	n, ok := s.q.slots.Floor(c.slots)
	if !ok || s.dry {
		return ok
	}
	c.keep(n)
	c.slots = n
	return true
}

// keep cuts the grants to so many slots: the last node may keep fewer than it had.
func (c *choice) keep(slots int64) {
	all := c.grants
	c.grants = all[:0]
	for _, g := range all {
		nodes := min(slots/g.slots, g.len())
		if slots -= nodes * g.slots; nodes > 0 {
			whole := g
			whole.last = g.first + uint32(nodes) - 1
			c.grants = append(c.grants, whole)
		}
		if nodes == g.len() {
			continue
		}
		if slots > 0 {
			g.first += uint32(nodes)
			g.last, g.slots = g.first, slots
			c.grants = append(c.grants, g)
		}
		return
	}
}

// each calls f with ranges of eligible ranks, on each of which that many slots fit, in the
// order of choose, until f returns false.
func (s *search) each(slots int64, f func(g grant) bool) {
	for _, g := range s.later {
		if g.room >= slots && !f(g) {
			return
		}
	}
	if s.p.cfg.Fit == FitWorst {
		if first, ok := s.fit.Min(); ok {
			s.walk(first, slots, f)
		}
		return
	}
	// A node with fewer free cores than that has no room.
	least := fitItem{}
	for _, want := range s.q.per {
		if want.kind == "core" {
			least.cores = int(min(want.n*slots, math.MaxInt32))
		}
	}
	if !s.q.exclusive && !s.walk(least, slots, f) {
		return
	}
	least.idle = true
	s.walk(least, slots, f)
}

// walk is each, from an item on; with FitBest only among nodes in use, or idle, as the item is. It
// reports whether f always returned true. It skips nodes that have as much as one without room,
// and those between an ineligible and an eligible rank.
func (s *search) walk(from fitItem, slots int64, f func(g grant) bool) bool {
	for {
		seek, done := false, true
		at := from
		s.fit.AscendGreaterOrEqual(at, func(it fitItem) bool {
			if it.idle != at.idle && s.p.cfg.Fit != FitWorst {
				return false
			}
			room := fitting(it.free, s.q.per)
			if room < slots || s.q.exclusive && !it.idle {
				from, seek = after(it), true
				return false
			}
			s.seen += int64(it.sp.last-it.sp.first) + 1
			if s.from != present {
				room = min(room, s.roomAt(&it.sp.state, s.from))
			}
			room = s.roomBeside(&it.sp.state, s.from, s.to, room)
			if room < slots || s.isLater(it.sp) {
				return true
			}
			found := false
			done = s.among(it.sp, func(first, last uint32) bool {
				found = true
				return f(grant{first: first, last: last, free: it.free, room: room})
			})
			if !done {
				return false
			}
			if !found {
				from, seek = s.skip(it), true
			}
			return found
		})
		if !seek || !done {
			return done
		}
	}
}

// among calls f with the eligible ranks of a span, and reports whether f always returned true.
func (s *search) among(sp *span, f func(first, last uint32) bool) bool {
	switch {
	case s.eligible == nil:
		return f(sp.first, sp.last)
	case sp.first == sp.last:
		return !s.eligible.Contains(sp.first) || f(sp.first, sp.last)
	}
	for first, last := range idset.Intersect(idset.Range(sp.first, sp.last), s.eligible).Ranges() {
		if !f(first, last) {
			return false
		}
	}
	return true
}

// isLater reports whether the ranks of a span are among those to look at first.
func (s *search) isLater(sp *span) bool {
	i := sort.Search(len(s.later), func(i int) bool { return s.later[i].last >= sp.first })
	return i < len(s.later) && s.later[i].first <= sp.last
}

// skip is after for an item that has no eligible rank.
func (s *search) skip(it fitItem) fitItem {
	next, ok := s.eligible.Next(it.sp.last)
	if !ok {
		return after(it)
	}
	to := it
	to.first = next
	// A span that begins before the next eligible rank may have that rank. If
	// not, the search comes back here from there.
	s.fit.DescendLessOrEqual(to, func(before fitItem) bool {
		if before.first > it.first && before.compareClass(it) == 0 {
			to.first = before.first
		}
		return false
	})
	return to
}

// after returns where the items begin that come after those with as much as an item.
func after(it fitItem) fitItem {
	it.first = math.MaxUint32
	return it
}

// A shortage is what a search found: at most that many nodes have that many free cores each, and
// keep them until a time; 0: whatever is planned.
type shortage struct {
	cores, nodes int64
	to           eventlog.Timestamp
}

// implies reports whether one shortage follows from another.
func (s shortage) implies(t shortage) bool {
	return s.cores <= t.cores && s.nodes <= t.nodes && s.to <= t.to
}

const maxShortages = 16 // that a pool remembers

// ease notes that some nodes have more than before: each may be one that was missing.
func (p *Pool) ease(nodes int64) {
	for i := range p.shortages {
		p.shortages[i].nodes += nodes
	}
}

// lack adds a shortage. It replaces those that follow from it, or else the oldest.
func (p *Pool) lack(one shortage) {
	kept := slices.DeleteFunc(p.shortages, one.implies)
	if len(kept) == maxShortages {
		kept = slices.Delete(kept, 0, 1)
	}
	p.shortages = append(kept, one)
}

// lacks reports whether the pool knows that a search finds no room, as most of a backfill's.
func (s *search) lacks() bool {
	cores, nodes := s.q.leastCores(), s.q.leastNodes()
	if cores > s.p.cores {
		return true
	}
	for _, k := range s.p.shortages {
		if nodes > k.nodes && cores >= nodes*k.cores && (k.to == 0 || k.to <= s.to && s.self == nil) {
			return true
		}
	}
	return false
}

// short remembers how little room a search found. That stays true when jobs get resources or
// plans. What they release eases it by a node each, and an update ends it.
func (s *search) short(c choice) {
	nodes := s.q.leastNodes()
	if nodes == 0 || s.q.exclusive || s.eligible != nil || len(s.q.per) != 1 {
		return
	}
	cores := s.q.leastCores() / nodes
	if s.seen < nodes {
		s.p.lack(shortage{cores, s.seen, 0})
	} else {
		s.p.lack(shortage{cores, c.nodes, s.to})
	}
}

// compareCounts orders nodes by how much they have: cores, then gpus, then the
// other kinds in the order of their names. A missing kind counts as 0.
func compareCounts(a, b *children.Set) int {
	if a == b {
		return 0
	}
	if d := cmp.Or(cmp.Compare(a.Len("core"), b.Len("core")), cmp.Compare(a.Len("gpu"), b.Len("gpu"))); d != 0 {
		return d
	}
	x, y := otherKinds(a.Kinds()), otherKinds(b.Kinds())
	for ; len(x) > 0 && len(y) > 0; x, y = otherKinds(x[1:]), otherKinds(y[1:]) {
		if d := cmp.Compare(y[0].Name, x[0].Name); d != 0 {
			return d // the other has none of that kind
		}
		if d := cmp.Compare(x[0].N, y[0].N); d != 0 {
			return d
		}
	}
	return cmp.Compare(len(x), len(y))
}

// otherKinds returns kinds from the first that is neither cores nor gpus.
func otherKinds(kinds []children.Kind) []children.Kind {
	for len(kinds) > 0 && (kinds[0].Name == "core" || kinds[0].Name == "gpu") {
		kinds = kinds[1:]
	}
	return kinds
}

// fitting returns how many times the needs fit into children, at most jobspec.MaxCount.
func fitting(free *children.Set, needs []need) int64 {
	most := int64(jobspec.MaxCount)
	for _, want := range needs {
		most = min(most, int64(free.Len(want.kind))/want.n)
	}
	return most
}

// A cut divides the free children of a node, and of those alike, into what lowest does and a rest.
type cut struct {
	free, what, rest *children.Set
	needs            []need
	times            int64
}

func (k *known) cut(free *children.Set, needs []need, times int64) cut {
	for i := range k.cuts {
		if c := &k.cuts[i]; c.free == free && c.times == times && slices.Equal(c.needs, needs) {
			return *c
		}
	}
	what := lowest(free, needs, times)
	c := cut{free, what, free.Subtract(what), needs, times}
	k.last = (k.last + 1) % len(k.cuts)
	k.cuts[k.last] = c
	return c
}

// lowest returns the lowest ids that satisfy the needs of all slots; there are enough.
func lowest(free *children.Set, needs []need, times int64) *children.Set {
	var room [4]children.Kind
	out := room[:0]
	for _, have := range free.Kinds() {
		for _, want := range needs {
			if want.kind != have.Name {
				continue
			}
			if n := int(want.n * times); n < have.N {
				have = children.Kind{Name: have.Name, IDs: firstIDs(have.IDs, n), N: n}
			}
			out = append(out, have)
		}
	}
	if slices.EqualFunc(out, free.Kinds(), func(a, b children.Kind) bool { return a.IDs == b.IDs }) {
		return free
	}
	return children.Of(out)
}

// firstIDs returns the n lowest ids of a set that has more.
func firstIDs(from *idset.Set, n int) *idset.Set {
	out := new(idset.Set)
	for first, last := range from.Ranges() {
		if n == 0 {
			break
		}
		last = min(last, first+uint32(n)-1)
		out.InsertRange(first, last)
		n -= int(last-first) + 1
	}
	return out
}
