package rset

import (
	"cmp"
	"fmt"
	"slices"
)

// A merger makes spans and nodes of entries, the ranks of which come in any order.
type merger struct {
	builder         // its nodes are those of entries
	entries []int32 // the number of the node of each, noNode if it has no resources
	pieces  []piece // of all entries
}

// noNode is the number of the node without resources.
const noNode = -1

// A piece is a range of ranks of an entry.
type piece struct {
	first, last uint32
	entry       int32
}

// numberOf is number for a node that may be nil.
func (d *merger) numberOf(n *node) int32 {
	if n == nil {
		return noNode
	}
	return d.number(n)
}

// piece adds a range of ranks to the entry that is added next.
func (d *merger) piece(first, last uint32) {
	d.pieces = append(d.pieces, piece{first, last, int32(len(d.entries))})
}

// merge makes the spans and nodes of the entries, or returns an error and the entry
// that it is about.
func (d *merger) merge() (at int, err error) {
	slices.SortFunc(d.pieces, func(a, b piece) int { return cmp.Compare(a.first, b.first) })
	for i, p := range d.pieces {
		if i > 0 && p.first <= d.pieces[i-1].last {
			return int(max(p.entry, d.pieces[i-1].entry)), fmt.Errorf("rank %d is in another entry", p.first)
		}
		if d.entries[p.entry] == noNode {
			return int(p.entry), errNoResource
		}
		d.addAs(p.first, p.last, d.entries[p.entry])
	}
	d.renumber()
	return 0, nil
}

// renumber puts the nodes in the order of their first rank.
func (d *merger) renumber() {
	next := int32(0)
	for _, s := range d.spans {
		if s.node > next {
			next = noNode
			break
		}
		next = max(next, s.node+1)
	}
	if int(next) == len(d.nodes) { // as they are in most texts
		return
	}
	var nodes []*node
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
