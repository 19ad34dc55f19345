package fsd

import (
	"errors"
	"fmt"

	"github.com/joblife/joblife/internal/guard"
)

// The categories of errors. Compare with errors.Is.
var (
	// ErrSyntax is returned when a text is not a number with a unit of RFC 23.
	ErrSyntax = errors.New("fsd: syntax error")

	// ErrRange is returned for a negative number and for one too large
	// for a float64.
	ErrRange = errors.New("fsd: out of range")
)

// refuse returns the error for a text, of which the byte at an offset is wrong.
func refuse(category error, s string, offset int, reason string) error {
	return fmt.Errorf("%w: offset %d: %s in %s", category, offset, reason, guard.Quote(s))
}
