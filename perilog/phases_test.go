package perilog_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/perilog"
)

// named returns an action on each rank with a description.
func named(description string) perilog.ActionConfig {
	a := perRank()
	a.Description = description
	return a
}

// An action is due if it is configured when its phase begins, and what has begun keeps
// what its start says: a live job after a SetConfig, and one that was recovered with the
// same configuration.
func TestAnActionIsDueIfItIsConfiguredWhenItsPhaseBegins(t *testing.T) {
	pro, epi, hk := []perilog.ActionConfig{named("a")}, []perilog.ActionConfig{named("a")}, &perilog.HousekeepingConfig{}
	all := perilog.Config{Prologs: pro, Epilogs: epi, Housekeeping: hk}
	other := perilog.Config{Prologs: []perilog.ActionConfig{named("b")}, Epilogs: []perilog.ActionConfig{named("b")}, Housekeeping: hk}
	key := func(k jobstate.ActionKind, name string) jobstate.ActionKey {
		return jobstate.ActionKey{Kind: k, Description: name}
	}
	prologA, epilogA, epilogB := key(jobstate.ActionProlog, "a"), key(jobstate.ActionEpilog, "a"), key(jobstate.ActionEpilog, "b")
	started := func(b *bench) { b.take(); b.apply("start", ""); b.take() }
	for name, c := range map[string]struct {
		before, after perilog.Config
		until         func(*bench)         // what comes before the change
		rest          func(*bench)         // and what after it, beside the ends of actions
		runs          []jobstate.ActionKey // all that runs in the job's life
	}{
		"prologs are added after they began": {
			perilog.Config{}, perilog.Config{Prologs: pro},
			func(b *bench) { b.apply("memo", `{"a":1}`); b.take() }, func(b *bench) { b.run() }, nil,
		},
		"prologs are added while another runs": {
			perilog.Config{Prologs: pro}, other,
			func(b *bench) { b.take(); b.apply("memo", `{"a":1}`); b.take() },
			func(b *bench) { b.exited(prologA, 0, 0); b.exited(prologA, 1, 0); b.run() }, []jobstate.ActionKey{prologA, epilogB},
		},
		"a prolog that runs is removed": {
			all, perilog.Config{}, func(b *bench) { b.take() },
			func(b *bench) { b.exited(prologA, 0, 0); b.exited(prologA, 1, 0); b.run() }, []jobstate.ActionKey{prologA, perilog.Housekeeping()},
		},
		"epilogs are added while the job runs": {
			perilog.Config{}, perilog.Config{Epilogs: epi}, started,
			func(b *bench) { b.apply("finish", `{"status":0}`); b.apply("release", `{"ranks":"all","final":true}`) },
			[]jobstate.ActionKey{epilogA},
		},
		"epilogs are replaced while the job runs": {
			all, other, func(b *bench) { b.take(); b.exited(prologA, 0, 0); b.exited(prologA, 1, 0); started(b) },
			func(b *bench) { b.apply("finish", `{"status":0}`); b.apply("release", `{"ranks":"all","final":true}`) },
			[]jobstate.ActionKey{prologA, epilogB, perilog.Housekeeping()},
		},
		"epilogs are removed while they run": {
			perilog.Config{Epilogs: epi}, perilog.Config{}, func(b *bench) { b.run(); b.take() }, nil, []jobstate.ActionKey{epilogA},
		},
		"epilogs are replaced while they run": {
			perilog.Config{Epilogs: epi}, other, func(b *bench) { b.run(); b.take() }, nil, []jobstate.ActionKey{epilogA},
		},
		"epilogs are added after the last release": {
			perilog.Config{}, perilog.Config{Epilogs: epi},
			func(b *bench) { b.apply("epilog-start", `{"description":"dws"}`); b.run(); b.take() },
			func(b *bench) { b.apply("epilog-finish", `{"description":"dws","status":0}`) }, nil,
		},
		"epilogs are added after the last release, which finish follows": {
			perilog.Config{}, perilog.Config{Epilogs: epi},
			func(b *bench) {
				b.apply("epilog-start", `{"description":"dws"}`)
				started(b)
				b.apply("exception", cancel)
				b.apply("release", `{"ranks":"all","final":true}`)
				b.take()
			},
			func(b *bench) {
				b.apply("finish", `{"status":0}`)
				b.apply("epilog-finish", `{"description":"dws","status":0}`)
			}, nil,
		},
		"epilogs are added after a part was released": {
			perilog.Config{}, perilog.Config{Epilogs: epi},
			func(b *bench) {
				started(b)
				b.apply("exception", cancel)
				b.apply("release", `{"ranks":"0","final":false}`)
				b.take()
			},
			func(b *bench) { b.apply("release", `{"ranks":"all","final":true}`) }, nil,
		},
		"housekeeping is added after alloc": {
			perilog.Config{}, all, func(b *bench) { b.take(); b.apply("memo", `{"a":1}`); b.take() },
			func(b *bench) { b.run() }, []jobstate.ActionKey{epilogA},
		},
		"housekeeping is added after a named resource went back": {
			perilog.Config{}, all, func(b *bench) {
				b.apply("epilog-start", `{"description":"dws","ranks":"","resources":["rabbit"]}`)
				b.apply("epilog-start", `{"description":"site"}`)
				b.run()
				b.take()
				b.apply("epilog-finish", `{"description":"dws","status":0}`)
				require.Equal(b, []string{"rabbit"}, b.take().Free.Named)
			},
			func(b *bench) { b.apply("epilog-finish", `{"description":"site","status":0}`) }, nil,
		},
		"housekeeping is removed": {
			all, perilog.Config{}, func(b *bench) { b.apply("exception", cancel); b.take() }, nil,
			[]jobstate.ActionKey{prologA, epilogA, perilog.Housekeeping()},
		},
	} {
		for _, live := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/live %t", name, live), func(t *testing.T) {
				b := newBench(t, 2, c.before, "rabbit")
				c.until(b)
				b.cfg = &c.after
				if live {
					require.NoError(t, b.job.SetConfig(b.cfg))
				}
				told := b.job.Told()
				again, err := perilog.RecoverJob(b.now, b.cfg, b.spec, b.log, b.hk)
				require.NoError(t, err)
				if live {
					require.Equal(t, again.Told(), told, "I5")
				} else {
					b.job = again
				}
				if c.rest != nil {
					c.rest(b)
				}
				ran := b.toEnd(t)
				require.Len(t, ran, len(c.runs), "%v", ran)
				for _, key := range c.runs {
					require.True(t, ran[key], "%v runs: %v", key, ran)
				}
				for _, f := range jobstate.Validate(b.log) {
					require.NotEqual(t, jobstate.LevelError, f.Level, f)
				}
				require.Equal(t, 1, b.finals)
			})
		}
	}
}

