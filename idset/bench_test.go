package idset_test

import (
	"fmt"
	"testing"

	"github.com/joblife/joblife/idset"
)

// benchSets are the sets that are measured: contiguous ids, and every third id,
// which is a run for each.
func benchSets() []benchSet {
	var sets []benchSet
	for _, n := range []uint32{1, 64, 4096, 16384, 100000} {
		whole, third := new(idset.Set), new(idset.Set)
		whole.InsertRange(0, n-1)
		for id := uint32(0); id < n; id += 3 {
			third.Insert(id)
		}
		sets = append(sets,
			benchSet{fmt.Sprintf("contiguous/%d", n), n, whole},
			benchSet{fmt.Sprintf("third/%d", n), n, third})
	}
	return sets
}

type benchSet struct {
	name string
	n    uint32 // the ids are below it
	set  *idset.Set
}

// other returns a set of about half the ids of each pattern, and some others.
func (b benchSet) other() *idset.Set {
	t := b.set.Clone()
	t.RemoveRange(0, b.n/2)
	t.InsertRange(b.n, b.n+b.n/2)
	return t
}

func BenchmarkParse(b *testing.B) {
	for _, s := range benchSets() {
		text := s.set.String()
		b.Run(s.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if _, err := idset.Parse(text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkAppendText(b *testing.B) {
	for _, s := range benchSets() {
		dst, _ := s.set.AppendText(nil)
		b.Run(s.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(dst)))
			for b.Loop() {
				dst, _ = s.set.AppendText(dst[:0])
			}
		})
	}
}

func BenchmarkUnion(b *testing.B) { benchPair(b, idset.Union) }

func BenchmarkDifference(b *testing.B) { benchPair(b, idset.Difference) }

func BenchmarkIntersect(b *testing.B) { benchPair(b, idset.Intersect) }

func benchPair(b *testing.B, op func(s, t *idset.Set) *idset.Set) {
	for _, s := range benchSets() {
		other := s.other()
		b.Run(s.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				op(s.set, other)
			}
		})
	}
}

// BenchmarkSubtractFromContiguous takes every third id out of a range: the two
// representations meet.
func BenchmarkSubtractFromContiguous(b *testing.B) {
	sets := benchSets()
	for i := 0; i < len(sets); i += 2 {
		whole, third := sets[i], sets[i+1]
		b.Run(fmt.Sprint(whole.n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				idset.Difference(whole.set, third.set)
			}
		})
	}
}

func BenchmarkIntersects(b *testing.B) {
	for _, s := range benchSets() {
		other := idset.Difference(s.other(), s.set) // no id in common
		b.Run(s.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s.set.Intersects(other)
			}
		})
	}
}

func BenchmarkRanges(b *testing.B) {
	for _, s := range benchSets() {
		b.Run(s.name, func(b *testing.B) {
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				for range s.set.Ranges() {
					n++
				}
			}
			b.ReportMetric(float64(n)/float64(b.N), "ranges/op")
		})
	}
}

func BenchmarkAll(b *testing.B) {
	for _, s := range benchSets() {
		b.Run(s.name, func(b *testing.B) {
			b.ReportAllocs()
			sum := uint64(0)
			for b.Loop() {
				for id := range s.set.All() {
					sum += uint64(id)
				}
			}
		})
	}
}

func BenchmarkContains(b *testing.B) {
	for _, s := range benchSets() {
		b.Run(s.name, func(b *testing.B) {
			b.ReportAllocs()
			id := uint32(0)
			for b.Loop() {
				s.set.Contains(id)
				id = (id + 7919) % s.n
			}
		})
	}
}

// BenchmarkInsertRemove adds an id that is absent and takes it out again.
func BenchmarkInsertRemove(b *testing.B) {
	for _, s := range benchSets() {
		set := s.set.Clone()
		b.Run(s.name, func(b *testing.B) {
			b.ReportAllocs()
			id := uint32(0)
			for b.Loop() {
				set.Insert(id/3*3 + 1)
				set.Remove(id/3*3 + 1)
				id = (id + 7919) % s.n
			}
		})
	}
}

// BenchmarkAccumulate adds ranks one by one until all are in, as a ledger of
// freed ranks does: evens first, so that the set passes through as many runs as
// it can have.
func BenchmarkAccumulate(b *testing.B) {
	for _, n := range []uint32{64, 4096, 100000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s := new(idset.Set)
				for from := range uint32(2) {
					for id := from; id < n; id += 2 {
						s.Insert(id)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/id")
		})
	}
}

// BenchmarkHuge is the whole life of a text that is short and a set that is
// not.
func BenchmarkHuge(b *testing.B) {
	b.ReportAllocs()
	var dst []byte
	for b.Loop() {
		s, err := idset.Parse("0-2147483647")
		if err != nil {
			b.Fatal(err)
		}
		if s.Remove(12345); s.Len() != idset.MaxID {
			b.Fatal(s.Len())
		}
		dst, _ = s.AppendText(dst[:0])
	}
}
