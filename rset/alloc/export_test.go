package alloc

import (
	"iter"

	"github.com/google/btree"
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
