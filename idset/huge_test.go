package idset_test

import (
	"math/bits"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/bomb"
	"github.com/joblife/joblife/internal/race"
)

// atoms cut the universe into stretches that sets of this file hold wholly or
// not at all, so that a set is a bit mask, whatever the size of its ranges.
var atoms = []uint32{
	0, 1, 2, 63, 64, 4096, 65535, 65536, 65537, 131072, 200000, 1 << 24, 1<<24 + 1,
	1 << 30, idset.MaxID - 65536, idset.MaxID - 65535, idset.MaxID - 1, idset.MaxID,
}

type mask uint32

const everyAtom = mask(1)<<18 - 1

func atom(i int) (first, last uint32) {
	if i == len(atoms)-1 {
		return atoms[i], idset.MaxID
	}
	return atoms[i], atoms[i+1] - 1
}

func (m mask) check(t require.TestingT, s *idset.Set) {
	require.NoError(t, s.Check())
	want := uint64(0)
	edges := 0
	for i := range atoms {
		first, last := atom(i)
		in := m>>i&1 == 1
		require.Equal(t, in, s.Contains(first), "%d in %v", first, s)
		require.Equal(t, in, s.Contains(last), "%d in %v", last, s)
		if in {
			want += uint64(last) - uint64(first) + 1
		}
		if in && (i == 0 || m>>(i-1)&1 == 0) {
			edges++
		}
	}
	require.Equal(t, want, count(s))
	require.Equal(t, edges, runs(s))
	require.Equal(t, m == 0, s.IsEmpty())
	if id, ok := s.Min(); ok {
		require.Equal(t, atoms[bits.TrailingZeros32(uint32(m))], id)
		id, _ = s.Max()
		_, last := atom(bits.Len32(uint32(m)) - 1)
		require.Equal(t, last, id)
	}
}

// A set of ranges of any size, against a bit mask: what a model of ids cannot
// reach.
func TestHugeRangesBehaveAsSmallOnes(t *testing.T) {
	require.Len(t, atoms, bits.Len32(uint32(everyAtom)))
	rapid.Check(t, func(t *rapid.T) {
		sets := [2]*idset.Set{{}, {}}
		masks := [2]mask{}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			k := rapid.IntRange(0, 1).Draw(t, "which")
			s, m, other, otherMask := sets[k], &masks[k], sets[1-k], masks[1-k]
			i := rapid.IntRange(0, len(atoms)-1).Draw(t, "from")
			j := rapid.IntRange(i, len(atoms)-1).Draw(t, "to")
			first, _ := atom(i)
			_, last := atom(j)
			part := (mask(1)<<(j-i+1) - 1) << i
			before := *m
			changed := false
			switch rapid.IntRange(0, 8).Draw(t, "step") {
			case 0, 1:
				changed = s.InsertRange(first, last)
				*m |= part
			case 2:
				changed = s.RemoveRange(first, last)
				*m &^= part
			case 3:
				changed = s.UnionWith(other)
				*m |= otherMask
			case 4:
				changed = s.IntersectWith(other)
				*m &= otherMask
			case 5:
				changed = s.SubtractWith(other)
				*m &^= otherMask
			case 6: // the comb comes and goes, and leaves a bitmap of few runs behind
				for id := uint32(64); id < 4096; id += 2 {
					s.Insert(id)
				}
				s.UnionWith(comb(2000, 2))
				s.RemoveRange(0, 4095)
				*m &^= 31
				continue
			case 7:
				if s.Estimate() < 1<<20 {
					s.ForceBitmap()
				}
				continue
			default:
				require.Equal(t, *m == otherMask, s.Equal(other))
				require.Equal(t, *m&otherMask != 0, s.Intersects(other))
				require.Equal(t, otherMask&^*m == 0, s.ContainsAll(other))
				if other.Estimate() < 1<<20 {
					require.Equal(t, otherMask&^*m == 0, s.Clone().ForceRuns().ContainsAll(other.Clone().ForceBitmap()))
				}
				continue
			}
			require.Equal(t, *m != before, changed)
			m.check(t, s)
			otherMask.check(t, other)
		}
	})
}

// ID-2: 0-2147483647 parses, counts, subtracts one id and prints within 10 µs and 4 KiB. It
// takes a sixtieth of either.
func TestEveryIdThereIsCostsNothing(t *testing.T) {
	race.Skip(t)
	one := idset.Of(12345)
	var text []byte
	use := func() {
		s, err := idset.Parse("0-2147483647")
		require.NoError(t, err)
		s.SubtractWith(one)
		if s.Len() != idset.MaxID {
			t.Fatal(s.Len())
		}
		text, _ = s.AppendText(text[:0])
	}
	require.LessOrEqual(t, testing.AllocsPerRun(10, use), 1.0)
	require.Equal(t, "0-12344,12346-2147483647", string(text))
	require.LessOrEqual(t, bytesOf(use), 4096)
	_, took := bomb.Cost(func() {
		for range 1000 {
			use()
		}
	})
	require.LessOrEqual(t, took, 10*time.Millisecond)
}
