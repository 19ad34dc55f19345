package perilog_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/perilog"
)

// These tests re-enact what once let a rank go early, or kept it for ever.

func TestADrainThatIsNotConfirmedIsAskedForAgainAfterACrash(t *testing.T) {
	b := newBench(t, 3, perilog.Config{Prologs: []perilog.ActionConfig{perRank()}})
	b.take()
	todo := b.exited(prolog, 1, 1<<8)
	require.Equal(t, "1", todo.Drain[0].Ranks.String())
	require.Equal(t, "prolog failed for job ƒ2", todo.Drain[0].Reason)

	b.crash()
	b.drains = new(idset.Set)
	a := b.report(perilog.Report{Action: prolog, Attempt: 1, Kind: perilog.ReportExited, Rank: 1, Status: 1 << 8})
	require.Equal(t, perilog.AnswerRepeated, a, "the log has that it failed, not yet that it ended")
	require.Equal(t, "1", b.take().Drain[0].Ranks.String(), "asked for again")
	b.exited(prolog, 0, 0)
	b.exited(prolog, 2, 0)
	require.Equal(t, jobstate.StateCleanup, b.state())
	require.Equal(t, "0,2", b.freed.String(), "I10: rank 1 waits for its drain")
	require.Zero(t, b.finals)
	b.drained()
	require.Equal(t, "0-2", b.freed.String())
	require.Equal(t, 1, b.finals)
	require.Equal(t, jobstate.StateInactive, b.state())
}

func TestADrainIsAskedForAgainAlsoWhereTheActionIsSomebodyElses(t *testing.T) {
	b := newBench(t, 1, perilog.Config{Epilogs: []perilog.ActionConfig{perRank()}})
	b.cfg = &perilog.Config{}
	b.log = []byte(`{"timestamp":1,"name":"submit","context":{"userid":1,"urgency":16,"flags":0,"version":1}}
{"timestamp":2,"name":"validate"}
{"timestamp":3,"name":"depend"}
{"timestamp":4,"name":"priority","context":{"priority":16}}
{"timestamp":5,"name":"alloc"}
{"timestamp":6,"name":"start"}
{"timestamp":7,"name":"finish","context":{"status":0}}
{"timestamp":8,"name":"epilog-start","context":{"description":"job-manager.epilog"}}
{"timestamp":9,"name":"epilog-fail","context":{"description":"job-manager.epilog","ranks":"0","cause":"failed","status":256,"drain":true}}
{"timestamp":10,"name":"epilog-finish","context":{"description":"job-manager.epilog","status":256}}
{"timestamp":11,"name":"release","context":{"ranks":"all","final":true}}
`)
	b.crash()
	require.Equal(t, "0", b.take().Drain[0].Ranks.String(), "I10")
	require.True(t, b.freed.IsEmpty())
	b.drained()
	require.Equal(t, jobstate.StateInactive, b.state())
}

func TestAFailureInAControlLineSurvivesACrash(t *testing.T) {
	b := newBench(t, 2, perilog.Config{Prologs: []perilog.ActionConfig{perRank()}})
	b.take()
	require.Equal(t, perilog.AnswerApplied, b.says(prolog, 1, `{"version":1,"failed":true,"note":"gpu 2 is gone"}`))
	b.take()
	b.crash()
	require.False(t, b.exited(prolog, 0, 0).Start)
	require.False(t, b.exited(prolog, 1, 0).Start, "I11: the node was named as failed")
	require.Equal(t, jobstate.StateCleanup, b.state())
	x, _ := b.job.State().Exception()
	require.Equal(t, "prolog reported node failure on fluke1 (rank 1): gpu 2 is gone", x.Note)
	require.Equal(t, "1", b.drains.String())
}

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
	require.Equal(t, perilog.AnswerStale, a)
	b.take()
	require.True(t, b.freed.IsEmpty(), "I10: the second launch runs")
	a = b.report(perilog.Report{Action: epilog, Attempt: 2, Kind: perilog.ReportExited, Rank: 1})
	require.Equal(t, perilog.AnswerApplied, a)
	b.take()
	require.Equal(t, "1", b.freed.String())

	hk := newBench(t, 1, perilog.Config{Housekeeping: &perilog.HousekeepingConfig{}})
	hk.run()
	hk.take()
	hk.crash()
	require.NoError(t, hk.job.Rerun(hk.now, perilog.Housekeeping(), nil))
	hk.take()
	a = hk.report(perilog.Report{Action: perilog.Housekeeping(), Attempt: 1, Kind: perilog.ReportExited, Rank: 0})
	require.Equal(t, perilog.AnswerStale, a)
}

