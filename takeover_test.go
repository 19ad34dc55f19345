package joblife_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/rset/alloc"
)

// A clock that is behind the records does not take events back: the Manager goes on from the
// time of the records.
func TestATakeoverWithAClockThatIsBehindGoesOnFromTheRecords(t *testing.T) {
	s := newSite(t, joblife.Config{}, 8)
	s.hold["finish"] = true
	id := s.submit(jobspec.Job{Nodes: 1})
	last := s.store[len(s.store)-1].Time
	require.Equal(t, eventlog.FromTime(s.now), last)
	require.Equal(t, s.stepped, s.m.Now())

	for name, change := range map[string]func(*joblife.Record) eventlog.Timestamp{
		"of the Steps":  func(r *joblife.Record) eventlog.Timestamp { return last },
		"of the events": func(r *joblife.Record) eventlog.Timestamp { r.Time = 0; return 1_600_000_000 }, // of a store that has no others
	} {
		last := last
		list := make([]joblife.Record, len(s.store))
		for i, r := range s.store {
			last = change(&r)
			list[i] = r
		}
		behind := s.now.Add(-time.Hour)
		m, rec, err := joblife.Restore(behind, joblife.Config{}, all(list))
		require.NoError(t, err, name)
		require.Equal(t, last, rec.Time, name)
		require.Equal(t, last, eventlog.FromTime(m.Now()), name)
		require.ErrorIs(t, m.Step(behind, joblife.Tick{}), joblife.ErrClock, name)
		require.NoError(t, m.Step(m.Now(), joblife.ExecHello{}), name)
		require.NoError(t, m.Step(m.Now(), joblife.ExecResponse{ID: id, Type: 3}))
		var rd joblife.Ready
		require.True(t, m.Ready(&rd))
		for _, r := range rd.Append {
			require.GreaterOrEqual(t, r.Time, last)
		}
	}

	ahead := s.now.Add(time.Hour)
	m, rec, err := joblife.Restore(ahead, joblife.Config{}, all(s.store))
	require.NoError(t, err)
	require.Equal(t, last, rec.Time)
	require.Equal(t, ahead, m.Now())
}

// The greatest time comes from any record: of an inactive job, of a tombstone, of a snapshot. One
// that no clock shows does not count.
func TestTheTimeOfTheRecords(t *testing.T) {
	s := newSite(t, joblife.Config{}, 8)
	id := s.submit(jobspec.Job{Nodes: 1})
	require.Equal(t, jobstate.StateInactive, s.state(id))
	v, _ := s.m.Job(id)
	over, _ := v.Job().Entered(jobstate.StateInactive)
	timeOf := func(list ...joblife.Record) eventlog.Timestamp {
		m, rec, err := joblife.Restore(s.now.Add(-time.Hour), joblife.Config{}, all(list))
		require.NoError(t, err)
		require.NoError(t, m.Step(m.Now(), joblife.Tick{}))
		return rec.Time
	}
	second := func(t eventlog.Timestamp) eventlog.Timestamp { return eventlog.Timestamp(math.Floor(float64(t))) }
	require.Zero(t, timeOf())
	var snap []joblife.Record
	for r := range s.m.Snapshot() {
		snap = append(snap, r)
	}
	require.Equal(t, eventlog.FromTime(s.m.Now()), timeOf(snap...))
	for i := range snap {
		snap[i].Time = 0
	}
	require.Equal(t, second(over), timeOf(snap...))
	for _, bad := range []eventlog.Timestamp{-1, eventlog.Timestamp(math.Inf(1)), eventlog.Timestamp(math.NaN()), 1e300} {
		snap[0].Time = bad
		require.Equal(t, second(over), timeOf(snap...))
	}
	require.Zero(t, timeOf(joblife.Record{Job: jobid.ID(7), Kind: joblife.RecordEvent, Data: []byte("damaged")}))
}

// A restart logs what it changes, and nothing else: 100 000 jobs that wait would be as many
// records, at each takeover.
func TestARestartLogsOnlyWhatItChanges(t *testing.T) {
	const before = "submit validate depend priority"
	ranked := func(p uint32, later bool) []joblife.Hooks {
		return []joblife.Hooks{{Priority: func(*joblife.HookEvent) (uint32, bool) { return p, later }}}
	}
	posts := func(in joblife.Input) []joblife.Hooks {
		return []joblife.Hooks{{Restored: func(e *joblife.HookEvent) { e.Post(in) }}}
	}
	for name, c := range map[string]struct {
		hooks []joblife.Hooks
		want  string // after before
		asked bool   // the scheduler is
	}{
		"nothing":              {nil, "", true},
		"the same priority":    {ranked(16, false), "", true},
		"another priority":     {ranked(7, false), " priority", true},
		"a priority later":     {ranked(0, true), " flux-restart", false},
		"a hook knows another": {posts(joblife.SetPriority{ID: 1, Priority: 7}), " priority", true},
		"a hook knows it":      {posts(joblife.SetPriority{ID: 1, Priority: 16}), "", true},
		"a hook cancels":       {posts(joblife.Raise{ID: 1, Type: "cancel"}), " exception clean", false},
		"a hook stops it":      {posts(joblife.SetUrgency{ID: 1, Urgency: 0}), " urgency priority", false},
		"a hook bypasses":      {posts(joblife.SetFlags{ID: 1, Flags: []string{"alloc-bypass"}}), " set-flags", false},
		"as flux-core":         {[]joblife.Hooks{fluxRestarts()}, " flux-restart priority", true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, joblife.Config{}, 8)
			s.hold["sched"] = true
			s.step(joblife.Submit{ID: 1, Jobspec: text(t, jobspec.Job{Nodes: 1, Command: []string{"true"}}), Urgency: 16})
			require.Equal(t, before, s.events(1))
			s.cfg.Hooks = c.hooks
			n := len(s.store)
			sent[alloc.Request](s)
			s.restart()
			require.Equal(t, before+c.want, s.events(1))
			require.Equal(t, c.want == "", len(s.store) == n)
			require.Equal(t, c.asked, len(sent[alloc.Request](s)) == 1)
		})
	}
}

// A job of a queue that is stopped waits after a restart too, and goes on when it starts.
func TestAJobOfAStoppedQueueWaitsAfterARestart(t *testing.T) {
	s := newSite(t, joblife.Config{}, 8)
	s.step(joblife.StartQueue{Reason: "r"})
	id := s.submit(jobspec.Job{Nodes: 1})
	s.restart()
	require.Equal(t, jobstate.StateSched, s.state(id))
	s.step(joblife.StartQueue{Start: true})
	require.Equal(t, jobstate.StateInactive, s.state(id))
}

// Each prefix of what a Ready has is a log: a store may append it in parts.
func TestEachPrefixOfAReadyIsALog(t *testing.T) {
	s := newSite(t, busyConfig(), 8)
	var rd joblife.Ready
	for id := range jobid.ID(3) {
		s.feed(joblife.Submit{ID: id + 1, Jobspec: text(t, jobspec.Job{Nodes: 2, Command: []string{"true"}}), Urgency: 16})
	}
	s.feed(joblife.StartQueue{Reason: "r"})
	require.True(t, s.m.Ready(&rd))
	require.Greater(t, len(rd.Append), 12)
	for n := range len(rd.Append) + 1 {
		m, rec, err := joblife.Restore(s.now, s.cfg, all(rd.Append[:n]))
		require.NoError(t, err)
		require.Empty(t, rec.Quarantined)
		require.NoError(t, joblife.Audit(m))
	}
}
