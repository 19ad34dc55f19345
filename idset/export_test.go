package idset

import (
	"errors"
	"fmt"
)

// What the tests need of the inside.

const (
	MaxFew   = maxFew
	MaxShort = maxShort
	MaxText  = maxText
)

// Representation returns how a set is kept: "few", "list" or "bitmap".
func (s *Set) Representation() string {
	switch {
	case s == nil || s.big == nil:
		return "few"
	case s.big.bits == nil:
		return "list"
	default:
		return "bitmap"
	}
}

// ForceRuns makes a set a run list, whatever suits it, until an operation
// settles it again. It returns the set.
func (s *Set) ForceRuns() *Set {
	if s.bits() != nil {
		s.toList()
		if s.big != nil {
			s.big.budget = 1
		}
	}
	return s
}

// ForceBitmap makes a set that is not empty a bitmap, whatever suits it, until
// an operation settles it again. It returns the set.
func (s *Set) ForceBitmap() *Set {
	if !s.IsEmpty() && s.bits() == nil {
		b := &big{bits: bitmapOf(s.list(), all)}
		b.look()
		s.few, s.n, s.big = [maxFew]run{}, 0, b
	}
	return s
}

// Memory returns about how many bytes a set takes beside the Set itself.
func (s *Set) Memory() int {
	if bits := s.bits(); bits != nil {
		stats := bits.Stats()
		return int(stats.ArrayContainerBytes+stats.BitmapContainerBytes+stats.RunContainerBytes) +
			int(stats.Containers)*containerBytes
	}
	if s.big != nil {
		return 8 * cap(s.big.list)
	}
	return 0
}

// BitmapOf returns the bitmap of those ids of a set that lie between first and
// last, as a set, and the bytes that it is estimated to take.
func BitmapOf(s *Set, first, last uint32) (*Set, int) {
	rs, clip := s.runs(), run{first, last}
	b := &big{bits: bitmapOf(rs, clip)}
	if b.bits.IsEmpty() {
		return new(Set), estimate(rs, clip)
	}
	b.look()
	return &Set{big: b}, estimate(rs, clip)
}

// Estimate returns the bytes that a bitmap of the set is estimated to take.
func (s *Set) Estimate() int { return estimate(s.runs(), all) }

func (s *Set) Check() error {
	b := s.big
	if b == nil {
		if s.n > maxFew {
			return fmt.Errorf("one representation: %d runs in the set itself", s.n)
		}
		for _, r := range s.few[s.n:] {
			if r != (run{}) {
				return fmt.Errorf("spare places: %v in a spare place", r)
			}
		}
		return checkRuns(s.few[:s.n])
	}
	if s.n != 0 || s.few != [maxFew]run{} {
		return errors.New("one representation: two representations: runs in the set itself, and storage")
	}
	if b.bits == nil {
		if len(b.list) <= minListed {
			return fmt.Errorf("one representation: %d runs are listed apart", len(b.list))
		}
		if len(b.list) > maxShort && b.budget <= 0 {
			return fmt.Errorf("proportion: a list of %d runs with a budget of %d", len(b.list), b.budget)
		}
		for _, r := range b.list[len(b.list):cap(b.list)] {
			if r != (run{}) {
				return fmt.Errorf("spare places: %v in a spare place", r)
			}
		}
		return checkRuns(b.list)
	}
	return b.checkBits()
}

func checkRuns(rs []run) error {
	for i, r := range rs {
		if r.first > r.last || r.last > MaxID {
			return fmt.Errorf("run list: run %v", r)
		}
		if i > 0 && rs[i-1].last+1 >= r.first {
			return fmt.Errorf("run list: run %v after %v", r, rs[i-1])
		}
	}
	return nil
}

func (b *big) checkBits() error {
	switch {
	case b.list != nil:
		return errors.New("one representation: two representations: a list and a bitmap")
	case b.bits.IsEmpty():
		return errors.New("one representation: an empty bitmap")
	case b.bits.GetCopyOnWrite():
		return errors.New("no sharing: copy on write")
	case b.bits.Maximum() > MaxID:
		return fmt.Errorf("run list: id %d", b.bits.Maximum())
	case b.budget <= 0:
		return fmt.Errorf("proportion: a bitmap with a budget of %d", b.budget)
	}
	if err := b.bits.Validate(); err != nil {
		return fmt.Errorf("one representation: %w", err)
	}
	return nil
}
