package run

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/idset"
)

// Each test of this file is something that happened to users of flux-core,
// named by its issue or commit there: the part of it that is about running.

// The timer was armed when all ranks had started. One never did, and so the
// epilog never timed out: the job was in it for ever.
func TestFlux6644AnEpilogThatNeverStartedOnOneRankTimesOut(t *testing.T) {
	r := launched(t, perRank(t, "0-3"))
	for _, rank := range []uint32{0, 1, 3} {
		r.report(Report{Kind: ReportStarted, Rank: rank})
		r.exit(idset.Of(rank).String(), 0)
	}
	r.tick()
	require.Equal(t, t0+1800, r.now)
	require.Equal(t, []string{"TERM to 2 of 1"}, r.sent())
	r.tick()
	require.Equal(t, t0+1860, r.now)
	require.True(t, r.Done())
	require.Equal(t, []string{"prolog timed out for job ƒ6VxCVPm: 2"}, r.drained())
}

// A canceled prolog whose kill timed out had the status of the ranks that
// ended, 0: no exception was raised, and the job started. Later the same run was
// done a second time, and its epilog ran twice.
func TestFlux4e8ae3433ACanceledPrologWhoseKillTimedOutIsNoSuccess(t *testing.T) {
	r := launched(t, perRank(t, "0-3"))
	r.exit("0-2", 0)
	r.cancel()
	r.tick()
	require.True(t, r.Done())
	require.NotZero(t, r.Outcome().Status)
	require.Equal(t, []string{"prolog canceled then timed out for job ƒ6VxCVPm: 3"}, r.drained())
	r.Tick(t0 + 9999)
	require.Equal(t, AnswerEnded, r.report(Report{Kind: ReportExited, Rank: 3}))
	require.Len(t, r.ends, 4)
}

// Users could drain nodes by pressing Ctrl-C during the prolog: the tasks that
// SIGTERM killed looked like failures.
func TestFlux5734CtrlCDuringAPrologDrainsNobody(t *testing.T) {
	r := launched(t, perRank(t, "0-3"))
	r.cancel()
	r.exit("0", 15)
	r.exit("1", 143<<8)
	r.exit("2", 1<<8)
	r.exit("3", 0)
	require.True(t, r.Done())
	require.Empty(t, r.drained())
	require.Empty(t, r.failures)
}

// A prolog that failed or was canceled left its nodes as they were, and nothing
// cleaned them. Its outcome says that it did not succeed, however it ended.
func TestFlux6055APrologThatDidNotSucceedSaysSo(t *testing.T) {
	for _, drive := range []func(r *testRun){
		func(r *testRun) { r.exit("0-3", 256) },
		func(r *testRun) { r.cancel(); r.exit("0-3", 0) },
		func(r *testRun) { r.tick(); r.exit("0-3", 0) },
		func(r *testRun) { r.Lose(); r.force("0-3", 256) },
	} {
		r := launched(t, perRank(t, "0-3"))
		drive(r)
		require.True(t, r.Done())
		require.NotZero(t, r.Outcome().Status)
	}
}

// A restart forgot what was running, and jobs were stuck for ever. What was
// running is attached to again, run again, or finished by force.
func TestFlux4108AnActionThatARestartForgotCanBeResolved(t *testing.T) {
	r := launched(t, perRank(t, "0-3"))
	r.Lose()
	r.Reattach(t0, set(t, "0"))
	r.exit("0-1", 0) // 1 reports by itself
	r.Launch(t0+600, 2, set(t, "2"))
	require.Equal(t, AnswerApplied, r.report(Report{Kind: ReportExited, Rank: 2, Attempt: 2}))
	require.False(t, r.Done())
	r.force("3", 0)
	require.True(t, r.Done())
	require.Contains(t, r.Outcome().Detail, "alice")
}

// A script that finds a bad node has other work to do on it. It names the node,
// goes on, and the job can go on without the node.
func TestFlux6842ANodeIsNamedAsFailedAndTheScriptGoesOn(t *testing.T) {
	r := launched(t, perRank(t, "0-59"))
	for rank := range uint32(10) {
		require.Equal(t, AnswerApplied, r.says(rank, `{"version":1,"failed":true,"note":"no gpu"}`))
	}
	r.exit("0-59", 0)
	o := r.Outcome()
	require.True(t, o.Reported, "none of them is a failure of the script")
	require.Equal(t, "0-9", o.Failed.String())
	require.Equal(t, "prolog reported node failure on fluke[0-9] (rank 0-9): no gpu", o.Note)
	require.Len(t, r.drained(), 10)
}

// An empty set of ranks was passed to drain.
func TestFluxFa1329b0aNoDrainIsAskedForWithoutARank(t *testing.T) {
	r := launched(t, perRank(t, "0-3"))
	r.exit("0-2", 0)
	r.cancel()
	r.exit("3", 15) // before its kill timeout: no rank is left that is deaf
	r.Tick(t0 + 61)
	r.fetch()
	require.Empty(t, r.failures)
}

// One exception for each node flooded the logs of jobs, and what it said could
// be sensitive.
func TestFlux7022AThousandFailedNodesAreOneNoteWithoutDetails(t *testing.T) {
	r := &testRun{Run: New(perRank(t, "0-999")), t: t, now: t0}
	r.Launch(t0, 1, set(t, "0-999"))
	for rank := range uint32(1000) {
		r.Report(t0+1, Report{Kind: ReportExited, Rank: rank, Attempt: 1, Status: 256, Detail: "mount -o password=secret"})
	}
	r.fetch()
	require.Len(t, r.failures, 1, "they are one entry of the log")
	require.Equal(t, []string{"prolog failed for job ƒ6VxCVPm: 0-999"}, r.drained())
	require.Equal(t, "prolog exited with code=1 on fluke[0-999] (rank 0-999)", r.Outcome().Note)
	require.Contains(t, r.Outcome().Detail, "secret")
}

// Offline nodes were sure to fail the prolog, and the user saw "exit code=1".
func TestFlux5910AnOfflineNodeIsNamedAsSuch(t *testing.T) {
	r := &testRun{Run: New(perRank(t, "0-3")), t: t, now: t0}
	r.EndIdle(t0, set(t, "2"), CauseOffline, false)
	r.Launch(t0, 1, set(t, "0-1,3"))
	r.exit("0-1,3", 0)
	require.Equal(t, "prolog not run (offline) on fluke2 (rank 2)", r.Outcome().Note)
}
