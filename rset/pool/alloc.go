package pool

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/children"
)

// Feasible returns nil if the inventory could meet the request with all ranks up and free. The
// error is ErrInfeasible, with what was requested and found, or ErrRequest for the zero Request.
func (p *Pool) Feasible(q *Request) error {
	s, err := p.search(q)
	if err != nil {
		return err
	}
	return s.feasible()
}

// search returns a search for what a request asks for, or an error for the zero Request.
func (p *Pool) search(q *Request) (search, error) {
	if q == nil || q.slots.IsZero() {
		return search{}, fmt.Errorf("%w: it asks for nothing", ErrRequest)
	}
	return search{p: p, q: q, eligible: q.eligible(p), from: present}, nil
}

// feasible is Feasible for the request of the search.
func (s *search) feasible() error {
	known := &s.p.known
	if _, ok := known.feasible[s.q]; ok {
		return nil
	}
	all := search{p: s.p, q: s.q, eligible: s.eligible, fit: s.p.whole, dry: true, from: present}
	c, ok := all.choose()
	if ok {
		known.suffices(s.q)
		return nil
	}
	n := c.nodes
	if s.q.nodes.IsZero() {
		n = c.slots
	}
	return fmt.Errorf("%w: request for %s: room for %d", ErrInfeasible, s.q, n)
}

// Alloc gives a job what a request asks for, from the resources that are up and free. The
// package documentation says which it gets. The R has hosts, the number of slots, properties,
// except those that begin with "+", and the scheduling key of the inventory, which all share. It
// starts now and expires after the request's duration, or with the pool if that is earlier or the
// request has no duration. No planned job is delayed. If the job itself is planned, that ends.
//
// The error is ErrBusy if the request cannot be met now, ErrInfeasible if it never can, ErrExists
// if the job has resources, ErrExpired if the pool has expired, or ErrRequest for the zero
// Request. An invalid time is an error, and a job beyond Config.MaxJobs. After an error nothing
// has changed.
func (p *Pool) Alloc(id jobid.ID, q *Request, now eventlog.Timestamp) (*rset.R, error) {
	if _, ok := p.holder(id); ok {
		return nil, jobError(id, ErrExists)
	}
	if err := p.room(p.holders.Len()); err != nil {
		return nil, err
	}
	s, err := p.search(q)
	if err != nil {
		return nil, err
	}
	expiration, err := p.end(now, q.duration)
	if err != nil {
		return nil, err
	}
	s.fit, s.to, s.self = p.fit, endOf(expiration), p.plan(id)
	var c choice
	ok := false
	if !s.lacks() {
		if c, ok = s.choose(); !ok {
			s.short(c)
		}
	}
	if !ok {
		if err := s.feasible(); err != nil {
			return nil, err
		}
		return nil, ErrBusy
	}
	h := &holder{id: id, since: now, expiration: expiration}
	h.r = p.take(h, q, &c)
	p.Unplan(id)
	p.setHolder(h)
	return h.r, nil
}

// room returns ErrLimit if there may be no job beside n others.
func (p *Pool) room(n int) error {
	if n >= p.cfg.MaxJobs {
		return tooMany("jobs", n+1, p.cfg.MaxJobs)
	}
	return nil
}

// end returns when an allocation that is made now expires; 0 is never.
func (p *Pool) end(now eventlog.Timestamp, duration time.Duration) (eventlog.Timestamp, error) {
	if err := checkTime("now", now); err != nil {
		return 0, err
	}
	if p.expiration > 0 && p.expiration <= now {
		return 0, fmt.Errorf("%w at %v", ErrExpired, p.expiration)
	}
	if duration == 0 {
		return p.expiration, nil
	}
	end := later(now, duration)
	switch {
	case p.expiration > 0:
		return min(end, p.expiration), nil
	case end == never:
		return 0, nil
	}
	return end, nil
}

// later returns the time after a duration. It is greater than now, even if the duration is
// lost in the rounding of a Timestamp, and never if no Timestamp is as late.
func later(now eventlog.Timestamp, duration time.Duration) eventlog.Timestamp {
	next := eventlog.Timestamp(math.Nextafter(float64(now), math.MaxFloat64))
	return min(max(now+eventlog.Timestamp(duration.Seconds()), next), never)
}

// take gives the chosen resources to a job, and returns them.
func (p *Pool) take(h *holder, q *Request, c *choice) *rset.R {
	slices.SortFunc(c.grants, func(a, b grant) int { return cmp.Compare(a.first, b.first) })
	var room [4]children.Part
	given, owned := parts(room[:0]), &h.owned
	for _, g := range c.grants {
		c := cut{what: g.free}
		if !q.exclusive {
			c = p.known.cut(g.free, q.per, g.slots)
		}
		switch o := (owner{h.id, h.end(), c.what}); owned[0].what {
		case nil:
			owned[0] = o
		case c.what:
		default:
			owned = &[1]owner{o}
		}
		p.edit(g.first, g.last, func(_, _ uint32, s *state) { s.take(owned, c.rest) })
		given = given.add(g.first, g.last, c.what)
	}
	nodes := int64(1)
	if !q.nodes.IsZero() {
		nodes = c.nodes
	}
	return p.bare.Cut(given, h.since, h.expiration, q.nslots(nodes, c.slots))
}
