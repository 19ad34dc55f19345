package alloc

import (
	"iter"

	"github.com/google/btree"

	"github.com/joblife/joblife/jobstate/jobid"
)

// A limit is a number of places. Each outstanding request takes one; that of a recalled or
// canceled request becomes free with the response. The best of the waiting jobs claim every
// place without a sent request, free or not yet. If the best job without a claim comes before
// the last sent job, the queue recalls that request, which gives one more place to claim. So the
// best jobs, as many as there are places, are sent or have a claim. Without claims, each better
// job that comes during a recall would seem to need a recall of its own.

func before(a, b item) bool {
	if a.priority != b.priority {
		return a.priority > b.priority
	}
	return a.id < b.id
}

// An item is a job in a list, with what it is sorted by.
type item struct {
	priority uint32
	id       jobid.ID
	job      *job
}

func itemOf(j *job) item { return item{j.Priority, j.ID, j} }

// A list is jobs in queue order. The zero list is empty.
type list struct{ tree *btree.BTreeG[item] }

// degree is the degree of the trees: nodes of 31 to 63 jobs.
const degree = 32

// items returns the tree, and makes it when it is first used.
func (l *list) items() *btree.BTreeG[item] {
	if l.tree == nil {
		l.tree = btree.NewG(degree, before)
	}
	return l.tree
}

func (l *list) insert(j *job) {
	if _, was := l.items().ReplaceOrInsert(itemOf(j)); was {
		panic("alloc: job is in a list twice")
	}
}

func (l *list) remove(j *job) {
	if _, was := l.items().Delete(itemOf(j)); !was {
		panic("alloc: job is not in the list of its state")
	}
}

func (l *list) len() int { return l.items().Len() }

func (l *list) clear() { l.items().Clear(false) }

func (l *list) first() *job {
	i, _ := l.items().Min()
	return i.job
}

func (l *list) last() *job {
	i, _ := l.items().Max()
	return i.job
}

func (l *list) all() iter.Seq[*job] {
	return func(yield func(*job) bool) {
		l.items().Ascend(func(i item) bool { return yield(i.job) })
	}
}

// precedes reports whether neither job is nil and a comes before b.
func precedes(a, b *job) bool { return a != nil && b != nil && before(itemOf(a), itemOf(b)) }

func (q *Queue) move(j *job, to state) {
	q.in[j.state].remove(j)
	j.state = to
	q.in[to].insert(j)
}

// enter puts a job without a request into a list. Claims are out of balance until update.
func (q *Queue) enter(j *job) {
	j.state, j.stale = statePending, false
	if j.blocked() {
		j.state = stateBlocked
	}
	q.in[j.state].insert(j)
}

// drop forgets a job and clears it for the next one: j must not be used any more.
func (q *Queue) drop(j *job) {
	q.in[j.state].remove(j)
	delete(q.jobs, j.ID)
	if *j = (job{}); len(q.spare) < maxSpare {
		q.spare = append(q.spare, j)
	}
}

// places returns how many places have no sent request: none without a limit.
func (q *Queue) places() int {
	if q.limit == 0 {
		return 0
	}
	return q.limit - q.in[stateSent].len()
}

func (q *Queue) outstanding() int {
	return q.in[stateSent].len() + q.in[stateRecalled].len() + q.in[stateCanceled].len()
}

// balance gives the claims to the best of the waiting jobs.
func (q *Queue) balance() {
	rest, best := &q.in[statePending], &q.in[stateClaimed]
	for best.len() < q.places() && rest.len() > 0 {
		q.move(rest.first(), stateClaimed)
	}
	for best.len() > q.places() {
		q.move(best.last(), statePending)
	}
	for precedes(rest.first(), best.last()) {
		q.move(best.last(), statePending)
		q.move(rest.first(), stateClaimed)
	}
}

// recall takes back the last requests while better jobs have no place.
func (q *Queue) recall(dst []Send) []Send {
	q.balance()
	if q.limit == 0 {
		return dst
	}
	for {
		last := q.in[stateSent].last()
		if !precedes(q.in[statePending].first(), last) {
			return dst
		}
		q.move(last, stateRecalled)
		dst = append(dst, Send{Topic: TopicCancel, Job: last.JobInfo})
		q.balance()
	}
}

// fill sends requests while there are free places.
func (q *Queue) fill(dst []Send) []Send {
	if q.phase != PhaseOnline {
		return dst
	}
	next := &q.in[statePending]
	if q.limit > 0 {
		next = &q.in[stateClaimed]
	}
	for next.len() > 0 && (q.limit == 0 || q.outstanding() < q.limit) {
		j := next.first()
		q.move(j, stateSent)
		dst = append(dst, Send{Topic: TopicAlloc, Job: j.JobInfo})
	}
	return dst
}

// update appends what to send after a change.
func (q *Queue) update(dst []Send) []Send { return q.fill(q.recall(dst)) }
