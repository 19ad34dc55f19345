package jobid

import (
	"errors"
	"fmt"
	"strings"
)

var (
	// ErrSyntax is returned when a text is not an id in any form.
	ErrSyntax = errors.New("not a job id")

	// ErrRange is returned when a text is a number beyond 64 bits, when a generator
	// id is beyond 14 bits, and when a time is beyond the 40 bits that an id has for it.
	ErrRange = errors.New("out of range")

	// ErrUnsupported is returned when a text has a form of RFC 19 that this
	// package does not read: words or emoji.
	ErrUnsupported = errors.New("form not supported")

	// ErrExhausted is returned when a generator has no id left in the given
	// millisecond. A later millisecond has ids again.
	ErrExhausted = errors.New("no id left in this millisecond")

	// ErrClock is returned when a generator is given a time before the epoch or
	// before the millisecond of the last id.
	ErrClock = errors.New("clock went back")
)

// maxQuoted is the number of bytes of a refused text that an error shows.
const maxQuoted = 64

// A ParseError tells why a text is not an id.
type ParseError struct {
	Offset int    // of the offending byte in the text, from 0; the text's length if it ends too early
	Input  string // a copy of the text, cut to 64 bytes
	Reason string // what is wrong there
	Err    error  // ErrSyntax, ErrRange or ErrUnsupported
}

// Error describes the error in one line, the text quoted.
func (e *ParseError) Error() string {
	return fmt.Sprintf("jobid: offset %d: %s in %q", e.Offset, e.Reason, e.Input)
}

// Unwrap returns the category: ErrSyntax, ErrRange or ErrUnsupported.
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

// A GeneratorError tells why a generator made no id.
type GeneratorError struct {
	Generator uint16 // the generator's id
	Millis    int64  // the given time in milliseconds since the epoch; cut at 292 years
	Last      ID     // the last id or watermark
	Err       error  // ErrExhausted, ErrClock or ErrRange
}

// Error describes the error in one line.
func (e *GeneratorError) Error() string {
	return fmt.Sprintf("jobid: generator %d: %v: at %d ms, the last id is of %d ms",
		e.Generator, e.Err, e.Millis, e.Last.Timestamp())
}

// Unwrap returns the category: ErrExhausted, ErrClock or ErrRange.
func (e *GeneratorError) Unwrap() error { return e.Err }
