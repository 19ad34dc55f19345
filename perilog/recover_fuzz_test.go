package perilog_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/refdata"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/perilog"
)

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

func fuzzSpec(t require.TestingT) perilog.Spec {
	return perilog.Spec{ID: 7, R: holdsR(t, 4), Named: []string{"fs"}, Owner: 1}
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

// FuzzHolds: no panic, the invariants hold after each entry, an error leaves
// everything as it was, and the log that was accepted reads back the same.
func FuzzHolds(f *testing.F) {
	for _, logs := range fuzzLogs(f) {
		f.Add(logs[0])
		f.Add(logs[1])
	}
	f.Fuzz(func(t *testing.T, log []byte) {
		s := &holdsStory{t: t, r: holdsR(t, 4), named: []string{"fs"}}
		s.holds = perilog.NewHolds(7, s.r, s.named...)
		for e, err := range eventlog.Entries(log) {
			if err != nil {
				break
			}
			_ = s.apply(e) // which checks
		}
		require.Equal(t, s.holds.String(), s.replay().String())
	})
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
		l := &lifeLog{t: t, job: job, logs: logs{bytes.Clone(log), bytes.Clone(hk)}, now: 1e9}
		for i := range 8 {
			waits, pending := l.job.Unresolved(), l.job.State().State() == jobstate.StateSched
			todo := l.round(int32(choice) % 2 * 256)
			require.NoError(t, l.job.Check())
			if i == 0 && !pending { // what alloc starts is launched in the next round
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
