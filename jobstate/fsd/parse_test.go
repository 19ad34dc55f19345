package fsd_test

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/stretchr/testify/require"
)

func TestParseReadsDecimalNumbersWithUnits(t *testing.T) {
	for in, want := range map[string]float64{
		"0": 0, "00": 0, "1": 1, "01s": 1, "30": 30, "+30s": 30,
		"1.": 1, ".5": .5, "5.h": 18000, ".5m": 30, "1.25h": 4500, "1.2d": 103680,
		"1e3": 1000, "1E3s": 1000, "1e+3": 1000, "1e-3s": .001, "1.5e1m": 900, "2e0d": 172800, "1e03ms": 1,
		"2ms": .002, "51ms": 0.051000000000000004, "9950ms": 9.950000000000001,
		"1e-400": 0, "4.9e-324ms": 0, "5e-324": 5e-324,
		"1.7976931348623157e308": math.MaxFloat64,
		" \t\n\v\f\r1m":          60,
		"-0":                     0, "-0s": 0, "-0.0ms": 0, "-1e-400": 0,
		"inf": math.Inf(1), "INF": math.Inf(1), "+iNf": math.Inf(1), " infinity": math.Inf(1), "InFiNiTy": math.Inf(1),
		"0." + strings.Repeat("0", 400) + "1": 0,
		strings.Repeat("0", 400) + "1":        1,
	} {
		seconds, err := fsd.ParseSeconds(in)
		require.NoError(t, err, "%q", in)
		require.Equal(t, want, seconds, "%q", in)
		require.False(t, math.Signbit(seconds), "%q", in)
	}
}

// How errors begin.
const (
	syntaxError = "fsd: syntax error"
	outOfRange  = "fsd: out of range"
)

func TestParseTellsWhereAndWhatIsWrong(t *testing.T) {
	for _, tt := range []struct {
		in       string
		category string
		offset   int
	}{
		// No digits.
		{"", syntaxError, 0}, {" ", syntaxError, 1}, {"s", syntaxError, 0}, {"ms", syntaxError, 0}, {"d", syntaxError, 0}, {"+", syntaxError, 1},
		{"-", syntaxError, 1}, {"--1", syntaxError, 1}, {"+-1", syntaxError, 1}, {"- 1", syntaxError, 1}, {".", syntaxError, 1},
		{".s", syntaxError, 1}, {".e3", syntaxError, 1}, {"e3", syntaxError, 0}, {"null", syntaxError, 0}, {"forever", syntaxError, 0},
		{"nan", syntaxError, 0}, {"-NaN", syntaxError, 1}, {"٣s", syntaxError, 0}, {"\xff", syntaxError, 0},
		// Numbers that go wrong later, and units.
		{"1..2", syntaxError, 2}, {"1.2.3", syntaxError, 3}, {"1,5", syntaxError, 1}, {"1_0", syntaxError, 1}, {"1e", syntaxError, 1},
		{"1es", syntaxError, 1}, {"1e+", syntaxError, 1}, {"1e+s", syntaxError, 1}, {"1e3.5", syntaxError, 3}, {"1e3e3", syntaxError, 3},
		{"1S", syntaxError, 1}, {"1M", syntaxError, 1}, {"1MS", syntaxError, 1}, {"1us", syntaxError, 1}, {"1min", syntaxError, 1},
		{"1w", syntaxError, 1}, {"1h30m", syntaxError, 1}, {"1:30", syntaxError, 1}, {"1 s", syntaxError, 1}, {"1s ", syntaxError, 1},
		{"1\n", syntaxError, 1}, {"1\x00", syntaxError, 1}, {" 1.5x", syntaxError, 4}, {"-1x", syntaxError, 2},
		// Hexadecimals.
		{"0x10", syntaxError, 1}, {"0X1p4s", syntaxError, 1}, {" +0x", syntaxError, 3}, {"00x1", syntaxError, 2},
		// Infinity.
		{"infs", syntaxError, 3}, {"infinit", syntaxError, 3}, {"infinityd", syntaxError, 8}, {"inf ", syntaxError, 3}, {"in", syntaxError, 0},
		{" -inf", outOfRange, 1}, {"-infs", syntaxError, 4},
		// Out of range.
		{"-1", outOfRange, 0}, {"\t-0.1h", outOfRange, 1}, {"-5e-324", outOfRange, 0},
		{"-4.9e-324ms", outOfRange, 0}, // nonzero before the unit
		{"-1e400", outOfRange, 0}, {"1e400", outOfRange, 0}, {"+1e400s", outOfRange, 1}, {"1.8e308", outOfRange, 0}, {"1e308m", outOfRange, 0},
		{"1e400ms", outOfRange, 0}, {"1e99999999999999999999", outOfRange, 0}, {strings.Repeat("1", 400), outOfRange, 0},
	} {
		got, err := fsd.Parse(tt.in)
		require.Zero(t, got, "%q", tt.in)
		require.ErrorContains(t, err, tt.category, "%q", tt.in)
		requireOffset(t, tt.in, tt.offset, err)
	}
}

// requireOffset wants an error to have an offset in a text, the given one unless
// that is negative, and to quote the text.
func requireOffset(t require.TestingT, text string, want int, err error) {
	_, at, _ := strings.Cut(err.Error(), ": offset ")
	number, _, _ := strings.Cut(at, ":")
	offset, parseErr := strconv.Atoi(number)
	require.NoError(t, parseErr, "%v", err)
	if want >= 0 {
		require.Equal(t, want, offset, "%v", err)
	}
	require.True(t, 0 <= offset && offset <= len(text), "%v", err)
	require.True(t, strings.HasSuffix(at, fmt.Sprintf(" in %q", text[:min(len(text), 64)])), "%v", err)
}
