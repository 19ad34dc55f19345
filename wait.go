package joblife

import (
	"fmt"
	"slices"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
)

const maxWaits = 1 << 20

// waits are those who wait for jobs.
type waits struct {
	jobs  map[jobid.ID][]Wait
	empty []WaitEmpty
	n     int
}

func (in Wait) dispatch(m *Manager) error      { return m.waits.add(m, in) }
func (in WaitEmpty) dispatch(m *Manager) error { return m.waits.addEmpty(in) }

// add adds a wait, or answers it if the answer is known.
func (w *waits) add(m *Manager, in Wait) error {
	if in.Tag == 0 || in.States == 0 && in.Event == "" || !isMask(in.States) {
		return fmt.Errorf("%w: a Wait needs a Tag, and States or an Event", ErrInvalid)
	}
	if w.n >= maxWaits {
		return fmt.Errorf("%w: %d waits", ErrLimit, w.n)
	}
	v, ok := m.As(in.By).Job(in.ID)
	if !ok {
		m.answer(Answer{Tag: in.Tag, Job: in.ID, Err: fmt.Errorf("%w: %v", ErrUnknown, in.ID)})
		return nil
	}
	if v.State().In(in.States) || in.Event != "" && v.j != nil && m.has(v.j, in.Event) {
		m.answer(Answer{Tag: in.Tag, Job: in.ID, State: v.State()})
		return nil
	}
	if v.State() == jobstate.StateInactive {
		m.answer(Answer{Tag: in.Tag, Job: in.ID, State: v.State(), Err: fmt.Errorf("%w: %v", ErrInactive, in.ID)})
		return nil
	}
	if w.jobs == nil {
		w.jobs = make(map[jobid.ID][]Wait)
	}
	w.jobs[in.ID] = append(w.jobs[in.ID], in)
	w.n++
	return nil
}

func isMask(mask jobstate.State) bool {
	return mask&^(jobstate.StateNew|jobstate.StateActive|jobstate.StateInactive) == 0
}

// has reports whether a job's log has an event, durable or not.
func (m *Manager) has(j *job, name string) bool {
	in := func(log []byte) bool {
		for e, err := range eventlog.Entries(log) {
			if err == nil && e.Name == name {
				return true
			}
		}
		return false
	}
	of := func(r Record) bool { return r.Job == j.id && r.Kind == RecordEvent && in(r.Data) }
	return in(j.log) || slices.ContainsFunc(m.sent.Append, of) || slices.ContainsFunc(m.out.Append, of)
}

// event answers those who waited for an event, or for the state that it led to.
func (w *waits) event(m *Manager, j *job, name string) {
	list := w.jobs[j.id]
	if len(list) == 0 {
		return
	}
	over := j.state == jobstate.StateInactive || j.job().Closed()
	left := list[:0]
	for _, in := range list {
		switch {
		case j.state.In(in.States), name == in.Event:
			m.answer(Answer{Tag: in.Tag, Job: j.id, State: j.state})
		case over:
			m.answer(Answer{Tag: in.Tag, Job: j.id, State: j.state, Err: fmt.Errorf("%w: %v", ErrInactive, j.id)})
		default:
			left = append(left, in)
		}
	}
	w.n -= len(list) - len(left)
	clear(list[len(left):])
	if w.jobs[j.id] = left; len(left) == 0 {
		delete(w.jobs, j.id)
	}
}

func (w *waits) addEmpty(in WaitEmpty) error {
	switch {
	case in.Tag == 0 || in.States == 0 || !isMask(in.States):
		return fmt.Errorf("%w: a WaitEmpty needs a Tag and States", ErrInvalid)
	case w.n >= maxWaits:
		return fmt.Errorf("%w: %d waits", ErrLimit, w.n)
	}
	w.empty = append(w.empty, in)
	w.n++
	return nil
}

// answer answers those who wait until no job is in some states.
func (w *waits) answer(m *Manager) {
	if len(w.empty) == 0 {
		return
	}
	n := len(w.empty)
	w.empty = slices.DeleteFunc(w.empty, func(in WaitEmpty) bool {
		if m.count(in.States) > 0 {
			return false
		}
		m.answer(Answer{Tag: in.Tag})
		return true
	})
	w.n -= n - len(w.empty)
}

func (c WaitCancel) dispatch(m *Manager) error {
	w, n := &m.waits, 0
	for id, list := range w.jobs {
		list = slices.DeleteFunc(list, func(in Wait) bool { return in.Tag == c.Tag })
		if w.jobs[id] = list; len(list) == 0 {
			delete(w.jobs, id)
		}
		n += len(list)
	}
	w.empty = slices.DeleteFunc(w.empty, func(in WaitEmpty) bool { return in.Tag == c.Tag })
	w.n = n + len(w.empty)
	return nil
}
