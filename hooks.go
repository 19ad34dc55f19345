package joblife

import (
	"fmt"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/internal/guard"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
)

// Hooks are functions that a Manager calls as jobs go on. Each may be nil. They are called in the
// order of Config.Hooks, after the event and before any decision that follows from it. A hook
// changes the Manager only by [HookEvent.Post]. A panic in Validate or Dependency counts as its
// error; another one becomes a [Fault], and the job goes on.
type Hooks struct {
	// Name is for faults.
	Name string

	// Restored is called first after a restart, for each job that is not over, in the order of ids.
	Restored func(*HookEvent)
	// Validate is called at a submission, before anything else. An error refuses the job:
	// Step returns it, and what hooks have posted is forgotten. ErrLater keeps the job in
	// NEW until the input [Validated]; of a second hook it is an error. After a restart
	// Validate is called again for a job in NEW; an error then invalidates it. It is not asked
	// of an [UpdateJobspec], after which an Event may raise an exception.
	Validate func(*HookEvent) error
	// Dependency is called for each dependency of a jobspec at a submission, and again after a
	// restart while the job is in NEW or DEPEND, even if the dependency is satisfied: the Job
	// of the View says so. It reports whether the scheme is its own; if so, no other hook is
	// asked. An error refuses the job; after a restart it raises an exception on the job. To
	// make the job wait, the hook posts a [DependencyAdd].
	Dependency func(*HookEvent, jobspec.Dependency) (bool, error)
	// Priority returns the priority of a job in PRIORITY, unless its urgency sets it.
	// Only the first hook with this function is asked. If later is true, the job keeps
	// the priority that was computed before, or waits for the input [SetPriority]. After a panic
	// it keeps that priority, or has the one of its urgency.
	Priority func(*HookEvent) (priority uint32, later bool)

	// Event is called after each event of a job.
	Event func(*HookEvent)
	// Inactive is called when a job becomes inactive, and Removed when it is purged: once, and
	// again after a restart if the crash came before the record was durable. The other jobs are
	// in [Manager.Jobs]. A crash may lose what the hook posted; Restored can post it again.
	Inactive func(*HookEvent)
	Removed  func(*HookEvent)
}

// ErrLater is returned by [Hooks.Validate] for a job that it validates later.
var ErrLater = fmt.Errorf("%w: validated later", ErrRefused)

// A HookEvent says what happened to a job. It is valid until the hook returns.
type HookEvent struct {
	// Job is the job. Its State is the one after the event; the rest may be ahead of it,
	// if events were logged together, such as free and clean.
	Job View
	// Entry is the event; zero for Restored, Validate, Dependency and Priority.
	Entry eventlog.Entry
	// Prev is the state before the event; 0 before submit.
	Prev jobstate.State

	m    *machine
	hook *Hooks
}

// Now returns the time of the Step.
func (e *HookEvent) Now() eventlog.Timestamp { return e.m.now }

// Lookup returns another job, active or inactive, durable or not, and false if it is
// unknown or purged. A job that is being submitted is unknown until its submit.
func (e *HookEvent) Lookup(id jobid.ID) (View, bool) { return e.m.view(id) }

// Ended returns what is known of an inactive job, or of a purged one that has a
// tombstone, and false for others.
func (e *HookEvent) Ended(id jobid.ID) (jobstate.Summary, bool) { return e.m.index.Ended(id) }

// Post queues an input behind the current event. The Manager dispatches it before it
// decides anything else. If the input is refused, that is a [Fault].
func (e *HookEvent) Post(in Input) {
	e.m.posts.push(post{in: in, hook: e.hook.Name, job: e.Job.ID()})
}

// PostAt queues an input for a time; [Manager.Deadline] follows it. A time that has passed
// means the next [Tick], NaN means never. The input is forgotten if the job is over by
// then, and at a restart: post it again in Restored.
func (e *HookEvent) PostAt(at eventlog.Timestamp, in Input) {
	if at != at {
		return
	}
	e.m.timers.serial++
	t := timer{due: due{at, e.m.timers.serial}, post: post{in: in, hook: e.hook.Name, job: e.Job.ID()}}
	e.m.inbox.staged = append(e.m.inbox.staged, t)
}

// An inbox has what hooks ask for, beside the posts.
type inbox struct {
	running *Hooks  // the hook that is called
	posting bool    // the input that is dispatched is from here
	staged  []timer // inputs for later that this input brought

	spare *HookEvent // for the next event; nil while a hook has it
}

