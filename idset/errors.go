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

func tooMany(got int, what string, most int) error {
	return fmt.Errorf("%w: %d %s, at most %d are allowed", ErrLimit, got, what, most)
}
