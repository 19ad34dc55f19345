package jobstate_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate"
)

func TestASummaryOfAJobIsWhatItsLogSays(t *testing.T) {
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
	stopped := ran + strings.Replace(canceled, "\n", "\n"+`{"timestamp":4.0,"name":"finish","context":{"status":15}}
{"timestamp":4.0,"name":"release","context":{"ranks":"all","final":true}}
{"timestamp":4.0,"name":"free"}
`, 1)
	finished := strings.Replace(ran+ended, `{"timestamp":5.0`, strings.Split(strings.Replace(canceled, "3.0", "4.5", 1), "\n")[0]+"\n"+`{"timestamp":5.0`, 1)
	for log, want := range map[string]jobstate.Summary{
		stopped:          {ID: 9, Inactive: 4.5, Result: jobstate.ResultCanceled, Ran: true, UserID: 1, Stopped: true},
		finished:         {ID: 9, Inactive: 7, Result: jobstate.ResultCanceled, Ran: true, UserID: 1},
		ran + ended:      {ID: 9, Inactive: 7, Result: jobstate.ResultFailed, Ran: true, UserID: 1},
		unstarted:        {ID: 9, Inactive: 4.5, Result: jobstate.ResultCanceled, UserID: 1, Unstarted: true},
		began + canceled: {ID: 9, Inactive: 4.5, Result: jobstate.ResultCanceled, UserID: 1},
	} {
		j, err := jobstate.Replay(9, []byte(log))
		require.NoError(t, err)
		got, ok := j.Summary()
		require.True(t, ok)
		require.Equal(t, want, got)
	}
	for log, want := range map[string]jobstate.State{"": jobstate.StateNew, ran: jobstate.StateRun} {
		j, err := jobstate.Replay(9, []byte(log))
		require.NoError(t, err)
		require.Equal(t, want, j.State())
		_, ok := j.Summary()
		require.False(t, ok)
	}
}

func TestATombstonePrintsAndReads(t *testing.T) {
	for text, job := range map[string]jobstate.Summary{
		"6731191091817518 0 1699996421.5 failed ran": {
			ID: 6731191091817518, Inactive: 1699996421.5, Result: jobstate.ResultFailed, Ran: true,
		},
		"0 0 4.9406564584124654e-324 unknown never-ran": {Inactive: 5e-324},
		"18446744073709551615 0 1.7976931348623157e308 completed never-ran": {
			ID: math.MaxUint64, Inactive: math.MaxFloat64, Result: jobstate.ResultCompleted,
		},
		"1 0 1.0 failed unstarted":           {ID: 1, Inactive: 1, Result: jobstate.ResultFailed, Unstarted: true},
		"1 0 1.0 canceled stopped":           {ID: 1, Inactive: 1, Result: jobstate.ResultCanceled, Ran: true, Stopped: true},
		"1 0 1.0 canceled ran":               {ID: 1, Inactive: 1, Result: jobstate.ResultCanceled, Ran: true},
		"10 0 2.5 timeout ran":               {ID: 10, Inactive: 2.5, Result: jobstate.ResultTimeout, Ran: true},
		"10 0 2.5 unknown ran":               {ID: 10, Inactive: 2.5, Ran: true},
		"1 0 10000000000000000.0 failed ran": {ID: 1, Inactive: 1e16, Result: jobstate.ResultFailed, Ran: true},
		"1 0 123.0 failed ran":               {ID: 1, Inactive: 123, Result: jobstate.ResultFailed, Ran: true},
		"1 0 0.25 canceled ran":              {ID: 1, Inactive: 0.25, Result: jobstate.ResultCanceled, Ran: true},
	} {
		var got jobstate.Summary
		require.NoError(t, got.UnmarshalText([]byte(text)), text)
		require.Equal(t, job, got)
		require.Equal(t, text, got.String())
		dst, err := got.AppendText([]byte("before "))
		require.NoError(t, err)
		require.Equal(t, "before "+text, string(dst))
		for n := range text {
			require.ErrorContains(t, new(jobstate.Summary).UnmarshalText([]byte(text[:n])), "malformed record", "cut after %d", n)
		}
	}
	for _, job := range []jobstate.Summary{
		{}, {Inactive: -1}, {Inactive: eventlog.Timestamp(math.NaN())}, {Inactive: 1, Result: 3}, {Inactive: 1, Ran: true, Unstarted: true}, {Inactive: 1, Result: 16}, {Inactive: 1, Stopped: true},
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
		j := jobstate.Summary{ID: 7}
		err := j.UnmarshalText([]byte(text))
		require.ErrorContains(t, err, "malformed record")
		require.ErrorContains(t, err, fmt.Sprintf("jobstate: offset %d: ", want))
		require.Less(t, len(err.Error()), 200)
		require.Equal(t, jobstate.Summary{ID: 7}, j)
	}
	require.EqualError(t, new(jobstate.Summary).UnmarshalText([]byte("1 0 2.0 \x00 ran")),
		`jobstate: offset 8: "1 0 2.0 \x00 ran": malformed record: not a result`)
}

// FuzzTombstone: the text of a Summary, which stores keep as the tombstone of a job.
func FuzzTombstone(f *testing.F) {
	for _, s := range []string{"6731191091817518 0 1699996421.5 failed ran", "0 0 1.0 unknown never-ran", "1 0 1e400 failed ran", ""} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var j jobstate.Summary
		if err := j.UnmarshalText(text); err != nil {
			require.ErrorContains(t, err, "malformed record")
			require.Zero(t, j)
			return
		}
		again, err := j.MarshalText()
		require.NoError(t, err)
		require.Equal(t, text, again, "equal jobs have equal bytes")
		require.True(t, j.Inactive > 0 && !math.IsInf(float64(j.Inactive), 0), "package purge can have it in an index")
	})
}
