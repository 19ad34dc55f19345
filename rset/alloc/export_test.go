package alloc

import "github.com/google/btree"

// CountComparisons has the lists of a queue that was never used add to *n how
// often they compare jobs.
func (q *Queue) CountComparisons(n *int) {
	count := func(a, b item) bool {
		*n++
		return before(a, b)
	}
	q.order.tree = btree.NewG(degree, count)
	for s := range q.in {
		q.in[s].tree = btree.NewG(degree, count)
	}
}
