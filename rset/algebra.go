package rset

import (
	"cmp"
	"fmt"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/guard"
	"github.com/joblife/joblife/rset/children"
	"github.com/joblife/joblife/rset/hostlist"
)

// Union returns the resources that are in a or in b, with the times, slots and unknown keys of
// a, or of b where a has none, the properties of both, and no scheduling key. It is an error if
// a rank has different hosts in a and b, or if only some ranks of the result have a host.
func Union(a, b *R) (*R, error) {
	r, err := combine(a, b, (*children.Set).Union)
	if err != nil {
		return nil, err
	}
	r.joinMeta(a.orEmpty(), b.orEmpty())
	return r, nil
}

// UnionDisjoint is Union for disjoint sets. If some resources are in both a and b, the
// error names them.
func UnionDisjoint(a, b *R) (*R, error) {
	if both := resources(a, b, (*children.Set).Intersect); !both.IsEmpty() {
		return nil, fmt.Errorf("rset: resources overlap: %s", guard.Plain(both.String()))
	}
	return Union(a, b)
}

// Intersect returns the resources that are in both a and b, a fragment of a. It is an error
// if a rank has different hosts in a and b.
func Intersect(a, b *R) (*R, error) {
	r, err := combine(a, b, (*children.Set).Intersect)
	if err != nil {
		return nil, err
	}
	return r.cutMeta(a.orEmpty()), nil
}

// Subtract returns the resources that are in a and not in b, a fragment of a, and those
// that are in b and not in a, without hosts. The error is that of Intersect.
func Subtract(a, b *R) (rest, excess *R, err error) {
	if rest, err = combine(a, b, (*children.Set).Subtract); err != nil {
		return nil, nil, err
	}
	return rest.cutMeta(a.orEmpty()), resources(b, a, (*children.Set).Subtract), nil
}

// resources is combine for the resources alone.
func resources(a, b *R, op nodeOp) *R {
	a, b = a.orEmpty(), b.orEmpty()
	// Without hosts there is no error.
	r, _ := combine(&R{spans: a.spans, nodes: a.nodes}, &R{spans: b.spans, nodes: b.nodes}, op)
	return r
}

// combine returns what an operation leaves of a and b, with the hosts of a, or else of b.
func combine(a, b *R, op nodeOp) (*R, error) {
	a, b = a.orEmpty(), b.orEmpty()
	var made builder
	var err error
	r := &R{hosts: new(hostlist.List)}
	memo := memory{op: op}
	bare := -1 // a rank whose host is not known
	overlay(a.spans, b.spans, func(first, last uint32, i, j int) bool {
		if i >= 0 && j >= 0 {
			if k, found := differ(a.hosts, b.hosts, a.index(i, first), b.index(j, first), int(last-first)+1); found {
				rank := first + uint32(k)
				x, _ := a.Host(rank)
				y, _ := b.Host(rank)
				err = fmt.Errorf("%w: rank %d is on two hosts: %.64q and %.64q", errHosts, rank, x, y)
				return false
			}
		}
		n := memo.of(a.nodeAt(i), b.nodeAt(j))
		if n == nil {
			return true
		}
		made.add(first, last, n)
		switch {
		case i >= 0 && !a.hosts.IsEmpty():
			r.appendHosts(a, i, first, last)
		case j >= 0 && !b.hosts.IsEmpty():
			r.appendHosts(b, j, first, last)
		case bare < 0:
			bare = int(first)
		}
		return true
	})
	if err == nil && bare >= 0 && !r.hosts.IsEmpty() {
		err = fmt.Errorf("%w: rank %d has no host, but others have", errHosts, bare)
	}
	if err != nil {
		return nil, err
	}
	r.spans, r.nodes = made.spans, made.nodes
	return r, nil
}

func (r *R) nodeAt(i int) *children.Set {
	if i < 0 {
		return nil
	}
	return r.nodes[r.spans[i].node]
}

// index returns the place of a rank of a span in rank order.
func (r *R) index(i int, rank uint32) int { return r.spans[i].before + int(rank-r.spans[i].first) }

// appendHosts appends the hosts of a range of ranks, in the span i of another R, if it has hosts.
func (r *R) appendHosts(from *R, i int, first, last uint32) {
	if !from.hosts.IsEmpty() {
		at := from.index(i, first)
		r.hosts.AppendPart(from.hosts, at, at+int(last-first)+1)
	}
}

