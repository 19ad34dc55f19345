package fsd_test

import (
	"math"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/stretchr/testify/require"
)

// A second parser, made of regular expressions: what FuzzParse compares Parse with.
var (
	naiveNumber   = regexp.MustCompile(`^[ \t\n\v\f\r]*([+-]?)((?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)(ms|s|m|h|d|)$`)
	naiveInfinity = regexp.MustCompile(`^[ \t\n\v\f\r]*([+-]?)(?i:inf|infinity)$`)
)

// naiveParse returns the seconds that s tells, and the category of Parse's error.
func naiveParse(s string) (seconds float64, category string) {
	if m := naiveInfinity.FindStringSubmatch(s); m != nil {
		if m[1] == "-" {
			return 0, outOfRange
		}
		return math.Inf(1), ""
	}
	m := naiveNumber.FindStringSubmatch(s)
	if m == nil {
		return 0, syntaxError
	}
	v, _ := strconv.ParseFloat(m[2], 64)
	if m[1] == "-" && v > 0 {
		return 0, outOfRange
	}
	v *= map[string]float64{"": 1, "ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}[m[3]]
	if v > math.MaxFloat64 {
		return 0, outOfRange
	}
	return v, ""
}

// checkParse compares Parse with naiveParse on s.
func checkParse(t fataler, s string) {
	t.Helper()
	want, wantErr := naiveParse(s)
	seconds, secondsErr := fsd.ParseSeconds(s)
	got, err := fsd.Parse(s)
	require.Equal(t, secondsErr, err)
	var d fsd.Duration = 77
	textErr := d.UnmarshalText([]byte(s))
	if wantErr == "" {
		require.NoError(t, err, "%q", s)
		require.Equal(t, math.Float64bits(want), math.Float64bits(seconds), "%q", s)
		checkNear(t, seconds, got)
		require.NoError(t, textErr)
		require.Equal(t, got, d)
		checkText(t, got)
		return
	}
	require.ErrorContains(t, err, wantErr, "%q", s)
	require.Zero(t, got)
	requireOffset(t, s, -1, err)
	require.NotContains(t, err.Error(), "\n")
	require.Equal(t, err, textErr)
	require.Equal(t, fsd.Duration(77), d, "changed by an error")
}

// checkNear checks a duration against its seconds: the nearest nanosecond, one at
// least, up to 48 days; beyond a float64 does not tell nanoseconds.
func checkNear(t fataler, seconds float64, d fsd.Duration) {
	t.Helper()
	switch want := math.Round(seconds * 1e9); {
	case seconds > 9223372036.854774:
		require.InDelta(t, 0, float64(fsd.Forever-d), 1e4)
	case seconds > 48*86400:
		require.InDelta(t, want, float64(d), 1100)
	case seconds > 0:
		require.InDelta(t, max(want, 1), float64(d), 1)
	default:
		require.Zero(t, d)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"0", "30", "2ms", "1.5h", "5.d", ".5m", "1e3s", "1e400", "1e308d", "-0", "-1", " +1e-3s",
		"inf", "Infinity", "-inf", "nan", "0x1d", "", "s", "1es", "1h30m", "5e-324",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) { checkParse(t, s) })
}

func FuzzText(f *testing.F) {
	for _, d := range []time.Duration{0, 1, 100 * time.Millisecond, 62 * time.Second, time.Hour, 86401 * time.Second, math.MaxInt64, -1} {
		f.Add(uint64(d))
	}
	f.Fuzz(func(t *testing.T, nanoseconds uint64) {
		d := fsd.Duration(nanoseconds)
		if d < 0 {
			_, err := d.MarshalText()
			require.ErrorContains(t, err, outOfRange)
			return
		}
		checkText(t, d)
	})
}
