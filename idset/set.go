package idset

import (
	"fmt"
	"math"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/joblife/joblife/internal/guard"
)

// MaxID is the largest id that a set can hold. It is the largest that a Flux peer accepts.
const MaxID = 1<<31 - 1

// A Set is a set of ids from 0 to MaxID. The zero value is the empty set, ready to use. A
// nil *Set reads as the empty set; methods that change a set panic on it. Do not copy a
// Set: go vet reports copies. The package documentation says more on that.
type Set struct {
	_ guard.NoCopy

	// Where big is nil the runs are few[:n]. Places beyond are zero.
	few [maxFew]run
	n   uint32

	gen uint32 // changes with every change of the set
	big *big
}

// Of returns a new set of the given ids, in any order and with repetitions. With n
// ids it takes n log n steps, or n if they ascend. It retains nothing of ids. Panics
// if an id is above MaxID.
func Of(ids ...uint32) *Set {
	s := new(Set)
	if !slices.IsSorted(ids) {
		ids = slices.Clone(ids)
		slices.Sort(ids)
	}
	b := s.builder(len(ids))
	for _, id := range ids {
		checkID(id)
		b.add(run{id, id})
	}
	b.done()
	return s
}

// Range returns a new set of the ids from first to last, both included. It is
// empty if last is below first. Panics if last is above MaxID.
func Range(first, last uint32) *Set {
	s := new(Set)
	s.InsertRange(first, last)
	return s
}

func checkID(id uint32) {
	if id > MaxID {
		panic(fmt.Sprintf("idset: id %d is above %d", id, uint32(MaxID)))
	}
}

// Insert adds an id and reports whether it was absent. Panics if id is above MaxID.
func (s *Set) Insert(id uint32) bool {
	checkID(id)
	if bits := s.bits(); bits != nil {
		if !bits.CheckedAdd(id) {
			return false
		}
		s.changed(1)
		return true
	}
	return s.edited(insertRun(s.list(), run{id, id}))
}

// InsertRange adds the ids from first to last, both included, and reports whether any was
// absent. It adds nothing if last is below first. Panics if last is above MaxID.
func (s *Set) InsertRange(first, last uint32) bool {
	checkID(last)
	switch {
	case last < first:
		return false
	case first == last: // which moves less than a range does
		return s.Insert(first)
	}
	r := run{first, last}
	bits := s.bits()
	if bits == nil {
		return s.edited(insertRun(s.list(), r))
	}
	if bitsIn(bits, r) == r.len() {
		return false
	}
	cost := r.containers() * containerSpend
	if cost > s.big.budget+rangeSpend {
		// A bitmap of so many containers may be out of proportion.
		s.toList()
		return s.edited(insertRun(s.list(), r))
	}
	bits.AddRange(uint64(first), uint64(last)+1)
	s.changed(rangeSpend + cost)
	return true
}

// edited stores a run list that was edited in place, if the edit changed anything.
func (s *Set) edited(rs []run, changed bool) bool {
	if changed {
		s.store(rs)
		s.changed(1)
	}
	return changed
}

// Remove removes an id and reports whether it was present.
func (s *Set) Remove(id uint32) bool {
	if bits := s.bits(); bits != nil {
		if !bits.CheckedRemove(id) {
			return false
		}
		s.changedBits(1)
		return true
	}
	return s.edited(removeRun(s.list(), run{id, id}))
}

// RemoveRange removes the ids from first to last, both included, and reports whether any
// was present. It removes nothing if last is below first.
func (s *Set) RemoveRange(first, last uint32) bool {
	switch {
	case last < first:
		return false
	case first == last:
		return s.Remove(first)
	}
	r := run{first, last}
	bits := s.bits()
	if bits == nil {
		return s.edited(removeRun(s.list(), r))
	}
	if bitsIn(bits, r) == 0 {
		return false
	}
	bits.RemoveRange(uint64(first), uint64(last)+1)
	s.changedBits(rangeSpend)
	return true
}

// changedBits notes a change that may have emptied the bitmap.
func (s *Set) changedBits(cost int) {
	if s.big.bits.IsEmpty() {
		cost = s.big.budget
	}
	s.changed(cost)
}

// Contains reports whether an id is in the set.
func (s *Set) Contains(id uint32) bool {
	if bits := s.bits(); bits != nil {
		return bits.Contains(id)
	}
	rs := s.list()
	i := search(rs, id)
	return i < len(rs) && rs[i].first <= id
}

// Len returns the number of ids. If int has 32 bits, Len of the set of all ids is
// one too small, 1<<31-1.
func (s *Set) Len() int { return int(min(s.count(), math.MaxInt)) }

func (s *Set) count() uint64 {
	if bits := s.bits(); bits != nil {
		return bits.GetCardinality()
	}
	return count(s.list())
}

// IsEmpty reports whether there is no id in the set.
func (s *Set) IsEmpty() bool { return s == nil || s.big == nil && s.n == 0 }

// Min returns the smallest id, or false if the set is empty.
func (s *Set) Min() (uint32, bool) { return s.from(0) }

// Max returns the largest id, or false if the set is empty.
func (s *Set) Max() (uint32, bool) {
	if bits := s.bits(); bits != nil {
		return bits.Maximum(), true
	}
	rs := s.list()
	if len(rs) == 0 {
		return 0, false
	}
	return rs[len(rs)-1].last, true
}

// Next returns the smallest id above the given one, in the set or not; false if none is.
func (s *Set) Next(id uint32) (uint32, bool) {
	if id >= MaxID {
		return 0, false
	}
	return s.from(id + 1)
}

// from returns the smallest id that is not below the given one.
func (s *Set) from(id uint32) (uint32, bool) {
	if bits := s.bits(); bits != nil {
		v := bits.NextValue(id)
		return uint32(v), v >= 0
	}
	rs := s.list()
	if i := search(rs, id); i < len(rs) {
		return max(rs[i].first, id), true
	}
	return 0, false
}

// Clone returns a deep copy, and only reads the set. That of a nil *Set is a new empty set.
func (s *Set) Clone() *Set {
	c := new(Set)
	if s != nil {
		c.copyOf(s)
	}
	return c
}

// copyOf makes s, which is empty, a deep copy of t.
func (s *Set) copyOf(t *Set) {
	s.few, s.n = t.few, t.n
	s.gen++
	if b := t.big; b != nil {
		s.big = &big{list: slices.Clone(b.list), budget: b.budget, bytes: b.bytes}
		if b.bits != nil {
			s.big.bits = b.bits.Clone()
		}
	}
}

// bits returns the bitmap of a set that has one.
func (s *Set) bits() *roaring.Bitmap {
	if s == nil || s.big == nil {
		return nil
	}
	return s.big.bits
}

// list returns the run list of a set without a bitmap.
func (s *Set) list() []run {
	switch {
	case s == nil:
		return nil
	case s.big == nil:
		return s.few[:s.n]
	default:
		return s.big.list
	}
}
