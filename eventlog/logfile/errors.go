package logfile

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// The categories of errors. Compare with errors.Is. An error that is of none of
// them is what the file system said, and nothing has changed; fs.ErrNotExist,
// fs.ErrExist and fs.ErrClosed are told apart as usual.
var (
	// ErrDamaged is returned when a log holds what is no event: text after its
	// last newline (eventlog.ErrTorn too) or an invalid line. The error is a
	// *DamageError. Repair makes it a log to which one can append.
	ErrDamaged = errors.New("log is damaged")
	// ErrChanged is returned when a log shrank, was replaced, removed or
	// overwritten while it was open.
	ErrChanged = errors.New("log was changed by others")
	// ErrFailed is returned when a write or sync failed such that the log can
	// not go on, and by each call after that: it has to be opened again. The
	// cause comes once, with the call that failed.
	ErrFailed = errors.New("log has failed")
	// ErrBatch is returned when what is to be appended is not whole lines of
	// valid events, or too much. Nothing was written.
	ErrBatch = errors.New("invalid batch")
	// ErrLocked is returned when the log is open for appending, or is being
	// repaired, in another process or in this one.
	ErrLocked = errors.New("in use")
	// ErrEndOfHistory is returned by a Reader once: after the last entry that
	// was there when it was opened.
	ErrEndOfHistory = errors.New("logfile: end of history")
)

// opError tells which operation on which log failed. Offset is how many bytes of
// the log are good, or of a Reader, how many it read.
type opError struct {
	op, name string
	offset   int64
	err      error
	category error
}

// Error returns the text `logfile: append job/eventlog: offset 40: no space left
// on device`.
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

// DamageError tells where a log is damaged.
type DamageError struct {
	// Name is the name of the log.
	Name string
	// Offset is where the first line begins that is no event: up to there the
	// log is complete.
	Offset int64
	// Size is how many bytes the log has. A Reader, which does not look ahead,
	// leaves it 0.
	Size int64
	// Entries is how many entries follow that line. A crash leaves 0; more may
	// follow a crash of the machine before a sync, or mean that the disk is
	// damaged. A Reader leaves it 0.
	Entries int
	// Err is the *eventlog.SyntaxError of that line. It is eventlog.ErrTorn for
	// text after the last newline.
	Err error
}

// Error returns the text `logfile: job/eventlog: line 3: offset 40: torn last
// line`.
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
	errReplaced    = fmt.Errorf("%w: its name is that of another file", ErrChanged)
	errRemoved     = fmt.Errorf("%w: its name is gone", ErrChanged)
	errOverwritten = fmt.Errorf("%w: what was read has been overwritten", ErrChanged)
)

// The causes that have no value to tell.
var (
	errNotRegular = errors.New("not a regular file")
	errCount      = errors.New("file system returned an impossible count")
	errSides      = errors.New("too many side files")
	errNotOS      = errors.New("not a file of the operating system")
)

// newError returns the error of an operation. The name that a cause of the
// operating system has is left out: it would come twice.
func newError(op, name string, offset int64, category, cause error) error {
	if p, ok := cause.(*fs.PathError); ok {
		cause = p.Err
	}
	return &opError{op: op, name: name, offset: offset, err: cause, category: category}
}
