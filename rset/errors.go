package rset

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/guard"
)

var (
	// ErrSyntax is returned when a text or a Config is not an R of RFC 20.
	ErrSyntax = errors.New("rset: invalid R")

	// ErrLimit is returned when an R is too large.
	ErrLimit = errors.New("rset: limit exceeded")

	// ErrNotFound is returned when an R does not have the ranks or resources
	// that a call names, or a Ledger does not hold them. The text names them.
	ErrNotFound = errors.New("rset: no such resources")

	// ErrFinal is returned when a Ledger has already given the final fragment.
	ErrFinal = errors.New("rset: the final fragment was already given")

	// ErrHosts is returned when hosts do not match the ranks or another R.
	ErrHosts = errors.New("rset: hosts do not match")
)

// The causes of errors. Package jsonobj has more.
var (
	errVersion    = errors.New("must be 1")
	errNoRank     = errors.New("must name a rank")
	errTime       = errors.New("must be a finite time of 0 or later")
	errExpiration = errors.New("must be after starttime")
	errNegative   = errors.New("must not be negative")
	errNoResource = errors.New("must have a resource")
	errProperty   = errors.New("invalid property name")
)

// plain returns the start of a text, with escapes for what does not print.
func plain(text string) string {
	q := guard.Quote(text)
	return q[1 : len(q)-1]
}

// tooMany returns the cause of an ErrLimit.
func tooMany(what string, got, limit int) error {
	return guard.Cause(ErrLimit, fmt.Sprintf("%d %s, at most %d are allowed", got, what, limit))
}

// ranksError returns an ErrNotFound that names ranks, of which a Ledger has
// freed some before.
func ranksError(unknown, freed *idset.Set) error {
	var parts []string
	if !unknown.IsEmpty() {
		parts = append(parts, "unknown ranks "+plain(unknown.String()))
	}
	if !freed.IsEmpty() {
		parts = append(parts, "ranks freed before "+plain(freed.String()))
	}
	return fmt.Errorf("%w: %s", ErrNotFound, strings.Join(parts, ", "))
}

// unknownRanks returns the cause of an error about ranks that an R does not have.
func unknownRanks(ranks *idset.Set) error {
	return fmt.Errorf("unknown ranks %s", plain(ranks.String()))
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
