package rset

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/rset/internal/children"
)

// The work for ranks that are in several entries is limited: by so many units
// for each byte of the text, and some more. A unit is an entry of a range of
// ranks, or a byte of the children that are joined.
const (
	overlapsPerByte = 16
	freeOverlaps    = 1 << 20
)

// A piece is a range of ranks of an entry.
type piece struct {
	first, last uint32
	entry       int
}

// merge makes spans and nodes of the entries.
func (d *decoder) merge(v value) error {
	var pieces []piece
	for i, e := range d.read {
		for first, last := range e.ranks.Ranges() {
			pieces = append(pieces, piece{first, last, i})
		}
	}
	slices.SortFunc(pieces, func(a, b piece) int {
		return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(a.entry, b.entry))
	})
	var made builder
	for rest := pieces; len(rest) > 0; {
		// A cluster is pieces that overlap in a chain. Most are one piece.
		n, last := 1, rest[0].last
		for n < len(rest) && rest[n].first <= last {
			last = max(last, rest[n].last)
			n++
		}
		if err := d.cluster(v, &made, rest[:n]); err != nil {
			return err
		}
		rest = rest[n:]
	}
	d.r.spans, d.r.nodes = made.spans, made.nodes
	return nil
}

// cluster adds pieces that overlap: of every range of ranks that has the same
// entries, the union of their nodes.
func (d *decoder) cluster(v value, made *builder, pieces []piece) error {
	if len(pieces) == 1 {
		return d.put(v, made, pieces[0].first, pieces[0].last, d.read[pieces[0].entry].node)
	}
	var open []int // the entries that have the rank at, in order
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
		n, err := d.union(v, open)
		if err != nil {
			return err
		}
		if err := d.put(v, made, at, last, n); err != nil {
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
func (d *decoder) put(v value, made *builder, first, last uint32, n *node) error {
	if n == nil {
		lacking := new(idset.Set)
		lacking.InsertRange(first, last)
		return v.fail(fmt.Errorf("no resource at ranks %s", clip(lacking.String())))
	}
	made.add(first, last, n)
	return nil
}

// An owned kind is one of an entry.
type owned struct {
	children.Kind
	entry int
}

// union returns the node that has the resources of entries, which have none in
// common. The same entries cost little the second time.
func (d *decoder) union(v value, entries []int) (*node, error) {
	if len(entries) == 1 {
		return d.read[entries[0]].node, nil
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
		if m := d.read[i].node; m != nil {
			d.work += len(m.key)
			for _, k := range m.set().Kinds() {
				all = append(all, owned{k, i})
			}
		}
	}
	if err := d.checkWork(); err != nil {
		return nil, err
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
			v.offset = d.read[k.entry].offset
			return nil, v.fail(errTwice)
		case kinds[last].IDs == all[i-1].IDs: // which belongs to an entry
			kinds[last].IDs = kinds[last].IDs.Clone()
		}
		kinds[last].IDs.UnionWith(k.IDs)
		kinds[last].N += k.N
	}
	n = newNode(children.Of(kinds))
	if d.unions == nil {
		d.unions = make(map[string]*node)
	}
	d.unions[string(d.key)] = n
	return n, nil
}

// checkWork returns an error if the entries overlap too much.
func (d *decoder) checkWork() error {
	if limit := overlapsPerByte*d.size + freeOverlaps; d.work > limit {
		return limitError("overlaps of entries", d.work, limit)
	}
	return nil
}
