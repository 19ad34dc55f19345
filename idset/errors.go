package idset

import (
	"errors"
	"fmt"
	"strings"
)

var (
	// ErrSyntax is returned when a text is no idset string of RFC 22. The
	// error that wraps it is a *SyntaxError.
	ErrSyntax = errors.New("idset: not an idset string")

	// ErrRange is returned when a text names an id above the largest one
	// allowed. The error that wraps it is a *RangeError.
	ErrRange = errors.New("idset: id out of range")

	// ErrLimit is returned when a text is longer, or a set larger, than the
	// caller allows. The error that wraps it is a *LimitError.
	ErrLimit = errors.New("idset: limit exceeded")

	// ErrUniverse is returned when an Allocator is asked about an id that it
	// was not given. The error that wraps it is an *IDError.
	ErrUniverse = errors.New("idset: not one of the allocator's ids")

	// ErrAllocated is returned when an id is reserved that is taken already.
	// The error that wraps it is an *IDError.
	ErrAllocated = errors.New("idset: already allocated")

	// ErrNotAllocated is returned when an id is freed that is not taken, as in
	// a double free. The error that wraps it is an *IDError.
	ErrNotAllocated = errors.New("idset: not allocated")
)

// What is wrong with a text: the causes that a SyntaxError carries.
var (
	errBracket   = errors.New("bracket is not closed")
	errEmpty     = errors.New("empty element")
	errByte      = errors.New("unexpected byte")
	errZero      = errors.New("leading zero")
	errOrder     = errors.New("not above the ids before it")
	errDirection = errors.New("range does not ascend")
)

// maxToken is the largest number of input bytes that an error repeats.
const maxToken = 64

// SyntaxError tells where and why a text is no idset string. It wraps
// ErrSyntax and its cause.
type SyntaxError struct {
	Offset int    // of the first byte that can not stand there, from 0
	Token  string // the element it is in, at most 64 bytes of it; a copy
	Err    error  // why
}

// Error returns a text such as "idset: offset 4: leading zero in "007"".
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("idset: offset %d: %v in %q", e.Offset, e.Err, e.Token)
}

// Unwrap returns ErrSyntax and the cause.
func (e *SyntaxError) Unwrap() []error { return []error{ErrSyntax, e.Err} }

// RangeError names an id that is larger than allowed. It wraps ErrRange.
type RangeError struct {
	Offset int    // of the id's first digit in the text, from 0
	Token  string // the id as written, at most 64 bytes of it; a copy
	Max    uint32 // the largest id allowed
}

// Error returns a text such as
// "idset: offset 0: id "4294967296" is above 2147483647".
func (e *RangeError) Error() string {
	return fmt.Sprintf("idset: offset %d: id %q is above %d", e.Offset, e.Token, e.Max)
}

// Unwrap returns ErrRange.
func (e *RangeError) Unwrap() error { return ErrRange }

// LimitError tells that something is larger than the caller allows. It wraps
// ErrLimit.
type LimitError struct {
	What  string // "bytes" of a text, "ids" of a set
	Got   int    // how many there are; saturates where int has 32 bits
	Limit int    // how many are allowed
}

// Error returns a text such as "idset: 12 bytes, at most 8 are allowed".
func (e *LimitError) Error() string {
	return fmt.Sprintf("idset: %d %s, at most %d are allowed", e.Got, e.What, e.Limit)
}

// Unwrap returns ErrLimit.
func (e *LimitError) Unwrap() error { return ErrLimit }

// IDError names the id that an Allocator refuses. It wraps ErrUniverse,
// ErrAllocated or ErrNotAllocated.
type IDError struct {
	ID  uint32
	Err error
}

// Error returns a text such as "idset: id 5: not allocated".
func (e *IDError) Error() string {
	return fmt.Sprintf("idset: id %d: %s", e.ID, strings.TrimPrefix(e.Err.Error(), "idset: "))
}

// Unwrap returns the sentinel that says why.
func (e *IDError) Unwrap() error { return e.Err }

// quoted returns a copy of the start of a token, short enough to print.
func quoted(token string) string {
	return strings.Clone(token[:min(len(token), maxToken)])
}
