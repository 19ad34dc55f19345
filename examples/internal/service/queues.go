package service

import (
	"cmp"
	"encoding/json"
	"errors"
	"strings"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/examples/internal/errno"
	"github.com/joblife/joblife/examples/internal/strict"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/rset/alloc"
)

func (s *Service) queueState(name string) (joblife.QueueStatus, error) {
	q, ok := s.m.Queue(name)
	switch {
	case ok:
		return q, nil
	case name == "":
		return q, fail(errno.Invalid, "a named queue is required")
	}
	return q, fail(errno.Invalid, "'%s' is not a valid queue", name)
}

func (s *Service) admits(name string) error {
	q, err := s.queueState(name)
	switch {
	case err != nil || q.Enabled:
		return err
	case name == "":
		return fail(errno.Invalid, "job submission is disabled: %s", q.DisableReason)
	}
	return fail(errno.Invalid, "job submission to %s is disabled: %s", name, q.DisableReason)
}

// queueOf returns the state of the queue that a request names, or of the anonymous one.
func (s *Service) queueOf(name *string) (joblife.QueueStatus, error) {
	if name != nil && *name == "" {
		return joblife.QueueStatus{}, fail(errno.Invalid, "'' is not a valid queue")
	}
	return s.queueState(deref(name))
}

func (s *Service) queueList(*Request) (any, error) {
	return map[string]any{"queues": append([]string{}, s.cfg.queues()...)}, nil
}

func (s *Service) queueStatus(r *Request, p struct {
	Name *string `json:"name,omitempty"`
}) (any, error) {
	q, err := s.queueOf(p.Name)
	if err != nil {
		return nil, err
	}
	if s.sched.phase != alloc.PhaseOnline {
		q.Started, q.StopReason = false, "Scheduler is offline"
	}
	answer := map[string]any{"enable": q.Enabled, "start": q.Started}
	if !q.Enabled {
		answer["disable_reason"] = q.DisableReason
	}
	if !q.Started && q.StopReason != "" {
		answer["stop_reason"] = q.StopReason
	}
	return answer, nil
}

// queueEnable lets a queue take jobs, or not.
func (s *Service) queueEnable(r *Request, p struct {
	Name   *string `json:"name,omitempty"`
	Enable bool    `json:"enable"`
	Reason *string `json:"reason,omitempty"`
	All    bool    `json:"all"`
}) (any, error) {
	if !p.Enable && p.Reason == nil {
		return nil, fail(errno.Invalid, "reason is required for disable")
	}
	names, err := s.queuesOf(p.Name, p.All)
	for _, name := range names {
		if err == nil {
			err = s.step(joblife.EnableQueue{By: r.cred(), Queue: name, Enable: p.Enable, Reason: deref(p.Reason)})
		}
	}
	return nil, err
}

// queueStart lets a queue send jobs to the scheduler, or not.
func (s *Service) queueStart(r *Request, p struct {
	Name     *string `json:"name,omitempty"`
	Start    bool    `json:"start"`
	Reason   *string `json:"reason,omitempty"`
	All      bool    `json:"all"`
	Volatile bool    `json:"nocheckpoint,omitempty"`
}) (any, error) {
	names, err := s.queuesOf(p.Name, p.All)
	if err != nil {
		return nil, err
	}
	return nil, s.step(joblife.StartQueue{
		By: r.cred(), Queue: names[0], All: len(names) > 1, Start: p.Start, Reason: deref(p.Reason), Volatile: p.Volatile,
	})
}

// queuesOf returns the queue that a request names, or all, of which there is at least one.
func (s *Service) queuesOf(name *string, all bool) ([]string, error) {
	names := s.cfg.queues()
	switch {
	case name != nil:
		_, err := s.queueOf(name)
		return []string{*name}, err
	case len(names) == 0:
		return []string{""}, nil
	case !all:
		return nil, fail(errno.Invalid, "Use --all to apply this command to all queues")
	}
	return names, nil
}

// stopQueues stops the queues that a restart finds started.
func (s *Service) stopQueues() error {
	names, err := s.queuesOf(nil, true)
	for _, name := range names {
		q, _ := s.m.Queue(name)
		if q.Started {
			q.StopReason = "Automatically stopped due to restart"
		}
		if err == nil {
			err = s.step(joblife.StartQueue{By: s.self(), Queue: name, Reason: q.StopReason})
		}
	}
	return err
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// A submission is one job of a request.
type submission struct {
	ID      jobid.ID           `json:"id"`
	Urgency int                `json:"urgency"`
	UserID  userID             `json:"userid"`
	Time    eventlog.Timestamp `json:"t_submit"`
	Flags   jobstate.Flags     `json:"flags"`
	Jobspec json.RawMessage    `json:"jobspec"`
}

// submit submits jobs that job-ingest has checked. A job that is refused stops no other, but
// one that cannot be decoded stops all.
func (s *Service) submit(r *Request, p struct {
	Jobs json.RawMessage `json:"jobs"`
}) (any, error) {
	var list []submission
	err := strict.Elements(p.Jobs, func(text json.RawMessage) error {
		var j submission
		if err := strict.Unmarshal(text, &j); err != nil {
			return err
		}
		list = append(list, j)
		return nil
	})
	if err != nil {
		return nil, errProtocol
	}
	refused := [][2]any{}
	for _, j := range list {
		if _, ok := s.m.Jobspec(j.ID); ok {
			continue // it was stored before a restart, and is submitted again
		}
		err := s.step(joblife.Submit{
			By: joblife.Cred{UserID: uint32(j.UserID)}, // job-ingest has checked what a guest may ask for
			ID: j.ID, Jobspec: j.Jobspec, Urgency: j.Urgency, Flags: j.Flags,
			Time: j.Time,
		})
		if err != nil {
			refused = append(refused, [2]any{j.ID, s.refusal(&j, err)})
		}
	}
	return map[string][][2]any{"errors": refused}, nil
}

// refusal returns the words for a job that was refused, as its user sees them.
func (s *Service) refusal(j *submission, err error) string {
	if !errors.Is(err, joblife.ErrRefused) {
		_, text := explain(err)
		return text
	}
	// The Manager asks the queue before it asks hooks.
	if spec, bad := jobspec.Parse(j.Jobspec); bad == nil {
		if closed := s.admits(spec.Queue()); closed != nil {
			err = closed
		}
	}
	var f *failure
	if errors.As(err, &f) {
		return f.text
	}
	return cmp.Or(strings.TrimPrefix(err.Error(), joblife.ErrRefused.Error()+": "), "rejected by plugin")
}
