package jobid

import (
	"errors"
	"fmt"

	"github.com/joblife/joblife/internal/guard"
)

// What a caller of a generator can wait out. Compare with errors.Is.
var (
	// ErrExhausted is returned when a generator has no id left in the given
	// millisecond. A later millisecond has ids again.
	ErrExhausted = errors.New("jobid: no id left in this millisecond")

	// ErrClock is returned when a generator is given a time before the epoch or
	// before the millisecond of the last id.
	ErrClock = errors.New("jobid: clock went back")
)

// The categories of other errors: a text is not an id in any form; a number is beyond
// 64 bits; RFC 19 has the form, but this package does not read it.
var (
	errSyntax      = errors.New("jobid: syntax error")
	errRange       = errors.New("jobid: out of range")
	errUnsupported = errors.New("jobid: form not supported")
)

// refuse returns the error for a text, of which the byte at an offset is wrong.
func refuse(category error, text string, offset int, reason string) error {
	return fmt.Errorf("%w: offset %d: %s in %s", category, offset, reason, guard.Quote(text))
}
