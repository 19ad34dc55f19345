package perilog_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/rset"
)

// What happened on clusters, each with the issue that tells of it.

// flux-core#6179: a large job is inactive, no housekeeping is listed, and the
// scheduler still holds its nodes: of some ranks neither an exit nor an error
// came, and the last fragment had no mark.
func TestIssue6179EveryRankOfALargeJobGoesBackWithOneFinalFragment(t *testing.T) {
	all := new(idset.Set)
	all.InsertRange(0, 1023)
	f := hkNew(t, hkJob(all.String(), hkAfter(30)), perilog.HousekeepingOptions{})
	_, err := f.h.Start(hkT0, perilog.Spec{Timeout: 600, KillTimeout: 60})
	require.NoError(t, err)
	for rank := range all.All() {
		rep := perilog.Report{Kind: perilog.ReportExited, Rank: rank}
		switch {
		case rank%100 == 7:
			continue // nothing is ever heard of it
		case rank%100 == 8:
			rep.Kind = perilog.ReportUnreachable
		}
		f.h.Report(hkT0+eventlog.Timestamp(rank), rep)
	}
	f.step()
	require.False(t, f.h.Done())
	require.Zero(t, f.finals(), "none is final while a rank is held")
	for at, ok := f.h.Deadline(); ok; at, ok = f.h.Deadline() {
		f.h.Tick(at)
	}
	f.step()
	s := f.h.Status(0)
	require.Empty(t, s.Pending.String(), "every rank has ended")
	require.Equal(t, 11, f.h.EndedBy(perilog.CauseTimedOut).Len())
	require.Equal(t, 11, f.h.EndedBy(perilog.CauseUnreachable).Len())
	require.Equal(t, 22, s.Allocated.Len())
	require.Equal(t, s.Allocated.String(), s.Draining.String())
	f.h.Drained(hkT0+5000, s.Draining)
	f.step()
	require.True(t, f.h.Done())
	require.Equal(t, 1, f.finals())
	require.True(t, f.free[len(f.free)-1].Final)
}

// flux-core#6089, flux-core#6445: the scheduler is loaded again while a job is
// partly given back. It is told what was given back, and the work goes on.
func TestIssue6445AReloadOfTheSchedulerLeavesHousekeepingAlone(t *testing.T) {
	f := hkNew(t, hkJob("0-3", hkAfter(0)), perilog.HousekeepingOptions{})
	f.start(0, "0-3")
	hello, err := f.h.Hello(false)
	require.NoError(t, err, "nothing went back yet")
	require.Nil(t, hello.Free)
	f.exit(1, "1,3", 0)
	f.requests = nil
	before := f.h.String()

	for range 2 { // a scheduler may ask again
		hello, err = f.h.Hello(true)
		require.NoError(t, err)
		require.Equal(t, f.r, hello.R)
		require.Equal(t, "1,3", hello.Free.String())
		require.Equal(t, perilog.HousekeepingHello{
			Job: 1 << 40, UserID: 5588, Priority: 16, Submitted: hkT0 - 7200, R: hello.R, Free: hello.Free,
		}, hello)
		held, err := hello.R.Without(hello.Free)
		require.NoError(t, err)
		require.Equal(t, f.h.Status(0).Allocated.String(), held.Ranks().String())
	}
	_, err = f.h.Hello(false)
	var partial *perilog.PartialReleaseError
	require.ErrorAs(t, err, &partial)
	require.ErrorIs(t, err, perilog.ErrPartialRelease)
	require.Equal(t, "0,2", partial.Held.String())
	require.Equal(t, "1,3", partial.Free.String())
	require.EqualError(t, err, "perilog: housekeeping: job ƒVtB5VXd: ranks 0,2 are held, and the scheduler does not take partial allocations")

	require.True(t, f.h.Take().IsEmpty(), "nothing was signalled, nothing given back")
	require.Equal(t, before, f.h.String())
	require.Equal(t, []string{"0", "2 final"}, f.exit(2, "0,2", 0))
}

// flux-core#6596: release-after was taken out of the configuration, and
// fragments that were not final kept coming, without times.
func TestIssue6596ReleaseAfterIsThatOfTheStart(t *testing.T) {
	after := fsd.Duration(0)
	partly := hkNew(t, hkJob("0-2", &after), perilog.HousekeepingOptions{})
	after = 77 // what is taken is a copy
	partly.start(0, "0-2")
	// The configuration now has none: jobs that come later go back whole, those
	// that were there as they would have, after a restart too.
	whole := hkNew(t, hkJob("0-2", nil), perilog.HousekeepingOptions{})
	whole.start(0, "0-2")
	require.Equal(t, []string{"0"}, partly.exit(1, "0", 0))
	partly.crash()
	require.NoError(t, partly.h.Reattach(hkT0, perilog.Spec{}))
	require.Equal(t, []string{"1", "2 final"}, partly.exit(1, "1-2", 0))

	require.Empty(t, whole.exit(1, "0", 0))
	whole.crash()
	require.NoError(t, whole.h.Reattach(hkT0, perilog.Spec{}))
	require.Empty(t, whole.tick(1e9))
	require.Equal(t, []string{"0-2 final"}, whole.exit(1, "1-2", 0))
	for _, part := range partly.free {
		require.Equal(t, partly.r.Start(), part.R.Start())
		require.Equal(t, partly.r.Expiration(), part.R.Expiration())
		want, err := partly.r.Restrict(part.R.Ranks())
		require.NoError(t, err)
		require.True(t, rset.Equal(want, part.R), "hosts, gpus and cores are those of the allocation")
	}
}

