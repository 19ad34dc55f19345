package joblife

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/google/btree"

	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
)

const maxWaits = 1 << 20

// waits are the inputs Wait and WaitEmpty without an answer. Those for the same states of a job stand
// together, so that it costs as many looks as there are different ones to see that none has an answer.
type waits struct {
	byJob *btree.BTreeG[wait] // then by states and number
	byTag *btree.BTreeG[wait] // then by number
	last  uint64              // the number of the last wait
}

// A wait is a Wait, or a WaitEmpty, whose job is 0.
type wait struct {
	Wait
	number uint64
}

func newWaits() waits {
	return waits{
		byJob: btree.NewG(16, func(a, b wait) bool {
			return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.States, b.States), cmp.Compare(a.number, b.number)) < 0
		}),
		byTag: btree.NewG(16, func(a, b wait) bool {
			return cmp.Or(cmp.Compare(a.Tag, b.Tag), cmp.Compare(a.number, b.number)) < 0
		}),
	}
}

func (w *waits) len() int { return w.byJob.Len() }

// check refuses a wait that nothing can answer, or that would be one too many.
func (w *waits) check(kind string, tag uint64, states jobstate.State) error {
	switch {
	case tag == 0 || states == 0 || states&^(jobstate.StateNew|jobstate.StateActive|jobstate.StateInactive) != 0:
		return fmt.Errorf("%w: a %s needs a Tag and States", ErrInvalid, kind)
	case w.len() >= maxWaits:
		return fmt.Errorf("%w: %d waits", ErrLimit, w.len())
	}
	return nil
}

func (w *waits) add(in Wait) {
	w.last++
	w.byJob.ReplaceOrInsert(wait{in, w.last})
	w.byTag.ReplaceOrInsert(wait{in, w.last})
}

func (w *waits) remove(list []wait) {
	for _, in := range list {
		w.byJob.Delete(in)
		w.byTag.Delete(in)
	}
}

// take removes the waits for states of a job that are over, and returns them in the order of their numbers.
func (w *waits) take(id jobid.ID, over func(jobstate.State) bool) (taken []wait) {
	from := wait{Wait: Wait{ID: id}}
	for more := true; more; {
		more = false
		w.byJob.AscendGreaterOrEqual(from, func(in wait) bool {
			switch {
			case in.ID != id:
				return false
			case !over(in.States): // so it is for the others of these states
				from, more = wait{in.Wait, math.MaxUint64}, true
				return false
			}
			taken = append(taken, in)
			return true
		})
	}
	w.remove(taken)
	slices.SortFunc(taken, func(a, b wait) int { return cmp.Compare(a.number, b.number) })
	return taken
}

// event answers waits for the state that an event led to.
func (w *waits) event(o *outbox, id jobid.ID, name string, state jobstate.State) {
	if w.len() == 0 {
		return
	}
	over := state == jobstate.StateInactive || name == jobstate.EventInvalidate
	for _, in := range w.take(id, func(states jobstate.State) bool { return over || state.In(states) }) {
		a := Answer{Tag: in.Tag, Job: id, State: state}
		if !state.In(in.States) {
			a.Err = fmt.Errorf("%w: %v", ErrInactive, id)
		}
		o.answer(a)
	}
}

// answer answers each WaitEmpty whose time has come.
func (w *waits) answer(o *outbox, count func(jobstate.State) int) {
	for _, in := range w.take(0, func(states jobstate.State) bool { return count(states) == 0 }) {
		o.answer(Answer{Tag: in.Tag})
	}
}

func (w *waits) cancel(tag uint64) {
	var list []wait
	w.byTag.AscendGreaterOrEqual(wait{Wait: Wait{Tag: tag}}, func(in wait) bool {
		if in.Tag != tag {
			return false
		}
		list = append(list, in)
		return true
	})
	w.remove(list)
}