// differ returns the first of n hosts, from an index of each list on, that differs, or false,
// as if one list is empty. In one list, a rank has one place.
func differ(a, b *hostlist.List, i, j, n int) (int, bool) {
	if a == b || a.IsEmpty() || b.IsEmpty() {
		return 0, false
	}
	for done := 0; done < n; {
		x, _ := a.RangeAt(i + done)
		y, _ := b.RangeAt(j + done)
		take := int(min(uint64(n-done-1), x.Last-x.First, y.Last-y.First)) + 1
		if x.Prefix != y.Prefix || x.First != y.First || x.Width != y.Width {
			// The same name may be in ranges of different widths.
			take = 1
			nameX, _ := a.Nth(i + done)
			if nameY, _ := b.Nth(j + done); nameX != nameY {
				return done, true
			}
		}
		done += take
	}
	return 0, false
}

// A nodeOp makes a node of two.
type nodeOp func(x, y *children.Set) *children.Set

// A memory applies an operation to pairs of nodes, to each pair once.
type memory struct {
	op   nodeOp
	done map[[2]*children.Set]*children.Set
}

func (m *memory) of(x, y *children.Set) *children.Set {
	if x == nil || y == nil || x.Equal(y) {
		return m.op(x, y)
	}
	n, ok := m.done[[2]*children.Set{x, y}]
	if !ok {
		if m.done == nil {
			m.done = make(map[[2]*children.Set]*children.Set)
		}
		n = m.op(x, y)
		m.done[[2]*children.Set{x, y}] = n
	}
	return n
}

// Restrict returns the fragment of r on the given ranks. It is an error if r does not have
// all of them. It takes time in proportion to the ranges of ranks and of their hosts, not to r.
//
// A fragment keeps times, slots and unknown keys, and of its ranks the hosts, all kinds of
// children, and the properties. It drops the scheduling key.
func (r *R) Restrict(ranks *idset.Set) (*R, error) {
	r = r.orEmpty()
	out, made := newBuilder()
	for first, last := range ranks.Ranges() {
		i, _ := find(r.spans, first)
		for ; i < len(r.spans) && r.spans[i].first <= last; i++ {
			s := r.spans[i]
			from, to := max(first, s.first), min(last, s.last)
			made.add(from, to, r.nodes[s.node])
			out.appendHosts(r, i, from, to)
		}
	}
	if made.ranks != ranks.Len() {
		return nil, ranksError(idset.Difference(ranks, r.Ranks()), nil)
	}
	out.spans, out.nodes = made.spans, made.nodes
	return out.cutMeta(r), nil
}

// Without returns the fragment of r without the given ranks. The errors are those of Restrict.
func (r *R) Without(ranks *idset.Set) (*R, error) {
	all := r.Ranks()
	if unknown := idset.Difference(ranks, all); !unknown.IsEmpty() {
		return nil, ranksError(unknown, nil)
	}
	return r.Restrict(idset.Difference(all, ranks))
}

// cutMeta gives r what a fragment keeps beside resources and hosts. It returns r.
func (r *R) cutMeta(parent *R) *R {
	r.start, r.end, r.slots = parent.start, parent.end, parent.slots
	r.execution, r.top = parent.execution, parent.top
	return r.cutProperties(parent)
}

// cutProperties gives r the properties of its parent on its ranks. It returns r.
func (r *R) cutProperties(parent *R) *R {
	if len(parent.properties) == 0 || r.IsEmpty() {
		return r
	}
	ranks := r.Ranks()
	for _, p := range parent.properties {
		switch {
		case p.ranks.ContainsAll(ranks):
			r.properties = append(r.properties, property{p.name, ranks})
		case p.ranks.Intersects(ranks):
			r.properties = append(r.properties, property{p.name, idset.Intersect(p.ranks, ranks)})
		}
	}
	return r
}

// joinMeta gives r what a union keeps beside resources and hosts.
func (r *R) joinMeta(a, b *R) {
	if r.start, r.end = a.start, a.end; r.start == 0 && r.end == 0 {
		r.start, r.end = b.start, b.end
	}
	r.slots = cmp.Or(a.slots, b.slots)
	first := func(m, _ member) member { return m }
	r.execution, r.top = join(a.execution, b.execution, first), join(a.top, b.top, first)
	r.properties = join(a.properties, b.properties, func(p, q property) property {
		return property{p.name, idset.Union(p.ranks, q.ranks)}
	})
}

// join returns what is in a or in b, which are in order. Both makes one of two with one label.
func join[T interface{ label() string }](a, b []T, both func(x, y T) T) []T {
	var out []T
	for len(a) > 0 && len(b) > 0 {
		switch order := cmp.Compare(a[0].label(), b[0].label()); {
		case order < 0:
			out, a = append(out, a[0]), a[1:]
		case order > 0:
			out, b = append(out, b[0]), b[1:]
		default:
			out, a, b = append(out, both(a[0], b[0])), a[1:], b[1:]
		}
	}
	return append(append(out, a...), b...)
}

func (m member) label() string   { return m.key }
func (p property) label() string { return p.name }