// flux-core#7794: one node was in housekeeping for more than a week; after a
// change of the configuration and a reload the scheduler gave it to another job.
func TestIssue7794ANodeThatIsHeldForAWeekStaysHeldOverAReload(t *testing.T) {
	const week = 7 * 86400
	f := hkNew(t, hkJob("0-7", hkAfter(30)), perilog.HousekeepingOptions{})
	f.start(0, "0-7")
	f.exit(5, "0-6", 0)
	require.Equal(t, []string{"0-6"}, f.tick(35))
	for day := 1; day <= 8; day++ {
		f.tick(eventlog.Timestamp(86400 * day))
		if day == 3 || day == 7 { // the manager was started again, too
			f.crash()
			require.Equal(t, "7", f.h.Unresolved().String())
		}
		hello, err := f.h.Hello(true)
		require.NoError(t, err)
		held, err := hello.R.Without(hello.Free)
		require.NoError(t, err)
		require.Equal(t, "7", held.Ranks().String())
		s := f.h.Status(hkT0 + eventlog.Timestamp(86400*day))
		require.Equal(t, "7", s.Allocated.String())
		require.Equal(t, "7", s.Pending.String())
		require.Equal(t, hkT0, s.Since)
	}
	require.NoError(t, f.h.Reattach(hkT0+week, perilog.Spec{}))
	require.Equal(t, []string{"7 final"}, f.exit(week+86400, "7", 0))
}

// flux-core#6118: a failed housekeeping put the node back into service: it was
// released before anyone looked at the exit status.
func TestIssue6118AFailureDoesNotReleaseSilently(t *testing.T) {
	for name, rep := range map[string]perilog.Report{
		"failed":        {Kind: perilog.ReportExited, Status: 1 << 8},
		"signalled":     {Kind: perilog.ReportExited, Status: 9},
		"unreachable":   {Kind: perilog.ReportUnreachable},
		"launch-failed": {Kind: perilog.ReportLaunchFailed},
	} {
		f := hkNew(t, hkJob("0-1", hkAfter(0)), perilog.HousekeepingOptions{})
		f.start(0, "0-1")
		require.Equal(t, perilog.AnswerApplied, f.h.Report(hkT0+1, rep))
		require.Empty(t, f.step(), name)
		require.Len(t, f.drains(), 1, name)
		require.Equal(t, []string{"1"}, f.exit(2, "1", 0), name)
		require.Equal(t, "0", f.h.Status(0).Allocated.String(), name)
		f.h.Drained(hkT0+3, hkRanks("0"))
		require.Equal(t, []string{"0 final"}, hkParts(f.step()), name)
	}
}

// flux-core#6117, flux-core#6121: after a crash, housekeeping began before the
// nodes were online, failed, and left resources that no job had.
func TestIssue6121NothingIsStartedOnNodesThatAreOffline(t *testing.T) {
	f := hkNew(t, hkJob("0-3", hkAfter(0)), perilog.HousekeepingOptions{})
	f.start(0, "0-1")
	f.crash()
	spec := perilog.Spec{Ranks: hkRanks("0-3"), Offline: hkRanks("1-3")}
	got, err := f.h.Start(hkT0+1, spec)
	require.NoError(t, err)
	require.Equal(t, "0", got.String())
	require.Equal(t, []string{"0"}, f.exit(2, "0", 0))
	spec.Ranks = hkRanks("1-3")
	got, err = f.h.Start(hkT0+3, spec)
	require.NoError(t, err)
	require.True(t, got.IsEmpty())
	f.step()
	s := f.h.Status(hkT0 + 4)
	require.Equal(t, "2-3", s.Waiting.String())
	require.Equal(t, "1", s.Unresolved.String())
	require.Equal(t, "1-3", s.Allocated.String())
	require.Empty(t, f.drains())
	require.Empty(t, f.h.EndedBy(perilog.CauseOffline).String(), "nothing is said to have failed")
	spec.Offline = hkRanks("3")
	got, err = f.h.Start(hkT0+5, spec)
	require.NoError(t, err)
	require.Equal(t, "1-2", got.String())
	f.step()
	f.exit(6, "1-2", 0)
	spec.Ranks, spec.Offline = nil, nil
	_, err = f.h.Start(hkT0+7, spec)
	require.NoError(t, err)
	require.Equal(t, []string{"3 final"}, f.exit(8, "3", 0))
}

