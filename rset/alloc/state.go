package alloc

import (
	"iter"

	"github.com/joblife/joblife/internal/guard"
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
