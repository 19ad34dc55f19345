package perilog_test

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/joblife/joblife/perilog"
)

// These tests are named after the requirements that they prove: see REQUIREMENTS.md.

var (
	hk   = perilog.Housekeeping()
	both = perilog.Config{Prologs: []perilog.ActionConfig{perRank()}, Epilogs: []perilog.ActionConfig{perRank()}}
)

// expire passes the time until nothing is due, at most n times.
func (b *bench) expire(n int) {
	b.Helper()
	for range n {
		at, ok := b.job.Deadline()
		if !ok {
			return
		}
		b.now = max(b.now, at)
		b.job.Tick(b.now)
		b.take()
	}
}

func TestPL1ActionsAreKnownByKindAndDescription(t *testing.T) {
	b := newBench(t, 1, perilog.Config{})
	for range 2 {
		b.apply("epilog-start", `{"description":"dws"}`)
	}
	b.apply("exception", cancel)
	b.job.NotStarted(b.now)
	for _, finish := range []string{"prolog-finish", "epilog-finish"} {
		b.apply(finish, `{"description":"unknown","status":0}`)
	}
	b.apply("prolog-finish", `{"description":"dws","status":0}`)
	b.apply("epilog-finish", `{"description":"dws","status":0}`)
	b.take()
	require.Zero(t, b.finals, "one of two is active")
	b.apply("epilog-finish", `{"description":"dws","status":0}`)
	b.take()
	require.Equal(t, 1, b.finals)
}

func TestPL2NoStartBesideAPrologAndNoFreeOrCleanBesideAnEpilog(t *testing.T) {
	b := newBench(t, 1, both)
	require.False(t, b.take().Start)
	b.refuse("start", "", perilog.ErrOrder)
	require.True(t, b.exited(prolog, 0, 0).Start)
	b.apply("memo", `{"a":1}`)
	require.False(t, b.take().Start, "the executor is asked once")
	b.run()
	b.take()
	require.Zero(t, b.logged("free")+b.logged("clean"))
	b.refuse("free", "", perilog.ErrOrder)
	b.refuse("clean", "", perilog.ErrOrder)
	b.exited(epilog, 0, 0)
	require.Equal(t, 2, b.logged("free")+b.logged("clean"))

	b = submitted(t, perilog.Config{}, perilog.JobConfig{ID: 1})
	b.apply("validate", "")
	b.apply("epilog-start", `{"description":"dws"}`)
	b.apply("exception", cancel)
	b.take()
	b.refuse("clean", "", perilog.ErrOrder)
	b.apply("epilog-finish", `{"description":"dws","status":0}`)
	b.take()
	require.Equal(t, jobstate.StateInactive, b.state(), "a job without an allocation")
}

func TestPL3AJobWhosePrologDidNotSucceedNeverStarts(t *testing.T) {
	tell := func(kind perilog.ReportKind, status int32) func(*bench) {
		return func(b *bench) {
			b.report(perilog.Report{Action: prolog, Attempt: 1, Kind: kind, Rank: 0, Status: status})
		}
	}
	for name, end := range map[string]func(*bench){
		"it exits with 1":          tell(perilog.ReportExited, 1<<8),
		"a signal ends it":         tell(perilog.ReportExited, 9),
		"it cannot be launched":    tell(perilog.ReportLaunchFailed, 0),
		"contact is lost":          tell(perilog.ReportUnreachable, 0),
		"it times out":             func(b *bench) { b.expire(2) },
		"it is canceled":           func(b *bench) { b.apply("exception", cancel); tell(perilog.ReportExited, 0)(b) },
		"its cancel times out":     func(b *bench) { b.apply("exception", cancel); b.expire(2) },
		"it is lost at a restart":  func(b *bench) { b.crash() },
		"an operator has ended it": func(b *bench) { require.NoError(b, b.job.ForceFinish(b.now, prolog, nil, 1, "root")) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 1, both)
			b.take()
			end(b)
			require.False(t, b.take().Start)
			b.refuse("start", "", perilog.ErrOrder)
		})
	}
}

