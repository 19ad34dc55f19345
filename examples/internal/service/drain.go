package service

import (
	"slices"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/examples/internal/errno"
	"github.com/joblife/joblife/jobstate"
)

// An emptyWait is a request that waits until there are no jobs in some states.
type emptyWait struct {
	*Request
	states jobstate.State
	tag    uint64 // of what the Manager was asked; 0: of nothing, since the scheduler has requests
}

// drain is answered when no job is active.
func (s *Service) drain(r *Request) (any, error) {
	return nil, s.waitEmpty(r, jobstate.StateNew|jobstate.StateActive)
}

// idle is answered when no job runs, and the scheduler has no requests.
func (s *Service) idle(r *Request) (any, error) { return nil, s.waitEmpty(r, jobstate.StateRunning) }

// maxEmpty limits how many wait for no jobs.
const maxEmpty = 1024

func (s *Service) waitEmpty(r *Request, states jobstate.State) error {
	if len(s.empty) >= maxEmpty {
		return fail(errno.Again, "%d requests wait for jobs to end", maxEmpty)
	}
	w := &emptyWait{Request: r.later(), states: states}
	if err := s.awaitEmpty(w); err != nil {
		return err
	}
	s.empty = append(s.empty, w)
	return errLater
}

// awaitEmpty asks the Manager to tell when there are no such jobs.
func (s *Service) awaitEmpty(w *emptyWait) error {
	return s.ask(func(tag uint64) joblife.Input {
		w.tag = tag
		return joblife.WaitEmpty{Tag: tag, States: w.states}
	}, func(joblife.Answer) {
		n := s.m.Stats()
		if w.states == jobstate.StateRunning && n.Queue.Sent+n.Queue.Recalled > 0 {
			w.tag = 0
			return
		}
		s.empty = slices.DeleteFunc(s.empty, func(o *emptyWait) bool { return o == w })
		var payload any
		if w.states == jobstate.StateRunning {
			pending := n.States[jobstate.StateNew]
			for _, state := range []jobstate.State{jobstate.StateDepend, jobstate.StatePriority, jobstate.StateSched} {
				pending += n.States[state]
			}
			payload = map[string]int{"pending": pending}
		}
		s.answer(&s.open, w.Request, payload)
	})
}

// calmed asks again for those who waited for the scheduler alone, when it has no requests.
func (s *Service) calmed() {
	calm := slices.ContainsFunc(s.empty, func(w *emptyWait) bool { return w.tag == 0 })
	if !calm {
		return
	}
	if q := s.m.Stats().Queue; q.Sent+q.Recalled > 0 {
		return
	}
	for _, w := range s.empty {
		if w.tag != 0 {
			continue
		}
		if err := s.awaitEmpty(w); err != nil {
			s.quick.logf("%s: %v", w.Topic, err)
			return
		}
	}
}

// removeEmpty takes out those who wait for no jobs.
func (s *Service) removeEmpty(which func(*Request) bool) (out []*Request) {
	s.empty = slices.DeleteFunc(s.empty, func(w *emptyWait) bool {
		if !which(w.Request) {
			return false
		}
		out = append(out, w.Request)
		if delete(s.asked, w.tag); w.tag != 0 {
			if err := s.step(joblife.WaitCancel{Tag: w.tag}); err != nil {
				s.quick.logf("%s: %v", w.Topic, err)
			}
		}
		return true
	})
	return out
}
