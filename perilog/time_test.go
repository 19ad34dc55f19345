package perilog_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/joblife/joblife/perilog"
)

// launchedAt returns the times of the records that launch something.
func launchedAt(post []perilog.LogEntry) (list []eventlog.Timestamp) {
	for _, r := range post {
		ev := new(jobstate.Event)
		if ev.Decode(r.Entry) != nil {
			continue
		}
		switch c := ev.Context().(type) {
		case *jobstate.ActionLaunchContext:
			list = append(list, r.Entry.Timestamp)
		case *jobstate.ActionStartContext:
			if c.Attempt > 0 {
				list = append(list, r.Entry.Timestamp)
			}
		}
	}
	return list
}

// Whatever releases a launch, its time in the log is that of the release, and its
// timeout counts from there.
func TestALaunchIsLoggedAtItsOwnTime(t *testing.T) {
	waits := perRank()
	waits.WaitOffline = true
	for name, release := range map[string]func(b *bench){
		"the node is online":          func(b *bench) { b.job.Offline(3600, nil) },
		"the executor has no job":     func(b *bench) { b.job.NotStarted(3600) },
		"somebody takes what follows": func(b *bench) { b.now = 3600 },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 2, perilog.Config{Prologs: []perilog.ActionConfig{perRank()}, Epilogs: []perilog.ActionConfig{waits}})
			b.take()
			b.exitedAll(prolog)
			switch name {
			case "the node is online":
				b.job.Offline(b.now, ranks("0-1"))
				b.run()
				b.take()
			case "the executor has no job":
				b.apply("exception", `{"type":"cancel","severity":0,"note":""}`)
				b.take()
			default:
				b.job.Offline(b.now, ranks("0-1"))
				b.run()
				b.take()
				b.job.Offline(b.now, nil)
			}
			require.Empty(t, b.last.Launch)
			release(b)
			todo := b.take()
			require.Len(t, todo.Launch, 1)
			require.Equal(t, []eventlog.Timestamp{3600}, launchedAt(todo.Post))
			at, ok := b.job.Deadline()
			require.True(t, ok)
			require.EqualValues(t, 3700, at)
			b.now = 3601
			b.job.Tick(b.now)
			require.Empty(t, b.take().Signal)
		})
	}
}

func TestNothingIsGivenUpBeforeItsSignalWasTaken(t *testing.T) {
	b := newBench(t, 2, perilog.Config{Prologs: []perilog.ActionConfig{perRank()}})
	b.take()
	b.now += 101
	b.job.Tick(b.now)
	_, ok := b.job.Deadline()
	require.False(t, ok, "it waits for Take")
	b.now += 1000
	b.job.Tick(b.now)
	todo := b.take()
	require.Len(t, todo.Signal, 1)
	require.Empty(t, todo.Results)
	at, _ := b.job.Deadline()
	require.Equal(t, b.now+10, at, "the kill timeout counts from Take")
	b.job.Signaled(b.now+5, todo.Signal[0])
	at, _ = b.job.Deadline()
	require.Equal(t, b.now+15, at, "it went out later")
	b.now += 7
	require.NoError(t, b.job.ForceFinish(b.now, todo.Signal[0].Action, ranks("0"), 1, "me"))
	require.Equal(t, "0", b.take().Signal[0].Ranks.String(), "it may run")
	later, _ := b.job.Deadline()
	require.Equal(t, at, later, "of the other rank")
	b.now += 8
	b.job.Tick(b.now)
	require.Len(t, b.take().Results, 1)
}

// What is offline is known when a job is taken up, which may launch at once.
func TestAJobIsTakenUpWithTheOfflineSet(t *testing.T) {
	c := perilog.Config{Epilogs: []perilog.ActionConfig{perRank()}}
	b := newBench(t, 3, c)
	b.run()
	b.last.Post = b.job.Take(b.now).Post
	for i, r := range b.last.Post { // the crash comes before the epilog is in the log
		if r.Entry.Name == "epilog-start" {
			b.last.Post = b.last.Post[:i]
			break
		}
	}
	b.store(t, b.last.Post)
	b.spec.Offline = ranks("1")
	b.crash()
	b.spec.Offline.Insert(0) // it was copied
	todo := b.take()
	require.Len(t, todo.Launch, 1)
	require.Equal(t, "0,2", todo.Launch[0].Ranks.String())

	pending, err := perilog.NewJob(b.cfg, perilog.JobConfig{ID: 2, R: allocation(t, 2), Offline: ranks("1")})
	require.NoError(t, err)
	require.NoError(t, pending.Check())
}

