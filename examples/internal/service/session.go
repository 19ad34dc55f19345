package service

import "time"

// disconnect ends what a client has asked for: the broker tells that it is gone. There is
// no answer. An update that waits for others goes on.
func (s *Service) disconnect(r *Request) (any, error) {
	if r.Sender == "" {
		return nil, errLater
	}
	if s.sched.phase != 0 && s.sched.sender == r.Sender {
		s.sched.hello, s.sched.ready = nil, nil
		if err := s.schedLost(); err != nil {
			return nil, err
		}
	}
	if s.exec.hello.Service != "" && s.exec.sender == r.Sender {
		if err := s.execLost("disconnect"); err != nil {
			return nil, err
		}
	}
	gone := func(w *Request) bool { return w.Sender == r.Sender }
	s.removeEmpty(gone)
	s.waits.remove(gone)
	s.journal.remove(gone)
	for _, u := range s.updates {
		if gone(u.r) {
			u.r.Matchtag = 0
		}
	}
	return nil, errLater
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
var errUnloading = fail(enosys, "job-manager is unloading")
