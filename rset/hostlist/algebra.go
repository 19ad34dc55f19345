package hostlist

import (
	"cmp"
	"slices"
)

// maxRanges is how many steps overlaps may take.
const maxRanges = 1 << 20

// Delete removes the first occurrence of each host of m, and returns how many
// hosts it removed. A host that occurs twice in m is removed twice. The order of
// m does not matter. m may be nil or l itself.
//
// With r ranges in both lists it takes r log r steps, and one for each range that
// has a stretch of hosts where several of one list overlap. The error is [ErrLimit]
// if these would be more than 2^20; then the list does not change.
func (l *List) Delete(m *List) (int, error) {
	if l.IsEmpty() || m.IsEmpty() {
		return 0, nil
	}
	type removal struct {
		item        int
		first, last uint64
	}
	var gone []removal
	const mine, theirs = 0, 1
	pieces := cut(cut(nil, l.items, mine), m.items, theirs)
	steps := 0
	sweep(pieces, func(first, last uint64, in []piece) bool {
		if len(in) > 2 {
			if steps += len(in); steps > maxRanges {
				return false
			}
		}
		have, _ := slices.BinarySearchFunc(in, theirs, func(p piece, side int) int {
			return int(p.side) - side
		})
		for i := range min(have, len(in)-have) {
			gone = append(gone, removal{in[i].item, first, last})
		}
		return true
	})
	if steps > maxRanges {
		return 0, limitError(0, "ranges", steps, maxRanges)
	}
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
	return saturate(before - count(left)), nil
}

// pushPart appends the hosts of r whose id is below end.
func pushPart(items []item, r item, end uint64) []item {
	if r.first >= end {
		return items
	}
	r.last = end - 1
	return push(items, r)
}

// Sort sorts the hosts by prefix, byte by byte; then by the number of digits of
// the id, zeros on the left included; then by the id. A name without an id comes
// first. So a, a9, a09, a10 and a010 are in order. Duplicates stay, side by side.
//
// With r ranges it takes r log r steps, and one step for each host where ranges
// overlap: "a[0-9,0-9]" becomes "a[0,0-1,1-2,2-3,3-4,4-5,5-6,6-7,7-8,8-9,9]". The
// error is [ErrLimit] if overlaps would take more than 2^20 steps; then the list
// does not change. Uniq has no such limit.
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
		if fits = steps <= maxRanges; !fits {
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
		return limitError(0, "ranges", maxRanges+1, maxRanges)
	}
	l.items = sorted
	return nil
}

// Uniq sorts the list as Sort does and removes duplicates. It returns how many
// hosts it removed. With r ranges it takes r log r steps.
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
