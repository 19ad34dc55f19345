package rset

import (
	"math"
	"sort"

	"github.com/joblife/joblife/rset/children"
)

// A span is a range of ranks that have the same node.
type span struct {
	first, last uint32 // inclusive
	before      int    // the number of ranks of the R below first
	node        int32  // the index of the node among the nodes of the R
}

func (s span) len() int { return int(s.last-s.first) + 1 }

// find returns where the span of a rank is, or would be, and whether it is.
func find(spans []span, rank uint32) (int, bool) {
	i := sort.Search(len(spans), func(i int) bool { return spans[i].last >= rank })
	return i, i < len(spans) && spans[i].first <= rank
}

// A builder makes the spans and nodes of an R from ranges in ascending order.
type builder struct {
	interner
	spans []span
	ranks int
}

// add appends a range above all before it.
func (b *builder) add(first, last uint32, n *children.Set) {
	if k := len(b.spans) - 1; k >= 0 && b.nodes[b.spans[k].node] == n {
		b.addAs(first, last, b.spans[k].node)
		return
	}
	b.addAs(first, last, b.number(n))
}

// addAs is add for the number of a node.
func (b *builder) addAs(first, last uint32, node int32) {
	if k := len(b.spans) - 1; k >= 0 && b.spans[k].node == node && b.spans[k].last+1 == first {
		b.spans[k].last = last
	} else {
		b.spans = append(b.spans, span{first, last, b.ranks, node})
	}
	b.ranks += int(last-first) + 1
}

// overlay calls f, in ascending order, with the ranges over which both a and b
// stay the same: where they begin and end, and the spans there, -1 for none.
func overlay(a, b []span, f func(first, last uint32, i, j int) bool) {
	start := func(s []span, i int, at uint32) uint32 {
		if i == len(s) {
			return math.MaxUint32
		}
		return max(at, s[i].first)
	}
	for i, j, at := 0, 0, uint32(0); ; {
		for i < len(a) && a[i].last < at {
			i++
		}
		for j < len(b) && b[j].last < at {
			j++
		}
		if i == len(a) && j == len(b) {
			return
		}
		fa, fb := start(a, i, at), start(b, j, at)
		first, inA, inB := min(fa, fb), i, j
		last := uint32(math.MaxUint32)
		if fa == first {
			last = a[i].last
		} else {
			last, inA = fa-1, -1
		}
		if fb == first {
			last = min(last, b[j].last)
		} else {
			last, inB = min(last, fb-1), -1
		}
		if !f(first, last, inA, inB) {
			return
		}
		at = last + 1
	}
}
