package pool

import (
	"cmp"
	"slices"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate/jobid"
)

// A plan says where and when a job without resources will have some. It is never changed.
type plan struct {
	id         jobid.ID
	q          *Request
	start, end eventlog.Timestamp
	grants     []grant // in the order of their ranks; nothing is free there yet
	shrinks    int     // of the pool before; at the next the claims may be gone
}

// A claim is what a planned job will have of a node.
type claim struct {
	plan  *plan
	slots int64
}

func (c claim) active(at eventlog.Timestamp) bool { return c.plan.start <= at && at < c.plan.end }

// takes returns how many of a kind the job will have; of a whole node, more than there are.
func (c claim) takes(kind string) int64 {
	if c.plan.q.exclusive {
		return 1 << 32
	}
	for _, want := range c.plan.q.per {
		if want.kind == kind {
			return want.n * c.slots
		}
	}
	return 0
}

func (p *Pool) plan(id jobid.ID) *plan {
	it, _ := p.planned.Get(jobItem[*plan]{id: id})
	return it.of
}

// Plan reserves resources for a job from the earliest time on at which the request can be met,
// and returns that time. From then on Alloc and Plan leave them to the job. Other jobs may have
// them before, if they expire in time, and after. Alloc of the job itself may give it any.
//
// The time is right if each job ends when its resources expire, planned jobs run as planned, and
// nothing else changes. A job past its expiration is taken to end now, so a result of now does
// not mean that Alloc succeeds. A job without an expiration never ends.
//
// The next Plan of a job takes the place of its plan. Adopt, Alloc and Unplan of the job end it,
// and nothing else, not even its time. A plan does not follow what happens: after a job ended
// early or late, or an Update, plan again.
//
// The error is ErrBusy if jobs without an expiration, or ranks that are down, prevent the request
// until the pool expires. At most Config.MaxJobs jobs are planned. The other errors are those of
// Alloc. After an error nothing has changed. Plan looks at the ranks that are free now and at
// those of each job that ends by the time found, and each time goes over all plans on a range of
// ranks: n jobs planned for the same ranks take n³ steps, of nanoseconds.
func (p *Pool) Plan(id jobid.ID, q *Request, now eventlog.Timestamp) (eventlog.Timestamp, error) {
	if _, ok := p.holder(id); ok {
		return 0, jobError(id, ErrExists)
	}
	old := p.plan(id)
	if old == nil {
		if err := p.room(p.planned.Len()); err != nil {
			return 0, err
		}
	}
	s, err := p.search(q)
	if err != nil {
		return 0, err
	}
	s.self = old
	m := &p.memory
	f := forecast{search: s, touched: m.touched[:0], gained: m.gained[:0]}
	start, err := f.earliest(now)
	m.touched, m.gained = f.touched, f.gained
	if err != nil {
		return 0, err
	}
	pl := &plan{id: id, q: q, start: start, end: f.to, grants: f.where(), shrinks: p.shrinks}
	if old != nil && old.same(pl) {
		return start, nil
	}
	p.Unplan(id)
	var alone []claim // of nodes without others
	for _, g := range pl.grants {
		if len(alone) == 0 || alone[0].slots != g.slots {
			alone = []claim{{pl, g.slots}}
		}
		p.edit(g.first, g.last, func(_, _ uint32, s *state) {
			if len(s.claims) == 0 {
				s.claims = alone
				return
			}
			i, _ := s.findClaim(id)
			s.claims = slices.Insert(slices.Clone(s.claims), i, alone[0])
		})
	}
	p.planned.ReplaceOrInsert(jobItem[*plan]{id, pl})
	p.starts.ReplaceOrInsert(event{at: start, id: id, plan: pl})
	p.addEnd(event{at: pl.end, id: id, plan: pl})
	return start, nil
}

// same reports whether two plans of a job reserve the same.
func (pl *plan) same(other *plan) bool {
	return pl.q == other.q && pl.start == other.start && pl.end == other.end && pl.shrinks == other.shrinks &&
		slices.EqualFunc(pl.grants, other.grants, func(a, b grant) bool {
			return a.first == b.first && a.last == b.last && a.slots == b.slots
		})
}

// findClaim is find for the claims.
func (s *state) findClaim(id jobid.ID) (int, bool) {
	return slices.BinarySearchFunc(s.claims, id, func(c claim, id jobid.ID) int { return cmp.Compare(c.plan.id, id) })
}

// where returns the ranks for a plan; there is room. Ranks that gain room only later come
// first, so that other jobs can use what is free now.
func (f *forecast) where() []grant {
	slices.SortFunc(f.gained, func(a, b *span) int { return cmp.Compare(a.first, b.first) })
	f.later = f.p.memory.later[:0]
	for _, sp := range slices.Compact(f.gained) {
		room := f.room(&sp.state, f.from, f.to)
		f.among(sp, func(first, last uint32) bool {
			f.later = append(f.later, grant{first: first, last: last, room: room})
			return true
		})
	}
	f.p.memory.later = f.later
	c, ok := f.choose()
	if !ok {
		panic("pool: broken invariant: there is no room where there was")
	}
	slices.SortFunc(c.grants, func(a, b grant) int { return cmp.Compare(a.first, b.first) })
	out := c.grants[:0]
	for _, g := range c.grants {
		g.free, g.room = nil, 0
		if k := len(out) - 1; k >= 0 && out[k].last+1 == g.first && out[k].slots == g.slots {
			out[k].last = g.last
		} else {
			out = append(out, g)
		}
	}
	return slices.Clone(out)
}

// Unplan ends the plan of a job, and reports whether it had one.
func (p *Pool) Unplan(id jobid.ID) bool {
	pl := p.plan(id)
	if pl == nil {
		return false
	}
	for _, g := range pl.grants {
		p.ease(g.len())
		p.edit(g.first, g.last, func(_, _ uint32, s *state) {
			if i, ok := s.findClaim(id); ok { // not if the rank left the inventory and came back
				s.claims = slices.Concat(s.claims[:i], s.claims[i+1:])
			}
		})
	}
	p.planned.Delete(jobItem[*plan]{id: id})
	p.starts.Delete(event{at: pl.start, id: id})
	p.ends.Delete(event{at: pl.end, id: id})
	return true
}
