package fsd_test

import (
	"encoding"
	"encoding/json"
	"fmt"
	"math"
	"testing"

	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/stretchr/testify/require"
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
	require.EqualError(t, err, "fsd: out of range: -1 seconds")
	_, err = fsd.FromSeconds(nan)
	require.EqualError(t, err, "fsd: out of range: NaN seconds")
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