func TestAPrologForcedOnACanceledJobFreesNoRankBeforeItsEpilog(t *testing.T) {
	b := newBench(t, 2, perilog.Config{Prologs: []perilog.ActionConfig{perRank()}, Epilogs: []perilog.ActionConfig{perRank()}})
	b.take()
	b.apply("exception", `{"type":"cancel","severity":0,"note":""}`)
	b.take()
	require.NoError(t, b.job.ForceFinish(b.now, prolog, ranks("1"), 1, "root"))
	b.take()
	require.True(t, b.freed.IsEmpty(), "I3")
	require.NoError(t, b.job.ForceFinish(b.now, prolog, nil, 1, "root"))
	require.Equal(t, "0-1", b.take().Launch[0].Ranks.String(), "the epilog")
	require.True(t, b.freed.IsEmpty(), "I3")
	b.exited(epilog, 1, 0)
	require.Equal(t, "1", b.freed.String())
}

func TestToleranceIsOfTheJobNotOfAProlog(t *testing.T) {
	two := perRank()
	two.Description = "second"
	second := perilog.Key{Kind: jobstate.ActionProlog, Description: "second"}
	config := perilog.Config{
		Prologs:  []perilog.ActionConfig{perRank(), two},
		Tolerate: perilog.Tolerate{Count: 1, Drop: true},
	}
	t.Run("each drops one of two ranks", func(t *testing.T) {
		b := newBench(t, 2, config)
		b.take()
		b.says(prolog, 0, `{"version":1,"failed":true}`)
		b.says(second, 1, `{"version":1,"failed":true}`)
		for _, key := range []perilog.Key{prolog, second} {
			b.exited(key, 0, 0)
			require.False(t, b.exited(key, 1, 0).Start, "I11: no job starts on nothing")
		}
		require.Equal(t, jobstate.StateCleanup, b.state())
	})
	t.Run("together they drop more than is tolerated", func(t *testing.T) {
		b := newBench(t, 3, config)
		b.take()
		b.says(prolog, 0, `{"version":1,"failed":true}`)
		for rank := range uint32(3) {
			b.exited(prolog, rank, 0)
		}
		require.Equal(t, jobstate.StateRun, b.state())
		require.Equal(t, "1-2", b.job.R().Ranks().String())
		b.says(second, 1, `{"version":1,"failed":true}`)
		for rank := range uint32(3) {
			b.exited(second, rank, 0)
		}
		require.Equal(t, jobstate.StateCleanup, b.state())
	})
	t.Run("one is tolerated in both", func(t *testing.T) {
		b := newBench(t, 3, config)
		b.take()
		for _, key := range []perilog.Key{prolog, second} {
			b.says(key, 0, `{"version":1,"failed":true}`)
			for rank := range uint32(3) {
				b.exited(key, rank, 0)
			}
		}
		require.True(t, b.last.Start)
		require.Equal(t, "1-2", b.job.R().Ranks().String())
		require.Contains(t, b.job.Holds().String(), "; dropped 0")
	})
	t.Run("a rerun passes over what was dropped", func(t *testing.T) {
		b := newBench(t, 3, config)
		b.take()
		b.says(prolog, 0, `{"version":1,"failed":true}`)
		for rank := range uint32(3) {
			b.exited(prolog, rank, 0)
		}
		b.crash()
		require.NoError(t, b.job.Rerun(b.now, second, nil))
		require.Equal(t, "1-2", b.take().Launch[0].Ranks.String())
	})
}

