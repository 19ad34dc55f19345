package purge

import (
	"errors"
	"fmt"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate/jobid"
)

// The categories of errors that this package returns. Compare with errors.Is.
var (
	// ErrUnknown is returned for an id that is neither resident nor active and
	// of which no tombstone is left. The error is a *JobError.
	ErrUnknown = errors.New("no such job")
	// ErrActive is returned for the id of a job that has not become inactive.
	// The error is a *JobError, which has the job's state.
	ErrActive = errors.New("job is active")
	// ErrPinned is returned when a job that has pins is to be purged. The error
	// is a *JobError, which has the pins.
	ErrPinned = errors.New("job is pinned")
	// ErrPurged is returned for the id of a job that was purged and has a
	// tombstone. The error is a *JobError, which has the tombstone.
	ErrPurged = errors.New("job was purged")
	// ErrLeaving is returned for a job that the store is about to remove. The
	// error is a *JobError.
	ErrLeaving = errors.New("job is being purged")
	// ErrDuplicate is returned when a job is added that is resident already.
	// The error is a *JobError.
	ErrDuplicate = errors.New("job was added before")
	// ErrJob is returned for a job whose time is not finite and greater than
	// zero, or whose result has no name. The error is a *JobError.
	ErrJob = errors.New("malformed job")
	// ErrStale is returned when a plan is committed that is not the index's any
	// more. The error is a *StaleError.
	ErrStale = errors.New("plan is out of date")
	// ErrClock is returned when the time that the caller passes is before what
	// happened last, or too far beyond it. The error is a *ClockError.
	ErrClock = errors.New("clock stepped")
	// ErrLimits is returned for limits that make no sense, as negative ones. The
	// error is a *LimitsError.
	ErrLimits = errors.New("invalid limits")
	// ErrExcess is returned when something is more than this package takes: the
	// ids of one purge, or the pins of one job.
	ErrExcess = errors.New("too many")
	// ErrSyntax is returned when a text is no tombstone or no watermark. The
	// error is a *SyntaxError.
	ErrSyntax = errors.New("malformed record")
	// ErrStore is returned when the store failed. The error is a *StoreError.
	ErrStore = errors.New("store failed")
	// ErrBusy is returned when a batch is asked for while one is in the store.
	ErrBusy = errors.New("purge: a batch is under way")
)

// maxToken is the largest number of input bytes that an error repeats.
const maxToken = 64

// JobError tells why something can not be done with a job. It wraps one of
// ErrUnknown, ErrActive, ErrPinned, ErrPurged, ErrLeaving, ErrDuplicate and
// ErrJob.
type JobError struct {
	ID    jobid.ID
	State string // of an active job, as Config.Active tells it
	Pins  []Pin  // of a pinned job, in their order
	Tomb  Job    // of a purged job
	Err   error
}

// Error returns the text of the error, as "purge: ƒ2d: job is active: RUN".
func (e *JobError) Error() string {
	text := fmt.Sprintf("purge: %v: %v", e.ID, e.Err)
	switch e.Err {
	case ErrActive:
		text += ": " + quoted(e.State)
	case ErrPinned:
		for i, p := range e.Pins {
			if i == 3 {
				return fmt.Sprintf("%s and %d more", text, len(e.Pins)-i)
			}
			sep := ", "
			if i == 0 {
				sep = " by "
			}
			text += sep + p.String()
		}
	case ErrPurged:
		text += ": " + e.Tomb.Result.String()
	}
	return text
}

// Unwrap returns the category.
func (e *JobError) Unwrap() error { return e.Err }

// StaleError tells which job of a plan is not as it was planned. It wraps
// ErrStale.
type StaleError struct {
	ID     jobid.ID // the first such job, 0 if it is the plan as a whole
	Reason string
}

// Error returns the text of the error.
func (e *StaleError) Error() string {
	if e.ID == 0 {
		return fmt.Sprintf("purge: %v: %s", ErrStale, e.Reason)
	}
	return fmt.Sprintf("purge: %v: %v %s", ErrStale, e.ID, e.Reason)
}

// Unwrap returns ErrStale.
func (e *StaleError) Unwrap() error { return ErrStale }

// ClockError tells how a time does not fit what was before. It wraps ErrClock.
type ClockError struct {
	Now  eventlog.Timestamp // as the caller passed it
	Last eventlog.Timestamp // what it does not fit: the latest time known, of a call or of a job
}

// Error returns the text of the error.
func (e *ClockError) Error() string {
	how := "is too far after"
	if !(e.Now > e.Last) {
		how = "is before"
	}
	if !isTime(e.Now) {
		how = "is no time; the last was"
	}
	return fmt.Sprintf("purge: %v: %v %s %v", ErrClock, e.Now, how, e.Last)
}

// Unwrap returns ErrClock.
func (e *ClockError) Unwrap() error { return ErrClock }

// LimitsError tells which limit makes no sense. It wraps ErrLimits and, if there
// is one, the cause.
type LimitsError struct {
	Key    string // the configuration's key or the field's name
	Reason string
	Err    error // why a duration is none; nil otherwise
}

// Error returns the text of the error, as
// "purge: inactive-num-limit: must be 0 or more".
func (e *LimitsError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("purge: %s: %s: %v", e.Key, e.Reason, e.Err)
	}
	return fmt.Sprintf("purge: %s: %s", e.Key, e.Reason)
}

// Unwrap returns ErrLimits and the cause.
func (e *LimitsError) Unwrap() []error {
	if e.Err == nil {
		return []error{ErrLimits}
	}
	return []error{ErrLimits, e.Err}
}

// ExcessError tells what there is too much of. It wraps ErrExcess.
type ExcessError struct {
	What       string // "ids", "pins", "bytes of a pinner"
	Got, Limit int
}

// Error returns the text of the error.
func (e *ExcessError) Error() string {
	return fmt.Sprintf("purge: %d %s, at most %d are allowed", e.Got, e.What, e.Limit)
}

// Unwrap returns ErrExcess.
func (e *ExcessError) Unwrap() error { return ErrExcess }

// SyntaxError tells where and why a text is no record. It wraps ErrSyntax.
type SyntaxError struct {
	Offset int    // of the offending byte, from 0
	Input  string // a copy of the text's start, at most 64 bytes
	Reason string
}

// Error returns the text of the error.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("purge: offset %d: %q: %v: %s", e.Offset, e.Input, ErrSyntax, e.Reason)
}

// Unwrap returns ErrSyntax.
func (e *SyntaxError) Unwrap() error { return ErrSyntax }

// StoreError tells which call of the store failed. It wraps ErrStore and the
// cause.
type StoreError struct {
	Op  string // "put watermark", "put tombstones" or "unlink"
	Err error
}

// Error returns the text of the error.
func (e *StoreError) Error() string { return fmt.Sprintf("purge: %s: %v", e.Op, e.Err) }

// Unwrap returns ErrStore and the cause.
func (e *StoreError) Unwrap() []error { return []error{ErrStore, e.Err} }

// quoted returns the start of a text, quoted.
func quoted(text string) string { return fmt.Sprintf("%q", text[:min(len(text), maxToken)]) }
