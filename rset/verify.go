package rset

import (
	"github.com/joblife/joblife/idset"
)

// A VerifyMode says which differences Verify lets pass.
type VerifyMode uint8

const (
	Default      VerifyMode = iota // that of VerifyConfig.Default, which itself means Strict
	Strict                         // none
	Ignore                         // any
	AllowMissing                   // what is expected may be missing
	AllowExtra                     // there may be more than expected
)

// VerifyConfig says what Verify lets pass. The zero value lets nothing pass.
type VerifyConfig struct {
	Default VerifyMode            // for hosts and kinds not named below
	Hosts   VerifyMode            // AllowMissing and AllowExtra mean Strict here
	Kinds   map[string]VerifyMode // by kind, as "core"
}

// mode returns the mode of a setting.
func (c VerifyConfig) mode(m VerifyMode) VerifyMode {
	if m == Default {
		m = c.Default
	}
	if m == Default {
		m = Strict
	}
	return m
}

// Verify compares resources that were found with those expected of the same
// ranks; ranks that are expected and not in r are not looked at. The error is a
// *VerifyError: ErrMismatch where a rank is not expected, is on another host or
// lacks something, otherwise ErrExtra where something is there beside. Hosts
// are compared where both sides know them. It costs by ranges of ranks, and by
// ranks where hosts are not in the same order.
func (r *R) Verify(expected *R, cfg VerifyConfig) error {
	r, expected = r.orEmpty(), expected.orEmpty()
	missing, extra := memory{op: cfg.missing}, memory{op: cfg.extra}
	var bad, more *VerifyError
	var compare comparison
	overlay(r.spans, expected.spans, func(first, last uint32, i, j int) bool {
		if i < 0 {
			return true
		}
		e := &VerifyError{Rank: first, mismatch: true}
		switch {
		case j < 0:
			e.Unknown = true
		default:
			x, y := r.nodeAt(i), expected.nodeAt(j)
			if !cfg.verifyHosts(&compare, r, expected, span{first: first, last: last}, i, j, &bad) {
				return true
			}
			e.Missing, e.Extra = missing.of(x, y).text(), extra.of(x, y).text()
			e.mismatch = e.Missing != ""
			if e.Missing == "" && e.Extra == "" {
				return true
			}
		}
		if e.mismatch {
			bad = bad.join(e, r, first, last)
		} else {
			more = more.join(e, r, first, last)
		}
		return true
	})
	switch {
	case bad != nil:
		return bad
	case more != nil:
		return more
	}
	return nil
}

// join adds ranks to the error, which is e if there was none before.
func (e *VerifyError) join(found *VerifyError, r *R, first, last uint32) *VerifyError {
	if e == nil {
		e = found
		e.Ranks = new(idset.Set)
		e.Host, _ = r.Host(e.Rank)
	}
	e.Ranks.InsertRange(first, last)
	return e
}

// verifyHosts compares hosts over a range and reports whether they are equal.
func (c VerifyConfig) verifyHosts(compare *comparison, r, expected *R, at span, i, j int, bad **VerifyError) bool {
	if c.mode(c.Hosts) == Ignore || len(r.hosts) == 0 || len(expected.hosts) == 0 {
		return true
	}
	from, fromWant := r.index(i, at.first), expected.index(j, at.first)
	k, differ := compare.differ(r.hosts, from, expected.hosts, fromWant, at.len())
	if differ {
		rank := at.first + uint32(k)
		want, _ := expected.hosts.at(fromWant + k)
		*bad = (*bad).join(&VerifyError{Rank: rank, Want: want, mismatch: true}, r, rank, rank)
	}
	return !differ
}

// missing returns what is in y and not in x, but for what may be missing.
func (c VerifyConfig) missing(x, y *node) *node { return c.without(subtractNodes(y, x), AllowMissing) }

// extra returns what is in x and not in y, but for what may be there.
func (c VerifyConfig) extra(x, y *node) *node { return c.without(subtractNodes(x, y), AllowExtra) }

// without returns n without the kinds that are ignored or have a mode.
func (c VerifyConfig) without(n *node, pass VerifyMode) *node {
	if n == nil {
		return nil
	}
	var kinds []kind
	for _, k := range n.kinds {
		if m := c.mode(c.Kinds[k.name]); m != Ignore && m != pass {
			kinds = append(kinds, k)
		}
	}
	return newNode(kinds)
}
