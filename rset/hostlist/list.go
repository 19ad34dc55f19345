package hostlist

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"sort"
	"strings"

	"github.com/joblife/joblife/internal/guard"
)

// A List is an ordered list of host names, which may repeat. The zero value is the empty
// list, ready to use. A nil *List reads as the empty list; methods that change a list panic
// on it. Do not copy a List, which go vet reports: use [List.Clone].
type List struct {
	_     guard.NoCopy
	items []item
	room  [1]item // what most parts of a list need
}

// Of is [List.Append] to a new list. Panics if that would refuse one of the hosts.
func Of(hosts ...string) *List {
	l := new(List)
	if err := l.Append(hosts...); err != nil {
		panic(fmt.Sprintf("hostlist: Of: %v", err))
	}
	return l
}

// Append adds plain host names (no brackets) at the end, in their order. What is no name, see the
// package documentation, is an error that tells the offset in it, [ErrLimit] if it is too long;
// then the list does not change. Append copies what it keeps.
func (l *List) Append(hosts ...string) error {
	for _, name := range hosts {
		if err := checkName(name); err != nil {
			return err
		}
	}
	for _, name := range hosts {
		l.items = push(l.items, owned(l.items, name))
	}
	return nil
}

// AppendList adds the hosts of m at the end, in their order. m may be nil or l
// itself. It takes one step for each range of m.
func (l *List) AppendList(m *List) {
	added := m.list()
	if m == l {
		added = slices.Clone(added) // push may lengthen the last one
	}
	l.items = slices.Grow(l.items, len(added))
	for _, r := range added {
		l.items = push(l.items, r)
	}
}

// AppendPart adds m[from:to], where m is another list. It panics if m has not that many
// hosts. With r ranges in m it takes log r steps, and one for each range that it adds.
func (l *List) AppendPart(m *List, from, to int) {
	if l.items == nil {
		l.items = l.room[:0]
	}
	at := itemAt(m.items, uint64(from))
	if from < to && uint64(to) > m.items[at].start+m.items[at].len() { // in several items
		l.items = slices.Grow(l.items, itemAt(m.items, uint64(to)-1)+1-at)
	}
	for ; from < to; at++ {
		r := m.items[at]
		r.first += uint64(from) - r.start
		r.last = min(r.last, r.first+uint64(to-from)-1)
		r.width = r.length(r.first)
		l.items = push(l.items, r)
		from += int(r.len())
	}
}

// list returns the items of a list that may be nil.
func (l *List) list() []item {
	if l == nil {
		return nil
	}
	return l.items
}

func count(items []item) uint64 {
	if len(items) == 0 {
		return 0
	}
	last := &items[len(items)-1]
	return last.start + last.len()
}

// Len returns the number of hosts, duplicates included, at most 1<<31-1 if int has 32 bits.
func (l *List) Len() int { return saturate(count(l.list())) }

// IsEmpty reports whether the list has no host.
func (l *List) IsEmpty() bool { return len(l.list()) == 0 }

// Nth returns the host at an index from 0, or false if there is none. It is [List.RangeAt],
// and allocates the string.
func (l *List) Nth(i int) (string, bool) {
	r, ok := l.RangeAt(i)
	return r.name(r.First), ok
}

// itemAt returns where the item is that has the host at an index of the list.
func itemAt(items []item, i uint64) int {
	return sort.Search(len(items), func(at int) bool { return items[at].start+items[at].len() > i })
}

func (r Range) name(id uint64) string {
	if r.Width == 0 {
		return r.Prefix
	}
	var room [64]byte
	return string(appendHost(room[:0], r.Prefix, id, uint8(r.Width)))
}

// Find returns the index of the first host with that name, or false. It searches all ranges and
// does not allocate.
func (l *List) Find(name string) (int, bool) {
	h := split(name)
	items := l.list()
	for i := range items {
		if n, ok := items[i].find(h); ok {
			return saturate(items[i].start + n), true
		}
	}
	return 0, false
}

// Clone returns an independent copy. The clone of nil is an empty list.
func (l *List) Clone() *List {
	return &List{items: slices.Clone(l.list())}
}

// All returns an iterator over the hosts, in order, as new strings. A loop yields the hosts that
// were in the list when it began.
func (l *List) All() iter.Seq[string] {
	return func(yield func(string) bool) {
		for r := range l.Ranges() {
			for id := r.First; id <= r.Last; id++ {
				if !yield(r.name(id)) {
					return
				}
			}
		}
	}
}

// A Range is a run of hosts with one prefix and consecutive ids.
type Range struct {
	Prefix      string
	First, Last uint64 // the ids, both included; 0 if Width is 0
	Width       int    // zeros fill ids up to this many digits; 0: the prefix is the whole name
}

// Ranges returns an iterator over the hosts as ranges, in order. No range continues in the next
// one. A loop yields what was in the list when it began, and does not allocate.
func (l *List) Ranges() iter.Seq[Range] {
	return func(yield func(Range) bool) { l.walkRanges(yield) }
}

// RangeAt returns the rest of a range, from the host at an index from 0 on, or false if there
// is no such host. With r ranges it takes log r steps, and it does not allocate.
func (l *List) RangeAt(i int) (Range, bool) {
	items := l.list()
	if uint64(i) >= count(items) { // so does a negative i
		return Range{}, false
	}
	r := &items[itemAt(items, uint64(i))]
	return Range{Prefix: r.prefix, First: r.first + uint64(i) - r.start, Last: r.last, Width: int(r.width)}, true
}

func (l *List) walkRanges(yield func(Range) bool) {
	// Nothing overwrites items, except that Append may lengthen the last one.
	items := l.list()
	end := count(items)
	for i := range items {
		r := items[i]
		last := min(r.last, r.first+(end-r.start)-1)
		if !yield(Range{Prefix: r.prefix, First: r.first, Last: last, Width: int(r.width)}) {
			return
		}
	}
}

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
