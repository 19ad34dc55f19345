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

// load fills a flat that is empty with the ids of a bitmap. It reports false if the
// bitmap has others.
func (f *flat) load(b *roaring.Bitmap) bool {
	if b.Maximum() > containerMask {
		return false
	}
	b.WriteDenseTo(f[:])
	return true
}

// runs returns what goes over the runs of a flat.
func (f *flat) runs() flatRuns { return flatRuns{words: f, rest: f[0]} }

// flatRuns goes over the runs of a flat, in ascending order.
type flatRuns struct {
	words *flat
	at    int
	rest  uint64 // what of words[at] is still to come
}

func (f *flatRuns) next() (run, bool) {
	for f.rest == 0 {
		if f.at+1 >= len(f.words) {
			return run{}, false
		}
		f.at++
		f.rest = f.words[f.at]
	}
	low := bits.TrailingZeros64(f.rest)
	first := uint32(f.at*wordBits + low)
	ones := bits.TrailingZeros64(^(f.rest >> low))
	if low+ones < wordBits {
		f.rest &= f.rest + 1<<low // the carry clears the run and nothing else
		return run{first, first + uint32(ones) - 1}, true
	}
	for f.at++; f.at < len(f.words) && f.words[f.at] == ^uint64(0); f.at++ {
	}
	last := uint32(f.at*wordBits) - 1
	f.rest = 0
	if f.at < len(f.words) {
		ones = bits.TrailingZeros64(^f.words[f.at])
		last += uint32(ones)
		f.rest = f.words[f.at] >> ones << ones
	}
	return run{first, last}, true
}

// setFlat makes the ids of a flat, so many in so many runs, the content of a set that
// has none.
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

func (b *listBuilder) addFlat(f *flat) {
	runs := f.runs()
	for r, ok := runs.next(); ok; r, ok = runs.next() {
		b.add(r)
	}
}
