// Package rankmap maps ranks to values, in the order of the ranks, for ranges that are found
// by their first rank.
package rankmap

import "slices"

// A Map is in chunks, so that a search compares ranks that lie side by side. It takes
// logarithmic time. The zero Map is empty. It must not be copied: use Clone.
type Map[T any] struct {
	heads  []uint32    // the first rank of each chunk
	chunks []*chunk[T] // none is empty
	owner  *owner      // of the chunks that may be changed
	shared bool        // a clone has the same heads and chunks
	spare  *chunk[T]   // an empty one, for the next; nil: none
}

type chunk[T any] struct {
	owner  *owner
	n      int // how many there are
	ranks  [chunkLen]uint32
	values [chunkLen]T
}

// An owner is known by its address.
type owner struct{ _ byte }

// chunkLen is the most that a chunk has.
const chunkLen = 64

// Clone returns an independent copy in constant time: chunks are copied when one of the two
// changes them.
func (m *Map[T]) Clone() Map[T] {
	c := *m
	m.owner, c.owner = new(owner), new(owner)
	m.shared, c.shared, c.spare = true, true, nil
	return c
}

// find returns where a rank is or would be, in the chunk whose ranks begin before it.
func (m *Map[T]) find(rank uint32) (c, i int, found bool) {
	if c, found = slices.BinarySearch(m.heads, rank); found || c == 0 {
		return c, 0, found
	}
	at := m.chunks[c-1]
	i, found = slices.BinarySearch(at.ranks[:at.n], rank)
	return c - 1, i, found
}

// Append appends, in order, the value of the last rank that is not behind first, if there is
// one, and those of the ranks from there to last.
func (m *Map[T]) Append(dst []T, first, last uint32) []T {
	c, i, found := m.find(first)
	if !found && i > 0 {
		i--
	}
	for ; c < len(m.chunks); c, i = c+1, 0 {
		at := m.chunks[c]
		for ; i < at.n; i++ {
			if at.ranks[i] > last {
				return dst
			}
			dst = append(dst, at.values[i])
		}
	}
	return dst
}

// All calls f with the values, until it returns false.
func (m *Map[T]) All(f func(T) bool) {
	for _, at := range m.chunks {
		for _, v := range at.values[:at.n] {
			if !f(v) {
				return
			}
		}
	}
}

// Set gives a rank a value.
func (m *Map[T]) Set(rank uint32, v T) {
	c, i, found := m.find(rank)
	m.unshare()
	if len(m.chunks) == 0 {
		if m.spare == nil {
			m.spare = new(chunk[T])
		}
		m.insert(0, rank, m.spare)
		m.spare.owner, m.spare = m.owner, nil
	}
	at := m.own(c)
	if found {
		at.values[i] = v
		return
	}
	if at.n == chunkLen {
		const half = chunkLen / 2
		next := &chunk[T]{owner: m.owner}
		m.insert(c+1, at.ranks[half], next)
		next.add(0, at.ranks[half:], at.values[half:])
		at.cut(half, chunkLen)
		if i > half {
			c, i = c+1, i-half
			at = m.chunks[c]
		}
	}
	at.add(i, []uint32{rank}, []T{v})
	m.heads[c] = at.ranks[0]
}

// Delete deletes a rank, if it is there.
func (m *Map[T]) Delete(rank uint32) {
	c, i, found := m.find(rank)
	if !found {
		return
	}
	m.unshare()
	at := m.own(c)
	at.cut(i, i+1)
	if c+1 < len(m.chunks) { // two that would fill a half are one
		if next := m.chunks[c+1]; at.n+next.n <= chunkLen/2 {
			at.add(at.n, next.ranks[:next.n], next.values[:next.n])
			m.remove(c + 1)
		}
	}
	if at.n == 0 {
		m.spare = at
		m.remove(c)
	} else {
		m.heads[c] = at.ranks[0]
	}
}

func (m *Map[T]) insert(c int, head uint32, at *chunk[T]) {
	m.chunks = slices.Insert(m.chunks, c, at)
	m.heads = slices.Insert(m.heads, c, head)
}

func (m *Map[T]) remove(c int) {
	m.chunks = slices.Delete(m.chunks, c, c+1)
	m.heads = slices.Delete(m.heads, c, c+1)
}

// add inserts some into a chunk, which has room for them.
func (at *chunk[T]) add(i int, ranks []uint32, values []T) {
	n := at.n + len(ranks)
	copy(at.ranks[i+len(ranks):n], at.ranks[i:])
	copy(at.values[i+len(ranks):n], at.values[i:])
	copy(at.ranks[i:], ranks)
	copy(at.values[i:], values)
	at.n = n
}

// cut drops some of a chunk.
func (at *chunk[T]) cut(i, j int) {
	copy(at.ranks[i:], at.ranks[j:at.n])
	copy(at.values[i:], at.values[j:at.n])
	n := at.n - (j - i)
	clear(at.values[n:at.n])
	at.n = n
}

// unshare copies heads and the list of chunks before a change, if a clone has them.
func (m *Map[T]) unshare() {
	if m.shared {
		m.heads, m.chunks, m.shared = slices.Clone(m.heads), slices.Clone(m.chunks), false
	}
}

// own returns a chunk that may be changed.
func (m *Map[T]) own(c int) *chunk[T] {
	at := m.chunks[c]
	if at.owner != m.owner {
		copied := *at
		copied.owner = m.owner
		at = &copied
		m.chunks[c] = at
	}
	return at
}
