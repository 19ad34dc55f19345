package perilog_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/perilog"
)

func TestAJobRunsItsPrologStartsAndRunsItsEpilog(t *testing.T) {
	w := newCluster(t, 3, perRank(), nil).allocate()
	require.False(t, w.job.MayStart())
	for rank := range uint32(3) {
		require.True(t, w.running[prologKey.String()].Contains(rank))
		require.Equal(t, perilog.AnswerApplied, w.exit(prologKey, rank, 0))
	}
	require.True(t, w.job.MayStart())
	w.begin()
	w.finish(0)
	require.Equal(t, "0-2", w.running[epilogKey.String()].String())
	w.exit(epilogKey, 1, 0)
	require.Equal(t, "1", w.freed.String(), "a node goes back when its epilog ends")
	w.exit(epilogKey, 0, 0)
	w.exit(epilogKey, 2, 0)
	w.over()
	require.Equal(t, "prolog-start, prolog-finish 0, start, finish, epilog-start, release, epilog-release, epilog-release, epilog-finish 0, free, clean", w.events())
}

func TestOfAWholeJobNothingGoesBackBeforeTheLastEpilog(t *testing.T) {
	w := newCluster(t, 3, perRank(), func(s *perilog.JobSpec) { s.WholeJob = true }).allocate()
	for rank := range uint32(3) {
		w.exit(prologKey, rank, 0)
	}
	w.begin()
	w.finish(0)
	w.exit(epilogKey, 1, 0)
	w.exit(epilogKey, 0, 0)
	require.True(t, w.freed.IsEmpty())
	w.exit(epilogKey, 2, 0)
	w.over()
	require.NotContains(t, w.events(), "epilog-release")
}

// flux-core#6055: the epilog of a job whose prolog failed never ran. It starts
// before that prolog is finished, so that nothing is free in between.
func TestReenact6055TheEpilogStartsBeforeAFailedPrologIsFinished(t *testing.T) {
	w := newCluster(t, 2, perRank(), nil).allocate()
	w.exit(prologKey, 0, 0)
	w.exit(prologKey, 1, 1<<8)
	require.Equal(t, "prolog-start, epilog-start, exception", w.events(), "the finish waits for the drain")
	require.Empty(t, w.running[epilogKey.String()])
	w.confirm()
	require.Equal(t, "prolog-start, epilog-start, exception, prolog-finish 256", w.events())
	require.False(t, w.job.MayStart())
	require.Equal(t, "0-1", w.running[epilogKey.String()].String())
	w.exit(epilogKey, 0, 0)
	w.exit(epilogKey, 1, 0)
	w.over()
}

// A canceled job: its prolog is told to stop, raises no second exception, and
// drains nobody (flux-core#5734); the epilog follows.
func TestACanceledPrologIsFollowedByItsEpilog(t *testing.T) {
	w := newCluster(t, 2, perRank(), nil).allocate()
	w.exception(0)
	require.Equal(t, 1, w.signals)
	w.exit(prologKey, 0, 15)
	w.exit(prologKey, 1, 15)
	require.True(t, w.drains.IsEmpty())
	require.Equal(t, "prolog-start, exception, epilog-start, prolog-finish 15", w.events())
	w.exit(epilogKey, 0, 0)
	w.exit(epilogKey, 1, 0)
	w.over()
}

// 4e8ae3433: the kill of a canceled prolog timed out; the job started anyway,
// and the epilog ran twice.
func TestReenact4e8ae3433ACanceledPrologThatIsDeafNeverLetsTheJobStart(t *testing.T) {
	w := newCluster(t, 2, perRank(), nil).allocate()
	w.exception(0)
	w.exit(prologKey, 0, 15)
	w.tick()
	require.Equal(t, "1", w.drains.String(), "deaf, and so drained")
	require.Equal(t, "prolog-start, exception, epilog-start", w.events())
	require.Empty(t, w.running[epilogKey.String()], "not beside the prolog that may still run")
	w.confirm()
	require.False(t, w.job.MayStart())
	require.Equal(t, 1, w.starts[epilogKey.String()])
	w.exit(epilogKey, 0, 0)
	w.exit(epilogKey, 1, 0)
	w.over()
	require.Equal(t, 1, w.starts[epilogKey.String()])
}

func TestAPrologThatIsCanceledBeforeItRunsIsFollowedByItsEpilog(t *testing.T) {
	w := newCluster(t, 2, perRank(), nil)
	w.event("submit", `{"userid":100,"urgency":16,"flags":0,"version":1}`)
	w.event("validate", "")
	w.event("depend", "")
	w.event("priority", `{"priority":16}`)
	w.event("alloc", "")
	effects := w.job.Take()
	require.Len(t, effects.Post, 1)
	start := effects.Post[0].Clone()
	w.event("exception", `{"type":"cancel","severity":0,"note":""}`)
	w.apply(start)
	w.pump()
	require.Empty(t, w.running[prologKey.String()])
	require.Equal(t, "exception, prolog-start, epilog-start, prolog-finish 15", w.events())
	w.exit(epilogKey, 0, 0)
	w.exit(epilogKey, 1, 0)
	w.over()
}

