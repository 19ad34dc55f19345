package fsd

import (
	"fmt"

	"github.com/joblife/joblife/internal/guard"
)

// The categories of errors: not a number with a unit of RFC 23; negative or beyond float64.
const (
	syntaxError = "syntax error"
	outOfRange  = "out of range"
)

// refuse returns the error for a text, of which the byte at an offset is wrong.
func refuse(category, s string, offset int, reason string) error {
	return fmt.Errorf("fsd: %s: offset %d: %s in %s", category, offset, reason, guard.Quote(s))
}
