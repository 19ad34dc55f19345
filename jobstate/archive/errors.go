package archive

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/joblife/joblife/jobstate/jobid"
)

// The categories of errors. An error of the reader is wrapped too.
var (
	errFormat    = errors.New("not a dump archive") // or damaged
	errTruncated = errors.New("archive is truncated")
	errLimit     = errors.New("limit exceeded")
)

// The causes. A job that was submitted and never validated is legal, but in no listing.
var (
	errNotValidated = errors.New("job was never validated")
	errIncomplete   = errors.New("reading stopped within this job")

	errBadID      = errors.New("not a job id")
	errNoEventlog = errors.New("no eventlog")
	errNoJobspec  = errors.New("no jobspec")
	errNoSubmit   = errors.New("eventlog does not begin with submit")
	errEventlog   = errors.New("eventlog is malformed")
	errNoName     = errors.New("event has no name")
	errDuplicate  = errors.New("key appears twice with different values")
	errNotFile    = errors.New("key is not a plain file")
	errApart      = errors.New("keys of the job are not together")
	errCheckpoint = errors.New("malformed checkpoint")
	errFile       = fmt.Errorf("%w: value has too many bytes", errLimit)

	errLayout   = errors.New("path is not four groups of four hexadecimal digits and a key")
	errBytes    = errors.New("too many bytes for Limits.Bytes or Ratio")
	errHeld     = errors.New("too many bytes to keep for Limits.HeldBytes")
	errEntries  = errors.New("too many jobs and keys for Limits.Entries")
	errNoEnd    = errors.New("end mark is missing")
	errTrailing = errors.New("data after the end mark")
	errXZ       = errors.New("compressed with xz, which is not supported")
	errZstd     = errors.New("compressed with zstd, which is not supported")
)

// Failure says what is wrong with one job, or with one key that is not a job's.
type Failure struct {
	// ID is the job, 0 if the path names none.
	ID jobid.ID
	// Path is the job's in the archive, as job/0000/0001/e100/0000, or the key; cut at 64 bytes.
	Path string
	// Line is the line of the eventlog, from 1; 0 if the failure is not in a line.
	Line int
	// Err is the cause.
	Err error
}

// Error returns one line, with ID as other texts have it, and Path.
func (f *Failure) Error() string {
	job := ""
	if f.ID != 0 {
		job = fmt.Sprintf("job %v: ", f.ID)
	}
	return "archive: " + job + strconv.Quote(f.Path) + f.detail()
}

// detail returns the text after the path.
func (f *Failure) detail() string {
	if f.Line > 0 {
		return fmt.Sprintf(": line %d: %v", f.Line, f.Err)
	}
	return ": " + f.Err.Error()
}

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Err }

// because returns a cause with what led to it, if that is known.
func because(cause, detail error) error {
	if detail == nil {
		return cause
	}
	return fmt.Errorf("%w: %w", cause, detail)
}