func TestAJobWithoutPrologsThatNeverStartedHasNoEpilog(t *testing.T) {
	c := perRank()
	c.Prologs = nil
	w := newCluster(t, 2, c, nil).allocate()
	w.exception(0)
	w.over()
	require.Equal(t, "exception, free, clean", w.events())
}

// coral2#472: the epilog started with CLEANUP while the job's processes ran.
func TestTheEpilogOfAStartedJobWaitsForItsFinish(t *testing.T) {
	w := newCluster(t, 2, perRank(), nil).allocate()
	w.exit(prologKey, 0, 0)
	w.exit(prologKey, 1, 0)
	w.begin()
	w.exception(0)
	require.Empty(t, w.starts[epilogKey.String()])
	w.event("finish", `{"status":36608}`)
	w.pump()
	require.Equal(t, 1, w.starts[epilogKey.String()])
	w.event("release", `{"ranks":"all","final":true}`)
	w.exit(epilogKey, 0, 0)
	w.exit(epilogKey, 1, 0)
	w.over()
}

func TestAFailedEpilogIsToldAndChangesNothingElse(t *testing.T) {
	w := newCluster(t, 2, perRank(), nil).allocate()
	w.exit(prologKey, 0, 0)
	w.exit(prologKey, 1, 0)
	w.begin()
	w.finish(0)
	w.exit(epilogKey, 0, 1<<8)
	require.True(t, w.freed.IsEmpty(), "a node goes back when its drain is confirmed")
	w.confirm()
	require.Equal(t, "0", w.freed.String())
	w.exit(epilogKey, 1, 0)
	w.over()
	x, _ := w.state.Exception()
	require.Equal(t, uint8(2), x.Severity)
	require.Equal(t, "epilog exited with code=1 on fluke0 (rank 0)", x.Note)
	require.Equal(t, jobstate.Some(uint32(5)), x.UserID)
	require.True(t, w.state.Success())
}

// flux-core#4312: one node hangs in its epilog; the others go back at once, and
// that one when its timeout, kill timeout and drain are over.
func TestOneNodeThatHangsInItsEpilogHoldsOneNode(t *testing.T) {
	w := newCluster(t, 64, perRank(), nil).allocate()
	for rank := range uint32(64) {
		w.exit(prologKey, rank, 0)
	}
	w.begin()
	w.finish(0)
	for rank := range uint32(63) {
		w.exit(epilogKey, rank, 0)
	}
	require.Equal(t, "0-62", w.freed.String())
	w.tick() // SIGTERM
	w.tick() // given up
	require.Equal(t, "63", w.drains.String())
	require.Equal(t, 63, w.freed.Len(), "time alone frees nothing")
	require.Equal(t, perilog.WhyUndrained, w.job.Unresolved()[0].Why)
	w.confirm()
	w.over()
}

func TestSomebodyEndsTheEpilogOfOneNodeByForce(t *testing.T) {
	w := newCluster(t, 3, perRank(), nil).allocate()
	for rank := range uint32(3) {
		w.exit(prologKey, rank, 0)
	}
	w.begin()
	w.finish(0)
	w.exit(epilogKey, 0, 0)
	require.ErrorIs(t, w.job.ForceRanks(w.now, epilogKey, idset.Of(0), "alice"), perilog.ErrAction)
	require.ErrorIs(t, w.job.ForceRanks(w.now, epilogKey, idset.Of(1), ""), perilog.ErrAction)
	require.ErrorIs(t, w.job.ForceRanks(w.now, prologKey, idset.Of(1), "alice"), perilog.ErrAction)
	w.forced.Insert(1)
	require.NoError(t, w.job.ForceRanks(w.now, epilogKey, idset.Of(1), "alice"))
	w.pump()
	require.Equal(t, "0-1", w.freed.String())
	require.Contains(t, string(w.log), `"ranks":"1","status":256,"forced-by":"alice"`)
	w.exit(epilogKey, 2, 0)
	w.over()
}

