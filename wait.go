package joblife

import (
	"cmp"
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
	jobs  map[jobid.ID]waitList
	empty waitList
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

// A waitList has waits by their States, so that it costs as many looks as there are different ones
// to see that none has an answer.
type waitList []sameStates

// sameStates are waits for the same states, in the order of their numbers; never none.
type sameStates struct {
	states jobstate.State
	list   []wait
}

func (l *waitList) add(in wait) {
	for i, s := range *l {
		if s.states == in.States {
			(*l)[i].list = append(s.list, in)
			return
		}
	}
	*l = append(*l, sameStates{in.States, []wait{in}})
}

// take removes the waits for states that are over, and returns them in the order of their numbers.
func (l *waitList) take(over func(jobstate.State) bool) (taken []wait) {
	*l = slices.DeleteFunc(*l, func(s sameStates) bool {
		if !over(s.states) {
			return false
		}
		taken = append(taken, s.list...)
		return true
	})
	slices.SortFunc(taken, func(a, b wait) int { return cmp.Compare(a.number, b.number) })
	return taken
}

// drop removes some waits.
func (l *waitList) drop(canceled func(wait) bool) {
	for i, s := range *l {
		(*l)[i].list = slices.DeleteFunc(s.list, canceled)
	}
	*l = slices.DeleteFunc(*l, func(s sameStates) bool { return len(s.list) == 0 })
}

// tagged are the waits with a tag.
type tagged struct {
	first uint64 // the number of the first: those before it are canceled
	n     int
}

// check refuses a wait that nothing can answer, or that would be one too many.
func (w *waits) check(kind string, tag uint64, states jobstate.State) error {
	switch {
	case tag == 0 || states == 0 || states&^(jobstate.StateNew|jobstate.StateActive|jobstate.StateInactive) != 0:
		return fmt.Errorf("%w: a %s needs a Tag and States", ErrInvalid, kind)
	case w.n >= maxWaits:
		return fmt.Errorf("%w: %d waits", ErrLimit, w.n)
	}
	return nil
}

func (w *waits) add(in Wait) {
	l := w.jobs[in.ID]
	l.add(w.begin(in))
	w.jobs = put(w.jobs, in.ID, l)
}

func (w *waits) begin(in Wait) wait {
	w.last++
	w.n++
	t := w.tags[in.Tag]
	if t.n++; t.n == 1 {
		t.first = w.last
	}
	w.tags = put(w.tags, in.Tag, t)
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

// event answers waits for the state that an event led to.
func (w *waits) event(o *outbox, id jobid.ID, name string, state jobstate.State) {
	list := w.jobs[id]
	if len(list) == 0 {
		return
	}
	over := state == jobstate.StateInactive || name == jobstate.EventInvalidate
	taken := list.take(func(states jobstate.State) bool { return over || state.In(states) })
	if w.jobs[id] = list; len(list) == 0 {
		delete(w.jobs, id)
	}
	for _, in := range taken {
		switch {
		case w.canceled(in):
		case state.In(in.States):
			w.end(o, Answer{Tag: in.Tag, Job: id, State: state})
		default:
			w.end(o, Answer{Tag: in.Tag, Job: id, State: state, Err: fmt.Errorf("%w: %v", ErrInactive, id)})
		}
	}
}

// answer answers each WaitEmpty whose time has come.
func (w *waits) answer(o *outbox, count func(jobstate.State) int) {
	if len(w.empty) == 0 {
		return
	}
	for _, in := range w.empty.take(func(states jobstate.State) bool { return count(states) == 0 }) {
		if !w.canceled(in) {
			w.end(o, Answer{Tag: in.Tag})
		}
	}
}

func (w *waits) cancel(tag uint64) {
	n := w.tags[tag].n
	delete(w.tags, tag)
	w.n -= n
	if w.stale += n; w.stale <= w.n+maxStale {
		return
	}
	for id, list := range w.jobs {
		list.drop(w.canceled)
		if w.jobs[id] = list; len(list) == 0 {
			delete(w.jobs, id)
		}
	}
	w.empty.drop(w.canceled)
}
