package alloc

import (
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/joblife/joblife/internal/guard"
	"github.com/joblife/joblife/jobstate/jobid"
)

// A State is what a job in a queue waits for.
type State uint8

// The states of a job. The zero State is invalid.
const (
	StatePending  State = iota + 1 // its turn to get a request
	StateBlocked                   // a priority above 0, and Start if it is stopped
	StateSent                      // the scheduler, which has its request
	StateRecalled                  // the response to a request that was taken back
	StateCanceled                  // as StateRecalled, but the job left the queue
	stateClaimed                   // pending, with a place among the requests: see settle.go
	states                         // the number of states, the invalid one included
)

// String returns the state in lower case, or "State(200)" for an unknown one.
func (s State) String() string {
	return guard.Name("State", s, "pending", "blocked", "sent", "recalled", "canceled", "pending")
}

func (s State) seen() State {
	if s == stateClaimed {
		return StatePending
	}
	return s
}

// A Phase is the progress of the session with a scheduler. The zero Phase is invalid.
type Phase uint8

// The phases of a session.
const (
	PhaseOffline  Phase = iota + 1 // no scheduler is connected
	PhaseGreeting                  // a scheduler said hello
	PhaseOnline                    // a scheduler said hello and ready: it gets requests
)

// String returns the phase in lower case, or "Phase(200)" for an unknown one.
func (p Phase) String() string { return guard.Name("Phase", p, "offline", "greeting", "online") }

// Phase returns the phase of the session with the scheduler.
func (q *Queue) Phase() Phase { return max(q.phase, PhaseOffline) }

// Stats is the number of jobs in each state.
type Stats struct {
	Pending, Blocked, Sent, Recalled, Canceled int
}

// Stats returns the number of jobs in each state, in constant time.
func (q *Queue) Stats() Stats {
	return Stats{
		Pending:  q.in[StatePending].len() + q.in[stateClaimed].len(),
		Blocked:  q.in[StateBlocked].len(),
		Sent:     q.in[StateSent].len(),
		Recalled: q.in[StateRecalled].len(),
		Canceled: q.in[StateCanceled].len(),
	}
}

// Job returns a job and its state, or false if the queue does not have the job or
// it was canceled.
func (q *Queue) Job(id jobid.ID) (JobInfo, State, bool) {
	j, err := q.get(id)
	if err != nil {
		return JobInfo{}, 0, false
	}
	return j.JobInfo, j.state.seen(), true
}

// All returns an iterator over the jobs and their states, in queue order: by
// priority, greatest first, then by id. Canceled jobs are left out. The queue must not
// change meanwhile. Each job takes log n steps and allocates nothing.
func (q *Queue) All() iter.Seq2[JobInfo, State] {
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
		if State(s) == StateCanceled || q.in[s].len() == 0 {
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

// Check returns an error if the queue breaks a rule of its own: more requests than the
// limit, a request for a blocked job, a job that waits for nothing, a request for a
// job while a better one waits, or a broken index. Only a bug in this package breaks a
// rule. Check takes n log n steps.
func (q *Queue) Check() error {
	if err := q.checkLists(); err != nil {
		return err
	}
	out, places := q.outstanding(), q.places()
	switch {
	case q.phase != PhaseOnline && out > 0:
		return fmt.Errorf("alloc: %d requests, and the scheduler is %v", out, q.Phase())
	case q.limit > 0 && out > q.limit:
		return fmt.Errorf("alloc: %d requests, at most %d are allowed", out, q.limit)
	case q.phase == PhaseOnline && q.limit == 0 && q.in[StatePending].len() > 0:
		return fmt.Errorf("alloc: %d jobs wait for nothing", q.in[StatePending].len())
	case q.limit > 0 && q.in[stateClaimed].len() > 0 && out < q.limit:
		return fmt.Errorf("alloc: jobs wait, with %d requests of %d", out, q.limit)
	case q.in[stateClaimed].len() > places, q.in[stateClaimed].len() < places && q.in[StatePending].len() > 0:
		return fmt.Errorf("alloc: %d claims for %d places", q.in[stateClaimed].len(), places)
	case precedes(q.in[StatePending].first(), q.in[stateClaimed].last()):
		return fmt.Errorf("alloc: job %v has a claim and comes after one that has none", q.in[stateClaimed].last().ID)
	case q.limit > 0 && precedes(q.in[StatePending].first(), q.in[StateSent].last()):
		return fmt.Errorf("alloc: job %v is sent and comes after one that waits", q.in[StateSent].last().ID)
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
				return fmt.Errorf("alloc: job %v is %v, in the list of %v", j.ID, j.state, State(s))
			}
			if prev != nil && !precedes(prev, j) {
				return fmt.Errorf("alloc: job %v comes after %v", j.ID, prev.ID)
			}
			prev = j
			n++
		}
		if n != q.in[s].len() {
			return fmt.Errorf("alloc: %d jobs are %v, %d counted", n, State(s), q.in[s].len())
		}
		total += n
	}
	if total != len(q.jobs) {
		return fmt.Errorf("alloc: %d jobs, %d in lists", len(q.jobs), total)
	}
	for _, id := range slices.Sorted(maps.Keys(q.jobs)) {
		j := q.jobs[id]
		if id != j.ID || j.state == 0 || j.state >= states || !q.in[j.state].has(j) {
			return fmt.Errorf("alloc: job %v is not in the list of %v", id, j.state)
		}
		waits := j.state == StatePending || j.state == stateClaimed || j.state == StateSent
		if waits && j.blocked() || j.state == StateBlocked && !j.blocked() {
			return fmt.Errorf("alloc: job %v is %v, with priority %d", id, j.state, j.Priority)
		}
	}
	return nil
}

func (l *list) has(j *job) bool {
	i, ok := l.items().Get(itemOf(j))
	return ok && i.job == j
}
