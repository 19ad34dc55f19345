package purge

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/internal/guard"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
)

// The categories of errors. Compare with errors.Is. The text of an error about a job names
// the job.
var (
	// ErrUnknown is returned for an id that is neither resident nor active and has no tombstone.
	ErrUnknown = errors.New("no such job")
	// ErrActive is returned for a job that is not inactive. The text has its state.
	ErrActive = errors.New("job is active")
	// ErrPinned is returned when a pinned job is to be purged. The text has the pins.
	ErrPinned = errors.New("job is pinned")
	// ErrPurged is returned for a job that was purged and has a tombstone. The text has
	// the result; [Index.Ended] returns the tombstone.
	ErrPurged = errors.New("job was purged")
	// ErrLeaving is returned for a job that the store is removing.
	ErrLeaving = errors.New("job is being purged")
	// ErrClock is returned for a time that is invalid (not finite, or not above
	// zero), is before the last one, or is more than a week after it.
	ErrClock = errors.New("clock stepped")
)

var (
	errDuplicate = errors.New("job was added before")
	errRecord    = errors.New("malformed record")
)

// jobError says why an operation on a job is refused: "purge: ƒuZZybuNNy: job is active: RUN".
func jobError(id jobid.ID, category error, detail string) error {
	return fmt.Errorf("purge: %v: %w%s", id, category, detail)
}

// pinnedError names the first pins.
func pinnedError(id jobid.ID, pins []Pin) error {
	var names []string
	for _, p := range pins[:min(3, len(pins))] {
		names = append(names, p.String())
	}
	text := " by " + strings.Join(names, ", ")
	if more := len(pins) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return jobError(id, ErrPinned, text)
}

func purgedError(tomb jobstate.Summary) error {
	return jobError(tomb.ID, ErrPurged, ": "+resultNames[place(tomb.Result)])
}

func clockError(now, last eventlog.Timestamp) error {
	how, then := "is too far after", "; accept the clock if it is right"
	switch {
	case !guard.IsTime(now):
		how, then = "is not a valid time; the last was", ""
	case now < last:
		how = "is before"
	}
	return fmt.Errorf("purge: %w: %s %s %s%s", ErrClock, clockText(now), how, clockText(last), then)
}

// clockText prints a time as people read it, if it has a year of four digits.
func clockText(t eventlog.Timestamp) string {
	if t >= 0 && t < 250e9 {
		return t.Time().UTC().Format(time.RFC3339)
	}
	return t.String()
}

func limitError(key, reason string) error {
	return fmt.Errorf("purge: invalid limits: %s: %s", key, reason)
}

func excess(what string, got, limit int) error {
	return fmt.Errorf("purge: too many %s: %d, the limit is %d", what, got, limit)
}
