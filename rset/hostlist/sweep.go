package hostlist

import (
	"cmp"
	"slices"
	"strings"
)

// A piece is hosts of one prefix whose ids have one length, so that pieces
// overlap if and only if they share names. A name without an id has length 0.
type piece struct {
	prefix      string
	first, last uint64
	item        int // from which it was cut
	len         uint8
	side        uint8 // to which of two lists the item belongs
}

// cut appends the pieces of the items: one for most, and one for each length
// of the ids at most.
func cut(dst []piece, items []item, side uint8) []piece {
	dst = slices.Grow(dst, len(items))
	for i := range items {
		r := &items[i]
		p := piece{prefix: r.prefix, first: r.first, item: i, len: r.width, side: side}
		for r.last >= pow10(p.len) { // so not for a name without an id
			p.last = pow10(p.len) - 1
			dst = append(dst, p)
			p.first = p.last + 1
			p.len++
		}
		p.last = r.last
		dst = append(dst, p)
	}
	return dst
}

// comparePieces orders by prefix, then by the length of the id, then by the
// first id.
func comparePieces(a, b piece) int {
	if c := strings.Compare(a.prefix, b.prefix); c != 0 {
		return c
	}
	if a.len != b.len {
		return int(a.len) - int(b.len)
	}
	return cmp.Compare(a.first, b.first)
}

// compareItems orders by side, then by item.
func compareItems(a, b piece) int {
	return cmp.Or(cmp.Compare(a.side, b.side), cmp.Compare(a.item, b.item))
}

// sweep goes over the pieces in the order of their hosts and visits stretches
// of hosts, first to last. A stretch lies wholly within the pieces that it is
// visited with, which are in order of side and item, and wholly outside of all
// others. It stops when visit returns false. It changes the order of pieces.
// A stretch takes time in proportion to the pieces it lies in.
func sweep(pieces []piece, visit func(first, last uint64, in []piece) bool) {
	slices.SortFunc(pieces, func(a, b piece) int { return cmp.Or(comparePieces(a, b), compareItems(a, b)) })
	var (
		in    []piece
		group piece  // its prefix and length are those of in
		at    uint64 // where the next stretch begins
	)
	for i := 0; i < len(pieces) || len(in) > 0; {
		if len(in) == 0 { // it takes the place of pieces that were visited
			group, at, in = pieces[i], pieces[i].first, pieces[i:i]
		}
		before := len(in)
		for ; i < len(pieces) && pieces[i].first == at && pieces[i].together(&group); i++ {
			in = append(in, pieces[i])
		}
		if before > 0 && len(in) > before {
			slices.SortFunc(in, compareItems)
		}
		last := uint64(idEnd)
		if i < len(pieces) && pieces[i].together(&group) {
			last = pieces[i].first - 1
		}
		for j := range in {
			last = min(last, in[j].last)
		}
		if !visit(at, last, in) {
			return
		}
		in = slices.DeleteFunc(in, func(q piece) bool { return q.last == last })
		at = last + 1
	}
}

// together reports whether both are of one prefix and length.
func (p *piece) together(q *piece) bool { return p.len == q.len && p.prefix == q.prefix }
