package pool

import (
	"errors"
	"fmt"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset"
)

// What is wrong with a request or with a response of RFC 28 that was read is
// an InputError, in request_errors.go.
var (
	// ErrInfeasible is returned when a request can never be met with the
	// inventory as it is. The error that wraps it is an *InfeasibleError.
	ErrInfeasible = errors.New("pool: request can not be met")

	// ErrBusy is returned, as it is, when a request can be met with the
	// inventory, and not with what is free and up now.
	ErrBusy = errors.New("pool: resources are busy")

	// ErrExists is returned when a job holds resources already. The error that
	// wraps it is a *JobError.
	ErrExists = errors.New("pool: job has resources already")

	// ErrJob is returned when a job does not have resources. The error that
	// wraps it is a *JobError.
	ErrJob = errors.New("pool: job has no resources")

	// ErrNotHeld is returned when more is freed than a job holds. The error
	// that wraps it is a *NotHeldError.
	ErrNotHeld = errors.New("pool: resources are not held by the job")

	// ErrConflict is returned by Adopt when another job holds some of the
	// resources. The error that wraps it is a *ConflictError.
	ErrConflict = errors.New("pool: resources are held twice")

	// ErrMissing is returned by Adopt when the inventory does not have some of
	// the resources. The error that wraps it is a *MissingError.
	ErrMissing = errors.New("pool: resources are not in the inventory")

	// ErrRanks is returned when ranks are named that are not there, or are not
	// to be named so. The error that wraps it is a *RanksError.
	ErrRanks = errors.New("pool: ranks do not fit")

	// ErrEmpty is returned when an inventory or an allocation has no resources.
	ErrEmpty = errors.New("pool: no resources")

	// ErrTime is returned when a time is no time of RFC 20, or when the pool's
	// own expiration has passed. The error that wraps it is a *TimeError.
	ErrTime = errors.New("pool: time does not fit")

	// ErrLimit is returned when a pool would become larger than its Config
	// allows, by a *LimitError, or when a text or a request is larger than this
	// package reads, by an *InputError.
	ErrLimit = errors.New("pool: limit exceeded")
)

// InfeasibleError tells why a request can never be met. It wraps ErrInfeasible.
type InfeasibleError struct {
	Reason string // in words, as "request for 4 nodes of 1 slot of 2 cores: 3 such nodes exist"
}

// Error returns the text of the error.
func (e *InfeasibleError) Error() string { return "pool: " + e.Reason }

// Unwrap returns ErrInfeasible.
func (e *InfeasibleError) Unwrap() error { return ErrInfeasible }

// JobError names the job that has resources already, or has none. It wraps
// ErrExists or ErrJob.
type JobError struct {
	Job jobid.ID
	Err error // ErrExists or ErrJob
}

// Error returns the text of the error.
func (e *JobError) Error() string {
	if errors.Is(e.Err, ErrExists) {
		return fmt.Sprintf("pool: job %s has resources already", e.Job)
	}
	return fmt.Sprintf("pool: job %s has no resources", e.Job)
}

// Unwrap returns ErrExists or ErrJob.
func (e *JobError) Unwrap() error { return e.Err }

// NotHeldError names what a job was to free and does not hold. It wraps
// ErrNotHeld.
type NotHeldError struct {
	Job    jobid.ID
	Excess *rset.R // without hosts; not empty
}

// Error returns the text of the error.
func (e *NotHeldError) Error() string {
	return fmt.Sprintf("pool: job %s does not hold %s", e.Job, plain(e.Excess))
}

// Unwrap returns ErrNotHeld.
func (e *NotHeldError) Unwrap() error { return ErrNotHeld }

// A Conflict is what two jobs hold both.
type Conflict struct {
	Other   jobid.ID
	Overlap *rset.R // without hosts; not empty
}

// ConflictError names the jobs that hold the same resources as a job that was
// adopted. It wraps ErrConflict.
type ConflictError struct {
	Job       jobid.ID
	Conflicts []Conflict // by job, at least one
}

// Error returns the text of the error, which names the first of the jobs.
func (e *ConflictError) Error() string {
	first := e.Conflicts[0]
	text := fmt.Sprintf("pool: jobs %s and %s both hold %s", e.Job, first.Other, plain(first.Overlap))
	if n := len(e.Conflicts) - 1; n > 0 {
		text += fmt.Sprintf(", and %d more conflicts", n)
	}
	return text
}

// Unwrap returns ErrConflict.
func (e *ConflictError) Unwrap() error { return ErrConflict }

// MissingError names what a job that was adopted has and the inventory has not.
// It wraps ErrMissing.
type MissingError struct {
	Job     jobid.ID
	Missing *rset.R // without hosts; not empty
}

// Error returns the text of the error.
func (e *MissingError) Error() string {
	return fmt.Sprintf("pool: job %s has %s, which is not in the inventory", e.Job, plain(e.Missing))
}

// Unwrap returns ErrMissing.
func (e *MissingError) Unwrap() error { return ErrMissing }

// RanksError names ranks that do not fit. It wraps ErrRanks.
type RanksError struct {
	What   string     // where they were named: "up", "grow", "freed", "property x"
	Ranks  *idset.Set // not empty
	Reason string     // what is wrong, in words: "are not in the inventory"
}

// Error returns the text of the error.
func (e *RanksError) Error() string {
	return fmt.Sprintf("pool: %s: ranks %s %s", e.What, clip(e.Ranks.String(), maxToken), e.Reason)
}

// Unwrap returns ErrRanks.
func (e *RanksError) Unwrap() error { return ErrRanks }

// TimeError names a time that does not fit. It wraps ErrTime.
type TimeError struct {
	What string // which it is, and what is wrong, in words
	Time eventlog.Timestamp
}

// Error returns the text of the error.
func (e *TimeError) Error() string { return fmt.Sprintf("pool: %s: %s", e.What, e.Time) }

// Unwrap returns ErrTime.
func (e *TimeError) Unwrap() error { return ErrTime }

// LimitError tells that a pool would become larger than its Config allows. It
// wraps ErrLimit.
type LimitError struct {
	What       string // "jobs", "properties"
	Got, Limit int
}

// Error returns the text of the error.
func (e *LimitError) Error() string {
	return fmt.Sprintf("pool: %d %s, at most %d are allowed", e.Got, e.What, e.Limit)
}

// Unwrap returns ErrLimit.
func (e *LimitError) Unwrap() error { return ErrLimit }

// plain returns the start of the resources in words.
func plain(r *rset.R) string { return clip(r.String(), maxToken) }

// errZeroRequest tells that a Request did not come from NewRequest.
var errZeroRequest = errors.New("the request asks for nothing")

// What may be wrong with ranks.
const (
	notThere  = "are not in the inventory"
	isThere   = "are in the inventory already"
	bothWays  = "are named both ways"
	notOfThis = "are not in the allocation"
)
