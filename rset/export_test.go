package rset

import (
	"fmt"
	"slices"

	"github.com/joblife/joblife/rset/children"
)

// Check returns an error if an R is not in the form that it must have.
func (r *R) Check() error {
	r = r.orEmpty()
	texts := map[string]bool{}
	for _, n := range r.nodes {
		if texts[n.Text()] || children.Of(slices.Clone(n.Kinds())).Text() != n.Text() {
			return fmt.Errorf("node %s is there twice or not canonical", n.Text())
		}
		texts[n.Text()] = true
		for i, k := range n.Kinds() {
			if k.IDs.Len() != k.N || k.N == 0 || i > 0 && n.Kinds()[i-1].Name >= k.Name {
				return fmt.Errorf("kinds of %s are empty or not in order", n.Text())
			}
		}
	}
	ranks, nodes := 0, int32(0)
	for i, s := range r.spans {
		if s.first > s.last || s.before != ranks || s.node > nodes || int(s.node) >= len(r.nodes) {
			return fmt.Errorf("span %d is broken: %+v", i, s)
		}
		if s.node == nodes {
			nodes++
		}
		if i > 0 {
			p := r.spans[i-1]
			if p.last >= s.first || p.last+1 == s.first && p.node == s.node {
				return fmt.Errorf("spans %d and %d are not maximal and in order", i-1, i)
			}
		}
		ranks += s.len()
	}
	if int(nodes) != len(r.nodes) {
		return fmt.Errorf("%d nodes, %d are used", len(r.nodes), nodes)
	}
	if n := r.hosts.Len(); n != 0 && n != ranks {
		return fmt.Errorf("%d hosts, %d ranks", n, ranks)
	}
	all := r.Ranks()
	for i, p := range r.properties {
		if p.ranks.IsEmpty() || !all.ContainsAll(p.ranks) || i > 0 && r.properties[i-1].name >= p.name {
			return fmt.Errorf("property %q is empty, out of order or not of these ranks", p.name)
		}
	}
	return nil
}

// Limits are what ParseWithin accepts; Parse has larger ones.
type Limits struct{ Rank, Child, Bytes, Entries, Hosts int }

// ParseWithin is Parse with other limits. In each field 0 means that of Parse.
func ParseWithin(b []byte, l Limits) (*R, error) {
	use := limits{MaxRank, maxChild, MaxBytes, maxEntries, maxHosts}
	for _, o := range []struct {
		of *int
		n  int
	}{{&use.rank, l.Rank}, {&use.child, l.Child}, {&use.bytes, l.Bytes}, {&use.entries, l.Entries}, {&use.hosts, l.Hosts}} {
		if o.n > 0 {
			*o.of = o.n
		}
	}
	return use.parse(b)
}
