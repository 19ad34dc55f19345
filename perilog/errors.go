package perilog

import (
	"errors"
	"fmt"
	"strings"
)

// The causes of a jobstate.ContextError that this package makes.
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
// jobstate.ErrTime, or a *jobstate.ContextError and so jobstate.ErrContext.
type EventError struct {
	Event string // the event's name, cut at 64 bytes
	Err   error
}

// Error describes the refusal in one line.
func (e *EventError) Error() string { return fmt.Sprintf("perilog: event %q: %v", e.Event, e.Err) }

// Unwrap returns the cause.
func (e *EventError) Unwrap() error { return e.Err }

// clip copies s, cut at 64 bytes, so that an error keeps no reference to its
// input and prints in a line.
func clip(s string) string { return strings.Clone(s[:min(len(s), 64)]) }
