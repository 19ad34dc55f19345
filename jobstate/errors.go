package jobstate

import (
	"errors"
	"fmt"
	"strings"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/internal/guard"
	"github.com/joblife/joblife/jobstate/jobid"
)

// ErrTransition is returned when RFC 21 does not allow the event in the state that the job
// is in, and when dependency-add names a dependency that was satisfied before.
var ErrTransition = errors.New("event is not legal in this state")

// The categories without a caller who branches.
var (
	errClosed  = errors.New("log is closed") // by clean or invalidate
	errContext = errors.New("malformed context")
	errVersion = errors.New("unsupported version of the log format")
)

var errDependency = guard.Cause(ErrTransition, "dependency was already satisfied")

// The errors of an entry whose time or name no event can have.
var (
	errTime = fmt.Errorf(prefix+"%w: timestamp must be finite and greater than zero", eventlog.ErrEntry)
	errName = fmt.Errorf(prefix+"%w: name must be UTF-8 without U+0000, and not empty", eventlog.ErrEntry)
)

// The causes of malformed contexts that no single value shows.
var (
	errAbsent  = errors.New("the event has no context")
	errEmpty   = errors.New("must not be empty")
	errPath    = errors.New("must be attributes, resources or tasks, or a path below one")
	errTwice   = errors.New("path appears twice")
	errKind    = errors.New("unknown kind of action")
	errExtra   = errors.New("key must not appear in Extra")
	errNames   = errors.New("names must be unique and not empty")
	errHow     = errors.New("per-rank and leader must not both be set")
	errAttempt = errors.New("an attempt needs per-rank or leader")
	errFalse   = errors.New("must be true")

	errOnFailure    = errors.New(`must be "drain", "hold" or "release"`)
	errHousekeeping = errors.New("only housekeeping has release-after and on-failure")
	errPerilog      = errors.New(`must be "prolog" or "epilog"`)
	errAction       = errors.New(`must be "keep" or "drop"`)
	errFatal        = errors.New("an exception that names failed ranks is not fatal")
)

// prefix begins the text of every error of this package.
const prefix = "jobstate: "

func contextError(event string, err error) error {
	return fmt.Errorf(prefix+"%w of %s: %w", errContext, guard.Clip(event), err)
}

func bare(err error) string { return strings.TrimPrefix(err.Error(), prefix) }

// EventError is the refusal of an event. It unwraps to the cause: [ErrTransition], the error of
// package eventlog for a malformed line, [eventlog.ErrEntry] for a time or name that no event can
// have, or one that says that the log is closed, or what is wrong with the version or context.
type EventError struct {
	ID     jobid.ID
	Line   int    // line of the log, from 1; 0 outside of Replay
	Offset int64  // of the fault in the log if it is known, else of the line, from 0; 0 outside of Replay
	Event  string // the event's name, cut at 64 bytes; "" if the line is not an entry
	State  State  // the state the job was in, and still is
	Err    error
}

// Error describes the refusal in one line.
func (e *EventError) Error() string {
	s := fmt.Sprintf(prefix+"job %v: ", e.ID)
	if e.Line > 0 {
		s += fmt.Sprintf("line %d: offset %d: ", e.Line, e.Offset)
	}
	if e.Event != "" {
		s += fmt.Sprintf("%q in %v: ", e.Event, e.State)
	}
	var bad *eventlog.SyntaxError
	if errors.As(e.Err, &bad) {
		return s + bad.Err.Error() // its position is there already
	}
	return s + bare(e.Err)
}

// Unwrap returns the cause.
func (e *EventError) Unwrap() error { return e.Err }
