package run

import (
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

func TestATimeoutCountsFromTheLaunchAndEndsTheRun(t *testing.T) {
	r := launched(t, perRank(t, "0-3"))
	require.Equal(t, t0+1800, deadline(t, r))
	r.exit("1", 0)
	r.tick()
	require.Equal(t, []string{"TERM to 0,2-3 of 1"}, r.sent())
	require.Equal(t, t0+1860, deadline(t, r))
	r.exit("2", 0)
	r.tick()
	require.True(t, r.Done())
	require.Equal(t, "timed-out 0,2-3", r.causes())
	require.Len(t, r.signals, 1)
	require.Equal(t, t0, r.Start())
	require.Equal(t, t0+1860, r.end)
	_, ok := r.Deadline()
	require.False(t, ok)
	r.Tick(t0 + 9999)
	require.Equal(t, t0+1860, r.end)
}

func TestSIGKILLIsSentOnlyWhereTheSpecSaysSo(t *testing.T) {
	for _, kill := range []bool{false, true} {
		spec := perRank(t, "0-3")
		spec.Kill = kill
		r := launched(t, spec)
		r.exit("0", 0)
		r.tick()
		r.exit("1", 15)
		r.tick()
		want := []string{"TERM to 1-3 of 1"}
		if kill {
			want = append(want, "KILL to 2-3 of 1")
		}
		require.Equal(t, want, r.sent())

		spec = single(t, 9, "0-3")
		spec.Kill = kill
		r = launched(t, spec)
		r.tick()
		r.tick()
		want = []string{"TERM to 9 of 1"}
		if kill {
			want = append(want, "KILL to 9 of 1")
		}
		require.Equal(t, want, r.sent())
	}
}

func TestNoTimeoutIsNoTimer(t *testing.T) {
	spec := perRank(t, "0-3")
	spec.Timeout = 0
	r := launched(t, spec)
	_, ok := r.Deadline()
	require.False(t, ok)
	r.Tick(math.MaxFloat64)
	require.Equal(t, "0-3", r.Running().String())
	require.Empty(t, r.Run.signals)
	r.now = math.MaxFloat64
	r.exit("0-3", 0)
	require.Empty(t, r.causes())
}

func TestATickThatComesLateGivesTheWholeKillTimeout(t *testing.T) {
	r := launched(t, perRank(t, "0-3"))
	r.Tick(t0 + 5000)
	r.now = t0 + 5000
	r.fetch()
	require.Equal(t, t0+5060, deadline(t, r))
	r.now = t0 + 5001
	r.cancel()
	require.Equal(t, t0+5060, deadline(t, r), "it is being stopped")
	r.exit("0", 0)
	r.tick()
	require.Equal(t, "timed-out 0-3", r.causes(), "a timeout that has passed goes on as it is")
	require.True(t, r.Canceled())
}

// A report that comes before the Tick counts: no timer fires by itself.
func TestOnlyATickMakesATimerFire(t *testing.T) {
	r := launched(t, perRank(t, "0-1"))
	r.now = t0 + 9999
	r.exit("0-1", 0)
	require.Zero(t, r.Outcome().Status)
}

// Nobody gives up a process that was not told to stop.
func TestAKillTimeoutCountsFromWhenTheSignalWasHandedOut(t *testing.T) {
	r := launched(t, perRank(t, "0-3"))
	r.Tick(t0 + 1800)
	_, ok := r.Deadline()
	require.False(t, ok, "the next step is the owner's")
	r.Tick(t0 + 1900)
	require.Equal(t, "0-3", r.Running().String())
	r.now = t0 + 2000
	r.fetch()
	require.Equal(t, []string{"TERM to 0-3 of 1"}, r.sent())
	require.Equal(t, t0+2060, deadline(t, r))
	r.tick()
	require.Equal(t, "timed-out 0-3", r.causes())
	r.Signaled(t0+3000, 1)
	_, ok = r.Deadline()
	require.False(t, ok)
}

func TestTimersThatAreTooShortToTellFire(t *testing.T) {
	spec := perRank(t, "0-3")
	spec.Timeout, spec.KillTimeout = 1, 1
	r := launched(t, spec)
	require.Equal(t, t0, deadline(t, r))
	r.Tick(t0)
	r.fetch()
	require.Equal(t, t0, deadline(t, r))
	r.Tick(t0)
	require.True(t, r.Done())
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

func TestACancelIsSentOnceAndHasAnEnd(t *testing.T) {
	r := launched(t, perRank(t, "0-3"))
	r.exit("1", 0)
	r.now = t0 + 2
	r.cancel()
	require.Equal(t, t0+62, deadline(t, r))
	r.now = t0 + 3
	r.cancel()
	require.Equal(t, t0+62, deadline(t, r))
	require.Equal(t, []string{"TERM to 0,2-3 of 1"}, r.sent())
	r.exit("0", 143<<8)
	r.tick()
	require.Equal(t, "canceled 0; canceled-timed-out 2-3", r.causes())
	require.Equal(t, []string{"prolog canceled then timed out for job ƒ6VxCVPm: 2-3"}, r.drained())
	require.EqualValues(t, 143<<8, r.Outcome().Status)

	r = launched(t, perRank(t, "0"))
	r.exit("0", 0)
	r.cancel()
	require.False(t, r.Canceled(), "it is done")
}

// What is launched after a cancel, as on a node that came back, is canceled at
// once.
func TestACancelMeetsWhatIsLaunchedLater(t *testing.T) {
	r := &testRun{Run: New(perRank(t, "0-3")), t: t, now: t0}
	r.Launch(t0, 1, set(t, "0"))
	r.cancel()
	r.now = t0 + 30
	r.Launch(r.now, 2, set(t, "1-2"))
	r.fetch()
	require.Equal(t, []string{"TERM to 0 of 1", "TERM to 1-2 of 2"}, r.sent())
	require.Equal(t, t0+60, deadline(t, r))
	r.tick()
	require.Equal(t, "1-2", r.Running().String())
	require.Equal(t, t0+90, deadline(t, r))
	r.tick()
	require.Equal(t, "3", r.Idle().String())
	r.EndIdle(r.now, set(t, "3"), CauseCanceled, false)
	require.Equal(t, "canceled 3; canceled-timed-out 0-2", r.causes())

	r = &testRun{Run: New(perRank(t, "0-3")), t: t, now: t0}
	r.cancel()
	_, ok := r.Deadline()
	require.False(t, ok)
	r.Launch(t0, 1, set(t, "0-3"))
	r.fetch()
	require.Equal(t, []string{"TERM to 0-3 of 1"}, r.sent())
}

func TestSeveralLaunchesHaveTimeoutsOfTheirOwn(t *testing.T) {
	spec := perRank(t, "0-5")
	spec.Kill = true
	r := &testRun{Run: New(spec), t: t, now: t0}
	r.Launch(t0, 1, set(t, "0-1"))
	r.Launch(t0+100, 2, set(t, "2-3"))
	r.Launch(t0+1830, 3, set(t, "4-5"))
	require.EqualValues(t, 3, r.LastAttempt())
	require.Equal(t, "0-1", r.Of(1).String())
	require.Equal(t, "4-5", r.Of(3).String())
	require.Equal(t, t0+1800, deadline(t, r))
	r.Tick(t0 + 1830) // a late one
	r.now = t0 + 1830
	r.fetch()
	require.Equal(t, t0+1890, deadline(t, r))
	require.Equal(t, []string{"TERM to 0-1 of 1"}, r.sent())
	r.Tick(t0 + 1895) // the kill timeout of 1, just before the timeout of 2
	r.fetch()
	require.Equal(t, []string{"TERM to 0-1 of 1", "KILL to 0-1 of 1"}, r.sent())
	r.now = t0 + 1895
	r.tick()
	require.Equal(t, t0+1900, r.now)
	require.Equal(t, AnswerStale, r.report(Report{Kind: ReportExited, Rank: 2, Attempt: 1}))
	require.Equal(t, AnswerApplied, r.report(Report{Kind: ReportExited, Rank: 2, Attempt: 2}))
	r.cancel() // 3 is canceled, 2 goes on to time out
	require.Equal(t, t0+1960, deadline(t, r))
	r.tick()
	require.True(t, r.Done())
	require.Equal(t, "timed-out 0-3; canceled-timed-out 4-5", r.causes())
	require.Equal(t, []string{"TERM to 0-1 of 1", "KILL to 0-1 of 1", "TERM to 2-3 of 2", "TERM to 4-5 of 3", "KILL to 3 of 2", "KILL to 4-5 of 3"}, r.sent())
}

func TestAnAttemptThatIsNotGreaterCountsAsTheNext(t *testing.T) {
	r := &testRun{Run: New(perRank(t, "0-3")), t: t, now: t0}
	r.Launch(t0, 7, set(t, "0"))
	r.Launch(t0, 7, set(t, "1"))
	r.Launch(t0, 0, set(t, "2"))
	r.Launch(t0, 1, set(t, "9"))
	require.EqualValues(t, 9, r.LastAttempt(), "a launch of nothing is none")
	require.Equal(t, AnswerApplied, r.report(Report{Kind: ReportExited, Rank: 2, Attempt: 9}))
}

func TestWhatIsLostIsTakenUpByAReport(t *testing.T) {
	r := launched(t, perRank(t, "0-3"))
	r.exit("0", 0)
	r.Lose()
	require.Equal(t, "1-3", r.Lost().String())
	require.True(t, r.HasLost())
	require.False(t, r.Alive())
	_, ok := r.Deadline()
	require.False(t, ok, "nobody knows of a process that can be stopped")
	r.Tick(t0 + 9999)
	require.False(t, r.Done())
	require.Equal(t, AnswerStale, r.report(Report{Kind: ReportStarted, Rank: 1, Attempt: 2}))
	require.Equal(t, AnswerIgnored, r.report(Report{Kind: 0, Rank: 1}))
	require.Equal(t, "1-3", r.Lost().String(), "what makes no sense takes nothing up")
	require.Equal(t, AnswerApplied, r.report(Report{Kind: ReportStarted, Rank: 1}))
	require.Equal(t, "1", r.Running().String())
	require.Equal(t, "2-3", r.Lost().String())
	require.Equal(t, t0+1800, deadline(t, r), "a timeout counts from the launch")
	r.exit("2", 256)
	require.Equal(t, []string{"prolog failed for job ƒ6VxCVPm: 2"}, r.drained())
	r.Reattach(r.now, set(t, "3"))
	r.exit("1,3", 0)
	require.Equal(t, "failed 2", r.causes())
}

func TestWhatIsLostIsLaunchedAgain(t *testing.T) {
	for _, spec := range []Spec{perRank(t, "3"), single(t, 3, "0-5")} {
		r := launched(t, spec)
		r.Lose()
		r.Launch(t0+50, 2, set(t, "3"))
		require.False(t, r.HasLost())
		require.Len(t, r.launches, 1, "the first is forgotten")
		require.Equal(t, t0+1850, deadline(t, r))
		require.Equal(t, AnswerStale, r.report(Report{Kind: ReportExited, Rank: 3, Attempt: 1}), "the process of before ended")
		require.Equal(t, AnswerApplied, r.report(Report{Kind: ReportExited, Rank: 3, Attempt: 2}))
		require.Empty(t, r.causes())
		require.Equal(t, t0, r.Start())
	}
}

func TestWhatWasCanceledIsCanceledAgainWhereItIsTakenUp(t *testing.T) {
	r := launched(t, perRank(t, "0-3"))
	r.cancel()
	r.Lose()
	require.Empty(t, r.TakeSignals())
	r.now = t0 + 500
	r.Reattach(r.now, set(t, "0-1"))
	r.fetch()
	require.Equal(t, []string{"TERM to 0-3 of 1", "TERM to 0-1 of 1"}, r.sent())
	require.Equal(t, t0+560, deadline(t, r))
	r.exit("2", 0)
	require.Equal(t, "TERM to 2 of 1", r.sent()[2])
	r.tick()
	require.Equal(t, "3", r.Open().String())
	r.force("3", 256)
	require.Equal(t, "canceled 2; canceled-timed-out 0-1; forced 3", r.causes())
}

func TestEndIdleEndsWhatWasNotLaunched(t *testing.T) {
	for _, c := range []struct {
		cause  Cause
		drain  bool
		status int32
		note   string
		drains []string
	}{
		{CauseOffline, false, 68 << 8, "prolog not run (offline) on fluke1 (rank 1)", nil},
		{CauseOffline, true, 68 << 8, "prolog not run (offline) on fluke1 (rank 1)", []string{"prolog offline for job ƒ6VxCVPm: 1"}},
		{CauseCanceled, false, statusTerminated, "prolog canceled on fluke1 (rank 1)", nil},
	} {
		r := &testRun{Run: New(perRank(t, "0-3")), t: t, now: t0}
		r.Launch(t0, 1, set(t, "0,2-3"))
		require.Equal(t, "1", r.Idle().String())
		r.EndIdle(t0, r.Idle(), c.cause, c.drain)
		r.fetch()
		require.False(t, r.HasIdle())
		require.Equal(t, []RankEnd{{Rank: 1, Status: c.status}}, r.ends)
		require.Equal(t, c.drains, r.drained())
		require.Equal(t, AnswerEnded, r.Report(t0, Report{Kind: ReportStarted, Rank: 1}))
		r.exit("0,2-3", 0)
		require.Equal(t, c.note, r.Outcome().Note)
		require.Equal(t, c.cause == CauseOffline, r.Outcome().Reported)
	}
	r := &testRun{Run: New(single(t, 0, "4-7")), t: t, now: t0}
	require.Equal(t, "0", r.Idle().String())
	r.EndIdle(t0, r.Idle(), CauseOffline, false)
	r.fetch()
	require.Equal(t, "offline 4-7", r.causes())
	require.Equal(t, "prolog not run (offline) on fluke0 (rank 0)", r.Outcome().Note)
	require.Len(t, r.ends, 4)
	require.Zero(t, r.Start())
	require.Equal(t, t0, r.end)
}

func TestWhatIsFinishedByForceEndsAndIsRecorded(t *testing.T) {
	r := launched(t, perRank(t, "0-3"))
	r.exit("0", 0)
	r.force("0-1,9", 256)
	require.Equal(t, "2-3", r.Running().String())
	r.Lose()
	r.force("2-3", 0)
	require.True(t, r.Done())
	require.Equal(t, []RankEnd{{Rank: 0, Status: 0}, {Rank: 1, Status: 256, Forced: true}, {Rank: 2, Forced: true}, {Rank: 3, Forced: true}}, r.ends)
	require.Equal(t, "forced 1-3", r.causes())
	require.Equal(t, "1", r.Outcome().Failed.String())
	require.Equal(t, "rank 1 (fluke1): finished by force, status 256: \"alice\"\n"+
		"rank 2 (fluke2): finished by force: \"alice\"\nrank 3 (fluke3): finished by force: \"alice\"\n", r.Outcome().Detail)
	require.Empty(t, r.signals)
	require.Empty(t, r.drained())
	require.Empty(t, r.launches)

	r = launched(t, single(t, 0, "4-7"))
	r.force("4-5", 256)
	require.Equal(t, "0", r.Running().String(), "it has others to serve")
	r.force("6-7", 0)
	require.True(t, r.Done())
	require.Equal(t, AnswerEnded, r.report(Report{Kind: ReportExited, Rank: 0}))
	require.EqualValues(t, 256, r.Outcome().Status)
}

// What is taken up after its launch timed out is told to stop, too, and has the
// whole kill timeout for it.
func TestWhatIsTakenUpAfterTheTimeoutIsToldToStop(t *testing.T) {
	r := launched(t, perRank(t, "0-2"))
	r.Lose()
	r.Reattach(t0, set(t, "0"))
	r.tick()
	require.Equal(t, []string{"TERM to 0 of 1"}, r.sent())
	r.now += 30
	require.Equal(t, AnswerApplied, r.report(Report{Kind: ReportStarted, Rank: 1}))
	require.Equal(t, []string{"TERM to 0 of 1", "TERM to 1 of 1"}, r.sent())
	require.Equal(t, t0+1890, deadline(t, r))
	r.tick()
	require.Equal(t, "2", r.Open().String())
	r.now += 30 // all others were given up by now
	require.Equal(t, AnswerApplied, r.report(Report{Kind: ReportStarted, Rank: 2}))
	require.Equal(t, []string{"TERM to 0 of 1", "TERM to 1 of 1", "TERM to 2 of 1"}, r.sent())
	require.Equal(t, t0+1980, deadline(t, r))
	r.exit("2", 15)
	require.Equal(t, "timed-out 0-2", r.causes())
}

// Plain output of what was lost tells that it runs.
func TestAnyLegalReportOfWhatWasLostTakesItUp(t *testing.T) {
	r := launched(t, perRank(t, "0-3"))
	r.Lose()
	require.Equal(t, AnswerApplied, r.report(Report{Kind: ReportOutput, Rank: 0, Line: []byte("hello")}))
	require.Equal(t, AnswerIgnored, r.report(Report{Kind: ReportOutput, Rank: 0, Line: []byte("hello")}))
	require.Equal(t, AnswerApplied, r.report(Report{Kind: ReportStarted, Rank: 1}))
	require.Equal(t, AnswerRepeated, r.report(Report{Kind: ReportStarted, Rank: 1}))
	require.Equal(t, AnswerIgnored, r.report(Report{Kind: ReportExited, Rank: 2, Status: 0x7f}), "it was stopped, and nobody knows if it runs")
	require.Equal(t, "0-1", r.Running().String())
}

// A rank that failed may be run again, and one that ended well may not.
func TestARankThatFailedIsLaunchedAgain(t *testing.T) {
	r := launched(t, perRank(t, "0-1"))
	r.exit("0", 0)
	r.exit("1", 256)
	require.Equal(t, "1", r.Failed().String())
	r.Launch(t0+9, 2, set(t, "0-1"))
	require.Equal(t, "1", r.Running().String())
	require.False(t, r.Done())
	require.Zero(t, r.end)
	require.Equal(t, AnswerApplied, r.report(Report{Kind: ReportExited, Rank: 1, Attempt: 2}))
	require.Empty(t, r.causes())
	require.Zero(t, r.Outcome().Status, "it ended well on every rank")
	require.Equal(t, []RankEnd{{Rank: 0, Status: 0}, {Rank: 1, Status: 256}, {Rank: 1, Status: 0}}, r.ends)
	require.Len(t, r.drained(), 1)
}

// A line that was not understood is of the attempt that wrote it.
func TestARerunKeepsWhatTheLogToldOfTheAttemptThatWasLost(t *testing.T) {
	for _, spec := range []Spec{perRank(t, "3"), single(t, 3, "0-5")} {
		r := launched(t, spec)
		r.says(3, "nonsense")
		r.Lose()
		r.Launch(t0, 2, set(t, "3"))
		r.report(Report{Kind: ReportExited, Rank: 3, Attempt: 2})
		require.Contains(t, r.causes(), "control", "per rank %t", spec.PerRank)
	}
}

// The largest attempt is in no log of this library. A damaged one must not make
// the run lose count.
func TestAttemptsDoNotOverflow(t *testing.T) {
	r := &testRun{Run: New(perRank(t, "0-2")), t: t, now: t0}
	r.Launch(t0, math.MaxUint32, set(t, "0"))
	r.Launch(t0, 5, set(t, "1"))
	r.Launch(t0, math.MaxUint32, set(t, "2"))
	r.force("1", 256)
	r.force("0,2", 256)
	require.Equal(t, "forced 0-2", r.causes())
	require.Less(t, r.LastAttempt(), uint32(math.MaxUint32), "another launch must have a number")
}

func TestALaterLaunchTimesOutWhileAnEarlierOneIsBeingStopped(t *testing.T) {
	r := &testRun{Run: New(perRank(t, "0-1")), t: t, now: t0}
	r.Launch(t0, 1, set(t, "0"))
	r.Launch(t0+30, 2, set(t, "1"))
	r.Tick(t0 + 1800)
	r.fetch()
	require.Equal(t, t0+1830, deadline(t, r))
	r.Tick(t0 + 1830)
	r.fetch()
	require.Equal(t, []string{"TERM to 0 of 1", "TERM to 1 of 2"}, r.sent())
	require.Equal(t, t0+1860, deadline(t, r))
}

func TestACancelSignalsWhatIsLostOnlyWhenItIsFound(t *testing.T) {
	r := launched(t, perRank(t, "0-3"))
	r.Lose()
	r.Cancel(t0 + 1)
	r.fetch()
	require.Empty(t, r.signals)
	r.Reattach(t0+2, set(t, "0-3"))
	r.fetch()
	require.Equal(t, []string{"TERM to 0-3 of 1"}, r.sent())
	require.Equal(t, t0+62, deadline(t, r))
}
