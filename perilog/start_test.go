package perilog_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/perilog"
)

// These tests ask one question, live and after a crash: did the job start, and may it
// still?

var dws = jobstate.ActionKey{Kind: jobstate.ActionEpilog, Description: "dws"}

// asked returns a job on n nodes that the executor was asked to start, after a prolog.
func asked(t *testing.T, n int) *bench {
	b := newBench(t, n, both)
	b.take()
	b.exitedAll(prolog)
	require.True(t, b.last.Start)
	return b
}

func TestAnExecutorThatWasAskedIsWaitedForHoweverTheJobLeavesRun(t *testing.T) {
	for name, end := range map[string][2]string{
		"a fatal exception":    {"exception", cancel},
		"a finish, no start":   {"finish", `{"status":0}`},
		"a revoked allocation": {"exception", `{"type":"scheduler-restart","severity":0,"note":""}`},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 2, perilog.Config{})
			require.True(t, b.take().Start)
			b.apply(end[0], end[1])
			for range 2 {
				b.take()
				require.True(t, b.job.Starting(), "I5")
				require.Equal(t, jobstate.StateCleanup, b.state())
				require.True(t, b.freed.IsEmpty(), "I3: it may be starting")
				b.crash()
			}
			b.job.NotStarted(b.now)
			b.take()
			require.Equal(t, jobstate.StateInactive, b.state())
		})
	}
}

func TestAJobThatCannotStartAnyMoreEnds(t *testing.T) {
	for name, end := range map[string]func(*bench){
		"the executor gives up": func(b *bench) {
			b.apply("release", `{"ranks":"all","final":true}`)
		},
		"it gives up, and then every rank fails": func(b *bench) {
			b.apply("release", `{"ranks":"all","final":true}`)
			b.apply("exception", `{"type":"node","severity":1,"note":"","ranks":"0-1","action":"keep"}`)
		},
		"a foreign prolog fails": func(b *bench) {
			b.job.NotStarted(b.now)
			b.apply("prolog-start", `{"description":"dws"}`)
			b.apply("prolog-finish", `{"description":"dws","status":256}`)
		},
	} {
		for _, crashes := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				b := asked(t, 2)
				end(b)
				if crashes {
					post := slices.Clone(b.job.Decide(b.now))
					for post[len(post)-1].Entry.Name == "exception" && !strings.Contains(string(post[len(post)-1].Entry.Context), "node") {
						post = post[:len(post)-1] // what was decided is not durable
					}
					b.store(t, post)
					b.crash()
				}
				require.Equal(t, "0-1", b.launched(), "I10: the epilog")
				x, ok := b.job.State().Cause()
				require.True(t, ok)
				require.Equal(t, "exec", x.Type)
				b.exitedAll(epilog)
				require.Equal(t, jobstate.StateInactive, b.state())
				require.Equal(t, 1, b.finals)
			})
		}
	}
}

func TestAStartThatNobodyAskedForNeedsAJobThatMayStart(t *testing.T) {
	b := newBench(t, 2, both)
	b.take()
	b.exited(prolog, 0, 0)
	b.apply("exception", cancel)
	b.exited(prolog, 1, 15)
	b.refuse("start", "", perilog.ErrOrder)
	b.exited(epilog, 0, 0)
	require.Equal(t, "0", b.freed.String())
	b.refuse("start", "", perilog.ErrOrder)
	b.crash()
	b.refuse("start", "", perilog.ErrOrder)

	b = newBench(t, 1, perilog.Config{})
	b.apply("prolog-start", `{"description":"dws"}`)
	b.apply("prolog-finish", `{"description":"dws","status":256}`)
	b.refuse("start", "", perilog.ErrOrder)

	b = asked(t, 2) // its epilogs run, so that the executor does not have it
	b.apply("exception", cancel)
	b.job.NotStarted(b.now)
	b.take()
	b.exited(epilog, 0, 0)
	require.Equal(t, "0", b.freed.String())
	b.crash()
	require.False(t, b.job.Starting(), "I5: live it was not")
	b.refuse("start", "", perilog.ErrOrder)
}

