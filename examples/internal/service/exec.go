package service

import (
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
	*core
	session
	hello exec.Hello // the zero Hello: there is none
	// starts has the jobs with a start request that has not had its last response.
	starts map[jobid.ID]bool
}

func (s *executor) online() bool { return s.hello.Service != "" }

// serveHello begins a session, unless an executor has jobs. The starts follow the answer. If
// neither sender is known and the hello is the same, the executor has come back: its
// disconnect was ignored.
func (s *executor) serveHello(r *Request, h exec.Hello) (any, error) {
	if len(s.starts) > 0 {
		if r.Sender != "" || s.sender != "" || h != s.hello {
			return nil, fail(exec.Busy, "")
		}
		if err := s.lost("exec-hello"); err != nil {
			return nil, err
		}
	}
	if err := s.step(joblife.ExecHello{}); err != nil {
		return nil, err
	}
	s.end()
	s.hello = h
	s.begin(s.core, r)
	return nil, nil
}

// lost ends the session. Jobs may run on.
func (s *executor) lost(why string) error {
	note := fmt.Appendf(nil, `{"note":%q}`, why)
	for _, id := range slices.Sorted(maps.Keys(s.starts)) {
		v, ok := s.m.Job(id)
		if !ok || !v.Job().HasFlag("debug") {
			continue
		}
		if err := s.step(joblife.Post{By: s.self(), ID: id, Name: "debug.start-lost", Context: note}); err != nil {
			s.quick.errorf("job %v: debug.start-lost: %v", id, err)
		}
	}
	if err := s.step(joblife.ExecLost{}); err != nil {
		return err
	}
	s.end()
	return nil
}

// end forgets the session, and drops what was not sent to the executor yet. A start has no
// response that waits by a tag.
func (s *executor) end() {
	over := s.hello
	if *s = (executor{core: s.core, starts: make(map[jobid.ID]bool)}); over.Service != "" {
		s.void(over.ExpirationTopic())
	}
}

// started handles a response to a start request. A failure means that the executor is gone.
func (s *executor) started(r Response) error {
	if !s.online() {
		return fmt.Errorf("%s: there is no such executor", r.Topic)
	}
	if r.Errnum != 0 {
		s.quick.errorf("%s: errnum %d: %s: the executor is lost", r.Topic, r.Errnum, r.Errstr)
		return s.drop(s.core, func() error { return s.lost("start response error") })
	}
	m, err := exec.Parse[exec.Response](r.Payload)
	if err != nil {
		return err
	}
	err = s.step(joblife.ExecResponse(m))
	if err == nil && m.Type == exec.ResponseRelease && m.Final {
		delete(s.starts, m.ID)
	}
	return err
}

func (s *executor) emit(rd *joblife.Ready) {
	if !s.live {
		return
	}
	for _, m := range rd.Exec {
		topic, tag := s.hello.StartTopic(), uint64(0)
		switch m := m.(type) {
		case exec.Start:
			s.starts[m.ID] = true
		case exec.Expiration:
			topic = s.hello.ExpirationTopic()
			tag = s.expect(topic, false, func(r Response) error { return s.expired(m.ID, r) })
		}
		call(&s.session, topic, tag, exec.Append, m)
	}
}

// expired handles the executor's response to a new expiration. If the executor refuses it,
// that raises an exception, unless the job no longer runs.
func (s *executor) expired(id jobid.ID, r Response) error {
	v, ok := s.m.Job(id)
	if r.Errnum == 0 || !ok || v.State() != jobstate.StateRun {
		return nil
	}
	return s.step(joblife.Raise{
		By: s.self(), ID: id, Type: "exec", Severity: 1,
		Note: "failed to send expiration update to exec system: job termination may not coincide with expiration",
	})
}
