package perilog_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/joblife/joblife/perilog"
)

// These tests re-enact what an independent embedder ran into.

const cancel = `{"type":"cancel","severity":0,"note":"","userid":1}`

func TestAJobThatTheExecutorDoesNotHaveGoesOn(t *testing.T) {
	b := newBench(t, 2, perilog.Config{Prologs: []perilog.ActionConfig{perRank()}, Epilogs: []perilog.ActionConfig{perRank()}})
	b.take()
	b.exited(prolog, 0, 0)
	require.True(t, b.exited(prolog, 1, 0).Start)
	b.apply("exception", cancel)
	require.Empty(t, b.take().Launch, "the executor may be starting it")
	b.job.NotStarted(b.now)
	require.Equal(t, "0-1", b.take().Launch[0].Ranks.String())
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

func TestAForeignPrologIsNotFinishedBeforeTheJobIsValidated(t *testing.T) {
	job, err := perilog.NewJob(&perilog.Config{}, perilog.Spec{ID: 1, R: allocation(t, 1)})
	require.NoError(t, err)
	b := &bench{TB: t, job: job, now: 1, freed: new(idset.Set), drains: new(idset.Set)}
	b.apply("submit", `{"userid":1,"urgency":16,"flags":0,"version":1}`)
	b.apply("prolog-start", `{"description":"dws"}`)
	require.ErrorIs(t, job.ForceFinish(b.now, perilog.Key{Kind: jobstate.ActionProlog, Description: "dws"}, nil, 1, "root"), perilog.ErrAction)
	b.take()
}

func TestALogOfHousekeepingThatFreesTooMuchIsRefused(t *testing.T) {
	b := newBench(t, 3, perilog.Config{Housekeeping: &perilog.HousekeepingConfig{}})
	b.take()
	b.apply("exception", cancel)
	b.take()
	start := `{"timestamp":5,"name":"housekeeping-start","context":{"description":"housekeeping","per-rank":true}}` + "\n"
	for _, release := range []string{`{"ranks":"0-2","final":true}`, `{"ranks":"1","final":false}`, `{"ranks":"7","final":false}`} {
		hk := start + `{"timestamp":8,"name":"release","context":` + release + "}\n"
		_, err := perilog.RecoverJob(9, b.cfg, b.spec, []byte(""+string(b.log)), []byte(hk))
		require.ErrorIs(t, err, perilog.ErrOrder, release)
	}
}

func TestAnEndThatTheLogDoesNotHaveIsToBeRepeated(t *testing.T) {
	b := newBench(t, 2, perilog.Config{Prologs: []perilog.ActionConfig{perRank()}})
	b.take()
	b.exited(prolog, 0, 0)
	again := perilog.Report{Action: prolog, Attempt: 1, Kind: perilog.ReportExited, Rank: 0}
	require.Equal(t, perilog.AnswerRepeated, b.report(again))
	b.crash()
	require.Equal(t, perilog.AnswerApplied, b.report(again), "the helper says it again")
	b.exited(prolog, 1, 0)
	require.Equal(t, perilog.AnswerEnded, b.report(again))
}

func TestARerunOfHousekeepingTakesNoDrainBack(t *testing.T) {
	b := newBench(t, 1, perilog.Config{Housekeeping: &perilog.HousekeepingConfig{}})
	hk := perilog.Housekeeping()
	b.run()
	b.take()
	require.Equal(t, perilog.AnswerApplied, b.report(perilog.Report{Action: hk, Attempt: 1, Kind: perilog.ReportUnreachable}))
	require.Empty(t, b.job.Unresolved(), "it is about to be drained")
	b.take()
	require.Equal(t, "0", b.drains.String())
	require.NoError(t, b.job.Rerun(b.now, hk, ranks("0")))
	b.take()
	b.report(perilog.Report{Action: hk, Attempt: 2, Kind: perilog.ReportExited})
	b.take()
	require.True(t, b.freed.IsEmpty(), "HK-3: the drain is not confirmed")
	b.drained()
	require.Equal(t, "0", b.freed.String())
}

// A crash can come between any two records: what follows from the first is logged then.
func TestWhatHousekeepingEndedOnGoesBackAfterACrash(t *testing.T) {
	force := func(b *bench) { require.NoError(b, b.job.ForceFinish(b.now, hk, nil, 256, "root")) }
	fail := func(b *bench) {
		b.report(perilog.Report{Action: hk, Attempt: 1, Kind: perilog.ReportExited, Status: 256})
	}
	drained := func(b *bench) { fail(b); b.take(); b.job.Drained(b.now, ranks("0")) }
	for name, c := range map[string]struct {
		policy jobstate.OnFailure
		end    func(*bench)
		last   string // the last record that is durable
		back   bool
	}{
		"a failure that is released": {jobstate.OnFailureRelease, fail, "housekeeping-fail", true},
		"a failure that is held":     {jobstate.OnFailureHold, fail, "housekeeping-fail", false},
		"a failure that is drained":  {jobstate.OnFailureDrain, fail, "housekeeping-fail", false},
		"a confirmed drain":          {jobstate.OnFailureDrain, drained, "drained", true},
		"a rank ended by force":      {jobstate.OnFailureHold, force, "housekeeping-fail", true},
		"what is told already":       {jobstate.OnFailureRelease, fail, "housekeeping-release", false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 2, perilog.Config{Housekeeping: &perilog.HousekeepingConfig{OnFailure: c.policy}})
			b.run()
			b.take()
			b.exited(hk, 1, 0)
			c.end(b)
			b.take()
			const back = `{"description":"housekeeping","ranks":"0","status":256}`
			require.Equal(t, c.back || c.last == "housekeeping-release", bytes.Contains(b.hk, []byte(back)), "in the same way live")
			end := bytes.LastIndex(b.hk, []byte(c.last))
			b.hk = b.hk[:end+bytes.IndexByte(b.hk[end:], '\n')+1]
			b.freed = new(idset.Set) // the crash came before
			b.crash()
			var again []string
			for _, r := range b.take().Post {
				if r.Entry.Name == "housekeeping-release" {
					again = append(again, string(r.Entry.Context))
				}
			}
			if c.back {
				require.Equal(t, []string{back}, again)
			} else {
				require.Empty(t, again)
			}
		})
	}
}

