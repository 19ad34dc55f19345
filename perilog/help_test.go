package perilog_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/rset"
)

// The actions that the reference has.
var (
	prolog = jobstate.ActionKey{Kind: jobstate.ActionProlog, Description: "job-manager.prolog"}
	epilog = jobstate.ActionKey{Kind: jobstate.ActionEpilog, Description: "job-manager.epilog"}
)

// perRank is an action on each rank, with a timeout of 100 s and a kill timeout of
// 10 s.
func perRank() perilog.ActionConfig {
	return perilog.ActionConfig{PerRank: true, Timeout: seconds(100), KillTimeout: seconds(10)}
}

func seconds(n int) fsd.Duration { return fsd.Duration(time.Duration(n) * time.Second) }

// A bench is a job with an honest embedder: what is taken is durable at once.
type bench struct {
	testing.TB
	cfg   *perilog.Config
	spec  perilog.JobConfig
	job   *perilog.Job
	now   eventlog.Timestamp
	still bool // time stands still
	logs
	freed  *idset.Set
	finals int
	last   perilog.Effects // with what was taken last
	all    []perilog.LogEntry
	drains *idset.Set
}

// allocation returns an R of n nodes with hosts.
func allocation(t testing.TB, n int) *rset.R {
	t.Helper()
	ranks := new(idset.Set)
	ranks.InsertRange(0, uint32(n-1))
	hosts := "fluke0"
	if n > 1 {
		hosts = fmt.Sprintf("fluke[0-%d]", n-1)
	}
	r, err := rset.Parse(fmt.Appendf(nil,
		`{"version":1,"execution":{"R_lite":[{"rank":"%v","children":{"core":"0-3"}}],"nodelist":[%q]}}`, ranks, hosts))
	require.NoError(t, err)
	return r
}

// newBench returns a job on n nodes that has its allocation.
func newBench(t testing.TB, n int, c perilog.Config, named ...string) *bench {
	t.Helper()
	return offlineBench(t, n, c, nil, named...)
}

// offlineBench is newBench with nodes that are offline.
func offlineBench(t testing.TB, n int, c perilog.Config, offline *idset.Set, named ...string) *bench {
	t.Helper()
	b := submitted(t, c, perilog.JobConfig{ID: 1, R: allocation(t, n), Named: named, Owner: 9})
	b.job.Offline(b.now, offline)
	b.schedule()
	b.apply("alloc", "")
	return b
}

// submitted returns a job that was submitted.
func submitted(t testing.TB, c perilog.Config, spec perilog.JobConfig) *bench {
	t.Helper()
	b := &bench{TB: t, cfg: &c, spec: spec, now: 1, freed: new(idset.Set), drains: new(idset.Set)}
	var err error
	b.job, err = perilog.NewJob(b.cfg, b.spec)
	require.NoError(t, err)
	b.apply("submit", `{"userid":5588,"urgency":16,"flags":0,"version":1}`)
	return b
}

// scheduled returns a job in SCHED, whose log is taken.
func scheduled(t testing.TB, c perilog.Config, spec perilog.JobConfig) *bench {
	t.Helper()
	b := submitted(t, c, spec)
	b.schedule()
	b.take()
	return b
}

// schedule brings a job that was submitted to SCHED.
func (b *bench) schedule() {
	b.Helper()
	b.apply("validate", "")
	b.apply("depend", "")
	b.apply("priority", `{"priority":16}`)
}

func (b *bench) entry(name, context string) eventlog.Entry {
	if !b.still {
		b.now++
	}
	e := eventlog.Entry{Timestamp: b.now, Name: name}
	if context != "" {
		e.Context = []byte(context)
	}
	return e
}

// apply applies an event, which must be accepted, and takes nothing.
func (b *bench) apply(name, context string) {
	b.Helper()
	_, err := b.job.Apply(b.now+1, b.entry(name, context))
	require.NoError(b, err)
	require.NoError(b, b.job.Check())
}

// refuse applies an event, which must be refused for the reason, without effect.
func (b *bench) refuse(name, context string, reason error) {
	b.Helper()
	before := b.job.String()
	_, err := b.job.Apply(b.now+1, b.entry(name, context))
	require.ErrorIs(b, err, reason)
	require.Equal(b, before, b.job.String(), "I6")
}

