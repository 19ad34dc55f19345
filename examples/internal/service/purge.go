package service

import (
	"errors"
	"time"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/examples/internal/errno"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/purge"
)

const (
	maxBatch  = 100  // jobs that a request to purge may ask for
	maxPurges = 1024 // requests that wait
)

// A purging is a request to purge that waits for others: the store removes one batch of
// jobs after the other.
type purging struct {
	Request
	limits purge.Limits
	batch  int
	id     jobid.ID // if the request names a job; it has no limits then
}

// purgeCount is the answer of requests to purge.
type purgeCount struct {
	Count int `json:"count"`
}

// purge removes the oldest inactive jobs beyond limits, at most one batch. Without force
// it counts them all.
func (s *Service) purge(r *Request) (any, error) {
	var p struct {
		Age   float64 `json:"age_limit"` // seconds; -1: none
		Num   int     `json:"num_limit"` // -1: none
		Batch int     `json:"batch"`
		Force bool    `json:"force"`
	}
	if err := r.decode(&p); err != nil {
		return nil, err
	}
	switch {
	case p.Age != -1 && p.Age < 0:
		return nil, fail(errno.Invalid, "if set, age limit must be >= 0")
	case p.Num != -1 && p.Num < 0:
		return nil, fail(errno.Invalid, "if set, num limit must be >= 0")
	case p.Batch < 1 || p.Batch > maxBatch:
		return nil, fail(errno.Invalid, "batch must be >= 1 and <= %d", maxBatch)
	}
	in := &purging{Request: *r.later(), batch: p.Batch}
	if p.Age != -1 {
		age := time.Duration(min(p.Age*float64(time.Second), float64(1<<62)))
		in.limits.MaxAge = jobstate.Some(age)
	}
	if p.Num != -1 {
		in.limits.MaxCount = jobstate.Some(p.Num)
	}
	if p.Force {
		return nil, s.awaitPurge(in)
	}
	err := s.count(in, func(n int) { s.answer(&s.open, r, purgeCount{n}) })
	if err != nil {
		return nil, err
	}
	return nil, errLater
}

// purgeID removes one inactive job. Without force it only says whether it could.
func (s *Service) purgeID(r *Request) (any, error) {
	var p struct {
		ID    jobid.ID `json:"id"`
		Force int      `json:"force"`
	}
	if err := r.decode(&p); err != nil {
		return nil, err
	}
	if p.Force != 0 {
		return nil, s.awaitPurge(&purging{Request: *r.later(), id: p.ID})
	}
	err := s.step(joblife.PurgeIDs{By: r.cred(), IDs: []jobid.ID{p.ID}})
	return purgeCount{1}, unpurgeable(err)
}

// unpurgeable returns the error of a job that cannot be purged.
func unpurgeable(err error) error {
	switch {
	case errors.Is(err, purge.ErrUnknown), errors.Is(err, purge.ErrPurged):
		return fail(errno.NoEntry, "id not found")
	case errors.Is(err, purge.ErrActive):
		return fail(errno.Invalid, "cannot purge active job")
	}
	return err
}

// awaitPurge adds a request to those that wait. The error is errLater if it will be
// answered.
func (s *Service) awaitPurge(in *purging) error {
	if len(s.purges) >= maxPurges {
		return fail(errno.Again, "%d purges are under way", maxPurges)
	}
	s.purges = append(s.purges, in)
	s.nextPurge()
	return errLater
}

// nextPurge begins with the first request that waits, unless one is under way.
func (s *Service) nextPurge() {
	for !s.purgeBusy && len(s.purges) > 0 {
		in := s.purges[0]
		var err error
		if in.id != 0 {
			err = s.remove(in, []jobid.ID{in.id})
		} else {
			err = s.count(in, func(n int) { s.removeOldest(in, n) })
			s.purgeBusy = err == nil
		}
		if err == errLater { // the Manager purges by its own limits; Done tries again
			return
		}
		if err != nil {
			s.endPurge(in, 0, err)
		}
	}
}

// count has f called with how many jobs are beyond the limits of a request.
func (s *Service) count(in *purging, f func(int)) error {
	return s.ask(func(tag uint64) joblife.Input {
		return joblife.Purge{Tag: tag, By: in.cred(), Limits: in.limits}
	}, func(a joblife.Answer) { f(a.Count) })
}

// removeOldest removes the oldest of n jobs.
func (s *Service) removeOldest(in *purging, n int) {
	s.purgeBusy = false
	ids := s.oldest(min(n, in.batch))
	var err error
	if len(ids) > 0 {
		err = s.remove(in, ids)
	}
	if len(ids) == 0 || err != nil && err != errLater {
		s.endPurge(in, 0, err)
		s.nextPurge()
	}
}

// oldest returns the n oldest jobs that housekeeping does not keep.
func (s *Service) oldest(n int) (ids []jobid.ID) {
	kept := make(map[jobid.ID]bool)
	for h := range s.m.Holders() {
		if h.Kind == perilog.HolderHousekeeping {
			kept[h.Job] = true
		}
	}
	for v := range s.m.Jobs(jobstate.StateInactive) {
		if len(ids) == n {
			break
		}
		if !kept[v.ID()] {
			ids = append(ids, v.ID())
		}
	}
	return ids
}

// remove removes jobs, all or none. The error is errLater if others are being removed.
func (s *Service) remove(in *purging, ids []jobid.ID) error {
	err := s.ask(func(tag uint64) joblife.Input {
		return joblife.PurgeIDs{Tag: tag, By: in.cred(), IDs: ids, Force: true}
	}, func(a joblife.Answer) {
		s.purgeBusy = false
		s.endPurge(in, a.Count, a.Err)
		s.nextPurge()
	})
	if errors.Is(err, joblife.ErrLimit) || errors.Is(err, purge.ErrLeaving) {
		return errLater
	}
	s.purgeBusy = err == nil
	return unpurgeable(err)
}

// endPurge answers the first request that waits.
func (s *Service) endPurge(in *purging, n int, err error) {
	s.purges = s.purges[1:]
	if err != nil {
		s.fail(&s.quick, &in.Request, err)
		return
	}
	s.answer(&s.open, &in.Request, purgeCount{n})
}

// removed is a hook that notes which jobs are purged, for an event.
func (s *Service) removed(e *joblife.Event) { s.gone = append(s.gone, e.Job.ID()) }

// purged tells which jobs were purged since the last call.
func (s *Service) purged() []Event {
	if len(s.gone) == 0 {
		return nil
	}
	jobs := s.gone
	s.gone = nil
	return []Event{{Topic: "job-purge-inactive", Payload: struct {
		Jobs []jobid.ID `json:"jobs"`
	}{jobs}}}
}
