package idset_test

import (
	"iter"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife/idset"
)

func TestAnIterationStopsWhereItIsTold(t *testing.T) {
	for _, last := range []uint32{65535, 65537} { // in words or not
		want := []uint32{0, 1, 2, 3, 7, last - 2, last - 1, last}
		for _, rep := range representations {
			s := rep.force(idset.Of(want...))
			for stop := range want {
				var got []uint32
				for id := range s.All() {
					if got = append(got, id); len(got) > stop {
						break
					}
				}
				require.Equal(t, want[:stop+1], got)
			}
			for stop := range 3 {
				n := 0
				for range s.Ranges() {
					if n++; n > stop {
						break
					}
				}
				require.Equal(t, stop+1, n)
			}
		}
	}
}

func TestAnIteratorMayBeKept(t *testing.T) {
	s := idset.Of(1, 2, 5)
	all := s.All()
	require.Equal(t, []uint32{1, 2, 5}, slices.Collect(all))
	s.Insert(3)
	require.Equal(t, []uint32{1, 2, 3, 5}, slices.Collect(all))
	next, stop := iter.Pull(all)
	defer stop()
	id, ok := next()
	require.True(t, ok)
	require.Equal(t, uint32(1), id)
}

func TestASetMayChangeDuringAnIteration(t *testing.T) {
	for _, c := range []struct {
		name   string
		in     string
		change func(s *idset.Set, id uint32)
		up     []uint32
	}{
		{"removing what was seen", "0-3,7", func(s *idset.Set, id uint32) { s.Remove(id) }, []uint32{0, 1, 2, 3, 7}},
		{"removing what comes next", "0-9", func(s *idset.Set, id uint32) { s.Remove(id + 1) }, []uint32{0, 2, 4, 6, 8}},
		{"removing all that is ahead", "0-3,7", func(s *idset.Set, id uint32) { s.RemoveRange(id+1, idset.MaxID) }, []uint32{0}},
		{"adding behind", "5,9", func(s *idset.Set, id uint32) { s.Insert(id - 5) }, []uint32{5, 9}},
		{"adding ahead", "5", func(s *idset.Set, id uint32) { s.Insert(min(id+2, 11)) }, []uint32{5, 7, 9, 11}},
		{"emptying", "5-9", func(s *idset.Set, _ uint32) { s.SubtractWith(s) }, []uint32{5}},
		{"replacing", "5-9", func(s *idset.Set, _ uint32) { _ = s.UnmarshalText([]byte("1,6,8-9")) }, []uint32{5, 6, 8, 9}},
		{"turning into a bitmap", "5-9", func(s *idset.Set, _ uint32) {
			s.UnionWith(comb(1000, 1000))
			s.ForceBitmap()
			s.RemoveRange(1000, idset.MaxID)
		}, []uint32{5, 6, 7, 8, 9}},
		{"the last id there is", "2147483646-2147483647", func(s *idset.Set, id uint32) { s.Remove(id) }, []uint32{2147483646, 2147483647}},
	} {
		for _, rep := range representations {
			t.Run(c.name+" "+rep.name, func(t *testing.T) {
				s := rep.force(parse(t, c.in))
				var up []uint32
				for id := range s.All() {
					up = append(up, id)
					require.Less(t, len(up), 20)
					c.change(s, id)
				}
				require.Equal(t, c.up, up)
				require.NoError(t, s.Check())
			})
		}
	}
}

func TestAnIterationGoesOnInAListThatWasABitmap(t *testing.T) {
	for _, far := range []uint32{20, 70000} { // in words or not
		s := idset.Of(0, 2, 5, 7, far).ForceBitmap()
		var got []uint32
		for id := range s.All() {
			switch got = append(got, id); id {
			case 0:
				s.Remove(7)
			case 2:
				s.ForceRuns()
			}
		}
		require.Equal(t, []uint32{0, 2, 5, far}, got)
	}
}

// ID-6: the model of what an iteration yields when the set changes in its middle, over
// both representations.
func TestAnIterationOverAChangingSetIsDefined(t *testing.T) {
	t.Log("ID-6")
	rapid.Check(t, func(t *rapid.T) {
		s := drawSet(t, "id")
		m := model{}
		for id := range s.All() {
			m[id] = struct{}{}
		}
		change := func() {
			if rapid.IntRange(0, 5).Draw(t, "change") > 0 {
				return
			}
			id := drawID(t, "changed")
			switch rapid.IntRange(0, 4).Draw(t, "how") {
			case 0:
				s.Insert(id)
				m[id] = struct{}{}
			case 1:
				s.Remove(id)
				delete(m, id)
			case 2:
				last := min(id+50, idset.MaxID)
				s.InsertRange(id, last)
				for ; id <= last; id++ {
					m[id] = struct{}{}
				}
			case 3:
				s.ForceBitmap()
				s.Insert(id)
				m[id] = struct{}{}
			default:
				s.ForceRuns()
				s.RemoveRange(id, id+50)
				for last := id + 50; id <= last; id++ {
					delete(m, id)
				}
			}
		}
		// above returns the next id of the model.
		above := func(id int64) (uint32, bool) {
			next, ok := uint32(0), false
			for x := range m {
				if int64(x) > id && (!ok || x < next) {
					next, ok = x, true
				}
			}
			return next, ok
		}
		steps := 0
		want, ok := above(-1)
		for id := range s.All() {
			require.True(t, ok)
			require.Equal(t, want, id)
			if steps++; steps > 40 {
				break
			}
			change()
			want, ok = above(int64(id))
		}
		require.True(t, !ok || steps > 40)

		steps = 0
		want, ok = above(-1)
		for first, last := range s.Ranges() {
			require.True(t, ok)
			require.Equal(t, want, first)
			for id := first; id <= last; id++ {
				require.Contains(t, m, id)
			}
			require.NotContains(t, m, last+1)
			if steps++; steps > 40 {
				break
			}
			change()
			want, ok = above(int64(last))
		}
		require.True(t, !ok || steps > 40)
		compare(t, s, m)
	})
}
