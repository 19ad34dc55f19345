package idset_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/race"
)

// mixed returns a set of many containers, of every kind that a bitmap is filled
// with: none, one run, a few ids, words of few and of many runs, all ids.
func mixed(containers int) *idset.Set {
	s := new(idset.Set)
	for k := range uint32(containers) {
		at := k << 16
		n, step, length := uint32(0), uint32(0), uint32(0)
		switch k % 6 {
		case 1:
			s.InsertRange(at+k, at+k+5000)
		case 2:
			n, step, length = 3, 1000, 0
		case 3:
			n, step, length = 5, 9000, 4000
		case 4:
			n, step, length = 200, 300, k%200
		case 5:
			s.InsertRange(at-7, at+65536+7)
		}
		for i := range n {
			s.InsertRange(at+i*step, at+i*step+length)
		}
	}
	return s
}

func TestABitmapHasTheIdsOfItsList(t *testing.T) {
	// More containers of words than are put together at a time.
	whole := mixed(2500).ForceRuns()
	bitmap, _ := idset.BitmapOf(whole, 0, idset.MaxID)
	require.NoError(t, bitmap.Check())
	require.Equal(t, "bitmap", bitmap.Representation())
	require.True(t, whole.Equal(bitmap))

	small := mixed(40).ForceRuns()
	rapid.Check(t, func(t *rapid.T) {
		ends := rapid.Custom(func(t *rapid.T) uint32 {
			return rapid.Uint32Range(0, 40).Draw(t, "container")<<16 + rapid.Uint32Range(0, 65535).Draw(t, "id")
		})
		first := ends.Draw(t, "first")
		last := max(first, ends.Draw(t, "last"))
		want := small.Clone()
		if first > 0 {
			want.RemoveRange(0, first-1)
		}
		want.RemoveRange(last+1, idset.MaxID)
		bitmap, _ := idset.BitmapOf(small, first, last)
		require.True(t, want.Equal(bitmap))
	})
}

func TestTheEstimateIsWhatABitmapTakes(t *testing.T) {
	for _, c := range []struct {
		name        string
		set         *idset.Set
		first, last uint32
		bytes       int
	}{
		{"nothing", new(idset.Set), 0, idset.MaxID, 0},
		{"one id", idset.Of(70000), 0, idset.MaxID, 100 + 2},
		{"one id on either side", idset.Of(0, 65536), 0, idset.MaxID, 2 * (100 + 2)},
		{"a run", parse(t, "5-60000"), 0, idset.MaxID, 100 + 4},
		{"a run over four containers", parse(t, "5-200000"), 0, idset.MaxID, 4 * (100 + 4)},
		{"the two ids beside a bound", parse(t, "65535-65536"), 0, idset.MaxID, 2 * (100 + 2)},
		{"three ids", idset.Of(1, 3, 5), 0, idset.MaxID, 100 + 6},
		{"4096 ids", comb(4096, 2), 0, idset.MaxID, 100 + 8192},
		{"more than 4096 ids", comb(30000, 2), 0, idset.MaxID, 100 + 8192},
		{"cut to a run", idset.Of(1, 3, 5), 3, 3, 100 + 2},
		{"cut from a run", parse(t, "0-2147483647"), 65530, 65540, 100 + 4 + 100 + 4},
		{"cut to nothing", idset.Of(1, 3, 5), 4, 4, 0},
	} {
		bitmap, estimate := idset.BitmapOf(c.set, c.first, c.last)
		require.Equal(t, c.bytes, estimate, c.name)
		require.InDelta(t, c.bytes, bitmap.Memory(), float64(c.bytes)/20, c.name)
	}
	for name, text := range hostile() {
		s, err := idset.Parse(text)
		if err != nil {
			continue
		}
		bitmap, estimate := idset.BitmapOf(s, 0, idset.MaxID)
		require.InEpsilon(t, estimate, bitmap.Memory(), 0.05, name)
	}
	bitmap, estimate := idset.BitmapOf(mixed(100), 0, idset.MaxID)
	require.InEpsilon(t, estimate, bitmap.Memory(), 0.05)
}

func TestAContainerOfVeryManyRunsIsRepacked(t *testing.T) {
	s := parse(t, "0-65535").ForceBitmap()
	for id := uint32(1); id < 65536; id += 2 {
		require.True(t, s.Remove(id))
		require.LessOrEqual(t, s.Memory(), 12<<10)
	}
	require.Equal(t, 32768, s.Len())
	require.LessOrEqual(t, s.Memory(), 100+8192)
}

func TestLongRunsAreNotFilledIdById(t *testing.T) {
	race.Skip(t)
	s := new(idset.Set)
	for i := range uint32(60) {
		s.InsertRange(i*1000, i*1000+900)
	}
	require.LessOrEqual(t, bytesOf(func() { idset.BitmapOf(s, 0, idset.MaxID) }), 24<<10)
}