func TestPL4AnEpilogFollowsEveryPrologOnce(t *testing.T) {
	for name, end := range map[string]func(*bench){
		"a failure": func(b *bench) { b.exited(prolog, 0, 1<<8) },
		"a cancel":  func(b *bench) { b.apply("exception", cancel); b.exited(prolog, 0, 15) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 2, both)
			b.take()
			end(b)
			require.Zero(t, b.logged("prolog-finish"))
			launches := b.exited(prolog, 1, 15).Launch
			require.Len(t, launches, 1)
			require.Equal(t, "0-1", launches[0].Ranks.String())
			require.Equal(t, 1, b.logged("epilog-start"))
			require.Equal(t, 1, b.logged("prolog-finish"))
			require.Less(t, bytes.Index(b.log, []byte("epilog-start")), bytes.Index(b.log, []byte("prolog-finish")))
		})
	}
}

func TestPL5AFatalExceptionCancelsPrologsAndNothingElse(t *testing.T) {
	b := newBench(t, 2, both)
	b.take()
	b.apply("exception", `{"type":"x","severity":1,"note":""}`)
	require.Empty(t, b.take().Signal, "not fatal")
	b.apply("exception", cancel)
	require.Equal(t, 15, b.take().Signal[0].Signal)
	b.exited(prolog, 0, 15)
	require.True(t, b.drains.IsEmpty(), "a cancel drains nothing")
	b.expire(1)
	require.Equal(t, "1", b.drains.String(), "rank 1 ignored it")
	require.Contains(t, b.last.Drain[0].Reason, "canceled then timed out")
	require.Empty(t, b.last.Signal, "nothing is killed")
	require.Equal(t, 2, b.logged("exception"), "a cancel raises none of its own")

	b = newBench(t, 1, both)
	b.take()
	b.exited(prolog, 0, 0)
	b.run()
	b.take()
	b.apply("exception", cancel)
	require.Empty(t, b.take().Signal, "an epilog goes on")
}

func TestPL6AnActionThatNeverReportsEndsAtItsTimeouts(t *testing.T) {
	b := newBench(t, 1, both)
	launched := b.now
	b.take()
	at, ok := b.job.Deadline()
	require.True(t, ok)
	require.InDelta(t, float64(launched)+100, float64(at), 2, "it counts from the launch")
	b.expire(2)
	require.Equal(t, jobstate.StateCleanup, b.state())
	require.InDelta(t, float64(launched)+110, float64(b.now), 2)

	never := perRank()
	never.Timeout = fsd.Forever
	b = newBench(t, 1, perilog.Config{Prologs: []perilog.ActionConfig{never}})
	b.take()
	_, ok = b.job.Deadline()
	require.False(t, ok)
}

func TestPL7ARunKeepsItsConfiguration(t *testing.T) {
	b := newBench(t, 1, both)
	b.take()
	at, _ := b.job.Deadline()
	short := perRank()
	short.Timeout = seconds(1)
	b.cfg = &perilog.Config{Prologs: []perilog.ActionConfig{short}}
	b.crash()
	require.NoError(t, b.job.Reattach(b.now, prolog, nil))
	again, ok := b.job.Deadline()
	require.True(t, ok)
	require.Equal(t, at, again)
}

func TestPL8ARestartListsWhatWasActiveAndEachCanBeResolved(t *testing.T) {
	for name, resolve := range map[string]func(*bench) error{
		"reattach": func(b *bench) error { return b.job.Reattach(b.now, prolog, nil) },
		"rerun":    func(b *bench) error { return b.job.Rerun(b.now, prolog, nil) },
		"finish":   func(b *bench) error { return b.job.ForceFinish(b.now, prolog, nil, 1, "root") },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 2, both)
			b.take()
			since := b.last.Post[len(b.last.Post)-1].Entry.Timestamp
			b.exited(prolog, 0, 0)
			b.crash()
			list := b.job.Unresolved()
			require.Len(t, list, 1)
			require.Equal(t, prolog, list[0].Action)
			require.Equal(t, perilog.ReasonLost, list[0].Reason)
			require.Equal(t, since, list[0].Since)
			require.True(t, list[0].Ranks.Contains(1))
			require.NoError(t, resolve(b))
			require.Empty(t, b.job.Unresolved())
		})
	}
}

