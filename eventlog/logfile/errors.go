package logfile

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// The categories of errors. Compare with errors.Is. Any other error comes from the file
// system, such as fs.ErrNotExist, fs.ErrExist or fs.ErrClosed: then nothing has changed.
var (
	// ErrDamaged is returned for a log with an invalid line, or with text after its
	// last newline (then it wraps eventlog.ErrTorn too). The error is a *DamageError.
	ErrDamaged = errors.New("log is damaged")
	// ErrChanged is returned when a log shrank, was replaced, removed or
	// overwritten while it was open.
	ErrChanged = errors.New("log was changed by others")
	// ErrFailed is returned when a Log cannot be used after a failed write or sync, and by
	// each later call. Only the call that failed returns the cause.
	ErrFailed = errors.New("log has failed before: open it again")
	// ErrBatch is returned for a batch that is too large, or does not consist of
	// whole lines of valid events. Nothing was written.
	ErrBatch = errors.New("invalid batch")
	// ErrLocked is returned when the log is open for appending, or is being repaired, in
	// another process or in this one.
	ErrLocked = errors.New("in use")
	// ErrEndOfHistory is returned by a Reader once: after the last entry that was there at the start.
	ErrEndOfHistory = errors.New("logfile: end of history")
)

type opError struct {
	op, name string
	offset   int64 // how many bytes of the log are good, or a Reader read
	err      error
	category error
}

// Error returns the text `logfile: append job/eventlog: offset 40: no space left on device`.
func (e *opError) Error() string {
	text := strings.TrimPrefix(e.err.Error(), "eventlog: ")
	return fmt.Sprintf("logfile: %s %s: offset %d: %s", e.op, e.name, e.offset, text)
}

// Unwrap returns the category, if the error has one, and the cause.
func (e *opError) Unwrap() []error {
	if e.category == nil || e.category == e.err {
		return []error{e.err}
	}
	return []error{e.category, e.err}
}

// DamageError says where a log is damaged.
type DamageError struct {
	// Name is the name of the log.
	Name string
	// Offset is where the first invalid line begins: up to there the log is complete.
	Offset int64
	// Size is the number of bytes in the log. It is 0 from a Reader, which does not look ahead.
	Size int64
	// Entries is the number of entries after that line: 0 after a crash of the process,
	// and from a Reader.
	Entries int
	// Err is the *eventlog.SyntaxError of that line: ErrTorn for text after the last newline.
	Err error
}

// Error returns the text `logfile: job/eventlog: line 3: offset 40: torn last line`.
func (e *DamageError) Error() string {
	text := fmt.Sprintf("logfile: %s: %s", e.Name, strings.TrimPrefix(e.Err.Error(), "eventlog: "))
	if e.Entries > 0 {
		text += fmt.Sprintf("; entries that follow: %d", e.Entries)
	}
	return text
}

// Unwrap returns ErrDamaged and the cause.
func (e *DamageError) Unwrap() []error { return []error{ErrDamaged, e.Err} }

// How a log was changed.
var (
	errShrank      = fmt.Errorf("%w: it shrank", ErrChanged)
	errGrew        = fmt.Errorf("%w: it grew", ErrChanged)
	errReplaced    = fmt.Errorf("%w: its name denotes another file", ErrChanged)
	errRemoved     = fmt.Errorf("%w: its name is gone", ErrChanged)
	errOverwritten = fmt.Errorf("%w: lines that were read have been overwritten", ErrChanged)
)

// The causes without a value in their text.
var (
	errNotRegular = errors.New("not a regular file")
	errCount      = errors.New("file system returned an impossible count")
	errSides      = errors.New("too many side files")
	errNotOS      = errors.New("not a file of the operating system")
)

// newError returns nil without a cause. It drops the name from an fs.PathError: it would come twice.
func newError(op, name string, offset int64, category, cause error) error {
	if cause == nil {
		return nil
	}
	if p, ok := cause.(*fs.PathError); ok {
		cause = p.Err
	}
	return &opError{op: op, name: name, offset: offset, err: cause, category: category}
}
