package service

import (
	"slices"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/jobstate"
)

// counts are numbers of jobs, durable or not.
type counts struct {
	active  int // from submission to the end
	running int // of those, in RUN or CLEANUP
}

// counter returns hooks that count.
func (s *Service) counter() joblife.Hooks {
	move := func(from, to jobstate.State) {
		count := func(n *int, mask jobstate.State) {
			if from.In(mask) {
				*n--
			}
			if to.In(mask) {
				*n++
			}
		}
		count(&s.counts.active, jobstate.StateNew|jobstate.StateActive)
		count(&s.counts.running, jobstate.StateRunning)
	}
	return joblife.Hooks{
		Name:     "service counts",
		Restored: func(e *joblife.Event) { move(0, e.Job.State()) },
		Event: func(e *joblife.Event) {
			to := e.Job.State()
			if e.Entry.Name == jobstate.EventInvalidate {
				to = 0
			}
			move(e.Prev, to)
		},
	}
}

// An emptyWait is a request that is answered when there are no jobs of some kind.
type emptyWait struct {
	*Request
	idle bool // no running jobs; else no active ones
}

// drain is answered when no job is active.
func (s *Service) drain(r *Request) (any, error) {
	s.empty = append(s.empty, emptyWait{r.later(), false})
	return nil, errLater
}

// idle is answered when no job runs, and the scheduler has no request to answer.
func (s *Service) idle(r *Request) (any, error) {
	s.empty = append(s.empty, emptyWait{r.later(), true})
	return nil, errLater
}

// emptied answers those who have waited long enough. What they are told is durable when
// what has been decided so far is.
func (s *Service) emptied() {
	if len(s.empty) == 0 || s.counts.running > 0 {
		return
	}
	queue := s.m.Stats().Queue
	s.empty = slices.DeleteFunc(s.empty, func(w emptyWait) bool {
		switch {
		case !w.idle && s.counts.active == 0:
			s.answer(&s.open, w.Request, nil)
		case w.idle && queue.Sent+queue.Recalled == 0:
			s.answer(&s.open, w.Request, map[string]int{"pending": s.counts.active})
		default:
			return false
		}
		return true
	})
}
