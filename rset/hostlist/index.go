package hostlist

import "slices"

// An Index finds hosts in a list without a look at all of its ranges. It is of
// the list as it was when the index was made. Nothing changes it, so that any
// number of goroutines may use it. The zero value is of the empty list.
type Index struct {
	groups map[group][]span
}

// A group is the names of one prefix whose ids have one length.
type group struct {
	prefix string
	len    uint8
}

// A span is the piece of one range of the list that is in a group. The spans of
// a group ascend by first, and are a balanced tree: the middle one of each part
// is above the halves beside it.
type span struct {
	first, last uint64
	start       uint64 // the index of its first host
	highest     uint64 // largest last of the tree
	earliest    uint64 // smallest start of the tree
}

// NewIndex returns an index of the list, which may be nil. For n ranges it costs
// n log n. It retains the names' prefixes and nothing else of l.
func NewIndex(l *List) *Index {
	items := l.list()
	pieces := cut(nil, items, 0)
	slices.SortFunc(pieces, comparePieces)
	x := &Index{groups: make(map[group][]span)}
	spans := make([]span, 0, len(pieces)) // never grows: groups are parts of it
	for i := 0; i < len(pieces); {
		p, begin := pieces[i], len(spans)
		for ; i < len(pieces) && pieces[i].together(&p); i++ {
			q, r := &pieces[i], &items[pieces[i].item]
			spans = append(spans, span{first: q.first, last: q.last, start: r.start + q.first - r.first})
		}
		own := spans[begin:len(spans):len(spans)]
		plant(own)
		x.groups[group{p.prefix, p.len}] = own
	}
	return x
}

// plant fills in what the spans know of the trees below them.
func plant(spans []span) {
	if len(spans) == 0 {
		return
	}
	mid := len(spans) / 2
	top := &spans[mid]
	top.highest, top.earliest = top.last, top.start
	for _, half := range [][]span{spans[:mid], spans[mid+1:]} {
		if len(half) > 0 {
			plant(half)
			below := &half[len(half)/2]
			top.highest = max(top.highest, below.highest)
			top.earliest = min(top.earliest, below.earliest)
		}
	}
}

// Find returns the index of the first host of that name, or false, as
// List.Find does. It costs the logarithm of the ranges, and more only where
// ranges of one prefix overlap. It does not allocate.
func (x *Index) Find(name string) (int, bool) {
	h := split(name)
	const none = ^uint64(0)
	if at := earliest(x.groups[group{h.prefix, h.len}], h.id, none); at != none {
		return saturate(at), true
	}
	return 0, false
}

// earliest returns the smallest index of the id that is below best, or best.
func earliest(spans []span, id, best uint64) uint64 {
	for len(spans) > 0 {
		mid := len(spans) / 2
		s := &spans[mid]
		if id > s.highest || best <= s.earliest {
			return best
		}
		best = earliest(spans[:mid], id, best)
		if id < s.first {
			return best
		}
		if id <= s.last {
			best = min(best, s.start+id-s.first)
		}
		spans = spans[mid+1:]
	}
	return best
}

// AppendIndices appends the indices of all hosts of that name, in ascending
// order; none if there is none. It costs as Find, and by what it appends. With
// room in dst it does not allocate.
func (x *Index) AppendIndices(dst []int, name string) []int {
	h := split(name)
	from := len(dst)
	dst = appendIndices(dst, x.groups[group{h.prefix, h.len}], h.id)
	slices.Sort(dst[from:])
	return dst
}

func appendIndices(dst []int, spans []span, id uint64) []int {
	for len(spans) > 0 {
		mid := len(spans) / 2
		s := &spans[mid]
		if id > s.highest {
			break
		}
		dst = appendIndices(dst, spans[:mid], id)
		if id < s.first {
			break
		}
		if id <= s.last {
			dst = append(dst, saturate(s.start+id-s.first))
		}
		spans = spans[mid+1:]
	}
	return dst
}
