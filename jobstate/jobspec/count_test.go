package jobspec_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/jobstate/jobspec"
)

// A count has three forms: a number, a text and an object.
func TestRFC14CountsHaveThreeForms(t *testing.T) {
	for _, test := range []struct {
		in, text, json string
		acceptable     []int64 // the first ones
	}{
		{"2", "2", `2`, []int64{2}},
		{"[2]", "2", `"2"`, []int64{2}},
		{"1048576", "1048576", `1048576`, []int64{1048576}},
		{"2147483647", "2147483647", `2147483647`, []int64{2147483647}},
		{"3-3", "3", `3`, []int64{3}},
		{"[3-3]", "3", ` {"min":3,"max":3} `, []int64{3}},
		{"7-9", "7-9", `{"min":7,"max":9,"operator":"+","operand":1}`, []int64{7, 8, 9}},
		{"[7-9]", "7-9", `{"max":9,"min":7}`, []int64{7, 8, 9}},
		{"2,3,4,5", "2-5", `{"min":2,"max":5,"operator":"+","operand":1}`, []int64{2, 3, 4, 5}},
		{"1,7-9,14,16", "1,7-9,14,16", `"1,7-9,14,16"`, []int64{1, 7, 8, 9, 14, 16}},
		{"[1-3,7-9,10]", "1-3,7-10", `"1-3,7-10"`, []int64{1, 2, 3, 7, 8, 9, 10}},
		{"2+", "2+", `{"min":2}`, []int64{2, 3, 4, 5}},
		{"[2+]", "2+", `"2+"`, []int64{2, 3}},
		{"2-5:3", "2-5:3", `{"min":2,"max":5,"operand":3}`, []int64{2, 5}},
		{"2-5:1:+", "2-5", `{"min":2,"max":5,"operator":"+"}`, []int64{2, 3, 4, 5}},
		{"2-8:2:*", "2-8:2:*", `{"min":2,"max":8,"operator":"*","operand":2}`, []int64{2, 4, 8}},
		{"2-9:2:*", "2-9:2:*", `{"min":2,"max":9,"operator":"*","operand":2}`, []int64{2, 4, 8}},
		{"2+:2:^", "2+:2:^", `{"min":2,"operator":"^","operand":2}`, []int64{2, 4, 16, 256, 65536}},
		{"3+:4", "3+:4", `{"min":3,"operator":"+","operand":4}`, []int64{3, 7, 11}},
		{"25-133:17:+", "25-133:17", `{"min":25,"max":133,"operator":"+","operand":17}`, []int64{25, 42, 59, 76, 93, 110, 127}},
	} {
		t.Run(test.in, func(t *testing.T) {
			c, err := jobspec.ParseCount(test.in)
			require.NoError(t, err)
			require.Equal(t, test.text, c.String())
			read, err := jobspec.ReadCount([]byte(test.json))
			require.NoError(t, err)
			require.Equal(t, c.String(), read.String())
			require.Equal(t, test.acceptable[0], c.Min())
			_, fixed := c.Fixed()
			require.Equal(t, len(test.acceptable) == 1, fixed)

			_, ok := c.Floor(test.acceptable[0] - 1)
			require.False(t, ok)
			for i, n := range test.acceptable {
				below := n // Floor is n up to the next one
				if i+1 < len(test.acceptable) {
					below = test.acceptable[i+1] - 1
				}
				for _, at := range []int64{n, (n + below) / 2, below} {
					got, ok := c.Floor(at)
					require.True(t, ok)
					require.Equal(t, n, got)
				}
			}
		})
	}
}

func TestTextsThatAreNoCountsAreRefused(t *testing.T) {
	for _, in := range []string{
		"", "[]", "0", "[0]", "00", "01", "x", "-5", "[-5]", "+2", "4.2", " 2", "2 ", "1-2x", "2-", "2-x", "3-2", "3-0",
		"0-", "[0-]", "3-2:1:+", "2-8:", "2-8:01", "2-8:0", "2-8:1;+", "2-8:2:", "2-8:2:/", "2-8:2:++", "2-8:1:*", "2-8:1:^", "1-8:2:^",
		"1,", ",1", "1,,2", "3,2", "2,2", "1-3,3", "01,2", "1,02", "2,3-3", "1,5-4", "1,2-x", "0,2", "1,2+", "1,2-4:2",
		"[2", "2]", "[[2]]", "[1,2]]", "1,[2", "[", "]", "[]2", "2+-", "2++",
	} {
		_, err := jobspec.ParseCount(in)
		require.ErrorContains(t, err, anyFault, "%q", in)
	}
	for _, in := range []string{"2147483648", "4294967297", "1-4294967297", "18446744073709551617", "1,2147483648", "2+:2147483648"} {
		_, err := jobspec.ParseCount(in)
		require.ErrorContains(t, err, tooMuch, "%q never wraps to another count", in)
	}
}

