package purge

import (
	"errors"
	"fmt"
	"time"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/internal/guard"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
)

// The categories of errors. Compare with errors.Is.
var (
	// ErrUnknown is returned for an id that is neither resident nor active and
	// has no tombstone. The error is a *JobError.
	ErrUnknown = errors.New("no such job")
	// ErrActive is returned for a job that is not inactive. The error is a
	// *JobError with the job's state.
	ErrActive = errors.New("job is active")
	// ErrPinned is returned when a pinned job is to be purged. The error is a
	// *JobError with the pins.
	ErrPinned = errors.New("job is pinned")
	// ErrPurged is returned for a job that was purged and has a tombstone. The
	// error is a *JobError with the tombstone.
	ErrPurged = errors.New("job was purged")
	// ErrLeaving is returned for a job that the store is removing. The error is a
	// *JobError.
	ErrLeaving = errors.New("job is being purged")
	// ErrDuplicate is returned when a resident job is added again. The error is a
	// *JobError.
	ErrDuplicate = errors.New("job was added before")
	// ErrRecord is returned for a record whose time is not finite and greater than
	// zero, or whose result is not in RFC 43; the error is a *JobError. It is also
	// returned for a text that is not a tombstone or not a watermark.
	ErrRecord = errors.New("malformed record")
	// ErrStale is returned for a plan that was already claimed, committed or
	// aborted, or that the caller changed since.
	ErrStale = errors.New("plan is out of date")
	// ErrClock is returned for a time that is invalid (not finite, or not above
	// zero), is before the last one, or is more than Config.MaxJump after it.
	ErrClock = errors.New("clock stepped")
	// ErrLimits is returned for an invalid limit. The text names the limit.
	ErrLimits = errors.New("invalid limits")
	// ErrExcess is returned for too many ids, too many pins, or a Pin.By that
	// is too long.
	ErrExcess = errors.New("too many")
	// ErrStore is returned when the store failed. The error wraps the cause. It
	// is a *JobError if the store could not remove that job.
	ErrStore = errors.New("store failed")
)

// JobError says why an operation on a job is refused.
type JobError struct {
	ID    jobid.ID
	State jobstate.State // of an active job
	Pins  []Pin          // of a pinned job, in their order
	Tomb  Record         // of a purged job
	Err   error          // the category; ErrStore wraps the cause
}

// Error returns the text of the error, such as "purge: ƒ2d: job is active:
// RUN".
func (e *JobError) Error() string {
	text := fmt.Sprintf("purge: %v: %v", e.ID, e.Err)
	switch e.Err {
	case ErrActive:
		text += ": " + e.State.String()
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
		at, _ := place(e.Tomb.Result)
		text += ": " + resultNames[at]
	}
	return text
}

// Unwrap returns the category.
func (e *JobError) Unwrap() error { return e.Err }

// clockError returns an error of category ErrClock.
func clockError(now, last eventlog.Timestamp) error {
	how := "is too far after"
	switch {
	case !guard.IsTime(now):
		how = "is not a valid time; the last was"
	case now < last:
		how = "is before"
	}
	return fmt.Errorf("purge: %w: %s %s %s", ErrClock, clockText(now), how, clockText(last))
}

// clockText prints a time as people read it, if it has a year of four digits.
func clockText(t eventlog.Timestamp) string {
	if t >= 0 && t < 250e9 {
		return t.Time().UTC().Format(time.RFC3339)
	}
	return t.String()
}

// limitError returns an error of category ErrLimits.
func limitError(key, reason string) error {
	return fmt.Errorf("purge: %w: %s: %s", ErrLimits, key, reason)
}

// excess returns an error of category ErrExcess.
func excess(what string, got, limit int) error {
	return fmt.Errorf("purge: %w %s: %d, the limit is %d", ErrExcess, what, got, limit)
}

// stale returns an error of category ErrStale.
func stale(reason string) error { return fmt.Errorf("purge: %w: it %s", ErrStale, reason) }
