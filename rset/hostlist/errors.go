package hostlist

import (
	"errors"
	"fmt"
	"strings"
)

var (
	// ErrSyntax is returned when a text is no hostlist string of RFC 29, or a
	// name no host name. The error that wraps it is a *SyntaxError.
	ErrSyntax = errors.New("hostlist: not a hostlist string")

	// ErrLimit is returned when a text, a name or a list is larger than
	// allowed. The error that wraps it is a *LimitError.
	ErrLimit = errors.New("hostlist: limit exceeded")
)

// What is wrong with a text: the causes that a SyntaxError carries.
var (
	errBracket   = errors.New("bracket is not closed")
	errUnopened  = errors.New("bracket is not opened")
	errSecond    = errors.New("second bracket")
	errEmpty     = errors.New("empty element")
	errByte      = errors.New("unexpected byte")
	errDirection = errors.New("range does not ascend")
	errName      = errors.New("empty name")
)

// maxToken is the largest number of input bytes that an error repeats.
const maxToken = 64

// SyntaxError tells where and why a text is no hostlist string. It wraps
// ErrSyntax and its cause.
type SyntaxError struct {
	Offset int    // of the first byte that can not stand there, from 0
	Token  string // the text from the start of the expression it is in, at most 64 bytes; a copy
	Err    error  // why
}

// Error returns the place, the cause and the token.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("hostlist: offset %d: %v in %q", e.Offset, e.Err, e.Token)
}

// Unwrap returns ErrSyntax and the cause.
func (e *SyntaxError) Unwrap() []error { return []error{ErrSyntax, e.Err} }

// LimitError tells that something is larger than allowed. It wraps ErrLimit.
type LimitError struct {
	What   string // "bytes" of a text, "hosts", "bytes of a name", "spelled hosts", "digits of an id", "ranges"
	Offset int    // where in the text the limit was passed, from 0; 0 if there is no text
	Got    int    // how many there are, as far as was counted; saturates
	Limit  int    // how many are allowed
}

// Error returns the place, what was counted and the limit.
func (e *LimitError) Error() string {
	return fmt.Sprintf("hostlist: offset %d: %d %s, at most %d are allowed", e.Offset, e.Got, e.What, e.Limit)
}

// Unwrap returns ErrLimit.
func (e *LimitError) Unwrap() error { return ErrLimit }

// quoted returns a copy of the start of a token, short enough to print.
func quoted(token string) string {
	return strings.Clone(token[:min(len(token), maxToken)])
}
