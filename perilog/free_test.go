package perilog_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/perilog"
)

func TestAPrologForcedOnACanceledJobFreesNoRankBeforeItsEpilog(t *testing.T) {
	b := newBench(t, 2, both)
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
		"a foreign epilog": func(b *bench) { b.apply("epilog-finish", `{"description":"dws","status":0}`) },
		"a part of it": func(b *bench) {
			b.apply("perilog-release", `{"description":"dws","kind":"epilog","ranks":"0","status":0}`)
		},
		"its force": func(b *bench) { require.NoError(b, b.job.ForceFinish(b.now, dws, nil, 0, "root")) },
		"a drain":   func(b *bench) { b.drained() },
	} {
		for _, starts := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/starts=%t", name, starts), func(t *testing.T) {
				config := both
				config.Tolerate = perilog.Tolerate{Count: 1}
				b := newBench(t, 2, config)
				b.take()
				b.says(prolog, 0, `{"version":1,"failed":true}`)
				b.exited(prolog, 0, 0)
				require.True(t, b.exited(prolog, 1, 0).Start)
				if name != "a drain" {
					b.drained()
					b.apply("epilog-start", `{"description":"dws"}`)
				}
				if starts {
					b.apply("start", "")
					b.apply("release", `{"ranks":"0","final":false}`)
				}
				b.apply("exception", cancel)
				b.take()
				if name == "a drain" {
					end(b) // while the job may be starting, or runs
				}
				if !starts {
					b.job.NotStarted(b.now)
				}
				if name != "a drain" {
					end(b) // no Take between
				}
				require.Equal(t, !starts, b.launched() == "0-1")
				require.True(t, b.freed.IsEmpty(), "I3")
				require.Contains(t, b.job.Holds().String(), `epilog "job-manager.epilog" 0-1`)
			})
		}
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
		dws := jobstate.ActionKey{Kind: jobstate.ActionEpilog, Description: "dws"}
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
	b := newBench(t, 2, both)
	b.refuse("start", "", perilog.ErrOrder)
	b.take()
	b.refuse("start", "", perilog.ErrOrder)
	b.refuse("clean", "", jobstate.ErrTransition)
	b.refuse("free", "", perilog.ErrOrder)
	b.refuse("prolog-finish", `{"description":"job-manager.prolog","status":0}`, perilog.ErrPosted)
	b.refuse("epilog-start", `{"description":"job-manager.epilog"}`, perilog.ErrPosted)
	b.exitedAll(prolog)
	b.run()
	b.take()
	b.refuse("free", "", perilog.ErrOrder)
	b.refuse("clean", "", perilog.ErrOrder)
	b.refuse("epilog-finish", `{"description":"job-manager.epilog","status":0}`, perilog.ErrPosted)
	b.refuse("perilog-release", `{"description":"job-manager.epilog","kind":"epilog","ranks":"0","status":0}`, perilog.ErrPosted)
	b.refuse("drained", `{"ranks":"0"}`, perilog.ErrPosted)
	b.exitedAll(epilog)
	require.Equal(t, jobstate.StateInactive, b.state())
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

func TestAnEmptyRIsRefused(t *testing.T) {
	b := scheduled(t, perilog.Config{}, perilog.JobConfig{ID: 1})
	b.refuse("alloc", "", perilog.ErrR)
	require.ErrorIs(t, b.job.SetR(nil), perilog.ErrR)
	require.NoError(t, b.job.SetR(allocation(t, 2)))
	require.ErrorIs(t, b.job.SetR(allocation(t, 2)), perilog.ErrR)
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

const cancel = `{"type":"cancel","severity":0,"note":"","userid":1}`

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

// What a scheduler took back, housekeeping does not hold, before a restart and after it.
func TestHousekeepingHoldsNothingThatASchedulerRevoked(t *testing.T) {
	b := newBench(t, 2, perilog.Config{Epilogs: []perilog.ActionConfig{perRank()}, Housekeeping: &perilog.HousekeepingConfig{}})
	b.take()
	b.apply("start", "")
	b.apply("exception", `{"type":"scheduler-restart","severity":0,"note":""}`)
	b.apply("finish", `{"status":0}`)
	b.apply("release", `{"ranks":"all","final":true}`)
	b.take()
	b.exited(epilog, 0, 0)
	for range 2 {
		var list []string
		for h := range b.job.Holders() {
			list = append(list, fmt.Sprint(h.Kind, " ", h.Ranks))
		}
		require.Equal(t, []string{"epilog 1"}, list)
		b.crash()
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

	b = submitted(t, *b.cfg, b.spec)
	b.apply("set-flags", `{"flags":["alloc-bypass"]}`)
	b.schedule()
	b.apply("alloc", "")
	b.run()
	b.take()
	require.Equal(t, jobstate.StateInactive, b.state())
	require.True(t, b.freed.IsEmpty(), "HK-6")
	require.Empty(t, b.hk, "HK-6")
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
