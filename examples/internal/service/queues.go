package service

import (
	"maps"
	"slices"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/examples/internal/errno"
	"github.com/joblife/joblife/rset/alloc"
)

// A Queue is what the service knows of a named queue.
type Queue struct {
	// Requires are the properties of the queue's nodes.
	Requires []string
	// Limits override those of all jobs, each that is set.
	Limits Limits
}

// queues returns the names of the named queues, in order.
func (c *Config) queues() []string { return slices.Sorted(maps.Keys(c.Queues)) }

// queue returns the state of a queue.
func (s *Service) queue(name string) (joblife.QueueStatus, error) {
	q, ok := s.m.Queue(name)
	switch {
	case ok:
		return q, nil
	case name == "":
		return q, fail(errno.Invalid, "a named queue is required")
	}
	return q, fail(errno.Invalid, "'%s' is not a valid queue", name)
}

// admits returns why a queue takes no jobs.
func (s *Service) admits(name string) error {
	q, err := s.queue(name)
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
	return s.queue(deref(name))
}

// queueList answers with the names of the named queues.
func (s *Service) queueList(*Request) (any, error) {
	return map[string]any{"queues": append([]string{}, s.cfg.queues()...)}, nil
}

// queueStatus answers with the state of a queue.
func (s *Service) queueStatus(r *Request) (any, error) {
	var p struct {
		Name *string `json:"name,omitempty"`
	}
	if err := r.decode(&p); err != nil {
		return nil, err
	}
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
func (s *Service) queueEnable(r *Request) (any, error) {
	var p struct {
		Name   *string `json:"name,omitempty"`
		Enable bool    `json:"enable"`
		Reason *string `json:"reason,omitempty"`
		All    bool    `json:"all"`
	}
	if err := r.decode(&p); err != nil {
		return nil, err
	}
	if !p.Enable && p.Reason == nil {
		return nil, fail(errno.Invalid, "reason is required for disable")
	}
	return nil, s.eachQueue(p.Name, p.All, func(name string) joblife.Input {
		return joblife.EnableQueue{By: r.cred(), Queue: name, Enable: p.Enable, Reason: deref(p.Reason)}
	})
}

// queueStart lets a queue send jobs to the scheduler, or not.
func (s *Service) queueStart(r *Request) (any, error) {
	var p struct {
		Name     *string `json:"name,omitempty"`
		Start    bool    `json:"start"`
		Reason   *string `json:"reason,omitempty"`
		All      bool    `json:"all"`
		Volatile bool    `json:"nocheckpoint,omitempty"`
	}
	if err := r.decode(&p); err != nil {
		return nil, err
	}
	return nil, s.eachQueue(p.Name, p.All, func(name string) joblife.Input {
		return joblife.StartQueue{By: r.cred(), Queue: name, Start: p.Start, Reason: deref(p.Reason), Volatile: p.Volatile}
	})
}

// eachQueue gives the Manager an input for a queue, or for each one.
func (s *Service) eachQueue(name *string, all bool, in func(string) joblife.Input) error {
	names := s.cfg.queues()
	switch {
	case name != nil:
		if _, err := s.queueOf(name); err != nil {
			return err
		}
		names = []string{*name}
	case len(names) == 0:
		names = []string{""}
	case !all:
		return fail(errno.Invalid, "Use --all to apply this command to all queues")
	}
	for _, name := range names {
		if err := s.step(in(name)); err != nil {
			return err
		}
	}
	return nil
}

// stopQueues stops the queues that a restart finds started.
func (s *Service) stopQueues() error {
	return s.eachQueue(nil, true, func(name string) joblife.Input {
		q, _ := s.m.Queue(name)
		if q.Started {
			q.StopReason = "Automatically stopped due to restart"
		}
		return joblife.StartQueue{By: s.self(), Queue: name, Reason: q.StopReason}
	})
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// configReload takes in a new configuration, as a whole or not at all.
func (s *Service) configReload(r *Request) (any, error) {
	if s.cfg.Parse == nil {
		return nil, fail(errno.NoSys, "")
	}
	if r.decode(&struct{}{}) != nil {
		return nil, fail(errno.Protocol, "Error unpacking config-reload request")
	}
	cfg, err := s.cfg.Parse(s.cfg, r.Payload)
	if err == nil {
		err = s.step(joblife.Reload{Config: s.manager(cfg)})
	}
	if err != nil {
		return nil, fail(errno.Invalid, "%s", err)
	}
	s.cfg = cfg
	s.quick.Log = append(s.quick.Log, cfg.Warnings...)
	return nil, nil
}
