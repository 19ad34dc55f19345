package fsd_test

import (
	"encoding"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife/jobstate/fsd"
)

// The interfaces that encoders look for.
var (
	_ encoding.TextAppender    = fsd.Duration(0)
	_ encoding.TextMarshaler   = fsd.Duration(0)
	_ encoding.TextUnmarshaler = (*fsd.Duration)(nil)
	_ fmt.Stringer             = fsd.Duration(0)
)

// of returns a time.Duration as a Duration.
func of(d time.Duration) fsd.Duration { return fsd.Duration(d) }

func TestParseRoundsToTheNearestNanosecond(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0": 0, "-0s": 0, "1e-400": 0, "0.4e-9": 1, "5e-324": 1, "0.6e-9": 1, "1.4e-9": 1, "0.0000000004": 1,
		"51ms":           51 * time.Millisecond, // 0.051000000000000004
		"0.9999999999":   time.Second,
		"59.9999999999s": time.Minute,
		"1.5h":           90 * time.Minute,
		"1d":             24 * time.Hour,
		"1000000000.25":  1_000_000_000_250_000_000,
		"9223372036.5":   9223372036*time.Second + 500*time.Millisecond,
		// The last that fits, and what does not.
		"9223372036.854775806":    math.MaxInt64 - 1,
		"9223372036.854775807":    time.Duration(fsd.Forever),
		"09223372036.854774":      9223372036854774475, // by way of a float64
		"9223372036.8547758070":   time.Duration(fsd.Forever),
		"9999999999.999999999":    time.Duration(fsd.Forever),
		"9223372036.8547760000e0": time.Duration(fsd.Forever),
		"9223372037":              time.Duration(fsd.Forever), "18446744073.8": time.Duration(fsd.Forever),
		"1e308": time.Duration(fsd.Forever), "107000d": time.Duration(fsd.Forever),
		"inf": time.Duration(fsd.Forever), "Infinity": time.Duration(fsd.Forever),
	} {
		got, err := fsd.Parse(text)
		require.NoError(t, err, text)
		require.Equal(t, want, time.Duration(got), text)
	}
}

func TestTheTextIsTheReferencesOrANumberOfSeconds(t *testing.T) {
	for text, d := range map[string]time.Duration{
		"0s": 0, "2ms": 2 * time.Millisecond, "51ms": 51 * time.Millisecond, "99.9999ms": 99999900, "0.1s": 100 * time.Millisecond,
		"30s": 30 * time.Second, "59.9s": 59900 * time.Millisecond, "59.9999999s": 59999999900, "62s": 62 * time.Second,
		"1.5m": 90 * time.Second, "1.5h": 90 * time.Minute, "3601s": 3601 * time.Second, "1d": 24 * time.Hour, "86401s": 86401 * time.Second,
		"infinity": time.Duration(fsd.Forever), "9223372036.854775806s": math.MaxInt64 - 1,
		"1e-06ms": 1, "1.234567891s": 1234567891, "0.333333333s": 333333333, "3601.000000001s": time.Hour + time.Second + 1,
		"-5400s": -90 * time.Minute, "-0.000000001s": -1, "-9223372036.854775808s": math.MinInt64, // which are not marshalled
	} {
		require.Equal(t, text, of(d).String())
	}
}

func TestFormatIsForPeople(t *testing.T) {
	for want, got := range map[string]string{
		"1m":       of(62 * time.Second).Format(2),
		"1.03m":    of(62 * time.Second).Format(3),
		"1e+01m":   of(869 * time.Second).Format(-5),
		"-1.03m":   of(-62 * time.Second).Format(3),
		"infinity": fsd.Forever.Format(3),
	} {
		require.Equal(t, want, got)
	}
}

// checkText checks all ways to print a d of 0 or more: they agree, leave
// dst[:len(dst)] alone, and read back.
func checkText(t fataler, d fsd.Duration) {
	t.Helper()
	text := d.String()
	require.Equal(t, d, parse(t, text), "%s", text)
	appended, err := d.AppendText([]byte("before"))
	require.NoError(t, err)
	require.Equal(t, "before"+text, string(appended))
	marshalled, err := d.MarshalText()
	require.NoError(t, err)
	require.Equal(t, text, string(marshalled))
	require.LessOrEqual(t, len(text), 25)
	require.LessOrEqual(t, len((-d).Format(17)), 25)
	back := fsd.Duration(7)
	require.NoError(t, back.UnmarshalText(marshalled))
	require.Equal(t, d, back)
	if rounded := d.Format(6); rounded != text {
		require.NotEqual(t, d, parse(t, rounded), "%s would do for %s", rounded, text)
		require.False(t, strings.Contains(text, ".") && strings.HasSuffix(text, "0s"), text)
	}
}

func TestEveryDurationReadsBackFromItsText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		checkText(t, fsd.Duration(rapid.Int64Range(0, math.MaxInt64).Draw(t, "ns")>>rapid.IntRange(0, 62).Draw(t, "shift")))
	})
}

func TestADurationIsAStringInJSONAndAKey(t *testing.T) {
	type config struct {
		Limit fsd.Duration            `json:"limit"`
		Per   map[fsd.Duration]string `json:"per"`
	}
	in := config{Limit: fsd.Forever, Per: map[fsd.Duration]string{of(90 * time.Minute): "a"}}
	b, err := json.Marshal(in)
	require.NoError(t, err)
	require.Equal(t, `{"limit":"infinity","per":{"1.5h":"a"}}`, string(b))
	var out config
	require.NoError(t, json.Unmarshal(b, &out))
	require.Equal(t, in, out)

	require.Error(t, json.Unmarshal([]byte(`{"limit":30}`), &out), "a number is no FSD")
	require.ErrorContains(t, json.Unmarshal([]byte(`{"limit":"30x"}`), &out), syntaxError)
	require.Equal(t, in, out)
}

func TestANegativeDurationDoesNotMarshal(t *testing.T) {
	for _, d := range []fsd.Duration{-1, of(-time.Hour), math.MinInt64} {
		text, err := d.MarshalText()
		require.ErrorContains(t, err, outOfRange)
		require.Nil(t, text)
		text, err = d.AppendText([]byte("before"))
		require.ErrorContains(t, err, outOfRange)
		require.Equal(t, "before", string(text))
	}
	_, err := of(-time.Second).MarshalText()
	require.EqualError(t, err, "fsd: out of range: -1s is negative")
}

func parse(t fataler, s string) fsd.Duration {
	t.Helper()
	d, err := fsd.Parse(s)
	require.NoError(t, err, "%q", s)
	return d
}

// fataler is what testing.TB and rapid.T share.
type fataler interface {
	require.TestingT
	Helper()
}
