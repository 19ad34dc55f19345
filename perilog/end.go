package perilog

import "strconv"

// A Cause says how a rank of a [Run] ended. The zero Cause is none: the rank
// has not ended.
type Cause uint8

// The causes. Every rank ends with exactly one of them.
const (
	CauseOK               Cause = 1 + iota // the command exited with 0
	CauseFailed                            // it exited with another code
	CauseReported                          // it reported the node as failed, by a [Control] line
	CauseSignalled                         // a signal that the run did not send ended it
	CauseTimedOut                          // it was past its timeout, whether it obeyed SIGTERM or not
	CauseCanceled                          // it was canceled, and ended within the kill timeout
	CauseCanceledTimedOut                  // it was canceled, and did not
	CauseLaunchFailed                      // it could not be launched
	CauseUnreachable                       // contact with its node was lost
	CauseOffline                           // its node was offline before the launch, so it was not launched
	CauseAbandoned                         // somebody finished it by force
)

// String returns the words that notes and drain reasons use, such as "timed
// out"; another value prints as Cause(n).
func (c Cause) String() string {
	switch c {
	case CauseOK:
		return "ok"
	case CauseFailed:
		return "failed"
	case CauseReported:
		return "reported node failure"
	case CauseSignalled:
		return "killed by signal"
	case CauseTimedOut:
		return "timed out"
	case CauseCanceled:
		return "canceled"
	case CauseCanceledTimedOut:
		return "canceled then timed out"
	case CauseLaunchFailed:
		return "failed to launch"
	case CauseUnreachable:
		return "unreachable"
	case CauseOffline:
		return "offline"
	case CauseAbandoned:
		return "finished by force"
	}
	return "Cause(" + strconv.Itoa(int(c)) + ")"
}

// OK reports whether c is [CauseOK].
func (c Cause) OK() bool { return c == CauseOK }

// An End is how a rank ended. The zero End is that of a rank that has not.
type End struct {
	Cause Cause

	// Status is the wait status, as wait(2) gives it: 0 if and only if Cause is
	// CauseOK. Where no process told one it is 15, as of SIGTERM, for what was
	// signalled and never ended, 68<<8 for what can not be reached (as the
	// reference has it), and 1<<8 otherwise.
	Status int32
}

// A RankEnd is the end of one rank.
type RankEnd struct {
	Rank uint32
	End  End
}

// lostContact is what is told of a rank that is unreachable.
const lostContact = "lost contact"

// The wait statuses of ends that no process told.
const (
	statusFailed      = 1 << 8
	statusTerminated  = sigterm
	statusUnreachable = 68 << 8
)

// exitCode returns the exit code that a wait status tells, or false if it tells
// of a signal.
func exitCode(status int32) (int, bool) {
	if status&0x7f != 0 {
		return 0, false
	}
	return int(status >> 8 & 0xff), true
}

// maxSignal is the largest signal number there is.
const maxSignal = 64

// signal returns the signal that ended a process, 0 if none did. A shell tells
// of the signal that ended its child by an exit code above 128.
func signal(status int32) int {
	code, exited := exitCode(status)
	switch {
	case !exited:
		return int(status & 0x7f)
	case code > 128 && code <= 128+maxSignal:
		return code - 128
	}
	return 0
}

// normal returns a wait status without the bits that tell nothing: it is 0 only
// if that is what was told.
func normal(status int32) int32 {
	s := status & 0xffff
	if s&0x7f == 0 {
		s &= 0xff00
	}
	if s == 0 && status != 0 {
		return statusFailed
	}
	return s
}

// stopped reports whether a wait status tells that a process was stopped or
// goes on, which is not an end.
func stopped(status int32) bool { return status&0x7f == 0x7f }
