package eventlog_test

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife/eventlog"
)

func TestTimestampsAreTimes(t *testing.T) {
	for _, tt := range []struct {
		stamp eventlog.Timestamp
		time  time.Time
	}{
		{0, time.Unix(0, 0)},
		{1, time.Unix(1, 0)},
		{1.5, time.Unix(1, 500_000_000)},
		{-1.5, time.Unix(-2, 500_000_000)},
		{1700000000, time.Unix(1700000000, 0)},
		{1552593348.073045, time.Unix(1552593348, 73045015)}, // the nearest of what a float64 holds
		{9007199254740992, time.Unix(1<<53, 0)},
	} {
		require.Equal(t, tt.time.UTC(), tt.stamp.Time())
		require.Equal(t, tt.stamp, eventlog.FromTime(tt.time))
	}
	require.Equal(t, time.UTC, eventlog.Timestamp(1).Time().Location())
	require.Equal(t, eventlog.Timestamp(1.25), eventlog.FromTime(time.Unix(1, 250_000_000).In(time.FixedZone("x", 3600))))
}

func TestTimesTooFarAreTheFarthest(t *testing.T) {
	far := eventlog.Timestamp(1 << 53).Time()
	for _, stamp := range []eventlog.Timestamp{1 << 54, math.MaxFloat64, eventlog.Timestamp(math.Inf(1))} {
		require.Equal(t, far, stamp.Time())
	}
	require.Equal(t, eventlog.Timestamp(-1<<53).Time(), eventlog.Timestamp(math.Inf(-1)).Time())
	require.True(t, eventlog.Timestamp(math.NaN()).Time().IsZero())
	require.Less(t, float64(eventlog.FromTime(time.Time{})), 0.0)
}

func TestTimestampsSurviveATime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stamp := eventlog.Timestamp(rapid.Float64Range(1<<23, 1<<40).Draw(t, "timestamp"))
		require.Equal(t, stamp, eventlog.FromTime(stamp.Time()))
	})
}

func TestTimesKeepTheirOrderAsTimestamps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := time.Unix(rapid.Int64Range(0, 1<<33).Draw(t, "seconds"), rapid.Int64Range(0, 1e9-1).Draw(t, "nanoseconds"))
		b := a.Add(time.Duration(rapid.Int64Range(0, 2e9).Draw(t, "later")))
		require.LessOrEqual(t, float64(eventlog.FromTime(a)), float64(eventlog.FromTime(b)))
		require.InDelta(t, 0, a.Sub(eventlog.FromTime(a).Time()).Seconds(), 1e-6)
	})
}

func TestTimestampTextIsThatOfFlux(t *testing.T) {
	for stamp, want := range map[eventlog.Timestamp]string{
		42: "42.0", 0: "0.0", 1552593348.073045: "1552593348.073045", 0.1: "0.10000000000000001", 1e22: "1e22", 1e-5: "1.0000000000000001e-5", -1.5: "-1.5",
	} {
		require.Equal(t, want, stamp.String())
		text, err := stamp.MarshalText()
		require.NoError(t, err)
		require.Equal(t, want, string(text))
		appended, err := stamp.AppendText([]byte("x"))
		require.NoError(t, err)
		require.Equal(t, "x"+want, string(appended))
		marshaled, err := json.Marshal(struct{ T eventlog.Timestamp }{stamp})
		require.NoError(t, err)
		require.Equal(t, `{"T":`+want+`}`, string(marshaled))

		var back eventlog.Timestamp
		require.NoError(t, back.UnmarshalText(text))
		require.Equal(t, stamp, back)
		var viaJSON struct{ T eventlog.Timestamp }
		require.NoError(t, json.Unmarshal(marshaled, &viaJSON))
		require.Equal(t, stamp, viaJSON.T)
	}
}

func TestATimestampThatIsNotFiniteHasNoText(t *testing.T) {
	for stamp, want := range map[float64]string{math.Inf(1): "+Inf", math.Inf(-1): "-Inf", math.NaN(): "NaN"} {
		stamp := eventlog.Timestamp(stamp)
		require.Equal(t, want, stamp.String())
		out, err := stamp.AppendText([]byte("x"))
		require.EqualError(t, err, "eventlog: timestamp: must be a finite number")
		require.ErrorIs(t, err, eventlog.ErrEntry)
		require.Equal(t, "x", string(out))
		_, err = json.Marshal(stamp)
		require.ErrorIs(t, err, eventlog.ErrEntry)
	}
}

func TestTimestampTextIsANumber(t *testing.T) {
	for _, text := range []string{``, ` 1`, `1 `, `"1"`, `x`, `1e309`, `0x1`, `inf`, `nan`} {
		stamp := eventlog.Timestamp(7)
		err := stamp.UnmarshalText([]byte(text))
		require.EqualError(t, err, "eventlog: line 1: offset 0: timestamp: must be a number", text)
		require.ErrorIs(t, err, eventlog.ErrEntry)
		require.Equal(t, eventlog.Timestamp(7), stamp)
	}
	stamp := eventlog.Timestamp(7)
	require.NoError(t, json.Unmarshal([]byte(`null`), &stamp))
	require.Equal(t, eventlog.Timestamp(7), stamp)
	require.NoError(t, json.Unmarshal([]byte(` 8 `), &stamp))
	require.Equal(t, eventlog.Timestamp(8), stamp)
	require.Error(t, json.Unmarshal([]byte(`"8"`), &stamp))
}