func TestALogCannotMakeAJobFollowAnyNumberOfActions(t *testing.T) {
	b := newBench(t, 1, perilog.Config{})
	b.take()
	for n := range 65 {
		b.log = fmt.Appendf(b.log, `{"timestamp":50,"name":"epilog-start","context":{"description":"e%d","per-rank":true,"attempt":1}}`+"\n", n)
	}
	b.crash()
	reasons := map[perilog.Reason]int{}
	for _, u := range b.job.Unresolved() {
		reasons[u.Reason]++
	}
	require.Equal(t, 64, reasons[perilog.ReasonLost])
	require.Equal(t, 1, reasons[perilog.ReasonForeign])
}

func TestHousekeepingThatAnOperatorEndedIsNotLaunched(t *testing.T) {
	b := newBench(t, 2, perilog.Config{Housekeeping: &perilog.HousekeepingConfig{ReleaseAfter: new(fsd.Duration)}})
	b.take()
	b.job.Offline(b.now, ranks("1"))
	b.run()
	require.Equal(t, "0", b.take().Launch[0].Ranks.String())
	require.NoError(t, b.job.ForceFinish(b.now, perilog.Housekeeping(), ranks("1"), 0, "root"))
	b.take()
	require.Equal(t, "1", b.freed.String())
	b.job.Offline(b.now, nil)
	require.Empty(t, b.take().Launch, "rank 1 is somebody else's by now")
}

func TestNothingTimesOutBeforeItsLaunchIsTaken(t *testing.T) {
	single := perilog.ActionConfig{Leader: 9, Timeout: fsd.Duration(10 * time.Second), KillTimeout: fsd.Duration(time.Second)}
	b := newBench(t, 2, perilog.Config{Epilogs: []perilog.ActionConfig{single}})
	b.run()
	for range 5 { // ticks, and no Take
		b.now += 20
		b.job.Tick(b.now)
	}
	require.Equal(t, "9", b.take().Launch[0].Ranks.String())
	require.True(t, b.freed.IsEmpty(), "I3: the epilog has not run")
	b.job.Tick(b.now)
	require.Len(t, b.take().Signal, 1)
	b.job.Tick(b.now + 1)
	b.take()
	require.Equal(t, "0-1", b.freed.String())
}

