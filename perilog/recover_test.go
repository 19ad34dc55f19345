package perilog_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/refdata"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/perilog"
)

func TestADrainThatIsNotConfirmedIsAskedForAgainAfterACrash(t *testing.T) {
	b := newBench(t, 3, perilog.Config{Prologs: []perilog.ActionConfig{perRank()}})
	b.take()
	todo := b.exited(prolog, 1, 1<<8)
	require.Equal(t, "1", todo.Drain[0].Ranks.String())
	require.Equal(t, "prolog failed for job ƒ2", todo.Drain[0].Reason)

	b.crash()
	b.drains = new(idset.Set)
	a := b.report(perilog.Report{Action: prolog, Attempt: 1, Kind: perilog.ReportExited, Rank: 1, Status: 1 << 8})
	require.Equal(t, perilog.AckRepeated, a, "the log has that it failed, not yet that it ended")
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
	b.log = []byte(prelude + `{"timestamp":5,"name":"alloc"}
{"timestamp":6,"name":"start"}
{"timestamp":7,"name":"finish","context":{"status":0}}
{"timestamp":8,"name":"epilog-start","context":{"description":"job-manager.epilog"}}
{"timestamp":9,"name":"perilog-fail","context":{"description":"job-manager.epilog","kind":"epilog","ranks":"0","cause":"failed","status":256,"drain":true}}
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
	require.Equal(t, perilog.AckApplied, b.says(prolog, 1, `{"version":1,"failed":true,"note":"gpu 2 is gone"}`))
	b.take()
	b.crash()
	require.False(t, b.exited(prolog, 0, 0).Start)
	require.False(t, b.exited(prolog, 1, 0).Start, "I11: the node was named as failed")
	require.Equal(t, jobstate.StateCleanup, b.state())
	x, _ := b.job.State().Exception()
	require.Equal(t, "prolog reported node failure on fluke1 (rank 1): gpu 2 is gone", x.Note)
	require.Equal(t, "1", b.drains.String())
}

// A crash can keep the failure of an epilog on a rank, and lose the release that follows.
func TestARankWhereAnEpilogEndedGoesBackBeforeTheOthersAfterACrash(t *testing.T) {
	single := perilog.ActionConfig{Leader: 1}
	for name, c := range map[string]struct {
		epilog  perilog.ActionConfig
		offline *idset.Set
		end     func(b *bench)
		back    string
	}{
		"failed":  {perRank(), nil, func(b *bench) { b.exited(epilog, 0, 1<<8) }, "0"},
		"offline": {perRank(), ranks("0"), nil, "0"},
		"forced": {perRank(), nil, func(b *bench) {
			require.NoError(b, b.job.ForceFinish(b.now, epilog, ranks("0"), 1, "root"))
		}, "0"},
		"forced, of a single command": {single, nil, func(b *bench) {
			require.NoError(b, b.job.ForceFinish(b.now, epilog, ranks("0"), 1, "root"))
		}, "0"},
		"the node of a single command that may still run there": {single, nil, func(b *bench) {
			require.NoError(b, b.job.ForceFinish(b.now, epilog, nil, 1, "root"))
			b.take()
			b.log = bytes.Replace(b.log, []byte(`"ranks":"0-2","cause":"forced"`), []byte(`"ranks":"1","cause":"timed-out"`), 1)
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := offlineBench(t, 3, perilog.Config{Epilogs: []perilog.ActionConfig{c.epilog}}, c.offline)
			b.run()
			b.take()
			if c.end != nil {
				c.end(b)
				b.take()
			}
			failed := bytes.Index(b.log, []byte(`"perilog-fail"`))
			b.log = b.log[:failed+bytes.IndexByte(b.log[failed:], '\n')+1]
			b.freed = new(idset.Set)
			b.crash()
			b.take()
			b.drained()
			require.Equal(t, c.back, b.freed.String(), string(b.log))
			require.Equal(t, len(c.back), b.logged("perilog-release"))
			b.crash()
			b.take()
			require.Equal(t, len(c.back), b.logged("perilog-release"), "once")
		})
	}
	t.Run("of another writer, which releases it", func(t *testing.T) {
		b := newBench(t, 2, perilog.Config{})
		b.take()
		b.apply("start", "")
		b.apply("finish", `{"status":0}`)
		b.apply("epilog-start", `{"description":"job-manager.epilog"}`)
		b.apply("perilog-fail", `{"description":"job-manager.epilog","kind":"epilog","ranks":"0","cause":"failed","status":256}`)
		b.take()
		b.cfg = &perilog.Config{Epilogs: []perilog.ActionConfig{perRank()}}
		b.crash()
		b.take()
		require.Zero(t, b.logged("perilog-release"))
	})
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
	require.Equal(t, perilog.AckApplied, b.report(perilog.Report{Action: epilog, Attempt: 1, Kind: perilog.ReportExited, Rank: 0}))
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
	require.Equal(t, perilog.AckApplied, a)
	b.take()
	require.Equal(t, "0", b.freed.String(), "each rank by itself")
}

func TestAnEndThatTheLogDoesNotHaveIsToBeRepeated(t *testing.T) {
	b := newBench(t, 2, perilog.Config{Prologs: []perilog.ActionConfig{perRank()}})
	b.take()
	b.exited(prolog, 0, 0)
	again := perilog.Report{Action: prolog, Attempt: 1, Kind: perilog.ReportExited, Rank: 0}
	require.Equal(t, perilog.AckRepeated, b.report(again))
	b.crash()
	require.Equal(t, perilog.AckApplied, b.report(again), "the helper says it again")
	b.exited(prolog, 1, 0)
	require.Equal(t, perilog.AckEnded, b.report(again))
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
	require.Equal(t, perilog.AckApplied,
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

// fuzzLogs returns logs to begin with: those of recorded jobs, and those that
// jobs of this package write with each configuration.
func fuzzLogs(f *testing.F) (logs [][2][]byte) {
	for _, r := range refdata.Lines[holdsRecording](f, "recorded/brokers.jsonl.gz", 33) {
		logs = append(logs, [2][]byte{[]byte(r.Eventlog), nil})
	}
	for choice := range byte(64) {
		l := &lifeLog{t: f, now: 10}
		job, err := perilog.NewJob(fuzzConfig(choice), fuzzSpec(f))
		require.NoError(f, err)
		l.job = job
		for e, err := range eventlog.Entries([]byte(prelude)) {
			require.NoError(f, err)
			_, err = job.Apply(l.now, e)
			require.NoError(f, err)
		}
		for range 12 {
			l.round(int32(choice%3) * 256)
		}
		logs = append(logs, [2][]byte{l.log, l.hk})
	}
	return logs
}

func fuzzSpec(t require.TestingT) perilog.JobConfig {
	return perilog.JobConfig{ID: 7, R: holdsR(t, 4), Named: []string{"fs"}, Owner: 1}
}

// fuzzConfig returns one of 64 configurations.
func fuzzConfig(choice byte) *perilog.Config {
	on := func(bit int) bool { return choice>>bit&1 != 0 }
	c := &perilog.Config{WholeJob: on(5) && on(0)}
	if on(0) {
		c.Prologs = []perilog.ActionConfig{{PerRank: on(1), Leader: 1}, {Description: "two", PerRank: true, Ranks: idset.Of(2)}}
	}
	if on(2) {
		c.Epilogs = []perilog.ActionConfig{{PerRank: !on(1), Timeout: seconds(30), Resources: []string{"fs"}}, {Description: "a", Ranks: idset.Of(0, 9)}}
	}
	if on(3) {
		c.Housekeeping = &perilog.HousekeepingConfig{OnFailure: []jobstate.OnFailure{"drain", "hold"}[choice>>5&1]}
	}
	if on(4) {
		c.Tolerate = perilog.Tolerate{Count: 2, AnyFailure: true, Drop: on(5)}
	}
	return c
}

// lifeLog is a job that lives on, and its logs.
type lifeLog struct {
	logs
	t   require.TestingT
	job *perilog.Job
	now eventlog.Timestamp
}

// round takes what follows, does it, and tells what became of it.
func (l *lifeLog) round(status int32) (did perilog.Effects) {
	l.now += 10
	todo := l.job.Take(l.now)
	l.store(l.t, todo.Post)
	for _, x := range todo.Launch {
		for rank := range x.Ranks.All() {
			l.job.Report(l.now, perilog.Report{Action: x.Action, Kind: perilog.ReportExited, Attempt: x.Attempt, Rank: rank, Status: status})
		}
	}
	for _, d := range todo.Drain {
		l.job.Drained(l.now, d.Ranks)
	}
	s := l.job.State()
	apply := func(name, context string) {
		e := eventlog.Entry{Timestamp: l.now, Name: name}
		if context != "" {
			e.Context = []byte(context)
		}
		_, _ = l.job.Apply(l.now, e) // the job may refuse it
	}
	switch {
	case s.State() == jobstate.StateSched:
		apply("alloc", "")
	case todo.Start:
		apply("start", "")
	case s.Started() && !s.Finished() && s.State() == jobstate.StateRun:
		apply("finish", `{"status":0}`)
	case s.Started() && !s.Released():
		apply("release", `{"ranks":"all","final":true}`)
	}
	return todo
}

// FuzzRecoverJob: any two logs and any configuration make a job or an error. The
// job is the same each time, keeps its invariants while it lives on, says what
// needs an owner, and what it logs can be read back at any time.
func FuzzRecoverJob(f *testing.F) {
	for i, logs := range fuzzLogs(f) {
		f.Add(logs[0], logs[1], byte(i))
		f.Add(logs[0][:len(logs[0])*2/3], logs[1], byte(i*7))
		if i%4 == 0 {
			cut := bytes.LastIndexByte(logs[0][:len(logs[0])/2], '\n') + 1
			f.Add(logs[0][:cut], logs[1], byte(i+1))
		}
	}
	f.Fuzz(func(t *testing.T, log, hk []byte, choice byte) {
		if len(log)+len(hk) > 1<<16 {
			return
		}
		recoverJob := func(log, hk []byte) (*perilog.Job, error) {
			return perilog.RecoverJob(1e9, fuzzConfig(choice), fuzzSpec(t), log, hk)
		}
		job, err := recoverJob(log, hk)
		if err != nil {
			return
		}
		require.NoError(t, job.Check())
		again, err := recoverJob(log, hk)
		require.NoError(t, err)
		require.Equal(t, job.String(), again.String())
		if len(hk) == 0 {
			judgeReplay(t, job, fuzzConfig(choice), log)
		}
		l := &lifeLog{t: t, job: job, logs: logs{bytes.Clone(log), bytes.Clone(hk)}, now: 1e9}
		for i := range 8 {
			waits, s := l.job.Unresolved(), l.job.State()
			pending := s.State() == jobstate.StateSched || s.Started() && !s.Released()
			todo := l.round(int32(choice) % 2 * 256)
			require.NoError(t, l.job.Check())
			if i == 0 && !pending { // what alloc or release starts is launched in the next round
				judgeUnresolved(t, l.job, &todo, len(waits))
			}
			for _, u := range l.job.Unresolved() {
				if u.Reason == perilog.ReasonStart {
					l.job.NotStarted(l.now)
				} else if !l.job.State().Closed() {
					_ = l.job.ForceFinish(l.now, u.Action, nil, 256, "alice")
				}
			}
			require.NoError(t, l.job.Check())
			next, err := recoverJob(l.log, l.hk)
			require.NoError(t, err, "%s\n%s", l.log, l.hk)
			require.NoError(t, next.Check())
		}
	})
}

// judgeReplay fails if a log that is read line by line, without a configuration, makes another
// job.
func judgeReplay(t *testing.T, want *perilog.Job, c *perilog.Config, log []byte) {
	spec := fuzzSpec(t)
	job, err := perilog.NewJob(&perilog.Config{}, spec)
	require.NoError(t, err)
	for line := range bytes.Lines(log) {
		if job.Replay(line) != nil {
			return // it has actions
		}
	}
	require.NoError(t, job.Resume(1e9, c, spec))
	require.NoError(t, job.Check())
	require.Equal(t, want.String(), job.String())
	require.Equal(t, want.Unresolved(), job.Unresolved())
}

// judgeUnresolved fails if a job is kept by actions of which none runs, none is
// launched, and none is listed.
func judgeUnresolved(t *testing.T, job *perilog.Job, todo *perilog.Effects, listed int) {
	s := job.State()
	over := s.State() == jobstate.StateCleanup && (!s.Started() || s.Released()) || s.State() == jobstate.StateRun && !s.Started()
	if !over || listed > 0 || len(todo.Launch) > 0 {
		return
	}
	for x := range job.Holds().Holders() {
		if x.Kind == perilog.HolderProlog || x.Kind == perilog.HolderEpilog {
			require.Fail(t, "an action has no owner", "%v: %v", x.Description, job)
		}
	}
}

// An operator may give any number for a wait status. A restart changes nothing of it (I5).
func TestAForcedStatusSurvivesARestart(t *testing.T) {
	for _, status := range []int32{1, 0x7f, 0x80, 256, 1 << 16} {
		var said [2][]string
		for i := range said {
			b := newBench(t, 2, perilog.Config{Epilogs: []perilog.ActionConfig{perRank()}})
			b.run()
			b.take()
			require.NoError(t, b.job.ForceFinish(b.now, epilog, ranks("0"), status, "root"))
			if b.take(); i > 0 {
				b.crash()
			}
			for _, r := range b.exited(epilog, 1, 0).Post {
				said[i] = append(said[i], r.Entry.Name+" "+string(r.Entry.Context))
			}
		}
		require.Equal(t, said[0], said[1], status)
	}
}

// An action that the log has begun and the configuration has no more is not launched without a
// command: a node could only fail to run that, and be drained.
func TestAnActionWithoutAConfigurationIsNotLaunched(t *testing.T) {
	for _, a := range []perilog.ActionConfig{perRank(), {Leader: 7}} {
		before := perilog.Config{Prologs: []perilog.ActionConfig{perRank()}, Epilogs: []perilog.ActionConfig{a}}
		b := newBench(t, 2, before)
		b.take()
		b.exited(prolog, 1, 1<<8)
		b.exited(prolog, 0, 0)
		at := bytes.Index(b.log, []byte(`"name":"perilog-launch"`))
		b.log = b.log[:bytes.LastIndexByte(b.log[:at], '\n')+1] // the crash comes before it
		b.cfg = &perilog.Config{}
		b.crash()
		require.Empty(t, b.take().Launch)
		list := b.job.Unresolved()
		require.Len(t, list, 1)
		require.Equal(t, perilog.ReasonRemoved, list[0].Reason)
		again := *b
		require.NoError(t, again.job.SetConfig(&before))
		require.Len(t, again.take().Launch, 1, "it is configured again")
		b.crash()
		require.NoError(t, b.job.ForceFinish(b.now, epilog, list[0].Ranks, 1<<8, "alice"))
		b.take()
		require.Empty(t, b.job.Unresolved())
		b.drained()
		require.Equal(t, jobstate.StateInactive, b.state())
	}
}
