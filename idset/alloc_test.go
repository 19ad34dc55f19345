package idset_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/race"
)

// What the documentation promises.
func TestAllocationBudget(t *testing.T) {
	race.Skip(t)
	shapes := []struct {
		name  string
		set   *idset.Set
		parse float64 // allocations
		all   float64
	}{
		{"one id", parse(t, "5"), 1, 0},
		{"one run", parse(t, "0-2147483647"), 1, 0},
		{"eight runs", parse(t, "1,3,5,7,9,11,13,15-2147483647"), 1, 0},
		{"a list", comb(200, 3), 3, 0},
		{"a bitmap", comb(5000, 3), 9, 0},
		{"a bitmap of two containers", comb(5000, 14), 1 + 12 + 2*14, 1},
		{"a bitmap of 16 containers", comb(80000, 13), 1 + 12 + 16*14, 1},
	}
	var sink uint32
	var made string
	var ids []uint32
	for _, s := range shapes {
		text := s.set.String()
		dst := make([]byte, 0, len(text)+2)
		other := s.set.Clone()
		id, _ := other.Min()
		first := idset.Of(id)
		budget := func(want float64, name string, f func()) {
			t.Helper()
			require.LessOrEqual(t, testing.AllocsPerRun(20, f), want, "%s of %s", name, s.name)
		}
		budget(s.parse, "Parse", func() { _, _ = idset.Parse(text) })
		budget(1, "String", func() {
			if len(text) < 100 {
				made = s.set.String()
			}
		})
		budget(0, "AppendText", func() { dst, _ = s.set.AppendText(dst[:0]) })
		budget(0, "AppendBrackets", func() { dst = s.set.AppendBrackets(dst[:0]) })
		if s.set.Len() < 10000 {
			budget(1, "Slice", func() { ids, _ = s.set.Slice(10000) })
		}
		budget(0, "Contains", func() { s.set.Contains(7) })
		budget(0, "Len", func() { s.set.Len() })
		budget(0, "Min, Max, Next", func() {
			s.set.Min()
			s.set.Max()
			s.set.Next(100)
		})
		budget(0, "Ranges", func() {
			for first := range s.set.Ranges() {
				sink += first
			}
		})
		budget(s.all, "All", func() {
			n := 0
			for id := range s.set.All() {
				if sink += id; n > 100000 {
					break
				}
				n++
			}
		})
		budget(0, "Equal", func() { s.set.Equal(other) })
		budget(0, "Intersects", func() { s.set.Intersects(other) })
		budget(0, "ContainsAll", func() { s.set.ContainsAll(other) })
		budget(0, "Insert and Remove", func() {
			if other.Remove(9) {
				other.Insert(9)
			}
		})
		budget(0, "UnionWith of what is there", func() { other.UnionWith(first) })
	}
	_, _, _ = sink, made, ids
}

func TestTheFirstRunsAreInTheSetItself(t *testing.T) {
	race.Skip(t)
	a, b := parse(t, "0-3,7"), parse(t, "2-9,11,13")
	var ids []string
	for id := range 1000 {
		ids = append(ids, strconv.Itoa(id))
	}
	long := strings.Join(ids, ",")
	for name, op := range map[string]func(a, b *idset.Set) *idset.Set{
		"Union": idset.Union, "Intersect": idset.Intersect, "Difference": idset.Difference,
		"Clone": func(a, _ *idset.Set) *idset.Set { return a.Clone() },
		"Of":    func(*idset.Set, *idset.Set) *idset.Set { return idset.Of(1, 2, 3, 5) },
		"Parse of id by id": func(*idset.Set, *idset.Set) *idset.Set {
			return parse(t, "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20")
		},
		"Parse of many ids": func(*idset.Set, *idset.Set) *idset.Set { return parse(t, long) },
	} {
		require.LessOrEqual(t, testing.AllocsPerRun(100, func() { op(a, b) }), 1.0, name)
	}
	var s idset.Set
	require.Zero(t, testing.AllocsPerRun(100, func() {
		s.UnionWith(a)
		s.UnionWith(b)
		s.SubtractWith(a)
		s.IntersectWith(b)
		s.InsertRange(5, 100)
		s.RemoveRange(0, 1000)
	}))
}

// Ranks that come home one by one: the amortised budget of a ledger.
func TestAccumulatingAllocatesNothingToSpeakOf(t *testing.T) {
	race.Skip(t)
	const n = 16384
	perSet := testing.AllocsPerRun(3, func() {
		s := new(idset.Set)
		for id := range uint32(n) {
			s.Insert(id * 7919 % n)
		}
		require.Equal(t, n, s.Len())
	})
	require.Less(t, perSet/n, 0.01)
}
