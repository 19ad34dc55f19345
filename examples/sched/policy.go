package main

import (
	"slices"

	"github.com/joblife/joblife/eventlog"
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

// easy is EASY backfill. Jobs start in order until one has to wait. That one, the head,
// gets a reservation, which is a plan of the pool: the earliest time at which it can start
// if the jobs that run end when they expire, and the resources that it gets then. Each of
// the jobs behind it starts now if it fits beside the plan: it ends by that time, or takes
// nothing that is planned. So the head never waits for one that came after it.
//
// A head without such a time, because it needs what is down or held without end, delays
// no job, and the next job that must wait may get the reservation. After maxHeads such
// heads no job gets it.
//
// A pass costs a Plan for each head and an Alloc for each of the first depth jobs behind
// the head, most of which find no room. Jobs behind those wait for their turn. If there is
// nothing new but a request, the reservation stands and only that request is looked at.
type easy struct {
	depth int
	head  *job               // with the reservation; nil: none
	at    eventlog.Timestamp // when the head is to start
	told  *job               // the head that has an estimate
}

// maxHeads is how many jobs without an estimate a pass asks the pool about.
const maxHeads = 4

func (e *easy) schedule(s *scheduler, arrived *job) {
	if arrived != nil && e.stands(s.now, arrived) {
		if place, _ := slices.BinarySearchFunc(s.waiting, arrived, compareJobs); place <= e.depth {
			e.start(s, arrived)
		}
		return
	}
	if e.head != nil && e.head != s.waiting.first() {
		s.pool.Unplan(e.head.id)
	}
	e.head = nil
	for i := 0; i < len(s.waiting) && i <= e.depth; {
		j := s.waiting[i]
		e.start(s, j)
		if i == len(s.waiting) || s.waiting[i] != j {
			continue // it started, or was denied
		}
		if e.head == nil && i < maxHeads {
			e.reserve(s, j)
		}
		i++
	}
	if e.head == nil {
		e.tell(s)
	}
}

// start starts a job if it fits, by backfill if there is a head.
func (e *easy) start(s *scheduler, j *job) {
	if j.behind = 0; e.head != nil {
		j.behind = e.head.id
	}
	s.start(j)
}

// stands reports whether the reservation is what it would be if it were made
// anew, but for a job that came.
func (e *easy) stands(now eventlog.Timestamp, arrived *job) bool {
	return e.head != nil && now < e.at && compareJobs(e.head, arrived) < 0
}

// reserve gives a job the reservation, if it has an earliest time.
func (e *easy) reserve(s *scheduler, j *job) {
	at, err := s.pool.Plan(j.id, j.request, s.now)
	if err != nil {
		s.pool.Unplan(j.id) // what it had before
		s.logf("%v has no earliest time: %v", name(j.id), err)
		return
	}
	e.head, e.at = j, at
	e.tell(s)
}

// tell annotates the head with its start, before later jobs start, and voids the
// annotation of the job that was the head before.
func (e *easy) tell(s *scheduler) {
	head := e.head
	if old := e.told; old != nil && old != head && s.jobs[old.id] == old && !old.running {
		s.annotate(old, 0)
	}
	if head != nil && head.estimate != e.at {
		s.annotate(head, e.at)
	}
	e.told = head
}
