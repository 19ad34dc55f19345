package jsonobj

import (
	"encoding/binary"
	"math/bits"
)

// How many objects and arrays a tape notes without an allocation, and in its first block.
const (
	inlineExtents = 24
	firstBlock    = 64
)

// tape notes where the objects and arrays of a text end while that is scanned, so that a
// Reader of one of them steps over those in it. It has eight bytes for each, in the order
// in which they begin. The zero tape is empty. A text has less than 4 GiB.
type tape struct {
	n      uint32
	head   [inlineExtents]extent
	blocks [][]extent // what is beyond, each block twice as long as the one before
}

// extent is an object or an array on a tape. While it is open, next is the one around it.
type extent struct {
	end  uint32 // the offset after it
	next uint32 // the place after those in it
}

// span is a value of a text: its offsets and, for an object or an array, its place on the tape.
type span struct{ from, to, place uint32 }

func (t *tape) at(place uint32) *extent {
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

func (t *tape) reset() { t.n, t.blocks = 0, nil }

// open notes that an object or an array begins in the one at a place, and returns its place.
func (t *tape) open(outer uint32) uint32 {
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

// close notes where the one at a place ends, and returns the place of that around it.
func (t *tape) close(place uint32, end int) (outer uint32) {
	e := t.at(place)
	outer = e.next
	*e = extent{uint32(end), t.n}
	return outer
}

// skipString returns the offset after the scanned string at b[i], and whether it has escapes.
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

// skipToken returns the offset after the token that begins at b[i] and was scanned before.
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
