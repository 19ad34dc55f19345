package rset

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/rset/children"
)

// The work for ranks that are in several entries is limited: by so many units
// for each byte of the text, and some more. A unit is an entry of a range of
// ranks, or a byte of the children that are joined.
const (
	overlapsPerByte = 4
	freeOverlaps    = 1 << 20
)

// A merger makes spans and nodes of entries, in which ranks may be in any order
// and several times.
type merger struct {
	builder                  // its nodes are those of entries, and unions of them
	entries []int32          // the number of the node of each, noNode if it has no resources
	pieces  []piece          // of all entries
	bytes   int              // of the text
	work    int              // what overlaps have taken
	unions  map[string]int32 // of entries that overlap, by their places
	key     []byte           // room for a key of unions
	at      int              // the entry that an error is about, -1 for all
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
// that it is about, -1 for all of them.
func (d *merger) merge() (at int, err error) {
	d.at = -1
	slices.SortFunc(d.pieces, func(a, b piece) int {
		return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(a.entry, b.entry))
	})
	for rest := d.pieces; len(rest) > 0; {
		// A cluster is pieces that overlap in a chain. Most are one piece.
		n, last := 1, rest[0].last
		for n < len(rest) && rest[n].first <= last {
			last = max(last, rest[n].last)
			n++
		}
		if err := d.cluster(rest[:n]); err != nil {
			return d.at, err
		}
		rest = rest[n:]
	}
	d.renumber()
	return -1, nil
}

// renumber puts the nodes in the order of their first rank, without those that no
// span has.
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

// cluster adds pieces that overlap: of every range of ranks that has the same
// entries, the union of their nodes.
func (d *merger) cluster(pieces []piece) error {
	if len(pieces) == 1 {
		return d.put(pieces[0].first, pieces[0].last, d.entries[pieces[0].entry])
	}
	var open []int32 // the entries that have the rank at, in order
	var ends []uint32
	at := pieces[0].first
	for len(pieces) > 0 || len(open) > 0 {
		for len(pieces) > 0 && pieces[0].first == at {
			i, _ := slices.BinarySearch(open, pieces[0].entry)
			open, ends = slices.Insert(open, i, pieces[0].entry), slices.Insert(ends, i, pieces[0].last)
			pieces = pieces[1:]
		}
		last := uint32(math.MaxUint32)
		if len(pieces) > 0 {
			last = pieces[0].first - 1
		}
		for _, end := range ends {
			last = min(last, end)
		}
		n, err := d.union(open)
		if err != nil {
			return err
		}
		if err := d.put(at, last, n); err != nil {
			return err
		}
		for i := len(open) - 1; i >= 0; i-- {
			if ends[i] == last {
				open, ends = slices.Delete(open, i, i+1), slices.Delete(ends, i, i+1)
			}
		}
		at = last + 1
	}
	return nil
}

// put adds a range of ranks, which must have a resource.
func (d *merger) put(first, last uint32, node int32) error {
	if node == noNode {
		return fmt.Errorf("no resource at ranks %v", idset.Range(first, last))
	}
	d.addAs(first, last, node)
	return nil
}

// An owned kind is one of an entry.
type owned struct {
	children.Kind
	entry int32
}

// union returns the number of the node that has the resources of entries, which have
// none in common. The same entries cost little the second time.
func (d *merger) union(entries []int32) (int32, error) {
	if len(entries) == 1 {
		return d.entries[entries[0]], nil
	}
	d.key = d.key[:0]
	for _, i := range entries {
		d.key = binary.LittleEndian.AppendUint32(d.key, uint32(i))
	}
	n, ok := d.unions[string(d.key)]
	if d.work += len(entries); ok {
		return n, d.checkWork()
	}
	var all []owned
	for _, i := range entries {
		if d.entries[i] != noNode {
			m := d.nodes[d.entries[i]]
			d.work += len(m.key)
			for _, k := range m.set().Kinds() {
				all = append(all, owned{k, i})
			}
		}
	}
	if err := d.checkWork(); err != nil {
		return noNode, err
	}
	slices.SortStableFunc(all, func(a, b owned) int { return cmp.Compare(a.Name, b.Name) })
	var kinds []children.Kind
	for i, k := range all {
		last := len(kinds) - 1
		switch {
		case i == 0 || all[i-1].Name != k.Name:
			kinds = append(kinds, k.Kind)
			continue
		case kinds[last].IDs.Intersects(k.IDs):
			d.at = int(k.entry)
			return noNode, errTwice
		case kinds[last].IDs == all[i-1].IDs: // which belongs to an entry
			kinds[last].IDs = kinds[last].IDs.Clone()
		}
		kinds[last].IDs.UnionWith(k.IDs)
		kinds[last].N += k.N
	}
	n = d.numberOf(newNode(children.Of(kinds)))
	if d.unions == nil {
		d.unions = make(map[string]int32)
	}
	d.unions[string(d.key)] = n
	return n, nil
}

// checkWork returns an error if the entries overlap too much.
func (d *merger) checkWork() error {
	if limit := overlapsPerByte*d.bytes + freeOverlaps; d.work > limit {
		return tooMany("overlaps of entries", d.work, limit)
	}
	return nil
}
