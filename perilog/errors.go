package perilog

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate/jobid"
)

// The categories of errors that this package returns, beside those of packages
// jobstate and eventlog. Compare with errors.Is.
var (
	// ErrSpec is returned when a Spec, or the time of a start, can not be used.
	// The error that wraps it is a *SpecError.
	ErrSpec = errors.New("perilog: run can not be made")

	// ErrStarted is returned when a Run is started a second time.
	ErrStarted = errors.New("perilog: run was started before")

	// ErrConfig is returned when a configuration has an unknown key or a value
	// that can not be used. The error that wraps it is a *ConfigError.
	ErrConfig = errors.New("perilog: configuration is not valid")

	// ErrControl is returned when a line begins as a control line and is none.
	// The error that wraps it is a *ControlError.
	ErrControl = errors.New("perilog: not a control line")

	// ErrAction is returned when an action can not be resolved as demanded. The
	// error that wraps it is an *ActionError.
	ErrAction = errors.New("perilog: action can not be resolved so")

	// ErrActions is returned for the start of an action where MaxActions are
	// active. It comes in an *EventError only, whose text has the prefix.
	ErrActions = errors.New("too many actions are active")

	// ErrHousekeeping is returned when the housekeeping of a job can not be
	// made. The error that wraps it is a *HousekeepingError.
	ErrHousekeeping = errors.New("perilog: housekeeping can not be made")

	// ErrBypass is returned for a job that never has housekeeping, as its
	// resources did not come from the scheduler.
	ErrBypass = errors.New("perilog: the job's resources did not come from the scheduler")

	// ErrHousekeepingRanks is returned when work is to be started on ranks
	// where that can not be. The error that wraps it is a
	// *HousekeepingRanksError.
	ErrHousekeepingRanks = errors.New("perilog: ranks are not to be worked on")

	// ErrHousekeepingLog is returned when a log is none of housekeeping. The
	// error that wraps it is a *HousekeepingLogError.
	ErrHousekeepingLog = errors.New("perilog: not a log of housekeeping")

	// ErrPartialRelease is returned when a scheduler that does not take partial
	// allocations asks for a job that has one. The error that wraps it is a
	// *PartialReleaseError.
	ErrPartialRelease = errors.New("perilog: scheduler does not take partial allocations")
)

// The causes of malformed contexts that this package makes.
var (
	errKeyMissing = errors.New("key is missing")
	errKeyType    = errors.New("value has the wrong type")
	errKeyRange   = errors.New("value is out of range")
	errKeyEmpty   = errors.New("must not be empty")
	errKeyTwice   = errors.New("a name is given twice")
	errKeyAction  = errors.New(`must be "keep" or "drop"`)
	errKeyKind    = errors.New("is neither a prolog nor an epilog")
	errKeyUTF8    = errors.New("text is not valid UTF-8")
	errKeyExtra   = errors.New("is not an extra key")
	errKeyEvent   = errors.New("is another event")
)

// EventError says which event Holds refused. It unwraps to the cause:
// eventlog.ErrEntry, ErrActions, or jobstate.ErrContext.
type EventError struct {
	Event string // the event's name, cut at 64 bytes
	Err   error
}

// Error describes the refusal in one line.
func (e *EventError) Error() string { return fmt.Sprintf("perilog: event %q: %v", e.Event, e.Err) }

// Unwrap returns the cause.
func (e *EventError) Unwrap() error { return e.Err }

// A SpecError tells which field of a Spec can not be used. It wraps ErrSpec.
type SpecError struct {
	Field  string // the name of the field; "now" for the time of a start
	Reason string // what is wrong with it
}

// Error returns a text such as "perilog: Spec.Ranks: is empty".
func (e *SpecError) Error() string { return "perilog: Spec." + e.Field + ": " + e.Reason }

// Unwrap returns ErrSpec.
func (e *SpecError) Unwrap() error { return ErrSpec }

// A ConfigError tells which key of a configuration can not be used, and why.
// It wraps ErrConfig and its cause.
type ConfigError struct {
	Key string // dotted, such as "job-manager.prolog.timeout"
	Err error
}

// Error returns a text such as
// "perilog: job-manager.prolog.timeout: is not a duration".
func (e *ConfigError) Error() string { return "perilog: " + e.Key + ": " + e.Err.Error() }

// Unwrap returns ErrConfig and the cause.
func (e *ConfigError) Unwrap() []error { return []error{ErrConfig, e.Err} }

// A ControlError tells why a line that begins as a control line is none. It
// wraps ErrControl and its cause.
type ControlError struct {
	Offset int // of the fault in the line, from 0
	Err    error
}

