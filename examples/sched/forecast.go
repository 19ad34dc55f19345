package main

import (
	"slices"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/rset/pool"
)

// maxTold is how many jobs a forecast tells their start.
const maxTold = 8

// forecasting is a policy that tells the first jobs when they are to start, if the jobs
// before them end when they expire and none overtakes. A forecast costs more than many
// passes, so there is at most one in each period.
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
	f.stale, f.next = false, s.now+f.period
	at := starts(s.pool, s.waiting[:min(len(s.waiting), maxTold)], s.now)
	told := slices.Clone(s.waiting[:len(at)])
	for _, j := range f.told {
		if s.jobs[j.id] == j && !j.running && j.estimate > 0 && !slices.Contains(told, j) {
			s.annotate(j, 0)
		}
	}
	for i, j := range told {
		if j.estimate != at[i] {
			s.annotate(j, at[i])
		}
	}
	f.told = told
}

// starts returns when jobs start one after the other, as far as that can be known. The
// pool is as before then.
func starts(p *pool.Pool, jobs []*job, now eventlog.Timestamp) (list []eventlog.Timestamp) {
	for _, j := range jobs {
		at, err := p.Plan(j.id, j.request, now)
		if err != nil {
			break
		}
		list = append(list, at)
		now = at
	}
	for _, j := range jobs[:len(list)] {
		p.Unplan(j.id)
	}
	return list
}