func TestNoOrderOfAppendsFreesARankBeforeItsEpilog(t *testing.T) {
	config := perilog.Config{Epilogs: []perilog.ActionConfig{perRank()}}
	events := map[string][][2]string{
		"finish and release": {{"finish", `{"status":0}`}, {"release", `{"ranks":"all","final":true}`}},
		"release and finish": {{"release", `{"ranks":"all","final":true}`}, {"finish", `{"status":0}`}},
		"parts": {
			{"release", `{"ranks":"0","final":false}`}, {"finish", `{"status":0}`},
			{"release", `{"ranks":"1","final":false}`}, {"release", `{"ranks":"all","final":true}`},
		},
		"exception and release": {{"exception", `{"type":"x","severity":0,"note":""}`}, {"release", `{"ranks":"all","final":true}`}},
		"exception, release, finish": {
			{"exception", `{"type":"x","severity":0,"note":""}`}, {"release", `{"ranks":"0-1","final":false}`},
			{"finish", `{"status":0}`}, {"release", `{"ranks":"all","final":true}`},
		},
	}
	for name, list := range events {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 2, config)
			b.take()
			b.apply("start", "")
			for _, e := range list { // no Take between
				b.apply(e[0], e[1])
			}
			b.take()
			require.True(t, b.freed.IsEmpty(), "I3")
			require.Equal(t, 1, b.logged("epilog-start"))
			for _, f := range jobstate.Validate(b.log) {
				require.NotEqual(t, jobstate.LevelError, f.Level, f)
			}
			b.exited(epilog, 0, 0)
			require.Equal(t, "0", b.freed.String())
			b.exited(epilog, 1, 0)
			require.Equal(t, 1, b.finals)
			require.Equal(t, jobstate.StateInactive, b.state())
		})
	}
}

func TestWhatEndsAHoldWhileTheJobEndsFreesNoRankBeforeItsEpilog(t *testing.T) {
	for name, end := range map[string]func(b *bench){
		"somebody else's epilog": func(b *bench) { b.apply("epilog-finish", `{"description":"dws","status":0}`) },
		"a part of it":           func(b *bench) { b.apply("epilog-release", `{"description":"dws","ranks":"0","status":0}`) },
		"a drain":                func(b *bench) { b.drained() },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 2, perilog.Config{
				Prologs: []perilog.ActionConfig{perRank()}, Epilogs: []perilog.ActionConfig{perRank()},
				Tolerate: perilog.Tolerate{Count: 1},
			})
			b.take()
			b.says(prolog, 0, `{"version":1,"failed":true}`)
			b.exited(prolog, 0, 0)
			b.exited(prolog, 1, 0)
			if name != "a drain" {
				b.drained()
				b.apply("epilog-start", `{"description":"dws"}`)
			}
			b.apply("start", "")
			b.apply("release", `{"ranks":"0","final":false}`)
			b.apply("exception", `{"type":"cancel","severity":0,"note":""}`)
			b.take()
			end(b)
			b.take()
			require.True(t, b.freed.IsEmpty(), "I3")
			require.Contains(t, b.job.Holds().String(), `epilog "job-manager.epilog" 0-1`)
		})
	}
}

