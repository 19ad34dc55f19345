package idset_test

import (
	"fmt"
	"testing"

	"github.com/joblife/joblife/idset"
)

// BenchmarkSet measures contiguous ids, and every third id, which is a run for each.
func BenchmarkSet(b *testing.B) {
	for _, n := range []uint32{1, 64, 4096, 16384, 100000} {
		for step := uint32(1); step <= 3; step += 2 {
			s := new(idset.Set)
			for id := uint32(0); id < n; id += step {
				s.Insert(id)
			}
			other := s.Clone() // with half of the ids, and some others
			other.RemoveRange(0, n/2)
			other.InsertRange(n, n+n/2)
			apart := idset.Difference(other, s)
			text, sum, at := s.String(), uint32(0), uint32(0)
			dst := make([]byte, 0, len(text))
			for _, c := range []struct {
				name string
				do   func()
			}{
				{"Parse", func() { _, _ = idset.Parse(text) }},
				{"AppendText", func() { dst, _ = s.AppendText(dst[:0]) }},
				{"Union", func() { idset.Union(s, other) }},
				{"Difference", func() { idset.Difference(s, other) }},
				{"Intersect", func() { idset.Intersect(s, other) }},
				{"Intersects", func() { s.Intersects(apart) }},
				{"Contains", func() { s.Contains(at); at = (at + 7919) % n }},
				{"Ranges", func() {
					for first := range s.Ranges() {
						sum += first
					}
				}},
				{"All", func() {
					for id := range s.All() {
						sum += id
					}
				}},
				{"InsertRemove", func() { // of an id that is absent
					other.Insert(at/3*3 + 1)
					other.Remove(at/3*3 + 1)
					at = (at + 7919) % n
				}},
			} {
				b.Run(fmt.Sprintf("%s/ids=%d/step=%d", c.name, n, step), func(b *testing.B) {
					b.ReportAllocs()
					for b.Loop() {
						c.do()
					}
				})
			}
		}
	}
}
