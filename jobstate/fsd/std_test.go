package fsd_test

import (
	"math"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife/jobstate/fsd"
)

func TestParseDurationRoundsToTheNearestNanosecond(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0": 0, "-0s": 0, "0.4e-9": 1, "5e-324": 1, "0.6e-9": 1, "1.4e-9": 1,
		"51ms":           51 * time.Millisecond, // 0.051000000000000004
		"0.9999999999":   time.Second,
		"59.9999999999s": time.Minute,
		"1.5h":           90 * time.Minute,
		"1d":             24 * time.Hour,
		"1000000000.25":  1_000_000_000_250_000_000,
		"9223372036.5":   9223372036*time.Second + 500*time.Millisecond,
		// The last float64 that fits, and what does not.
		"9223372036.854774": 9223372036854774475,
		"9223372036.854776": fsd.Forever,
		"9223372037":        fsd.Forever, "18446744073.8": fsd.Forever, "1e308": fsd.Forever, "107000d": fsd.Forever,
		"inf": fsd.Forever, "Infinity": fsd.Forever,
	} {
		got, err := fsd.ParseDuration(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for text, category := range map[string]error{"": fsd.ErrSyntax, "1h30m": fsd.ErrSyntax, "-1": fsd.ErrRange, "1e309": fsd.ErrRange} {
		got, err := fsd.ParseDuration(text)
		require.ErrorIs(t, err, category, text)
		require.Zero(t, got)
	}
}

func TestParseDurationIsTheNearestByExactArithmetic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := fsd.Duration(rapid.Float64Range(1e-9, 9.2e9).Draw(t, "seconds"))
		got, err := fsd.ParseDuration(d.String())
		require.NoError(t, err)
		exact := new(big.Rat).SetFloat64(d.Seconds())
		exact.Mul(exact, big.NewRat(1e9, 1))
		off, _ := exact.Sub(exact, new(big.Rat).SetInt64(int64(got))).Float64()
		require.LessOrEqual(t, math.Abs(off), 0.5000001)
	})
}

func TestFormatDurationReadsBack(t *testing.T) {
	for text, d := range map[string]time.Duration{
		"0s": 0, "2ms": 2 * time.Millisecond, "62s": 62 * time.Second, "1.5h": 90 * time.Minute, "1d": 24 * time.Hour,
		"infinity": fsd.Forever, "1e-06ms": 1, "3601.000000001s": time.Hour + time.Second + 1,
		"-1.5h": -90 * time.Minute, "-9223372036.854776s": math.MinInt64,
	} {
		require.Equal(t, text, fsd.FormatDuration(d))
	}
	require.Equal(t, "1m", fsd.FormatDigits(62*time.Second, 2))
	require.Equal(t, "1.03m", fsd.FormatDigits(62*time.Second, 3))
	require.Equal(t, "-1.03m", fsd.FormatDigits(-62*time.Second, 3))
	require.Equal(t, "infinity", fsd.FormatDigits(fsd.Forever, 3))

	rapid.Check(t, func(t *rapid.T) {
		in := time.Duration(rapid.Int64Range(0, math.MaxInt64).Draw(t, "ns") >> rapid.IntRange(0, 62).Draw(t, "shift"))
		out, err := fsd.ParseDuration(fsd.FormatDuration(in))
		require.NoError(t, err)
		if in <= 48*24*time.Hour {
			require.Equal(t, in, out)
			return
		}
		require.InDelta(t, 0, float64(in-out), 1000, "more than a microsecond away")
	})
}
