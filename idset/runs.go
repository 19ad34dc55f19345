package idset

import "slices"

// A run is a range of consecutive ids, both ends in it.
type run struct{ first, last uint32 }

func (r run) len() uint64 { return uint64(r.last) - uint64(r.first) + 1 }

// within returns what r shares with a window, which it overlaps.
func (r run) within(window run) run {
	return run{max(r.first, window.first), min(r.last, window.last)}
}

// A run list is a slice of runs that ascend with at least one absent id
// between neighbours, so that each set has exactly one list.

// search returns the index of the first run that ends at id or above.
func search(rs []run, id uint32) int {
	lo, hi := 0, len(rs)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if rs[mid].last < id {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// overlapping returns the part of rs whose runs have an id in r.
func overlapping(rs []run, r run) []run {
	i := search(rs, r.first)
	j := i + search(rs[i:], r.last)
	if j < len(rs) && rs[j].first <= r.last {
		j++
	}
	return rs[i:j]
}

// insertRun adds r to rs, in place if it fits, and reports whether anything was added.
func insertRun(rs []run, r run) ([]run, bool) {
	// rs[i:j] are the runs that r overlaps or touches.
	i := search(rs, max(r.first, 1)-1)
	j := i
	for j < len(rs) && rs[j].first <= r.last+1 {
		j++
	}
	if i == j {
		return slices.Insert(rs, i, r), true
	}
	r.first = min(r.first, rs[i].first)
	r.last = max(r.last, rs[j-1].last)
	if rs[i] == r {
		return rs, false
	}
	rs[i] = r
	return slices.Delete(rs, i+1, j), true
}

// removeRun removes r from rs, in place if it fits, and reports whether anything was removed.
func removeRun(rs []run, r run) ([]run, bool) {
	i := search(rs, r.first)
	j := i
	for j < len(rs) && rs[j].first <= r.last {
		j++
	}
	if i == j {
		return rs, false
	}
	var rest [2]run // what stays of the first and of the last of rs[i:j]
	n := 0
	if first := rs[i].first; first < r.first {
		rest[n] = run{first, r.first - 1}
		n++
	}
	if last := rs[j-1].last; last > r.last {
		rest[n] = run{r.last + 1, last}
		n++
	}
	return slices.Replace(rs, i, j, rest[:n]...), true
}

// appendJoined appends a run that does not start below the last, but may overlap it.
func appendJoined(dst []run, r run) []run {
	if n := len(dst); n > 0 && r.first <= dst[n-1].last+1 {
		dst[n-1].last = max(dst[n-1].last, r.last)
		return dst
	}
	return append(dst, r)
}

// appendUnion appends to dst, which is empty, the union of a and b.
func appendUnion(dst, a, b []run) []run {
	for len(a) > 0 && len(b) > 0 {
		if a[0].first < b[0].first {
			dst, a = appendJoined(dst, a[0]), a[1:]
		} else {
			dst, b = appendJoined(dst, b[0]), b[1:]
		}
	}
	for _, r := range a {
		dst = appendJoined(dst, r)
	}
	for _, r := range b {
		dst = appendJoined(dst, r)
	}
	return dst
}

// appendIntersection appends to dst, which is empty, what a and b share.
func appendIntersection(dst, a, b []run) []run {
	for len(a) > 0 && len(b) > 0 {
		first, last := max(a[0].first, b[0].first), min(a[0].last, b[0].last)
		if first <= last {
			dst = append(dst, run{first, last})
		}
		if a[0].last < b[0].last {
			a = a[1:]
		} else {
			b = b[1:]
		}
	}
	return dst
}

// appendDifference appends to dst, which is empty, what of a is not in b.
func appendDifference(dst, a, b []run) []run {
	for _, r := range a {
		for len(b) > 0 && b[0].last < r.first {
			b = b[1:]
		}
		whole := true // r still has ids to hand out
		for len(b) > 0 && b[0].first <= r.last {
			if b[0].first > r.first {
				dst = append(dst, run{r.first, b[0].first - 1})
			}
			if b[0].last >= r.last {
				whole = false
				break // b[0] may reach into the next run of a
			}
			r.first = b[0].last + 1
			b = b[1:]
		}
		if whole {
			dst = append(dst, r)
		}
	}
	return dst
}

func count(rs []run) uint64 {
	n := uint64(0)
	for _, r := range rs {
		n += r.len()
	}
	return n
}

// intersect reports whether a and b share an id. Each side leaps over what lies
// before the other.
func intersect(a, b []run) bool {
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0].last < b[0].first:
			a = a[search(a, b[0].first):]
		case b[0].last < a[0].first:
			b = b[search(b, a[0].first):]
		default:
			return true
		}
	}
	return false
}
