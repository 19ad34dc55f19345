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
	// ErrClock is returned for a time that is invalid (not finite, or not above
	// zero), is before the last one, or is more than a week after it.
	ErrClock = errors.New("clock stepped")
)

var (
	errDuplicate = errors.New("job was added before")
	errRecord    = errors.New("malformed record")
)

// JobError says why an operation on a job is refused.
type JobError struct {
	ID    jobid.ID
	State jobstate.State // of an active job
	Pins  []Pin          // of a pinned job, in their order
	Tomb  Record         // of a purged job
	Err   error          // the category, or what the store said
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

// Unwrap returns Err.
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

// limitError says what is wrong with a limit.
func limitError(key, reason string) error {
	return fmt.Errorf("purge: invalid limits: %s: %s", key, reason)
}

// excess says that there are too many of something.
func excess(what string, got, limit int) error {
	return fmt.Errorf("purge: too many %s: %d, the limit is %d", what, got, limit)
}
