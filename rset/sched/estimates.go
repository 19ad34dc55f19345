package sched

import (
	"encoding/json"
	"slices"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
)

// maxTold is how many jobs are told their start.
const maxTold = 8

type estimates struct {
	told, before []*job             // since reservations began anew, and before that
	next         eventlog.Timestamp // no forecast before this time
	stale        bool               // the last forecast may be wrong
}

// tellStart tells a job when it is to start.
func (s *Scheduler) tellStart(j *job, at eventlog.Timestamp) {
	if s.cfg.Annotate && len(s.told) < maxTold {
		s.told = append(s.told, j)
		if j == s.head { // the only job that knows its start
			s.recant()
		}
		s.annotate(j, at)
	}
}

// recant tells jobs that were not told anew that their start is not known any more.
func (s *Scheduler) recant() {
	for _, j := range s.before {
		if j.state == waits && !slices.Contains(s.told, j) {
			s.annotate(j, 0)
		}
	}
	clear(s.before)
	s.before = s.before[:0]
}

// tell ends a pass.
func (s *Scheduler) tell() {
	if s.fifo {
		// A job behind those that were told changes nothing for them.
		s.stale = s.stale || s.full || slices.ContainsFunc(s.fresh, func(j *job) bool { return !s.queue.beyond(j.key(), maxTold-1) })
		return
	}
	s.recant()
}

// Deadline returns when to call Decide even if nothing happens: a forecast is due.
func (s *Scheduler) Deadline() (eventlog.Timestamp, bool) {
	return s.next, s.forecasts() && s.stale
}

func (s *Scheduler) forecasts() bool {
	return s.fifo && s.ready && s.cfg.Annotate && s.cfg.Forecast > 0
}

// forecast tells the first jobs when they are to start under FIFO.
func (s *Scheduler) forecast() {
	if !s.forecasts() || !s.stale || s.now < s.next {
		return
	}
	s.stale, s.next = false, s.now+eventlog.Timestamp(s.cfg.Forecast.Seconds())
	var jobs []*job
	var starts []eventlog.Timestamp
	now := s.now
	for j := s.queue.first(nil); j != nil && len(jobs) < maxTold; j = s.queue.after(j.key(), nil) {
		at, err := s.pool.Plan(j.ID, j.Request, now)
		if err != nil {
			break
		}
		jobs, starts = append(jobs, j), append(starts, at)
		now = at
	}
	for _, j := range jobs {
		s.pool.Unplan(j.ID)
	}
	s.before, s.told = s.told, jobs
	s.recant()
	for i, j := range jobs {
		s.annotate(j, starts[i])
	}
}

// annotate sends when a waiting job is to start, 0 for not known any more, unless it knows.
func (s *Scheduler) annotate(j *job, at eventlog.Timestamp) {
	if j.estimate == at {
		return
	}
	sched := map[string]any{"t_estimate": nil, "reason_pending": nil}
	if j.estimate = at; at > 0 {
		sched = map[string]any{"t_estimate": at, "reason_pending": "insufficient resources"}
	}
	s.out = append(s.out, alloc.Response{ID: j.ID, Type: alloc.ResponseAnnotate, Annotations: annotations(sched)})
}

// summaryOf returns the annotations of an allocation, and takes back those of before.
func (s *Scheduler) summaryOf(j *job, r *rset.R) json.RawMessage {
	sched := map[string]any{"resource_summary": r.String()}
	if j.estimate > 0 {
		sched["t_estimate"], sched["reason_pending"] = nil, nil
	}
	behind := s.head
	if i := slices.IndexFunc(s.reserved, func(j *job) bool { return j.planned }); i >= 0 {
		behind = s.reserved[i]
	}
	if behind != nil {
		sched["backfill"] = behind.ID.String()
	}
	return annotations(sched)
}

// annotations returns the annotations of a scheduler.
func annotations(sched map[string]any) json.RawMessage {
	b, err := json.Marshal(map[string]any{"sched": sched})
	if err != nil {
		panic("sched: broken invariant: " + err.Error()) // strings, nulls and valid times
	}
	return b
}
