package rset

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/joblife/joblife/idset"
)

var (
	// ErrSyntax is returned when a text is no R of RFC 20. The error that
	// wraps it is a *ParseError.
	ErrSyntax = errors.New("rset: not an R of version 1")

	// ErrLimit is returned when an R is larger than the caller allows. The
	// error that wraps it is a *LimitError.
	ErrLimit = errors.New("rset: limit exceeded")

	// ErrOverlap is returned by Append when both operands have a resource. The
	// error that wraps it is an *OverlapError.
	ErrOverlap = errors.New("rset: resources overlap")

	// ErrExcess is returned by Difference when something is taken away that is
	// not there. The error that wraps it is an *ExcessError.
	ErrExcess = errors.New("rset: resources are not there")

	// ErrRanks is returned when ranks are named that an R does not have, or
	// that a Ledger does not hold. The error that wraps it is a *RanksError.
	ErrRanks = errors.New("rset: ranks are not there")

	// ErrNamed is returned when a Ledger does not hold a named resource. The
	// error that wraps it is a *NamedError.
	ErrNamed = errors.New("rset: named resource is not held")

	// ErrFinal is returned when a Ledger is asked for a fragment after the
	// final one.
	ErrFinal = errors.New("rset: the final fragment was given out")

	// ErrHosts is returned when the hosts of an R do not fit its ranks, or
	// those of another R. The error that wraps it is a *HostsError.
	ErrHosts = errors.New("rset: hosts do not fit")

	// ErrMismatch is returned by Verify when something expected is missing or
	// is something else. The error that wraps it is a *VerifyError.
	ErrMismatch = errors.New("rset: resources are not as expected")

	// ErrExtra is returned by Verify when all that is expected is there, and
	// more. The error that wraps it is a *VerifyError.
	ErrExtra = errors.New("rset: more resources than expected")
)

// What is wrong with a text: the causes that a ParseError carries.
var (
	errKind       = errors.New("has another JSON type")
	errMissing    = errors.New("is missing")
	errVersion    = errors.New("is not 1")
	errNoRank     = errors.New("names no rank")
	errTime       = errors.New("is not a finite time of 0 or later")
	errExpiration = errors.New("is not after starttime")
	errSlots      = errors.New("is negative")
	errTwice      = errors.New("is given twice")
	errProperty   = errors.New("is not a property name")
	errEmpty      = errors.New("names no resource")
)

// maxToken is the largest number of input bytes that an error repeats.
const maxToken = 64

// plain returns the start of a text, with escapes for what does not print.
func plain(text string) string {
	q := strconv.Quote(quoted(text))
	return q[1 : len(q)-1]
}

// quoted returns a copy of the start of a token, short enough to print.
func quoted(token string) string { return strings.Clone(token[:min(len(token), maxToken)]) }

// ParseError tells where and why a text is no R. It wraps ErrSyntax and its
// cause.
type ParseError struct {
	Offset int    // of the value, or of its container where it is missing, from 0
	Field  string // where that is, as "execution.R_lite[2].rank"
	Err    error  // why
}

// Error returns the text of the error.
func (e *ParseError) Error() string {
	return fmt.Sprintf("rset: offset %d: %s: %v", e.Offset, plain(e.Field), e.Err)
}

// Unwrap returns ErrSyntax and the cause.
func (e *ParseError) Unwrap() []error { return []error{ErrSyntax, e.Err} }

// LimitError tells that something is larger than the caller allows. It wraps
// ErrLimit.
type LimitError struct {
	What  string // "bytes", "entries", "hosts", "overlaps of entries"
	Got   int    // how many there are, or at least
	Limit int    // how many are allowed
}

// Error returns the text of the error.
func (e *LimitError) Error() string {
	return fmt.Sprintf("rset: %d %s, at most %d are allowed", e.Got, e.What, e.Limit)
}

// Unwrap returns ErrLimit.
func (e *LimitError) Unwrap() error { return ErrLimit }

// OverlapError names what both operands of Append have. It wraps ErrOverlap.
type OverlapError struct {
	Overlap *R // without hosts; not empty
}

// Error returns the text of the error.
func (e *OverlapError) Error() string {
	return fmt.Sprintf("rset: both sides have %s", plain(e.Overlap.String()))
}

// Unwrap returns ErrOverlap.
func (e *OverlapError) Unwrap() error { return ErrOverlap }

