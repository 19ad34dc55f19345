package fsd_test

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

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

func TestParseTellsWhereAndWhatIsWrong(t *testing.T) {
	for _, tt := range []struct {
		in       string
		category error
		offset   int
	}{
		// No digits.
		{"", fsd.ErrSyntax, 0},
		{" ", fsd.ErrSyntax, 1},
		{"s", fsd.ErrSyntax, 0},
		{"ms", fsd.ErrSyntax, 0},
		{"d", fsd.ErrSyntax, 0},
		{"+", fsd.ErrSyntax, 1},
		{"-", fsd.ErrSyntax, 1},
		{"--1", fsd.ErrSyntax, 1},
		{"+-1", fsd.ErrSyntax, 1},
		{"- 1", fsd.ErrSyntax, 1},
		{".", fsd.ErrSyntax, 1},
		{".s", fsd.ErrSyntax, 1},
		{".e3", fsd.ErrSyntax, 1},
		{"e3", fsd.ErrSyntax, 0},
		{"null", fsd.ErrSyntax, 0},
		{"forever", fsd.ErrSyntax, 0},
		{"nan", fsd.ErrSyntax, 0},
		{"-NaN", fsd.ErrSyntax, 1},
		{"٣s", fsd.ErrSyntax, 0},
		{"\xff", fsd.ErrSyntax, 0},
		// Numbers that go wrong later, and units.
		{"1..2", fsd.ErrSyntax, 2},
		{"1.2.3", fsd.ErrSyntax, 3},
		{"1,5", fsd.ErrSyntax, 1},
		{"1_0", fsd.ErrSyntax, 1},
		{"1e", fsd.ErrSyntax, 1},
		{"1es", fsd.ErrSyntax, 1},
		{"1e+", fsd.ErrSyntax, 1},
		{"1e+s", fsd.ErrSyntax, 1},
		{"1e3.5", fsd.ErrSyntax, 3},
		{"1e3e3", fsd.ErrSyntax, 3},
		{"1S", fsd.ErrSyntax, 1},
		{"1M", fsd.ErrSyntax, 1},
		{"1MS", fsd.ErrSyntax, 1},
		{"1us", fsd.ErrSyntax, 1},
		{"1min", fsd.ErrSyntax, 1},
		{"1w", fsd.ErrSyntax, 1},
		{"1h30m", fsd.ErrSyntax, 1},
		{"1:30", fsd.ErrSyntax, 1},
		{"1 s", fsd.ErrSyntax, 1},
		{"1s ", fsd.ErrSyntax, 1},
		{"1\n", fsd.ErrSyntax, 1},
		{"1\x00", fsd.ErrSyntax, 1},
		{" 1.5x", fsd.ErrSyntax, 4},
		{"-1x", fsd.ErrSyntax, 2},
		// Hexadecimals.
		{"0x10", fsd.ErrSyntax, 1},
		{"0X1p4s", fsd.ErrSyntax, 1},
		{" +0x", fsd.ErrSyntax, 3},
		{"00x1", fsd.ErrSyntax, 2},
		// Infinity.
		{"infs", fsd.ErrSyntax, 3},
		{"infinit", fsd.ErrSyntax, 3},
		{"infinityd", fsd.ErrSyntax, 8},
		{"inf ", fsd.ErrSyntax, 3},
		{"in", fsd.ErrSyntax, 0},
		{" -inf", fsd.ErrRange, 1},
		{"-infs", fsd.ErrSyntax, 4},
		// Out of range.
		{"-1", fsd.ErrRange, 0},
		{"\t-0.1h", fsd.ErrRange, 1},
		{"-5e-324", fsd.ErrRange, 0},
		{"-4.9e-324ms", fsd.ErrRange, 0}, // nonzero before the unit
		{"-1e400", fsd.ErrRange, 0},
		{"1e400", fsd.ErrRange, 0},
		{"+1e400s", fsd.ErrRange, 1},
		{"1.8e308", fsd.ErrRange, 0},
		{"1e308m", fsd.ErrRange, 0},
		{"1e400ms", fsd.ErrRange, 0},
		{"1e99999999999999999999", fsd.ErrRange, 0},
		{strings.Repeat("1", 400), fsd.ErrRange, 0},
	} {
		got, err := fsd.Parse(tt.in)
		require.Zero(t, got, "%q", tt.in)
		require.ErrorIs(t, err, tt.category, "%q", tt.in)
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

func TestAParseErrorReadsAsOneLine(t *testing.T) {
	_, err := fsd.Parse("1h\n30m")
	require.EqualError(t, err, `fsd: syntax error: offset 1: neither a digit nor a unit at the end in "1h\n30m"`)
	_, err = fsd.Parse("0x1d")
	require.EqualError(t, err, `fsd: syntax error: offset 1: a hexadecimal number in "0x1d"`)
	_, err = fsd.Parse("00x1d")
	require.EqualError(t, err, `fsd: syntax error: offset 2: neither a digit nor a unit at the end in "00x1d"`)
	_, err = fsd.Parse("-1")
	require.EqualError(t, err, `fsd: out of range: offset 0: a negative number in "-1"`)
}

func TestAParseErrorKeepsNoReferenceToTheInput(t *testing.T) {
	b := []byte("1x")
	var d fsd.Duration
	err := d.UnmarshalText(b)
	text := err.Error()
	copy(b, "ZZ")
	require.Equal(t, text, err.Error())
}

func TestAFailedUnmarshalLeavesTheDurationAsItWas(t *testing.T) {
	d := fsd.Duration(7)
	require.ErrorIs(t, d.UnmarshalText([]byte("1x")), fsd.ErrSyntax)
	require.ErrorIs(t, d.UnmarshalText([]byte("-1")), fsd.ErrRange)
	require.ErrorIs(t, d.UnmarshalText([]byte("1e400")), fsd.ErrRange)
	require.ErrorIs(t, d.UnmarshalText(nil), fsd.ErrSyntax)
	require.Equal(t, fsd.Duration(7), d)
	require.NoError(t, d.UnmarshalText([]byte("1m")))
	require.Equal(t, of(time.Minute), d)
}
