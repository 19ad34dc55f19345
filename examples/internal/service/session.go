package service

import (
	"time"

	"github.com/joblife/joblife/examples/internal/errno"
)

// disconnect ends what a sender has asked for: the broker tells that it is gone. There is
// no answer.
func (s *Service) disconnect(r *Request) (any, error) {
	if r.Sender == "" {
		return nil, errLater
	}
	if err := s.leave(func(sender string) bool { return sender == r.Sender }); err != nil {
		return nil, err
	}
	return nil, errLater
}

// Leave ends what senders have asked for that are gone. The caller need not know which of
// them have.
func (s *Service) Leave(now time.Time, gone func(sender string) bool) error {
	s.at(now)
	return s.leave(gone)
}

// leave is Leave. An update that waits for others goes on.
func (s *Service) leave(is func(sender string) bool) error {
	if s.sched.phase != 0 && is(s.sched.sender) {
		s.sched.hello, s.sched.ready = nil, nil
		if err := s.schedLost(); err != nil {
			return err
		}
	}
	if s.exec.hello.Service != "" && is(s.exec.sender) {
		if err := s.execLost("disconnect"); err != nil {
			return err
		}
	}
	gone := func(w *Request) bool { return is(w.Sender) }
	s.removeEmpty(gone)
	s.waits.remove(gone)
	s.journal.remove(gone)
	for _, u := range s.updates {
		if gone(u.r) {
			u.r.Matchtag = 0
		}
	}
	return nil
}

// Stop answers all who wait: the process ends, and its jobs are for the next one. After it
// Next has what is left to store and to send.
func (s *Service) Stop(now time.Time) {
	s.at(now)
	all := func(*Request) bool { return true }
	for _, w := range append(s.removeEmpty(all), s.waits.remove(all)...) {
		s.fail(&s.quick, w, errUnloading)
	}
	for _, l := range s.journal.remove(all) {
		s.fail(&s.quick, l, errNoData)
	}
	s.endUpdates()
}

// errUnloading is for those who still wait when the process ends.
var errUnloading = fail(errno.NoSys, "job-manager is unloading")
