package hostlist

import (
	"fmt"
	"slices"
	"unsafe"
)

// Check returns the first invariant that the list breaks: items are canonical,
// know the index of their first host, and do not continue in the next one.
func (l *List) Check() error {
	start := uint64(0)
	for i := range l.list() {
		r := &l.items[i]
		switch {
		case r.start != start:
			return fmt.Errorf("item %d starts at %d, not %d", i, r.start, start)
		case r.first > r.last || r.last >= pow10(maxDigits):
			return fmt.Errorf("item %d has ids %d to %d", i, r.first, r.last)
		case r.width == 0 && (r.last > 0 || r.prefix == "" || isDigit(r.prefix[len(r.prefix)-1])):
			return fmt.Errorf("item %d is %q with ids to %d and no width", i, r.prefix, r.last)
		case r.width > 0 && (r.width > maxDigits || r.width != r.length(r.first)):
			return fmt.Errorf("item %d has width %d and first %d", i, r.width, r.first)
		case r.width > 0 && r.width < maxDigits && r.prefix != "" && isDigit(r.prefix[len(r.prefix)-1]):
			return fmt.Errorf("item %d has prefix %q", i, r.prefix)
		case i > 0 && l.items[i-1].joins(r):
			return fmt.Errorf("item %d goes on where the one before ends", i)
		}
		start += r.len()
	}
	return nil
}

// Memory returns the bytes that the list's items take, spare ones too, and the
// bytes of their prefixes, as if no two shared them.
func (l *List) Memory() int {
	bytes := cap(l.items) * int(unsafe.Sizeof(item{}))
	for i := range l.items {
		bytes += len(l.items[i].prefix)
	}
	return bytes
}

// Keeps reports whether the first prefix lies in the bytes of text.
func (l *List) Keeps(text string) bool {
	return unsafe.StringData(l.items[0].prefix) == unsafe.StringData(text)
}

// Items returns the number of ranges.
func (l *List) Items() int { return len(l.list()) }

// SharesItems reports whether the lists have storage in common.
func (l *List) SharesItems(m *List) bool {
	a, b := l.items[:cap(l.items)], m.items[:cap(m.items)]
	return len(a) > 0 && len(b) > 0 && &a[0] == &b[0]
}

// Snapshot returns the items, for comparison before and after.
func (l *List) Snapshot() any { return slices.Clone(l.list()) }

// The limits of Parse.
const (
	MaxText = defaultText
	MaxName = maxName
)

// Equal reports whether both lists have the same hosts in the same order.
func (l *List) Equal(m *List) bool { return slices.Equal(l.list(), m.list()) }
