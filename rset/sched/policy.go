package sched

import (
	"iter"
	"slices"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset/pool"
)

// A Policy says which of the jobs that wait start now. It cannot deny a job: what it does not
// start waits.
type Policy interface {
	// Schedule starts jobs. It is called in Decide if a job came or something else changed, and
	// not because time has passed: a policy that holds back a job that fits needs a timer of
	// yours, which calls Acquire(pool.Acquire{}) of the Scheduler. What it does must follow from
	// the Pass alone, which it must not keep, or the same input no longer has the same output.
	// What changes the Scheduler panics.
	//
	// Package joblifetest tests a policy: RunScheduler with NewScheduler.
	Schedule(p *Pass)
}

// A Pass is what a [Policy] sees and does: Jobs that wait, and those Running; Start starts a
// job, Reserve plans one, and the Pool has the rest. It panics outside of Policy.Schedule.
type Pass struct{ s *Scheduler }

func (p *Pass) scheduler() *Scheduler {
	if p.s == nil || !p.s.passing {
		panic("sched: a Pass was used outside of Policy.Schedule")
	}
	return p.s
}

// Now returns the time of the decision.
func (p *Pass) Now() eventlog.Timestamp { return p.scheduler().now }

// Pool returns a copy of the pool, in constant time, with what this pass has started and
// reserved. To see what Start would give: p.Pool().Alloc(job.ID, job.Request, p.Now()).
func (p *Pass) Pool() *pool.Pool { return p.scheduler().pool.Clone() }

// Jobs returns an iterator over the jobs that wait, in the order of the queue. Jobs may
// start meanwhile.
func (p *Pass) Jobs() iter.Seq[Job] {
	return func(yield func(Job) bool) { p.scheduler().Jobs()(yield) }
}

// Running returns an iterator over the jobs that have resources, by id. Jobs may start
// meanwhile.
func (p *Pass) Running() iter.Seq[Job] {
	return func(yield func(Job) bool) {
		s := p.scheduler()
		for h := range s.pool.Clone().Allocations() {
			if !yield(s.jobs[h.ID].Job) {
				return
			}
		}
	}
}

// Start gives a job resources, and reports whether it did: they must be up and free, and
// not be reserved for others while the job runs. A job that does not wait stays as it is.
func (p *Pass) Start(id jobid.ID) bool {
	s := p.scheduler()
	j := s.jobs[id]
	if j == nil || j.state != waits {
		return false
	}
	return s.start(j)
}

// Reserve is pool.Pool.Plan for a job until the next Schedule. It returns the earliest time at
// which the job can start, or false if there is no such time or the job does not wait.
func (p *Pass) Reserve(id jobid.ID) (eventlog.Timestamp, bool) {
	s := p.scheduler()
	j := s.jobs[id]
	if j == nil || j.state != waits {
		return 0, false
	}
	return s.reserve(j)
}

func (s *Scheduler) reserve(j *job) (eventlog.Timestamp, bool) {
	at, err := s.pool.Plan(j.ID, j.Request, s.now)
	if err != nil {
		s.unplan(j) // what it had before
		s.cfg.Logf("%v has no earliest time: %v", named(j.ID), err)
		return 0, false
	}
	if !j.planned {
		j.planned = true
		s.reserved = append(s.reserved, j)
	}
	s.until = min(s.until, at)
	s.tellStart(j, at)
	return at, true
}

func (s *Scheduler) unplan(j *job) {
	if j.planned {
		j.planned = false
		s.pool.Unplan(j.ID)
	}
}

// release ends all reservations, for a pass that begins anew: a plan that was right may keep what
// came free since. Our policies plan the first job before another may start, so its plan stays
// until then: most are the same again.
func (s *Scheduler) release() {
	kept := s.queue.first(nil)
	if !s.follows || s.byCount || kept != nil && !kept.planned {
		kept = nil
	}
	for _, j := range s.reserved {
		if j != kept {
			s.unplan(j)
		}
	}
	clear(s.reserved)
	if s.reserved = s.reserved[:0]; kept != nil {
		s.reserved = append(s.reserved, kept)
	}
	s.until, s.head, s.looked, s.full = never, nil, nil, true
	clear(s.busy)
	s.before, s.told = append(s.before, s.told...), s.told[:0]
}

// stands reports whether all is as in the last pass, but for jobs that came behind a place.
func (s *Scheduler) stands(behind key) bool {
	return !s.full && s.now < s.until && !slices.ContainsFunc(s.fresh, func(j *job) bool { return j.key().compare(behind) < 0 })
}