func TestNothingIsFreedWhileTheExecutorMayBeStartingTheJob(t *testing.T) {
	for _, crash := range []bool{false, true} {
		b := newBench(t, 2, perilog.Config{Prologs: []perilog.ActionConfig{perRank()}, Tolerate: perilog.Tolerate{Count: 1}})
		b.take()
		b.says(prolog, 0, `{"version":1,"failed":true}`)
		b.exited(prolog, 0, 0)
		require.True(t, b.exited(prolog, 1, 0).Start, "the executor is asked")
		b.apply("exception", `{"type":"cancel","severity":0,"note":""}`)
		b.apply("epilog-start", `{"description":"dws"}`)
		b.take()
		if crash {
			b.crash()
			require.Equal(t, perilog.ReasonStart, b.job.Unresolved()[1].Reason)
		}
		b.refuse("epilog-finish", `{"description":"dws","status":0}`, perilog.ErrOrder)
		dws := perilog.Key{Kind: jobstate.ActionEpilog, Description: "dws"}
		require.ErrorIs(t, b.job.ForceFinish(b.now, dws, nil, 0, "root"), perilog.ErrAction)
		b.drained()
		require.True(t, b.freed.IsEmpty(), "I3")
		b.job.NotStarted(b.now)
		b.apply("epilog-finish", `{"description":"dws","status":0}`)
		b.take()
		require.Equal(t, "0-1", b.freed.String())
		require.Equal(t, jobstate.StateInactive, b.state())
	}
}

func TestWhatWouldFreeIsRefusedWithWhatHasToComeFirst(t *testing.T) {
	b := newBench(t, 2, perilog.Config{Prologs: []perilog.ActionConfig{perRank()}, Epilogs: []perilog.ActionConfig{perRank()}})
	b.refuse("start", "", perilog.ErrOrder)
	b.take()
	b.refuse("start", "", perilog.ErrOrder)
	b.refuse("clean", "", jobstate.ErrTransition)
	b.refuse("free", "", perilog.ErrOrder)
	b.refuse("prolog-finish", `{"description":"job-manager.prolog","status":0}`, perilog.ErrOwn)
	b.refuse("epilog-start", `{"description":"job-manager.epilog"}`, perilog.ErrOwn)
	b.exited(prolog, 0, 0)
	b.exited(prolog, 1, 0)
	b.run()
	b.take()
	b.refuse("free", "", perilog.ErrOrder)
	b.refuse("clean", "", perilog.ErrOrder)
	b.refuse("epilog-finish", `{"description":"job-manager.epilog","status":0}`, perilog.ErrOwn)
	b.refuse("epilog-release", `{"description":"job-manager.epilog","ranks":"0","status":0}`, perilog.ErrOwn)
	b.refuse("drained", `{"ranks":"0"}`, perilog.ErrOwn)
	b.exited(epilog, 0, 0)
	b.exited(epilog, 1, 0)
	require.Equal(t, jobstate.StateInactive, b.state())
}

func TestAnActionIsTakenUpAsItsStartSaysWhateverIsConfigured(t *testing.T) {
	b := newBench(t, 2, perilog.Config{Epilogs: []perilog.ActionConfig{perRank()}})
	b.run()
	b.take()
	b.cfg = &perilog.Config{Epilogs: []perilog.ActionConfig{{Leader: 7, Timeout: seconds(5)}}}
	b.crash()
	require.Equal(t, "0-1", b.job.Unresolved()[0].Ranks.String(), "each rank by itself, not a command on rank 7")
	require.NoError(t, b.job.Reattach(b.now, epilog, nil))
	at, ok := b.job.Deadline()
	require.True(t, ok)
	require.InDelta(t, 107, float64(at), 2, "the timeout of the launch")
	b.exited(epilog, 1, 0)
	require.Equal(t, "1", b.freed.String())

	b.cfg = &perilog.Config{} // and where there is none any more
	b.crash()
	require.Error(t, b.job.Rerun(b.now, epilog, nil), "there is no command")
	require.Equal(t, perilog.AnswerApplied, b.report(perilog.Report{Action: epilog, Attempt: 1, Kind: perilog.ReportExited, Rank: 0}))
	b.take()
	require.Equal(t, jobstate.StateInactive, b.state())
}

