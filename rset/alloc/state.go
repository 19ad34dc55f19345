package alloc

import (
	"iter"
	"maps"
	"slices"

	"github.com/joblife/joblife/internal/guard"
)

// A state is what a job in a queue waits for.
type state uint8

const (
	statePending  state = iota + 1 // its turn to get a request
	stateBlocked                   // a priority above 0, and Start if it is stopped
	stateSent                      // the scheduler, which has its request
	stateRecalled                  // the response to a request that was taken back
	stateCanceled                  // as stateRecalled, but the job left the queue
	stateClaimed                   // pending, with a place among the requests: see requests.go
	states                         // the number of states, the invalid one included
)

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

// Stats is the number of jobs in each State: Pending, Blocked, Sent, Recalled and Canceled.
type Stats struct {
	Pending, Blocked, Sent, Recalled, Canceled int
}

// Stats returns the number of jobs in each state, in constant time.
func (q *Queue) Stats() Stats {
	return Stats{
		Pending:  q.in[statePending].len() + q.in[stateClaimed].len(),
		Blocked:  q.in[stateBlocked].len(),
		Sent:     q.in[stateSent].len(),
		Recalled: q.in[stateRecalled].len(),
		Canceled: q.in[stateCanceled].len(),
	}
}

// All returns an iterator over the jobs, by id. Canceled jobs are left out.
func (q *Queue) All() iter.Seq[JobInfo] {
	return func(yield func(JobInfo) bool) {
		for _, id := range slices.Sorted(maps.Keys(q.jobs)) {
			if j := q.jobs[id]; j.state != stateCanceled && !yield(j.JobInfo) {
				return
			}
		}
	}
}
