package idset

import (
	"math/bits"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
)

// A flat is the words of a set whose ids are all in the first container, as those of
// ranks nearly always are. It is a copy on the stack: to go over it takes neither an
// allocation nor a call for each id.
type flat [(containerMask + 1) / wordBits]uint64

// load fills an empty flat with the ids of a bitmap, or reports false if it has others.
func (f *flat) load(b *roaring.Bitmap) bool {
	if b.Maximum() > containerMask {
		return false
	}
	b.WriteDenseTo(f[:])
	return true
}

// setFlat makes the ids of a flat, so many in so many runs, the content of an empty set.
func (s *Set) setFlat(f *flat, ids, runs int) {
	if runs > maxShort && containerBytes+min(2*ids, denseBytes) <= enterBytes*runs {
		// Only what is on the heap can become one.
		s.big = &big{bits: roaring.FromDense(slices.Clone(f[:]), true)}
		s.big.look()
		return
	}
	b := s.builder(runs)
	b.addFlat(f)
	b.done()
}

// addFlat adds the runs of a flat, word by word: add joins those that touch.
func (b *listBuilder) addFlat(f *flat) {
	for i, word := range f {
		for word != 0 {
			low := bits.TrailingZeros64(word)
			first, n := uint32(i*wordBits+low), bits.TrailingZeros64(^(word >> low))
			b.add(run{first, first + uint32(n) - 1})
			word &= word + 1<<low // the carry clears the run and nothing else
		}
	}
}
