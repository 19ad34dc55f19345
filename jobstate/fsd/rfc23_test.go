package fsd_test

import (
	"testing"
	"time"

	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/stretchr/testify/require"
)

// RFC 23: a duration SHALL be a string of the form N[SUFFIX].
func TestRFC23ADurationIsANumberAndAnOptionalSuffix(t *testing.T) {
	require.Equal(t, of(30*time.Second), parse(t, "30"))
	require.Equal(t, of(30*time.Second), parse(t, "30s"))
	for _, in := range []string{"", "s", "s30", "30s30s", "30 s", "1h30m"} {
		_, err := fsd.Parse(in)
		require.ErrorContains(t, err, syntaxError, "%q", in)
	}
}

// RFC 23: N SHALL have a range of [0:infinity].
func TestRFC23ANumberIsFromZeroToInfinity(t *testing.T) {
	for in, want := range map[string]fsd.Duration{"0": 0, "-0": 0, "1e308": fsd.Forever, "inf": fsd.Forever} {
		require.Equal(t, want, parse(t, in), in)
	}
	for _, in := range []string{"-1", "-1e-300", "-0.5m", "-inf", "-infinity"} {
		_, err := fsd.Parse(in)
		require.ErrorContains(t, err, outOfRange, in)
	}
	for _, in := range []string{"nan", "NaN", "nan(1)"} {
		_, err := fsd.Parse(in)
		require.Error(t, err, in)
	}
}

// RFC 23: N SHALL be in a form allowed by C99 strtod. Decimal forms and infinity
// are; the hexadecimal ones are left out on purpose.
func TestRFC23ANumberIsInAFormOfStrtod(t *testing.T) {
	for _, in := range []string{"1500", "1500.", "1500.0", "1.5e3", "1.5E3", "1.5e+3", "15000e-1", ".15e4", "+1500", " 1500", "01500"} {
		require.Equal(t, of(1500*time.Second), parse(t, in), in)
	}
	for _, in := range []string{"inf", "INF", "infinity", "INFINITY", "Infinity", "+inf"} {
		require.Equal(t, fsd.Forever, parse(t, in), in)
	}
	for _, in := range []string{"0x10", "0x1p4", "0x1d"} {
		_, err := fsd.Parse(in)
		require.ErrorContains(t, err, syntaxError, in)
	}
}

// RFC 23: the suffix MUST be one of these, case sensitive.
func TestRFC23SuffixesAreFiveAndInLowerCase(t *testing.T) {
	units := map[string]time.Duration{
		"ms": 2 * time.Millisecond, "s": 2 * time.Second, "": 2 * time.Second, "m": 2 * time.Minute, "h": 2 * time.Hour, "d": 48 * time.Hour,
	}
	for suffix, want := range units {
		require.Equal(t, of(want), parse(t, "2"+suffix), suffix)
	}
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	for _, a := range letters {
		for _, b := range letters + "\x00" {
			suffix := string(a)
			if b != 0 {
				suffix += string(b)
			}
			if _, ok := units[suffix]; ok {
				continue
			}
			_, err := fsd.Parse("2" + suffix)
			require.ErrorContains(t, err, syntaxError, suffix)
		}
	}
}

// RFC 23: the string infinity SHALL be C99's INFINITY.
func TestRFC23InfinityIsASpecialCaseWithoutASuffix(t *testing.T) {
	require.Equal(t, fsd.Forever, parse(t, "infinity"))
	require.Equal(t, "infinity", fsd.Forever.String())
	for _, suffix := range []string{"ms", "s", "m", "h", "d"} {
		for _, in := range []string{"inf" + suffix, "infinity" + suffix} {
			_, err := fsd.Parse(in)
			require.ErrorContains(t, err, syntaxError, in)
		}
	}
}
