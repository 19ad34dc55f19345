package purge_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/purge"
)

func TestARecordOfAJobIsWhatItsLogSays(t *testing.T) {
	const began = `{"timestamp":1.0,"name":"submit","context":{"userid":1,"urgency":16,"flags":0,"version":1}}
{"timestamp":1.0,"name":"validate"}
{"timestamp":1.0,"name":"depend"}
{"timestamp":1.0,"name":"priority","context":{"priority":16}}
`
	const ran = began + `{"timestamp":2.0,"name":"alloc"}
{"timestamp":3.0,"name":"start"}
`
	const ended = `{"timestamp":4.0,"name":"finish","context":{"status":256}}
{"timestamp":5.0,"name":"release","context":{"ranks":"all","final":true}}
{"timestamp":6.0,"name":"free"}
{"timestamp":7.0,"name":"clean"}
`
	const canceled = `{"timestamp":3.0,"name":"exception","context":{"type":"cancel","severity":0,"note":""}}
{"timestamp":4.5,"name":"clean"}
`
	unstarted := began + `{"timestamp":2.0,"name":"alloc"}
` + strings.Replace(canceled, "\n", "\n"+`{"timestamp":4.0,"name":"free"}`+"\n", 1)
	for log, want := range map[string]purge.Record{
		ran + ended:      {ID: 9, Inactive: 7, Result: jobstate.ResultFailed, Ran: true, UserID: 1},
		unstarted:        {ID: 9, Inactive: 4.5, Result: jobstate.ResultCanceled, UserID: 1, Unstarted: true},
		began + canceled: {ID: 9, Inactive: 4.5, Result: jobstate.ResultCanceled, UserID: 1},
	} {
		j, err := jobstate.Replay(9, []byte(log))
		require.NoError(t, err)
		got, err := purge.RecordOf(j)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for log, want := range map[string]jobstate.State{"": jobstate.StateNew, ran: jobstate.StateRun} {
		j, err := jobstate.Replay(9, []byte(log))
		require.NoError(t, err)
		_, err = purge.RecordOf(j)
		require.ErrorIs(t, err, purge.ErrActive)
		require.EqualError(t, err, "purge: ƒA: job is active: "+want.String())
	}
}

// After 6555 and 7565 of flux-core: a job that was canceled before it ran has
// neither failed nor been forgotten.
func TestPinsAndKindsPrint(t *testing.T) {
	require.Equal(t, "housekeeping", purge.Pin{Kind: purge.PinHousekeeping}.String())
	require.Equal(t, `waiter "a\nb"`, purge.Pin{Kind: purge.PinWaiter, By: "a\nb"}.String())
	require.Equal(t, `dependency "`+strings.Repeat("x", 64)+`"`, purge.Pin{Kind: purge.PinDependency, By: strings.Repeat("x", 200)}.String())
	require.Equal(t, "PinKind(0) PinKind(4)", purge.PinKind(0).String()+" "+purge.PinKind(4).String())
}

func TestATombstonePrintsAndReads(t *testing.T) {
	for text, job := range map[string]purge.Record{
		"6731191091817518 0 1699996421.5 failed ran": {
			ID: 6731191091817518, Inactive: 1699996421.5, Result: jobstate.ResultFailed, Ran: true,
		},
		"0 0 4.9406564584124654e-324 unknown never-ran": {Inactive: 5e-324},
		"18446744073709551615 0 1.7976931348623157e308 completed never-ran": {
			ID: math.MaxUint64, Inactive: math.MaxFloat64, Result: jobstate.ResultCompleted,
		},
		"1 0 1.0 failed unstarted":           {ID: 1, Inactive: 1, Result: jobstate.ResultFailed, Unstarted: true},
		"1 0 1.0 canceled ran":               {ID: 1, Inactive: 1, Result: jobstate.ResultCanceled, Ran: true},
		"10 0 2.5 timeout ran":               {ID: 10, Inactive: 2.5, Result: jobstate.ResultTimeout, Ran: true},
		"10 0 2.5 unknown ran":               {ID: 10, Inactive: 2.5, Ran: true},
		"1 0 10000000000000000.0 failed ran": {ID: 1, Inactive: 1e16, Result: jobstate.ResultFailed, Ran: true},
		"1 0 123.0 failed ran":               {ID: 1, Inactive: 123, Result: jobstate.ResultFailed, Ran: true},
		"1 0 0.25 canceled ran":              {ID: 1, Inactive: 0.25, Result: jobstate.ResultCanceled, Ran: true},
	} {
		var got purge.Record
		require.NoError(t, got.UnmarshalText([]byte(text)), text)
		require.Equal(t, job, got)
		require.Equal(t, text, got.String())
		dst, err := got.AppendText([]byte("before "))
		require.NoError(t, err)
		require.Equal(t, "before "+text, string(dst))
		for n := range text {
			require.ErrorContains(t, new(purge.Record).UnmarshalText([]byte(text[:n])), "malformed record", "cut after %d", n)
		}
	}
	for _, job := range []purge.Record{
		{}, {Inactive: -1}, {Inactive: eventlog.Timestamp(math.NaN())}, {Inactive: 1, Result: 3}, {Inactive: 1, Ran: true, Unstarted: true}, {Inactive: 1, Result: 16},
	} {
		dst, err := job.AppendText([]byte("x"))
		require.ErrorContains(t, err, "malformed record")
		require.Equal(t, "x", string(dst))
		_, err = job.MarshalText()
		require.ErrorContains(t, err, "malformed record")
		require.Equal(t, "invalid record "+job.ID.String(), job.String())
	}
}

func TestAnInvalidTombstoneIsRefusedWhereItIsWrong(t *testing.T) {
	for text, want := range map[string]int{
		"":                               0,
		"1 0 2.0 failed":                 14,
		"1 0 2.0 failed ran more":        23,
		"x 0 2.0 failed ran":             0,
		"-1 0 2.0 failed ran":            0,
		"01 0 2.0 failed ran":            0,
		"+1 0 2.0 failed ran":            0,
		"18446744073709551616 0 2.0 a b": 0,
		"1 0 2 failed ran":               0,
		"1 0 2.00 failed ran":            0,
		"1 0 0.0 failed ran":             4,
		"1 0 -2.0 failed ran":            4,
		"1 0 NaN failed ran":             4,
		"1 0 x failed ran":               4,
		"1 0  failed ran":                4,
		"1 0 2.0 FAILED ran":             8,
		"1 0 2.0  ran":                   8,
		"1 0 2.0 failed RAN":             15,
		"1 0 2.0 failed never-run":       15,
		"1 0 2.0 failed ran\n":           15,
		strings.Repeat("1", 80) + " 2 ":  76,
	} {
		j := purge.Record{ID: 7}
		err := j.UnmarshalText([]byte(text))
		require.ErrorContains(t, err, "malformed record")
		require.ErrorContains(t, err, fmt.Sprintf("purge: offset %d: ", want))
		require.Less(t, len(err.Error()), 200)
		require.Equal(t, purge.Record{ID: 7}, j)
	}
	require.EqualError(t, new(purge.Record).UnmarshalText([]byte("1 0 2.0 \x00 ran")),
		`purge: offset 8: "1 0 2.0 \x00 ran": malformed record: not a result`)
}

func TestAWatermarkIsWholeOrNothing(t *testing.T) {
	const whole = "watermark 0017e9fb8df16c2e"
	require.Equal(t, "x"+whole, string(purge.AppendWatermark([]byte("x"), 6731191091817518)))
	id, err := purge.ParseWatermark([]byte(whole))
	require.NoError(t, err)
	require.Equal(t, jobid.ID(6731191091817518), id)
	for n := range whole {
		_, err := purge.ParseWatermark([]byte(whole[:n]))
		require.ErrorContains(t, err, "malformed record")
	}
	for text, want := range map[string]int{
		"watermark 0017e9fb8df16c2e\n": 10, "Watermark 0017e9fb8df16c2e": 0, "watermark 0017E9fb8df16c2e": 10,
		"watermark 0017e9fb8df16c2g": 10, "": 0,
	} {
		_, err := purge.ParseWatermark([]byte(text))
		require.ErrorContains(t, err, "malformed record")
		require.ErrorContains(t, err, fmt.Sprintf("offset %d:", want), text)
	}
}

func FuzzTombstone(f *testing.F) {
	for _, s := range []string{"6731191091817518 0 1699996421.5 failed ran", "0 0 1.0 unknown never-ran", "1 0 1e400 failed ran", ""} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var j purge.Record
		if err := j.UnmarshalText(text); err != nil {
			require.ErrorContains(t, err, "malformed record")
			require.Zero(t, j)
			return
		}
		again, err := j.MarshalText()
		require.NoError(t, err)
		require.Equal(t, text, again, "equal jobs have equal bytes")
		var x purge.Index
		require.NoError(t, x.Add(j), "what was read can be in an index")
	})
}

func FuzzWatermark(f *testing.F) {
	for _, s := range []string{"watermark 0017e9fb8df16c2e", "watermark ffffffffffffffff", "watermark 1", ""} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		id, err := purge.ParseWatermark(text)
		if err != nil {
			require.ErrorContains(t, err, "malformed record")
			require.Zero(t, id)
			return
		}
		require.Equal(t, text, purge.AppendWatermark(nil, id))
	})
}
