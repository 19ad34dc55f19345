package rset

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/joblife/joblife/idset"
)

var (
	// ErrSyntax is returned when a text is not an R of RFC 20. The error that
	// wraps it is a *ParseError.
	ErrSyntax = errors.New("rset: not an R of version 1")

	// ErrLimit is returned when an R is too large.
	ErrLimit = errors.New("rset: limit exceeded")

	// ErrOverlap is returned by Append when both operands have a resource.
	ErrOverlap = errors.New("rset: resources overlap")

	// ErrNotFound is returned when an R does not have the ranks or resources
	// that are named, or a Ledger does not hold them. The text tells which.
	ErrNotFound = errors.New("rset: no such resources")

	// ErrFinal is returned when a Ledger is asked for a fragment after the
	// final one.
	ErrFinal = errors.New("rset: after the final fragment")

	// ErrHosts is returned when hosts do not match the ranks or another R.
	ErrHosts = errors.New("rset: hosts do not match")

	// ErrMismatch is returned by Verify when something expected is missing or
	// differs.
	ErrMismatch = errors.New("rset: resources are not as expected")

	// ErrExtra is returned by Verify when nothing is missing, but there is more
	// than expected.
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
)

// maxToken is the largest number of input bytes that an error repeats.
const maxToken = 64

// clip returns the start of a text, with escapes for what does not print.
func clip(text string) string {
	q := strconv.Quote(text[:min(len(text), maxToken)])
	return q[1 : len(q)-1]
}

// ParseError tells where and why a text is not an R. It wraps ErrSyntax and its
// cause.
type ParseError struct {
	Offset int    // of the value, or of its container where it is missing, from 0
	Field  string // where that is, as "execution.R_lite[2].rank"
	Err    error  // why
}

// Error returns the text of the error.
func (e *ParseError) Error() string {
	return fmt.Sprintf("rset: offset %d: %s: %v", e.Offset, clip(e.Field), e.Err)
}

// Unwrap returns ErrSyntax and the cause.
func (e *ParseError) Unwrap() []error { return []error{ErrSyntax, e.Err} }

// limitError returns an ErrLimit.
func limitError(what string, got, limit int) error {
	return fmt.Errorf("%w: %d %s, at most %d are allowed", ErrLimit, got, what, limit)
}

// ranksError returns an ErrNotFound that names ranks, of which a Ledger has
// freed some before.
func ranksError(unknown, freed *idset.Set) error {
	var parts []string
	if !unknown.IsEmpty() {
		parts = append(parts, "unknown ranks "+clip(unknown.String()))
	}
	if !freed.IsEmpty() {
		parts = append(parts, "ranks freed before "+clip(freed.String()))
	}
	return fmt.Errorf("%w: %s", ErrNotFound, strings.Join(parts, ", "))
}

// hostsCount returns an ErrHosts for a list of another length.
func hostsCount(ranks, hosts int) error {
	return fmt.Errorf("%w: %d ranks, but %d hosts", ErrHosts, ranks, hosts)
}

// maxNames is the largest number of hosts that an error names.
const maxNames = 8

// hostsNamed returns an ErrHosts that names the first of some hosts, in order.
func hostsNamed(what string, names []string) error {
	slices.Sort(names)
	names = slices.Compact(names)
	more := ""
	if n := len(names) - maxNames; n > 0 {
		names, more = names[:maxNames], fmt.Sprintf(" and %d more", n)
	}
	return fmt.Errorf("%w: %s: %.64q%s", ErrHosts, what, names, more)
}