func TestNoStartBesideAForeignProlog(t *testing.T) {
	b := newBench(t, 1, perilog.Config{})
	b.apply("prolog-start", `{"description":"dws"}`)
	require.False(t, b.take().Start)
	b.refuse("start", "", perilog.ErrOrder)
	b.apply("prolog-finish", `{"description":"dws","status":0}`)
	require.True(t, b.take().Start)
	b.refuse("prolog-start", `{"description":"dws"}`, perilog.ErrOrder)
	b.apply("start", "")
}

func TestAStartThatTheExecutorRefusesLeavesALogInOrder(t *testing.T) {
	b := newBench(t, 1, perilog.Config{Prologs: []perilog.ActionConfig{perRank()}, Epilogs: []perilog.ActionConfig{perRank()}})
	b.take()
	require.True(t, b.exited(prolog, 0, 0).Start)
	b.apply("exception", `{"type":"exec","severity":0,"note":"no shell"}`)
	b.apply("release", `{"ranks":"all","final":true}`)
	b.take()
	b.exited(epilog, 0, 0)
	require.Equal(t, jobstate.StateInactive, b.state())
	require.Equal(t, 1, b.finals)
	for _, f := range jobstate.Validate(b.log) {
		require.NotEqual(t, jobstate.LevelError, f.Level, f)
	}
}

func TestAnAllocationThatASchedulerRevokedIsNotFreed(t *testing.T) {
	for _, c := range []perilog.Config{{}, {Housekeeping: &perilog.HousekeepingConfig{}}, {Prologs: []perilog.ActionConfig{perRank()}, Housekeeping: &perilog.HousekeepingConfig{}}} {
		b := newBench(t, 1, c)
		b.take()
		b.apply("exception", `{"type":"scheduler-restart","severity":0,"note":""}`)
		b.take()
		if c.Prologs != nil {
			b.exited(prolog, 0, 15)
		} else {
			b.job.NotStarted(b.now)
			b.take()
		}
		require.Equal(t, jobstate.StateInactive, b.state())
		require.True(t, b.job.Done())
		require.True(t, b.freed.IsEmpty())
		require.Zero(t, b.finals)
	}
}

func TestAJobWithoutAnyRankEnds(t *testing.T) {
	for _, action := range []string{"drop", "keep"} {
		b := newBench(t, 2, perilog.Config{Prologs: []perilog.ActionConfig{perRank()}})
		b.take()
		b.apply("exception", `{"type":"node-lost","severity":1,"note":"","ranks":"0-1","action":"`+action+`"}`)
		b.exited(prolog, 0, 0)
		require.False(t, b.exited(prolog, 1, 0).Start)
		b.drained()
		require.Equal(t, jobstate.StateInactive, b.state(), action)
		require.Equal(t, 1, b.finals)
	}
}

func TestResourcesThatBypassedTheSchedulerDoNotGoBackToIt(t *testing.T) {
	b := newBench(t, 1, perilog.Config{Housekeeping: &perilog.HousekeepingConfig{}})
	b.apply("set-flags", `{"flags":["alloc-bypass"]}`)
	b.take()
	require.NotEmpty(t, b.hk, "the flag came after alloc")

	job, err := perilog.NewJob(b.cfg, b.spec)
	require.NoError(t, err)
	b = &bench{TB: t, cfg: b.cfg, spec: b.spec, job: job, now: 1, freed: new(idset.Set), drains: new(idset.Set)}
	b.apply("submit", `{"userid":5588,"urgency":16,"flags":0,"version":1}`)
	b.apply("set-flags", `{"flags":["alloc-bypass"]}`)
	b.apply("validate", "")
	b.apply("depend", "")
	b.apply("priority", `{"priority":16}`)
	b.apply("alloc", "")
	b.run()
	b.take()
	require.Equal(t, jobstate.StateInactive, b.state())
	require.True(t, b.freed.IsEmpty(), "HK-6")
	require.Empty(t, b.hk, "HK-6")
}

