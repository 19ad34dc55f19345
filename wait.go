package joblife

import (
	"fmt"
	"slices"

	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
)

const maxWaits = 1 << 20

// waits are the inputs Wait and WaitEmpty without an answer.
type waits struct {
	jobs  map[jobid.ID][]Wait
	empty []WaitEmpty
	n     int
}

// check refuses a wait that nothing can answer, or that would be one too many.
func (w *waits) check(in Wait) error {
	if in.Tag == 0 || in.States == 0 && in.Event == "" || !isMask(in.States) {
		return fmt.Errorf("%w: a Wait needs a Tag, and States or an Event", ErrInvalid)
	}
	return w.full()
}

func (w *waits) full() error {
	if w.n >= maxWaits {
		return fmt.Errorf("%w: %d waits", ErrLimit, w.n)
	}
	return nil
}

func (w *waits) add(in Wait) {
	if w.jobs == nil {
		w.jobs = make(map[jobid.ID][]Wait)
	}
	w.jobs[in.ID] = append(w.jobs[in.ID], in)
	w.n++
}

func (w *waits) addEmpty(in WaitEmpty) error {
	if in.Tag == 0 || in.States == 0 || !isMask(in.States) {
		return fmt.Errorf("%w: a WaitEmpty needs a Tag and States", ErrInvalid)
	}
	if err := w.full(); err != nil {
		return err
	}
	w.empty = append(w.empty, in)
	w.n++
	return nil
}

func isMask(mask jobstate.State) bool {
	return mask&^(jobstate.StateNew|jobstate.StateActive|jobstate.StateInactive) == 0
}

// event answers waits for an event, and for the state that it led to.
func (w *waits) event(o *outbox, id jobid.ID, name string, state jobstate.State) {
	list := w.jobs[id]
	if len(list) == 0 {
		return
	}
	over := state == jobstate.StateInactive || name == jobstate.EventInvalidate
	left := list[:0]
	for _, in := range list {
		switch {
		case state.In(in.States), name == in.Event:
			o.answer(Answer{Tag: in.Tag, Job: id, State: state})
		case over:
			o.answer(Answer{Tag: in.Tag, Job: id, State: state, Err: fmt.Errorf("%w: %v", ErrInactive, id)})
		default:
			left = append(left, in)
		}
	}
	w.n -= len(list) - len(left)
	clear(list[len(left):])
	if w.jobs[id] = left; len(left) == 0 {
		delete(w.jobs, id)
	}
}

// answer answers each WaitEmpty whose time has come.
func (w *waits) answer(o *outbox, count func(jobstate.State) int) {
	if len(w.empty) == 0 {
		return
	}
	n := len(w.empty)
	w.empty = slices.DeleteFunc(w.empty, func(in WaitEmpty) bool {
		if count(in.States) > 0 {
			return false
		}
		o.answer(Answer{Tag: in.Tag})
		return true
	})
	w.n -= n - len(w.empty)
}

func (w *waits) cancel(tag uint64) {
	n := 0
	for id, list := range w.jobs {
		list = slices.DeleteFunc(list, func(in Wait) bool { return in.Tag == tag })
		if w.jobs[id] = list; len(list) == 0 {
			delete(w.jobs, id)
		}
		n += len(list)
	}
	w.empty = slices.DeleteFunc(w.empty, func(in WaitEmpty) bool { return in.Tag == tag })
	w.n = n + len(w.empty)
}
