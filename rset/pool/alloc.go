package pool

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset"
)

// Feasible returns nil if the inventory could meet the request with all ranks up and
// free. Otherwise the error wraps ErrInfeasible, and its text has the numbers requested
// and found; or it is ErrRequest for the zero Request.
func (p *Pool) Feasible(q *Request) error {
	eligible, err := q.eligibleIn(p)
	if err != nil {
		return err
	}
	return p.feasible(q, eligible)
}

// eligibleIn returns the ranks that a request may have, nil for all, or an
// error for the zero Request.
func (q *Request) eligibleIn(p *Pool) (*idset.Set, error) {
	if q == nil || q.slots.IsZero() {
		return nil, fmt.Errorf("%w: it asks for nothing", ErrRequest)
	}
	return q.eligible(p), nil
}

func (p *Pool) feasible(q *Request, eligible *idset.Set) error {
	s := search{q: q, fit: p.whole, eligible: eligible, dry: true, worst: p.cfg.Fit == FitWorst}
	c, ok := s.choose()
	if ok {
		return nil
	}
	n, of := c.nodes, "nodes"
	if q.nodes.IsZero() {
		n, of = c.slots, "slots"
	}
	return fmt.Errorf("%w: request for %s: %d such %s exist", ErrInfeasible, q, n, of)
}

// Alloc gives a job what a request asks for, from the resources that are up and free.
// The R has hosts, the number of slots, and properties, except those that begin with
// "+". It starts now and expires after the request's duration, or with the pool if that
// is earlier or the request has no duration.
//
// The choice follows from the request and the state of the pool alone: see the package
// documentation.
//
// The error is ErrBusy if the request cannot be met now, ErrInfeasible if it never can,
// ErrExists if the job has resources, ErrLimit if Config.MaxJobs jobs have resources,
// ErrExpired if the pool has expired, ErrInvalid for an invalid time, or ErrRequest for
// the zero Request. After an error nothing has changed.
func (p *Pool) Alloc(id jobid.ID, q *Request, now eventlog.Timestamp) (*rset.R, error) {
	if _, ok := p.holder(id); ok {
		return nil, jobError(id, ErrExists)
	}
	if err := p.room(); err != nil {
		return nil, err
	}
	eligible, err := q.eligibleIn(p)
	if err != nil {
		return nil, err
	}
	end, err := p.end(now, q.duration)
	if err != nil {
		return nil, err
	}
	s := search{q: q, fit: p.fit, eligible: eligible, worst: p.cfg.Fit == FitWorst}
	c, ok := s.choose()
	if !ok {
		if err := p.feasible(q, eligible); err != nil {
			return nil, err
		}
		return nil, ErrBusy
	}
	r := p.take(id, q, c, rset.Config{Start: now, Expiration: end})
	p.setHolder(&holder{id: id, r: r, since: now, expiration: end})
	return r, nil
}

// room returns an error if no more jobs may have resources.
func (p *Pool) room() error {
	if n := p.holders.Len(); n >= p.cfg.MaxJobs {
		return tooMany("jobs", n+1, p.cfg.MaxJobs)
	}
	return nil
}

// end returns when an allocation expires that is made now.
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
	// The time after now at the least, which a duration of less than a
	// microsecond may not reach; never, if that is beyond all times.
	end := max(now+eventlog.Timestamp(duration.Seconds()), eventlog.Timestamp(math.Nextafter(float64(now), math.MaxFloat64)))
	switch {
	case p.expiration > 0:
		return min(end, p.expiration), nil
	case end > math.MaxFloat64:
		return 0, nil
	}
	return end, nil
}

// take gives a job what was chosen, and returns that with the times given.
func (p *Pool) take(id jobid.ID, q *Request, c choice, times rset.Config) *rset.R {
	slices.SortFunc(c.grants, func(a, b grant) int { return cmp.Compare(a.first, b.first) })
	ranks := new(idset.Set)
	var all, first collector
	whole := true
	for i, g := range c.grants {
		given := g.free
		if !q.exclusive {
			given = lowest(g.free, q.per, g.slots)
		}
		p.edit(g.first, g.last, func(_, _ uint32, s *state) {
			whole = whole && given.Equal(s.all)
			s.take(id, given)
		})
		ranks.InsertRange(g.first, g.last)
		all.add(g.first, g.last, given)
		if i == 0 {
			first.add(g.first, g.first, given)
		}
	}
	nodes := int64(1)
	if !q.nodes.IsZero() {
		nodes = c.nodes
	}
	times.Slots = q.nslots(nodes, c.slots)
	// Hosts and properties are those of the inventory, times and slots come
	// with a union: of the first rank alone where the job has whole nodes.
	r := must(p.bare.Restrict(ranks))
	with := &first
	if !whole {
		with = &all
	}
	meta := with.r(times)
	if !whole {
		r = must(rset.Intersect(r, meta))
	}
	return must(rset.Union(r, meta))
}