func TestAnActionOfSomebodyElseThatIsRunAgainStaysAsItWasRun(t *testing.T) {
	b := newBench(t, 2, perilog.Config{})
	b.take()
	b.apply("start", "")
	b.apply("finish", `{"status":0}`)
	b.apply("epilog-start", `{"description":"job-manager.epilog"}`)
	b.apply("release", `{"ranks":"all","final":true}`)
	b.take()
	b.cfg = &perilog.Config{Epilogs: []perilog.ActionConfig{perRank()}}
	b.crash()
	require.NoError(t, b.job.Rerun(b.now, epilog, ranks("0")))
	launch := b.take().Launch[0]
	require.Equal(t, "0", launch.Ranks.String())
	b.cfg = &perilog.Config{Epilogs: []perilog.ActionConfig{{Leader: 1}}}
	b.crash()
	lost := b.job.Unresolved()
	require.Len(t, lost, 2, "one for each attempt, which a report has to name")
	require.Equal(t, "1", lost[0].Ranks.String())
	require.Equal(t, "0", lost[1].Ranks.String())
	require.Less(t, lost[0].Attempt, lost[1].Attempt)
	require.Equal(t, launch.Attempt, lost[1].Attempt)
	a := b.report(perilog.Report{Action: epilog, Attempt: launch.Attempt, Kind: perilog.ReportExited, Rank: 0})
	require.Equal(t, perilog.AnswerApplied, a)
	b.take()
	require.Equal(t, "0", b.freed.String(), "each rank by itself")
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
			require.Equal(t, perilog.AnswerApplied, b.report(perilog.Report{Action: epilog, Attempt: launch.Attempt, Kind: perilog.ReportExited, Rank: 1}))
			b.take()
		} else {
			require.Equal(t, "1", b.drains.String())
			b.drained()
		}
		require.Equal(t, "0-1", b.freed.String())
		require.Equal(t, 1, b.finals)
	}
}

func TestControlLines(t *testing.T) {
	config := perilog.Config{Epilogs: []perilog.ActionConfig{perRank()}}
	t.Run("progress drains nothing", func(t *testing.T) {
		b := newBench(t, 1, config)
		b.run()
		b.take()
		require.Equal(t, perilog.AnswerIgnored, b.says(epilog, 0, `{"version":1,"progress":50}`))
		b.exited(epilog, 0, 0)
		require.True(t, b.drains.IsEmpty())
		require.Equal(t, jobstate.StateInactive, b.state())
	})
	for name, line := range map[string]string{"version 2": `{"version":2,"failed":"0"}`, "no object": `nonsense`} {
		t.Run(name+" is a failure with a name", func(t *testing.T) {
			b := newBench(t, 1, config)
			b.run()
			b.take()
			require.Equal(t, perilog.AnswerApplied, b.says(epilog, 0, line))
			b.exited(epilog, 0, 0)
			require.Equal(t, "0", b.drains.String())
			x, _ := b.job.State().Exception()
			require.Contains(t, x.Note, "bad control line on fluke0 (rank 0)")
			b.drained()
			require.Equal(t, jobstate.StateInactive, b.state())

			ignoring := config
			ignoring.Epilogs = []perilog.ActionConfig{{PerRank: true, IgnoreControl: true}}
			b = newBench(t, 1, ignoring)
			b.run()
			b.take()
			require.Equal(t, perilog.AnswerIgnored, b.says(epilog, 0, line))
		})
	}
	t.Run("a single command releases ranks that it is done with", func(t *testing.T) {
		b := newBench(t, 4, perilog.Config{Epilogs: []perilog.ActionConfig{{Leader: 9}}})
		b.run()
		require.Equal(t, "9", b.take().Launch[0].Ranks.String())
		require.Equal(t, perilog.AnswerApplied, b.says(epilog, 9, `{"version":1,"released":"0-2"}`))
		b.take()
		require.Equal(t, "0-2", b.freed.String())
		b.crash()
		require.Equal(t, perilog.AnswerApplied, b.says(epilog, 9, `{"version":1,"released":"3"}`), "the script goes on")
		b.take()
		require.Equal(t, "0-3", b.freed.String())
		require.Zero(t, b.finals, "I2: the final fragment comes with the event free")
		b.exited(epilog, 9, 0)
		require.Equal(t, 1, b.finals)
	})
}