// toEnd lets all actions end well, and returns which ran in the job's life.
func (b *bench) toEnd(t *testing.T) map[jobstate.ActionKey]bool {
	t.Helper()
	for range 20 {
		b.drained()
		for _, u := range b.job.Unresolved() {
			if u.Reason == perilog.ReasonStart {
				b.job.NotStarted(b.now)
			} else {
				require.NoError(t, b.job.ForceFinish(b.now, u.Action, u.Ranks, 1, "root"))
			}
		}
		for rank := range uint32(2) {
			for _, key := range b.job.Active() {
				b.report(perilog.Report{Action: key, Attempt: 1, Kind: perilog.ReportExited, Rank: rank})
			}
		}
	}
	require.True(t, b.job.Done(), "%v", b.job)
	return b.job.Ran()
}

// Another writer started an action before the configuration had it, and ends it. So it is in a
// live job and in one that was recovered with that configuration, until the Job launches it.
func TestWhatAnotherWriterStartedThatWriterEnds(t *testing.T) {
	const finish = `{"description":"job-manager.epilog","status":0}`
	for _, c := range []struct{ live, rerun bool }{{true, false}, {false, false}, {false, true}} {
		b := newBench(t, 2, perilog.Config{})
		b.take()
		b.apply("start", "")
		b.apply("epilog-start", `{"description":"job-manager.epilog"}`)
		b.take()
		b.cfg = &perilog.Config{Epilogs: []perilog.ActionConfig{perRank()}}
		if c.live {
			require.NoError(t, b.job.SetConfig(b.cfg))
		} else {
			b.crash()
		}
		b.apply("finish", `{"status":0}`)
		b.apply("release", `{"ranks":"all","final":true}`)
		require.Empty(t, b.take().Launch)
		require.True(t, b.job.Freed().IsEmpty(), "I3")
		b.refuse("epilog-start", `{"description":"job-manager.epilog","per-rank":true}`, perilog.ErrPosted)
		if c.rerun {
			require.NoError(t, b.job.Rerun(b.now, epilog, nil))
			require.Len(t, b.take().Launch, 1)
			b.refuse("epilog-finish", finish, perilog.ErrPosted)
			b.crash()
			b.refuse("epilog-finish", finish, perilog.ErrPosted)
			continue
		}
		b.apply("epilog-finish", finish)
		b.take()
		require.True(t, b.job.Done(), "live %v: %v", c.live, b.job)
		b.crash()
		require.True(t, b.job.Done())
	}
}

