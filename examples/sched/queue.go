package main

import (
	"cmp"
	"slices"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset/pool"
)

// job is a request that waits, or an allocation.
type job struct {
	id       jobid.ID
	priority uint32
	since    eventlog.Timestamp // when it began to wait
	request  *pool.Request      // nil for one that a hello told of
	running  bool               // it has resources
	cores    int64              // that it holds
	estimate eventlog.Timestamp // the start that was told; 0: none
	behind   jobid.ID           // whose reservation it started before, by backfill; 0: none
}

// compareJobs is the order in which jobs are to start.
func compareJobs(a, b *job) int {
	return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.id, b.id))
}

// queue is the jobs that wait, in order. It is a slice: to put a job in its
// place moves those behind it, which costs little up to some 100 000 of them.
type queue []*job

// add puts a job in its place.
func (q *queue) add(j *job) {
	i, _ := slices.BinarySearchFunc(*q, j, compareJobs)
	*q = slices.Insert(*q, i, j)
}

// remove takes a job out.
func (q *queue) remove(j *job) {
	i, found := slices.BinarySearchFunc(*q, j, compareJobs)
	switch {
	case !found:
	case i == 0: // most are taken here, at no cost
		(*q)[0] = nil
		*q = (*q)[1:]
	default:
		*q = slices.Delete(*q, i, i+1)
	}
}

// sort puts all into order after priorities were changed.
func (q queue) sort() { slices.SortFunc(q, compareJobs) }

// first returns the job that is to start next, nil if none waits.
func (q queue) first() *job {
	if len(q) == 0 {
		return nil
	}
	return q[0]
}
