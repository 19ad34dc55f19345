package jobid

import (
	"errors"
	"fmt"

	"github.com/joblife/joblife/internal/guard"
)

// The categories of errors: a text is not an id in any form; a number is beyond 64 bits;
// RFC 19 has the form, but this package does not read it. And what a caller of a generator
// can wait out: a millisecond has no more ids, or the time is before the last one's.
var (
	errSyntax      = errors.New("jobid: syntax error")
	errRange       = errors.New("jobid: out of range")
	errUnsupported = errors.New("jobid: form not supported")
	errExhausted   = errors.New("jobid: no id left in this millisecond")
	errClock       = errors.New("jobid: clock went back")
)

// refuse returns the error for a text, of which the byte at an offset is wrong.
func refuse(category error, text string, offset int, reason string) error {
	return fmt.Errorf("%w: offset %d: %s in %s", category, offset, reason, guard.Quote(text))
}
