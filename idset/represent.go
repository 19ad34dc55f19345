package idset

import (
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
)

// The invariants of this package, which its tests cite by these names:
//
//   - run list: the runs of a list ascend, neighbours have an absent id between
//     them, and no id is above MaxID.
//   - one representation: a set is few runs in the Set itself, a run list on the heap, or
//     a roaring bitmap. A list has more than four runs, and a bitmap is never empty.
//   - no sharing: two sets share no storage, whatever made them.
//   - spare places: those of a run list are zero.
//   - proportion: a set takes memory in proportion to its runs: after an
//     operation over the whole set at most 128 bytes a run and 16 KiB, and never
//     more than what its changes since then could add.

// A bitmap is faster than a list for many runs close together: an operation on 65536 ids takes
// 1024 words, whatever their pattern. It is the wrong one for long ranges, which it stores
// in pieces of 65536 ids (0-2147483647 is 4 MB), and for runs with wide gaps. So the choice
// follows the estimated size: a set is turned into a bitmap if it has more than maxShort
// runs and the bitmap would take at most enterBytes for each, and back into a run list if
// the bitmap takes more than leaveBytes for each, or if minBits runs or fewer are left. The
// two thresholds differ, so that a set at one of them does not go back and forth.
//
// Looking at these costs about as much as an operation on the whole set. It is
// done after such operations, and otherwise once a budget is spent that was
// set, the last time, in proportion to that cost.
const (
	maxFew    = 8          // runs in the Set itself. Nearly all sets of ranks and cores have fewer.
	minListed = maxFew / 2 // runs at which a list moves back into the Set

	// Measured, an insertion into a list is as fast as one into a bitmap up to 500 runs, a
	// union up to 50.
	maxShort = 256

	minBits    = 64
	enterBytes = 64
	leaveBytes = 128

	// rangeSpend is what a range that is added to or removed from a bitmap takes of the
	// budget, containerSpend what each container takes that it may add. A single id takes
	// 1. A container more costs 100 bytes, at most a container that changes 8 KiB: so the
	// bytes at most double before the budget is spent.
	rangeSpend     = 64
	containerSpend = 4
)

// big is the storage of a set that does not fit into the Set itself.
type big struct {
	list   []run           // spare capacity is zero
	bits   *roaring.Bitmap // nil: list is used
	budget int             // until the next represent
	bytes  int             // of bits, when it was last looked at
}

func (r run) containers() int {
	return int(r.last>>containerBits-r.first>>containerBits) + 1
}

// store makes rs, which may be s.list() after changes in place, the run list of a set.
// Whether a bitmap were better is for changed or represent to say.
func (s *Set) store(rs []run) {
	switch {
	case s.big != nil:
		s.big.list = rs
	case len(rs) <= maxFew:
		n := copy(s.few[:], rs) // onto itself, where rs is part of it
		clear(s.few[n:])
		s.n = uint32(n)
	default:
		s.big = &big{list: rs}
		s.few, s.n = [maxFew]run{}, 0
	}
}

// changed notes a change that costs so much of the budget.
func (s *Set) changed(cost int) {
	s.gen++
	b := s.big
	if b == nil {
		return
	}
	if b.bits == nil && len(b.list) <= maxShort {
		if len(b.list) <= minListed {
			s.represent()
		}
		return
	}
	if b.budget -= cost; b.budget <= 0 {
		s.represent()
	}
}

// represent gives the set the representation that suits it. Its cost follows runs and
// containers, but looks at no more runs of a bitmap than at its containers.
func (s *Set) represent() {
	b := s.big
	if b == nil {
		return
	}
	if b.bits != nil {
		b.look()
		if countBits(b.bits, b.budget) > b.budget {
			return
		}
		s.toList()
		if b = s.big; b == nil {
			return
		}
	}
	switch n := len(b.list); {
	case n <= minListed:
		s.big = nil
		s.store(b.list)
	case n > maxShort && estimate(b.list, all) <= enterBytes*n:
		b.bits, b.list = bitmapOf(b.list, all), nil
		b.look()
	default:
		b.budget = n / 2
	}
}

// look measures a bitmap, and repacks one of very many runs. Its budget becomes the number of
// runs at which it is turned back into a list, which is also what finding that out costs.
func (b *big) look() {
	s := b.bits.Stats()
	if s.RunContainerBytes > denseBytes/2*s.RunContainers { // very many runs
		b.bits.RunOptimize()
		s = b.bits.Stats()
	}
	b.bytes = int(s.ArrayContainerBytes+s.BitmapContainerBytes+s.RunContainerBytes) + int(s.Containers)*containerBytes
	b.budget = max(minBits, b.bytes/leaveBytes)
}

func (s *Set) toList() {
	list := s.runs()
	s.big = nil
	s.store(list)
}

func (s *Set) clear() {
	s.few, s.n, s.big = [maxFew]run{}, 0, nil
	s.gen++
}

// A listBuilder makes the content of an empty set of runs that come in ascending order.
type listBuilder struct {
	s    *Set
	list []run // part of s.few, until that is full
	most int   // no more runs than this come
}

func (s *Set) builder(most int) listBuilder {
	return listBuilder{s: s, list: s.few[:0], most: most}
}

// add adds a run that does not start below the one before it; they may overlap and touch.
func (b *listBuilder) add(r run) {
	if n := len(b.list); n == maxFew {
		b.list = slices.Grow(b.list, max(b.most-n, 1))
	}
	b.list = appendJoined(b.list, r)
}

func (b *listBuilder) done() { b.s.setList(b.list) }

// setList makes rs the content of an empty set, and frees its spare half, if there is one.
func (s *Set) setList(rs []run) {
	s.store(rs)
	if s.big != nil && cap(rs) > 2*len(rs) {
		s.big.list = slices.Clone(rs)
	}
	s.represent()
}
