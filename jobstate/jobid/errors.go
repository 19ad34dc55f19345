package jobid

import (
	"errors"
	"fmt"

	"github.com/joblife/joblife/internal/guard"
)

// The categories of errors. The caller of a generator can wait out the last two.
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
