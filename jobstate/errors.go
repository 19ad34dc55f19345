package jobstate

import (
	"errors"
	"fmt"

	"github.com/joblife/joblife/jobstate/jobid"
)

// The categories of errors that this package returns. Compare with errors.Is.
var (
	// ErrTransition is returned when RFC 21 does not allow the event in the
	// state that the job is in.
	ErrTransition = errors.New("event is not legal in this state")
	// ErrClosed is returned for every event after clean or invalidate.
	ErrClosed = errors.New("log is closed")
	// ErrContext is returned when a context lacks a required key, or has one of
	// the wrong type or out of range. The text names the key and its offset.
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

// The causes of malformed contexts that no single value shows.
var (
	errAbsent  = errors.New("the event has no context")
	errEmpty   = errors.New("must not be empty")
	errPath    = errors.New("must be attributes, resources or tasks, or a path below one")
	errKind    = errors.New("unknown kind of action")
	errExtra   = errors.New("the event has this key itself")
	errNames   = errors.New("names must not be empty, and each appears once")
	errHow     = errors.New("per-rank and leader exclude each other")
	errAttempt = errors.New("an attempt needs per-rank or leader")
	errFalse   = errors.New("must be true")
	errAction  = errors.New(`must be "keep" or "drop"`)
	errFatal   = errors.New("an exception that names failed ranks is not fatal")
)

// contextError returns an error about the context of an event.
func contextError(event string, err error) error {
	return fmt.Errorf("%w of %s: %w", ErrContext, clip(event), err)
}

// EventError says which event of which job was refused, and in which state.
// It unwraps to the cause: ErrTransition, ErrClosed, ErrVersion,
// ErrDependency, ErrTime, ErrContext, or eventlog.ErrEntry for a name that no
// log can hold.
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

// clip copies s, cut at 64 bytes, so that an error keeps no reference to its
// input and prints in a line.
func clip[T string | []byte](s T) string {
	return string(append([]byte(nil), s[:min(len(s), 64)]...))
}
