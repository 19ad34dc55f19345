package hostlist

import (
	"fmt"
	"iter"
	"slices"
)

// A List is an ordered list of host names, each as often as it was put in. The
// zero value is the empty list, ready to use. A nil *List reads as the empty
// list; methods that change a list panic on it.
//
// A List must not be copied after first use: copies share storage, and go vet
// reports them. Clone makes an independent one.
type List struct {
	_     noCopy
	items []item
}

// noCopy makes go vet report copies of a type that has it as a field.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

// Of returns a new list of the given hosts, in their order. Each is a plain
// name, as Append takes it. It copies what it keeps. Panics if Append would
// refuse one.
func Of(hosts ...string) *List {
	l := new(List)
	if err := l.Append(hosts...); err != nil {
		panic(fmt.Sprintf("hostlist: Of: %v", err))
	}
	return l
}

// Append puts hosts at the end, in their order. Each is a plain name of 1 to
// MaxName bytes, all printable ASCII without white space, comma and bracket;
// otherwise the error is a *SyntaxError or *LimitError, with the offset in that
// name, and the list is as before. A name that goes on where the last range of
// the list ends costs nothing. It copies what it keeps.
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

// AppendList puts the hosts of m at the end, in their order. It costs by the
// ranges of m, which may be l itself or nil.
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

// list returns the items of a list that may be nil.
func (l *List) list() []item {
	if l == nil {
		return nil
	}
	return l.items
}

// count returns the number of hosts of the items.
func count(items []item) uint64 {
	if len(items) == 0 {
		return 0
	}
	last := &items[len(items)-1]
	return last.start + last.len()
}

// Len returns the number of hosts, each as often as it is in the list. It costs
// nothing whatever the list is. It saturates where int has 32 bits.
func (l *List) Len() int { return saturate(count(l.list())) }

// IsEmpty reports whether the list has no host.
func (l *List) IsEmpty() bool { return len(l.list()) == 0 }

// Nth returns the host at an index, from 0, or false if i is not below Len or
// is negative. It costs log ranges, and the string.
func (l *List) Nth(i int) (string, bool) {
	items := l.list()
	if uint64(i) >= count(items) { // so does a negative i
		return "", false
	}
	at, found := slices.BinarySearchFunc(items, uint64(i), func(r item, i uint64) int {
		switch {
		case r.start < i:
			return -1
		case r.start > i:
			return 1
		}
		return 0
	})
	if !found {
		at--
	}
	r := &items[at]
	return r.name(r.first + uint64(i) - r.start), true
}

// name returns the name of one host of the item.
func (r *item) name(id uint64) string {
	if r.width == 0 {
		return r.prefix
	}
	var room [64]byte
	return string(appendHost(room[:0], r.prefix, id, r.width))
}

// Find returns the index of the first host of that name, or false. Names are
// equal if their bytes are: "a1" is not "a01". It costs by ranges and does not
// allocate. An Index is faster where many hosts are looked up.
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

// Contains reports whether a host is in the list. It costs as Find.
func (l *List) Contains(name string) bool {
	_, ok := l.Find(name)
	return ok
}

// Equal reports whether both lists have the same hosts in the same order. It
// costs by ranges and does not allocate.
func (l *List) Equal(m *List) bool {
	return slices.Equal(l.list(), m.list())
}

// Clone returns an independent copy. The clone of nil is an empty list.
func (l *List) Clone() *List {
	return &List{items: slices.Clone(l.list())}
}

// All returns the hosts in order. Each is a new string. If the list changes
// meanwhile, the loop still yields the hosts that were in it when it began.
func (l *List) All() iter.Seq[string] {
	return func(yield func(string) bool) { l.walk(yield) }
}

func (l *List) walk(yield func(string) bool) {
	for r := range l.Ranges() {
		part := item{prefix: r.Prefix, width: uint8(r.Width)}
		for id := r.First; id <= r.Last; id++ {
			if !yield(part.name(id)) {
				return
			}
		}
	}
}

// A Range is hosts of one prefix with consecutive ids.
type Range struct {
	Prefix      string
	First, Last uint64 // inclusive; 0 if Width is 0
	Width       int    // ids have zeros on the left up to so many digits; 0: the prefix is the whole name
}

// Ranges returns the hosts in order as ranges, none of which goes on in the
// next. A name that does not end in a digit is a range by itself. The loop
// costs by ranges and does not allocate; if the list changes meanwhile, it
// still yields what was in it when it began.
func (l *List) Ranges() iter.Seq[Range] {
	return func(yield func(Range) bool) { l.walkRanges(yield) }
}

func (l *List) walkRanges(yield func(Range) bool) {
	// What is in items is never overwritten, but that Append may lengthen the
	// last one.
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

// Slice returns the hosts in order, or a *LimitError if there are more than
// most. The empty list is nil.
func (l *List) Slice(most int) ([]string, error) {
	n := l.Len()
	if n > most {
		return nil, &LimitError{What: "hosts", Got: n, Limit: most}
	}
	if n == 0 {
		return nil, nil
	}
	return slices.AppendSeq(make([]string, 0, n), l.All()), nil
}
