package jsonscan

import (
	"encoding/binary"
	"math/bits"
)

// How many objects and arrays a Tape notes without an allocation, and in the first
// block beyond.
const (
	inlineExtents = 24
	firstBlock    = 64
)

// Tape notes where the objects and arrays of a text end while that is scanned, so
// that a [Walk] over one of them steps over those in it. It has eight bytes for
// each, in the order in which they begin. The zero Tape is empty. A text has less
// than 4 GiB.
type Tape struct {
	n      uint32
	head   [inlineExtents]extent
	blocks [][]extent // what is beyond, each block twice as long as the one before
}

// extent is an object or an array on a Tape. While it is open, next is the one
// around it.
type extent struct {
	end  uint32 // the offset after it
	next uint32 // the place after those in it
}

// Span is a value of a text: where it begins and ends, in bytes from 0, and, if
// it is an object or an array, its place on the Tape.
type Span struct {
	From, To int
	Place    uint32
}

// at returns the extent at a place.
func (t *Tape) at(place uint32) *extent {
	if place < inlineExtents {
		return &t.head[place]
	}
	block, i := inBlock(place)
	return &t.blocks[block][i]
}

// inBlock returns the block of a place that is not in the head, and where in it.
func inBlock(place uint32) (block int, i uint32) {
	place += firstBlock - inlineExtents
	block = bits.Len32(place) - bits.Len32(firstBlock)
	return block, place - firstBlock<<block
}

// reset empties t.
func (t *Tape) reset() { t.n, t.blocks = 0, nil }

// open notes that an object or an array begins, in the one at a place, and returns
// its own place.
func (t *Tape) open(outer uint32) uint32 {
	place := t.n
	t.n++
	if place >= inlineExtents {
		if block, _ := inBlock(place); block == len(t.blocks) {
			t.blocks = append(t.blocks, make([]extent, firstBlock<<block))
		}
	}
	t.at(place).next = outer
	return place
}

// close notes where the one at a place ends, and returns the place of that
// around it.
func (t *Tape) close(place uint32, end int) (outer uint32) {
	e := t.at(place)
	outer = e.next
	*e = extent{uint32(end), t.n}
	return outer
}

// Check is the function Check on a Tape, which it empties first. It returns the
// value.
func (t *Tape) Check(b []byte, l Limits) (Span, error) {
	t.reset()
	from, to, err := check(b, l, t)
	return Span{from, to, 0}, err
}

// Walk goes over an object or an array that was scanned on a Tape. It looks at the
// keys and tokens of that level once more, and checks nothing. [Span.Walk] makes one.
type Walk struct {
	at       int    // what Next looks at
	next     uint32 // the place of what begins next
	isObject bool
	escaped  bool // the key has escapes
	key      int  // the content of the key as it stands
	keyEnd   int
	value    Span

	n     uint8     // how many keys there are in first
	more  bool      // there were others, or with escapes
	first [8]uint32 // the contents of keys, for Missing
}

// Walk returns a Walk over s, an object or an array of b that was scanned.
func (s Span) Walk(b []byte) Walk {
	return Walk{at: s.From + 1, next: s.Place + 1, isObject: b[s.From] == '{'}
}

// Next advances to the next member or element and reports whether there is one.
func (w *Walk) Next(b []byte, t *Tape) bool {
	i := skipSpace(b, w.at)
	switch b[i] {
	case ',':
		i = skipSpace(b, i+1)
	case ']', '}':
		w.at, w.key, w.keyEnd, w.escaped, w.value = i, 0, 0, false, Span{}
		return false
	}
	if w.isObject {
		w.key = i + 1
		i, w.escaped = skipString(b, i)
		w.keyEnd = i - 1
		if int(w.n) < len(w.first) && !w.escaped {
			w.first[w.n] = uint32(w.key)
			w.n++
		} else {
			w.more = true
		}
		i = skipSpace(b, skipSpace(b, i)+1)
	}
	w.value.From = i
	if b[i] == '{' || b[i] == '[' {
		e := t.at(w.next)
		w.at, w.value.Place = int(e.end), w.next
		w.next = e.next
	} else {
		w.at = skipToken(b, i)
	}
	w.value.To = w.at
	return true
}

// Missing returns the index of the first of some keys that the object s lacks, over
// which w came to the end, -1 if it has all.
func (w *Walk) Missing(b []byte, t *Tape, s Span, keys []string) int {
	at := 0
next:
	for i, key := range keys {
		for range w.n {
			if at == int(w.n) {
				at = 0
			}
			from := int(w.first[at])
			at++
			if to := from + len(key); to < len(b) && b[to] == '"' && string(b[from:to]) == key {
				continue next
			}
		}
		if !w.more || !s.has(b, t, key) {
			return i
		}
	}
	return -1
}

// has reports whether the object s has a key.
func (s Span) has(b []byte, t *Tape, key string) bool {
	for w := s.Walk(b); w.Next(b, t); {
		if string(w.Key(b)) == key {
			return true
		}
	}
	return false
}

// Key returns the key of the member that Next came to, unescaped. It aliases the
// text, or, where the key has escapes, is a copy. It is empty in an array.
func (w *Walk) Key(b []byte) []byte {
	if w.escaped {
		return unescape(b[w.key-1 : w.keyEnd+1])
	}
	return b[w.key:w.keyEnd:w.keyEnd]
}

func unescape(raw []byte) []byte {
	content, _ := AppendUnescaped(nil, raw)
	return content
}

// Value returns the value that Next came to, the zero Span before the first Next
// and after the last.
func (w *Walk) Value() Span { return w.value }

// skipString returns the offset after the string that begins at b[i], and whether
// there are escapes in it. The string was scanned before.
func skipString(b []byte, i int) (end int, escaped bool) {
	for i++; ; {
		if len(b)-i >= 8 {
			w := binary.LittleEndian.Uint64(b[i:])
			quote, slash := w^'"'*each, w^'\\'*each
			m := ((quote-each)&^quote | (slash-each)&^slash) & highs
			if m == 0 {
				i += 8
				continue
			}
			i += bits.TrailingZeros64(m) >> 3
		}
		switch b[i] {
		case '"':
			return i + 1, escaped
		case '\\':
			escaped = true
			i += 2
		default: // only among the last seven bytes of b
			i++
		}
	}
}

// skipToken returns the offset after the token that begins at b[i] and was scanned
// before.
func skipToken(b []byte, i int) int {
	if b[i] == '"' {
		i, _ = skipString(b, i)
		return i
	}
	for i < len(b) && b[i] > ' ' && b[i] != ',' && b[i]|0x20 != '}' {
		i++
	}
	return i
}
