package alloc

import (
	"iter"

	"github.com/google/btree"

	"github.com/joblife/joblife/internal/guard"
)

// CountComparisons has the lists of a queue that was never used add to *n how
// often they compare jobs.
func (q *Queue) CountComparisons(n *int) {
	count := func(a, b item) bool {
		*n++
		return before(a, b)
	}
	for s := range q.in {
		q.in[s].tree = btree.NewG(degree, count)
	}
}

// MaxPairs is how many jobs a Prioritize message names.
const MaxPairs = maxPairs

// SetMaxPairs makes a queue name fewer jobs in a Prioritize message.
func (q *Queue) SetMaxPairs(n int) { q.pairs = n }

// List returns an iterator over the jobs in one state, in queue order.
func (q *Queue) List(s State) iter.Seq[JobInfo] {
	return func(yield func(JobInfo) bool) {
		for _, in := range []State{stateClaimed, s} {
			if in == stateClaimed && s != StatePending {
				continue
			}
			for j := range q.in[in].all() {
				if !yield(j.JobInfo) {
					return
				}
			}
		}
	}
}

// State is the state of a job for people: a claim is not seen.
type State = state

// The states.
const (
	StatePending  = statePending
	StateBlocked  = stateBlocked
	StateSent     = stateSent
	StateRecalled = stateRecalled
	StateCanceled = stateCanceled
)

// String returns the state in lower case.
func (s state) String() string {
	return guard.Name("State", s, "pending", "blocked", "sent", "recalled", "canceled", "pending")
}

func (s state) seen() state {
	if s == stateClaimed {
		return statePending
	}
	return s
}

// States returns an iterator over the jobs and their states, in queue order: by
// priority, greatest first, then by id. Canceled jobs are left out. The queue must not
// change meanwhile. Each job takes log n steps and allocates nothing.
func (q *Queue) States() iter.Seq2[JobInfo, State] {
	return func(yield func(JobInfo, State) bool) {
		for j := q.after(nil); j != nil && yield(j.JobInfo, j.state.seen()); {
			j = q.after(j)
		}
	}
}

// after returns the job that follows another in queue order, or the first of all after
// nil; nil after the last.
func (q *Queue) after(j *job) (next *job) {
	for s := range q.in {
		if state(s) == stateCanceled || q.in[s].len() == 0 {
			continue
		}
		candidate := q.in[s].first()
		if j != nil {
			candidate = q.in[s].after(j)
		}
		if next == nil || precedes(candidate, next) {
			next = candidate
		}
	}
	return next
}

// after returns the first job behind another, nil if there is no such job. The other
// need not be in the list.
func (l *list) after(j *job) (next *job) {
	l.items().AscendGreaterOrEqual(itemOf(j), func(i item) bool {
		if i.job != j {
			next = i.job
		}
		return next == nil
	})
	return next
}