func TestAReportAfterTheDeadlineOfAShutdownIsToBeRepeated(t *testing.T) {
	b := newBench(t, 1, perilog.Config{Prologs: []perilog.ActionConfig{perRank()}})
	b.take()
	b.job.Shutdown(b.now, b.now+1)
	b.job.Tick(b.now + 1)
	a := b.report(perilog.Report{Action: prolog, Attempt: 1, Kind: perilog.ReportExited, Rank: 0, Status: 256})
	require.Equal(t, perilog.AnswerRepeated, a)
}

func TestWhatAnOperatorEndedIsNotLaunched(t *testing.T) {
	single := perilog.ActionConfig{Leader: 0}
	for name, c := range map[string]perilog.ActionConfig{"per rank": perRank(), "single": single} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 2, perilog.Config{Epilogs: []perilog.ActionConfig{c}})
			b.run() // the launch was not taken yet
			require.NoError(t, b.job.ForceFinish(b.now, epilog, ranks("1"), 0, "root"))
			l := b.take().Launch[0]
			require.Equal(t, "0", l.Ranks.String())
			require.Equal(t, "1", b.freed.String())
			if l.Serves != nil {
				require.Equal(t, "0", l.Serves.String())
			}
			b.exited(epilog, 0, 0)
			require.Equal(t, "0-1", b.freed.String())
		})
	}
	b := newBench(t, 2, perilog.Config{Epilogs: []perilog.ActionConfig{perRank()}})
	b.run()
	require.NoError(t, b.job.ForceFinish(b.now, epilog, nil, 0, "root"))
	require.Empty(t, b.take().Launch, "the ranks are somebody else's by now")
	require.Equal(t, "0-1", b.freed.String())
}

func TestAnActionThatWasStartedTwiceGoesOnAsItsStartSays(t *testing.T) {
	single := perilog.ActionConfig{Leader: 9, Timeout: seconds(100), KillTimeout: seconds(10)}
	b := newBench(t, 2, perilog.Config{Epilogs: []perilog.ActionConfig{single}})
	b.run()
	b.take()
	for _, line := range []string{
		`{"timestamp":50,"name":"epilog-start","context":{"description":"job-manager.epilog"}}`,
		`{"timestamp":51,"name":"epilog-finish","context":{"description":"job-manager.epilog","status":0}}`,
	} {
		b.log = append(append(b.log, line...), '\n')
	}
	b.now = 60
	b.crash()
	b.take()
	require.Equal(t, perilog.AnswerApplied,
		b.report(perilog.Report{Action: epilog, Attempt: 2, Kind: perilog.ReportExited, Rank: 9}))
	b.take()
	require.Equal(t, "0-1", b.freed.String())
	require.Equal(t, 2, b.logged("epilog-finish"))
}

func TestWhatUnresolvedListsCanBeEndedByForce(t *testing.T) {
	for _, leader := range []uint32{0, 9} { // a rank of the job, and not
		b := newBench(t, 2, perilog.Config{Epilogs: []perilog.ActionConfig{{Leader: leader}}})
		b.run()
		b.take()
		b.crash()
		b.take()
		u := b.job.Unresolved()[0]
		require.ErrorIs(t, b.job.ForceFinish(b.now, u.Action, ranks("8"), 0, "root"), perilog.ErrAction)
		require.NoError(t, b.job.ForceFinish(b.now, u.Action, u.Ranks, 0, "root"))
		b.take()
		require.Empty(t, b.job.Unresolved())
		require.Equal(t, "0-1", b.freed.String())
	}
}

// TestARecordKeepsItsException: the next event, which reuses the memory of what was
// decoded, does not change what a record says.
func TestARecordKeepsItsException(t *testing.T) {
	b := newBench(t, 4, perilog.Config{})
	b.apply("exception", `{"type":"a","severity":1,"note":"","ranks":"1","action":"keep","site":1}`)
	b.apply("exception", `{"type":"b","severity":1,"note":"","ranks":"2-3","action":"drop"}`)
	b.take()
	var told []string
	for _, r := range b.last.Post {
		if x := r.Exception; x != nil {
			told = append(told, fmt.Sprint(x.Type, " ", x.Failed.Ranks, " ", x.Failed.Action, " ", string(x.Extra)))
		}
	}
	require.Equal(t, []string{`a 1 keep {"site":1}`, `b 2-3 drop `}, told)
}
