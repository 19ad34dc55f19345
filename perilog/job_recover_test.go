package perilog_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/perilog"
)

// flux-core#4108: a restart forgets which prologs and epilogs ran, and the job
// waits for ever. Here they are listed, and each has a way out.
func TestReenact4108ALostPrologIsListedAndRunAgain(t *testing.T) {
	w := newCluster(t, 2, perRank(), nil).allocate()
	w.exit(prologKey, 0, 0)
	w.running = map[string]*idset.Set{} // the node's processes died with it
	w.crash()
	lost := w.job.Unresolved()
	require.Len(t, lost, 1)
	require.Equal(t, prologKey, lost[0].Action)
	require.Equal(t, perilog.WhyLost, lost[0].Why)
	require.Equal(t, "0-1", lost[0].Ranks.String())
	require.Equal(t, eventlog.Timestamp(100), lost[0].Since)
	require.False(t, w.job.MayStart())
	require.Equal(t, perilog.AnswerEarly, w.job.Report(w.now, prologKey, perilog.Report{Kind: perilog.ReportExited}))
	require.NoError(t, w.job.Rerun(w.now, prologKey))
	w.pump()
	require.Equal(t, "0-1", w.running[prologKey.String()].String())
	require.Empty(t, w.job.Unresolved())
	w.exit(prologKey, 0, 0)
	w.exit(prologKey, 1, 0)
	require.True(t, w.job.MayStart())
	require.Equal(t, 1, w.starts[prologKey.String()])
}

func TestALostPrologNeverLetsTheJobStartUnlessItIsRunAgainOrChecksIn(t *testing.T) {
	w := newCluster(t, 1, perRank(), nil).allocate()
	w.crash()
	require.ErrorIs(t, w.job.ForceFinish(w.now, prologKey, 0, "alice"), perilog.ErrAction, "it did not end in success")
	require.NoError(t, w.job.ForceFinish(w.now, prologKey, 15, "alice"))
	w.forced.Insert(0) // alice has seen to what still ran there
	w.pump()
	require.Equal(t, "prolog-start, epilog-start, exception, prolog-finish 15", w.events())
	require.Contains(t, string(w.log), `"status":15,"forced-by":"alice"`)
	require.False(t, w.job.MayStart())
	w.ended(prologKey, 0)
	w.exit(epilogKey, 0, 0)
	w.over()
}

// The helper process survived, and tells its end until that is acknowledged.
func TestASurvivingProcessChecksInUntilItIsAcknowledged(t *testing.T) {
	w := newCluster(t, 2, perRank(), nil).allocate()
	w.now += 20
	w.crash()
	told := func(rank uint32) (perilog.Answer, bool) {
		answer, acked := w.job.CheckIn(w.now, prologKey, perilog.Report{Kind: perilog.ReportExited, Rank: rank})
		return answer, acked
	}
	answer, acked := told(0)
	require.Equal(t, perilog.AnswerApplied, answer)
	require.False(t, acked, "the log does not say so yet")
	require.Equal(t, perilog.WhyUnclaimed, w.job.Unresolved()[0].Why)
	require.Equal(t, "1", w.job.Unresolved()[0].Ranks.String())
	deadline, _ := w.job.Deadline()
	require.Equal(t, eventlog.Timestamp(160), deadline, "the timeout counts from the start in the log")
	answer, acked = told(0)
	require.Equal(t, perilog.AnswerEnded, answer)
	require.False(t, acked)
	w.crash() // what was told is lost, so it is told again
	_, acked = told(0)
	require.False(t, acked)
	_, acked = told(1)
	require.False(t, acked)
	w.running = map[string]*idset.Set{}
	w.pump()
	for rank := range uint32(2) {
		_, acked = told(rank)
		require.True(t, acked)
	}
	require.True(t, w.job.MayStart())
	answer, acked = w.job.CheckIn(w.now, perilog.Key{Kind: jobstate.ActionProlog, Description: "other"}, perilog.Report{Kind: perilog.ReportExited})
	require.Equal(t, perilog.AnswerStranger, answer)
	require.False(t, acked)
}

func TestACheckInIsAcknowledgedWhenTheLogHasTheRank(t *testing.T) {
	w := newCluster(t, 3, perRank(), nil).allocate()
	for rank := range uint32(3) {
		w.exit(prologKey, rank, 0)
	}
	w.begin()
	w.finish(0)
	w.exit(epilogKey, 1, 0)
	w.crash()
	require.Equal(t, "0,2", w.job.Unresolved()[0].Ranks.String(), "what went back is not lost")
	_, acked := w.job.CheckIn(w.now, epilogKey, perilog.Report{Kind: perilog.ReportExited, Rank: 1})
	require.True(t, acked)
	require.Equal(t, perilog.WhyLost, w.job.Unresolved()[0].Why, "a repetition takes nothing up")
	require.NoError(t, w.job.Reattach(w.now, epilogKey))
	require.ErrorIs(t, w.job.Reattach(w.now, epilogKey), perilog.ErrAction)
	w.exit(epilogKey, 0, 0)
	w.exit(epilogKey, 2, 0)
	w.over()
}

