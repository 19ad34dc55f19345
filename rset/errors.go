package rset

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/guard"
)

// ErrLimit is returned when an R is too large.
var ErrLimit = errors.New("rset: limit exceeded")

// The other categories of errors.
var (
	errInvalid  = errors.New("rset: invalid R") // of a text or a Config
	errNotFound = errors.New("rset: no such resources")
	errHosts    = errors.New("rset: hosts do not match")
	errFinal    = errors.New("rset: the final fragment was already given")
)

// The causes of errors. Package jsonobj has more.
var (
	errNoRank     = errors.New("must name a rank")
	errExpiration = errors.New("must be after starttime")
	errNoResource = errors.New("must have a resource")
	errProperty   = errors.New("invalid property name")
)

// tooMany returns the cause of an ErrLimit.
func tooMany(what string, got, limit int) error {
	return guard.Cause(ErrLimit, fmt.Sprintf("%d %s, at most %d are allowed", got, what, limit))
}

func ranksError(unknown, freed *idset.Set) error {
	var parts []string
	if !unknown.IsEmpty() {
		parts = append(parts, "unknown ranks "+guard.Plain(unknown.String()))
	}
	if !freed.IsEmpty() {
		parts = append(parts, "ranks freed before "+guard.Plain(freed.String()))
	}
	return fmt.Errorf("%w: %s", errNotFound, strings.Join(parts, ", "))
}

// unknownRanks returns the cause of an error about ranks that an R does not have.
func unknownRanks(ranks *idset.Set) error {
	return fmt.Errorf("unknown ranks %s", guard.Plain(ranks.String()))
}

// maxNames is the largest number of hosts that an error names.
const maxNames = 8

// hostsNamed returns an errHosts that names the first of some hosts, in order.
func hostsNamed(what string, names []string) error {
	slices.Sort(names)
	names = slices.Compact(names)
	more := ""
	if n := len(names) - maxNames; n > 0 {
		names, more = names[:maxNames], fmt.Sprintf(" and %d more", n)
	}
	return fmt.Errorf("%w: %s: %.64q%s", errHosts, what, names, more)
}
