package perilog_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/rset"
)

func TestReleaseAfterUnsetGivesAllBackAtOnce(t *testing.T) {
	f := hkNew(t, hkJob("0-3", nil), perilog.HousekeepingOptions{})
	f.start(0, "0-3")
	require.Empty(t, f.exit(1, "0-2", 0))
	require.Empty(t, f.tick(1e6))
	_, ok := f.h.Deadline()
	require.False(t, ok)
	require.Equal(t, []string{"0-3 final"}, f.exit(1e6, "3", 0))
}

func TestReleaseAfterZeroGivesEachBackAsItEnds(t *testing.T) {
	f := hkNew(t, hkJob("0-3", hkAfter(0)), perilog.HousekeepingOptions{})
	f.start(0, "0-3")
	require.Equal(t, []string{"2"}, f.exit(1, "2", 0))
	require.Equal(t, []string{"0", "1"}, f.exit(2, "0-1", 0))
	require.Equal(t, []string{"3 final"}, f.exit(3, "3", 0))
}

// The timer is armed once, by the first end; after it each goes back as it
// ends.
func TestReleaseAfterADurationGivesTheFirstOnesBackTogether(t *testing.T) {
	f := hkNew(t, hkJob("0-5", hkAfter(30)), perilog.HousekeepingOptions{})
	f.start(0, "0-5")
	_, ok := f.h.Deadline()
	require.False(t, ok)
	require.Empty(t, f.exit(10, "0", 0))
	require.Empty(t, f.exit(25, "1-2", 0))
	at, ok := f.h.Deadline()
	require.True(t, ok)
	require.Equal(t, hkT0+40, at)
	require.Equal(t, at, f.h.Status(0).Release)
	require.True(t, f.h.Status(0).Remaining.IsInfinite(), "there is no timeout")
	require.Empty(t, f.tick(39.5))
	require.Equal(t, []string{"0-2"}, f.tick(40))
	_, ok = f.h.Deadline()
	require.False(t, ok)
	require.Equal(t, []string{"4"}, f.exit(41, "4", 0))
	require.Equal(t, []string{"3", "5 final"}, f.exit(50, "3,5", 0))
}

func TestTheLastEndDoesNotWaitForTheTimer(t *testing.T) {
	f := hkNew(t, hkJob("0-1", hkAfter(30)), perilog.HousekeepingOptions{})
	f.start(0, "0-1")
	require.Empty(t, f.exit(1, "0", 0))
	require.Equal(t, []string{"0-1 final"}, f.exit(2, "1", 0))
	_, ok := f.h.Deadline()
	require.False(t, ok)
	require.False(t, f.h.Tick(hkT0+1e9))
	require.Empty(t, f.step())
	require.Zero(t, f.h.Status(0).Release)
}

// A report that comes when the timer is due, before the tick, is one with those
// that waited for it.
func TestAnEndAtTheTimerGoesWithTheOthers(t *testing.T) {
	f := hkNew(t, hkJob("0-2", hkAfter(30)), perilog.HousekeepingOptions{})
	f.start(0, "0-2")
	require.Empty(t, f.exit(1, "0", 0))
	require.Equal(t, []string{"0-1"}, f.exit(31, "1", 0))
}

func TestAnInfiniteReleaseAfterNeverFires(t *testing.T) {
	f := hkNew(t, hkJob("0-1", hkAfter(hkForever())), perilog.HousekeepingOptions{})
	f.start(0, "0-1")
	require.Empty(t, f.exit(1, "0", 0))
	_, ok := f.h.Deadline()
	require.False(t, ok)
	require.Empty(t, f.tick(1e12))
	require.Equal(t, []string{"0-1 final"}, f.exit(2, "1", 0))
}

func TestAnEmptyRIsGivenBackAtOnce(t *testing.T) {
	for _, r := range []*rset.R{nil, new(rset.R)} {
		h, err := perilog.NewHousekeeping(hkT0, perilog.HousekeepingJob{Job: 7, R: r, Named: []string{"ssd1", "ssd0"}}, perilog.HousekeepingOptions{})
		require.NoError(t, err)
		require.True(t, h.Done())
		e := h.Take()
		require.Len(t, e.Free, 1)
		require.True(t, e.Free[0].Final)
		require.Equal(t, []string{"ssd0", "ssd1"}, e.Free[0].Named)
		again, err := perilog.ReplayHousekeeping(e.Log, perilog.HousekeepingOptions{})
		require.NoError(t, err)
		require.Equal(t, h.String(), again.String())
	}
}

