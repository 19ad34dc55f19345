package jsonscan

import (
	"errors"
	"fmt"

	"github.com/joblife/joblife/internal/guard"
)

// The categories of errors. Each error of this package is a *[SyntaxError] that
// unwraps to ErrSyntax and, where one of the others names its cause, to that.
var (
	// ErrSyntax is returned when a text is not one JSON value as this package
	// reads it.
	ErrSyntax = errors.New("invalid JSON")
	// ErrDepth is returned when values are nested deeper than the limit.
	ErrDepth = errors.New("nested too deep")
	// ErrDuplicate is returned when a key occurs twice in an object.
	ErrDuplicate = errors.New("duplicate key")
	// ErrUTF8 is returned when a string is not valid UTF-8, or has half of a
	// pair of surrogates as an escape.
	ErrUTF8 = errors.New("invalid UTF-8")
	// ErrRange is returned when an integer does not fit in an int64 or a real is
	// not finite as a float64.
	ErrRange = errors.New("number out of range")
)

// SyntaxError tells where a text stops being one JSON value, and why.
type SyntaxError struct {
	// Offset is where the fault is, in bytes from the start of the text, from
	// 0. It is the length of the text where that ends too early.
	Offset int
	// Err is the cause. It keeps no reference to the text.
	Err error
}

// Error returns the offset and the cause.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("jsonscan: offset %d: %v", e.Offset, e.Err)
}

// Unwrap returns ErrSyntax and the cause.
func (e *SyntaxError) Unwrap() []error { return []error{ErrSyntax, e.Err} }

// fault is the reason why a scan stopped; the offset it comes with says where.
// Scans return faults, not errors, so that nothing is built while all is well.
type fault uint8

const (
	noFault        fault = iota
	faultEnd             // the text ends inside a value
	faultByte            // a byte that can not stand here
	faultControl         // a control character in a string
	faultUTF8            // a string is not UTF-8
	faultEscape          // an escape that is not one of JSON's
	faultSurrogate       // half of a pair
	faultRange           // a number out of range
	faultDepth           // nested too deep
	faultDuplicate       // the key that begins here occurred before
	faultNUL             // U+0000 in the key that begins here
	faultTrailing        // more text after the value
	faultBOM             // a byte order mark
)

// newError builds the error for a fault at offset i of b.
func newError(b []byte, i int, f fault) *SyntaxError {
	return &SyntaxError{Offset: i, Err: f.cause(b, i)}
}

// cause returns the error that stands for f, with a copy of what it quotes.
func (f fault) cause(b []byte, i int) error {
	switch f {
	case faultEnd:
		return errors.New("unexpected end")
	case faultByte:
		return fmt.Errorf("unexpected byte %q", guard.Clip(b[i:i+1]))
	case faultControl:
		return fmt.Errorf("control character %q in a string", guard.Clip(b[i:i+1]))
	case faultUTF8:
		return fmt.Errorf("%w: byte %q in a string", ErrUTF8, guard.Clip(b[i:i+1]))
	case faultEscape:
		return errors.New("unknown escape in a string")
	case faultSurrogate:
		return fmt.Errorf("%w: escape of half a surrogate pair", ErrUTF8)
	case faultRange:
		end, _, _ := scanNumberForm(b, i)
		return fmt.Errorf("%w: %q", ErrRange, guard.Clip(b[i:end]))
	case faultDepth:
		return ErrDepth
	case faultDuplicate:
		key, _ := AppendUnescaped(nil, tokenAt(b, i))
		return fmt.Errorf("%w %q", ErrDuplicate, guard.Clip(key))
	case faultNUL:
		return errors.New("U+0000 in a key")
	case faultTrailing:
		return fmt.Errorf("text after the value: byte %q", guard.Clip(b[i:i+1]))
	case faultBOM:
		return errors.New("byte order mark")
	}
	return fmt.Errorf("fault %d", uint8(f))
}

// tokenAt returns the string token that begins at offset i of b and was scanned
// before.
func tokenAt(b []byte, i int) []byte {
	end, _, _ := scanString(b, i)
	return b[i:end]
}