func TestAReportFromAWrongRankTakesNothingUp(t *testing.T) {
	b := newBench(t, 2, perilog.Config{Epilogs: []perilog.ActionConfig{perRank()}})
	b.run()
	b.take()
	b.crash()
	before := b.job.String()
	require.Equal(t, perilog.AnswerUnknown, b.report(perilog.Report{Action: epilog, Attempt: 1, Kind: perilog.ReportExited, Rank: 5}))
	require.Equal(t, perilog.AnswerStale, b.report(perilog.Report{Action: epilog, Attempt: 3, Kind: perilog.ReportExited, Rank: 0}))
	require.Equal(t, before, b.job.String())
	require.NoError(t, b.job.Reattach(b.now, epilog, ranks("0")))
	require.Equal(t, "1", b.job.Unresolved()[0].Ranks.String(), "some helpers survive and others do not")
	require.ErrorIs(t, b.job.Reattach(b.now, epilog, ranks("0-1")), perilog.ErrAction)
	require.NoError(t, b.job.Rerun(b.now, epilog, ranks("1")))
	require.Empty(t, b.job.Unresolved())
}

func TestAGenericFailureOfAPrologIsFatalUnlessAskedFor(t *testing.T) {
	for _, any := range []bool{false, true} {
		b := newBench(t, 4, perilog.Config{
			Prologs:  []perilog.ActionConfig{perRank()},
			Tolerate: perilog.Tolerate{Count: 2, AnyFailure: any},
		})
		b.take()
		b.exited(prolog, 0, 1<<8)
		for rank := range uint32(3) {
			b.exited(prolog, rank+1, 0)
		}
		require.Equal(t, any, b.last.Start)
	}
	b := newBench(t, 4, perilog.Config{Prologs: []perilog.ActionConfig{perRank()}, Tolerate: perilog.Tolerate{Count: 1, Drop: true}})
	b.take()
	a := b.report(perilog.Report{Action: prolog, Attempt: 1, Kind: perilog.ReportUnreachable, Rank: 0})
	require.Equal(t, perilog.AnswerApplied, a)
	for rank := range uint32(3) {
		b.exited(prolog, rank+1, 0)
	}
	require.True(t, b.last.Start, "a lost node is tolerated")
	require.Equal(t, "1-3", b.job.R().Ranks().String())
}

// A script that has named its node goes on. If it then fails of itself, that is no
// failure of the node.
func TestAGenericFailureIsFatalWhateverWasReportedBefore(t *testing.T) {
	for name, fails := range map[string]func(b *bench){
		"exit 1":             func(b *bench) { b.exited(prolog, 0, 1<<8) },
		"a signal":           func(b *bench) { b.exited(prolog, 0, 9) },
		"a timeout":          func(b *bench) { b.now += 100; b.job.Tick(b.now); b.exited(prolog, 0, 15) },
		"deaf":               func(b *bench) { b.deafen() },
		"a bad control line": func(b *bench) { b.says(prolog, 0, "nonsense"); b.exited(prolog, 0, 0) },
	} {
		for _, single := range []bool{false, true} {
			for _, any := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/single=%t/any=%t", name, single, any), func(t *testing.T) {
					p := perRank()
					p.PerRank = !single
					b := newBench(t, 3, perilog.Config{
						Prologs: []perilog.ActionConfig{p}, Tolerate: perilog.Tolerate{Count: 1, Drop: true, AnyFailure: any},
					})
					b.take()
					require.Equal(t, perilog.AnswerApplied, b.says(prolog, 0, `{"version":1,"failed":true}`))
					if single {
						b.says(prolog, 0, `{"version":1,"released":"1-2"}`)
					} else {
						b.exited(prolog, 1, 0)
						b.exited(prolog, 2, 0)
					}
					fails(b)
					require.Equal(t, any, b.last.Start)
				})
			}
		}
	}
}

