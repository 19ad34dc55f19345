package main

import (
	"slices"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset/pool"
)

// maxTold is how many jobs a forecast tells their start.
const maxTold = 8

// jobsInPeriod is how many running jobs make the time between forecasts longer. It keeps
// their cost at some percent of a core.
const jobsInPeriod = 1000

// forecasting is a policy that tells the first jobs when they are to start, if the jobs
// before them end when they expire and none overtakes. A forecast costs more than many
// passes, so there is at most one in each period, and a longer one with more running jobs.
type forecasting struct {
	policy
	period eventlog.Timestamp // seconds; 0: no forecasts
	next   eventlog.Timestamp // no forecast before this time
	stale  bool               // the last forecast may be wrong
	told   []*job
}

func (f *forecasting) schedule(s *scheduler, arrived *job) {
	f.policy.schedule(s, arrived)
	if arrived == nil || len(s.waiting) <= maxTold || compareJobs(arrived, s.waiting[maxTold]) < 0 {
		f.stale = true
	}
	f.forecast(s)
}

// forecast tells the first jobs when they are to start, if that is due.
func (f *forecasting) forecast(s *scheduler) {
	if !f.stale || !s.ready || f.period == 0 || s.now < f.next {
		return
	}
	f.stale, f.next = false, s.now+f.period*max(1, eventlog.Timestamp(s.pool.Len())/jobsInPeriod)
	starts := newFuture(s.pool).starts(s.waiting[:min(len(s.waiting), maxTold)], s.now)
	told := slices.Clone(s.waiting[:len(starts)])
	for _, j := range f.told {
		if s.jobs[j.id] == j && !j.running && j.estimate > 0 && !slices.Contains(told, j) {
			s.annotate(j, 0)
		}
	}
	for i, j := range told {
		if j.estimate != starts[i] {
			s.annotate(j, starts[i])
		}
	}
	f.told = told
}

// future is a copy of the pool in which time goes on.
type future struct {
	pool *pool.Pool
	ends []end // of the jobs that end, in order
}

// end says when a job ends.
type end struct {
	at eventlog.Timestamp
	id jobid.ID
}

func newFuture(p *pool.Pool) *future {
	f := &future{pool: p.Clone()}
	for h := range f.pool.Holders() {
		if h.Expiration > 0 {
			f.ends = append(f.ends, end{h.Expiration, h.ID})
		}
	}
	slices.SortStableFunc(f.ends, compareEnds)
	return f
}

func compareEnds(a, b end) int {
	switch {
	case a.at < b.at:
		return -1
	case a.at > b.at:
		return 1
	}
	return 0
}

// starts returns when jobs start one after the other, as far as that can be known.
func (f *future) starts(jobs []*job, now eventlog.Timestamp) (starts []eventlog.Timestamp) {
	for _, j := range jobs {
		at, err := f.pool.Earliest(j.request, now)
		if err != nil {
			return starts
		}
		for len(f.ends) > 0 && f.ends[0].at <= at {
			must(f.pool.Free(f.ends[0].id, nil, true))
			f.ends = f.ends[1:]
		}
		r := must(f.pool.Alloc(j.id, j.request, at))
		if e := (end{r.Expiration(), j.id}); e.at > 0 {
			i, _ := slices.BinarySearchFunc(f.ends, e, compareEnds)
			f.ends = slices.Insert(f.ends, i, e)
		}
		starts = append(starts, at)
		now = at
	}
	return starts
}