func TestALostPrologOfACanceledJobIsCanceledWhenItIsTakenUp(t *testing.T) {
	w := newCluster(t, 1, perRank(), nil).allocate()
	w.crash()
	w.exception(0)
	require.ErrorIs(t, w.job.Rerun(w.now, prologKey), perilog.ErrAction)
	require.NoError(t, w.job.Reattach(w.now, prologKey))
	w.pump()
	require.Equal(t, 1, w.signals)
	w.exit(prologKey, 0, 15)
	w.exit(epilogKey, 0, 0)
	w.over()
}

func TestWhatTheCrashKeptFromTheLogIsPostedAgain(t *testing.T) {
	c := perRank()
	c.Prologs = append(c.Prologs, perilog.ActionConfig{Kind: perilog.RunProlog, Description: "site", PerRank: true})
	w := newCluster(t, 1, c, nil).allocate()
	whole := w.log
	cut := bytes.LastIndexByte(whole[:len(whole)-1], '\n') + 1 // without the second start
	job, err := perilog.RecoverJob(w.now, c, w.spec, whole[:cut])
	require.NoError(t, err)
	effects := job.Take()
	require.Len(t, effects.Post, 1)
	require.JSONEq(t, `{"description":"site"}`, string(effects.Post[0].Context))
	require.Empty(t, effects.Requests, "the other one is lost, not launched again")
}

func TestATornOrMalformedLogGivesTheJobUpToThere(t *testing.T) {
	w := newCluster(t, 1, perRank(), nil).allocate()
	for name, tail := range map[string]string{
		"torn":      `{"timestamp":101.0,"na`,
		"malformed": `{"timestamp":101.0,"name":"prolog-finish","context":{"description":"job-manager.prolog"}}` + "\n",
	} {
		job, err := perilog.RecoverJob(w.now, w.config, w.spec, append(bytes.Clone(w.log), tail...))
		require.Error(t, err, name)
		require.Equal(t, perilog.WhyLost, job.Unresolved()[0].Why, name)
	}
	_, err := perilog.RecoverJob(w.now, perilog.Config{Epilogs: []perilog.ActionConfig{{}}}, w.spec, nil)
	require.ErrorIs(t, err, perilog.ErrSpec)
}

// A shutdown: nothing new is launched, what runs may end, and what does not is
// found by the next start.
func TestAShutdownLosesNothing(t *testing.T) {
	w := newCluster(t, 2, perRank(), nil).allocate()
	w.job.Shutdown(w.now, w.now+5)
	deadline, _ := w.job.Deadline()
	require.Equal(t, w.now+5, deadline)
	require.True(t, w.job.Running())
	w.exit(prologKey, 0, 1<<8)
	w.exit(prologKey, 1, 0)
	w.confirm()
	require.Equal(t, "prolog-start, epilog-start, exception, prolog-finish 256", w.events(), "the epilog holds the nodes")
	require.Empty(t, w.running[epilogKey.String()], "and is not launched")
	require.False(t, w.job.Running())
	w.now += 5
	w.job.Tick(w.now)
	require.ErrorIs(t, w.job.ForceFinish(w.now, epilogKey, 0, "alice"), perilog.ErrAction)
	require.True(t, w.job.Take().IsEmpty())
	w.crash()
	require.Equal(t, perilog.WhyLost, w.job.Unresolved()[0].Why)
	require.NoError(t, w.job.Rerun(w.now, epilogKey))
	w.pump()
	w.exit(epilogKey, 0, 0)
	w.exit(epilogKey, 1, 0)
	w.over()
}

func TestAfterTheDeadlineOfAShutdownNothingIsTakenIn(t *testing.T) {
	w := newCluster(t, 1, perRank(), nil).allocate()
	w.job.Shutdown(w.now, w.now+5)
	w.now += 5
	require.Equal(t, perilog.AnswerEnded, w.exit(prologKey, 0, 0))
	require.Equal(t, "prolog-start", w.events())
	_, acked := w.job.CheckIn(w.now, prologKey, perilog.Report{Kind: perilog.ReportExited})
	require.False(t, acked)
	w.crash()
	require.Equal(t, perilog.WhyLost, w.job.Unresolved()[0].Why)
}

func TestInAShutdownNoPrologStartsAndTheNextStartDoesIt(t *testing.T) {
	w := newCluster(t, 1, perRank(), nil)
	w.job.Shutdown(w.now, 0)
	w.allocate()
	require.Empty(t, w.events())
	require.False(t, w.job.MayStart(), "its prolog is due")
	w.crash()
	require.Equal(t, "prolog-start", w.events())
	w.exit(prologKey, 0, 0)
	require.True(t, w.job.MayStart())
}

