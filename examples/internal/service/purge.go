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
	*Request
	limits purge.Limits
	batch  int        // 0: the request names a job
	ids    []jobid.ID // to remove; nil: those beyond the limits have to be counted
}

// The purges part has those requests.
type purges struct {
	*core
	list []*purging // in their order
	busy bool       // the first of them is under way
	gone []jobid.ID // jobs that were purged, for an event
}

// purge removes the oldest inactive jobs beyond limits, at most one batch. Without force
// it counts them all.
func (s *purges) purge(r *Request, p struct {
	Age   float64 `json:"age_limit"` // seconds; -1: none
	Num   int     `json:"num_limit"` // -1: none
	Batch int     `json:"batch"`
	Force bool    `json:"force"`
}) (any, error) {
	switch {
	case p.Age != -1 && p.Age < 0:
		return nil, fail(errno.Invalid, "if set, age limit must be >= 0")
	case p.Num != -1 && p.Num < 0:
		return nil, fail(errno.Invalid, "if set, num limit must be >= 0")
	case p.Batch < 1 || p.Batch > maxBatch:
		return nil, fail(errno.Invalid, "batch must be >= 1 and <= %d", maxBatch)
	}
	in := &purging{Request: r, batch: p.Batch}
	if p.Age != -1 {
		age := time.Duration(min(p.Age*float64(time.Second), float64(1<<62)))
		in.limits.MaxAge = jobstate.Some(age)
	}
	if p.Num != -1 {
		in.limits.MaxCount = jobstate.Some(p.Num)
	}
	if p.Force {
		return nil, s.await(in)
	}
	err := s.count(in, func(n int) { s.open.answer(r, purged(n)) })
	if err != nil {
		return nil, err
	}
	return nil, errLater
}

// purgeID removes one inactive job. Without force it only says whether it could.
func (s *purges) purgeID(r *Request, p struct {
	ID    jobid.ID `json:"id"`
	Force int      `json:"force"`
}) (any, error) {
	if p.Force != 0 {
		return nil, s.await(&purging{Request: r, ids: []jobid.ID{p.ID}})
	}
	err := s.step(joblife.PurgeIDs{By: r.cred(), IDs: []jobid.ID{p.ID}})
	return purged(1), unpurgeable(err)
}

func unpurgeable(err error) error {
	switch {
	case errors.Is(err, purge.ErrUnknown), errors.Is(err, purge.ErrPurged):
		return fail(errno.NoEntry, "id not found")
	case errors.Is(err, purge.ErrActive):
		return fail(errno.Invalid, "cannot purge active job")
	}
	return err
}

// await adds a request to those that wait. The error is errLater if it will be
// answered.
func (s *purges) await(in *purging) error {
	if len(s.list) >= maxPurges {
		return fail(errno.Again, "%d purges are under way", maxPurges)
	}
	s.list = append(s.list, in)
	s.next()
	return errLater
}

// next begins with the first request that waits, unless one is under way.
func (s *purges) next() {
	for !s.busy && len(s.list) > 0 {
		in := s.list[0]
		var err error
		switch {
		case in.ids == nil:
			err = s.count(in, func(n int) {
				s.busy, in.ids = false, s.oldest(min(n, in.batch))
				s.next()
			})
			s.busy = err == nil
		case len(in.ids) == 0:
			s.end(in, 0, nil)
		default:
			err = s.remove(in)
		}
		if err == errLater { // the Manager purges by its own limits; Done tries again
			if in.batch > 0 {
				in.ids = nil
			}
			return
		}
		if err != nil {
			s.end(in, 0, err)
		}
	}
}

// count asks how many jobs are beyond the limits of a request. f gets the number.
func (s *purges) count(in *purging, f func(int)) error {
	return s.ask(func(tag uint64) joblife.Input {
		return joblife.Purge{Tag: tag, By: in.cred(), Limits: in.limits}
	}, func(a joblife.Answer) { f(a.Count) })
}

// oldest returns the n oldest jobs that housekeeping does not keep.
func (s *purges) oldest(n int) []jobid.ID {
	ids, kept := []jobid.ID{}, make(map[jobid.ID]bool)
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

// remove removes the jobs of a request, all or none. The error is errLater if others are being removed.
func (s *purges) remove(in *purging) error {
	err := s.ask(func(tag uint64) joblife.Input {
		return joblife.PurgeIDs{Tag: tag, By: in.cred(), IDs: in.ids, Force: true}
	}, func(a joblife.Answer) {
		s.busy = false
		s.end(in, a.Count, a.Err)
		s.next()
	})
	if errors.Is(err, joblife.ErrLimit) || errors.Is(err, purge.ErrLeaving) {
		return errLater
	}
	s.busy = err == nil
	return unpurgeable(err)
}

// end answers the first request that waits.
func (s *purges) end(in *purging, n int, err error) {
	s.list = s.list[1:]
	if err != nil {
		s.quick.fail(in.Request, err)
		return
	}
	s.open.answer(in.Request, purged(n))
}

// stop fails the requests that wait, but not one whose jobs the store may be removing.
func (s *purges) stop() {
	begun := 0
	if s.busy && len(s.list) > 0 && s.list[0].ids != nil {
		begun = 1
	}
	for _, in := range s.list[begun:] {
		s.quick.fail(in.Request, errUnloading)
	}
	s.list = s.list[:begun]
}

// hooks note which jobs are purged, for an event.
func (s *purges) hooks() joblife.Hooks {
	return joblife.Hooks{Name: "purged", Removed: func(e *joblife.HookEvent) { s.gone = append(s.gone, e.Job.ID()) }}
}

func purged(n int) any { return map[string]int{"count": n} }

// events returns an event with the jobs that were purged since the last call.
func (s *purges) events() []Event {
	if len(s.gone) == 0 {
		return nil
	}
	jobs := s.gone
	s.gone = nil
	return []Event{{Topic: "job-purge-inactive", Payload: map[string][]jobid.ID{"jobs": jobs}}}
}
