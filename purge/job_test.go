package purge_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/purge"
)

func TestResultsAreThoseOnTheWire(t *testing.T) {
	for own, wire := range map[purge.Result]jobstate.Result{
		purge.Completed: jobstate.ResultCompleted, purge.Failed: jobstate.ResultFailed,
		purge.Canceled: jobstate.ResultCanceled, purge.Timeout: jobstate.ResultTimeout,
	} {
		require.EqualValues(t, wire, own)
		require.Equal(t, strings.ToLower(wire.String()), own.String())
	}
	require.Equal(t, "none", purge.Result(0).String())
	require.Equal(t, "Result(3)", purge.Result(3).String())
}

// After 6555 and 7565 of flux-core: a job that was canceled before it ran has
// neither failed nor been forgotten.
func TestDependenciesAreAnsweredByResultAndWhetherItRan(t *testing.T) {
	for _, c := range []struct {
		job  purge.Job
		want [5]bool // nothing, after, afterany, afterok, afternotok
	}{
		{purge.Job{Result: purge.Completed, Ran: true}, [5]bool{false, true, true, true, false}},
		{purge.Job{Result: purge.Failed, Ran: true}, [5]bool{false, true, true, false, true}},
		{purge.Job{Result: purge.Timeout, Ran: true}, [5]bool{false, true, true, false, true}},
		{purge.Job{Result: purge.Canceled, Ran: true}, [5]bool{false, true, true, false, true}},
		{purge.Job{Result: purge.Canceled}, [5]bool{false, false, true, false, false}},
		{purge.Job{Result: purge.Failed}, [5]bool{false, false, true, false, false}},
		{purge.Job{}, [5]bool{false, false, true, false, false}},
	} {
		for d, want := range c.want {
			require.Equal(t, want, c.job.Satisfies(purge.Dependency(d)), "%v of %+v", purge.Dependency(d), c.job)
		}
		require.False(t, c.job.Satisfies(5))
	}
	require.Equal(t, "after afterany afterok afternotok Dependency(0) Dependency(5)", strings.Join([]string{
		purge.After.String(), purge.AfterAny.String(), purge.AfterOK.String(), purge.AfterNotOK.String(),
		purge.Dependency(0).String(), purge.Dependency(5).String(),
	}, " "))
}

func TestPinsAndKindsPrint(t *testing.T) {
	require.Equal(t, "housekeeping", purge.Pin{Kind: purge.Housekeeping}.String())
	require.Equal(t, `waiter "a\nb"`, purge.Pin{Kind: purge.Waiter, By: "a\nb"}.String())
	require.Equal(t, `dependency "`+strings.Repeat("x", 64)+`"`, purge.Pin{Kind: purge.Dependent, By: strings.Repeat("x", 200)}.String())
	require.Equal(t, "PinKind(0) PinKind(4)", purge.PinKind(0).String()+" "+purge.PinKind(4).String())
}

func TestATombstonePrintsAndReads(t *testing.T) {
	for text, job := range map[string]purge.Job{
		"6731191091817518 1699996421.5 failed ran": {
			ID: 6731191091817518, Inactive: 1699996421.5, Result: purge.Failed, Ran: true,
		},
		"0 4.9406564584124654e-324 none never-ran": {Inactive: 5e-324},
		"18446744073709551615 1.7976931348623157e308 completed never-ran": {
			ID: math.MaxUint64, Inactive: math.MaxFloat64, Result: purge.Completed,
		},
		"1 1.0 canceled ran":               {ID: 1, Inactive: 1, Result: purge.Canceled, Ran: true},
		"10 2.5 timeout ran":               {ID: 10, Inactive: 2.5, Result: purge.Timeout, Ran: true},
		"10 2.5 none ran":                  {ID: 10, Inactive: 2.5, Ran: true},
		"1 10000000000000000.0 failed ran": {ID: 1, Inactive: 1e16, Result: purge.Failed, Ran: true},
		"1 123.0 failed ran":               {ID: 1, Inactive: 123, Result: purge.Failed, Ran: true},
		"1 0.25 canceled ran":              {ID: 1, Inactive: 0.25, Result: purge.Canceled, Ran: true},
	} {
		var got purge.Job
		require.NoError(t, got.UnmarshalText([]byte(text)), text)
		require.Equal(t, job, got)
		require.Equal(t, text, got.String())
		dst, err := got.AppendText([]byte("before "))
		require.NoError(t, err)
		require.Equal(t, "before "+text, string(dst))
		for n := range text {
			require.ErrorIs(t, new(purge.Job).UnmarshalText([]byte(text[:n])), purge.ErrSyntax, "cut after %d", n)
		}
	}
	for _, job := range []purge.Job{
		{}, {Inactive: -1}, {Inactive: eventlog.Timestamp(math.NaN())}, {Inactive: 1, Result: 3}, {Inactive: 1, Result: 16},
	} {
		dst, err := job.AppendText([]byte("x"))
		require.ErrorIs(t, err, purge.ErrJob)
		require.Equal(t, "x", string(dst))
		_, err = job.MarshalText()
		require.ErrorIs(t, err, purge.ErrJob)
		require.Equal(t, "invalid job ƒ1", job.String())
	}
}

