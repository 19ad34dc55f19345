package archive

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/joblife/joblife/jobstate/jobid"
)

// The categories of errors of an archive as a whole: Read stops there, and
// returns what it read before. Compare with errors.Is.
var (
	// ErrFormat is returned when what is read is not a tar archive, plain or
	// compressed with bzip2 or gzip, or is damaged.
	ErrFormat = errors.New("not a dump archive")
	// ErrTruncated is returned when an archive ends before its end mark.
	ErrTruncated = errors.New("archive is truncated")
	// ErrRead is returned when the reader that the archive comes from fails.
	ErrRead = errors.New("cannot read the archive")
	// ErrLimit is returned when an archive is beyond a limit. One key that is
	// too large is a Failure of that category, and the others are read.
	ErrLimit = errors.New("limit exceeded")
)

// The categories of failures of one job, or of one key. Compare with errors.Is.
var (
	// ErrBadID is the failure of a path below job/ that names no job id.
	ErrBadID = errors.New("no job id")
	// ErrNoEventlog is the failure of a job without an eventlog.
	ErrNoEventlog = errors.New("no eventlog")
	// ErrNoJobspec is the failure of a job without a jobspec.
	ErrNoJobspec = errors.New("no jobspec")
	// ErrNoSubmit is the failure of a job whose eventlog does not begin with the
	// event submit.
	ErrNoSubmit = errors.New("eventlog does not begin with submit")
	// ErrNotValidated is the failure of a job that was submitted and never
	// validated: a legal log, but of a job that no one ever saw.
	ErrNotValidated = errors.New("job was never validated")
	// ErrEventlog is the failure of a job whose eventlog has a line that is no
	// event, as far as the log is looked at here.
	ErrEventlog = errors.New("eventlog is malformed")
	// ErrDuplicate is the failure of a key that the archive holds twice with
	// different values.
	ErrDuplicate = errors.New("key occurs twice")
	// ErrNotFile is the failure of a key that is a link or the like.
	ErrNotFile = errors.New("key is not a plain file")
	// ErrIncomplete is the failure of the job that the archive was amid when
	// reading stopped.
	ErrIncomplete = errors.New("reading stopped within this job")
	// ErrCheckpoint is the failure of a checkpoint of the job manager that does
	// not tell the greatest job id.
	ErrCheckpoint = errors.New("malformed checkpoint")
)

// The causes that carry no facts of their own.
var (
	errLayout   = errors.New("path is not four groups of four hexadecimal digits and a key")
	errBytes    = errors.New("too many bytes")
	errHeld     = errors.New("too many bytes to hold")
	errEntries  = errors.New("too many jobs and keys")
	errFile     = errors.New("value has too many bytes")
	errNoEnd    = errors.New("end mark is missing")
	errTrailing = errors.New("data after the end mark")
	errXZ       = errors.New("compressed with xz, which is not read")
	errZstd     = errors.New("compressed with zstd, which is not read")
	errNoName   = errors.New("event has no name")
	errNoMaxID  = errors.New("max_jobid is not a job id")
)

// maxPathText is how many bytes of a path an error quotes.
const maxPathText = 64

// Failure says what is wrong with one job, or with one key that is no job's.
// It unwraps to its category and the cause, where there is one.
type Failure struct {
	// ID is the job, 0 where the path names none.
	ID jobid.ID
	// Path is where the job is in the archive, such as job/0000/0001/e100/0000,
	// or the key; cut at 64 bytes.
	Path string
	// Line is the line of the eventlog, from 1; 0 if it is not about a line.
	Line int
	// Category is one of this package's ErrX.
	Category error
	// Err is the cause, nil where the category says it all.
	Err error
}

// Error returns one line.
func (f *Failure) Error() string {
	return "archive: " + strconv.Quote(f.Path) + f.detail()
}

// detail returns the text after the path.
func (f *Failure) detail() string {
	line, cause := "", ""
	if f.Line > 0 {
		line = fmt.Sprintf(": line %d", f.Line)
	}
	if f.Err != nil {
		cause = fmt.Sprintf(": %v", f.Err)
	}
	return fmt.Sprintf("%s: %v%s", line, f.Category, cause)
}

// Unwrap returns the category and the cause.
func (f *Failure) Unwrap() []error { return unwrap(f.Category, f.Err) }

// Error says why reading an archive stopped. It unwraps to its category and its
// cause.
type Error struct {
	// Offset is how far reading came, in bytes of the archive uncompressed.
	Offset int64
	// Path is the entry that was being read, cut at 64 bytes; empty if none was.
	Path string
	// Category is one of this package's ErrX.
	Category error
	// Err is the cause.
	Err error
}

// Error returns one line.
func (e *Error) Error() string {
	path := ""
	if e.Path != "" {
		path = strconv.Quote(e.Path) + ": "
	}
	return fmt.Sprintf("archive: %soffset %d: %v: %v", path, e.Offset, e.Category, e.Err)
}

// Unwrap returns the category and the cause.
func (e *Error) Unwrap() []error { return unwrap(e.Category, e.Err) }

// unwrap returns the errors that are not nil.
func unwrap(category, cause error) []error {
	if cause == nil {
		return []error{category}
	}
	return []error{category, cause}
}

// clip returns s, cut at 64 bytes.
func clip(s string) string {
	if len(s) <= maxPathText {
		return s
	}
	return s[:maxPathText-3] + "..."
}