func TestNamedResourcesGoBackWithTheFinalFragment(t *testing.T) {
	j := hkJob("0-1", hkAfter(0))
	j.Named = []string{"ssd0", "rabbit \"é\""}
	f := hkNew(t, j, perilog.HousekeepingOptions{})
	f.start(0, "0-1")
	f.exit(1, "0-1", 0)
	require.Len(t, f.free, 2)
	require.Empty(t, f.free[0].Named)
	require.Equal(t, []string{"rabbit \"é\"", "ssd0"}, f.free[1].Named)
}

func TestTheDecisionComesBeforeTheRelease(t *testing.T) {
	var asked []perilog.RankEnd
	var f *hkFollow
	o := perilog.HousekeepingOptions{Decide: func(rank uint32, end perilog.End) perilog.Decision {
		if f != nil { // not while it is replayed, which must not ask
			require.True(t, f.h.Status(0).Allocated.Contains(rank))
		}
		asked = append(asked, perilog.RankEnd{Rank: rank, End: end})
		return []perilog.Decision{perilog.DecisionRelease, perilog.DecisionHold, perilog.DecisionDrain, 0, 77}[rank]
	}}
	f = hkNew(t, hkJob("0-4", hkAfter(0)), o)
	f.start(0, "0-4")
	require.Equal(t, []string{"0"}, f.exit(1, "0-4", 3<<8))
	require.Equal(t, []perilog.RankEnd{
		{Rank: 0, End: perilog.End{Cause: perilog.CauseFailed, Status: 3 << 8}},
		{Rank: 1, End: perilog.End{Cause: perilog.CauseFailed, Status: 3 << 8}},
		{Rank: 2, End: perilog.End{Cause: perilog.CauseFailed, Status: 3 << 8}},
		{Rank: 3, End: perilog.End{Cause: perilog.CauseFailed, Status: 3 << 8}},
		{Rank: 4, End: perilog.End{Cause: perilog.CauseFailed, Status: 3 << 8}},
	}, asked)
	s := f.h.Status(0)
	require.Equal(t, "1,3-4", s.Held.String(), "what is no decision holds")
	require.Equal(t, "2", s.Draining.String())
	require.Equal(t, []string{"2: housekeeping failed for job " + s.Job.String()}, f.drains())
	require.Equal(t, "5", f.h.Drained(hkT0+2, hkRanks("2,5")).String())
	require.Equal(t, []string{"2"}, hkParts(f.step()))
	require.Equal(t, "2", f.h.Drained(hkT0+2, hkRanks("2")).String(), "confirmed before")
	require.Empty(t, f.step())

	// What is held can be tried again.
	f.start(3, "1,3-4")
	require.Equal(t, "0,2", f.h.EndedBy(perilog.CauseFailed).String())
	rest, err := f.h.ForceFinish(hkT0+4, hkRanks("0,3-4,9"), "fluxadmin")
	require.NoError(t, err)
	require.Equal(t, "0,9", rest.String())
	require.Equal(t, []string{"3-4"}, hkParts(f.step()))
	require.Equal(t, "3-4", f.h.EndedBy(perilog.CauseAbandoned).String())
}

// What was confirmed is asked for again after a crash until it is confirmed.
func TestADrainIsAskedForUntilItIsConfirmed(t *testing.T) {
	f := hkNew(t, hkJob("0-2", hkAfter(0)), perilog.HousekeepingOptions{})
	f.start(0, "0-2")
	require.Empty(t, f.exit(1, "0", 1<<8))
	require.Equal(t, perilog.AnswerApplied, f.h.Report(hkT0+2, perilog.Report{Kind: perilog.ReportUnreachable, Rank: 1}))
	f.step()
	id := f.h.Status(0).Job.String()
	want := []string{"0: housekeeping failed for job " + id, "1: housekeeping unreachable for job " + id}
	require.Equal(t, want, f.drains())
	for range 2 {
		f.crash()
		require.Equal(t, want, f.drains())
	}
	f.h.Drained(hkT0+3, hkRanks("0-1"))
	require.Equal(t, []string{"0-1"}, hkParts(f.step()))
	f.crash()
	require.Empty(t, f.drains())
	require.Equal(t, "2", f.h.Unresolved().String())
}

