package idset

import (
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
)

type operation uint8

const (
	union operation = iota + 1
	intersection
	difference
)

// UnionWith adds the ids of t, which may be nil or s, and reports whether any was absent.
func (s *Set) UnionWith(t *Set) bool {
	if s == t || t.IsEmpty() {
		return false
	}
	if s.IsEmpty() {
		s.copyOf(t)
		return true
	}
	return s.combine(union, t)
}

// IntersectWith removes the ids that are not in t, which may be nil or s, and reports
// whether there were any.
func (s *Set) IntersectWith(t *Set) bool {
	if s == t || s.IsEmpty() {
		return false
	}
	if t.IsEmpty() {
		s.clear()
		return true
	}
	return s.combine(intersection, t)
}

// SubtractWith removes the ids of t, which may be nil or s, and reports whether any was
// present.
func (s *Set) SubtractWith(t *Set) bool {
	if s.IsEmpty() || t.IsEmpty() {
		return false
	}
	if s == t {
		s.clear()
		return true
	}
	return s.combine(difference, t)
}

// Union returns a new set of the ids that are in a or in b. Either may be nil.
func Union(a, b *Set) *Set {
	s := a.Clone()
	s.UnionWith(b)
	return s
}

// Intersect returns a new set of the ids that are in both a and b. Either may be nil.
func Intersect(a, b *Set) *Set {
	if a.weight() > b.weight() {
		a, b = b, a // the result is no larger than the smaller one
	}
	s := a.Clone()
	s.IntersectWith(b)
	return s
}

// Difference returns a new set of the ids that are in a and not in b. Either may be nil.
func Difference(a, b *Set) *Set {
	s := a.Clone()
	s.SubtractWith(b)
	return s
}

// weight returns about how many bytes a set takes.
func (s *Set) weight() int {
	if s != nil && s.big != nil && s.big.bits != nil {
		return s.big.bytes
	}
	return len(s.list()) * 8
}

// combine makes s the result of an operation with t and reports whether s
// changed. Neither is empty, and they are not the same.
func (s *Set) combine(op operation, t *Set) bool {
	if t.big == nil {
		return s.combineFew(op, t.few[:t.n])
	}
	before := s.count()
	if sb, tb := s.combineBits(op, t); sb == nil {
		s.combineLists(op, t)
	} else {
		switch op {
		case union:
			sb.Or(tb)
		case intersection:
			sb.And(tb)
		default:
			sb.AndNot(tb)
		}
		if s.big == nil {
			s.few, s.n = [maxFew]run{}, 0
			s.big = new(big)
		}
		s.big.list, s.big.bits = nil, sb
		s.represent()
	}
	s.gen++
	return s.count() != before
}

// combineFew is combine with a handful of runs. Its cost follows them, not the size of s.
func (s *Set) combineFew(op operation, rs []run) bool {
	changed := false
	if op == intersection {
		from := uint32(0)
		for _, r := range rs {
			if r.first > from && s.RemoveRange(from, r.first-1) {
				changed = true
			}
			from = r.last + 1
		}
		return s.RemoveRange(from, MaxID) || changed
	}
	for _, r := range rs {
		if op == union && s.InsertRange(r.first, r.last) ||
			op == difference && s.RemoveRange(r.first, r.last) {
			changed = true
		}
	}
	return changed
}

// combineBits returns s and t as bitmaps for the operation, the first of them to be changed
// and the second to be read; or nil, if they are better combined as run lists.
func (s *Set) combineBits(op operation, t *Set) (sb, tb *roaring.Bitmap) {
	sb, tb = s.bits(), t.bits()
	if sb == nil && tb == nil {
		return nil, nil
	}
	if sb == nil {
		// Ids of s outside t are lost by an intersection only.
		clip := all
		if op == intersection {
			clip = t.span()
		}
		if !affordable(s.list(), clip, t.big.bytes) {
			return nil, nil
		}
		return bitmapOf(s.list(), clip), tb
	}
	if tb == nil {
		// Ids of t outside s matter to a union only.
		clip := all
		if op != union {
			clip = s.span()
		}
		if !affordable(t.list(), clip, s.big.bytes) {
			return nil, nil
		}
		tb = bitmapOf(t.list(), clip)
	}
	return sb, tb
}

// affordable reports whether a list may become a bitmap to be combined with one of so many bytes.
func affordable(rs []run, clip run, bytes int) bool {
	return estimate(rs, clip) <= bytes+leaveBytes*len(rs)
}

// span returns the run from the smallest to the largest id of a set, which is not empty.
func (s *Set) span() run {
	first, _ := s.Min()
	last, _ := s.Max()
	return run{first, last}
}

func (s *Set) combineLists(op operation, t *Set) {
	a, b := s.runs(), t.runs()
	if op != union {
		b = overlapping(b, s.span())
	}
	dst := make([]run, 0, len(a)+len(b))
	switch op {
	case union:
		dst = appendUnion(dst, a, b)
	case intersection:
		dst = appendIntersection(dst, a, b)
	default:
		dst = appendDifference(dst, a, b)
	}
	s.big = nil
	s.setList(dst)
}

// runs returns the runs of a set: its own list, or a new one.
func (s *Set) runs() []run {
	bits := s.bits()
	if bits == nil {
		return s.list()
	}
	rs := make([]run, 0, countBits(bits, MaxID))
	for first, end := range bits.Ranges() {
		rs = append(rs, run{first, uint32(end - 1)})
	}
	return rs
}

// Equal reports whether both sets have the same ids. A nil *Set is empty.
func (s *Set) Equal(t *Set) bool {
	sb, tb := s.bits(), t.bits()
	switch {
	case s == t:
		return true
	case sb != nil && tb != nil:
		return sb.Equals(tb)
	case sb == nil && tb == nil:
		return slices.Equal(s.list(), t.list())
	}
	return s.count() == t.count() && s.ContainsAll(t)
}

// Intersects reports whether the sets share an id; an empty set shares none. It
// allocates nothing.
func (s *Set) Intersects(t *Set) bool {
	switch sb, tb := s.bits(), t.bits(); {
	case sb != nil && tb != nil:
		return sb.AndCardinality(tb) > 0
	case sb == nil && tb == nil:
		return intersect(s.list(), t.list())
	}
	// Each side leaps over what lies before the other.
	id, ok := s.Min()
	for ok {
		next, found := t.from(id)
		if !found || next == id {
			return found
		}
		id, ok = s.from(next)
	}
	return false
}

// ContainsAll reports whether every id of t is in the set. It is true for an
// empty or nil t. It allocates nothing.
func (s *Set) ContainsAll(t *Set) bool {
	sb, tb := s.bits(), t.bits()
	switch {
	case tb == nil:
		return !slices.ContainsFunc(t.list(), func(r run) bool { return !s.containsRun(r) })
	case sb != nil:
		return sb.AndCardinality(tb) == tb.GetCardinality()
	}
	for first, last := range t.Ranges() {
		if !s.containsRun(run{first, last}) {
			return false
		}
	}
	return true
}

func (s *Set) containsRun(r run) bool {
	if bits := s.bits(); bits != nil {
		return bitsIn(bits, r) == r.len()
	}
	rs := s.list()
	i := search(rs, r.first)
	return i < len(rs) && rs[i].first <= r.first && r.last <= rs[i].last
}