func TestAPrologThatStartsInCleanupPreparesNothing(t *testing.T) {
	b := newBench(t, 1, perilog.Config{Epilogs: []perilog.ActionConfig{perRank()}})
	b.take()
	b.apply("epilog-start", `{"description":"dws"}`)
	b.apply("finish", `{"status":0}`)
	b.apply("release", `{"ranks":"all","final":true}`)
	b.apply("prolog-start", `{"description":"dws"}`)
	b.apply("prolog-finish", `{"description":"dws","status":0}`)
	b.apply("epilog-finish", `{"description":"dws","status":0}`)
	b.take()
	require.Zero(t, b.logged("epilog-start")-1, "none after the last release")
	require.Equal(t, jobstate.StateInactive, b.state())
}

// PL-10.
func TestTheNodeOfASinglePrologIsNotThoseThatItServes(t *testing.T) {
	lost := func(b *bench) {
		b.take()
		for rank := range uint32(5) {
			b.report(perilog.Report{Action: prolog, Attempt: 1, Kind: perilog.ReportUnreachable, Rank: rank})
		}
	}
	for name, c := range map[string]struct {
		leader uint32
		serves string
		end    func(*bench)
		starts bool
	}{
		"offline, not of the job": {4, "0-1", nil, false},
		"offline, one of several": {0, "0-1", nil, false},
		"offline, the only one":   {0, "0", nil, true},
		"lost, not of the job":    {4, "0-1", lost, false},
		"lost, one of several":    {0, "0-1", lost, false},
		"lost, the only one":      {0, "0", lost, true},
		"lost, done with others":  {0, "0-1", func(b *bench) { b.take(); b.says(prolog, 0, `{"version":1,"released":"1"}`); lost(b) }, true},
		"exit 1, the only one":    {0, "0", func(b *bench) { b.take(); b.exited(prolog, 0, 256) }, false},
		"exit 1, told and let go": {0, "0-2", func(b *bench) { tellAndLetGo(b); b.exited(prolog, 0, 256) }, false},
		"exit 0, told and let go": {0, "0-2", func(b *bench) { tellAndLetGo(b); b.exited(prolog, 0, 0) }, true},
		"a signal, told and gone": {0, "0-2", func(b *bench) { tellAndLetGo(b); b.exited(prolog, 0, 9) }, false},
		"lost, told and let go":   {0, "0-2", func(b *bench) { tellAndLetGo(b); lost(b) }, true},
		"exit 1, its own is told": {0, "0-2", func(b *bench) {
			b.take()
			b.says(prolog, 0, `{"version":1,"failed":true,"released":"1-2"}`)
			b.exited(prolog, 0, 256)
		}, false},
		"forced, and told": {0, "0-2", func(b *bench) {
			tellAndLetGo(b)
			require.NoError(b, b.job.ForceFinish(b.now, prolog, nil, 256, "root"))
		}, true},
		"exit 1, not of the job": {4, "0-1", func(b *bench) {
			b.take()
			b.says(prolog, 4, `{"version":1,"failed":"0","released":"1"}`)
			b.exited(prolog, 4, 256)
		}, false},
		"exit 0, not of the job": {4, "0-1", func(b *bench) {
			b.take()
			b.says(prolog, 4, `{"version":1,"failed":"0","released":"1"}`)
			b.exited(prolog, 4, 0)
		}, true},
		"forced before it is told": {4, "0-1", func(b *bench) { b.take(); require.NoError(b, b.job.ForceFinish(b.now, prolog, nil, 256, "root")) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 4, perilog.Config{
				Prologs:  []perilog.ActionConfig{{Leader: c.leader, Ranks: ranks(c.serves)}},
				Tolerate: perilog.Tolerate{Count: 3, Drop: strings.HasPrefix(name, "lost")}, // else it may still run there
			})
			if c.end == nil {
				b = offlineBench(t, 4, *b.cfg, ranks("0,4"))
			} else {
				c.end(b)
			}
			b.take()
			require.Equal(t, c.starts, b.job.Starting(), "I11: %v", b.job)
			require.Equal(t, c.starts, b.state() == jobstate.StateRun)
		})
	}
}