func (m *machine) removed(rec jobstate.Summary) {
	m.keys.drop(rec.ID)
	for i := range m.cfg.Hooks {
		if h := &m.cfg.Hooks[i]; h.Removed != nil {
			m.callEvent(h, &HookEvent{Job: View{rec: rec}, m: m, hook: h}, h.Removed)
		}
	}
}

// call calls a hook, and returns false if it panicked.
func (m *machine) call(h *Hooks, j *job, f func(*HookEvent)) bool {
	return m.callEvent(h, &HookEvent{Job: View{table: &m.jobTable, j: j}, m: m, hook: h, Prev: j.state}, f)
}

func (m *machine) callEvent(h *Hooks, e *HookEvent, f func(*HookEvent)) bool {
	p := m.try(h, e, f)
	if p != nil {
		m.fault(h.Name, e.Job.ID(), fmt.Errorf("the hook panicked: %v", p))
	}
	return p == nil
}

// ask calls a hook that may refuse a job, which a panic does too.
func (m *machine) ask(h *Hooks, j *job, f func(*HookEvent) error) (err error) {
	e := &HookEvent{Job: View{table: &m.jobTable, j: j}, m: m, hook: h, Prev: j.state}
	if p := m.try(h, e, func(e *HookEvent) { err = f(e) }); p != nil {
		err = fmt.Errorf("hook %q panicked: %v", h.Name, p)
	}
	return err
}

// try calls a hook. A panic of the site's code must not stop the Manager.
func (m *machine) try(h *Hooks, e *HookEvent, f func(*HookEvent)) (panicked any) {
	last := m.inbox.running
	m.inbox.running = h
	defer func() {
		m.inbox.running = last
		panicked = recover()
	}()
	f(e)
	return nil
}

func (m *machine) event(j *job, entry eventlog.Entry, prev jobstate.State) {
	over := j.state == jobstate.StateInactive && prev != j.state
	e := m.inbox.spare
	if m.inbox.spare = nil; e == nil {
		e = new(HookEvent)
	}
	for i := range m.cfg.Hooks {
		h := &m.cfg.Hooks[i]
		if h.Event == nil && (h.Inactive == nil || !over) {
			continue
		}
		*e = HookEvent{Job: View{table: &m.jobTable, j: j}, Entry: entry, Prev: prev, m: m, hook: h}
		if h.Event != nil {
			m.callEvent(h, e, h.Event)
		}
		if h.Inactive != nil && over {
			m.callEvent(h, e, h.Inactive)
		}
	}
	*e = HookEvent{}
	m.inbox.spare = e
}

func (m *machine) dependencies(j *job) error {
	for d := range m.spec(j).Dependencies() {
		known := false
		for i := 0; i < len(m.cfg.Hooks) && !known; i++ {
			h := &m.cfg.Hooks[i]
			if h.Dependency == nil {
				continue
			}
			err := m.ask(h, j, func(e *HookEvent) (err error) { known, err = h.Dependency(e, d); return err })
			if err != nil {
				return fmt.Errorf("%w: %w", ErrRefused, err)
			}
		}
		if !known {
			return fmt.Errorf("%w: dependency scheme %s not supported", ErrRefused, guard.Quote(d.Scheme))
		}
	}
	return nil
}

func (m *machine) validate(j *job) error {
	for i := range m.cfg.Hooks {
		h := &m.cfg.Hooks[i]
		if h.Validate == nil {
			continue
		}
		err := m.ask(h, j, h.Validate)
		switch {
		case err == ErrLater && j.later:
			return fmt.Errorf("%w: the hook %s validates later, as one before it does: a Validated would be for both", ErrRefused, guard.Quote(h.Name))
		case err == ErrLater:
			j.later = true
		case err != nil:
			return fmt.Errorf("%w: %w", ErrRefused, err)
		}
	}
	return nil
}

// priority returns the priority of a job by RFC 30.
func (m *machine) priority(j *job) (uint32, bool) {
	urgency := j.job().Urgency()
	if urgency == jobstate.UrgencyHold || urgency == jobstate.UrgencyExpedite {
		return jobstate.PriorityOf(urgency, 0), true
	}
	for i := range m.cfg.Hooks {
		h := &m.cfg.Hooks[i]
		if h.Priority == nil {
			continue
		}
		var computed uint32
		later := false
		if !m.call(h, j, func(e *HookEvent) { computed, later = h.Priority(e) }) {
			break
		}
		if !later {
			j.computed, j.ranked = computed, true
		}
		return jobstate.PriorityOf(urgency, j.computed), j.ranked
	}
	if j.ranked {
		return jobstate.PriorityOf(urgency, j.computed), true
	}
	return jobstate.PriorityOf(urgency, uint32(urgency)), true
}
