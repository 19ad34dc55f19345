package rset

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/joblife/joblife/rset/children"
)

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