// tellAndLetGo has a single prolog on ranks 0-2 name rank 1, and let the others go but
// its own.
func tellAndLetGo(b *bench) {
	b.take()
	b.says(prolog, 0, `{"version":1,"failed":"1"}`)
	b.says(prolog, 0, `{"version":1,"released":"1-2"}`)
}

// launched takes what follows, and returns the ranks of the first launch.
func (b *bench) launched() string {
	b.Helper()
	if l := b.take().Launch; len(l) > 0 {
		return l[0].Ranks.String()
	}
	return "nothing"
}

// What is launched the Job knows: what another says of it is refused.
func TestALaunchThatTheJobDidNotLogIsRefused(t *testing.T) {
	b := newBench(t, 1, perilog.Config{})
	b.take()
	b.refuse("epilog-start", `{"description":"x","per-rank":true,"attempt":1}`, perilog.ErrPosted)
	b.refuse("epilog-start", `{"description":"x","leader":0}`, perilog.ErrPosted)
	b.apply("epilog-start", `{"description":"x"}`)
	b.refuse("perilog-launch", `{"description":"x","kind":"epilog","attempt":1,"ranks":"0","per-rank":true}`, perilog.ErrPosted)
	require.Empty(t, b.job.Active())
}

func TestASingleCommandThatServesNoRankOfTheJobRuns(t *testing.T) {
	b := newBench(t, 2, perilog.Config{Prologs: []perilog.ActionConfig{{Leader: 9, Ranks: idset.Of(7), Timeout: seconds(3)}}})
	todo := b.take()
	require.False(t, todo.Start)
	require.Len(t, todo.Launch, 1)
	require.Equal(t, "9", todo.Launch[0].Ranks.String())
	require.Empty(t, todo.Launch[0].Serves.String())
	require.Equal(t, 3*time.Second, todo.Launch[0].Timeout)
	require.True(t, b.exited(prolog, 9, 0).Start)
}

// A late end of an action that has ended is what package jobstate makes of it; a second
// start is refused.
func TestAnActionOfOursThatHasEndedDoesNotBeginAgain(t *testing.T) {
	b := newBench(t, 1, perilog.Config{Prologs: []perilog.ActionConfig{perRank()}})
	b.take()
	require.True(t, b.exited(prolog, 0, 0).Start)
	b.apply("start", "")
	b.apply("prolog-finish", `{"description":"job-manager.prolog","status":256}`)
	b.refuse("prolog-start", `{"description":"job-manager.prolog"}`, perilog.ErrPosted)
}

