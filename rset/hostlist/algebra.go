package hostlist

import (
	"cmp"
	"slices"
)

// MaxRanges is the number of ranges that Sort makes of a list.
const MaxRanges = 1 << 20

// Delete removes, for each host of m, the first host of that name that is still
// in the list, and returns how many it removed: a host that m has twice goes
// twice. The order of m is of no account; m may be l itself or nil.
//
// With r ranges in both lists it costs r log r, and one step for each range
// beside each part of it that other ranges of either list overlap: by ranges,
// not by hosts.
func (l *List) Delete(m *List) int {
	if l.IsEmpty() || m.IsEmpty() {
		return 0
	}
	type removal struct {
		item        int
		first, last uint64
	}
	var gone []removal
	const mine, theirs = 0, 1
	pieces := cut(cut(nil, l.items, mine), m.items, theirs)
	sweep(pieces, func(first, last uint64, in []piece) bool {
		have, _ := slices.BinarySearchFunc(in, theirs, func(p piece, side int) int {
			return int(p.side) - side
		})
		for i := range min(have, len(in)-have) {
			gone = append(gone, removal{in[i].item, first, last})
		}
		return true
	})
	slices.SortFunc(gone, func(a, b removal) int {
		return cmp.Or(cmp.Compare(a.item, b.item), cmp.Compare(a.first, b.first))
	})
	before := count(l.items)
	left := make([]item, 0, len(l.items))
	for i := range l.items {
		r := l.items[i]
		for len(gone) > 0 && gone[0].item == i {
			left = pushPart(left, r, gone[0].first)
			r.first, r.width = gone[0].last+1, r.length(gone[0].last+1)
			gone = gone[1:]
		}
		left = pushPart(left, r, r.last+1)
	}
	l.items = left
	return saturate(before - count(left))
}

// pushPart appends the hosts of r whose id is below end.
func pushPart(items []item, r item, end uint64) []item {
	if r.first >= end {
		return items
	}
	r.last = end - 1
	return push(items, r)
}

// Sort puts the hosts in order: by prefix, byte by byte; the name that is the
// prefix alone before those with an id; a shorter id before a longer one, zeros
// on the left included; then by the id. So a9 stands before a09, and that
// before a10 and a010. Hosts that are in the list several times stand side by
// side.
//
// With r ranges it costs r log r, and by hosts where ranges overlap: of
// "a[0-9,0-9]" it makes "a[0,0-1,1-2,2-3,3-4,4-5,5-6,6-7,7-8,8-9,9]". A list
// that would so take more than MaxRanges steps is a *LimitError, and stays as
// it is; Uniq has no such limit.
func (l *List) Sort() error {
	pieces := cut(nil, l.items, 0)
	if len(pieces) < 2 {
		return nil
	}
	sorted := make([]item, 0, len(l.items))
	steps := uint64(0)
	fits := true
	sweep(pieces, func(first, last uint64, in []piece) bool {
		p := &in[0]
		if len(in) == 1 {
			sorted = push(sorted, item{prefix: p.prefix, first: first, last: last, width: p.len})
			return true
		}
		// No list has so many hosts that this wraps.
		steps += (last - first + 1) * uint64(len(in))
		if fits = steps <= MaxRanges; !fits {
			return false
		}
		for id := first; id <= last; id++ {
			for range in {
				sorted = push(sorted, item{prefix: p.prefix, first: id, last: id, width: p.len})
			}
		}
		return true
	})
	if !fits {
		return &LimitError{What: "ranges", Got: MaxRanges + 1, Limit: MaxRanges}
	}
	l.items = sorted
	return nil
}

// Uniq sorts the list as Sort does and removes all but one of the hosts that
// are in it several times. It returns how many it removed. With r ranges it
// costs r log r.
func (l *List) Uniq() int {
	pieces := cut(nil, l.items, 0)
	if len(pieces) < 2 {
		return 0
	}
	slices.SortFunc(pieces, comparePieces)
	before := count(l.items)
	var left []item
	for i := 0; i < len(pieces); {
		p := pieces[i]
		for i++; i < len(pieces) && pieces[i].together(&p) && pieces[i].first <= p.last; i++ {
			p.last = max(p.last, pieces[i].last)
		}
		left = push(left, item{prefix: p.prefix, first: p.first, last: p.last, width: p.len})
	}
	l.items = left
	return saturate(before - count(left))
}
