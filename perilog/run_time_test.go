package perilog

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
)

// deadline returns the deadline of a run that has one.
func deadline(t testing.TB, r *testRun) eventlog.Timestamp {
	t.Helper()
	d, ok := r.Deadline()
	require.True(t, ok)
	return d
}

func TestTheLongestTimersAreStillTimes(t *testing.T) {
	spec := perRank(t, "0-3")
	spec.Timeout, spec.KillTimeout = math.MaxInt64, math.MaxInt64
	r := launched(t, spec)
	year := eventlog.Timestamp(366 * 24 * time.Hour / time.Second)
	require.InDelta(t, 292, float64((deadline(t, r)-t0)/year), 1)
	r.tick()
	r.tick()
	require.True(t, r.Done())
}

func TestATimeoutComesBeforeTheKillTimeoutOfAnEarlierLaunch(t *testing.T) {
	spec := perRank(t, "0-1")
	spec.KillTimeout = spec.Timeout
	r := &testRun{run: makeRun(spec), t: t, now: t0}
	r.Launch(t0, 1, set(t, "0"))
	r.Launch(t0+60, 2, set(t, "1"))
	r.tick()
	require.Len(t, r.signals, 1)
	require.Equal(t, t0+1860, deadline(t, r))
}

func TestEndIdleEndsWhatWasNotLaunched(t *testing.T) {
	for _, c := range []struct {
		cause  endCause
		drain  bool
		status int32
		note   string
		drains []string
	}{
		{causeOffline, false, 68 << 8, "prolog not run (offline) on fluke1 (rank 1)", nil}, // not "exit code=1": flux-core#5910
		{causeOffline, true, 68 << 8, "prolog not run (offline) on fluke1 (rank 1)", []string{"prolog offline for job ƒuZZybuNNy: 1"}},
		{causeCanceled, false, statusTerminated, "prolog canceled on fluke1 (rank 1)", nil},
	} {
		r := &testRun{run: makeRun(perRank(t, "0-3")), t: t, now: t0}
		r.Launch(t0, 1, set(t, "0,2-3"))
		require.Equal(t, "1", r.At(slotIdle).String())
		r.EndIdle(t0, r.At(slotIdle), c.cause, c.drain)
		r.fetch()
		require.False(t, r.Has(slotIdle))
		require.Equal(t, []rankEnd{{Rank: 1, Status: c.status}}, r.ends)
		require.Equal(t, c.drains, r.drained())
		require.Equal(t, AckEnded, r.Report(t0, Report{Kind: ReportStarted, Rank: 1}))
		r.exit("0,2-3", 0)
		require.Equal(t, c.note, r.Outcome().Note)
		require.Equal(t, c.cause == causeOffline, r.Outcome().reported)
	}
	r := &testRun{run: makeRun(single(t, 0, "4-7")), t: t, now: t0}
	require.Equal(t, "0", r.At(slotIdle).String())
	r.EndIdle(t0, r.At(slotIdle), causeOffline, false)
	r.fetch()
	require.Equal(t, "offline 4-7", r.causes())
	require.Equal(t, "prolog not run (offline) on fluke0 (rank 0)", r.Outcome().Note)
	require.Len(t, r.ends, 4)
	require.Zero(t, r.start)
	require.Equal(t, t0, r.end)
}

func TestWhatIsFinishedByForceEndsAndIsRecorded(t *testing.T) {
	r := launched(t, perRank(t, "0-3"))
	r.exit("0", 0)
	r.force("0-1,9", 256)
	require.Equal(t, "2-3", r.At(slotRunning).String())
	r.Lose()
	r.force("2-3", 0)
	require.True(t, r.Done())
	require.Equal(t, []rankEnd{{Rank: 0, Status: 0}, {Rank: 1, Status: 256, Forced: true}, {Rank: 2, Forced: true}, {Rank: 3, Forced: true}}, r.ends)
	require.Equal(t, "forced 1-3", r.causes())
	require.Equal(t, "1", r.Outcome().Failed.String())
	require.Equal(t, "rank 1 (fluke1): finished by force, status 256: \"alice\"\n"+
		"rank 2 (fluke2): finished by force: \"alice\"\nrank 3 (fluke3): finished by force: \"alice\"\n", r.Outcome().Detail)
	require.Equal(t, "15 to 1, 15 to 2-3", fmt.Sprintf("%d to %v, %d to %v", r.signals[0].Signal, r.signals[0].Ranks, r.signals[1].Signal, r.signals[1].Ranks))
	require.Empty(t, r.drained())
	require.Empty(t, r.launches)

	r = launched(t, single(t, 0, "4-7"))
	r.force("4-5", 256)
	require.Equal(t, "0", r.At(slotRunning).String(), "it has others to serve")
	r.force("6-7", 0)
	require.True(t, r.Done())
	require.Equal(t, AckEnded, r.report(Report{Kind: ReportExited, Rank: 0}))
	require.EqualValues(t, 256, r.Outcome().Status)
}

// The largest attempt is in no log of this library. A damaged one must not make
// the run lose count.
func TestAttemptsDoNotOverflow(t *testing.T) {
	r := &testRun{run: makeRun(perRank(t, "0-2")), t: t, now: t0}
	r.Launch(t0, math.MaxUint32, set(t, "0"))
	r.Launch(t0, 5, set(t, "1"))
	r.Launch(t0, math.MaxUint32, set(t, "2"))
	r.force("1", 256)
	r.force("0,2", 256)
	require.Equal(t, "forced 0-2", r.causes())
	require.Less(t, r.last, uint32(math.MaxUint32), "another launch must have a number")
}