// flux-core#5889: the scheduler lost the allocation. The job's nodes are still
// cleaned, and nothing is freed.
func TestAfterASchedulerRestartTheEpilogRunsAndNothingIsFreed(t *testing.T) {
	w := newCluster(t, 1, perRank(), nil).allocate()
	w.exit(prologKey, 0, 0)
	w.begin()
	w.event("exception", `{"type":"scheduler-restart","severity":0,"note":""}`)
	w.pump()
	w.finish(15)
	require.Equal(t, "0", w.running[epilogKey.String()].String())
	w.exit(epilogKey, 0, 0)
	require.Equal(t, jobstate.StateInactive, w.state.State())
	require.True(t, w.freed.IsEmpty())
	require.Zero(t, w.finals)
}

// Nodes that are offline when an epilog is launched fail it, and go back: they
// were drained or down before.
func TestNodesThatAreOfflineAreLeftOut(t *testing.T) {
	w := newCluster(t, 3, perRank(), nil).allocate()
	for rank := range uint32(3) {
		w.exit(prologKey, rank, 0)
	}
	w.begin()
	w.job.Offline(idset.Of(1))
	w.finish(0)
	require.Equal(t, "0,2", w.running[epilogKey.String()].String())
	require.Equal(t, "1", w.freed.String())
	w.exit(epilogKey, 0, 0)
	w.exit(epilogKey, 2, 0)
	w.over()
	require.True(t, w.drains.IsEmpty())
}

func TestAFinishThatSomebodyElseLoggedEndsTheRun(t *testing.T) {
	w := newCluster(t, 1, perRank(), nil).allocate()
	w.event("prolog-finish", `{"description":"job-manager.prolog","status":0}`)
	w.pump()
	require.Equal(t, perilog.AnswerEnded, w.exit(prologKey, 0, 1<<8))
	require.True(t, w.job.MayStart())
	_, ok := w.job.Deadline()
	require.False(t, ok)
	require.False(t, w.job.Running())
}

func TestARankThatNeverChecksInIsGivenUpInTheEnd(t *testing.T) {
	w := newCluster(t, 2, perRank(), nil).allocate()
	w.crash()
	w.job.CheckIn(w.now, prologKey, perilog.Report{Kind: perilog.ReportStarted, Rank: 0})
	w.pump()
	require.Equal(t, "1", w.job.Unresolved()[0].Ranks.String())
	w.tick()
	w.tick()
	require.Equal(t, "0-1", w.drains.String())
	require.Len(t, w.job.Unresolved(), 1)
	require.Equal(t, perilog.WhyUndrained, w.job.Unresolved()[0].Why, "nobody has to claim it any more")
}

// The crash came between the last release of an epilog and its finish.
func TestAnActionThatEndedEverywhereIsFinishedWithTheWorstStatus(t *testing.T) {
	w := newCluster(t, 2, perRank(), nil).allocate()
	w.exit(prologKey, 0, 0)
	w.exit(prologKey, 1, 0)
	w.begin()
	w.finish(0)
	w.event("epilog-release", `{"description":"job-manager.epilog","ranks":"0","status":256}`)
	w.event("epilog-release", `{"description":"job-manager.epilog","ranks":"1","status":0}`)
	w.running = map[string]*idset.Set{}
	w.feed()
	w.crash()
	require.NoError(t, w.job.Reattach(w.now, epilogKey))
	w.pump()
	require.Contains(t, w.events(), "epilog-finish 256")
	w.over()
}

func TestAnEndByForceRaisesOneExceptionAndNoneInAJobThatEnds(t *testing.T) {
	w := newCluster(t, 1, perRank(), nil).allocate()
	w.forced.Insert(0)
	require.NoError(t, w.job.ForceFinish(w.now, prologKey, 9, "alice"))
	w.pump()
	require.Equal(t, "prolog-start, epilog-start, exception, prolog-finish 9", w.events())
	cause, _ := w.state.Cause()
	require.Equal(t, "prolog job-manager.prolog was finished by force by alice", cause.Note)
	require.NoError(t, w.job.ForceFinish(w.now, epilogKey, 0, "alice"))
	w.pump()
	w.over()
	require.Equal(t, "prolog-start, epilog-start, exception, prolog-finish 9, epilog-finish 0, free, clean", w.events())

	w = newCluster(t, 1, perRank(), nil).allocate()
	w.exception(0)
	w.forced.Insert(0)
	require.NoError(t, w.job.ForceFinish(w.now, prologKey, 9, "alice"))
	require.ErrorIs(t, w.job.ForceFinish(w.now, epilogKey, 0, "alice"), perilog.ErrAction, "it is not active")
	require.ErrorIs(t, w.job.ForceFinish(w.now, prologKey, -1, "alice"), perilog.ErrAction)
	require.EqualError(t, w.job.ForceFinish(w.now, prologKey, 9, "al\nice"),
		"perilog: prolog job-manager.prolog: is ended by force only by somebody with a name, of one line and at most 64 bytes")
	w.pump()
	require.Equal(t, "prolog-start, exception, epilog-start, prolog-finish 9", w.events())
}