// take takes what follows, and stores it.
func (b *bench) take() perilog.Effects {
	b.Helper()
	b.last = b.job.Take(b.now)
	b.store(b, b.last.Post)
	for _, r := range b.last.Post {
		r.Entry.Context = bytes.Clone(r.Entry.Context)
		b.all = append(b.all, r)
	}
	for _, d := range b.last.Drain {
		b.drains.UnionWith(d.Ranks)
	}
	if f := b.last.Free; !f.IsEmpty() {
		require.False(b, b.freed.Intersects(f.R.Ranks()), "I1: freed twice")
		b.freed.UnionWith(f.R.Ranks())
		if f.Final {
			b.finals++
		}
	}
	require.NoError(b, b.job.Check())
	return b.last
}

// report reports on a rank and returns the answer. It takes nothing.
func (b *bench) report(r perilog.Report) perilog.Ack {
	b.Helper()
	a := b.job.Report(b.now, r)
	require.NoError(b, b.job.Check())
	return a
}

// exited reports an exit of attempt 1 and takes what follows.
func (b *bench) exited(key jobstate.ActionKey, rank uint32, status int32) perilog.Effects {
	b.Helper()
	a := b.report(perilog.Report{Action: key, Attempt: 1, Kind: perilog.ReportExited, Rank: rank, Status: status})
	require.Equal(b, perilog.AckApplied, a)
	return b.take()
}

// exitedAll reports that attempt 1 ended well on each rank.
func (b *bench) exitedAll(key jobstate.ActionKey) {
	b.Helper()
	for rank := range b.spec.R.Ranks().All() {
		b.exited(key, rank, 0)
	}
}

// deafen lets what runs be past its timeout and its kill timeout.
func (b *bench) deafen() {
	b.Helper()
	for at, ok := b.job.Deadline(); ok; at, ok = b.job.Deadline() {
		b.now = max(b.now, at)
		b.job.Tick(b.now)
		b.take()
	}
}

// says lets an action write a control line, and takes nothing.
func (b *bench) says(key jobstate.ActionKey, rank uint32, object string) perilog.Ack {
	b.Helper()
	return b.report(perilog.Report{Action: key, Attempt: 1, Kind: perilog.ReportOutput, Rank: rank, Line: []byte(perilog.ControlPrefix + object)})
}

// drained confirms all drains that were asked for, and takes what follows.
func (b *bench) drained() perilog.Effects {
	b.Helper()
	b.job.Drained(b.now, b.drains)
	return b.take()
}

// crash forgets what was not taken, and recovers from the logs.
func (b *bench) crash() {
	b.Helper()
	var err error
	b.job, err = perilog.RecoverJob(b.now, b.cfg, b.spec, b.log, b.hk)
	require.NoError(b, err)
	require.NoError(b, b.job.Check())
}

// run starts the job and lets it end: finish, and release of all.
func (b *bench) run() {
	b.Helper()
	b.take()
	b.apply("start", "")
	b.apply("finish", `{"status":0}`)
	b.apply("release", `{"ranks":"all","final":true}`)
}

// logged reports how often the job's log has an event.
func (b *bench) logged(name string) int {
	n := 0
	for e, err := range eventlog.Entries(b.log) {
		require.NoError(b, err)
		if e.Name == name {
			n++
		}
	}
	return n
}

// state returns the job's state.
func (b *bench) state() jobstate.State { return b.job.State().State() }

func ranks(text string) *idset.Set {
	s, err := idset.Parse(text)
	if err != nil {
		panic(err)
	}
	return s
}

// logs are the two logs of a job.
type logs struct{ log, hk []byte }

// store appends records to the logs that they name.
func (l *logs) store(t require.TestingT, post []perilog.LogEntry) {
	for _, r := range post {
		log := &l.log
		if r.Log == perilog.LogHousekeeping {
			log = &l.hk
		}
		var err error
		*log, err = eventlog.AppendEntry(*log, r.Entry)
		require.NoError(t, err)
	}
}