// An accessor decides nothing, however much there is to do.
func TestAccessorsChangeNothing(t *testing.T) {
	b := newBench(t, 3, perilog.Config{Prologs: []perilog.ActionConfig{perRank()}, Epilogs: []perilog.ActionConfig{perRank()}, Housekeeping: &perilog.HousekeepingConfig{}})
	look := func() {
		t.Helper()
		before := b.job.String()
		b.job.Unresolved()
		b.job.Deadline()
		b.job.Running()
		b.job.Draining()
		b.job.Starting()
		b.job.Freed()
		b.job.PrologTime()
		b.job.Done()
		for range b.job.Holders() {
		}
		require.Equal(t, before, b.job.String())
		require.NoError(t, b.job.Check())
	}
	look()
	b.take()
	b.report(perilog.Report{Action: prolog, Kind: perilog.ReportExited, Attempt: 1, Rank: 1, Status: 1 << 8})
	look()
	b.crash()
	look()
	require.NoError(t, b.job.ForceFinish(b.now, prolog, nil, 1, "root"))
	look()
	b.take()
	b.crash()
	look()
}

// deadlines are a job, its embedder, and a virtual clock.
type deadlines struct {
	*bench
	t *rapid.T
}

func drawDeadlines(t *rapid.T, tb testing.TB) *deadlines {
	span := func(name string) int { return rapid.SampledFrom([]int{0, 1, 5, 30}).Draw(t, name) }
	action := func(name string) perilog.ActionConfig {
		return perilog.ActionConfig{
			PerRank: rapid.IntRange(0, 2).Draw(t, name+" per rank") > 0, WaitOffline: true, Kill: rapid.Bool().Draw(t, name+" kill"),
			Timeout: seconds(span(name + " timeout")), KillTimeout: seconds(span(name + " kill timeout")),
		}
	}
	c := perilog.Config{Prologs: []perilog.ActionConfig{action("prolog")}, Epilogs: []perilog.ActionConfig{action("epilog")}}
	if rapid.Bool().Draw(t, "housekeeping") {
		after := seconds(span("release after"))
		c.Housekeeping = &perilog.HousekeepingConfig{Timeout: seconds(span("timeout")), KillTimeout: seconds(3), ReleaseAfter: &after}
	}
	d := &deadlines{bench: newBench(tb, 2, c), t: t}
	d.now = eventlog.Timestamp(rapid.SampledFrom([]float64{10, 1 << 20, 1700000000.1234567}).Draw(t, "start"))
	return d
}

// sleep lets a time come, as a time.Time, which rounds it.
func (d *deadlines) sleep(at eventlog.Timestamp) {
	wall := at.Time()
	for eventlog.FromTime(wall) < at {
		wall = wall.Add(time.Nanosecond)
	}
	d.now = max(d.now, eventlog.FromTime(wall))
}

func (d *deadlines) state() string {
	at, ok := d.job.Deadline()
	return fmt.Sprint(d.job, d.job.Running(), at, ok)
}

// check judges the deadline: nothing happens before it, and it does not stay.
func (d *deadlines) check(*rapid.T) {
	for i := 0; ; i++ {
		d.take()
		at, ok := d.job.Deadline()
		if !ok {
			return
		}
		require.False(d.t, math.IsNaN(float64(at)) || math.IsInf(float64(at), 0))
		if at > d.now {
			before := d.state()
			d.now = max(d.now, eventlog.Timestamp(math.Nextafter(float64(at), 0)))
			d.job.Tick(d.now)
			require.True(d.t, d.take().IsEmpty(), "before the deadline")
			require.Equal(d.t, before, d.state(), "before the deadline")
			if rapid.Bool().Draw(d.t, "later") {
				return
			}
		}
		require.Less(d.t, i, 50, "it spins at %v: %v", d.now, d.job)
		d.sleep(at)
		d.job.Tick(d.now)
	}
}

