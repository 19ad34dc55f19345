package jsonobj

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestIntegersAreReadInTheirRange(t *testing.T) {
	for _, tt := range []struct {
		in       string
		i        int64
		iOK      bool
		floating bool // a number token, integer or not
	}{
		{"0", 0, true, true},
		{"-0", 0, true, true},
		{"42", 42, true, true},
		{"-1", -1, true, true},
		{"9223372036854775807", math.MaxInt64, true, true},
		{"9223372036854775808", 0, false, true},
		{"-9223372036854775808", math.MinInt64, true, true},
		{"-9223372036854775809", 0, false, true},
		{"18446744073709551615", 0, false, true},
		{"18446744073709551616", 0, false, true},
		{"18446744073709551620", 0, false, true},
		{"99999999999999999999", 0, false, true},
		{"100000000000000000000", 0, false, true},
		{"1.0", 0, false, true},
		{"1e2", 0, false, true},
		{"", 0, false, false},
		{"-", 0, false, false},
		{"--1", 0, false, false},
		{"01", 0, false, false},
		{"-01", 0, false, false},
		{"+1", 0, false, false},
		{" 1", 0, false, false},
		{"1 ", 0, false, false},
		{"0x1", 0, false, false},
		{"1_000", 0, false, false},
		{"\"1\"", 0, false, false},
		{"inf", 0, false, false},
		{"nan", 0, false, false},
	} {
		i, ok := Int64([]byte(tt.in))
		require.Equal(t, tt.iOK, ok, tt.in)
		if ok {
			require.Equal(t, tt.i, i, tt.in)
		}
		require.Equal(t, tt.floating && !strings.ContainsAny(tt.in, ".e"), IsInteger([]byte(tt.in)), tt.in)
		f, ok := Float64([]byte(tt.in))
		require.Equal(t, tt.floating, ok, tt.in)
		if ok {
			want, err := strconv.ParseFloat(tt.in, 64)
			require.NoError(t, err)
			require.Equal(t, want, f)
		}
	}
}

func TestFloatsAreReadAsStrconvReadsThem(t *testing.T) {
	for _, in := range []string{
		"0.0", "-0.0", "0.5", "1.5", "-2.25", "1e3", "1E-3", "5e-324", "2e-324", "1e-400", "1.7976931348623157e308",
		"1795226020.2783487", "1552593348.073045", "1.0", "9.9999999999999999", "9007199254740993.0", "9007199254740992.5", "9007199254740993.5",
		"1234567890123456789.0", "1234567890.123456789", "9999999999999999999.9", "1.000000000000000001", "1.0000000000000000011",
		"4503599627370497.5", "4503599627370496.5", "1.00000000000000011102230246251565404236316680908203125",
		"8000000000000000000.5", "0.1000000000000000055511151231257827", strings.Repeat("9", 308) + ".0",
	} {
		want, err := strconv.ParseFloat(in, 64)
		require.NoError(t, err)
		f, ok := Float64([]byte(in))
		require.True(t, ok, in)
		require.Equal(t, math.Float64bits(want), math.Float64bits(f), in)
		// With more text behind, the way for times is taken.
		g, integer, end, ok := FloatAt([]byte("xy"+in+`,"name":`), 2)
		require.True(t, ok, in)
		require.Equal(t, math.Float64bits(want), math.Float64bits(g), in)
		require.False(t, integer)
		require.Equal(t, len(in)+2, end)
	}
	for _, in := range []string{"1e309", "-1e400", "1.", "1.e5", ".5", "1e", "1e+", "-", "", "x", strings.Repeat("9", 310)} {
		_, ok := Float64([]byte(in))
		require.False(t, ok, in)
		_, _, _, ok = FloatAt([]byte(in+`,"name":"x"`), 0)
		require.False(t, ok, in)
	}
	_, integer, end, ok := FloatAt([]byte(`42,"name":"x"`), 0)
	require.True(t, integer && ok)
	require.Equal(t, 2, end)
	_, _, end, ok = FloatAt([]byte(`1.5e2,"name":"x"`), 0)
	require.True(t, ok)
	require.Equal(t, 5, end)
}

// TestTimesAreReadExactly covers each number of digits before and after the
// point, and so each power of ten that is divided by.
func TestTimesAreReadExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 21).Draw(t, "digits")
		digits := rapid.StringOfN(rapid.RuneFrom([]rune("0123456789")), n, n, -1).Draw(t, "number")
		point := rapid.IntRange(1, n-1).Draw(t, "point")
		in := strings.TrimLeft(digits[:point], "0")
		if in == "" {
			in = "0"
		}
		in += "." + digits[point:]
		want, err := strconv.ParseFloat(in, 64)
		require.NoError(t, err)
		got, _, end, ok := FloatAt([]byte(in+"         "), 0)
		require.True(t, ok)
		require.Equal(t, len(in), end)
		require.Equal(t, math.Float64bits(want), math.Float64bits(got), in)
	})
}

