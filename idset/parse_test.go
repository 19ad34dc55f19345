package idset_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/race"
)

// ID-3.
func TestASyntaxErrorTellsOffsetCauseAndToken(t *testing.T) {
	for _, c := range []struct {
		in     string
		offset int
		text   string
	}{
		{",", 0, `empty element in ""`},
		{"1,", 2, `empty element in ""`},
		{"1,,2", 2, `empty element in ""`},
		{"[1,]", 3, `empty element in ""`},
		{"5-", 2, `empty element in "5-"`},
		{"5-,6", 2, `empty element in "5-"`},
		{"x", 0, `unexpected byte in "x"`},
		{"2,3x4,5", 3, `unexpected byte in "3x4"`},
		{"1-2-3", 3, `unexpected byte in "1-2-3"`},
		{"-5", 0, `unexpected byte in "-5"`},
		{"1,\xff\x00", 2, `unexpected byte in "\xff\x00"`},
		{"1,007", 2, `leading zero in "007"`},
		{"1-02", 2, `leading zero in "1-02"`},
		{"1,3,2,9", 4, `not above the ids before it in "2"`},
		{"1-3,3-4", 4, `not above the ids before it in "3-4"`},
		{"5-5", 2, `range does not ascend in "5-5"`},
		{"1,9-8", 4, `range does not ascend in "9-8"`},
		{"[1,2", 4, `bracket is not closed in "2"`},
		{"[", 1, `bracket is not closed in "["`},
		{"[1],2", 5, `bracket is not closed in "2"`},
		{"1]", 1, `unexpected byte in "1]"`},
		{"[[1]]", 1, `unexpected byte in "[1]"`},
		{strings.Repeat("1", 5) + strings.Repeat("y", 100), 5,
			`unexpected byte in "11111` + strings.Repeat("y", 59) + `"`},
	} {
		_, err := idset.Parse(c.in)
		require.ErrorContains(t, err, syntaxError)
		require.EqualError(t, err, fmt.Sprintf("idset: syntax error: offset %d: %s", c.offset, c.text))
		require.NotErrorIs(t, err, idset.ErrRange)
	}
}

// ID-1: 2^31 and everything above is refused by name, at every place.
func TestIdsAboveTheLargestAreRefusedAndNeverWrap(t *testing.T) {
	for _, id := range []string{
		"2147483648", "4294967295", "4294967296", "4294967297", "9223372036854775807", "9223372036854775808",
		"18446744073709551615", "18446744073709551616", "18446744073709551617", "340282366920938463463374607431768211456",
	} {
		for _, c := range []struct {
			in     string
			offset int
		}{{id, 0}, {"[" + id + "]", 1}, {"0-" + id, 2}, {"5," + id, 2}, {id + "-" + id + "0", 0}, {id + ",1", 0}} {
			s, err := idset.Parse(c.in)
			require.ErrorIs(t, err, idset.ErrRange)
			require.EqualError(t, err, fmt.Sprintf("idset: id out of range: offset %d: %q is above 2147483647", c.offset, id))
			require.Nil(t, s)
		}
	}
	_, err := idset.Parse(strings.Repeat("9", 1000))
	require.EqualError(t, err, fmt.Sprintf("idset: id out of range: offset 0: %q is above 2147483647", strings.Repeat("9", 64)))

	s := parse(t, "0-2147483647")
	require.True(t, s.Contains(idset.MaxID))
	require.Equal(t, "2147483647", parse(t, "2147483647").String())
}

func TestTheLargestIdCanBeLowered(t *testing.T) {
	for _, c := range []struct {
		max uint32
		in  string
		ok  bool
	}{
		{0, "0", true}, {0, "1", false}, {0, "", true}, {0, "0-1", false},
		{9, "0-9", true}, {9, "0-10", false}, {9, "10", false}, {10, "10", true},
		{idset.MaxID, "2147483647", true}, {idset.MaxID, "2147483648", false},
		{1<<32 - 1, "2147483647", true}, {1<<32 - 1, "2147483648", false},
	} {
		_, err := idset.ParseLimit(c.in, c.max)
		if c.ok {
			require.NoError(t, err, c)
			continue
		}
		require.ErrorIs(t, err, idset.ErrRange)
		require.ErrorContains(t, err, fmt.Sprintf(" is above %d", min(c.max, idset.MaxID)))
	}
}

func TestTextsAboveTheLimitAreRefusedUnread(t *testing.T) {
	tail := strings.Repeat("x", idset.MaxText)
	for name, try := range map[string]func(string) error{
		"Parse":         func(s string) error { _, err := idset.Parse(s); return err },
		"ParseLimit":    func(s string) error { _, err := idset.ParseLimit(s, 9); return err },
		"UnmarshalText": func(s string) error { return new(idset.Set).UnmarshalText([]byte(s)) },
	} {
		require.ErrorContains(t, try(tail), syntaxError, name)
		err := try(tail + "x")
		require.ErrorIs(t, err, idset.ErrLimit, name)
		require.EqualError(t, err, "idset: limit exceeded: 4194305 bytes, at most 4194304 are allowed")
	}
}