func TestPL9AFinishMayComeTwice(t *testing.T) {
	b := newBench(t, 1, perilog.Config{})
	b.apply("prolog-start", `{"description":"dws"}`)
	for range 2 {
		b.apply("prolog-finish", `{"description":"dws","status":0}`)
		b.take()
	}
	require.True(t, b.job.State().State() == jobstate.StateRun && b.finals == 0)
}

func TestPL10OfflineRanksAreNotLaunchedOnAndNamed(t *testing.T) {
	b := offlineBench(t, 2, perilog.Config{Prologs: both.Prologs}, ranks("1"))
	require.Equal(t, "0", b.take().Launch[0].Ranks.String())
	b.exited(prolog, 0, 0)
	x, _ := b.job.State().Exception()
	require.Equal(t, "prolog not run (offline) on fluke1 (rank 1)", x.Note)
	require.True(t, b.drains.IsEmpty())

	config := both
	config.Tolerate = perilog.Tolerate{Count: 1, Drop: true}
	b = offlineBench(t, 2, config, ranks("1"))
	b.take()
	require.True(t, b.exited(prolog, 0, 0).Start)
	require.Equal(t, "1", b.drains.String(), "the job dropped it")
	b.drained()
	b.run()
	require.Equal(t, "0", b.take().Launch[0].Ranks.String())
	require.Empty(t, b.exited(epilog, 0, 0).Drain, "the epilog does not drain it again")
	require.Equal(t, "0-1", b.freed.String())
}

func TestPL11AJobGoesOnWithoutTheNodesThatItTolerates(t *testing.T) {
	config := both
	config.Tolerate = perilog.Tolerate{Count: 1, Drop: true}
	b := newBench(t, 3, config)
	b.take()
	b.says(prolog, 2, `{"version":1,"failed":true,"note":"no gpu"}`)
	require.Equal(t, "2", b.take().Drain[0].Ranks.String(), "at once")
	b.exitedAll(prolog)
	require.True(t, b.last.Start)
	require.Contains(t, string(b.log), `"ranks":"2","nodelist":"fluke2","action":"drop"`, "SM-19")
	require.Equal(t, "0-1", b.job.R().Ranks().String())
	require.True(t, b.last.Results[0].Tolerated)
	require.Equal(t, "2", b.last.Results[0].Failed.String())
	require.Equal(t, "2", b.drained().Free.R.Ranks().String())
}

func TestPL12AnActionEndsInOneOutcome(t *testing.T) {
	b := newBench(t, 4, both)
	b.take()
	for rank, status := range map[uint32]int32{0: 0, 1: 1 << 8, 2: 1 << 8} {
		a := b.report(perilog.Report{Action: prolog, Attempt: 1, Kind: perilog.ReportExited, Rank: rank, Status: status, Detail: "secret"})
		require.Equal(t, perilog.AckApplied, a)
	}
	b.report(perilog.Report{Action: prolog, Attempt: 1, Kind: perilog.ReportUnreachable, Rank: 3})
	b.take()
	require.Len(t, b.last.Results, 1)
	o := b.last.Results[0]
	require.Equal(t, "1-3", o.Failed.String())
	groups := map[string]string{}
	for _, g := range o.Groups {
		groups[g.Cause] = g.Ranks.String()
	}
	require.Equal(t, map[string]string{"ok": "0", "failed": "1-2", "unreachable": "3"}, groups)
	require.Equal(t, 1, b.logged("exception"))
	x, _ := b.job.State().Exception()
	require.Equal(t, o.Note, x.Note)
	require.NotContains(t, o.Note, "secret")
	require.Contains(t, o.Detail, "secret")
}

