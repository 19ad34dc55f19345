package eventlog

import (
	"errors"
	"fmt"

	"github.com/joblife/joblife/internal/guard"
	"github.com/joblife/joblife/internal/jsonobj"
)

// The categories of errors. Compare with errors.Is. An error of reading is a
// *[SyntaxError], or wraps the error of the reader.
var (
	// ErrSyntax is returned when a line is not one JSON object of RFC 8259: it
	// is empty, is not JSON, is not UTF-8, has a key twice, has a carriage
	// return before the newline, or has a newline inside an entry.
	ErrSyntax = errors.New("invalid line")
	// ErrEntry is returned when an object is not an event of RFC 18: a key is
	// missing or of the wrong type, the timestamp is not greater than zero, the
	// name is empty or has U+0000, or a key is unknown and StrictKeys is set.
	ErrEntry = errors.New("invalid event")
	// ErrTorn is returned when text follows the last newline of a log: the write of the
	// last entry did not finish. All complete entries come before this error.
	ErrTorn = errors.New("torn last line")
	// ErrLimit is returned when a line, its depth or the number of entries exceeds a limit.
	ErrLimit = errors.New("limit exceeded")
)

// SyntaxError says where and why a log, or the line given to Parse, is invalid.
type SyntaxError struct {
	// Line is the number of the line, from 1; always 1 from Parse.
	Line int
	// Offset is where the fault is, in bytes from the start of the input, from
	// 0. For ErrTorn it is where the torn line begins: up to there, the log is
	// complete. For a missing key it is where the object begins.
	Offset int64
	// Err wraps the category and the cause; its text is the cause. It keeps no
	// reference to the input.
	Err error
}

// Error returns the text `eventlog: line 3: offset 40: duplicate key "name"`.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("eventlog: line %d: offset %d: %v", e.Line, e.Offset, e.Err)
}

// Unwrap returns Err.
func (e *SyntaxError) Unwrap() error { return e.Err }

// The causes without a value in their text. That in a field follows the field's name.
var (
	errEmptyLine    = errors.New("empty line")
	errReturn       = errors.New("carriage return before the newline")
	errInnerNewline = errors.New("newline inside an entry")
	errUnknown      = errors.New("unknown key")
	errNotNumber    = errors.New("must be a number")
	errNotFinite    = errors.New("must be a finite number")
	errNotPositive  = errors.New("must be greater than zero")
	errEmpty        = errors.New("must not be empty")
	errNUL          = errors.New("must not contain U+0000")
	errNotUTF8      = errors.New("invalid UTF-8")
	errNotObject    = errors.New("must be an object")
	errCount        = errors.New("reader returned an impossible count")
	errChanged      = errors.New("the line it was read from has changed")
)

// syntaxError returns the error of a line, at an offset in it.
func syntaxError(category error, offset int, err error) *SyntaxError {
	return &SyntaxError{Line: 1, Offset: int64(offset), Err: guard.Wrap(category, err)}
}

// at returns e, which is of one line, with its place in a log.
func (e *SyntaxError) at(line int, start int64) *SyntaxError {
	e.Line = line
	e.Offset += start
	return e
}

func tooLong(limit int) error { return fmt.Errorf("line longer than %d bytes", limit) }

// lineError returns the error of a line of more than limit bytes.
func lineError(limit int) *SyntaxError { return syntaxError(ErrLimit, limit, tooLong(limit)) }

func faultError(fault *jsonobj.Fault) *SyntaxError {
	if errors.Is(fault, jsonobj.ErrSyntax) {
		return syntaxError(jsonCategory(fault, ErrSyntax), fault.Offset, fault.Err)
	}
	err := fault.Err
	if fault.Path != "" {
		err = fmt.Errorf("%s: %w", fault.Path, err)
	}
	return syntaxError(ErrEntry, fault.Offset, err)
}

// jsonCategory returns the category of an error about JSON: ErrLimit, or the other.
func jsonCategory(err, other error) error {
	if errors.Is(err, jsonobj.ErrDepth) {
		return ErrLimit
	}
	return other
}

// refuse returns the error of an Entry that cannot be written; the field is "entry" for all.
func refuse(category error, field string, err error) error {
	return fmt.Errorf("eventlog: %s: %w", field, guard.Wrap(category, err))
}

func refuseJSON(field string, err error) error {
	return refuse(jsonCategory(err, ErrEntry), field, err)
}
