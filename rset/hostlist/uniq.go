package hostlist

import (
	"cmp"
	"slices"
	"strings"
)

// Uniq sorts the hosts and removes duplicates. It returns how many hosts it removed.
//
// The order is by prefix, byte by byte; then by the number of digits of the id, zeros on
// the left included; then by the id. A name without an id comes first. So a, a9, a09, a10
// and a010 are in order. With r ranges it takes r log r steps.
func (l *List) Uniq() int {
	pieces := cut(l.items)
	if len(pieces) < 2 {
		return 0
	}
	slices.SortFunc(pieces, func(a, b piece) int {
		return cmp.Or(strings.Compare(a.prefix, b.prefix), cmp.Compare(a.len, b.len), cmp.Compare(a.first, b.first))
	})
	before := count(l.items)
	var left []item
	for i := 0; i < len(pieces); {
		p := pieces[i]
		for i++; i < len(pieces) && pieces[i].prefix == p.prefix && pieces[i].len == p.len && pieces[i].first <= p.last; i++ {
			p.last = max(p.last, pieces[i].last)
		}
		left = push(left, item{prefix: p.prefix, first: p.first, last: p.last, width: p.len})
	}
	l.items = left
	return saturate(before - count(left))
}

// A piece is hosts of one prefix whose ids have one length, so that pieces
// overlap if and only if they share names. A name without an id has length 0.
type piece struct {
	prefix      string
	first, last uint64
	len         uint8
}

// cut returns the pieces of items: one for most, and one for each length of the ids at
// most.
func cut(items []item) []piece {
	pieces := make([]piece, 0, len(items))
	for i := range items {
		r := &items[i]
		p := piece{prefix: r.prefix, first: r.first, len: r.width}
		for r.last >= pow10(p.len) { // so not for a name without an id
			p.last = pow10(p.len) - 1
			pieces = append(pieces, p)
			p.first = p.last + 1
			p.len++
		}
		p.last = r.last
		pieces = append(pieces, p)
	}
	return pieces
}
