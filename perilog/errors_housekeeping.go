package perilog

import (
	"errors"
	"strconv"
	"strings"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate/jobid"
)

var (
	// ErrHousekeeping is returned when the housekeeping of a job can not be
	// made. The error that wraps it is a *HousekeepingError.
	ErrHousekeeping = errors.New("perilog: housekeeping can not be made")

	// ErrBypass is returned for a job that never has housekeeping, as its
	// resources did not come from the scheduler.
	ErrBypass = errors.New("perilog: the job's resources did not come from the scheduler")

	// ErrHousekeepingRanks is returned when work is to be started on ranks
	// where that can not be. The error that wraps it is a
	// *HousekeepingRanksError.
	ErrHousekeepingRanks = errors.New("perilog: ranks are not to be worked on")

	// ErrHousekeepingLog is returned when a log is none of housekeeping. The
	// error that wraps it is a *HousekeepingLogError.
	ErrHousekeepingLog = errors.New("perilog: not a log of housekeeping")

	// ErrPartialRelease is returned when a scheduler that does not take partial
	// allocations asks for a job that has one. The error that wraps it is a
	// *PartialReleaseError.
	ErrPartialRelease = errors.New("perilog: scheduler does not take partial allocations")
)

// A HousekeepingError tells what of a job can not be used, and why. It wraps
// ErrHousekeeping and, where there is one, the cause.
type HousekeepingError struct {
	Field  string // of HousekeepingJob; "now" or "user" for those arguments
	Reason string // what is wrong with it
	Err    error  // the cause; nil if Reason says it all
}

// Error returns a text such as "perilog: housekeeping: R: has too many ranks".
func (e *HousekeepingError) Error() string {
	return "perilog: housekeeping: " + e.Field + ": " + e.Reason
}

// Unwrap returns ErrHousekeeping and the cause.
func (e *HousekeepingError) Unwrap() []error {
	if e.Err == nil {
		return []error{ErrHousekeeping}
	}
	return []error{ErrHousekeeping, e.Err}
}

// A HousekeepingRanksError names ranks on which work can not be started: it was
// and goes on, they are ready or have gone back, or they are not the job's. It
// wraps ErrHousekeepingRanks.
type HousekeepingRanksError struct {
	Op    string     // "start" or "reattach"
	Ranks *idset.Set // not empty
}

// Error returns a text such as "perilog: housekeeping: start: not of ranks 3-4".
func (e *HousekeepingRanksError) Error() string {
	return "perilog: housekeeping: " + e.Op + ": not of ranks " + hkCut(e.Ranks.String())
}

// Unwrap returns ErrHousekeepingRanks.
func (e *HousekeepingRanksError) Unwrap() error { return ErrHousekeepingRanks }

// A HousekeepingLogError tells where a log is none of housekeeping, and why. It
// wraps ErrHousekeepingLog and its cause.
type HousekeepingLogError struct {
	Line  int    // from 1; 0 for a log without lines
	Event string // the name of the event, at most 64 bytes of it; "" for the log as a whole
	Key   string // of its context, at most 64 bytes; "" for the event as a whole
	Err   error
}

// Error returns a text such as
// `perilog: housekeeping: line 3: end: "cause": is missing`.
func (e *HousekeepingLogError) Error() string {
	s := "perilog: housekeeping: line " + strconv.Itoa(e.Line) + ": "
	if e.Event != "" {
		s += hkQuote(e.Event) + ": "
	}
	if e.Key != "" {
		s += hkQuote(e.Key) + ": "
	}
	return s + e.Err.Error()
}

// Unwrap returns ErrHousekeepingLog and the cause.
func (e *HousekeepingLogError) Unwrap() []error { return []error{ErrHousekeepingLog, e.Err} }

// A keyError is the fault of one key, on its way to a HousekeepingLogError.
type keyError struct {
	key string
	err error
}

func (e *keyError) Error() string { return hkQuote(e.key) + ": " + e.err.Error() }

// A PartialReleaseError tells of a job of which a part was given back, and what
// is held. It wraps ErrPartialRelease.
type PartialReleaseError struct {
	Job  jobid.ID
	Held *idset.Set // not empty, but where only resources without a rank are held
	Free *idset.Set // not empty
}

// Error returns a text such as "perilog: housekeeping: job ƒ3: ranks 3 are held,
// and the scheduler does not take partial allocations".
func (e *PartialReleaseError) Error() string {
	return "perilog: housekeeping: job " + e.Job.String() + ": ranks " + hkCut(e.Held.String()) +
		" are held, and the scheduler does not take partial allocations"
}

// Unwrap returns ErrPartialRelease.
func (e *PartialReleaseError) Unwrap() error { return ErrPartialRelease }

// hkMaxToken is the largest number of input bytes that an error repeats.
const hkMaxToken = 64

// hkCut returns a copy of the start of a text, short enough to print.
func hkCut(s string) string { return strings.Clone(s[:min(len(s), hkMaxToken)]) }

// hkQuote returns a text from outside as an error repeats it.
func hkQuote(s string) string { return strconv.Quote(hkCut(s)) }
