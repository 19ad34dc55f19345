package alloc

import (
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/joblife/joblife/jobstate/jobid"
)

// A State is what a job in a queue waits for.
type State uint8

// The states of a job. The zero State is none.
const (
	Pending  State = iota + 1 // its turn: to be asked for
	Held                      // a priority other than 0, and Start if it is stopped
	Sent                      // the scheduler, which was asked for it
	Recalled                  // the answer to a request that was taken back
	Canceled                  // as Recalled, but it left the queue: only the answer is awaited
	claimed                   // Pending, with a place among the requests: see settle.go
	states                    // how many there are, with none
)

// String returns the state in lower case, or "State(200)" if it has none.
func (s State) String() string {
	switch s {
	case Pending, claimed:
		return "pending"
	case Held:
		return "held"
	case Sent:
		return "sent"
	case Recalled:
		return "recalled"
	case Canceled:
		return "canceled"
	}
	return fmt.Sprintf("State(%d)", uint8(s))
}

// seen returns the state as others see it.
func (s State) seen() State {
	if s == claimed {
		return Pending
	}
	return s
}

// A Phase is how far a scheduler has come. The zero Phase is none.
type Phase uint8

// The phases of a queue.
const (
	Offline  Phase = iota + 1 // there is no scheduler
	Greeting                  // one said hello
	Online                    // and ready: requests are sent
)

// String returns the phase in lower case, or "Phase(200)" if it has none.
func (p Phase) String() string {
	switch p {
	case Offline:
		return "offline"
	case Greeting:
		return "greeting"
	case Online:
		return "online"
	}
	return fmt.Sprintf("Phase(%d)", uint8(p))
}

// Phase returns how far the scheduler has come.
func (q *Queue) Phase() Phase { return max(q.phase, Offline) }

// Stats is how many jobs are in which state, each the length of the list of
// that state.
type Stats struct {
	Pending, Held, Sent, Recalled, Canceled int
}

// Stats returns how many jobs are in which state, at no cost.
func (q *Queue) Stats() Stats {
	return Stats{
		Pending:  q.in[Pending].len() + q.in[claimed].len(),
		Held:     q.in[Held].len(),
		Sent:     q.in[Sent].len(),
		Recalled: q.in[Recalled].len(),
		Canceled: q.in[Canceled].len(),
	}
}

// Job returns a job and its state, or false if the queue does not have it: a
// cancelled job is not in the queue.
func (q *Queue) Job(id jobid.ID) (Job, State, bool) {
	j, err := q.get(id)
	if err != nil {
		return Job{}, 0, false
	}
	return j.Job, j.state.seen(), true
}

// All returns an iterator over the jobs in queue order, whatever their state,
// but for cancelled ones: by priority, greatest first, then by id. The queue
// must not change meanwhile. It allocates nothing per job.
func (q *Queue) All() iter.Seq2[Job, State] {
	return func(yield func(Job, State) bool) {
		for j := range q.order.all() {
			if !yield(j.Job, j.state.seen()) {
				return
			}
		}
	}
}

// List returns an iterator over the jobs in one state in queue order: none for
// the zero State. The queue must not change meanwhile.
func (q *Queue) List(s State) iter.Seq[Job] {
	return func(yield func(Job) bool) {
		if s < Pending || s > Canceled {
			return
		}
		if s == Pending && !yieldAll(&q.in[claimed], yield) {
			return
		}
		yieldAll(&q.in[s], yield)
	}
}

// yieldAll yields all jobs of a list and reports whether that was wanted.
func yieldAll(l *list, yield func(Job) bool) bool {
	for j := range l.all() {
		if !yield(j.Job) {
			return false
		}
	}
	return true
}

// Check returns an error if an invariant of the queue is broken, which only a
// fault of this package can do. It costs n log n.
func (q *Queue) Check() error {
	if err := q.checkLists(); err != nil {
		return err
	}
	out, places := q.outstanding(), q.places()
	switch {
	case q.phase != Online && out > 0:
		return fmt.Errorf("alloc: Q1: %d requests, and the scheduler is %v", out, q.Phase())
	case q.limit > 0 && out > q.limit:
		return fmt.Errorf("alloc: Q1: %d requests, at most %d are allowed", out, q.limit)
	case q.phase == Online && q.limit == 0 && q.in[Pending].len() > 0:
		return fmt.Errorf("alloc: Q4: %d jobs wait for nothing", q.in[Pending].len())
	case q.limit > 0 && q.in[claimed].len() > 0 && out < q.limit:
		return fmt.Errorf("alloc: Q4: jobs wait, with %d requests of %d", out, q.limit)
	case q.in[claimed].len() > places, q.in[claimed].len() < places && q.in[Pending].len() > 0:
		return fmt.Errorf("alloc: Q4: %d claims for %d places", q.in[claimed].len(), places)
	case precedes(q.in[Pending].first(), q.in[claimed].last()):
		return fmt.Errorf("alloc: Q4: job %v has a claim and comes after one that has none", q.in[claimed].last().ID)
	case q.limit > 0 && precedes(q.in[Pending].first(), q.in[Sent].last()):
		return fmt.Errorf("alloc: Q4: job %v is sent and comes after one that waits", q.in[Sent].last().ID)
	}
	return nil
}

// checkLists walks from the lists to the jobs and back.
func (q *Queue) checkLists() error {
	total := 0
	for s := range q.in {
		n := 0
		var prev *job
		for j := range q.in[s].all() {
			if q.jobs[j.ID] != j || int(j.state) != s {
				return fmt.Errorf("alloc: Q5: job %v is %v, in the list of %v", j.ID, j.state, State(s))
			}
			if prev != nil && !precedes(prev, j) {
				return fmt.Errorf("alloc: Q5: job %v comes after %v", j.ID, prev.ID)
			}
			prev = j
			n++
		}
		if n != q.in[s].len() {
			return fmt.Errorf("alloc: Q5: %d jobs are %v, %d counted", n, State(s), q.in[s].len())
		}
		total += n
	}
	if total != len(q.jobs) || total != q.order.len()+q.in[Canceled].len() {
		return fmt.Errorf("alloc: Q5: %d jobs, %d in lists, %d in order", len(q.jobs), total, q.order.len())
	}
	for _, id := range slices.Sorted(maps.Keys(q.jobs)) {
		j := q.jobs[id]
		if id != j.ID || j.state == 0 || j.state >= states || !q.in[j.state].has(j) {
			return fmt.Errorf("alloc: Q5: job %v is not in the list of %v", id, j.state)
		}
		if (j.state != Canceled) != q.order.has(j) {
			return fmt.Errorf("alloc: Q5: job %v is %v, and in order or not", id, j.state)
		}
		waits := j.state == Pending || j.state == claimed || j.state == Sent
		if waits && j.held() || j.state == Held && !j.held() {
			return fmt.Errorf("alloc: Q2: job %v is %v, with priority %d", id, j.state, j.Priority)
		}
	}
	return nil
}

// has reports whether the list has a job.
func (l *list) has(j *job) bool {
	if l.tree == nil {
		return false
	}
	i, ok := l.tree.Get(itemOf(j))
	return ok && i.job == j
}
