package idset_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife/idset"
)

// plainRoaring is the parser that one would write first, for texts without an error.
func plainRoaring(text string) (*roaring.Bitmap, error) {
	set := roaring.New()
	for _, part := range strings.Split(text, ",") {
		low, high, isRange := strings.Cut(part, "-")
		first, err := strconv.ParseUint(low, 10, 31)
		if err != nil {
			return nil, err
		}
		if !isRange {
			set.Add(uint32(first))
			continue
		}
		last, err := strconv.ParseUint(high, 10, 31)
		if err != nil {
			return nil, err
		}
		set.AddRange(first, last+1)
	}
	return set, nil
}

// plainText prints the ranges of a bitmap.
func plainText(dst []byte, b *roaring.Bitmap) []byte {
	for first, end := range b.Ranges() {
		if len(dst) > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendUint(dst, uint64(first), 10)
		if last := end - 1; last > uint64(first) {
			dst = append(dst, '-')
			dst = strconv.AppendUint(dst, last, 10)
		}
	}
	return dst
}

// manyRanges draws the text of more ranges than a list has, most in the first container.
var manyRanges = rapid.Custom(func(t *rapid.T) []string {
	var parts []string
	next := rapid.Uint64Range(0, 80000).Draw(t, "from")
	gap, length := rapid.Uint64Range(0, 300).Draw(t, "gap"), rapid.Uint64Range(0, 200).Draw(t, "length")
	random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
	for range rapid.IntRange(idset.MaxShort-10, 2*idset.MaxShort).Draw(t, "parts") {
		first := next + random.Uint64N(gap+1)
		last := first + random.Uint64N(length+1)
		part := strconv.FormatUint(first, 10)
		if last > first {
			part += "-" + strconv.FormatUint(last, 10)
		}
		parts = append(parts, part)
		next = last + 1
	}
	return parts
})

func TestManyRangesAreReadAndPrintedAsByThePlainVersion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := manyRanges.Draw(t, "parts")
		text := strings.Join(parts, ",")
		want, err := plainRoaring(text)
		require.NoError(t, err)
		s, err := idset.Parse(text)
		require.NoError(t, err)
		require.NoError(t, s.Check())
		require.LessOrEqual(t, s.Memory(), proportionate*len(text)+64)
		canonical := string(plainText(nil, want))
		ids := want.ToArray()
		for _, rep := range representations {
			s = rep.force(s)
			require.Equal(t, canonical, s.String(), rep.name)
			require.Equal(t, ids, slices.Collect(s.All()), rep.name)
		}

		at := rapid.IntRange(0, len(parts)-1).Draw(t, "at")
		wrong := rapid.SampledFrom([]string{"", "07", "x", "3000000000", "1234567890123"}).Draw(t, "wrong")
		text = strings.Join(slices.Insert(slices.Clone(parts), at, wrong), ",")
		offset := 0
		for _, part := range parts[:at] {
			offset += len(part) + 1
		}
		_, err = idset.Parse(text)
		require.ErrorContains(t, err, fmt.Sprintf(" offset %d:", offset))
	})
}

// BenchmarkRatio works with every third id below 16384, in turns with roaring alone and
// with a sorted slice, and reports how many times faster this package is: the shortest
// turn of either, for on a busy host the others measure what else runs there.
func BenchmarkRatio(b *testing.B) {
	for _, n := range []uint32{16384, 100000} {
		set := comb(n/3+1, 3)
		text := set.String()
		bitmap, err := plainRoaring(text)
		require.NoError(b, err)
		slice := bitmap.ToArray()
		require.Equal(b, text, string(plainText(nil, bitmap)))
		random := rand.New(rand.NewPCG(1, 2))
		ask := make([]uint32, 4096)
		for i := range ask {
			ask[i] = random.Uint32N(n)
		}
		dst := make([]byte, 0, len(text))
		sum, found := uint64(0), 0
		many := make([]uint32, 256)
		print := func() { dst, _ = set.AppendText(dst[:0]) }
		contains := func() {
			for _, id := range ask {
				if set.Contains(id) {
					found++
				}
			}
		}
		all := func() {
			for id := range set.All() {
				sum += uint64(id)
			}
		}
		parseText := func() { _, _ = idset.Parse(text) }
		for _, c := range []struct {
			name         string
			ids          int
			ours, theirs func()
		}{
			{"parse beside roaring", len(slice), parseText, func() { _, _ = plainRoaring(text) }},
			{"print beside roaring", len(slice), print, func() { dst = plainText(dst[:0], bitmap) }},
			{"all beside many-iterator", len(slice), all, func() {
				it := bitmap.ManyIterator()
				for n := it.NextMany(many); n > 0; n = it.NextMany(many) {
					for _, id := range many[:n] {
						sum += uint64(id)
					}
				}
			}},
			{"all beside values", len(slice), all, func() {
				for id := range roaring.Values(bitmap) {
					sum += uint64(id)
				}
			}},
			{"contains beside roaring", len(ask), contains, func() {
				for _, id := range ask {
					if bitmap.Contains(id) {
						found++
					}
				}
			}},
			{"contains beside slice", len(ask), contains, func() {
				for _, id := range ask {
					if _, ok := slices.BinarySearch(slice, id); ok {
						found++
					}
				}
			}},
		} {
			b.Run(c.name+"/"+strconv.Itoa(int(n)), func(b *testing.B) {
				best := [2]time.Duration{time.Hour, time.Hour}
				for b.Loop() {
					for i, f := range []func(){c.ours, c.theirs} {
						before := b.Elapsed()
						f()
						best[i] = min(best[i], b.Elapsed()-before)
					}
				}
				b.ReportMetric(float64(best[1])/float64(best[0]), "times-plain")
				b.ReportMetric(float64(best[0])/float64(c.ids), "ns/id")
			})
		}
	}
}