// TestTiesAreRoundedToEven reads numbers that lie halfway between two float64,
// and those next to them.
func TestTiesAreRoundedToEven(t *testing.T) {
	for e := range 9 { // the unit in the last place is 2^-e, half of it 2^-(e+1)
		for m := uint64(1<<53 - 40); m < 1<<53; m++ {
			half := strconv.FormatFloat(math.Ldexp(0.5, -e), 'f', -1, 64)[1:] // ".5", ".25"
			whole := m >> e
			if m&(1<<e-1) != 0 {
				continue
			}
			for _, in := range []string{
				fmt.Sprint(whole) + half, fmt.Sprint(whole) + half + "1", fmt.Sprint(whole) + half[:len(half)-1] + "4",
			} {
				want, err := strconv.ParseFloat(in, 64)
				require.NoError(t, err)
				got, _, _, ok := FloatAt([]byte(in+"         "), 0)
				require.True(t, ok)
				require.Equal(t, want, got, in)
			}
		}
	}
}

// cFormat returns C's %.17g of f, from Go's, whose only difference JSON's
// library of Flux removes anyway, with what that library does to it.
func cFormat(f float64) string {
	s := fmt.Sprintf("%.17g", f)
	mantissa, exp, has := strings.Cut(s, "e")
	if !has {
		if !strings.Contains(s, ".") {
			s += ".0"
		}
		return s
	}
	sign := ""
	if exp[0] == '-' {
		sign = "-"
	}
	return mantissa + "e" + sign + strings.TrimLeft(exp[1:], "0")
}

func TestFloatsArePrintedAsFluxPrintsThem(t *testing.T) {
	// Taken from what the reference printed, or C's printf.
	for in, want := range map[float64]string{
		0: "0.0", math.Copysign(0, -1): "-0.0", 1: "1.0", -1: "-1.0", 42: "42.0", 0.5: "0.5", 100000: "100000.0", 0.001: "0.001", 0.0001: "0.0001",
		0.00001: "1.0000000000000001e-5", 0.1: "0.10000000000000001", 0.3: "0.29999999999999999", 3.141592653589793: "3.1415926535897931",
		1e15: "1000000000000000.0", 1e16: "10000000000000000.0", 1e17: "1e17", 1e18: "1e18", 1e21: "1e21", 1e22: "1e22", 1e23: "9.9999999999999992e22",
		123456789012345678: "1.2345678901234568e17", 12345678901234567: "12345678901234568.0",
		1e308: "1e308", math.MaxFloat64: "1.7976931348623157e308", 5e-324: "4.9406564584124654e-324", 2.2250738585072014e-308: "2.2250738585072014e-308",
		1552593348.073045: "1552593348.073045", 1552593348.0881419: "1552593348.0881419", 1700000000: "1700000000.0", 1676794954.274: "1676794954.2739999",
		1e9: "1000000000.0", 999999999.99999988: "999999999.99999988", 9999999999: "9999999999.0", 1e10: "10000000000.0",
		9999999999.9999981: "9999999999.9999981", 1000000000.00390625: "1000000000.0039062",
		1000000000.01171875: "1000000000.0117188", 5.9303843354206742e103: "5.9303843354206742e103", -526934.5884907732: "-526934.58849077323",
	} {
		require.Equal(t, want, string(AppendFloat(nil, in)))
		require.Equal(t, want, cFormat(in))
	}
}

// requireFloatReadsBack requires that a number is printed as C does, and reads back.
func requireFloatReadsBack(t require.TestingT, f float64) {
	got := AppendFloat([]byte("x"), f)
	require.Equal(t, "x"+cFormat(f), string(got))
	back, ok := Float64(got[1:])
	require.True(t, ok)
	require.Equal(t, math.Float64bits(f), math.Float64bits(back))
	require.False(t, IsInteger(got[1:]))
}

func TestPrintedFloatsAreThoseOfC(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		if f := math.Float64frombits(rapid.Uint64().Draw(t, "bits")); !math.IsInf(f, 0) && !math.IsNaN(f) {
			requireFloatReadsBack(t, f)
		}
		low, high := math.Float64bits(9e8), math.Float64bits(1.1e10)
		requireFloatReadsBack(t, math.Float64frombits(rapid.Uint64Range(low, high).Draw(t, "time")))
	})
	// Eight digits after ten others, the last one a five.
	for i := range 1 << 12 {
		f := 1e9 + float64(i)/256
		for _, f := range []float64{f, math.Nextafter(f, 0), math.Nextafter(f, 1e10), 1e10 - float64(i)/256} {
			requireFloatReadsBack(t, f)
		}
	}
}

func TestPrintingWhatIsNotFinitePanics(t *testing.T) {
	for _, f := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		require.Panics(t, func() { AppendFloat(nil, f) })
	}
}
