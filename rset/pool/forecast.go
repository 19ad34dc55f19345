package pool

import (
	"cmp"
	"slices"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/rset/internal/children"
)

// Earliest returns the earliest time at which a request can be met if each job ends
// when its resources expire and nothing else changes. The pool does not change.
//
// Earliest assumes that a job past its expiration ends now, so a result of now does not
// mean that Alloc succeeds. It assumes that a job without an expiration never ends. The
// error is ErrBusy if such jobs, or ranks that are down, prevent the request until the
// pool expires; the other errors are those of Alloc.
//
// For n jobs it searches log n times, in copies of the pool from which the first jobs to
// expire are removed.
func (p *Pool) Earliest(q *Request, now eventlog.Timestamp) (eventlog.Timestamp, error) {
	eligible, err := q.eligibleIn(p)
	if err != nil {
		return 0, err
	}
	if _, err := p.end(now, 0); err != nil {
		return 0, err
	}
	fits := func(c *Pool) bool {
		s := search{q: q, fit: c.fit, eligible: eligible, dry: true, worst: p.cfg.Fit == FitWorst}
		_, ok := s.choose()
		return ok
	}
	if fits(p) {
		return now, nil
	}
	if err := p.feasible(q, eligible); err != nil {
		return 0, err
	}
	var ends []*holder
	p.holders.Ascend(func(it holderItem) bool {
		h := it.h
		if h.expiration > 0 && (p.expiration == 0 || h.expiration < p.expiration) {
			ends = append(ends, h)
		}
		return true
	})
	slices.SortStableFunc(ends, func(a, b *holder) int { return cmp.Compare(a.expiration, b.expiration) })
	// What fits goes on fitting as more is released. With the first done jobs
	// released, as in the copy, it does not fit; with the first most it does.
	copied, done, most := p.Clone(), 0, len(ends)+1
	for done+1 < most {
		next := min(2*done+1, len(ends))
		if most <= len(ends) {
			next = done + (most-done)/2
		}
		trial := copied.Clone()
		for _, h := range ends[done:next] {
			for _, pc := range trial.pieces(h) {
				trial.release(h.id, pc, func(uint32, uint32, *children.Set) {})
			}
		}
		if fits(trial) {
			most = next
		} else {
			copied, done = trial, next
		}
	}
	if most > len(ends) {
		return 0, ErrBusy
	}
	return max(now, ends[most-1].expiration), nil
}
