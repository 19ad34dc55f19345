package service

import (
	"errors"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/rset/alloc"
)

// A scheduler is the session with a scheduler (RFC 27).
type scheduler struct {
	*core
	processes *processes
	limits    *limits
	session
	phase        alloc.Phase // 0: there is no scheduler
	hello, ready *Request    // not answered yet
}

// serveHello begins a session. The jobs that hold resources are the answer, a stream.
func (s *scheduler) serveHello(r *Request, h alloc.Hello) (any, error) {
	if r.Single {
		return nil, errProtocol
	}
	if !h.PartialOK {
		if err := s.processes.endPartial(); err != nil {
			return nil, err
		}
	}
	if err := s.step(joblife.SchedHello(h)); err != nil {
		return nil, err
	}
	s.end()
	s.phase, s.hello = alloc.PhaseGreeting, r
	s.begin(s.core, r)
	return nil, errLater
}

// serveReady lets the service send requests to the scheduler that said hello.
func (s *scheduler) serveReady(r *Request, m alloc.Ready) (any, error) {
	if s.sender != r.Sender || s.step(joblife.SchedReady(m)) != nil { // there was no hello
		return nil, errProtocol
	}
	s.phase, s.ready = alloc.PhaseOnline, r
	return nil, errLater
}

func (s *scheduler) lost() error {
	if err := s.step(joblife.SchedLost{}); err != nil {
		return err
	}
	s.end()
	return nil
}

// end forgets the session, and drops what was not sent to the scheduler yet: else the next
// one would be asked twice for one job.
func (s *scheduler) end() {
	if s.hello != nil {
		s.quick.fail(s.hello, errNoData)
	}
	if s.ready != nil {
		s.quick.fail(s.ready, errProtocol)
	}
	online := s.phase != 0
	clear(s.limits.known) // no message of this session comes any more
	*s = scheduler{core: s.core, processes: s.processes, limits: s.limits}
	s.void("sched.") // also of before, when another answered for a scheduler
	if online {
		s.void("feasibility.")
	}
}

// allocated handles a response to sched.alloc. A failure means that the scheduler is gone; a
// late one says nothing of its successor. If a response is refused, the scheduler believes
// what is not so. That ends the session, and the next hello tells it what is held.
func (s *scheduler) allocated(r Response) error {
	if r.Errnum != 0 {
		if s.phase != alloc.PhaseOnline {
			return nil
		}
		s.quick.errorf("%s: errnum %d: %s: the scheduler is lost", r.Topic, r.Errnum, r.Errstr)
		return s.drop(s.core, s.lost)
	}
	m, err := alloc.Parse[alloc.Response](r.Payload)
	if err == nil {
		err = s.step(joblife.SchedResponse(m))
	}
	if err != nil && s.phase != 0 {
		err = errors.Join(err, s.drop(s.core, s.lost))
	}
	return err
}

func (s *scheduler) emit(rd *joblife.Ready) {
	if !s.live {
		return
	}
	if hello := s.hello; rd.Hello != nil && hello != nil {
		for _, h := range rd.Hello.Responses {
			s.add(func(out *Out) int { return reply(out, hello, h) })
		}
		s.add(func(out *Out) int {
			s.hello = nil
			out.fail(hello, errNoData)
			return 0
		})
	}
	for _, m := range rd.Sched {
		switch m.(type) {
		case alloc.ReadyResponse:
			s.add(func(out *Out) int {
				ready := s.ready
				if s.ready = nil; ready == nil {
					return 0
				}
				return reply(out, ready, m)
			})
		case alloc.Request:
			call(&s.session, alloc.TopicAlloc, 0, appendRedacted, m)
		case alloc.Cancel:
			call(&s.session, alloc.TopicCancel, 0, alloc.Append, m)
		case alloc.Prioritize:
			call(&s.session, alloc.TopicPrioritize, 0, alloc.Append, m)
		case alloc.Free:
			call(&s.session, alloc.TopicFree, 0, alloc.Append, m)
		case alloc.Expiration:
			s.expire(m)
		}
	}
}

// expire sends the one message with a response of its own.
func (s *scheduler) expire(m alloc.Message) {
	call(&s.session, alloc.TopicExpiration, s.expect(alloc.TopicExpiration, false, s.logFailure), alloc.Append, m)
}

// reply answers the scheduler with a message, and returns its length.
func reply(out *Out, r *Request, m alloc.Message) int {
	text, ok := encode(out, r.Topic, alloc.Append, m)
	if ok {
		out.answer(r, text)
	}
	return len(text)
}

// appendRedacted is alloc.Append without the environment in a jobspec.
func appendRedacted(dst []byte, m alloc.Message) ([]byte, error) {
	if r, ok := m.(alloc.Request); ok {
		r.Jobspec = redactSpec(r.Jobspec)
		m = r
	}
	return alloc.Append(dst, m)
}

// logFailure logs the failure of a Call whose response is needed for nothing else.
func (s *scheduler) logFailure(r Response) error {
	if r.Errnum != 0 {
		s.quick.errorf("%s: errnum %d: %s", r.Topic, r.Errnum, r.Errstr)
	}
	return nil
}