// With Drop the job goes on without such a rank.
func TestNoJobStartsBesideAPrologThatMayStillRun(t *testing.T) {
	lose := func(b *bench) {
		b.report(perilog.Report{Action: prolog, Attempt: 1, Kind: perilog.ReportUnreachable, Rank: 0})
		b.take()
	}
	for name, fails := range map[string]func(b *bench){
		"deaf":                          func(b *bench) { b.deafen() },
		"lost":                          lose,
		"deaf after a bad control line": func(b *bench) { b.says(prolog, 0, "nonsense"); b.deafen() },
		"lost after a bad control line": func(b *bench) { b.says(prolog, 0, "nonsense"); lose(b) },
	} {
		for _, drop := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/drop=%t", name, drop), func(t *testing.T) {
				b := newBench(t, 3, perilog.Config{
					Prologs: []perilog.ActionConfig{perRank()}, Tolerate: perilog.Tolerate{Count: 1, Drop: drop, AnyFailure: true},
				})
				b.take()
				b.exited(prolog, 1, 0)
				b.exited(prolog, 2, 0)
				fails(b)
				require.Equal(t, drop, b.last.Start)
			})
		}
	}
}

// The executor may be done with a rank while the job runs elsewhere. The rank then
// waits for the job's end, and no straggler.
func TestARankThatWasReleasedEarlyIsFreeAtFinish(t *testing.T) {
	on1 := perRank()
	on1.Ranks = ranks("1")
	cancel := func(b *bench) { b.apply("exception", `{"type":"cancel","severity":0,"note":""}`); b.take() }
	finish := func(b *bench) { b.apply("finish", `{"status":0}`) }
	for name, c := range map[string]struct {
		config perilog.Config
		end    func(b *bench)
		free   string
	}{
		"no epilog":                {perilog.Config{}, finish, "0"},
		"an epilog elsewhere":      {perilog.Config{Epilogs: []perilog.ActionConfig{on1}}, finish, "0"},
		"an epilog there":          {perilog.Config{Epilogs: []perilog.ActionConfig{perRank()}}, finish, ""},
		"canceled, no epilog":      {perilog.Config{}, func(b *bench) { cancel(b); finish(b) }, "0"},
		"canceled, an epilog":      {perilog.Config{Epilogs: []perilog.ActionConfig{perRank()}}, func(b *bench) { cancel(b); finish(b) }, ""},
		"without a finish":         {perilog.Config{Epilogs: []perilog.ActionConfig{on1}}, func(b *bench) { cancel(b); b.apply("release", `{"ranks":"all","final":true}`) }, "0,2"},
		"with nothing else to end": {perilog.Config{}, func(b *bench) { b.apply("release", `{"ranks":"all","final":true}`); finish(b) }, "0-2"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 3, c.config)
			b.take()
			b.apply("start", "")
			b.apply("release", `{"ranks":"0","final":false}`)
			require.Empty(t, b.take().Free.R.Ranks().String(), "the job holds it")
			c.end(b)
			b.take()
			require.Equal(t, c.free, b.freed.String())
			live := b.job.Holds().String()
			b.crash()
			require.Equal(t, live, b.job.Holds().String(), "I5")
			b.take()
			if !b.job.State().Released() {
				b.apply("release", `{"ranks":"all","final":true}`)
				b.take()
			}
			for rank := range uint32(3) {
				if b.logged("epilog-start") > 0 && (c.config.Epilogs[0].Ranks == nil || rank == 1) {
					require.False(t, b.freed.Contains(rank), "I3: its epilog comes first")
					b.exited(epilog, rank, 0)
				}
			}
			require.Equal(t, "0-2", b.freed.String())
			require.Equal(t, jobstate.StateInactive, b.state())
		})
	}
}

// A second allocation would hold again what was freed.
func TestAJobIsAllocatedOnce(t *testing.T) {
	for name, live := range map[string]func(b *bench){
		"in RUN":     func(b *bench) {},
		"in CLEANUP": func(b *bench) { b.run() },
		"revoked":    func(b *bench) { b.apply("exception", `{"type":"scheduler-restart","severity":0,"note":""}`) },
		"freed": func(b *bench) {
			b.apply("exception", `{"type":"cancel","severity":0,"note":""}`)
			for b.logged("free") == 0 {
				b.store(b, b.job.Settle(b.now))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 2, perilog.Config{})
			live(b)
			b.refuse("alloc", "", jobstate.ErrTransition)
		})
	}
}

