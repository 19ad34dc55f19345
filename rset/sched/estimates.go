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

// estimates are the starts that jobs were told.
type estimates struct {
	told, telling []*job             // before this pass, and in it
	next          eventlog.Timestamp // no forecast before this time
	stale         bool               // the last forecast may be wrong
}

// tellStart tells a job when it is to start, unless it was told that.
func (s *Scheduler) tellStart(j *job, at eventlog.Timestamp) {
	if !s.cfg.Annotate || len(s.telling) == maxTold {
		return
	}
	s.telling = append(s.telling, j)
	if j.estimate != at {
		s.annotate(j, at)
	}
}

// tellHead is tellStart for the head of EASY, the only job that knows its start.
func (s *Scheduler) tellHead(j *job, at eventlog.Timestamp) {
	if !s.cfg.Annotate {
		return
	}
	s.telling = append(s.telling[:0], j)
	s.recant()
	if j.estimate != at {
		s.annotate(j, at)
	}
}

// recant tells jobs that their start is not known any more, unless they were told anew.
func (s *Scheduler) recant() {
	for _, j := range s.told {
		if j.state == waits && j.estimate > 0 && !slices.Contains(s.telling, j) {
			s.annotate(j, 0)
		}
	}
}

// tell ends a pass.
func (s *Scheduler) tell() {
	if _, ok := s.cfg.Policy.(FIFO); ok {
		// A job behind those that were told changes nothing for them.
		s.stale = s.stale || s.full || s.queue.n <= maxTold
		if !s.stale {
			behind := s.queue.at(maxTold).key()
			s.stale = slices.ContainsFunc(s.fresh, func(j *job) bool { return j.key().compare(behind) < 0 })
		}
		return
	}
	if s.full {
		s.recant()
		s.told, s.telling = s.telling, s.told[:0]
	}
}

// Deadline returns when to call Decide even if nothing happens: a forecast is due.
func (s *Scheduler) Deadline() (eventlog.Timestamp, bool) {
	return s.next, s.forecasts() && s.stale
}

func (s *Scheduler) forecasts() bool {
	_, ok := s.cfg.Policy.(FIFO)
	return ok && s.ready && s.cfg.Annotate && s.cfg.Forecast > 0
}

// forecast tells the first jobs when they are to start, if the jobs before them end when
// they expire and none overtakes. It is FIFO's.
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
	s.telling = append(s.telling[:0], jobs...)
	s.recant()
	for i, j := range jobs {
		if j.estimate != starts[i] {
			s.annotate(j, starts[i])
		}
	}
	s.told, s.telling = s.telling, s.told[:0]
}

// annotate sends when a waiting job is to start; 0 means that it is not known any more.
func (s *Scheduler) annotate(j *job, at eventlog.Timestamp) {
	sched := map[string]any{"t_estimate": nil, "reason_pending": nil}
	if j.estimate = at; at > 0 {
		sched = map[string]any{"t_estimate": at, "reason_pending": "insufficient resources"}
	}
	s.out = append(s.out, alloc.Response{ID: j.ID, Type: alloc.ResponseAnnotate, Annotations: annotations(sched)})
}

// summaryOf returns the annotations of an allocation. What was annotated while the job
// waited is taken back.
func summaryOf(j *job, r *rset.R, told bool) json.RawMessage {
	sched := map[string]any{"resource_summary": r.String()}
	if told {
		sched["t_estimate"], sched["reason_pending"] = nil, nil
	}
	if j.behind > 0 {
		sched["backfill"] = j.behind.String()
	}
	return annotations(sched)
}

// annotations returns the annotations of a scheduler, keys in order.
func annotations(sched map[string]any) json.RawMessage {
	b, err := json.Marshal(map[string]any{"sched": sched})
	if err != nil {
		panic("sched: broken invariant: " + err.Error()) // strings, nulls and valid times
	}
	return b
}
