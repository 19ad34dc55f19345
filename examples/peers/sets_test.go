package peers

import (
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/bits-and-blooms/bitset"
	"k8s.io/utils/cpuset"

	"github.com/joblife/joblife/idset"
)

// sets are equal sets of ids, one of each kind.
type sets struct {
	ids     *idset.Set
	roaring *roaring.Bitmap
	bits    *bitset.BitSet
}

// every returns n ids from the first on, of which each is step above the one before.
func every(step, first, n int) sets {
	s := sets{idset.Of(), roaring.New(), bitset.New(uint(first + step*n))}
	for i := range n {
		id := uint32(first + i*step)
		s.ids.Insert(id)
		s.bits.Set(uint(id))
		s.roaring.Add(id)
	}
	s.roaring.RunOptimize()
	return s
}

// The forms in which sets are compared.
func showIDs(a any) string { return a.(*idset.Set).String() }

func showRoaring(a any) string { return idset.Of(a.(*roaring.Bitmap).ToArray()...).String() }

func showBits(a any) string {
	s := idset.Of()
	for id := range a.(*bitset.BitSet).EachSet() {
		s.Insert(uint32(id))
	}
	return s.String()
}

// sum tells one list of ids from another.
type sum uint64

func setTasks(scale int) (all []task) {
	n := 16384 / scale
	for _, step := range []int{1, 3} {
		a, b, c := every(step, 0, n), every(step, step*n/2, n), every(step, 0, n/4)
		name := fmt.Sprintf("ids/step=%d", step)
		all = append(all,
			task{name + "/combine", []side{ // (a or b) and not c
				{us, func() any { return idset.Difference(idset.Union(a.ids, b.ids), c.ids) }, showIDs},
				{"roaring", func() any { return roaring.AndNot(roaring.Or(a.roaring, b.roaring), c.roaring) }, showRoaring},
				{"bitset", func() any { return a.bits.Union(b.bits).Difference(c.bits) }, showBits},
			}},
			task{name + "/iterate", iterate(a)},
			task{name + "/find", find(a, 2*step*n)},
			task{name + "/parse-print", text(a.ids.String())})
	}
	return all
}

func iterate(s sets) []side {
	var many [512]uint32
	var wide [512]uint
	return []side{
		{name: us, run: func() any {
			var t sum
			for id := range s.ids.All() {
				t += sum(id)
			}
			return t
		}},
		{name: "roaring", run: func() any {
			var t sum
			it := s.roaring.ManyIterator()
			for n := it.NextMany(many[:]); n > 0; n = it.NextMany(many[:]) {
				for _, id := range many[:n] {
					t += sum(id)
				}
			}
			return t
		}},
		{name: "bitset", run: func() any {
			var t sum
			for at, ids := s.bits.NextSetMany(0, wide[:]); len(ids) > 0; at, ids = s.bits.NextSetMany(at+1, wide[:]) {
				for _, id := range ids {
					t += sum(id)
				}
			}
			return t
		}},
	}
}

// find looks for ids below a limit, in no order.
func find(s sets, limit int) []side {
	by := func(contains func(id uint32) bool) func() any {
		return func() any {
			found := 0
			for i := range 1000 {
				if contains(uint32(i * 7919 % limit)) {
					found++
				}
			}
			return found
		}
	}
	return []side{
		{name: us, run: by(s.ids.Contains)}, {name: "roaring", run: by(s.roaring.Contains)},
		{name: "bitset", run: by(func(id uint32) bool { return s.bits.Test(uint(id)) })},
	}
}

func text(s string) []side {
	return []side{
		{name: us, run: func() any {
			set, err := idset.Parse(s)
			must(err)
			return set.String()
		}},
		{name: "cpuset", run: func() any {
			set, err := cpuset.Parse(s)
			must(err)
			return set.String()
		}},
	}
}
