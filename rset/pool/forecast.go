package pool

import (
	"cmp"
	"math"
	"slices"

	"github.com/google/btree"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate/jobid"
)

// never is after all times.
const never = eventlog.Timestamp(math.MaxFloat64)

// endOf returns when something expires: never for an expiration of 0.
func endOf(expiration eventlog.Timestamp) eventlog.Timestamp {
	if expiration == 0 {
		return never
	}
	return expiration
}

// An event is the start or the end of a planned job, or the end of a holder.
type event struct {
	at     eventlog.Timestamp
	id     jobid.ID
	holder *holder // nil for an event of the plan
	plan   *plan
}

func newEventTree() *btree.BTreeG[event] {
	return btree.NewG(degree, func(a, b event) bool { return a.at < b.at || a.at == b.at && a.id < b.id })
}

func (p *Pool) addEnd(e event) {
	if e.at < never {
		p.ends.ReplaceOrInsert(e)
	}
}

// room returns how many slots fit on a node in that state, all the time between from and to.
func (s *search) room(n *state, from, to eventlog.Timestamp) int64 {
	return s.roomBeside(n, from, to, s.roomAt(n, from))
}

// roomBeside is room, of a node that has that room at from. Starts of planned jobs reduce it.
func (s *search) roomBeside(n *state, from, to eventlog.Timestamp, room int64) int64 {
	for _, c := range n.claims {
		if c.plan.start > from && c.plan.start < to && room > 0 {
			room = min(room, s.roomAt(n, c.plan.start))
		}
	}
	return room
}

// roomAt is room at one time. What a job holds is free after its expiration.
func (s *search) roomAt(n *state, at eventlog.Timestamp) int64 {
	if s.q.exclusive {
		for _, o := range n.owners {
			if o.end > at {
				return 0
			}
		}
		for _, c := range n.claims {
			if c.active(at) && c.plan != s.self {
				return 0
			}
		}
		return fitting(n.all, s.q.per)
	}
	room := int64(math.MaxInt64)
	free := n.free
	if n.clash { // what one job frees another may hold
		free = n.all
		for _, o := range n.owners {
			if o.end > at {
				free = free.Subtract(o.what)
			}
		}
	}
	for _, want := range s.q.per {
		have := int64(free.Len(want.kind))
		for _, o := range n.owners {
			if !n.clash && o.end <= at {
				have += int64(o.what.Len(want.kind))
			}
		}
		for _, c := range n.claims {
			if c.active(at) && c.plan != s.self {
				have -= c.takes(want.kind)
			}
		}
		room = min(room, max(have, 0)/want.n)
	}
	return room
}

// A forecast finds when a request can be met.
type forecast struct {
	search
	total   int64   // the nodes with room all the time, or the slots if the request is not by node
	touched []*span // whose room may differ at the next time
	gained  []*span // whose room grew
}

// weight returns what a node on which that many slots fit adds to total.
func (f *forecast) weight(room int64) int64 {
	switch {
	case f.q.nodes.IsZero():
		return room
	case room >= f.q.slots.Min():
		return 1
	}
	return 0
}

func (f *forecast) enough() bool {
	count, n := f.q.nodes, f.total/f.q.nodesPerSlot
	if count.IsZero() {
		count = f.q.slots
	}
	_, ok := count.Floor(n)
	return ok
}

// until returns when the job ends if it starts at that time.
func (f *forecast) until(at eventlog.Timestamp) eventlog.Timestamp {
	if f.q.duration == 0 {
		return never
	}
	return later(at, f.q.duration)
}

// earliest returns when the request can be met. gained then has the spans with more room than now.
func (f *forecast) earliest(now eventlog.Timestamp) (eventlog.Timestamp, error) {
	p := f.p
	if _, err := p.end(now, 0); err != nil {
		return 0, err
	}
	f.fit, f.to = p.fit, f.until(now)
	least := int64(1)
	if !f.q.nodes.IsZero() {
		least = f.q.slots.Min()
	}
	f.each(least, func(g grant) bool {
		f.total += f.weight(g.room) * g.len()
		return !f.enough()
	})
	if f.enough() {
		return now, nil
	}
	if err := f.feasible(); err != nil {
		return 0, err
	}
	at, limit := now, endOf(p.expiration)
	p.ends.Ascend(func(e event) bool {
		if e.at > at {
			if f.advance(at) {
				return false
			}
			at = e.at
		}
		f.touch(e)
		return at < limit
	})
	if at < limit && (f.from == at || f.advance(at)) && f.enough() {
		return at, nil
	}
	return 0, ErrBusy
}

// advance goes to a later time, and reports whether the request can be met then.
func (f *forecast) advance(at eventlog.Timestamp) bool {
	to := f.until(at)
	f.p.starts.AscendRange(event{at: f.to}, event{at: to}, func(e event) bool {
		f.touch(e)
		return true
	})
	slices.SortFunc(f.touched, func(a, b *span) int { return cmp.Compare(a.first, b.first) })
	for _, sp := range slices.Compact(f.touched) {
		if !sp.up {
			continue
		}
		before, after := f.weight(f.room(&sp.state, f.from, f.to)), f.weight(f.room(&sp.state, at, to))
		if before == after {
			continue
		}
		f.among(sp, func(first, last uint32) bool {
			f.total += (after - before) * (int64(last-first) + 1)
			return true
		})
		if after > before {
			f.gained = append(f.gained, sp)
		}
	}
	f.from, f.to, f.touched = at, to, f.touched[:0]
	return f.enough()
}

func (f *forecast) touch(e event) {
	if e.holder == nil {
		for _, g := range e.plan.grants {
			f.touched = f.p.touching(f.touched, g.first, g.last)
		}
		return
	}
	for pt := range e.holder.r.Parts() {
		f.touched = f.p.touching(f.touched, pt.First, pt.Last)
	}
}

// EarliestIdle returns when so many nodes are idle, if jobs end when they expire, or now if they
// should have, and how many of these are idle now; ok is false if there is no such time. It
// counts the nodes of each job that ends by then: Plan finds the same, at a far higher cost, for a
// job that may have any nodes, if they are uniform and no job is planned.
func (p *Pool) EarliestIdle(nodes int64, now eventlog.Timestamp) (at eventlog.Timestamp, kept int64, ok bool) {
	ended := int64(0)
	at = now
	p.ends.Ascend(func(e event) bool {
		if e.at > at {
			if p.idle+ended >= nodes {
				return false
			}
			at = e.at
		}
		ended += p.nodesOf(e.holder)
		return true
	})
	return at, max(0, nodes-ended), p.idle+ended >= nodes && at < endOf(p.expiration)
}

// nodesOf returns how many nodes that are up a job has; nil has none.
func (p *Pool) nodesOf(h *holder) (n int64) {
	switch {
	case h == nil:
		return 0
	case h.returned >= 0 && p.down == 0:
		return int64(h.r.Len()) - h.returned
	}
	for pt := range h.r.Parts() {
		p.within(pt.First, pt.Last, func(first, last uint32, sp *span) {
			if sp.heldBy(h.id) != nil && sp.up {
				n += int64(last-first) + 1
			}
		})
	}
	return n
}