// startedOnNoRank is a job whose epilog another writer has started on no rank, and that then crashed
// and has an action of that name in its configuration.
func startedOnNoRank(t *testing.T, epilog perilog.ActionConfig) *bench {
	b := newBench(t, 2, perilog.Config{})
	b.take()
	b.apply("epilog-start", `{"description":"job-manager.epilog","ranks":""}`)
	b.run()
	b.take()
	b.cfg = &perilog.Config{Epilogs: []perilog.ActionConfig{epilog}}
	b.crash()
	b.take()
	return b
}

// An action of another writer can hold nothing. A configuration that has its name for an action on
// each rank does not end it: there is no rank on which it could end.
func TestWhatAnotherWriterStartedOnNoRankThatWriterEnds(t *testing.T) {
	b := startedOnNoRank(t, perRank())
	require.Zero(t, b.logged("epilog-finish"))
	require.Equal(t, jobstate.StateCleanup, b.state(), "I3")
	u := b.job.Unresolved()
	require.Len(t, u, 1)
	require.Equal(t, perilog.ReasonForeign, u[0].Reason)
	require.NoError(t, b.job.SetConfig(b.cfg))
	b.take()
	b.apply("epilog-finish", `{"description":"job-manager.epilog","status":0}`)
	b.take()
	require.Equal(t, 1, b.logged("epilog-start"))
	require.Equal(t, jobstate.StateInactive, b.state())
}

// A single command runs on its leader, whatever the action holds, so that it may check in there.
func TestASingleCommandOnNoRankMayCheckIn(t *testing.T) {
	b := startedOnNoRank(t, perilog.ActionConfig{Timeout: seconds(100)})
	u := b.job.Unresolved()
	require.Len(t, u, 1)
	require.Equal(t, perilog.ReasonLost, u[0].Reason)
	require.Equal(t, "0", u[0].Ranks.String())
}

// An action of that name that the Job then starts itself is its own, also after a crash.
func TestAnActionThatAnotherWriterHadOnNoRankIsRunAgain(t *testing.T) {
	b := newBench(t, 2, perilog.Config{})
	b.take()
	b.apply("epilog-start", `{"description":"job-manager.epilog","ranks":""}`)
	b.apply("epilog-finish", `{"description":"job-manager.epilog","status":0}`)
	b.cfg = &perilog.Config{Epilogs: []perilog.ActionConfig{perRank()}}
	require.NoError(t, b.job.SetConfig(b.cfg))
	b.run()
	b.take()
	require.Equal(t, 2, b.logged("epilog-start"))
	b.crash()
	require.NoError(t, b.job.Rerun(b.now, epilog, nil))
	require.Equal(t, "0-1", b.take().Launch[0].Ranks.String())
}

func TestNothingIsAskedForAgainAsAPrologIsAddedWhileTheJobStarts(t *testing.T) {
	b := newBench(t, 1, perilog.Config{})
	require.True(t, b.take().Start)
	b.cfg = &perilog.Config{Prologs: []perilog.ActionConfig{perRank()}}
	require.NoError(t, b.job.SetConfig(b.cfg))
	require.Empty(t, b.take().Post, "the executor was asked: the phase of the prologs is over")
	b.crash()
	require.Empty(t, b.take().Post, "I5")
	b.apply("start", "")

	b = newBench(t, 1, perilog.Config{})
	b.take()
	require.NoError(t, b.job.SetConfig(&perilog.Config{Prologs: []perilog.ActionConfig{perRank()}}))
	b.job.NotStarted(b.now)
	require.Len(t, b.take().Launch, 1, "nothing has come after alloc")
	require.False(t, b.last.Start)
}

