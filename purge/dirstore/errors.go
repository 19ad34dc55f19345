package dirstore

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/joblife/joblife/jobstate/jobid"
)

// The categories of errors. Compare with errors.Is. Other errors are [logfile.ErrLocked], or
// come from the file system, such as fs.ErrExist, fs.ErrNotExist and fs.ErrClosed. Every error
// names the operation and the file.
var (
	// ErrNotStore is returned when a directory is not a store: it has no lock.
	ErrNotStore = errors.New("not a store")
	// ErrDamaged is returned for stored data that this package did not write in
	// that form. The error is a *JobError when a job is read.
	ErrDamaged = errors.New("damaged")
)

// JobError says why a job cannot be read. The job can still be unlinked, and does not hide
// the other jobs.
type JobError struct {
	ID jobid.ID
	// Err is the cause: ErrDamaged, a limit, or an error of the file system.
	Err error
}

// Error returns the text `dirstore: ƒuZZybuNNy: damaged: it has no eventlog`.
func (e *JobError) Error() string { return fmt.Sprintf("dirstore: %v: %v", e.ID, e.Err) }

// Unwrap returns the cause.
func (e *JobError) Unwrap() error { return e.Err }

// The causes without a value in their text.
var (
	errNotRegular   = fmt.Errorf("%w: not a regular file", ErrDamaged)
	errNotDirectory = fmt.Errorf("%w: not a directory", ErrDamaged)
	errNoEventlog   = fmt.Errorf("%w: it has no eventlog", ErrDamaged)
	errSum          = fmt.Errorf("%w: the check digits do not match", ErrDamaged)
	errInTheWay     = errors.New("not made by the store: it has a name that the store needs")
	errNotEmpty     = errors.New("not made by the store: the directory is not empty")
	errCount        = errors.New("file system returned an impossible count")
	errNoName       = errors.New("the trash has no free name")
	errLimit        = errors.New("limit exceeded")
)

func errTooLarge(size, limit int64) error {
	return fmt.Errorf("%w: %d bytes, the limit is %d", errLimit, size, limit)
}

// fail returns the error of an operation on a file, nil for none.
func fail(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("dirstore: %s %s: %w", op, name, cause(err))
}

// cause drops the name from an fs.PathError: it would come twice.
func cause(err error) error {
	if p, ok := err.(*fs.PathError); ok {
		return p.Err
	}
	return err
}
