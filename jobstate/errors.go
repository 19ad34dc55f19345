package jobstate

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/joblife/joblife/jobstate/jobid"
)

// The categories of errors that this package returns. Compare with errors.Is.
var (
	// ErrTransition is returned when RFC 21 does not allow the event in the
	// state that the job is in.
	ErrTransition = errors.New("event is not legal in this state")
	// ErrClosed is returned for every event after clean or invalidate.
	ErrClosed = errors.New("log is closed")
	// ErrContext is returned when the context of an RFC 21 event lacks a
	// required key, has one of the wrong type or one out of range.
	ErrContext = errors.New("malformed context")
	// ErrVersion is returned when submit names a version of the log format
	// that this package does not know.
	ErrVersion = errors.New("unsupported version of the log format")
	// ErrDependency is returned when a dependency is added that the job had
	// before and that was satisfied.
	ErrDependency = errors.New("dependency was already satisfied")
	// ErrTime is returned when the timestamp of an entry is not finite and
	// greater than zero.
	ErrTime = errors.New("timestamp must be finite and greater than zero")
	// ErrName is returned for a name that no state or result has.
	ErrName = errors.New("unknown name")
)

// The causes of a ContextError.
var (
	errMissing = errors.New("key is missing")
	errType    = errors.New("value has the wrong type")
	errRange   = errors.New("value is out of range")
	errEmpty   = errors.New("must not be empty")
	errUTF8    = errors.New("text is not valid UTF-8")
	errPath    = errors.New(`must begin with "attributes."`)
)

// EventError says which event of which job was refused, and in which state.
// It unwraps to the cause: ErrTransition, ErrClosed, ErrVersion,
// ErrDependency, ErrTime, eventlog.ErrEntry for a name that no log can hold, or
// a ContextError.
type EventError struct {
	ID    jobid.ID
	Event string // the event's name, cut at 64 bytes
	State State  // the state the job was in, and still is
	Err   error
}

// Error describes the refusal in one line.
func (e *EventError) Error() string {
	return fmt.Sprintf("jobstate: job %v: %q in %v: %v", e.ID, e.Event, e.State, e.Err)
}

// Unwrap returns the cause.
func (e *EventError) Unwrap() error { return e.Err }

// ContextError says what is wrong with the context of an event. It unwraps to
// ErrContext and to the cause.
type ContextError struct {
	Event  string
	Key    string // the key at fault; "" where the whole context is
	Offset int    // of the value in the context, in bytes from 0; -1 where the key is missing
	Err    error
}

// Error describes the fault in one line.
func (e *ContextError) Error() string {
	s := "context of " + e.Event
	if e.Key != "" {
		s += ": key " + strconv.Quote(e.Key)
	}
	if e.Offset >= 0 {
		s += ": offset " + strconv.Itoa(e.Offset)
	}
	return s + ": " + e.Err.Error()
}

// Unwrap returns ErrContext and the cause.
func (e *ContextError) Unwrap() []error { return []error{ErrContext, e.Err} }

// ReplayError says at which line of a log a replay stopped. It unwraps to the
// cause: an EventError, or what package eventlog says of a malformed line.
type ReplayError struct {
	ID     jobid.ID
	Line   int   // from 1
	Offset int64 // of the line's first byte, from 0
	Err    error
}

// Error describes the stop in one line.
func (e *ReplayError) Error() string {
	return fmt.Sprintf("jobstate: replay of job %v stopped at line %d, offset %d: %v", e.ID, e.Line, e.Offset, e.Err)
}

// Unwrap returns the cause.
func (e *ReplayError) Unwrap() error { return e.Err }

// NameError says which name is not known. It unwraps to ErrName.
type NameError struct {
	Kind string // "state" or "result"
	Name string // cut at 64 bytes
}

// Error describes the fault in one line.
func (e *NameError) Error() string {
	return fmt.Sprintf("jobstate: unknown %s %q", e.Kind, e.Name)
}

// Unwrap returns ErrName.
func (e *NameError) Unwrap() error { return ErrName }

// clip copies s, cut at 64 bytes, so that an error keeps no reference to its
// input and prints in a line.
func clip[T string | []byte](s T) string {
	return string(append([]byte(nil), s[:min(len(s), 64)]...))
}