func TestReportsAreAnsweredAndChangeNothingWhereTheyMakeNoSense(t *testing.T) {
	f := hkNew(t, hkJob("0-2", hkAfter(0)), perilog.HousekeepingOptions{})
	exit := func(rank uint32) perilog.Answer {
		return f.h.Report(hkT0, perilog.Report{Kind: perilog.ReportExited, Rank: rank})
	}
	require.Equal(t, perilog.AnswerEarly, exit(0))
	require.Equal(t, perilog.AnswerStranger, exit(3))
	f.start(0, "0")
	f.start(0, "1")
	require.Equal(t, perilog.AnswerEarly, exit(2))
	require.Equal(t, perilog.AnswerApplied, exit(1))
	require.Equal(t, perilog.AnswerEnded, exit(1))
	require.Equal(t, perilog.AnswerStranger, exit(1<<31))
	f.step()
	before := f.h.String()
	f.crash()
	require.Equal(t, perilog.AnswerEarly, exit(0), "it is unresolved")
	require.Equal(t, before, f.h.String())
}

func TestWorkIsNotStartedTwice(t *testing.T) {
	f := hkNew(t, hkJob("0-4", hkAfter(0)), perilog.HousekeepingOptions{})
	f.start(0, "0-2")
	f.exit(1, "1", 0)
	before := f.h.String()
	_, err := f.h.Start(hkT0, perilog.Spec{Ranks: hkRanks("0-1,3,9")})
	var ranks *perilog.HousekeepingRanksError
	require.ErrorAs(t, err, &ranks)
	require.ErrorIs(t, err, perilog.ErrHousekeepingRanks)
	require.Equal(t, "0-1,9", ranks.Ranks.String())
	require.EqualError(t, err, "perilog: housekeeping: start: not of ranks 0-1,9")
	err = f.h.Reattach(hkT0, perilog.Spec{Ranks: hkRanks("0")})
	require.EqualError(t, err, "perilog: housekeeping: reattach: not of ranks 0")
	for _, spec := range []perilog.Spec{{Timeout: -1}, {Timeout: -1, Ranks: new(idset.Set)}} {
		got, err := f.h.Start(hkT0, spec)
		require.ErrorIs(t, err, perilog.ErrSpec)
		require.Nil(t, got)
	}
	require.Equal(t, before, f.h.String())
	require.True(t, f.h.Take().IsEmpty())
	// nil is all that wait.
	got, err := f.h.Start(hkT0, perilog.Spec{})
	require.NoError(t, err)
	require.Equal(t, "3-4", got.String())
	got.Insert(0) // it is the caller's
	f.step()
	require.Contains(t, f.h.String(), "; launched 3-4 at ")
}

func TestTheWorkIsLaunchedWithWhatWasGivenAndNeverRaises(t *testing.T) {
	f := hkNew(t, hkJob("0-3", nil), perilog.HousekeepingOptions{})
	require.True(t, f.h.Status(hkT0).Remaining.IsInfinite(), "nobody knows how long ranks wait")
	command := []string{"clean", "-v"}
	_, err := f.h.Start(hkT0, perilog.Spec{
		Kind: perilog.RunProlog, Command: command, Timeout: 60, KillTimeout: 10, Cancel: perilog.CancelOnException,
		Tolerate: perilog.Tolerate{Count: 4},
	})
	require.NoError(t, err)
	command[0] = "rm"
	f.step()
	require.Len(t, f.requests, 1)
	require.Equal(t, perilog.RequestLaunch, f.requests[0].Kind)
	require.Equal(t, "0-3", f.requests[0].Ranks.String())
	require.Equal(t, []string{"clean", "-v"}, f.requests[0].Command)
	require.Equal(t, 70.0, float64(f.h.Status(hkT0).Remaining))
	f.requests = nil
	f.exit(1, "0", 0)
	f.tick(60)
	require.Equal(t, perilog.RequestSignal, f.requests[0].Kind)
	require.Equal(t, "1-3", f.requests[0].Ranks.String())
	f.requests = nil
	require.Equal(t, 10.0, float64(f.h.Status(hkT0+60).Remaining))
	f.tick(70)
	require.Equal(t, "1-3", f.h.EndedBy(perilog.CauseTimedOut).String())
	require.Equal(t, []string{"1-3: housekeeping timed out for job " + f.h.Status(0).Job.String()}, f.drains())
	require.Zero(t, f.h.Status(hkT0+70).Remaining)
	require.Zero(t, f.h.Status(hkT0+70).Release, "release-after is unset")
	f.h.Drained(hkT0+71, hkRanks("1-3"))
	require.Equal(t, []string{"0-3 final"}, hkParts(f.step()))
	for _, q := range f.requests {
		require.NotEqual(t, perilog.RequestRaise, q.Kind)
	}
}

