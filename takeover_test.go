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