func TestToleranceIsOfTheJobNotOfAProlog(t *testing.T) {
	two := perRank()
	two.Description = "second"
	second := jobstate.ActionKey{Kind: jobstate.ActionProlog, Description: "second"}
	config := perilog.Config{
		Prologs:  []perilog.ActionConfig{perRank(), two},
		Tolerate: perilog.Tolerate{Count: 1, Drop: true},
	}
	t.Run("each drops one of two ranks", func(t *testing.T) {
		b := newBench(t, 2, config)
		b.take()
		b.says(prolog, 0, `{"version":1,"failed":true}`)
		b.says(second, 1, `{"version":1,"failed":true}`)
		for _, key := range []jobstate.ActionKey{prolog, second} {
			b.exited(key, 0, 0)
			require.False(t, b.exited(key, 1, 0).Start, "I11: no job starts on nothing")
		}
		require.Equal(t, jobstate.StateCleanup, b.state())
	})
	t.Run("together they drop more than is tolerated", func(t *testing.T) {
		b := newBench(t, 3, config)
		b.take()
		b.says(prolog, 0, `{"version":1,"failed":true}`)
		b.exitedAll(prolog)
		require.Equal(t, jobstate.StateRun, b.state())
		require.Equal(t, "1-2", b.job.R().Ranks().String())
		b.says(second, 1, `{"version":1,"failed":true}`)
		b.exitedAll(second)
		require.Equal(t, jobstate.StateCleanup, b.state())
	})
	t.Run("one is tolerated in both", func(t *testing.T) {
		b := newBench(t, 3, config)
		b.take()
		for _, key := range []jobstate.ActionKey{prolog, second} {
			b.says(key, 0, `{"version":1,"failed":true}`)
			b.exitedAll(key)
		}
		require.True(t, b.last.Start)
		require.Equal(t, "1-2", b.job.R().Ranks().String())
		require.Contains(t, b.job.Holds().String(), "; dropped 0")
	})
	t.Run("a rerun passes over what was dropped", func(t *testing.T) {
		b := newBench(t, 3, config)
		b.take()
		b.says(prolog, 0, `{"version":1,"failed":true}`)
		b.exitedAll(prolog)
		b.crash()
		require.NoError(t, b.job.Rerun(b.now, second, ranks("0")))
		b.take()
		require.Zero(t, b.logged("perilog-launch"), "there is nowhere to launch")
		require.NoError(t, b.job.Rerun(b.now, second, nil))
		require.Equal(t, "1-2", b.take().Launch[0].Ranks.String())
	})
	t.Run("a rerun ends a single command whose node was dropped", func(t *testing.T) {
		b := newBench(t, 3, perilog.Config{
			Prologs:  []perilog.ActionConfig{perRank(), {Description: "second", Leader: 1}},
			Tolerate: perilog.Tolerate{Count: 1, Drop: true},
		})
		b.take()
		b.says(second, 1, `{"version":1,"released":"0"}`)
		b.says(prolog, 1, `{"version":1,"failed":true}`)
		b.exitedAll(prolog)
		b.crash()
		b.take()
		require.NoError(t, b.job.Rerun(b.now, second, nil))
		b.take()
		require.Zero(t, b.logged("perilog-launch"), "there is nowhere to launch")
		require.Empty(t, b.job.Unresolved())
		require.Equal(t, jobstate.StateCleanup, b.state(), "it failed on every rank")
	})
}

// A script that has named its node goes on. If it then fails of itself, that is no
// failure of the node.
func TestAGenericFailureIsFatalUnlessAskedForWhateverWasReportedBefore(t *testing.T) {
	for name, fails := range map[string]func(b *bench){
		"exit 1":             func(b *bench) { b.exited(prolog, 0, 1<<8) },
		"exit 1, unreported": func(b *bench) { b.exited(prolog, 0, 1<<8) },
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
					if name != "exit 1, unreported" {
						require.Equal(t, perilog.AckApplied, b.says(prolog, 0, `{"version":1,"failed":true}`))
					}
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
					Prologs:  []perilog.ActionConfig{perRank()},
					Tolerate: perilog.Tolerate{Count: 1, Drop: drop, AnyFailure: name != "lost"}, // a lost node is no failure of the command
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

// A second allocation would hold again what was freed.
func TestAJobIsAllocatedOnce(t *testing.T) {
	for name, live := range map[string]func(b *bench){
		"in RUN":     func(b *bench) {},
		"in CLEANUP": func(b *bench) { b.run() },
		"revoked":    func(b *bench) { b.apply("exception", `{"type":"scheduler-restart","severity":0,"note":""}`) },
		"freed": func(b *bench) {
			b.apply("exception", `{"type":"cancel","severity":0,"note":""}`)
			for b.logged("free") == 0 {
				b.store(b, b.job.Decide(b.now))
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

func TestPL15AShutdownLaunchesNothingAndLosesNothing(t *testing.T) {
	b := newBench(t, 1, both)
	b.take()
	b.job.Shutdown(b.now, 0)
	require.True(t, b.job.Running())
	require.False(t, b.exited(prolog, 0, 0).Start, "it may end, and starts nothing")
	require.False(t, b.job.Running())
	b.crash()
	require.True(t, b.take().Start, "the log has all of it")
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

func TestAForeignPrologIsNotFinishedBeforeTheJobIsValidated(t *testing.T) {
	b := submitted(t, perilog.Config{}, perilog.JobConfig{ID: 1, R: allocation(t, 1)})
	b.apply("prolog-start", `{"description":"dws"}`)
	require.ErrorIs(t, b.job.ForceFinish(b.now, jobstate.ActionKey{Kind: jobstate.ActionProlog, Description: "dws"}, nil, 1, "root"), perilog.ErrAction)
	b.take()
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
