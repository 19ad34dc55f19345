package service

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/examples/internal/errno"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
)

// A scheduler is the session with a scheduler (RFC 27).
type scheduler struct {
	phase        alloc.Phase // 0: there is no scheduler
	sender       string      // whose disconnect ends the session
	hello, ready *Request    // not answered yet
	queue        outbound
}

// schedHello begins a session. The jobs that hold resources are the answer, a stream.
func (s *Service) schedHello(r *Request) (any, error) {
	h, err := alloc.Parse[alloc.Hello](r.Payload)
	if err != nil || r.Single {
		return nil, errProtocol
	}
	if !h.PartialOK {
		if err := s.endPartial(); err != nil {
			return nil, err
		}
	}
	if err := s.step(joblife.SchedHello(h)); err != nil {
		return nil, err
	}
	s.endSched()
	s.sched = scheduler{phase: alloc.PhaseGreeting, sender: r.Sender, hello: r.later()}
	return nil, errLater
}

// schedReady lets requests be sent to the one who said hello.
func (s *Service) schedReady(r *Request) (any, error) {
	m, err := alloc.Parse[alloc.Ready](r.Payload)
	if err != nil || s.sched.sender != r.Sender || s.step(joblife.SchedReady(m)) != nil { // there was no hello
		return nil, errProtocol
	}
	s.sched.phase, s.sched.ready = alloc.PhaseOnline, r.later()
	return nil, errLater
}

// schedLost ends the session.
func (s *Service) schedLost() error {
	if err := s.step(joblife.SchedLost{}); err != nil {
		return err
	}
	s.endSched()
	return nil
}

// endSched forgets a session: what is still to be sent to the scheduler is void. A new one
// would be asked twice for one job.
func (s *Service) endSched() {
	if s.sched.hello != nil {
		s.fail(&s.quick, s.sched.hello, errNoData)
	}
	if s.sched.ready != nil {
		s.fail(&s.quick, s.sched.ready, errProtocol)
	}
	online := s.sched.phase != 0
	if s.sched = (scheduler{}); online {
		s.void("sched.")
		s.void("feasibility.")
	}
}

// void drops the calls that go to somebody who is not there any more, and answers those that
// wait: an answer that comes later is of a session that is over.
func (s *Service) void(prefix string) {
	for _, o := range []*Out{&s.quick, &s.rest} {
		o.Calls = slices.DeleteFunc(o.Calls, func(c Call) bool { return strings.HasPrefix(c.Topic, prefix) })
	}
	for _, tag := range slices.Sorted(maps.Keys(s.calls)) {
		if w := s.calls[tag]; strings.HasPrefix(w.topic, prefix) {
			delete(s.calls, tag)
			if err := w.respond(Response{Topic: w.topic, Tag: tag, Errnum: errno.Unreachable, Errstr: "its session is over"}); err != nil {
				s.quick.logf("%s: %v", w.topic, err)
			}
		}
	}
}

// allocated takes in a response to sched.alloc. A failure means that the scheduler is gone;
// one that comes late says nothing of its successor. A response that is refused ends the
// session, since the scheduler believes what is not so: its next hello tells what is held.
func (s *Service) allocated(r Response) error {
	if r.Errnum != 0 {
		if s.sched.phase != alloc.PhaseOnline {
			return nil
		}
		s.quick.logf("%s: errnum %d: %s: the scheduler is lost", r.Topic, r.Errnum, r.Errstr)
		return s.endSession(s.sched.sender, s.schedLost)
	}
	m, err := alloc.Parse[alloc.Response](r.Payload)
	if err == nil {
		err = s.step(joblife.SchedResponse(m))
	}
	if err != nil && s.sched.phase != 0 {
		err = errors.Join(err, s.endSession(s.sched.sender, s.schedLost))
	}
	return err
}