// Error returns a text such as
// "perilog: control line: offset 20: unknown version".
func (e *ControlError) Error() string {
	return "perilog: control line: offset " + strconv.Itoa(e.Offset) + ": " + e.Err.Error()
}

// Unwrap returns ErrControl and the cause.
func (e *ControlError) Unwrap() []error { return []error{ErrControl, e.Err} }

// An ActionError tells why an action can not be resolved as demanded. It wraps
// ErrAction.
type ActionError struct {
	Action Key // with at most 64 bytes of the description
	Reason string
}

// Error returns a text such as "perilog: prolog job-manager.prolog: is not
// lost".
func (e *ActionError) Error() string { return "perilog: " + e.Action.String() + ": " + e.Reason }

// Unwrap returns ErrAction.
func (e *ActionError) Unwrap() error { return ErrAction }

func actionError(key Key, reason string) error {
	return &ActionError{Action: key.clip(), Reason: reason}
}

// A HousekeepingError tells what of a job can not be used, and why. It wraps
// ErrHousekeeping and, where there is one, the cause.
type HousekeepingError struct {
	Field  string // of HousekeepingJob; "now" or "user" for those arguments
	Reason string // what is wrong with it
	Err    error  // the cause; nil if Reason says it all
}

// Error returns a text such as "perilog: housekeeping: R: has too many ranks".
func (e *HousekeepingError) Error() string {
	return "perilog: housekeeping: " + e.Field + ": " + e.Reason
}

// Unwrap returns ErrHousekeeping and the cause.
func (e *HousekeepingError) Unwrap() []error {
	if e.Err == nil {
		return []error{ErrHousekeeping}
	}
	return []error{ErrHousekeeping, e.Err}
}

// A HousekeepingRanksError names ranks on which work can not be started: it was
// and goes on, they are ready or have gone back, or they are not the job's. It
// wraps ErrHousekeepingRanks.
type HousekeepingRanksError struct {
	Op    string     // "start" or "reattach"
	Ranks *idset.Set // not empty
}

// Error returns a text such as "perilog: housekeeping: start: not of ranks 3-4".
func (e *HousekeepingRanksError) Error() string {
	return "perilog: housekeeping: " + e.Op + ": not of ranks " + clip(e.Ranks.String())
}

// Unwrap returns ErrHousekeepingRanks.
func (e *HousekeepingRanksError) Unwrap() error { return ErrHousekeepingRanks }

// A HousekeepingLogError tells where a log is none of housekeeping, and why. It
// wraps ErrHousekeepingLog and its cause.
type HousekeepingLogError struct {
	Line  int    // from 1; 0 for a log without lines
	Event string // the name of the event, at most 64 bytes of it; "" for the log as a whole
	Key   string // of its context, at most 64 bytes; "" for the event as a whole
	Err   error
}

// Error returns a text such as
// `perilog: housekeeping: line 3: end: "cause": is missing`.
func (e *HousekeepingLogError) Error() string {
	s := "perilog: housekeeping: line " + strconv.Itoa(e.Line) + ": "
	if e.Event != "" {
		s += quote(e.Event) + ": "
	}
	if e.Key != "" {
		s += quote(e.Key) + ": "
	}
	return s + e.Err.Error()
}

// Unwrap returns ErrHousekeepingLog and the cause.
func (e *HousekeepingLogError) Unwrap() []error { return []error{ErrHousekeepingLog, e.Err} }

// A keyError is the fault of one key, on its way to a HousekeepingLogError.
type keyError struct {
	key string
	err error
}

func (e *keyError) Error() string { return quote(e.key) + ": " + e.err.Error() }

// A PartialReleaseError tells of a job of which a part was given back, and what
// is held. It wraps ErrPartialRelease.
type PartialReleaseError struct {
	Job  jobid.ID
	Held *idset.Set // not empty, but where only resources without a rank are held
	Free *idset.Set // not empty
}

// Error returns a text such as "perilog: housekeeping: job ƒ3: ranks 3 are held,
// and the scheduler does not take partial allocations".
func (e *PartialReleaseError) Error() string {
	return "perilog: housekeeping: job " + e.Job.String() + ": ranks " + clip(e.Held.String()) +
		" are held, and the scheduler does not take partial allocations"
}

// Unwrap returns ErrPartialRelease.
func (e *PartialReleaseError) Unwrap() error { return ErrPartialRelease }

// maxQuoted is the largest number of input bytes that an error repeats.
const maxQuoted = 64

// clip returns a copy of the start of a text, so that an error keeps no reference
// to its input and prints in a line.
func clip(s string) string { return strings.Clone(s[:min(len(s), maxQuoted)]) }

// quote returns a text from outside as an error repeats it.
func quote(s string) string { return strconv.Quote(clip(s)) }