func TestACrashBetweenTheFinalFragmentAndAnythingGivesNoSecondOne(t *testing.T) {
	for _, c := range []perilog.Config{{}, {Epilogs: []perilog.ActionConfig{perRank()}}, {Housekeeping: &perilog.HousekeepingConfig{}}} {
		b := newBench(t, 1, c)
		b.run()
		b.take()
		key := epilog
		if c.Housekeeping != nil {
			key = perilog.Housekeeping()
			require.False(t, b.job.Done(), "housekeeping runs")
		}
		if c.Epilogs != nil || c.Housekeeping != nil {
			b.exited(key, 0, 0)
		}
		require.Equal(t, 1, b.finals)
		require.True(t, b.job.Done())
		full := b.log
		last := 3 // lose the last records, one by one
		if c.Housekeeping != nil {
			last = 1 // that of its log is the last
		}
		for n, end := 0, 0; n < last; n++ {
			b.log = full[:len(full)-end]
			b.crash()
			freed := b.logged("free") > 0
			b.take()
			require.Equal(t, freed, b.finals == 1, "I2: a second final fragment, or none")
			for end++; end < len(full) && full[len(full)-end-1] != '\n'; end++ {
			}
			b.freed, b.finals = new(idset.Set), 1
		}
	}
}

func TestNothingStartsDuringAShutdown(t *testing.T) {
	b := newBench(t, 1, perilog.Config{Prologs: []perilog.ActionConfig{perRank()}, Epilogs: []perilog.ActionConfig{perRank()}})
	b.take()
	b.job.Shutdown(b.now, 0)
	require.False(t, b.exited(prolog, 0, 0).Start)
	require.False(t, b.job.Running())
	b.crash()
	require.True(t, b.take().Start)
	b.apply("start", "")
	b.job.Shutdown(b.now, b.now+100)
	b.apply("finish", `{"status":0}`)
	b.apply("release", `{"ranks":"all","final":true}`)
	require.Empty(t, b.take().Launch)
	require.Equal(t, 1, b.logged("epilog-start"), "I3: it holds its rank")
	b.job.Tick(b.now + 100)
	_, err := b.job.Apply(b.now, b.entry("memo", `{}`))
	require.ErrorIs(t, err, perilog.ErrStopped)
	require.Empty(t, b.take().Post)
	b.crash()
	require.Empty(t, b.job.Unresolved(), "it was never launched")
	require.Len(t, b.take().Launch, 1)
}

func TestAnEmptyRIsRefused(t *testing.T) {
	job, err := perilog.NewJob(&perilog.Config{}, perilog.Spec{ID: 1})
	require.NoError(t, err)
	b := &bench{TB: t, job: job, now: 1}
	for _, e := range [][2]string{
		{"submit", `{"userid":1,"urgency":16,"flags":0,"version":1}`}, {"validate"}, {"depend"}, {"priority", `{"priority":16}`},
	} {
		b.apply(e[0], e[1])
	}
	b.refuse("alloc", "", perilog.ErrR)
	require.ErrorIs(t, job.SetR(nil), perilog.ErrR)
	require.NoError(t, job.SetR(allocation(t, 2)))
	require.ErrorIs(t, job.SetR(allocation(t, 2)), perilog.ErrR)
	b.apply("alloc", "")
}

func TestAWholeJobGoesBackInOneFragmentAfterADrain(t *testing.T) {
	b := newBench(t, 2, perilog.Config{Epilogs: []perilog.ActionConfig{perRank()}, WholeJob: true})
	b.run()
	b.take()
	b.exited(epilog, 0, 0)
	b.exited(epilog, 1, 1<<8)
	require.Equal(t, "1", b.drains.String())
	require.True(t, b.freed.IsEmpty())
	b.drained()
	require.Equal(t, "0-1", b.freed.String())
	require.Equal(t, 1, b.finals)
}
