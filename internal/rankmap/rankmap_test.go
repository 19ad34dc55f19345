package rankmap

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// check returns whether the heads are those of the chunks, none of which is empty or too large.
func (m *Map[T]) check(t require.TestingT) {
	require.Len(t, m.heads, len(m.chunks))
	var all []uint32
	for c, at := range m.chunks {
		require.NotZero(t, at.n)
		require.Equal(t, at.ranks[0], m.heads[c])
		all = append(all, at.ranks[:at.n]...)
		var none T
		for _, v := range at.values[at.n:] {
			require.Equal(t, none, v)
		}
	}
	require.True(t, slices.IsSorted(all))
	require.Len(t, slices.Compact(all), len(all))
}

// A Map and its clones do what maps of Go do.
func TestMapIsAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := []*Map[uint64]{new(Map[uint64])}
		naive := []map[uint32]uint64{{}}
		top := uint32(rapid.SampledFrom([]int{10, 300, 1 << 24}).Draw(t, "top"))
		rank := func(what string) uint32 { return rapid.Uint32Range(0, top).Draw(t, what) }
		pick := func() int { return rapid.IntRange(0, len(list)-1).Draw(t, "map") }
		serial := uint64(0)
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				for i, m := range list {
					m.check(t)
					var all []uint64
					m.All(func(v uint64) bool { all = append(all, v); return true })
					require.Len(t, all, len(naive[i]))
					for k, rank := range slices.Sorted(maps.Keys(naive[i])) {
						require.Equal(t, naive[i][rank], all[k])
					}
				}
			},
			"set": func(t *rapid.T) {
				i, first := pick(), rank("first")
				for range rapid.IntRange(1, 100).Draw(t, "many") {
					serial++
					list[i].Set(first, serial)
					naive[i][first] = serial
					first = (first*7 + 3) % (top + 1)
				}
			},
			"delete": func(t *rapid.T) {
				i, first, last := pick(), rank("first"), rank("last")
				for _, rank := range slices.Sorted(maps.Keys(naive[i])) {
					if first <= rank && rank <= last {
						list[i].Delete(rank)
						delete(naive[i], rank)
					}
				}
				list[i].Delete(first) // which may not be there
				delete(naive[i], first)
			},
			"append": func(t *rapid.T) {
				i, first := pick(), rank("first")
				last := max(first, rank("last"))
				want := []uint64{0}
				ranks := slices.Sorted(maps.Keys(naive[i]))
				for k, rank := range ranks {
					if rank <= last && (rank >= first || k+1 == len(ranks) || ranks[k+1] > first) {
						want = append(want, naive[i][rank])
					}
				}
				require.Equal(t, want, list[i].Append([]uint64{0}, first, last))
			},
			"clone": func(*rapid.T) {
				if i := pick(); len(list) < 4 {
					c := list[i].Clone()
					list, naive = append(list, &c), append(naive, maps.Clone(naive[i]))
				}
			},
		})
	})
}

func TestAllStops(t *testing.T) {
	var m Map[int]
	m.Set(1, 1)
	m.Set(2, 2)
	calls := 0
	m.All(func(int) bool { calls++; return false })
	require.Equal(t, 1, calls)
}
