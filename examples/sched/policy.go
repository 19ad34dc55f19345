package main

import (
	"errors"
	"slices"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/pool"
)

// A policy says which of the jobs that wait start now.
type policy interface {
	// schedule starts jobs. If the only change since the last call is a new
	// request, arrived is that request; otherwise it is nil.
	schedule(s *scheduler, arrived *job)
}

// fifo starts jobs in order, and none before one that has to wait.
type fifo struct{}

func (fifo) schedule(s *scheduler, arrived *job) {
	if arrived != nil && s.waiting.first() != arrived {
		return // the first has to wait as it did before
	}
	for j := s.waiting.first(); j != nil; j = s.waiting.first() {
		s.start(j)
		if s.waiting.first() == j {
			return // it has to wait
		}
	}
}

// easy is EASY backfill. Jobs start in order until one has to wait. That one,
// the head, gets a reservation: the earliest time at which it can start if the
// jobs that run end when they expire, and the resources that it gets then. Each
// of the jobs behind it starts now if it fits and ends by that time, or fits
// into what is not reserved. So the head never waits for one that came after it.
//
// What is reserved is asked of a forecast, a copy of the pool in which what
// expires up to that time has ended. What is left beside it is another copy, in
// which the head has it already: jobs that end late are allocated there.
//
// A head without such a time, because it needs what is down or held without end, delays
// no job, and the next job that must wait may get the reservation. After maxHeads such
// heads no job gets it.
//
// A pass costs an Earliest for each head and an Alloc for each of the first depth
// jobs behind the head; and, once there is one that fits and ends late, the
// copies, and an Alloc more for each such job. Jobs behind those wait for their
// turn. If there is nothing new but a request, the reservation stands and only
// that request is looked at.
type easy struct {
	depth int
	res   *reservation // nil: none
	told  *job         // the head that has an estimate
}

// maxHeads is how many jobs without an estimate a pass asks the pool about.
const maxHeads = 4

// A reservation is the time at which a job is to start, and what it leaves to
// others.
type reservation struct {
	head *job
	at   eventlog.Timestamp
	rest *pool.Pool // the pool as if the head had what it is to get; nil: not made yet
}

func (e *easy) schedule(s *scheduler, arrived *job) {
	if arrived != nil && e.stands(s.now, arrived) {
		if place, _ := slices.BinarySearchFunc(s.waiting, arrived, compareJobs); place <= e.depth {
			e.backfill(s, arrived)
		}
		return
	}
	e.res = nil
	for i := 0; i < len(s.waiting) && i <= e.depth; {
		j := s.waiting[i]
		if e.res == nil {
			s.start(j)
		} else {
			e.backfill(s, j)
		}
		if i == len(s.waiting) || s.waiting[i] != j {
			continue // it started, or was denied
		}
		if e.res == nil && i < maxHeads {
			e.reserve(s, j)
		}
		i++
	}
	if e.res == nil {
		e.tell(s, nil)
	}
}

// stands reports whether the reservation is what it would be if it were made
// anew, but for a job that came.
func (e *easy) stands(now eventlog.Timestamp, arrived *job) bool {
	return e.res != nil && now < e.res.at && compareJobs(e.res.head, arrived) < 0
}

// reserve gives a job the reservation, if it has an earliest time.
func (e *easy) reserve(s *scheduler, j *job) {
	at, err := s.pool.Earliest(j.request, s.now)
	if err != nil {
		s.logf("%v has no earliest time: %v", name(j.id), err)
		return
	}
	e.res = &reservation{head: j, at: at}
	e.tell(s, e.res)
}

// beside returns what the reservation leaves to others. Jobs that have started
// since it was made do not change what is reserved, because they end in time.
func (res *reservation) beside(now *pool.Pool) *pool.Pool {
	if res.rest == nil {
		forecast := now.Clone()
		for h := range now.Holders() {
			if h.Expiration > 0 && h.Expiration <= res.at {
				must(forecast.Free(h.ID, nil, true))
			}
		}
		r := must(forecast.Alloc(res.head.id, res.head.request, res.at))
		res.rest = now.Clone()
		adopt(res.rest, res.head.id, r)
	}
	return res.rest
}

// adopt gives a job resources in a copy of the pool. That others hold some of
// them, up to the time of the head or from then on, is no error there.
func adopt(rest *pool.Pool, id jobid.ID, r *rset.R) {
	if err := rest.Adopt(id, r, nil); err != nil && !errors.Is(err, pool.ErrConflict) {
		panic(err) // the pool itself has the resources, and room for a job
	}
}

// backfill starts a job that is behind the head, if it fits and does not delay
// it.
func (e *easy) backfill(s *scheduler, j *job) {
	r := s.try(s.pool, j)
	switch end := e.res.at; {
	case r == nil:
		return
	case r.Expiration() > 0 && r.Expiration() <= end:
		if e.res.rest != nil {
			adopt(e.res.rest, j.id, r)
		}
	default:
		must(s.pool.Free(j.id, nil, true))
		if r = s.try(e.res.beside(s.pool), j); r == nil {
			return
		}
		if err := s.pool.Adopt(j.id, r, nil); err != nil {
			panic(err) // what is free in the copy is free
		}
	}
	j.behind = e.res.head.id
	s.keep(j, r)
}

// must returns the result of what cannot fail.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// tell annotates the head with its start, before later jobs start, and voids the
// annotation of the job that was the head before.
func (e *easy) tell(s *scheduler, res *reservation) {
	var head *job
	if res != nil {
		head = res.head
	}
	if old := e.told; old != nil && old != head && s.jobs[old.id] == old && !old.running {
		s.annotate(old, 0)
	}
	if head != nil && head.estimate != res.at {
		s.annotate(head, res.at)
	}
	e.told = head
}
