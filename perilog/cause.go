package perilog

// An endCause says how an action ended on a rank. 0 means that it has not ended there.
type endCause uint8

// The causes.
const (
	causeOK               endCause = 1 + iota // the command exited with 0
	causeFailed                               // it exited with another code
	causeReported                             // it named the node as failed, in a control line
	causeControl                              // it wrote a control line that is not understood
	causeSignaled                             // a signal that was not asked for ended it
	causeTimedOut                             // it was past its timeout, whether it obeyed SIGTERM or not
	causeCanceled                             // it was canceled, and ended within the kill timeout
	causeCanceledTimedOut                     // it was canceled, and did not end within the kill timeout
	causeLaunchFailed                         // it could not be launched
	causeUnreachable                          // contact with its node was lost
	causeOffline                              // its node was offline, and it was not launched
	causeForced                               // an operator finished it by force
)

// causes holds what there is to know of each cause.
var causes = [...]struct {
	name  string // in a log
	words string // for people
	drain string // in the reason of a drain

	// drains says that a rank that ended so is drained. A canceled one is not, or users could
	// drain nodes by canceling their jobs. An offline one is not in use.
	drains bool

	reported bool // a report said that the node failed, which tolerance covers, not the command itself
	mayRun   bool // the command may still run: the log does not tell which timeouts were obeyed
}{
	causeOK:               {name: "ok", words: "ok"},
	causeFailed:           {name: "failed", words: "failed", drain: "failed", drains: true},
	causeReported:         {name: "reported", words: "reported node failure", drain: "reported node failure", drains: true, reported: true},
	causeControl:          {name: "control", words: "bad control line", drain: "bad control line", drains: true},
	causeSignaled:         {name: "signaled", words: "killed by signal", drain: "failed", drains: true},
	causeTimedOut:         {name: "timed-out", words: "timed out", drain: "timed out", drains: true, mayRun: true},
	causeCanceled:         {name: "canceled", words: "canceled", drain: "failed"},
	causeCanceledTimedOut: {name: "canceled-timed-out", words: "canceled then timed out", drain: "canceled then timed out", drains: true, mayRun: true},
	causeLaunchFailed:     {name: "launch-failed", words: "failed to launch", drain: "failed", drains: true},
	causeUnreachable:      {name: "unreachable", words: "unreachable", drain: "lost contact", drains: true, reported: true, mayRun: true},
	causeOffline:          {name: "offline", words: "offline", drain: "offline", reported: true},
	causeForced:           {name: "forced", words: "finished by force", drain: "failed", reported: true},
}

// String returns the words that notes use, such as "timed out".
func (c endCause) String() string { return causes[c].words }

// name returns the name that a log has for c, such as "timed-out".
func (c endCause) name() string { return causes[c].name }

// causeNamed returns the cause that a log names; causeFailed for a name of a later version.
func causeNamed(name string) endCause {
	for c := causeFailed; int(c) < len(causes); c++ {
		if causes[c].name == name {
			return c
		}
	}
	return causeFailed
}

const (
	sigkill   = 9
	sigterm   = 15
	maxSignal = 64

	// The wait statuses of ends that no process reported.
	statusFailed      = 1 << 8
	statusTerminated  = sigterm
	statusUnreachable = 68 << 8 // as in flux-core
)

// signalOf returns the signal that ended a process, or the child of a shell, which then exits
// with a code above 128; else 0.
func signalOf(status int32) int {
	code := int(status >> 8 & 0xff)
	switch {
	case status&0x7f != 0:
		return int(status & 0x7f)
	case code > 128 && code <= 128+maxSignal:
		return code - 128
	}
	return 0
}

// normal returns a wait status without the bits that mean nothing. Only 0 gives 0.
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

// stopped reports whether a wait status is no end: the process was stopped, or goes on.
func stopped(status int32) bool { return status&0x7f == 0x7f }

// orStatus returns a wait status, or another one if it is 0.
func orStatus(status, other int32) int32 {
	if status == 0 || stopped(status) {
		return other
	}
	return status
}
