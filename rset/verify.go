package rset

import (
	"fmt"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/rset/children"
)

// A VerifyMode says which differences [R.Verify] accepts.
type VerifyMode uint8

// The modes of Verify.
const (
	VerifyDefault      VerifyMode = iota // VerifyConfig.Default, which itself defaults to VerifyStrict
	VerifyStrict                         // no difference
	VerifyIgnore                         // any difference
	VerifyAllowMissing                   // expected resources may be missing
	VerifyAllowExtra                     // there may be more than expected
)

// VerifyConfig says which differences [R.Verify] accepts. The zero value accepts
// none.
type VerifyConfig struct {
	Default VerifyMode            // for hosts and for kinds that are not in Kinds
	Hosts   VerifyMode            // VerifyIgnore or VerifyStrict; the others mean VerifyStrict
	Kinds   map[string]VerifyMode // by kind, such as "core"
}

// mode returns the mode of a setting.
func (c VerifyConfig) mode(m VerifyMode) VerifyMode {
	if m == VerifyDefault {
		m = c.Default
	}
	if m == VerifyDefault {
		m = VerifyStrict
	}
	return m
}

// A verifyFinding is the first difference of a sort, and all ranks with one.
type verifyFinding struct {
	rank  uint32
	ranks *idset.Set
	text  string
}

// err returns the error for a finding.
func (f *verifyFinding) err(category error) error {
	if f.ranks.Len() == 1 {
		return fmt.Errorf("%w: rank %d %s", category, f.rank, f.text)
	}
	return fmt.Errorf("%w: rank %d %s (ranks %s in all)", category, f.rank, f.text, plain(f.ranks.String()))
}

// add notes a finding, or the ranks of another one.
func (f *verifyFinding) add(first, last uint32, text func() string) {
	if f.ranks == nil {
		f.rank, f.ranks, f.text = first, new(idset.Set), text()
	}
	f.ranks.InsertRange(first, last)
}

// Verify compares r, the resources found, with those expected on the same ranks. It
// ignores expected ranks that r does not have. The error is [ErrMismatch] if a rank
// is unexpected, is on another host or lacks something, and otherwise [ErrExtra] if a
// rank has more than expected. Its text describes the lowest rank with such a
// difference and lists all such ranks. Hosts are compared if both sides have hosts.
// It takes time in proportion to ranges of ranks, or to ranks if the hosts are in
// another order.
func (r *R) Verify(expected *R, cfg VerifyConfig) error {
	r, expected = r.orEmpty(), expected.orEmpty()
	missing, extra := memory{op: cfg.missing}, memory{op: cfg.extra}
	var bad, more verifyFinding
	var compare comparison
	hosts := cfg.mode(cfg.Hosts) != VerifyIgnore
	overlay(r.spans, expected.spans, func(first, last uint32, i, j int) bool {
		if i < 0 {
			return true
		}
		if j < 0 {
			bad.add(first, last, func() string { return "is not expected" })
			return true
		}
		if rank, differ := compare.ranks(r, expected, first, last, i, j); hosts && differ {
			bad.add(rank, rank, func() string {
				have, _ := r.Host(rank)
				want, _ := expected.Host(rank)
				return fmt.Sprintf("is on host %.64q, expected %.64q", have, want)
			})
			return true
		}
		x, y := r.nodeAt(i), expected.nodeAt(j)
		on := func(what string, n *node) func() string {
			return func() string {
				host, ok := r.Host(first)
				if !ok {
					host = "unknown"
				}
				return fmt.Sprintf("(%s) %s %s", plain(host), what, plain(n.text()))
			}
		}
		if n := missing.of(x, y); n != nil {
			bad.add(first, last, on("lacks", n))
		} else if n := extra.of(x, y); n != nil {
			more.add(first, last, on("also has", n))
		}
		return true
	})
	switch {
	case bad.ranks != nil:
		return bad.err(ErrMismatch)
	case more.ranks != nil:
		return more.err(ErrExtra)
	}
	return nil
}

// missing returns what is in y and not in x, except what may be missing.
func (c VerifyConfig) missing(x, y *node) *node {
	return c.without(subtractNodes(y, x), VerifyAllowMissing)
}

// extra returns what is in x and not in y, except what may be there.
func (c VerifyConfig) extra(x, y *node) *node {
	return c.without(subtractNodes(x, y), VerifyAllowExtra)
}

// without returns n without the kinds that are ignored or have a mode.
func (c VerifyConfig) without(n *node, pass VerifyMode) *node {
	var kinds []children.Kind
	for _, k := range n.set().Kinds() {
		if m := c.mode(c.Kinds[k.Name]); m != VerifyIgnore && m != pass {
			kinds = append(kinds, k)
		}
	}
	return newNode(children.Of(kinds))
}
