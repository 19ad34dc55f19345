package idset

import (
	"iter"
	"math/bits"

	"github.com/RoaringBitmap/roaring/v2"
)

// All returns an iterator over the ids in ascending order. After a change of the set it
// goes on with the next id that is then in it. A loop over it does not allocate.
func (s *Set) All() iter.Seq[uint32] {
	return func(yield func(uint32) bool) { s.all(yield) }
}

// Ranges returns an iterator over the maximal ranges of consecutive ids, both ends
// included, in ascending order. After a change of the set it goes on with what is then
// above the last range, perhaps the rest of a longer one. A loop over it does not allocate.
func (s *Set) Ranges() iter.Seq2[uint32, uint32] {
	return func(yield func(first, last uint32) bool) { s.ranges(yield) }
}

func (s *Set) all(yield func(uint32) bool) {
	from := uint32(0)
	if b := s.bits(); b != nil {
		var ok bool
		if from, ok = s.allFlat(b, yield); !ok {
			return
		}
	}
	s.walk(from, func(r run) (uint32, bool) {
		gen := s.gen
		for id := r.first; ; id++ {
			if !yield(id) {
				return 0, false
			}
			if id == r.last || s.gen != gen {
				return id + 1, true
			}
		}
	})
}

// allFlat yields the ids of a bitmap that is a flat, as long as the set does not change. It
// returns where All goes on, or false if there is nothing more to yield. The flat has a
// function of its own, or every small set would pay for its 8 KiB.
func (s *Set) allFlat(b *roaring.Bitmap, yield func(uint32) bool) (from uint32, ok bool) {
	var f flat
	if !f.load(b) {
		return 0, true
	}
	gen := s.gen
	for i, word := range f {
		for ; word != 0; word &= word - 1 {
			id := uint32(i*wordBits + bits.TrailingZeros64(word))
			if !yield(id) {
				return 0, false
			}
			if s.gen != gen {
				return id + 1, true
			}
		}
	}
	return 0, false
}

func (s *Set) ranges(yield func(first, last uint32) bool) {
	s.walk(0, func(r run) (uint32, bool) { return r.last + 1, yield(r.first, r.last) })
}

// walk calls f for each run from an id on, in ascending order, as long as it says true.
// f may change the set; it returns the id from which on the walk goes on.
func (s *Set) walk(from uint32, f func(run) (from uint32, ok bool)) {
	if s == nil {
		return
	}
	gen, ok := s.gen, false
	if bits := s.bits(); bits != nil && from == 0 {
		for first, end := range bits.Ranges() {
			if from, ok = f(run{first, uint32(end - 1)}); !ok {
				return
			}
			if s.gen != gen {
				break
			}
		}
		if s.gen == gen {
			return
		}
	}
	listed := false // i is a place in the list, if gen is the set's too
	for i := 0; ; i++ {
		var r run
		if bits := s.bits(); bits != nil {
			if r.first, ok = s.from(from); !ok {
				return
			}
			r.last = endOfRun(bits, r.first)
		} else {
			rs := s.list()
			if !listed || s.gen != gen {
				i, gen, listed = search(rs, from), s.gen, true
			}
			if i >= len(rs) {
				return
			}
			r = run{max(rs[i].first, from), rs[i].last}
		}
		if from, ok = f(r); !ok {
			return
		}
	}
}