func TestPL13ADrainHasRanksAndAReason(t *testing.T) {
	b := newBench(t, 3, both)
	b.take()
	b.exited(prolog, 0, 0)
	require.Empty(t, b.last.Drain)
	b.exited(prolog, 1, 1<<8)
	require.Len(t, b.last.Drain, 1)
	require.Equal(t, "1", b.last.Drain[0].Ranks.String())
	require.Equal(t, "prolog failed for job "+b.spec.ID.String(), b.last.Drain[0].Reason)
}

func TestPL14AFailedEpilogChangesNoResult(t *testing.T) {
	b := newBench(t, 1, perilog.Config{Epilogs: []perilog.ActionConfig{perRank()}})
	b.run()
	b.take()
	b.exited(epilog, 0, 0)
	require.Equal(t, jobstate.StateInactive, b.state())
	require.Zero(t, b.logged("exception"))
	require.Contains(t, string(b.log), `"epilog-finish","context":{"description":"job-manager.epilog","status":0`)

	b = newBench(t, 1, perilog.Config{Epilogs: []perilog.ActionConfig{perRank()}})
	b.run()
	b.take()
	b.exited(epilog, 0, 1<<8)
	b.drained()
	require.Equal(t, jobstate.StateInactive, b.state())
	require.Equal(t, 1, b.logged("exception"))
	require.Contains(t, string(b.log), `"type":"epilog","severity":2`)
	require.NotContains(t, string(b.log), `"epilog-finish","context":{"description":"job-manager.epilog","status":0`)
	require.Equal(t, 1, b.logged("epilog-finish"))
	result, _ := b.job.State().Result()
	require.Equal(t, jobstate.ResultCompleted, result)
}

func TestPL17TheTimeOfPrologsIsKnown(t *testing.T) {
	b := newBench(t, 1, both)
	b.take()
	require.Zero(t, b.job.PrologTime())
	b.now += 50
	b.exited(prolog, 0, 0)
	require.InDelta(t, float64(50*time.Second), float64(b.job.PrologTime()), float64(2*time.Second))
	b.crash()
	require.InDelta(t, float64(50*time.Second), float64(b.job.PrologTime()), float64(2*time.Second))
	b.run()
	b.now += 1000
	b.exited(epilog, 0, 0)
	require.InDelta(t, float64(50*time.Second), float64(b.job.PrologTime()), float64(2*time.Second), "no prolog")

	b = newBench(t, 1, both)
	b.take()
	b.now = 1e15
	b.exited(prolog, 0, 0)
	require.Equal(t, time.Duration(math.MaxInt64), b.job.PrologTime(), "a clock was wrong")
}

func TestHK1ARestartForgetsNoHousekeeping(t *testing.T) {
	b := newBench(t, 3, perilog.Config{Housekeeping: &perilog.HousekeepingConfig{ReleaseAfter: new(fsd.Duration)}})
	b.run()
	b.take()
	b.exited(hk, 0, 0)
	require.Equal(t, "0", b.freed.String())
	b.crash()
	require.Equal(t, "0", b.job.Freed().String())
	list := b.job.Unresolved()
	require.Len(t, list, 1)
	require.Equal(t, "1-2", list[0].Ranks.String(), "they are held, and offered again")
	require.NoError(t, b.job.Rerun(b.now, hk, nil))
	require.Equal(t, "1-2", b.take().Launch[0].Ranks.String())
}