// ExcessError names what can not be taken away because it is not there. It
// wraps ErrExcess.
type ExcessError struct {
	Excess *R // without hosts; not empty
}

// Error returns the text of the error.
func (e *ExcessError) Error() string {
	return fmt.Sprintf("rset: %s is not there", plain(e.Excess.String()))
}

// Unwrap returns ErrExcess.
func (e *ExcessError) Unwrap() error { return ErrExcess }

// RanksError names the ranks that can not be taken. It wraps ErrRanks. At
// least one of the sets is not empty, neither is nil.
type RanksError struct {
	Unknown *idset.Set // not in the R
	Freed   *idset.Set // in the R, and freed before
}

// Error returns the text of the error.
func (e *RanksError) Error() string {
	var parts []string
	if !e.Unknown.IsEmpty() {
		parts = append(parts, "unknown ranks "+quoted(e.Unknown.String()))
	}
	if !e.Freed.IsEmpty() {
		parts = append(parts, "ranks freed before "+quoted(e.Freed.String()))
	}
	return "rset: " + strings.Join(parts, ", ")
}

// Unwrap returns ErrRanks.
func (e *RanksError) Unwrap() error { return ErrRanks }

// NamedError names the resource without a rank that a Ledger does not hold. It
// wraps ErrNamed.
type NamedError struct {
	Name  string // at most 64 bytes of it
	Freed bool   // it was freed before; false: it is unknown
}

// Error returns the text of the error.
func (e *NamedError) Error() string {
	if e.Freed {
		return fmt.Sprintf("rset: resource %q was freed before", e.Name)
	}
	return fmt.Sprintf("rset: unknown resource %q", e.Name)
}

// Unwrap returns ErrNamed.
func (e *NamedError) Unwrap() error { return ErrNamed }

// HostsError tells why hosts do not fit. It wraps ErrHosts.
type HostsError struct {
	Ranks, Hosts int      // how many there are, where these differ; else 0
	Rank         uint32   // the rank that lacks a host, or has two
	Names        []string // the hosts concerned, at most 8, each at most 64 bytes
	Reason       string   // what is wrong, in words
}

// Error returns the text of the error.
func (e *HostsError) Error() string {
	if e.Ranks != e.Hosts {
		return fmt.Sprintf("rset: %d ranks, but %d hosts", e.Ranks, e.Hosts)
	}
	if len(e.Names) == 0 {
		return fmt.Sprintf("rset: rank %d %s", e.Rank, e.Reason)
	}
	return fmt.Sprintf("rset: %s: %q", e.Reason, e.Names)
}

// Unwrap returns ErrHosts.
func (e *HostsError) Unwrap() error { return ErrHosts }

// maxNames is the largest number of hosts that a HostsError names.
const maxNames = 8

// VerifyError tells how resources differ from what is expected. It wraps
// ErrMismatch, or ErrExtra where nothing is missing.
type VerifyError struct {
	Rank     uint32     // the lowest rank with the gravest finding
	Ranks    *idset.Set // all ranks with a finding of that gravity
	Host     string     // of Rank, where it is known
	Want     string     // the host expected, where that is the difference
	Unknown  bool       // Rank is not among those expected
	Missing  string     // what Rank lacks, as "core[2-3],gpu0"
	Extra    string     // what Rank has beside, the same way
	mismatch bool
}

// Error returns the text of the error.
func (e *VerifyError) Error() string {
	host := plain(e.Host)
	if host == "" {
		host = "unknown"
	}
	switch {
	case e.Unknown:
		return fmt.Sprintf("rset: rank %d is not expected", e.Rank)
	case e.Want != "":
		return fmt.Sprintf("rset: rank %d is on host %q, expected %q", e.Rank, quoted(e.Host), quoted(e.Want))
	case e.Missing != "":
		return fmt.Sprintf("rset: rank %d (%s) lacks %s", e.Rank, host, plain(e.Missing))
	}
	return fmt.Sprintf("rset: rank %d (%s) has beside what is expected %s", e.Rank, host, plain(e.Extra))
}

// Unwrap returns ErrMismatch or ErrExtra.
func (e *VerifyError) Unwrap() error {
	if e.mismatch {
		return ErrMismatch
	}
	return ErrExtra
}

// noResourceError tells that ranks have no resource.
type noResourceError struct{ ranks string }

// Error returns the text of the error.
func (e *noResourceError) Error() string { return "no resource at ranks " + e.ranks }
