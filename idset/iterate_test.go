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

func TestAnIterationOverABitmapGoesOnInAList(t *testing.T) {
	s := comb(300, 2).ForceBitmap()
	var ids []uint32
	for id := range s.All() {
		if ids = append(ids, id); id == 10 {
			s.ForceRuns()
			s.RemoveRange(14, 595)
		}
	}
	require.Equal(t, []uint32{0, 2, 4, 6, 8, 10, 12, 596, 598}, ids)
}

// ID-6: the model of what an iteration yields when the set changes in its middle, over
// both representations.
func TestAnIterationOverAChangingSetIsDefined(t *testing.T) {
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
			switch rapid.IntRange(0, 5).Draw(t, "how") {
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
			case 4:
				m[id] = struct{}{}
				require.NoError(t, s.UnmarshalText([]byte(m.text())))
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
				_, has := m[id]
				require.True(t, has, id)
			}
			_, has := m[last+1]
			require.False(t, has, last)
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
