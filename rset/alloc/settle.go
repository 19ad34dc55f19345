package alloc

import (
	"iter"

	"github.com/google/btree"

	"github.com/joblife/joblife/jobstate/jobid"
)

// This file decides who is asked for, and keeps the indexes that this needs.
//
// With a limit, the scheduler may have limit requests without an answer. Those
// that are neither recalled nor cancelled are Sent; the other places are free,
// or will be when the scheduler has answered. These places, limit less the
// number of Sent, are claimed by the best of the jobs that wait. If the best of
// the others comes before the last of Sent, then that is recalled, which gives
// one place more to claim: the best limit of the Sent and the waiting jobs are
// Sent or have a claim. Without claims, each better job that comes while a
// recall is under way would look as if it needed a recall of its own, or else
// all places under way would have to be counted through each time.

// before reports whether job a comes before job b in the queue.
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

// degree is that of the trees: nodes of 31 to 63 jobs.
const degree = 32

// insert adds a job that is not in the list. Panics if it is.
func (l *list) insert(j *job) {
	if l.tree == nil {
		l.tree = btree.NewG(degree, before)
	}
	if _, was := l.tree.ReplaceOrInsert(itemOf(j)); was {
		panic("alloc: job is in a list twice")
	}
}

// remove takes a job out that is in the list. Panics if it is not.
func (l *list) remove(j *job) {
	if l.tree != nil {
		if _, was := l.tree.Delete(itemOf(j)); was {
			return
		}
	}
	panic("alloc: job is not in the list of its state")
}

// len returns the number of jobs.
func (l *list) len() int {
	if l.tree == nil {
		return 0
	}
	return l.tree.Len()
}

// first returns the first job, nil if there is none.
func (l *list) first() *job {
	if l.tree == nil {
		return nil
	}
	i, _ := l.tree.Min()
	return i.job
}

// last returns the last job, nil if there is none.
func (l *list) last() *job {
	if l.tree == nil {
		return nil
	}
	i, _ := l.tree.Max()
	return i.job
}

// all returns an iterator over the jobs, first to last.
func (l *list) all() iter.Seq[*job] {
	return func(yield func(*job) bool) {
		if l.tree != nil {
			l.tree.Ascend(func(i item) bool { return yield(i.job) })
		}
	}
}

// precedes reports whether there are both jobs, and a comes before b.
func precedes(a, b *job) bool { return a != nil && b != nil && before(itemOf(a), itemOf(b)) }

// move takes a job from the list of its state to that of another.
func (q *Queue) move(j *job, to State) {
	q.in[j.state].remove(j)
	j.state = to
	q.in[to].insert(j)
}

// enter puts a job that is in no list of a state where a job belongs that the
// scheduler is not asked for. Claims are out of balance until settle.
func (q *Queue) enter(j *job) {
	j.state = Pending
	if j.held() {
		j.state = Held
	}
	q.in[j.state].insert(j)
}

// drop forgets a job.
func (q *Queue) drop(j *job) {
	q.in[j.state].remove(j)
	if j.state != Canceled {
		q.order.remove(j)
	}
	delete(q.jobs, j.ID)
}

// places returns how many requests can be sent at once or as soon as those are
// answered that were taken back. It is 0 without a limit: then nothing waits.
func (q *Queue) places() int {
	if q.limit == 0 {
		return 0
	}
	return q.limit - q.in[Sent].len()
}

// outstanding returns how many requests have no answer.
func (q *Queue) outstanding() int {
	return q.in[Sent].len() + q.in[Recalled].len() + q.in[Canceled].len()
}

// balance gives the claims to the best of the jobs that wait. It costs log n
// for every job that entered or left since, and every place more or less.
func (q *Queue) balance() {
	rest, best := &q.in[Pending], &q.in[claimed]
	for best.len() < q.places() && rest.len() > 0 {
		q.move(rest.first(), claimed)
	}
	for best.len() > q.places() {
		q.move(best.last(), Pending)
	}
	for precedes(rest.first(), best.last()) {
		q.move(best.last(), Pending)
		q.move(rest.first(), claimed)
	}
}

// recall takes back the last requests as long as better jobs have no place.
func (q *Queue) recall(dst []Send) []Send {
	q.balance()
	if q.limit == 0 {
		return dst
	}
	for {
		last := q.in[Sent].last()
		if !precedes(q.in[Pending].first(), last) {
			return dst
		}
		q.move(last, Recalled)
		dst = append(dst, Send{Kind: SendCancel, Job: last.Job})
		q.balance()
	}
}

// fill sends requests while the scheduler takes them.
func (q *Queue) fill(dst []Send) []Send {
	if q.phase != Online {
		return dst
	}
	next := &q.in[Pending]
	if q.limit > 0 {
		next = &q.in[claimed]
	}
	for next.len() > 0 && (q.limit == 0 || q.outstanding() < q.limit) {
		j := next.first()
		q.move(j, Sent)
		dst = append(dst, Send{Kind: SendAlloc, Job: j.Job})
	}
	return dst
}

// settle sends what is to be sent after a change.
func (q *Queue) settle(dst []Send) []Send { return q.fill(q.recall(dst)) }
