package run

import "github.com/joblife/joblife/idset"

// A Cause says how an action ended on a rank. The zero Cause means that the action
// has not ended there.
type Cause uint8

// The causes. A rank ends with exactly one of them.
const (
	CauseOK               Cause = 1 + iota // the command exited with 0
	CauseFailed                            // it exited with another code
	CauseReported                          // it named the node as failed, in a control line
	CauseControl                           // it wrote a control line that is not understood
	CauseSignaled                          // a signal that was not asked for ended it
	CauseTimedOut                          // it was past its timeout, whether it obeyed SIGTERM or not
	CauseCanceled                          // it was canceled, and ended within the kill timeout
	CauseCanceledTimedOut                  // it was canceled, and did not end within the kill timeout
	CauseLaunchFailed                      // it could not be launched
	CauseUnreachable                       // contact with its node was lost
	CauseOffline                           // its node was offline, and it was not launched
	CauseForced                            // an operator finished it by force
)

// causeTexts holds the words for people, and the names in a log.
var causeTexts = [...]struct{ words, name string }{
	CauseOK:               {"ok", "ok"},
	CauseFailed:           {"failed", "failed"},
	CauseReported:         {"reported node failure", "reported"},
	CauseControl:          {"bad control line", "control"},
	CauseSignaled:         {"killed by signal", "signaled"},
	CauseTimedOut:         {"timed out", "timed-out"},
	CauseCanceled:         {"canceled", "canceled"},
	CauseCanceledTimedOut: {"canceled then timed out", "canceled-timed-out"},
	CauseLaunchFailed:     {"failed to launch", "launch-failed"},
	CauseUnreachable:      {"unreachable", "unreachable"},
	CauseOffline:          {"offline", "offline"},
	CauseForced:           {"finished by force", "forced"},
}

// String returns the words that notes and drain reasons use, such as "timed out".
func (c Cause) String() string { return causeTexts[c].words }

// Name returns the name that a log has for c, such as "timed-out".
func (c Cause) Name() string { return causeTexts[c].name }

// CauseNamed returns the cause of a failure that a log names. A name that a later
// version may have written is CauseFailed.
func CauseNamed(name string) Cause {
	for c := CauseFailed; int(c) < len(causeTexts); c++ {
		if causeTexts[c].name == name {
			return c
		}
	}
	return CauseFailed
}

// reported says whether a report said that the node failed, in contrast to a
// failure of the command, which may be the command's own. Tolerance covers what
// was reported.
func (c Cause) reported() bool {
	switch c {
	case CauseReported, CauseUnreachable, CauseOffline, CauseForced:
		return true
	}
	return false
}

// mayRun reports whether the command may still run: it was deaf, or nobody sees its
// node. The log does not tell which timeouts were obeyed.
func (c Cause) mayRun() bool {
	return c == CauseTimedOut || c == CauseCanceledTimedOut || c == CauseUnreachable
}

// drains reports whether a rank that ended so is drained. A canceled one is not, or
// users could drain nodes by canceling their jobs. An offline one is not in use. A
// forced one is the operator's decision.
func (c Cause) drains() bool {
	switch c {
	case CauseOK, CauseCanceled, CauseOffline, CauseForced:
		return false
	}
	return true
}

// drainWords returns what the reason of a drain says of a cause.
func (c Cause) drainWords() string {
	switch c {
	case CauseTimedOut, CauseCanceledTimedOut, CauseReported, CauseControl, CauseOffline:
		return c.String()
	case CauseUnreachable:
		return lostContact
	}
	return "failed"
}

// lostContact is what is said of a rank that is unreachable.
const lostContact = "lost contact"

// A Failure is a cause that ranks failed for. The same form comes out of a run,
// is logged, and is folded back into the run after a restart.
type Failure struct {
	Ranks  *idset.Set // not empty
	Cause  Cause      // not CauseOK
	Status int32      // the worst wait status
	Note   string     // of the control line, if one told it
	Drain  bool       // the ranks are to be drained
}

// The wait statuses of ends that no process told.
const (
	statusFailed      = 1 << 8
	statusTerminated  = sigterm
	statusUnreachable = 68 << 8 // as in flux-core
)

// sigterm and sigkill are the signals that a run asks for.
const (
	sigkill = 9
	sigterm = 15
)

// exitCode returns the exit code in a wait status, or false if the
// status has a signal instead.
func exitCode(status int32) (int, bool) {
	if status&0x7f != 0 {
		return 0, false
	}
	return int(status >> 8 & 0xff), true
}

// maxSignal is the largest signal number there is.
const maxSignal = 64

// signalOf returns the signal that ended a process, 0 if none did. A shell tells
// of the signal that ended its child by an exit code above 128.
func signalOf(status int32) int {
	code, exited := exitCode(status)
	switch {
	case !exited:
		return int(status & 0x7f)
	case code > 128 && code <= 128+maxSignal:
		return code - 128
	}
	return 0
}

// normal returns a wait status without the bits that mean nothing: it is 0 only
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

// stopped reports whether a wait status says that a process was stopped or goes
// on, which is not an end.
func stopped(status int32) bool { return status&0x7f == 0x7f }

// orStatus returns a wait status, or another one if it is 0.
func orStatus(status, other int32) int32 {
	if status == 0 || stopped(status) {
		return other
	}
	return status
}

// DrainReason returns the reason to drain ranks where an action failed for a cause.
func DrainReason(title string, c Cause, job string) string {
	return title + " " + c.drainWords() + " for job " + job
}