func TestATextThatIsNoTombstoneIsRefusedWhereItIsWrong(t *testing.T) {
	for text, want := range map[string]int{
		"":                              0,
		"1 2.0 failed":                  12,
		"1 2.0 failed ran more":         21,
		"x 2.0 failed ran":              0,
		"-1 2.0 failed ran":             0,
		"01 2.0 failed ran":             0,
		"+1 2.0 failed ran":             0,
		"18446744073709551616 2.0 a b":  0,
		"1 2 failed ran":                0,
		"1 2.00 failed ran":             0,
		"1 0.0 failed ran":              2,
		"1 -2.0 failed ran":             2,
		"1 NaN failed ran":              2,
		"1 x failed ran":                2,
		"1  failed ran":                 2,
		"1 2.0 FAILED ran":              6,
		"1 2.0  ran":                    6,
		"1 2.0 failed RAN":              13,
		"1 2.0 failed never-run":        13,
		"1 2.0 failed ran\n":            13,
		strings.Repeat("1", 66) + " 2 ": 65,
	} {
		j := purge.Job{ID: 7}
		err := j.UnmarshalText([]byte(text))
		var syntax *purge.SyntaxError
		require.ErrorAs(t, err, &syntax, text)
		require.ErrorIs(t, err, purge.ErrSyntax)
		require.Equal(t, want, syntax.Offset, "%q: %v", text, err)
		require.LessOrEqual(t, len(syntax.Input), 64)
		require.Equal(t, purge.Job{ID: 7}, j)
	}
	require.EqualError(t, new(purge.Job).UnmarshalText([]byte("1 2.0 \x00 ran")),
		`purge: offset 6: "1 2.0 \x00 ran": malformed record: not a result`)
}

func TestAWatermarkIsWholeOrNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := jobid.ID(rapid.Uint64().Draw(t, "id"))
		text := purge.AppendWatermark([]byte("x"), id)
		require.Equal(t, byte('x'), text[0])
		text = text[1:]
		require.Len(t, text, 26)
		got, err := purge.ParseWatermark(text)
		require.NoError(t, err)
		require.Equal(t, id, got)
		_, err = purge.ParseWatermark(text[:rapid.IntRange(0, 25).Draw(t, "cut")])
		require.ErrorIs(t, err, purge.ErrSyntax)
	})
	require.Equal(t, "watermark 0017e9fb8df16c2e", string(purge.AppendWatermark(nil, 6731191091817518)))
	for text, want := range map[string]int{
		"watermark 0017e9fb8df16c2e\n": 10, "Watermark 0017e9fb8df16c2e": 0, "watermark 0017E9fb8df16c2e": 14,
		"watermark 0017e9fb8df16c2g": 25, "": 0,
	} {
		_, err := purge.ParseWatermark([]byte(text))
		var syntax *purge.SyntaxError
		require.ErrorAs(t, err, &syntax, text)
		require.Equal(t, want, syntax.Offset, text)
	}
}

func FuzzTombstone(f *testing.F) {
	for _, s := range []string{"6731191091817518 1699996421.5 failed ran", "0 1.0 none never-ran", "1 1e400 failed ran", ""} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var j purge.Job
		if err := j.UnmarshalText(text); err != nil {
			require.ErrorIs(t, err, purge.ErrSyntax)
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
			require.ErrorIs(t, err, purge.ErrSyntax)
			require.Zero(t, id)
			return
		}
		require.Equal(t, text, purge.AppendWatermark(nil, id))
	})
}
