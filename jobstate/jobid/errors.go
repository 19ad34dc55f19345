package jobid

import (
	"errors"
	"fmt"

	"github.com/joblife/joblife/internal/guard"
)

// The categories of errors. Compare with errors.Is.
var (
	// ErrSyntax is returned when a text is not an id in any form.
	ErrSyntax = errors.New("jobid: syntax error")

	// ErrRange is returned when a text is a number beyond 64 bits, when the id of
	// a generator is above MaxGenerator, when its epoch is zero, and when a time
	// is 2^40 milliseconds after the epoch or later.
	ErrRange = errors.New("jobid: out of range")

	// ErrUnsupported is returned when a text has a form of RFC 19 that this
	// package does not read: words or emoji.
	ErrUnsupported = errors.New("jobid: form not supported")

	// ErrExhausted is returned when a generator has no id left in the given
	// millisecond. A later millisecond has ids again.
	ErrExhausted = errors.New("jobid: no id left in this millisecond")

	// ErrClock is returned when a generator is given a time before the epoch or
	// before the millisecond of the last id.
	ErrClock = errors.New("jobid: clock went back")
)

// refuse returns the error for a text, of which the byte at an offset is wrong.
func refuse(category error, text string, offset int, reason string) error {
	return fmt.Errorf("%w: offset %d: %s in %s", category, offset, reason, guard.Quote(text))
}