// An epilog that has begun does not run again, so it begins with nodes alone.
func TestAForeignPrologThatIsForcedBeforeAllocBeginsNoEpilog(t *testing.T) {
	l := early(t, &perilog.Config{Epilogs: []perilog.ActionConfig{perRank()}})
	l.apply("prolog-start", `{"description":"dws"}`)
	require.NoError(t, l.job.ForceFinish(l.now, jobstate.ActionKey{Kind: jobstate.ActionProlog, Description: "dws"}, nil, 1, "root"))
	for _, r := range l.job.Take(l.now).Post {
		require.NotEqual(t, "epilog-start", r.Entry.Name)
	}
}

// A restart that does not know whether the executor was asked does not forget prologs.
func TestWhatServicesSayKeepsNoPrologFromItsBegin(t *testing.T) {
	b := newBench(t, 1, perilog.Config{Prologs: []perilog.ActionConfig{perRank()}})
	b.store(t, b.job.Take(b.now).Post[:5]) // up to alloc
	b.crash()
	b.apply("epilog-start", `{"description":"dws"}`)
	require.Empty(t, b.take().Launch, "the executor may have been asked")
	b.crash()
	b.job.NotStarted(b.now)
	require.False(t, b.take().Start, "I11")
	require.Len(t, b.last.Launch, 1)
}

// A crash can come between any two records: the phase goes on to begin.
func TestAPhaseThatWasCutShortBeginsAfterACrash(t *testing.T) {
	c := perilog.Config{
		Prologs: []perilog.ActionConfig{named("a"), named("b")}, Epilogs: []perilog.ActionConfig{named("a"), named("b")},
		Housekeeping: &perilog.HousekeepingConfig{},
	}
	for name, live := range map[string]func(*bench){
		"a prolog fails":      func(b *bench) { b.exited(jobstate.ActionKey{Kind: jobstate.ActionProlog, Description: "b"}, 0, 256) },
		"it is canceled":      func(b *bench) { b.apply("exception", cancel) },
		"canceled in a hurry": func(b *bench) {},
		"it runs":             func(b *bench) { b.toStart(); b.run() },
		"it runs, and the release comes before the finish": func(b *bench) {
			b.toStart()
			b.apply("start", "")
			b.apply("exception", cancel)
			b.apply("release", `{"ranks":"0","final":false}`)
			b.apply("finish", `{"status":0}`)
			b.apply("release", `{"ranks":"all","final":true}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 2, c)
			if name == "canceled in a hurry" {
				b.apply("exception", cancel)
			}
			b.take()
			live(b)
			b.toEnd(t)
			cuts := 0
			for n, r := range b.all {
				if cut := (&bench{TB: t, cfg: b.cfg, spec: b.spec, now: b.now, freed: ranks(""), drains: ranks("")}); r.Entry.Name != "clean" {
					cut.store(t, b.all[:n+1])
					cut.crash()
					if !cut.job.State().WasAllocated() {
						continue
					}
					cuts++
					cut.end(t)
					require.Equal(t, 2, cut.logged("prolog-start"), "after %s", r.Entry.Name)
					require.Equal(t, 2, cut.logged("epilog-start"), "after %s", r.Entry.Name)
					require.Contains(t, string(cut.hk), "housekeeping-start", "after %s", r.Entry.Name)
				}
			}
			require.Greater(t, cuts, 10)
		})
	}
}

// toStart lets both prologs end well.
func (b *bench) toStart() {
	for _, name := range []string{"a", "b"} {
		for rank := range uint32(2) {
			b.exited(jobstate.ActionKey{Kind: jobstate.ActionProlog, Description: name}, rank, 0)
		}
	}
	require.True(b, b.last.Start)
}

// end brings a job that was recovered to its end.
func (b *bench) end(t *testing.T) {
	b.job.NotStarted(b.now)
	b.take()
	if s := b.job.State(); s.State() == jobstate.StateRun {
		b.apply("exception", cancel)
		b.job.NotStarted(b.now)
	} else if s.Started() && !s.Finished() {
		b.apply("finish", `{"status":0}`)
	}
	if s := b.job.State(); s.Started() && !s.Released() {
		b.apply("release", `{"ranks":"all","final":true}`)
	}
	b.toEnd(t)
}