// PR-13: ranks that are gone for good go back as gone, whatever their state.
func TestRanksThatAreGoneGoBackAsGone(t *testing.T) {
	f := hkNew(t, hkJob("0-5", hkAfter(0)), perilog.HousekeepingOptions{Decide: func(rank uint32, _ perilog.End) perilog.Decision {
		return []perilog.Decision{perilog.DecisionRelease, perilog.DecisionHold, perilog.DecisionDrain}[rank]
	}})
	f.start(0, "0-3")
	f.exit(1, "0-2", 0)
	f.h.Shrink(hkT0+2, hkRanks("0-4,9"))
	require.Equal(t, []string{"1-4 gone 1-4"}, hkParts(f.step()), "0 went back before")
	hello, err := f.h.Hello(true)
	require.NoError(t, err)
	require.Equal(t, "1-4", hello.Gone.String())
	require.Equal(t, perilog.AnswerEnded, f.h.Report(hkT0+3, perilog.Report{Kind: perilog.ReportExited, Rank: 3}))
	before := len(f.log)
	f.h.Shrink(hkT0+4, hkRanks("0-4"))
	f.step()
	require.Len(t, f.log, before)
	f.h.Shrink(hkT0+4, hkRanks("5"))
	require.Equal(t, []string{"5 gone 5 final"}, hkParts(f.step()))
	_, err = f.h.Hello(true)
	require.ErrorIs(t, err, rset.ErrFinal)
}

func TestAReadyRankThatIsGoneIsToldOnce(t *testing.T) {
	f := hkNew(t, hkJob("0-1", nil), perilog.HousekeepingOptions{})
	f.start(0, "0-1")
	f.exit(1, "0", 0)
	f.h.Shrink(hkT0+2, hkRanks("0"))
	f.h.Shrink(hkT0+2, hkRanks("0"))
	require.Empty(t, f.step())
	require.Equal(t, 1, strings.Count(string(f.log), `"shrink"`))
	f.crash()
	require.Equal(t, "0", f.h.EndedBy(perilog.CauseOK).String())
	require.NoError(t, f.h.Reattach(hkT0+3, perilog.Spec{}))
	require.Equal(t, []string{"0-1 gone 0 final"}, f.exit(3, "1", 0))
}

// Timeouts count from the launch, also where a crash was between.
func TestWorkThatIsTakenUpAgainTimesOutWhenItWouldHave(t *testing.T) {
	f := hkNew(t, hkJob("0-3", hkAfter(0)), perilog.HousekeepingOptions{})
	spec := perilog.Spec{Timeout: 100, KillTimeout: 10}
	spec.Ranks = hkRanks("0-1")
	_, err := f.h.Start(hkT0, spec)
	require.NoError(t, err)
	spec.Ranks = hkRanks("2-3")
	_, err = f.h.Start(hkT0+50, spec)
	require.NoError(t, err)
	f.step()
	f.crash()
	require.True(t, f.h.Status(0).Remaining.IsInfinite())
	_, ok := f.h.Deadline()
	require.False(t, ok)
	require.ErrorIs(t, f.h.Reattach(hkT0+60, perilog.Spec{Timeout: -1}), perilog.ErrSpec)
	require.Equal(t, "0-3", f.h.Unresolved().String())
	spec.Ranks = hkRanks("1-3")
	require.NoError(t, f.h.Reattach(hkT0+60, spec))
	require.Equal(t, "0", f.h.Unresolved().String())
	at, _ := f.h.Deadline()
	require.Equal(t, hkT0+100, at)
	f.tick(100)
	at, _ = f.h.Deadline()
	require.Equal(t, hkT0+110, at)
	f.tick(110)
	require.Equal(t, "1", f.h.EndedBy(perilog.CauseTimedOut).String())
	at, _ = f.h.Deadline()
	require.Equal(t, hkT0+150, at)
	require.Equal(t, []string{"2"}, f.exit(111, "2", 0))
}

