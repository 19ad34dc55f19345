package rset

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/joblife/joblife/rset/children"
	"github.com/joblife/joblife/rset/hostlist"
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

// overlay calls f, in ascending order, with the ranges over which both a and b
// stay the same: where they begin and end, and the spans there, -1 for none.
func overlay(a, b []span, f func(first, last uint32, i, j int) bool) {
	for i, j, at := 0, 0, uint32(0); i < len(a) || j < len(b); {
		x, y := restOf(a, i, at), restOf(b, j, at)
		first, last, inA, inB := x.first, min(x.last, y.last), i, j
		switch {
		case x.first < y.first:
			last, inB = min(x.last, y.first-1), -1
		case x.first > y.first:
			first, last, inA = y.first, min(y.last, x.first-1), -1
		}
		if !f(first, last, inA, inB) {
			return
		}
		if at = last + 1; inA >= 0 && x.last == last {
			i++
		}
		if inB >= 0 && y.last == last {
			j++
		}
	}
}

// restOf returns a span from a rank on, or one beyond all ranks behind the last.
func restOf(spans []span, i int, from uint32) span {
	if i == len(spans) {
		return span{first: math.MaxUint32, last: math.MaxUint32}
	}
	return span{first: max(from, spans[i].first), last: spans[i].last}
}

// An interner gives nodes numbers, equal ones the same. A node is children that ranks share.
type interner struct {
	nodes  []*children.Set  // none of them empty
	byText map[string]int32 // nil while a search is as fast
	room   int              // how many nodes may come
}

// maxSearch is the number of nodes from which on an interner keeps a map.
const maxSearch = 8

func (x *interner) number(n *children.Set) int32 {
	if i := lookup(x, n.Text()); i >= 0 {
		return i
	}
	i := int32(len(x.nodes))
	x.nodes = append(x.nodes, n)
	switch {
	case x.byText != nil:
		x.byText[n.Text()] = i
	case len(x.nodes) > maxSearch:
		x.byText = make(map[string]int32, max(x.room, 8*maxSearch))
		for i, n := range x.nodes {
			x.byText[n.Text()] = int32(i)
		}
	}
	return i
}

// lookup returns the number of the node with a text, -1 if there is none.
func lookup[T string | []byte](x *interner, text T) int32 {
	if x.byText != nil {
		if i, ok := x.byText[string(text)]; ok {
			return i
		}
		return -1
	}
	for i, n := range x.nodes {
		if n.Text() == string(text) {
			return int32(i)
		}
	}
	return -1
}

// A builder makes the spans and nodes of an R from ranges in ascending order.
type builder struct {
	interner
	spans []span
	ranks int
}

// newBuilder returns an empty R and a builder for it, with what most jobs need in one piece.
func newBuilder() (*R, builder) {
	room := new(struct {
		R
		spans [1]span
		nodes [1]*children.Set
		hosts hostlist.List
	})
	room.R.hosts = &room.hosts
	return &room.R, builder{spans: room.spans[:0], interner: interner{nodes: room.nodes[:0]}}
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

// An assembler makes spans and nodes of entries, the ranks of which come in any order.
type assembler struct {
	builder         // its nodes are those of entries
	entries []int32 // the number of the node of each
	pieces  []piece // of all entries
}

// A piece is a range of ranks of an entry.
type piece struct {
	first, last uint32
	entry       int32
}

// piece adds a range of ranks to the entry that is added next.
func (d *assembler) piece(first, last uint32) {
	d.pieces = append(d.pieces, piece{first, last, int32(len(d.entries))})
}

// assemble makes the spans and nodes, or returns an error and the entry that it is about.
func (d *assembler) assemble() (at int, err error) {
	slices.SortFunc(d.pieces, func(a, b piece) int { return cmp.Compare(a.first, b.first) })
	for i, p := range d.pieces {
		if i > 0 && p.first <= d.pieces[i-1].last {
			return int(max(p.entry, d.pieces[i-1].entry)), fmt.Errorf("rank %d is in another entry", p.first)
		}
		d.addAs(p.first, p.last, d.entries[p.entry])
	}
	d.renumber()
	return 0, nil
}

// renumber puts the nodes in the order of their first rank.
func (d *assembler) renumber() {
	if len(d.nodes) < 2 {
		return
	}
	nodes := make([]*children.Set, 0, len(d.nodes))
	numbers := make([]int32, len(d.nodes)) // and 1, by those before
	for i := range d.spans {
		number := &numbers[d.spans[i].node]
		if *number == 0 {
			nodes = append(nodes, d.nodes[d.spans[i].node])
			*number = int32(len(nodes))
		}
		d.spans[i].node = *number - 1
	}
	d.nodes = nodes
}