func TestAnErrorOfACountHasItsOffset(t *testing.T) {
	for in, offset := range map[string]int{
		"x": 0, "[x]": 1, "[]": 1, "2-x": 2, "[2-x]": 3, "1,02": 2, "[1,3,3]": 5, "2-8:2:": 6, "2-8:2:+x": 7, "7-3": 0, "1,2147483648": 2, "1,5-4": 2,
	} {
		_, err := jobspec.ParseCount(in)
		path, got := jobspec.Position(err)
		require.Equal(t, offset, got, in)
		require.Empty(t, path)
	}
	_, err := jobspec.ParseCount("2-8:2:/")
	require.EqualError(t, err, `jobspec: offset 0: operator must be "+", "*" or "^"`)
}

func TestAnInvalidCountIsRefused(t *testing.T) {
	for in, path := range map[string]string{
		`-1`: "", `1.0`: "", `1e3`: "", `true`: "", `null`: "", `[1]`: "", `"x"`: "", `""`: "",
		`{}`: "min", `{"max":3}`: "min", `{"man":4}`: "man", `{"min":0}`: "min", `{"min":"2"}`: "min", `{"min":-2,"max":6}`: "min",
		`{"min":4,"max":6,"operand":0,"operator":"+"}`:  "operand",
		`{"min":4,"max":6,"operand":-1,"operator":"+"}`: "operand",
		`{"min":3,"max":1,"operand":2,"operator":"+"}`:  "",
		`{"min":2,"max":16,"operand":1,"operator":"*"}`: "",
		`{"min":2,"max":16,"operand":1,"operator":"^"}`: "",
		`{"min":1,"max":16,"operand":2,"operator":"^"}`: "",
		`{"min":2,"max":16,"operand":1,"operator":"/"}`: "",
		`{"min":2,"operator":"++"}`:                     "operator",
		`{"min":2,"operator":1}`:                        "operator",
	} {
		_, err := jobspec.ReadCount([]byte(in))
		require.ErrorContains(t, err, anyFault, in)
		got, _ := jobspec.Position(err)
		require.Equal(t, path, got, in)
	}
	_, err := jobspec.ReadCount([]byte(`2147483648`))
	require.ErrorContains(t, err, tooMuch)
}

func TestTheZeroCountAcceptsNothing(t *testing.T) {
	var c jobspec.Count
	require.True(t, c.IsZero())
	require.Empty(t, c.String())
	require.Zero(t, c.Min())
	_, ok := c.Floor(jobspec.MaxCount)
	require.False(t, ok)
	require.False(t, c.Contains(0))
	_, ok = c.Fixed()
	require.False(t, ok)
}

func TestFixedPanicsOutOfRange(t *testing.T) {
	for _, n := range []int64{-1, 0, jobspec.MaxCount + 1} {
		require.Panics(t, func() { jobspec.Fixed(n) }, n)
	}
	n, ok := jobspec.Fixed(jobspec.MaxCount).Fixed()
	require.True(t, ok)
	require.EqualValues(t, jobspec.MaxCount, n)
}

// requireRoundTrip requires that what c prints reads as c.
func requireRoundTrip(t require.TestingT, c jobspec.Count) {
	read, err := jobspec.ParseCount(c.String())
	require.NoError(t, err)
	require.Equal(t, c, read)
}

func TestFloorOfAnOpenRangeStopsAtMaxCount(t *testing.T) {
	for in, want := range map[string]int64{
		"2+":         jobspec.MaxCount,
		"1+:2":       jobspec.MaxCount,
		"2+:2":       jobspec.MaxCount - 1,
		"1+:2:*":     1 << 30,
		"2+:2:^":     1 << 16,
		"46341+:2:^": 46341, // its square is just beyond
		"5":          5,
		"1,9":        9,
	} {
		c, err := jobspec.ParseCount(in)
		require.NoError(t, err)
		for _, n := range []int64{jobspec.MaxCount, jobspec.MaxCount + 1, 1<<63 - 1} {
			got, ok := c.Floor(n)
			require.True(t, ok)
			require.Equal(t, want, got, in)
		}
	}
}
