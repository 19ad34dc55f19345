package fsd_test

import (
	"encoding"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"testing"
	"time"

	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The interfaces that encoders look for.
var (
	_ encoding.TextAppender    = fsd.Duration(0)
	_ encoding.TextMarshaler   = fsd.Duration(0)
	_ encoding.TextUnmarshaler = (*fsd.Duration)(nil)
	_ fmt.Stringer             = fsd.Duration(0)
)

var (
	nan      = math.NaN()
	negZero  = math.Copysign(0, -1)
	smallest = math.SmallestNonzeroFloat64
)

// invalid are values that no duration has.
var invalid = []fsd.Duration{-1, fsd.Duration(-smallest), -math.MaxFloat64, -fsd.Infinity(), fsd.Duration(nan)}

func TestTheZeroValueIsNoTime(t *testing.T) {
	var d fsd.Duration
	require.True(t, d.IsValid())
	require.False(t, d.IsInfinite())
	require.Equal(t, "0s", d.String())
	std, err := d.Std()
	require.NoError(t, err)
	require.Zero(t, std)
}

func TestUnitsAreWhatTheirTextSays(t *testing.T) {
	for text, want := range map[string]fsd.Duration{
		"1ms": fsd.Millisecond, "1s": fsd.Second, "1m": fsd.Minute, "1h": fsd.Hour, "1d": fsd.Day,
		"inf": fsd.Infinity(),
	} {
		require.Equal(t, want, parse(t, text), text)
	}
}

func TestInfinityIsValidAndLongerThanAnything(t *testing.T) {
	d := fsd.Infinity()
	require.True(t, d.IsValid())
	require.True(t, d.IsInfinite())
	require.Greater(t, d, fsd.Duration(math.MaxFloat64))
	require.Equal(t, math.Inf(1), d.Seconds())
	require.Equal(t, "infinity", d.String())
}

func TestFromSecondsRefusesWhatIsNoDuration(t *testing.T) {
	for _, s := range []float64{0, smallest, 1.5, math.MaxFloat64, math.Inf(1)} {
		d, err := fsd.FromSeconds(s)
		require.NoError(t, err)
		require.Equal(t, s, d.Seconds())
	}
	d, err := fsd.FromSeconds(negZero)
	require.NoError(t, err)
	require.False(t, math.Signbit(d.Seconds()))

	for _, bad := range invalid {
		d, err := fsd.FromSeconds(bad.Seconds())
		require.Zero(t, d)
		require.ErrorIs(t, err, fsd.ErrRange)
		require.False(t, bad.IsValid())
		require.False(t, bad.IsInfinite())
	}
	_, err = fsd.FromSeconds(-1)
	require.EqualError(t, err, "fsd: Duration(-1): out of range: negative")
	_, err = fsd.FromSeconds(nan)
	require.EqualError(t, err, "fsd: Duration(NaN): out of range: not a number")
}

func TestStdRoundsToTheNearestNanosecond(t *testing.T) {
	for _, tt := range []struct {
		d    fsd.Duration
		want time.Duration
	}{
		{0, 0},
		{fsd.Duration(negZero), 0},
		{fsd.Duration(smallest), 0},
		{0.4e-9, 0},
		{0.6e-9, 1},
		{1.4e-9, 1},
		{0.051000000000000004, 51 * time.Millisecond}, // what "51ms" is
		{1.0 / 3, 333_333_333},
		{0.9999999999, time.Second},
		{59.9999999999, time.Minute},
		{fsd.Day, 24 * time.Hour},
		{1e9 + 0.25, 1_000_000_000_250_000_000},
		{9223372036, 9223372036 * time.Second},
		{9223372036.5, 9223372036*time.Second + 500*time.Millisecond},
		{9223372036.854774, 9223372036854774475}, // the last float64 that fits
	} {
		got, err := tt.d.Std()
		require.NoError(t, err, "%v", tt.d)
		require.Equal(t, tt.want, got, "%v", tt.d)
	}
}

func TestStdSaturatesAndSaysSo(t *testing.T) {
	for _, d := range []fsd.Duration{
		9223372036.854776, // the first float64 that does not fit
		9223372037, 9223372038, 1e10, 18446744073.8, 1e300, math.MaxFloat64, fsd.Infinity(),
	} {
		got, err := d.Std()
		require.Equal(t, time.Duration(math.MaxInt64), got, "%v", d)
		require.ErrorIs(t, err, fsd.ErrRange)
		var ve *fsd.ValueError
		require.ErrorAs(t, err, &ve)
		require.Equal(t, d, ve.Value)
	}
	_, err := fsd.Infinity().Std()
	require.EqualError(t, err, "fsd: infinity: out of range: longer than a time.Duration can be")
	for _, d := range invalid {
		got, err := d.Std()
		require.Zero(t, got)
		require.ErrorIs(t, err, fsd.ErrRange)
	}
}

func TestFromStdTakesWhatIsNotNegative(t *testing.T) {
	for _, tt := range []struct {
		d    time.Duration
		want fsd.Duration
	}{
		{0, 0},
		{1, 1e-9},
		{51 * time.Millisecond, 0.051},
		{90 * time.Minute, 1.5 * fsd.Hour},
		{math.MaxInt64, 9223372036.854776},
	} {
		got, err := fsd.FromStd(tt.d)
		require.NoError(t, err)
		require.Equal(t, tt.want, got)
	}
	for _, d := range []time.Duration{-1, math.MinInt64} {
		got, err := fsd.FromStd(d)
		require.Zero(t, got)
		require.ErrorIs(t, err, fsd.ErrRange)
	}
}

func TestStdComesBackExactlyUpTo48Days(t *testing.T) {
	const days48 = 48 * 24 * time.Hour
	rapid.Check(t, func(t *rapid.T) {
		in := time.Duration(rapid.Int64Range(0, math.MaxInt64).Draw(t, "ns") >> rapid.IntRange(0, 62).Draw(t, "shift"))
		d, err := fsd.FromStd(in)
		require.NoError(t, err)
		out, err := d.Std()
		if d.Seconds() < 9223372036.854776 {
			require.NoError(t, err)
		}
		if in <= days48 {
			require.Equal(t, in, out)
			return
		}
		require.InDelta(t, 0, float64(in-out), 1000, "more than a microsecond apart")
	})
}

func TestStdIsTheNearestByExactArithmetic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := fsd.Duration(rapid.Float64Range(0, 9.2e9).Draw(t, "seconds"))
		got, err := d.Std()
		require.NoError(t, err)
		exact := new(big.Rat).SetFloat64(d.Seconds())
		exact.Mul(exact, big.NewRat(1e9, 1))
		off, _ := exact.Sub(exact, new(big.Rat).SetInt64(int64(got))).Float64()
		require.LessOrEqual(t, math.Abs(off), 0.5000001)
	})
}

func TestADurationIsAStringInJSONAndAKey(t *testing.T) {
	type config struct {
		Limit fsd.Duration            `json:"limit"`
		Per   map[fsd.Duration]string `json:"per"`
	}
	in := config{Limit: fsd.Infinity(), Per: map[fsd.Duration]string{90 * fsd.Minute: "a"}}
	b, err := json.Marshal(in)
	require.NoError(t, err)
	require.Equal(t, `{"limit":"infinity","per":{"1.5h":"a"}}`, string(b))
	var out config
	require.NoError(t, json.Unmarshal(b, &out))
	require.Equal(t, in, out)

	require.Error(t, json.Unmarshal([]byte(`{"limit":30}`), &out), "a number is no FSD")
	require.ErrorIs(t, json.Unmarshal([]byte(`{"limit":"30x"}`), &out), fsd.ErrSyntax)
	require.Equal(t, in, out)
	for _, d := range invalid {
		_, err := json.Marshal(d)
		require.ErrorIs(t, err, fsd.ErrRange)
	}
}

func parse(t testing.TB, s string) fsd.Duration {
	t.Helper()
	d, err := fsd.Parse(s)
	require.NoError(t, err, "%q", s)
	return d
}