// sieve returns what holds back the jobs that cannot start.
func (s *Scheduler) sieve() sieve {
	nodes, spare, cores := s.pool.Idle()
	switch {
	case s.head == nil: // there may be several reservations, which begin at different times
		spare = nodes
	case s.byCount:
		spare = nodes - s.kept
	}
	return sieve{nodes, cores, spare, s.now, s.until, s.busy}
}

// FIFO starts jobs in the order of the queue, and none before one that has to wait.
type FIFO struct{}

// Schedule implements [Policy].
func (FIFO) Schedule(p *Pass) {
	s := p.scheduler()
	j := s.queue.first(nil)
	if !s.full && !slices.Contains(s.fresh, j) {
		return // it has to wait as before
	}
	for ; j != nil; j = s.queue.first(nil) {
		if s.start(j); j.state == waits {
			return
		}
	}
}

// EASY is backfill with one reservation. Jobs start in the order of the queue until one has
// to wait: the head, which gets a reservation at the earliest time. A job behind it starts
// now if it ends by then or needs nothing that is reserved. So the head never waits for a
// job that came after it.
//
// A head without such a time, because it needs what is down or never ends, delays no job,
// and the next one is the head. After 4 of them there is none.
type EASY struct {
	Depth int // how many jobs behind the first are considered; 0 or less means all
}

// maxHeads is how many jobs are asked for an earliest time.
const maxHeads = 4

// Schedule implements [Policy].
func (e EASY) Schedule(p *Pass) {
	s := p.scheduler()
	if s.head != nil && s.stands(s.head.key()) {
		slices.SortFunc(s.fresh, func(a, b *job) int { return a.key().compare(b.key()) })
		for _, j := range s.fresh {
			if f := s.sieve(); f.passes(j.need) && e.covers(s, j) {
				s.backfill(j)
			}
		}
		return
	}
	s.release()
	j := s.queue.first(nil)
	for i := 0; j != nil && e.covers(s, j); {
		if !s.backfill(j) {
			if s.head == nil && i < maxHeads {
				s.lead(j)
			}
			i++
		}
		if s.head == nil && i < maxHeads {
			j = s.queue.after(j.key(), nil)
		} else {
			f := s.sieve()
			j = s.queue.after(j.key(), &f)
		}
	}
}

func (e EASY) covers(s *Scheduler, j *job) bool {
	return e.Depth <= 0 || !s.queue.beyond(j.key(), e.Depth)
}

// backfill starts a job, if it does not delay the head. If it fails, no other job with the request
// needs to be asked: until reservations begin anew the pool only loses room.
func (s *Scheduler) backfill(j *job) bool {
	if !s.start(j) {
		s.busy[j.Request] = true
		return false
	}
	if s.byCount && s.head != nil && s.now+j.takes <= s.until {
		s.kept = max(0, s.kept-j.nodes) // it gives them back in time
	}
	return true
}

// lead makes a job the head, if it has an earliest time.
func (s *Scheduler) lead(j *job) {
	if s.byCount {
		if at, kept, ok := s.pool.EarliestIdle(j.nodes, s.now); ok {
			s.head, s.kept, s.until = j, kept, at
			s.tellStart(j, at)
			return
		}
	}
	s.head = j
	if _, ok := s.reserve(j); !ok { // the pool says why
		s.head = nil
	}
}

// Conservative is backfill with a reservation for each job that has to wait, in the order of
// the queue. A job starts now if that delays none before it. A job without an earliest time
// gets no reservation, and delays none. Reservations are made only as far as a job behind
// them might start, and stand until more changes than new jobs behind them.
type Conservative struct {
	Depth int // how many jobs are considered; 0 or less means all, which is slow if many wait
}

// Schedule implements [Policy].
func (c Conservative) Schedule(p *Pass) {
	s := p.scheduler()
	var j, may *job // the next one, and one from there on that may start
	if s.looked != nil && s.stands(s.looked.key()) {
		j = s.queue.after(s.looked.key(), nil)
	} else {
		s.release()
		j = s.queue.first(nil)
	}
	for ; j != nil; j = s.queue.after(j.key(), nil) {
		if may == nil || may.key().compare(j.key()) < 0 {
			f := s.sieve()
			if may = j; !f.passes(j.need) {
				may = s.queue.after(j.key(), &f)
			}
			if may == nil || c.Depth > 0 && s.queue.beyond(may.key(), c.Depth-1) {
				return
			}
		}
		if s.looked = j; j != may || !s.start(j) {
			s.reserve(j)
		}
	}
}
