package joblife

import (
	"fmt"
	"slices"

	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
)

const (
	maxWaits = 1 << 20
	maxStale = 1 << 10 // canceled ones in the lists, beside as many as wait
)

// waits are the inputs Wait and WaitEmpty without an answer. To look for those with a tag would
// take too long if all who wait leave, so the lists have canceled ones for a while.
type waits struct {
	jobs  map[jobid.ID][]wait
	empty []wait
	tags  map[uint64]tagged
	last  uint64 // the number of the last wait
	n     int
	stale int // canceled ones in the lists
}

// A wait is a Wait, or a WaitEmpty, which has no job.
type wait struct {
	Wait
	number uint64
}

// tagged are the waits with a tag.
type tagged struct {
	first uint64 // the number of the first: those before it are canceled
	n     int
}

// check refuses a wait that nothing can answer, or that would be one too many.
func (w *waits) check(in Wait) error {
	if in.Tag == 0 || in.States == 0 || !isMask(in.States) {
		return fmt.Errorf("%w: a Wait needs a Tag and States", ErrInvalid)
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
		w.jobs = make(map[jobid.ID][]wait)
	}
	w.jobs[in.ID] = append(w.jobs[in.ID], w.begin(in))
}

func (w *waits) begin(in Wait) wait {
	if w.tags == nil {
		w.tags = make(map[uint64]tagged)
	}
	w.last++
	w.n++
	t := w.tags[in.Tag]
	if t.n++; t.n == 1 {
		t.first = w.last
	}
	w.tags[in.Tag] = t
	return wait{in, w.last}
}

// end ends a wait with its answer.
func (w *waits) end(o *outbox, a Answer) {
	o.answer(a)
	w.n--
	if t := w.tags[a.Tag]; t.n > 1 {
		w.tags[a.Tag] = tagged{t.first, t.n - 1}
	} else {
		delete(w.tags, a.Tag)
	}
}

// canceled reports whether a wait of a list is canceled. The caller removes it then.
func (w *waits) canceled(in wait) bool {
	t, ok := w.tags[in.Tag]
	if ok && in.number >= t.first {
		return false
	}
	w.stale--
	return true
}

func (w *waits) addEmpty(in WaitEmpty) error {
	if in.Tag == 0 || in.States == 0 || !isMask(in.States) {
		return fmt.Errorf("%w: a WaitEmpty needs a Tag and States", ErrInvalid)
	}
	if err := w.full(); err != nil {
		return err
	}
	w.empty = append(w.empty, w.begin(Wait{Tag: in.Tag, States: in.States}))
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
		case w.canceled(in):
		case state.In(in.States):
			w.end(o, Answer{Tag: in.Tag, Job: id, State: state})
		case over:
			w.end(o, Answer{Tag: in.Tag, Job: id, State: state, Err: fmt.Errorf("%w: %v", ErrInactive, id)})
		default:
			left = append(left, in)
		}
	}
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
	w.empty = slices.DeleteFunc(w.empty, func(in wait) bool {
		if count(in.States) > 0 {
			return false
		}
		if !w.canceled(in) {
			w.end(o, Answer{Tag: in.Tag})
		}
		return true
	})
}

func (w *waits) cancel(tag uint64) {
	n := w.tags[tag].n
	delete(w.tags, tag)
	w.n -= n
	if w.stale += n; w.stale <= w.n+maxStale {
		return
	}
	for id, list := range w.jobs {
		if w.jobs[id] = slices.DeleteFunc(list, w.canceled); len(w.jobs[id]) == 0 {
			delete(w.jobs, id)
		}
	}
	w.empty = slices.DeleteFunc(w.empty, w.canceled)
}
