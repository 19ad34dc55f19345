package service

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/perilog/exec"
)

// An executor is the session with an executor (RFC 32).
type executor struct {
	hello  exec.Hello // the zero Hello: there is none
	sender string     // whose disconnect ends the session
	// starts has the jobs with a start request that has not had its last response.
	starts map[jobid.ID]bool
	queue  outbound
}

// execHello begins a session, unless an executor has jobs. The starts follow the answer. If
// nobody knows the senders, the same service comes back: its disconnect was ignored.
func (s *Service) execHello(r *Request) (any, error) {
	h, err := exec.Parse[exec.Hello](r.Payload)
	back := r.Sender == "" && s.exec.sender == "" && h == s.exec.hello
	switch {
	case err != nil:
		return nil, errProtocol
	case len(s.exec.starts) > 0 && !back:
		return nil, fail(exec.Busy, "")
	case len(s.exec.starts) > 0:
		if err := s.execLost("exec-hello"); err != nil {
			return nil, err
		}
	}
	if err := s.step(joblife.ExecHello{}); err != nil {
		return nil, err
	}
	s.endExec()
	s.exec.hello, s.exec.sender = h, r.Sender
	return nil, nil
}

// execLost ends the session. Jobs may run on.
func (s *Service) execLost(why string) error {
	note, err := json.Marshal(map[string]string{"note": why})
	if err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(s.exec.starts)) {
		v, ok := s.m.Job(id)
		if !ok || !v.Job().HasFlag("debug") {
			continue
		}
		if err := s.step(joblife.Post{By: s.self(), ID: id, Name: "debug.start-lost", Context: note}); err != nil {
			s.quick.logf("job %v: debug.start-lost: %v", id, err)
		}
	}
	if err := s.step(joblife.ExecLost{}); err != nil {
		return err
	}
	s.endExec()
	return nil
}

// endExec forgets a session: what is still to be sent to the executor is void.
func (s *Service) endExec() {
	over := s.exec.hello
	if s.exec = (executor{starts: make(map[jobid.ID]bool)}); over.Service != "" {
		s.void(over.StartTopic())
		s.void(over.ExpirationTopic())
	}
}

// started takes in a response to a start request. A failure means that the executor is gone.
func (s *Service) started(r Response) error {
	if s.exec.hello.Service == "" {
		return fmt.Errorf("%s: there is no such executor", r.Topic)
	}
	if r.Errnum != 0 {
		s.quick.logf("%s: errnum %d: %s: the executor is lost", r.Topic, r.Errnum, r.Errstr)
		return s.endSession(s.exec.sender, func() error { return s.execLost("start response error") })
	}
	m, err := exec.Parse[exec.Response](r.Payload)
	if err != nil {
		return err
	}
	err = s.step(joblife.ExecResponse(m))
	if err == nil && m.Type == exec.ResponseRelease && m.Final {
		delete(s.exec.starts, m.ID)
	}
	return err
}

// fillExec adds what a Ready says to the executor.
func (s *Service) fillExec(rd *joblife.Ready) {
	for _, m := range rd.Exec {
		topic, tag := s.exec.hello.StartTopic(), uint64(0)
		switch m := m.(type) {
		case exec.Start:
			s.exec.starts[m.ID] = true
		case exec.Expiration:
			topic = s.exec.hello.ExpirationTopic()
			tag = s.expect(topic, false, func(r Response) error { return s.expired(m.ID, r) })
		}
		s.exec.queue.add(func(out *Out) int {
			text, ok := encode(out, topic, exec.Append, m)
			if ok {
				out.Calls = append(out.Calls, Call{Tag: tag, Topic: topic, To: s.exec.sender, Nodeid: Any, Payload: text})
			}
			return len(text)
		})
	}
}

// expired takes in the executor's response to a new expiration. One that it does not obey is
// an exception of the job; a job that no longer runs does not mind.
func (s *Service) expired(id jobid.ID, r Response) error {
	v, ok := s.m.Job(id)
	if r.Errnum == 0 || !ok || v.State() != jobstate.StateRun {
		return nil
	}
	return s.step(joblife.Raise{
		By: s.self(), ID: id, Type: "exec", Severity: 1,
		Note: "failed to send expiration update to exec system: job termination may not coincide with expiration",
	})
}

// self is who acts where the service acts itself.
func (s *Service) self() joblife.Cred { return joblife.Cred{UserID: s.cfg.Manager.Owner} }
