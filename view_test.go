package joblife_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/perilog"
)

// TestOneLoopReadsJobsInAllStates: what the index knows of an inactive job, a View says by the
// accessors that others have, before and after a restart.
func TestOneLoopReadsJobsInAllStates(t *testing.T) {
	s := silent(t, joblife.Config{Actions: perilog.Config{Housekeeping: &perilog.HousekeepingConfig{}}})
	s.hold["action"] = true
	done, canceled, pending := s.waits(false), s.waits(false), s.waits(false)
	s.step(success(t, done, 0))
	s.finish(done, 0)
	s.cancel(canceled)
	for range 2 {
		seen := make(map[jobid.ID]jobstate.State)
		for v := range s.m.Jobs(jobstate.StateNew | jobstate.StateActive | jobstate.StateInactive) {
			j := v.Job()
			seen[v.ID()] = j.State()
			require.Equal(t, v.State(), j.State())
			require.Equal(t, v.ID(), j.ID())
			require.Equal(t, v.UserID(), j.UserID())
			require.Equal(t, v.ID() == done, j.Started())
			want, ended := v.Result()
			result, ok := j.Result()
			require.Equal(t, ended, ok)
			require.Equal(t, want, result)
			at, over := j.Entered(jobstate.StateInactive)
			require.Equal(t, v.State() == jobstate.StateInactive, over)
			require.LessOrEqual(t, at, eventlog.FromTime(s.now))
			n := v.Nodes()
			require.Equal(t, v.ID(), n.Job().ID())
			require.Equal(t, v.State(), n.Job().State())
			require.Equal(t, j.Started(), n.Job().Started())
			require.True(t, n.Held().IsEmpty())
			require.Empty(t, slices.Collect(n.Holders()))
			require.True(t, strings.HasPrefix(n.String(), v.State().String()+"; left"), "%v", n)
			require.Zero(t, v.R().Len())
			require.Equal(t, over, v.Jobspec() == nil, "not kept")
			require.Equal(t, over, v.Eventlog() == nil)
			require.Nil(t, v.Annotations())
		}
		require.Equal(t, map[jobid.ID]jobstate.State{
			done: jobstate.StateInactive, canceled: jobstate.StateInactive, pending: jobstate.StateSched,
		}, seen)
		s.restart()
	}
}

// A job that waits tells how long it has, while the Manager goes on and after a restart.
func TestALiveJobTellsTheTimeInEachState(t *testing.T) {
	s := silent(t, joblife.Config{})
	id := s.submit(jobspec.Job{Nodes: 1})
	spent := func() time.Duration {
		return must(s.m.Job(id)).Job().Spent(jobstate.StateSched, eventlog.FromTime(s.now)).Round(100 * time.Millisecond)
	}
	s.now = s.now.Add(5 * time.Second)
	require.Equal(t, 5*time.Second, spent())
	s.step(joblife.Urgency{ID: id, Urgency: 8}) // to PRIORITY, and back at once
	s.now = s.now.Add(7 * time.Second)
	require.Equal(t, 12*time.Second, spent())
	s.restart()
	s.now = s.now.Add(time.Second)
	require.Equal(t, 13*time.Second, spent())
}
