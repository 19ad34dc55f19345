package idset_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/race"
)

// bytesOf returns about how many bytes a call of f allocates.
func bytesOf(f func()) int {
	const times = 10
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range times {
		f()
	}
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc-before.TotalAlloc) / times
}

// An operation that looked at more than it must would copy it too: what is
// allocated tells.
func TestTheCostOfAnOperationFollowsWhatItsOperandsShare(t *testing.T) {
	race.Skip(t)
	var (
		few    = parse(t, "100-200")
		most   = parse(t, "0-5,7-2147483647")
		lists  = comb(200, 100)  // a list, 200 runs
		short  = comb(9, 1000)   // a list, 9 runs
		words  = comb(5000, 2)   // one container of words
		large  = comb(200000, 5) // 16 of them, 130 KB
		huge   = hugeList()
		result *idset.Set
	)
	require.Equal(t, "list", lists.Representation())
	require.Equal(t, "list", short.Representation())
	require.Equal(t, "list", huge.Representation())
	require.Equal(t, "bitmap", words.Representation())
	require.Greater(t, large.Memory(), 120<<10)
	for _, c := range []struct {
		name  string
		op    func(a, b *idset.Set) *idset.Set
		a, b  *idset.Set
		bytes int
	}{
		{"a range in many", idset.Intersect, few, large, 12 << 10},
		{"many in a range", idset.Intersect, large, few, 12 << 10},
		{"a list in many", idset.Intersect, short, large, 20 << 10},
		{"many in a list", idset.Intersect, large, short, 20 << 10},
		{"a container in many", idset.Intersect, words, large, 20 << 10},
		{"many in a container", idset.Intersect, large, words, 20 << 10},
		{"words in nearly all ids", idset.Intersect, words, most, 20 << 10},
		{"nearly all ids in words", idset.Intersect, most, words, 20 << 10},
		{"words in huge ranges", idset.Intersect, words, huge, 20 << 10},
		{"huge ranges in words", idset.Intersect, huge, words, 20 << 10},
		{"words less huge ranges", idset.Difference, words, huge, 20 << 10},
		{"words less nearly all ids", idset.Difference, words, most, 20 << 10},
		{"a list less a longer one", idset.Difference, parse(t, "0,2,4,6,8,10,12,14,16"), lists, 512},
		{"a list in a longer one", idset.Intersect, parse(t, "0,2,4,6,8,10,12,14,16"), lists, 512},
	} {
		n := bytesOf(func() { result = c.op(c.a, c.b) })
		require.LessOrEqual(t, n, c.bytes, c.name)
		require.NoError(t, result.Check())
	}
}

func TestALargeResultIsABitmapAtOnce(t *testing.T) {
	require.Equal(t, "bitmap", parse(t, comb(257, 2).String()).Representation())
	require.Equal(t, "list", parse(t, comb(256, 2).String()).Representation())
	a, b := comb(128, 4), new(idset.Set)
	for i := range uint32(128) {
		b.Insert(4*i + 2)
	}
	require.Equal(t, "list", idset.Union(a, b).Representation())
	require.True(t, idset.Union(a, b).Equal(comb(256, 2)))
	a.Insert(600)
	require.Equal(t, "bitmap", idset.Union(a, b).Representation())
}