// fillSched adds what a Ready says to the scheduler.
func (s *Service) fillSched(rd *joblife.Ready) {
	q := &s.sched.queue
	if hello := s.sched.hello; rd.Hello != nil && hello != nil {
		for _, h := range rd.Hello.Responses {
			q.add(func(out *Out) int {
				text, ok := encode(out, alloc.TopicHello, alloc.Append, alloc.Message(h))
				if ok {
					s.answer(out, hello, text)
				}
				return len(text)
			})
		}
		q.add(func(out *Out) int {
			s.sched.hello = nil
			s.fail(out, hello, errNoData)
			return 0
		})
	}
	for _, m := range rd.Sched {
		topic, tag := "", uint64(0)
		switch m.(type) {
		case alloc.ReadyResponse:
			q.add(func(out *Out) int {
				ready := s.sched.ready
				s.sched.ready = nil
				text, ok := encode(out, alloc.TopicReady, alloc.Append, m)
				if ok && ready != nil {
					s.answer(out, ready, text)
				}
				return len(text)
			})
			continue
		case alloc.Request:
			topic = alloc.TopicAlloc
		case alloc.Cancel:
			topic = alloc.TopicCancel
		case alloc.Prioritize:
			topic = alloc.TopicPrioritize
		case alloc.Free:
			topic = alloc.TopicFree
		case alloc.Expiration:
			topic = alloc.TopicExpiration // the one message with a response of its own
			tag = s.expect(topic, false, s.logFailure)
		}
		q.add(func(out *Out) int {
			m := m
			if r, ok := m.(alloc.Request); ok {
				r.Jobspec = redactSpec(r.Jobspec)
				m = r
			}
			text, ok := encode(out, topic, alloc.Append, m)
			if ok {
				out.Calls = append(out.Calls, Call{Tag: tag, Topic: topic, To: s.sched.sender, Nodeid: Any, Payload: text})
			}
			return len(text)
		})
	}
}

// logFailure is what a Call does with a response that matters to nobody else.
func (s *Service) logFailure(r Response) error {
	if r.Errnum != 0 {
		s.quick.logf("%s: errnum %d: %s", r.Topic, r.Errnum, r.Errstr)
	}
	return nil
}

// encode encodes a message. One that cannot be written is logged.
func encode[M any](out *Out, topic string, appendTo func([]byte, M) ([]byte, error), m M) (json.RawMessage, bool) {
	text, err := appendTo(nil, m)
	if err != nil {
		out.logf("%s: %v", topic, err)
	}
	return text, err == nil
}

// allocQuery counts the jobs that the scheduler has to do with.
func (s *Service) allocQuery(*Request) (any, error) {
	n := s.m.Stats()
	return struct {
		Queue   int `json:"queue_length"`
		Pending int `json:"alloc_pending"`
		Running int `json:"running"`
	}{n.Queue.Pending, n.Queue.Sent + n.Queue.Recalled, n.States[jobstate.StateRun] + n.States[jobstate.StateCleanup]}, nil
}

// resourceStatus tells what all jobs together hold of the scheduler's resources.
func (s *Service) resourceStatus(*Request) (any, error) {
	var list []*rset.R
	for _, r := range s.m.Allocated() {
		list = append(list, r)
	}
	all, err := union(list)
	if err != nil {
		return nil, fail(errno.Invalid, "%v", err)
	}
	return struct {
		Allocated *rset.R `json:"allocated"`
	}{all}, nil
}

// union returns what is in any of some sets of resources, without their times. Halves of the
// list make the work n log n.
func union(list []*rset.R) (*rset.R, error) {
	switch len(list) {
	case 0:
		return new(rset.R), nil
	case 1:
		return list[0].WithTimes(0, 0)
	}
	a, err := union(list[:len(list)/2])
	if err != nil {
		return nil, err
	}
	b, err := union(list[len(list)/2:])
	if err != nil {
		return nil, err
	}
	return rset.Union(a, b)
}