func TestAfterAnErrorUnmarshalTextLeavesTheSet(t *testing.T) {
	for _, rep := range representations {
		s := rep.force(parse(t, "1-3,7"))
		for _, in := range []string{"1,", "9,4294967296", "[2", strings.Repeat("1,", idset.MaxText)} {
			require.Error(t, s.UnmarshalText([]byte(in)))
			require.Equal(t, "1-3,7", s.String())
			require.NoError(t, s.Check())
		}
		require.NoError(t, s.UnmarshalText([]byte("[2,5]")))
		require.Equal(t, "2,5", s.String())
		require.NoError(t, s.Check())
		require.NoError(t, s.UnmarshalText(nil))
		require.True(t, s.IsEmpty())
	}
}

// proportionate is the bound that the documentation of Parse names.
const proportionate = 128

// hostile are texts that once cost, or could cost, out of proportion.
func hostile() map[string]string {
	list := func(n int, element func(i int) string) string {
		parts := make([]string, n)
		for i := range parts {
			parts[i] = element(i)
		}
		return strings.Join(parts, ",")
	}
	random := rand.New(rand.NewPCG(22, 0))
	scattered := new(idset.Set)
	for range 30000 {
		scattered.Insert(random.Uint32() & idset.MaxID)
	}
	return map[string]string{
		"every id there is":            "0-2147483647",
		"nine runs, one of them huge":  "1,3,5,7,9,11,13,15,17,100-2147483647",
		"many runs, one of them huge":  list(8000, func(i int) string { return fmt.Sprint(2 * i) }) + ",20000-2147483647",
		"one id in each container":     list(32768, func(i int) string { return fmt.Sprint(i << 16) }),
		"dense at the start, then not": list(10000, func(i int) string { return fmt.Sprint(i * i * 2) }),
		"every second id":              list(50000, func(i int) string { return fmt.Sprint(2 * i) }),
		"every id, id by id":           list(50000, func(i int) string { return fmt.Sprint(i) }),
		"ten runs, then id by id":      "0,2,4,6,8,10,12,14,16,18," + list(50000, func(i int) string { return fmt.Sprint(20 + i) }),
		"half of each container":       list(3000, func(i int) string { return fmt.Sprintf("%d-%d", i<<16, i<<16+32768) }),
		"half, and a little beside it": list(6000, func(i int) string {
			return []string{fmt.Sprint(i / 2 << 16), fmt.Sprintf("%d-%d", i/2<<16+2, i/2<<16+4001)}[i%2]
		}),
		"scattered over everything": scattered.String(),
		"a bad end":                 list(50000, func(i int) string { return fmt.Sprint(2 * i) }) + ",x",
	}
}

// ID-2, I12 of the design: no text makes Parse use memory out of proportion, in
// what it keeps as in what it takes on the way.
func TestNoTextCostsMemoryOutOfProportion(t *testing.T) {
	for name, text := range hostile() {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		s, err := idset.Parse(text)
		runtime.ReadMemStats(&after)
		if name == "a bad end" {
			require.ErrorContains(t, err, syntaxError)
		} else {
			require.NoError(t, err, name)
			require.NoError(t, s.Check(), name)
			require.True(t, s.Equal(parse(t, s.String())), name)
			require.LessOrEqual(t, s.Memory(), proportionate*len(text), name)
			require.LessOrEqual(t, s.Memory(), 128*runs(s)+16384, name)
		}
		used := after.TotalAlloc - before.TotalAlloc
		if race.Enabled {
			continue
		}
		require.LessOrEqual(t, used, uint64(proportionate*len(text)+4096), "%s: %d bytes of text", name, len(text))
	}
}

func TestManyRangesAreReadAndPrintedAsIDByID(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts, ids := drawManyRanges(t)
		text := strings.Join(parts, ",")
		s := parse(t, text)
		require.LessOrEqual(t, s.Memory(), proportionate*len(text)+64)
		for _, rep := range representations {
			s = rep.force(s)
			require.Equal(t, textOf(ids), s.String(), rep.name)
			require.Equal(t, ids, slices.Collect(s.All()), rep.name)
		}

		at := rapid.IntRange(0, len(parts)-1).Draw(t, "at")
		wrong := rapid.SampledFrom([]string{"", "07", "x", "3000000000", "1234567890123"}).Draw(t, "wrong")
		offset := len(strings.Join(parts[:at], ","))
		if at > 0 {
			offset++ // the comma
		}
		_, err := idset.Parse(strings.Join(slices.Insert(parts, at, wrong), ","))
		require.ErrorContains(t, err, fmt.Sprintf(" offset %d:", offset))
	})
}

// drawManyRanges draws the text and the ids of more ranges than a list has, most in the
// first container.
func drawManyRanges(t *rapid.T) (parts []string, ids []uint32) {
	next := rapid.Uint32Range(0, 80000).Draw(t, "from")
	gap, length := rapid.Uint32Range(0, 300).Draw(t, "gap"), rapid.Uint32Range(0, 200).Draw(t, "length")
	random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
	for range rapid.IntRange(idset.MaxShort-10, 2*idset.MaxShort).Draw(t, "parts") {
		first := next + random.Uint32N(gap+1)
		last := first + random.Uint32N(length+1)
		part := fmt.Sprint(first)
		if last > first {
			part = fmt.Sprintf("%d-%d", first, last)
		}
		parts, next = append(parts, part), last+1
		for id := first; id <= last; id++ {
			ids = append(ids, id)
		}
	}
	return parts, ids
}
