package idset_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife/idset"
)

func TestRangeIsASetOfOneRange(t *testing.T) {
	require.Equal(t, "3-7", idset.Range(3, 7).String())
	require.Equal(t, "3", idset.Range(3, 3).String())
	require.Equal(t, "0-2147483647", idset.Range(0, idset.MaxID).String())
	require.True(t, idset.Range(4, 3).IsEmpty())
	require.Panics(t, func() { idset.Range(0, idset.MaxID+1) })
}

// ID-5: the empty set: a zero value, made so, or nil.
func TestAnEmptySetAnswersEverything(t *testing.T) {
	emptied := comb(1000, 2)
	emptied.SubtractWith(emptied)
	removed := idset.Of(5)
	removed.Remove(5)
	for name, s := range map[string]*idset.Set{
		"nil": nil, "zero": {}, "Of": idset.Of(), "emptied": emptied, "removed": removed,
		"parsed": parse(t, ""), "difference": idset.Difference(idset.Of(1), idset.Of(1)), "union": idset.Union(nil, nil),
	} {
		require.True(t, s.IsEmpty(), name)
		require.Zero(t, s.Len(), name)
		require.False(t, s.Contains(0), name)
		for _, ask := range []func() (uint32, bool){
			s.Min, s.Max,
			func() (uint32, bool) { return s.Next(0) },
			func() (uint32, bool) { return s.Next(math.MaxUint32) },
		} {
			id, ok := ask()
			require.False(t, ok, name)
			require.Zero(t, id, name)
		}
		for range s.All() {
			t.Fatal(name)
		}
		for range s.Ranges() {
			t.Fatal(name)
		}
		require.Empty(t, s.String(), name)
		other := idset.Of(1, 2)
		require.False(t, s.Intersects(other), name)
		require.False(t, other.Intersects(s), name)
		require.False(t, s.Equal(other), name)
		require.False(t, other.Equal(s), name)
		require.True(t, s.Equal(nil), name)
		require.True(t, (*idset.Set)(nil).Equal(s), name)
		require.True(t, other.ContainsAll(s), name)
		require.True(t, s.ContainsAll(nil), name)
		require.False(t, s.ContainsAll(other), name)
		require.NotNil(t, s.Clone(), name)
		require.True(t, s.Clone().IsEmpty(), name)

		require.False(t, other.UnionWith(s), name)
		require.False(t, other.SubtractWith(s), name)
		require.Equal(t, "1-2", other.String(), name)
		require.Equal(t, "1-2", idset.Union(s, other).String(), name)
		require.Equal(t, "1-2", idset.Union(other, s).String(), name)
		require.Equal(t, "1-2", idset.Difference(other, s).String(), name)
		require.True(t, idset.Difference(s, other).IsEmpty(), name)
		require.True(t, idset.Intersect(s, other).IsEmpty(), name)
		require.True(t, idset.Intersect(other, s).IsEmpty(), name)
		require.True(t, other.IntersectWith(s), name)
		require.True(t, other.IsEmpty(), name)
		if s == nil {
			continue
		}
		require.NoError(t, s.Check(), name)
		require.False(t, s.Remove(0), name)
		require.False(t, s.RemoveRange(0, math.MaxUint32), name)
		require.False(t, s.IntersectWith(idset.Of(1)), name)
		require.False(t, s.SubtractWith(idset.Of(1)), name)
		require.False(t, s.UnionWith(nil), name)
		require.True(t, s.UnionWith(idset.Of(1)), name)
		require.Equal(t, "1", s.String(), name)
	}
}

func TestIdsAtTheEndsOfTheUniverse(t *testing.T) {
	for _, rep := range representations {
		s := rep.force(idset.Of(0, idset.MaxID))
		require.Equal(t, "0,2147483647", s.String())
		for _, at := range []struct {
			id   uint32
			next int64
		}{{0, idset.MaxID}, {1, idset.MaxID}, {idset.MaxID - 1, idset.MaxID}, {idset.MaxID, -1}, {idset.MaxID + 1, -1}, {math.MaxUint32, -1}} {
			next, ok := s.Next(at.id)
			require.Equal(t, at.next >= 0, ok, at)
			require.Equal(t, uint32(max(at.next, 0)), next, at)
		}
		require.False(t, s.Contains(idset.MaxID+1))
		require.False(t, s.Contains(math.MaxUint32))
		require.False(t, rep.force(s).Remove(idset.MaxID+1))
		require.False(t, rep.force(s).Remove(math.MaxUint32))
		require.False(t, rep.force(s).RemoveRange(idset.MaxID+1, math.MaxUint32))
		require.False(t, rep.force(s).RemoveRange(7, 3))
		require.False(t, rep.force(s).InsertRange(7, 3))
		require.False(t, rep.force(s).InsertRange(0, 0))
		require.Equal(t, 2, s.Len())
		require.True(t, rep.force(s).RemoveRange(1, math.MaxUint32))
		require.Equal(t, "0", s.String())
		require.NoError(t, s.Check())
	}
}

func TestIdsAboveTheLargestPanicInCode(t *testing.T) {
	for _, rep := range representations {
		s := rep.force(idset.Of(1, 3))
		for _, id := range []uint32{idset.MaxID + 1, math.MaxUint32} {
			require.Panics(t, func() { s.Insert(id) })
			require.Panics(t, func() { s.InsertRange(5, id) })
			require.Panics(t, func() { idset.Of(5, id, 7) })
		}
		require.Equal(t, "1,3", s.String())
	}
	require.PanicsWithValue(t, "idset: id 2147483648 is above 2147483647", func() { idset.Of(idset.MaxID + 1) })
}

func TestOfTakesIdsInAnyOrderAndLeavesThem(t *testing.T) {
	in := []uint32{9, 1, 5, 1, 4, 9, 0}
	s := idset.Of(in...)
	require.Equal(t, "0-1,4-5,9", s.String())
	require.Equal(t, []uint32{9, 1, 5, 1, 4, 9, 0}, in)
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) uint32 { return drawID(t, "id") }), 0, 700).Draw(t, "ids")
		m := model{}
		for _, id := range in {
			m[id] = struct{}{}
		}
		compare(t, idset.Of(in...), m)
		compare(t, idset.Of(slices.Sorted(slices.Values(in))...), m)
	})
}

func TestLenSaturatesWhereIntIsTooSmall(t *testing.T) {
	s := parse(t, "0-2147483647")
	if math.MaxInt == math.MaxInt32 {
		require.Equal(t, math.MaxInt, s.Len())
	} else {
		require.Equal(t, uint64(1)<<31, uint64(s.Len()))
	}
	s.Remove(5)
	require.Equal(t, idset.MaxID, s.Len())
	require.True(t, s.Insert(5))
	require.True(t, s.Remove(idset.MaxID))
	require.Equal(t, "0-2147483646", s.String())
}

// count is Len, where int has 32 bits too.
func count(s *idset.Set) uint64 {
	n := uint64(0)
	for first, last := range s.Ranges() {
		n += uint64(last) - uint64(first) + 1
	}
	return n
}
