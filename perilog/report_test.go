package perilog_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/perilog"
)

func TestAReportOfAnOlderAttemptChangesNothing(t *testing.T) {
	b := newBench(t, 2, perilog.Config{Epilogs: []perilog.ActionConfig{perRank()}})
	b.run()
	b.take()
	b.crash()
	require.NoError(t, b.job.Rerun(b.now, epilog, ranks("1")))
	launch := b.take().Launch[0]
	require.Equal(t, uint32(2), launch.Attempt)
	require.Equal(t, "1", launch.Ranks.String())
	a := b.report(perilog.Report{Action: epilog, Attempt: 1, Kind: perilog.ReportExited, Rank: 1})
	require.Equal(t, perilog.AckStale, a)
	b.take()
	require.True(t, b.freed.IsEmpty(), "I10: the second launch runs")
	a = b.report(perilog.Report{Action: epilog, Attempt: 2, Kind: perilog.ReportExited, Rank: 1})
	require.Equal(t, perilog.AckApplied, a)
	b.take()
	require.Equal(t, "1", b.freed.String())
}

func TestASingleCommandReleasesRanksThatItIsDoneWith(t *testing.T) {
	b := newBench(t, 4, perilog.Config{Epilogs: []perilog.ActionConfig{{Leader: 9}}})
	b.run()
	require.Equal(t, "9", b.take().Launch[0].Ranks.String())
	require.Equal(t, perilog.AckIgnored, b.says(epilog, 9, `{"version":1,"progress":50}`))
	require.Equal(t, perilog.AckApplied, b.says(epilog, 9, `{"version":1,"released":"0-2"}`))
	b.take()
	require.Equal(t, "0-2", b.freed.String())
	b.crash()
	require.Equal(t, perilog.AckApplied, b.says(epilog, 9, `{"version":1,"released":"3"}`), "the script goes on")
	b.take()
	require.Equal(t, "0-3", b.freed.String())
	require.Zero(t, b.finals, "I2: the final fragment comes with the event free")
	b.exited(epilog, 9, 0)
	require.Equal(t, 1, b.finals)
}

func TestAnInvalidControlLineIsAFailureUnlessItIsIgnored(t *testing.T) {
	for _, ignore := range []bool{false, true} {
		b := newBench(t, 1, perilog.Config{Epilogs: []perilog.ActionConfig{{PerRank: true, IgnoreControl: ignore}}})
		b.run()
		b.take()
		require.Equal(t, ignore, b.says(epilog, 0, "nonsense") == perilog.AckIgnored)
		b.exited(epilog, 0, 0)
		require.Equal(t, ignore, b.state() == jobstate.StateInactive, "else it waits for a drain")
		require.Equal(t, ignore, b.drains.IsEmpty())
	}
}

func TestAnEpilogOnAnOfflineRankDrainsItOrWaits(t *testing.T) {
	for _, wait := range []bool{false, true} {
		config := perRank()
		config.WaitOffline = wait
		b := newBench(t, 2, perilog.Config{Epilogs: []perilog.ActionConfig{config}})
		b.take()
		b.job.Offline(b.now, ranks("1"))
		b.run()
		todo := b.take()
		require.Equal(t, "0", todo.Launch[0].Ranks.String())
		b.exited(epilog, 0, 0)
		require.Equal(t, "0", b.freed.String(), "I3")
		if wait {
			require.Empty(t, b.last.Drain)
			b.job.Offline(b.now, nil)
			launch := b.take().Launch[0]
			require.Equal(t, "1", launch.Ranks.String())
			require.Equal(t, perilog.AckApplied, b.report(perilog.Report{Action: epilog, Attempt: launch.Attempt, Kind: perilog.ReportExited, Rank: 1}))
			b.take()
		} else {
			require.Equal(t, "1", b.drains.String())
			b.drained()
		}
		require.Equal(t, "0-1", b.freed.String())
		require.Equal(t, 1, b.finals)
	}
}

func TestANodeThatIsLostTwiceIsDroppedOnce(t *testing.T) {
	b := newBench(t, 3, perilog.Config{})
	b.take()
	b.apply("exception", `{"type":"node-lost","severity":1,"note":"","ranks":"0","action":"drop"}`)
	b.take()
	b.drained()
	require.Equal(t, "0", b.freed.String())
	b.apply("exception", `{"type":"node-lost","severity":1,"note":"","ranks":"0-1","action":"drop"}`)
	b.take()
	b.drained()
	require.Equal(t, "0-1", b.freed.String())
}

func TestAReportAfterTheDeadlineOfAShutdownIsToBeRepeated(t *testing.T) {
	b := newBench(t, 1, perilog.Config{Prologs: []perilog.ActionConfig{perRank()}})
	b.take()
	b.job.Shutdown(b.now, b.now+1)
	b.job.Tick(b.now + 1)
	a := b.report(perilog.Report{Action: prolog, Attempt: 1, Kind: perilog.ReportExited, Rank: 0, Status: 256})
	require.Equal(t, perilog.AckRepeated, a)
}
