package purge_test

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/jobstate"
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
		{map[string]any{"inactive-num-limit": 0}, purge.Limits{MaxCount: jobstate.Some(0)}},
		{map[string]any{"inactive-num-limit": int64(5)}, purge.Limits{MaxCount: jobstate.Some(5)}},
		{map[string]any{"inactive-num-limit": uint64(5)}, purge.Limits{MaxCount: jobstate.Some(5)}},
		{map[string]any{"inactive-num-limit": 5.0}, purge.Limits{MaxCount: jobstate.Some(5)}},
		{map[string]any{"inactive-num-limit": json.Number("2147483647")}, purge.Limits{MaxCount: jobstate.Some(math.MaxInt32)}},
		{map[string]any{"inactive-age-limit": "0"}, purge.Limits{MaxAge: jobstate.Some(time.Duration(0))}},
		{map[string]any{"inactive-age-limit": "7d", "inactive-num-limit": 1000},
			purge.Limits{MaxAge: jobstate.Some(7 * 24 * time.Hour), MaxCount: jobstate.Some(1000)}},
		{map[string]any{"inactive-age-limit": "1ms"}, purge.Limits{MaxAge: jobstate.Some(time.Millisecond)}},
		{map[string]any{"inactive-age-limit": "infinity"}, unset},
		{map[string]any{"inactive-age-limit": "1e30d"}, unset},
	} {
		got, err := purge.ParseLimits(c.table)
		require.NoError(t, err, c.table)
		require.Equal(t, c.want, got, c.table)
	}
}

func TestAConfigurationThatMakesNoSenseNamesItsKey(t *testing.T) {
	const number, age = "inactive-num-limit", "inactive-age-limit"
	for _, c := range []struct {
		key   string
		value any
		want  string
	}{
		{number, -1, "must be an integer from 0"},
		{number, -42.0, "must be an integer from 0"},
		{number, uint64(math.MaxUint64), "must be an integer from 0"},
		{number, int64(1 << 31), "must be an integer from 0"},
		{number, "5", "must be an integer from 0"},
		{number, 5.5, "must be an integer from 0"},
		{number, math.NaN(), "must be an integer from 0"},
		{number, math.Inf(1), "must be an integer from 0"},
		{number, 1e300, "must be an integer from 0"},
		{number, json.Number("1e2"), "must be an integer from 0"},
		{number, json.Number("99999999999999999999"), "must be an integer from 0"},
		{number, nil, "must be an integer from 0"},
		{number, true, "must be an integer from 0"},
		{age, 42, "must be a string"},
		{age, nil, "must be a string"},
		{age, "notfsd", "must be a duration of RFC 23: fsd: syntax error: offset 0: "},
		{age, "", "must be a duration of RFC 23"},
		{age, "-1s", "must be a duration of RFC 23"},
		{"inactive-num-limt", 5, "unknown key"},
		{"inactive-", 5, "unknown key"},
	} {
		got, err := purge.ParseLimits(map[string]any{c.key: c.value, "plugins": 3})
		require.ErrorIs(t, err, purge.ErrLimits, c)
		require.Zero(t, got)
		require.Contains(t, strings.ReplaceAll(err.Error(), `"`+c.key+`"`, c.key), "purge: invalid limits: "+c.key+": "+c.want)
	}
	_, err := purge.ParseLimits(map[string]any{age: "notfsd"})
	require.ErrorIs(t, err, fsd.ErrSyntax)
	for range 20 {
		_, err := purge.ParseLimits(map[string]any{"inactive-b": 1, "inactive-a": 1, number: -1, age: 1})
		require.ErrorContains(t, err, "inactive-a\"", "the first key by name")
	}
}

func TestLimitsThatMakeNoSenseAreRefused(t *testing.T) {
	x, _ := populated(t, purge.Config{}, 3)
	for key, l := range map[string]purge.Limits{
		"MaxAge":   {MaxAge: jobstate.Some(time.Duration(-1))},
		"MinAge":   {MinAge: jobstate.Some(time.Duration(-1))},
		"MaxCount": {MaxCount: jobstate.Some(-42)},
		"Batch":    {Batch: 10000},
	} {
		_, err := x.Plan(start+10, l)
		require.ErrorIs(t, err, purge.ErrLimits)
		require.ErrorContains(t, err, "purge: invalid limits: "+key+": must be ")
	}
	_, err := x.Plan(start+10, purge.Limits{Batch: -2})
	require.EqualError(t, err, "purge: invalid limits: Batch: must be 1 to 1000")
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
		if l.MaxAge.Set {
			require.Contains(t, table, "inactive-age-limit")
		}
	})
}