func TestHK2ReleaseAfter(t *testing.T) {
	zero, ten := fsd.Duration(0), seconds(10)
	for name, c := range map[string]struct {
		after *fsd.Duration
		want  []string // what is free after each rank has ended, 4 s after the one before
	}{
		"unset: all at once":           {nil, []string{"", "", "", "", "0-4"}},
		"0: each by itself":            {&zero, []string{"0", "0-1", "0-2", "0-3", "0-4"}},
		"10 s: one timer, then by one": {&ten, []string{"", "", "", "0-3", "0-4"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 5, perilog.Config{Housekeeping: &perilog.HousekeepingConfig{ReleaseAfter: c.after}})
			b.run()
			b.take()
			for rank, want := range c.want {
				b.exited(hk, uint32(rank), 0)
				require.Equal(t, want, b.freed.String())
				require.Equal(t, rank < 4, b.job.Running())
				if at, ok := b.job.Deadline(); rank == 0 {
					require.Equal(t, c.after == &ten, ok)
					require.True(t, !ok || at == 20, "%v: 10 s after the first end in the log", at)
				}
				b.cfg = &perilog.Config{Housekeeping: &perilog.HousekeepingConfig{}} // for later jobs
				if b.now += 4; rank == 2 {
					b.crash() // the value is that of the start
					require.NoError(t, b.job.Reattach(b.now, hk, nil))
				}
			}
			require.True(t, b.job.Done())
			_, ok := b.job.Deadline()
			require.False(t, ok, "the timer is over")
		})
	}
}

func TestHK3WhatFailedIsNotReleasedInSilence(t *testing.T) {
	for policy, want := range map[jobstate.OnFailure]string{"": "", jobstate.OnFailureDrain: "", jobstate.OnFailureHold: "", jobstate.OnFailureRelease: "0"} {
		b := newBench(t, 1, perilog.Config{Housekeeping: &perilog.HousekeepingConfig{OnFailure: policy}})
		b.run()
		b.take()
		b.exited(hk, 0, 1<<8)
		require.Equal(t, want, b.freed.String(), "%q", policy)
		drain := policy == "" || policy == jobstate.OnFailureDrain
		require.Equal(t, drain, len(b.last.Drain) == 1 && b.last.Drain[0].Reason == "housekeeping failed for job ƒ2", "%q", policy)
		b.drained()
		require.Equal(t, policy != jobstate.OnFailureHold, b.job.Done(), "%q", policy)
		if policy == jobstate.OnFailureHold {
			require.Equal(t, perilog.ReasonHeld, b.job.Unresolved()[0].Reason)
			require.NoError(t, b.job.ForceFinish(b.now, hk, nil, 0, "root"))
			b.take()
			require.True(t, b.job.Done())
		}
	}
}

func TestHK4EveryRankOfHousekeepingEnds(t *testing.T) {
	b := newBench(t, 3, perilog.Config{Housekeeping: &perilog.HousekeepingConfig{Timeout: seconds(100), KillTimeout: seconds(10)}})
	b.run()
	b.take()
	b.exited(hk, 0, 0)
	b.report(perilog.Report{Action: hk, Attempt: 1, Kind: perilog.ReportUnreachable, Rank: 1})
	b.expire(2) // rank 2 never reports
	require.Equal(t, "1-2", b.drains.String())
	require.False(t, b.job.Done())
	b.drained()
	require.Equal(t, "0-2", b.freed.String())
	require.True(t, b.job.Done())
}

func TestHK5AndHK7HousekeepingIsSeenUntilItEnds(t *testing.T) {
	b := newBench(t, 2, perilog.Config{Housekeeping: &perilog.HousekeepingConfig{}})
	b.now += 60
	b.run()
	for h := range b.job.Holders() {
		require.Equal(t, "housekeeping 0-1", fmt.Sprint(h.Kind, " ", h.Ranks), "at once, though no work has begun")
	}
	b.take()
	require.Equal(t, jobstate.StateInactive, b.state())
	require.False(t, b.job.Done(), "HK-5: it is not to be purged")
	holders := slices.Collect(b.job.Holders())
	require.Len(t, holders, 1, "HK-7")
	require.Equal(t, "0-1", holders[0].Ranks.String())
	require.Equal(t, b.now+1, holders[0].Since, "since it was launched, not since alloc")
	require.NoError(t, b.job.ForceFinish(b.now, hk, ranks("1"), 0, "root"), "HK-7")
	b.take()
	b.exited(hk, 0, 0)
	require.Equal(t, "0-1", b.freed.String())
	require.True(t, b.job.Done(), "HK-5")
}