func TestSeveralPrologsRunAtOnceAndTheFailureOfOneCancelsTheOthers(t *testing.T) {
	c := perRank()
	c.Prologs = append(c.Prologs, perilog.ActionConfig{Kind: perilog.RunProlog, Description: "site", PerRank: true, KillTimeout: 10})
	c.Epilogs = append(c.Epilogs, perilog.ActionConfig{Kind: perilog.RunEpilog, Description: "site", PerRank: true})
	w := newCluster(t, 2, c, nil).allocate()
	site := perilog.Key{Kind: jobstate.ActionProlog, Description: "site"}
	w.exit(prologKey, 0, 0)
	w.exit(prologKey, 1, 0)
	require.False(t, w.job.MayStart(), "the other one runs")
	w.exit(site, 0, 1<<8)
	w.confirm()
	w.exit(site, 1, 0)
	require.Equal(t, "prolog-start, prolog-start, prolog-finish 0, epilog-start, epilog-start, exception, prolog-finish 256", w.events())
	for _, key := range []perilog.Key{epilogKey, {Kind: jobstate.ActionEpilog, Description: "site"}} {
		require.True(t, w.freed.IsEmpty())
		w.exit(key, 0, 0)
		w.exit(key, 1, 0)
	}
	w.over()
}

// flux-core#6842: a job that asked for 6 nodes goes on with 4.
func TestReenact6842AJobGoesOnWithoutTheNodesThatFailedInItsProlog(t *testing.T) {
	c := perRank()
	c.Prologs[0].Tolerate = perilog.Tolerate{Count: 2, Drop: true}
	w := newCluster(t, 6, c, nil).allocate()
	for rank := range uint32(6) {
		status := int32(0)
		if rank == 1 || rank == 4 {
			status = 3 << 8
		}
		w.exit(prologKey, rank, status)
	}
	require.False(t, w.job.MayStart(), "not before the failed nodes are out of service")
	w.confirm()
	require.Equal(t, "1,4", w.freed.String(), "the failed nodes are gone at once")
	require.Equal(t, "1,4", w.job.Holds().Dropped().String())
	require.Contains(t, string(w.log), `"ranks":"1,4","nodelist":"fluke[1,4]","action":"drop"`)
	w.begin()
	w.finish(0)
	require.Equal(t, "0,2-3,5", w.running[epilogKey.String()].String())
	for _, rank := range []uint32{0, 2, 3, 5} {
		w.exit(epilogKey, rank, 0)
	}
	w.over()
	require.True(t, w.state.Success())
}

func TestTheTimeInPrologsIsTold(t *testing.T) {
	w := newCluster(t, 1, perRank(), nil).allocate()
	require.Zero(t, w.job.Elapsed())
	w.now += 30
	w.job.Tick(w.now)
	w.exit(prologKey, 0, 0)
	require.InDelta(t, 30, w.job.Elapsed().Seconds(), 1e-6)
}

func TestAConfigurationThatCanNotRunIsRefused(t *testing.T) {
	r := hostsR(t, 1)
	for name, c := range map[string]perilog.Config{
		"an epilog among prologs": {Prologs: []perilog.ActionConfig{{Kind: perilog.RunEpilog}}},
		"two of one name":         {Epilogs: []perilog.ActionConfig{{Kind: perilog.RunEpilog}, {Kind: perilog.RunEpilog}}},
		"a kind that is none":     {Epilogs: []perilog.ActionConfig{{}}},
	} {
		_, err := perilog.NewJob(c, perilog.JobSpec{RunJob: perilog.RunJob{R: r}})
		require.ErrorIs(t, err, perilog.ErrSpec, name)
	}
}

func TestAChangeOfTheConfigurationChangesNoJobThatHasIt(t *testing.T) {
	c := perRank()
	w := newCluster(t, 1, c, nil)
	c.Prologs[0].Timeout = 1
	c.Epilogs[0].Description = "other"
	w.allocate()
	deadline, ok := w.job.Deadline()
	require.True(t, ok)
	require.Equal(t, w.now+60, deadline)
}

// Somebody else's epilog, as that of a data service, holds nothing or one node.
func TestReenact6230AForeignEpilogHoldsWhatItNames(t *testing.T) {
	w := newCluster(t, 2, perRank(), nil).allocate()
	w.exit(prologKey, 0, 0)
	w.exit(prologKey, 1, 0)
	w.begin()
	w.event("finish", `{"status":0}`)
	w.event("epilog-start", `{"description":"dws","ranks":""}`)
	w.event("epilog-start", `{"description":"leader","ranks":"0"}`)
	w.pump()
	w.event("release", `{"ranks":"all","final":true}`)
	w.exit(epilogKey, 0, 0)
	w.exit(epilogKey, 1, 0)
	require.Equal(t, "1", w.freed.String())
	require.Len(t, w.job.Unresolved(), 2, "who started them has to finish them")
	w.event("epilog-finish", `{"description":"leader","status":0}`)
	w.pump()
	require.Equal(t, "0-1", w.freed.String())
	require.NotEqual(t, jobstate.StateInactive, w.state.State())
	require.NoError(t, w.job.ForceFinish(w.now, perilog.Key{Kind: jobstate.ActionEpilog, Description: "dws"}, 0, "alice"))
	w.pump()
	w.over()
}
