package dirstore

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/joblife/joblife/jobstate/jobid"
)

// The categories of errors. Compare with errors.Is. An error that is of none of
// them is what the file system said; fs.ErrExist, fs.ErrNotExist and fs.ErrClosed
// are told apart as usual.
var (
	// ErrNotStore is returned when a directory that is to be opened is no
	// store: it has no watermark. The error is an *Error.
	ErrNotStore = errors.New("not a store")
	// ErrDamaged is returned when what is stored is not what this package
	// writes. The error is a *JobError for a job, else an *Error.
	ErrDamaged = errors.New("damaged")
	// ErrForeign is returned when something stands in the way that this package
	// did not make. The error is an *Error.
	ErrForeign = errors.New("not made by the store")
	// ErrLimit is returned when a file is greater than Options allow. The error
	// is a *JobError when a job is read, else an *Error.
	ErrLimit = errors.New("limit exceeded")
)

// Error tells which operation on which file failed.
type Error struct {
	// Op is "create", "open", "close", "add", "append", "put", "read", "list",
	// "put watermark", "put tombstones", "tombstones" or "unlink".
	Op string
	// Name is the name of the file in the store, or that of the store.
	Name string
	// Err is the cause, which may be of a category.
	Err error
}

// Error returns the text `dirstore: unlink job.0000.0000.0000.0001: permission
// denied`.
func (e *Error) Error() string { return fmt.Sprintf("dirstore: %s %s: %v", e.Op, e.Name, e.Err) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// JobError tells why a job can not be read. Such a job is in quarantine: it
// counts as evidence of its id, can be unlinked, and does not hide other jobs.
type JobError struct {
	ID jobid.ID
	// Err is the cause: ErrDamaged, ErrLimit, or what the file system said.
	Err error
}

// Error returns the text `dirstore: ƒ2: damaged: it has no eventlog`.
func (e *JobError) Error() string { return fmt.Sprintf("dirstore: %v: %v", e.ID, e.Err) }

// Unwrap returns the cause.
func (e *JobError) Unwrap() error { return e.Err }

// The causes that have no value to tell.
var (
	errNotRegular   = fmt.Errorf("%w: not a regular file", ErrDamaged)
	errNotDirectory = fmt.Errorf("%w: not a directory", ErrDamaged)
	errNoEventlog   = fmt.Errorf("%w: it has no eventlog", ErrDamaged)
	errNotCanonical = fmt.Errorf("%w: a record is not as it is written", ErrDamaged)
	errInTheWay     = fmt.Errorf("%w: it is in the way", ErrForeign)
	errNotEmpty     = fmt.Errorf("%w: the directory is not empty", ErrForeign)
	errCount        = errors.New("file system returned an impossible count")
	errNoName       = errors.New("no free name in the trash")
)

// errTooLarge returns what is wrong with a file of that size.
func errTooLarge(size, limit int64) error {
	return fmt.Errorf("%w: %d bytes, at most %d are allowed", ErrLimit, size, limit)
}

// fail returns the error of an operation.
func fail(op, name string, err error) error { return &Error{Op: op, Name: name, Err: cause(err)} }

// cause returns what the operating system said without the name of the file: it
// would come twice.
func cause(err error) error {
	if p, ok := err.(*fs.PathError); ok {
		return p.Err
	}
	return err
}