// What was launched again has one launch, the last.
func TestWorkThatWasRepeatedTimesOutFromItsLastLaunch(t *testing.T) {
	f := hkNew(t, hkJob("0-1", hkAfter(0)), perilog.HousekeepingOptions{})
	f.start(0, "0-1")
	f.crash()
	f.start(50, "0")
	require.NoError(t, f.h.Reattach(hkT0+50, perilog.Spec{}))
	require.Contains(t, f.h.String(), "; launched 1 at 1795226020.0; launched 0 at 1795226070.0;")
	f.crash()
	f.start(60, "1")
	require.NotContains(t, f.h.String(), "launched  at", "a launch of nothing is forgotten")
	f.crash()
	require.NoError(t, f.h.Reattach(hkT0+70, perilog.Spec{Timeout: 100, KillTimeout: 5}))
	require.Empty(t, f.tick(149))
	f.tick(150)
	f.tick(155)
	require.Equal(t, "0", f.h.EndedBy(perilog.CauseTimedOut).String()+f.h.Unresolved().String())
}

func TestTimesThatStepBackCountAsTheLatest(t *testing.T) {
	f := hkNew(t, hkJob("0-2", hkAfter(30)), perilog.HousekeepingOptions{})
	f.start(10, "0-2")
	f.exit(-1e6, "0", 0)
	at, _ := f.h.Deadline()
	require.Equal(t, hkT0+40, at)
	f.h.Tick(hkNoTime())
	f.h.Tick(hkNever())
	require.Empty(t, f.step())
	require.Equal(t, []string{"0"}, f.tick(40))
}

func TestTheSameInputsGiveTheSameBytes(t *testing.T) {
	var logs [2]string
	for i := range logs {
		f := hkNew(t, hkJob("0-7", hkAfter(10)), perilog.HousekeepingOptions{})
		f.start(0, "0-3")
		f.start(1, "4-7")
		f.exit(2, "6", 1<<8)
		f.exit(3, "1,4", 0)
		f.tick(12)
		f.h.Shrink(hkT0+13, hkRanks("5,7"))
		_, err := f.h.ForceFinish(hkT0+14, hkRanks("0-7"), "root")
		require.NoError(t, err)
		f.step()
		require.True(t, f.h.Done())
		logs[i] = string(f.log)
	}
	require.Equal(t, logs[0], logs[1])
}

// Where epilogs ended rank by rank, parts of the job may have gone back before.
func TestWhatWentBackBeforeIsToldAndNotGivenBackAgain(t *testing.T) {
	j := hkJob("0-4", hkAfter(0))
	j.Free = hkRanks("1,3")
	h, err := perilog.NewHousekeeping(hkT0, j, perilog.HousekeepingOptions{})
	require.NoError(t, err)
	j.Free.Insert(0) // what is taken is a copy
	log := append([]byte(nil), h.Take().Log...)
	again, err := perilog.ReplayHousekeeping(log, perilog.HousekeepingOptions{})
	require.NoError(t, err)
	require.Equal(t, h.String(), again.String())
	for _, h := range []*perilog.Housekeeping{h, again} {
		require.NoError(t, h.Check())
		hello, err := h.Hello(true)
		require.NoError(t, err)
		require.Equal(t, "1,3", hello.Free.String())
		require.Equal(t, "0-4", hello.R.Ranks().String())
		got, err := h.Start(hkT0, perilog.Spec{})
		require.NoError(t, err)
		require.Equal(t, "0,2,4", got.String())
		_, err = h.ForceFinish(hkT0, hkRanks("0-4"), "root")
		require.NoError(t, err)
		require.NoError(t, h.Check())
		require.Equal(t, []string{"0,2,4 final"}, hkParts(h.Take().Free))
	}
	j.Free = hkRanks("0-4")
	h, err = perilog.NewHousekeeping(hkT0, j, perilog.HousekeepingOptions{})
	require.NoError(t, err)
	require.Equal(t, []string{" final"}, hkParts(h.Take().Free))
}