func (d *deadlines) play() {
	key := func() jobstate.ActionKey {
		return rapid.SampledFrom([]jobstate.ActionKey{prolog, epilog, perilog.Housekeeping()}).Draw(d.t, "action")
	}
	some := func() *idset.Set {
		return rapid.SampledFrom([]*idset.Set{nil, ranks("0"), ranks("1"), ranks("0-1")}).Draw(d.t, "ranks")
	}
	try := func(name, context string) {
		_, _ = d.job.Apply(d.now, d.entry(name, context))
	}
	d.t.Repeat(map[string]func(*rapid.T){
		"": d.check,
		"report": func(*rapid.T) {
			d.job.Report(d.now, perilog.Report{
				Action: key(), Attempt: rapid.Uint32Range(1, 2).Draw(d.t, "attempt"), Rank: rapid.Uint32Range(0, 1).Draw(d.t, "rank"),
				Kind:   rapid.SampledFrom([]perilog.ReportKind{perilog.ReportStarted, perilog.ReportExited, perilog.ReportExited, perilog.ReportUnreachable}).Draw(d.t, "kind"),
				Status: rapid.SampledFrom([]int32{0, 0, 1 << 8}).Draw(d.t, "status"),
			})
		},
		"start":    func(*rapid.T) { try("start", "") },
		"cancel":   func(*rapid.T) { try("exception", `{"type":"cancel","severity":0,"note":""}`) },
		"revoke":   func(*rapid.T) { try("exception", `{"type":"scheduler-restart","severity":0,"note":""}`) },
		"finish":   func(*rapid.T) { try("finish", `{"status":0}`) },
		"release":  func(*rapid.T) { try("release", `{"ranks":"0","final":false}`) },
		"final":    func(*rapid.T) { try("release", `{"ranks":"all","final":true}`) },
		"drained":  func(*rapid.T) { d.job.Drained(d.now, d.drains) },
		"offline":  func(*rapid.T) { d.job.Offline(d.now, some()) },
		"refused":  func(*rapid.T) { d.job.NotStarted(d.now) },
		"reattach": func(*rapid.T) { _ = d.job.Reattach(d.now, key(), nil) },
		"rerun":    func(*rapid.T) { _ = d.job.Rerun(d.now, key(), nil) },
		"crash":    func(*rapid.T) { d.freed.SubtractWith(d.freed); d.crash(); d.freed.UnionWith(d.job.Freed()) },
		"shutdown": func(*rapid.T) {
			if rapid.IntRange(0, 3).Draw(d.t, "shutdown") == 0 {
				d.job.Shutdown(d.now, d.now+eventlog.Timestamp(rapid.SampledFrom([]float64{0, -1e9, 4, 40, math.NaN(), math.Inf(1)}).Draw(d.t, "in")))
			}
		},
	})
}

// A caller who sleeps until the Deadline, and then calls Tick and Take, neither spins nor
// sleeps past what is due.
func TestADeadlineIsWhenSomethingHappens(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) { drawDeadlines(r, t).play() })
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

// A whole life in one moment has a log whose times grow, across restarts too, and do not reach
// a deadline before the clock does.
func TestDistinctTimesGrow(t *testing.T) {
	live := func(distinct bool, deadline eventlog.Timestamp) (times []eventlog.Timestamp) {
		c := perilog.Config{Epilogs: []perilog.ActionConfig{perRank()}, Housekeeping: &perilog.HousekeepingConfig{}}
		b := &bench{TB: t, cfg: &c, spec: perilog.JobConfig{ID: 1, R: allocation(t, 2), Owner: 9, Distinct: distinct}, now: 1.7e9, still: true, freed: new(idset.Set), drains: new(idset.Set)}
		var err error
		b.job, err = perilog.NewJob(b.cfg, b.spec)
		require.NoError(t, err)
		b.job.Shutdown(b.now, deadline)
		apply := func(name, context string) {
			_, err := b.job.Apply(b.now, b.entry(name, context))
			require.NoError(t, err)
			b.take()
			if deadline == 0 {
				b.crash()
			}
		}
		apply("submit", `{"userid":5588,"urgency":16,"flags":0,"version":1}`)
		apply("validate", "")
		apply("depend", "")
		apply("priority", `{"priority":16}`)
		apply("alloc", "")
		apply("start", "")
		apply("memo", `{"a":1}`)
		apply("memo", `{"a":2}`)
		apply("release", `{"ranks":"all","final":false}`)
		apply("finish", `{"status":0}`)
		require.NoError(t, b.job.ForceFinish(b.now, epilog, nil, 0, "op"))
		b.take()
		apply("release", `{"ranks":"","final":true}`)
		for e, err := range eventlog.Entries(b.log) {
			require.NoError(t, err)
			times = append(times, e.Timestamp-1.7e9)
		}
		require.Equal(t, 1, b.logged("clean"))
		return times
	}
	times := live(true, 0)
	for i, at := range times {
		require.InDelta(t, float64(i)*1e-6, float64(at), 1e-6)
		require.True(t, i == 0 || at > times[i-1], "%v", times)
	}
	for _, at := range live(false, 0) {
		require.Zero(t, at)
	}
	near := live(true, 1.7e9+5e-6)
	require.True(t, slices.IsSorted(near))
	require.InDelta(t, 4e-6, float64(near[len(near)-1]), 1e-6)
}
