package purge_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/joblife/joblife/purge"
)

func TestLimitsAreReadFromAConfiguration(t *testing.T) {
	unset := purge.Limits{}
	for _, c := range []struct {
		table map[string]any
		want  purge.Limits
	}{
		{nil, unset},
		{map[string]any{"plugins": []any{}, "housekeeping": 3}, unset},
		{map[string]any{"inactive-num-limit": 0}, purge.Limits{MaxCount: purge.To(0)}},
		{map[string]any{"inactive-num-limit": int64(5)}, purge.Limits{MaxCount: purge.To(5)}},
		{map[string]any{"inactive-num-limit": uint64(5)}, purge.Limits{MaxCount: purge.To(5)}},
		{map[string]any{"inactive-num-limit": 5.0}, purge.Limits{MaxCount: purge.To(5)}},
		{map[string]any{"inactive-num-limit": json.Number("2147483647")}, purge.Limits{MaxCount: purge.To(math.MaxInt32)}},
		{map[string]any{"inactive-num-limit": -1}, unset},
		{map[string]any{"inactive-age-limit": "0"}, purge.Limits{MaxAge: purge.To(time.Duration(0))}},
		{map[string]any{"inactive-age-limit": "7d", "inactive-num-limit": 1000},
			purge.Limits{MaxAge: purge.To(7 * 24 * time.Hour), MaxCount: purge.To(1000)}},
		{map[string]any{"inactive-age-limit": "1ms"}, purge.Limits{MaxAge: purge.To(time.Millisecond)}},
		{map[string]any{"inactive-age-limit": "infinity"}, purge.Limits{MaxAge: purge.To(time.Duration(math.MaxInt64))}},
		{map[string]any{"inactive-age-limit": "1e30d"}, purge.Limits{MaxAge: purge.To(time.Duration(math.MaxInt64))}},
	} {
		got, err := purge.ParseLimits(c.table)
		require.NoError(t, err, c.table)
		require.Equal(t, c.want, got, c.table)
	}
}

func TestAConfigurationThatMakesNoSenseNamesItsKey(t *testing.T) {
	for _, c := range []struct {
		key   string
		value any
		want  string
	}{
		{"inactive-num-limit", -2, "must be 0 or more, and less than 2^31"},
		{"inactive-num-limit", -42.0, "must be 0 or more, and less than 2^31"},
		{"inactive-num-limit", uint64(math.MaxUint64), "must be 0 or more, and less than 2^31"},
		{"inactive-num-limit", int64(1 << 31), "must be 0 or more, and less than 2^31"},
		{"inactive-num-limit", "5", "must be an integer"},
		{"inactive-num-limit", 5.5, "must be an integer"},
		{"inactive-num-limit", math.NaN(), "must be an integer"},
		{"inactive-num-limit", math.Inf(1), "must be an integer"},
		{"inactive-num-limit", 1e300, "must be an integer"},
		{"inactive-num-limit", json.Number("1e2"), "must be an integer"},
		{"inactive-num-limit", json.Number("99999999999999999999"), "must be an integer"},
		{"inactive-num-limit", nil, "must be an integer"},
		{"inactive-num-limit", true, "must be an integer"},
		{"inactive-age-limit", 42, "must be a string"},
		{"inactive-age-limit", nil, "must be a string"},
		{"inactive-age-limit", "notfsd", `must be a duration of RFC 23: fsd: syntax error: offset 0: no digit in "notfsd"`},
		{"inactive-age-limit", "", "must be a duration of RFC 23"},
		{"inactive-age-limit", "-1s", "must be a duration of RFC 23"},
	} {
		got, err := purge.ParseLimits(map[string]any{c.key: c.value, "inactive-min": 3})
		var limits *purge.LimitsError
		require.ErrorAs(t, err, &limits, c)
		require.ErrorIs(t, err, purge.ErrLimits)
		require.Equal(t, c.key, limits.Key)
		require.Zero(t, got)
		if limits.Err == nil {
			require.EqualError(t, err, "purge: "+c.key+": "+c.want)
		} else {
			require.True(t, errors.Is(err, fsd.ErrSyntax) || errors.Is(err, fsd.ErrRange))
			require.Contains(t, err.Error(), "purge: "+c.key+": must be a duration of RFC 23: ")
		}
	}
}

func TestLimitsThatMakeNoSenseAreRefused(t *testing.T) {
	x, _ := populated(t, purge.Config{}, 3)
	for key, l := range map[string]purge.Limits{
		"MaxAge":   {MaxAge: purge.To(time.Duration(-1))},
		"MinAge":   {MinAge: purge.To(time.Duration(-1))},
		"MaxCount": {MaxCount: purge.To(-42)},
		"Batch":    {Batch: 10000},
	} {
		_, err := x.Plan(start+10, l)
		var limits *purge.LimitsError
		require.ErrorAs(t, err, &limits)
		require.Equal(t, key, limits.Key)
	}
	_, err := x.Plan(start+10, purge.Limits{Batch: -2})
	require.EqualError(t, err, "purge: Batch: must be at least 1 and at most 1000")
}

func FuzzParseLimits(f *testing.F) {
	for _, s := range []string{
		`{"inactive-age-limit":"7d","inactive-num-limit":1000}`, `{"inactive-num-limit":-1}`, `{"inactive-num-limit":1e2}`,
		`{"inactive-age-limit":"infinity"}`, `{"inactive-age-limit":42}`, `{}`,
	} {
		f.Add([]byte(s), true)
	}
	f.Fuzz(func(t *testing.T, text []byte, numbers bool) {
		d := json.NewDecoder(bytes.NewReader(text))
		if numbers {
			d.UseNumber()
		}
		var table map[string]any
		if d.Decode(&table) != nil {
			return
		}
		l, err := purge.ParseLimits(table)
		if err != nil {
			require.ErrorIs(t, err, purge.ErrLimits)
			require.Zero(t, l)
			return
		}
		var x purge.Index
		_, err = x.Plan(start, l)
		require.NoError(t, err, "limits that were read make sense")
		_, ok := l.MaxAge.Value()
		_, given := table["inactive-age-limit"]
		require.Equal(t, given, ok)
	})
}
