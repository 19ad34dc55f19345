package fsd_test

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestFormatRoundsAndChoosesTheUnitFirst(t *testing.T) {
	for _, tt := range []struct {
		d      fsd.Duration
		digits int
		want   string
	}{
		{0, 6, "0s"},
		{fsd.Duration(negZero), 6, "0s"},
		{5e-324, 6, "4.94066e-321ms"},
		{0.0999999, 6, "99.9999ms"},
		{0.1, 6, "0.1s"},
		{59.9999999, 6, "60s"},
		{59.9999999, 10, "59.9999999s"},
		{60, 6, "1m"},
		{3599.9999999, 6, "60m"},
		{3600, 6, "1h"},
		{86399.9999, 6, "24h"},
		{86400, 6, "1d"},
		{86400e6, 6, "1e+06d"},
		{86400e6, 7, "1000000d"},
		{62, 6, "1.03333m"},
		{62, 2, "1m"},
		{869, 1, "1e+01m"},
		{869, 0, "1e+01m"},
		{869, -5, "1e+01m"},
		{0.1, 17, "0.10000000000000001s"},
		{0.1, 18, "0.10000000000000001s"},
		{0.1, math.MaxInt32, "0.10000000000000001s"},
		{math.MaxFloat64, 6, "2.08066e+303d"},
		{fsd.Infinity(), 1, "infinity"},
		{-1, 6, "Duration(-1)"},
		{-1.25, 1, "Duration(-1.25)"},
		{-fsd.Infinity(), 6, "Duration(-Inf)"},
		{fsd.Duration(nan), 6, "Duration(NaN)"},
		{-math.MaxFloat64, 6, "Duration(-1.7976931348623157e+308)"}, // the longest
	} {
		require.Equal(t, tt.want, tt.d.Format(tt.digits), "%g with %d digits", float64(tt.d), tt.digits)
		got := tt.d.AppendFormat([]byte("before"), tt.digits)
		require.Equal(t, "before"+tt.want, string(got))
	}
}

func TestTheTextIsTheReferencesIfSixDigitsTellAll(t *testing.T) {
	for d, want := range map[fsd.Duration]string{
		0: "0s", fsd.Duration(negZero): "0s", 0.002: "2ms", 0.0999999: "99.9999ms", 0.1: "0.1s", 1: "1s", 30: "30s", 59.9: "59.9s",
		90: "1.5m", 3600: "1h", 4500: "1.25h", 86400: "1d", 103680: "1.2d", 86400e6: "1e+06d", fsd.Infinity(): "infinity",
	} {
		require.Equal(t, want, d.String())
		require.Equal(t, want, d.Format(6))
	}
}

func TestTheTextHasTheDigitsThatItNeeds(t *testing.T) {
	for d, want := range map[fsd.Duration]string{
		0.00123456789:           "0.00123456789s",
		59.9999999:              "59.9999999s",
		62:                      "62s",
		3601:                    "3601s",
		86401:                   "86401s",
		1.0 / 3:                 "0.3333333333333333s",
		12345678.9:              "12345678.9s",
		1e17:                    "1e+17s",
		123456789012345678:      "1.2345678901234568e+17s",
		99999999999999984:       "99999999999999980s",
		0.000123456789:          "0.000123456789s",
		0.0000999999999:         "9.99999999e-05s",
		math.MaxFloat64:         "1.7976931348623157e+308s",
		2.2250738585072014e-308: "2.2250738585072014e-308s", // the longest
		0.051:                   "0.051s",                   // 51 times 0.001 is a greater float64: "51ms"
		0.051000000000000004:    "51ms",
		5e-324:                  "4.94066e-321ms",
	} {
		got := d.String()
		require.Equal(t, d, parse(t, got), "%s", got)
		require.Equal(t, want, got)
	}
}

// checkText checks all ways to print a valid d: they agree, leave dst[:len(dst)]
// alone, and read back to the bit.
func checkText(t fataler, d fsd.Duration) {
	t.Helper()
	text := d.String()
	back, err := fsd.Parse(text)
	require.NoError(t, err, "%s", text)
	require.Equal(t, math.Float64bits(math.Abs(d.Seconds())), math.Float64bits(back.Seconds()), "%s", text)
	require.Equal(t, text, back.String())

	appended, err := d.AppendText([]byte("before"))
	require.NoError(t, err)
	require.Equal(t, "before"+text, string(appended))
	marshalled, err := d.MarshalText()
	require.NoError(t, err)
	require.Equal(t, text, string(marshalled))
	require.LessOrEqual(t, len(text), 25)
	back = 7
	require.NoError(t, back.UnmarshalText(marshalled))
	require.Equal(t, d, back)

	if rounded := d.Format(6); rounded != text {
		back, err := fsd.Parse(rounded)
		require.True(t, err != nil || back != d, "%s would do for %s", rounded, text)
		require.Equal(t, byte('s'), text[len(text)-1])
		number := strings.TrimSuffix(text, "s")
		got, err := strconv.ParseFloat(number, 64)
		require.NoError(t, err)
		require.Equal(t, math.Abs(d.Seconds()), got)
		shortest := strconv.FormatFloat(got, 'e', -1, 64)
		require.Equal(t, digitsOf(shortest), digitsOf(number))
	}
}

// digitsOf returns the significant digits of a number.
func digitsOf(number string) string {
	mantissa, _, _ := strings.Cut(number, "e")
	return strings.Trim(strings.ReplaceAll(mantissa, ".", ""), "0")
}

// fataler is what testing.TB and rapid.T share.
type fataler interface {
	require.TestingT
	Helper()
}

// anyDuration draws valid durations of all magnitudes, people's more often than
// not.
var anyDuration = rapid.Custom(func(t *rapid.T) fsd.Duration {
	unit := rapid.SampledFrom([]fsd.Duration{0.001, 1, 60, 3600, 86400}).Draw(t, "unit")
	switch rapid.IntRange(0, 3).Draw(t, "kind") {
	case 0:
		return fsd.Duration(rapid.IntRange(0, 1000).Draw(t, "count")) * unit
	case 1:
		return fsd.Duration(rapid.Float64Range(0, 100).Draw(t, "count")) * unit
	case 2: // a bit beside the limits between units
		d := rapid.SampledFrom([]float64{0, 0.1, 1, 60, 3600, 86400}).Draw(t, "limit")
		return fsd.Duration(math.Abs(math.Nextafter(d, rapid.SampledFrom([]float64{-1, d, 1e9}).Draw(t, "to"))))
	}
	d := math.Float64frombits(rapid.Uint64().Draw(t, "bits") &^ (1 << 63))
	if d != d {
		return fsd.Infinity()
	}
	return fsd.Duration(d)
})

func TestEveryDurationReadsBackFromItsText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { checkText(t, anyDuration.Draw(t, "duration")) })
}

func TestWhatIsNotValidDoesNotMarshal(t *testing.T) {
	for _, d := range invalid {
		text, err := d.MarshalText()
		require.ErrorIs(t, err, fsd.ErrRange)
		require.Nil(t, text)
		text, err = d.AppendText([]byte("before"))
		require.ErrorIs(t, err, fsd.ErrRange)
		require.Equal(t, "before", string(text))
	}
}
