package perilog

import (
	"strconv"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
)

// A RequestKind says what a [Run] wants done. The zero RequestKind is invalid.
type RequestKind uint8

// The kinds of requests.
const (
	RequestLaunch RequestKind = 1 + iota // run Command on each of Ranks
	RequestSignal                        // send Signal to the command on each of Ranks
	RequestDrain                         // drain Ranks with Reason, in mode Mode
	RequestRaise                         // post Exception to the job's log
)

// String returns "launch", "signal", "drain" or "raise"; another value prints
// as RequestKind(n).
func (k RequestKind) String() string {
	switch k {
	case RequestLaunch:
		return "launch"
	case RequestSignal:
		return "signal"
	case RequestDrain:
		return "drain"
	case RequestRaise:
		return "raise"
	}
	return "RequestKind(" + strconv.Itoa(int(k)) + ")"
}

// A Request is something that a [Run] wants done. The fields that Kind does not
// name are zero.
type Request struct {
	Kind   RequestKind
	Ranks  *idset.Set // where; not empty, but nil of RequestRaise. The caller's to keep
	Signal int        // 15, SIGTERM; 9, SIGKILL, only where the spec says so

	// Command is that of the spec, as it was when the run was made.
	Command []string

	Reason string // such as "prolog timed out for job ƒuZZybuNNy"

	// Mode is "update": a node that is drained already keeps the reason that it
	// has.
	Mode string

	// Exception tells of the whole run, once. Its user is not set.
	Exception *jobstate.ExceptionContext

	cause Cause // of RequestDrain
}

// drainMode is the mode that leaves an earlier reason alone.
const drainMode = "update"

// Requests returns what is to be done, in order, and forgets it. The slice is
// valid until the next call; it is empty if there is nothing. It does not
// allocate.
//
// A rank that fails is asked to be drained before [Run.AppendEnded] tells of its
// end: who acts on requests first gives no bad node back.
func (r *Run) Requests() []Request {
	clear(r.out)
	r.out, r.requests = r.requests, r.out[:0]
	return r.out
}

// request adds a request.
func (r *Run) request(q Request) { r.requests = append(r.requests, q) }

// drain asks for a rank to be drained, unless its cause is none of the node's
// or it was asked for before. It joins a request for the same reason that is
// still to be fetched and the last one.
func (r *Run) drain(s *slot, rank uint32, cause Cause) {
	if s.drained || !cause.drains() {
		return
	}
	s.drained = true
	if n := len(r.requests); n > 0 {
		if q := &r.requests[n-1]; q.Kind == RequestDrain && reasonOf(q.cause) == reasonOf(cause) {
			q.Ranks.Insert(rank)
			return
		}
	}
	reason := r.spec.title() + " " + reasonOf(cause) + " for job " + r.spec.Job.Format(jobid.FormatF58)
	r.request(Request{Kind: RequestDrain, Ranks: idset.Of(rank), Reason: reason, Mode: drainMode, cause: cause})
}

// drains reports whether a rank that ended so is drained. One that was canceled
// is not, or users could drain nodes by canceling their jobs. One that was
// offline is not in use, and who finishes a rank by force knows what he does.
func (c Cause) drains() bool {
	switch c {
	case CauseFailed, CauseReported, CauseSignalled, CauseTimedOut, CauseCanceledTimedOut,
		CauseLaunchFailed, CauseUnreachable:
		return true
	}
	return false
}

// reasonOf returns the words that the reason of a drain has for a cause.
func reasonOf(cause Cause) string {
	switch cause {
	case CauseTimedOut, CauseCanceledTimedOut, CauseReported:
		return cause.String()
	case CauseUnreachable:
		return lostContact
	}
	return "failed"
}
