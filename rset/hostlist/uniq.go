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
	slices.SortFunc(pieces, func(a, b item) int {
		return cmp.Or(strings.Compare(a.prefix, b.prefix), cmp.Compare(a.width, b.width), cmp.Compare(a.first, b.first))
	})
	before := count(l.items)
	var left []item
	for i := 0; i < len(pieces); {
		p := pieces[i]
		for i++; i < len(pieces) && pieces[i].prefix == p.prefix && pieces[i].width == p.width && pieces[i].first <= p.last; i++ {
			p.last = max(p.last, pieces[i].last)
		}
		left = push(left, p)
	}
	l.items = left
	return saturate(before - count(left))
}

// cut returns items cut into pieces whose ids have one length, so that pieces overlap if
// and only if they share names. Most are one piece.
func cut(items []item) []item {
	pieces := make([]item, 0, len(items))
	for _, p := range items {
		last := p.last
		for last >= pow10(p.width) { // so not for a name without an id
			p.last = pow10(p.width) - 1
			pieces = append(pieces, p)
			p.first = p.last + 1
			p.width++
		}
		p.last = last
		pieces = append(pieces, p)
	}
	return pieces
}