// A job was purged while it was in housekeeping: the scheduler was told nothing
// of it, though the task went on. The log by itself is enough.
func TestAJobPurgedInHousekeepingIsStillTold(t *testing.T) {
	f := hkNew(t, hkJob("3,5-6", hkAfter(0)), perilog.HousekeepingOptions{})
	f.start(0, "3,5-6")
	f.exit(1, "5", 0)
	h, err := perilog.ReplayHousekeeping(f.log, perilog.HousekeepingOptions{})
	require.NoError(t, err)
	hello, err := h.Hello(true)
	require.NoError(t, err)
	require.Equal(t, string(f.r.AppendJSON(nil)), string(hello.R.AppendJSON(nil)))
	require.Equal(t, "5", hello.Free.String())
	hello.R, hello.Free = nil, nil
	require.Equal(t, perilog.HousekeepingHello{Job: 1 << 40, UserID: 5588, Priority: 16, Submitted: hkT0 - 7200}, hello)
}

// On completion of the whole the allocation was dropped whether or not ranks
// were pending. Here a runner that ends without a word on ranks leaves them
// where they are seen, and their deadline ends them.
func TestARunnerThatSaysNothingOfARankDoesNotLoseIt(t *testing.T) {
	f := hkNew(t, hkJob("0-2", hkAfter(0)), perilog.HousekeepingOptions{})
	_, err := f.h.Start(hkT0, perilog.Spec{Timeout: 60, KillTimeout: 10})
	require.NoError(t, err)
	f.step()
	require.Equal(t, []string{"0"}, f.exit(1, "0", 0))
	require.Equal(t, "1-2", f.h.Status(0).Pending.String())
	f.tick(60)
	f.tick(70)
	require.Equal(t, "1-2", f.h.EndedBy(perilog.CauseTimedOut).String())
	rest, err := f.h.ForceFinish(hkT0+71, hkRanks("1-2"), "root")
	require.NoError(t, err)
	require.Empty(t, rest.String())
	require.Equal(t, []string{"1-2 final"}, hkParts(f.step()))
}

// A fragment was sent and then removed from what is held; where the second
// failed it was sent again. Here both are one, in the log and in memory: a crash
// at any byte of it gives every rank back once.
func TestNoRankGoesBackTwiceWhereverTheLogEnds(t *testing.T) {
	f := hkNew(t, hkJob("0-3", hkAfter(0)), perilog.HousekeepingOptions{})
	f.start(0, "0-3")
	f.exit(1, "0-1", 0)
	f.exit(2, "2", 1<<8)
	f.h.Drained(hkT0+3, hkRanks("2"))
	f.step()
	f.exit(4, "3", 0)
	require.True(t, f.h.Done())
	for n := range len(f.log) + 1 {
		h, err := perilog.ReplayHousekeeping(f.log[:n], f.o)
		if torn := n > 0 && f.log[n-1] != '\n'; torn {
			var at *eventlog.SyntaxError
			require.ErrorIs(t, err, eventlog.ErrTorn)
			require.ErrorAs(t, err, &at)
			whole, err := perilog.ReplayHousekeeping(f.log[:at.Offset], f.o)
			if h == nil {
				require.Nil(t, whole)
				require.ErrorIs(t, err, perilog.ErrHousekeepingLog)
				continue
			}
			require.NoError(t, err)
			require.Equal(t, whole.String(), h.String())
		} else if n == 0 {
			require.ErrorIs(t, err, perilog.ErrHousekeepingLog)
			continue
		} else {
			require.NoError(t, err)
		}
		require.NoError(t, h.Check())
		free := h.Status(0).Free
		_, err = h.ForceFinish(hkT0+5, f.r.Ranks(), "root")
		require.NoError(t, err)
		h.Tick(hkT0 + 5)
		for _, part := range h.Take().Free {
			require.False(t, free.Intersects(part.R.Ranks()))
			free.UnionWith(part.R.Ranks())
		}
		require.True(t, h.Done())
		require.Equal(t, "0-3", free.String())
	}
}

// flux-core#5797, flux-core#6218: jobs that the scheduler never gave anything
// came into housekeeping.
func TestIssue6218JobsThatBypassTheSchedulerHaveNoHousekeeping(t *testing.T) {
	j := hkJob("0", nil)
	j.Bypass = true
	h, err := perilog.NewHousekeeping(hkT0, j, perilog.HousekeepingOptions{})
	require.Nil(t, h)
	require.ErrorIs(t, err, perilog.ErrBypass)
	require.ErrorIs(t, err, perilog.ErrHousekeeping)
}
