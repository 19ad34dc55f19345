package idset

import (
	"errors"
	"fmt"
)

// The categories of errors. Compare with errors.Is.
var (
	// ErrRange is returned when a text has an id above MaxID, or above the
	// limit of ParseLimit.
	ErrRange = errors.New("idset: id out of range")

	// ErrLimit is returned by Parse for a text that is too long, and by Slice
	// for a set that is too large.
	ErrLimit = errors.New("idset: limit exceeded")
)

// The causes of a syntax error.
const (
	faultBracket   = "bracket is not closed"
	faultEmpty     = "empty element"
	faultByte      = "unexpected byte"
	faultZero      = "leading zero"
	faultOrder     = "not above the ids before it"
	faultDirection = "range does not ascend"
)

func tooMany(got int, what string, most int) error {
	return fmt.Errorf("%w: %d %s, at most %d are allowed", ErrLimit, got, what, most)
}
