package fsd

import (
	"errors"
	"fmt"
	"strings"
)

var (
	// ErrSyntax is returned when a text is not a number with a unit of RFC 23.
	ErrSyntax = errors.New("not a duration")

	// ErrRange is returned when a text or a value is a negative number, when a text is a number
	// too great for a float64, when a value is NaN, and when a duration is too
	// long for a time.Duration.
	ErrRange = errors.New("out of range")
)

// maxQuoted is the number of bytes of a refused text that an error shows.
const maxQuoted = 64

// A ParseError tells why a text is not a duration.
type ParseError struct {
	Offset int    // of the offending byte in the text, from 0; the text's length if it ends too early
	Input  string // a copy of the text, cut to 64 bytes
	Reason string // what is wrong there
	Err    error  // ErrSyntax or ErrRange
}

// Error describes the error in one line, the text quoted.
func (e *ParseError) Error() string {
	return fmt.Sprintf("fsd: offset %d: %s in %q", e.Offset, e.Reason, e.Input)
}

// Unwrap returns the category: ErrSyntax or ErrRange.
func (e *ParseError) Unwrap() error { return e.Err }

// newParseError builds a ParseError that does not refer to the memory of s.
func newParseError(s string, offset int, reason string, category error) *ParseError {
	return &ParseError{
		Offset: offset,
		Input:  strings.Clone(s[:min(len(s), maxQuoted)]),
		Reason: reason,
		Err:    category,
	}
}

// A ValueError tells why a value can not be used as a duration, or a duration as a
// time.Duration.
type ValueError struct {
	Value  Duration
	Reason string
	Err    error // ErrRange
}

// Error describes the error in one line.
func (e *ValueError) Error() string {
	return fmt.Sprintf("fsd: %v: %v: %s", e.Value, e.Err, e.Reason)
}

// Unwrap returns the category, ErrRange.
func (e *ValueError) Unwrap() error { return e.Err }

// errInvalid is the error for a value that is no duration.
func errInvalid(d Duration) error {
	reason := "negative"
	if d != d {
		reason = "not a number"
	}
	return &ValueError{Value: d, Reason: reason, Err: ErrRange}
}
