package purge_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/purge"
)

// instance does what flux-core's own test of purge does with an instance.
type instance struct {
	t      *testing.T
	x      *purge.Index
	m      *memory
	now    eventlog.Timestamp
	active map[jobid.ID]jobstate.State
}

func newInstance(t *testing.T) *instance {
	in := &instance{t: t, m: newMemory(), now: start, active: map[jobid.ID]jobstate.State{}}
	x, err := purge.New(purge.Config{Active: func(id jobid.ID) (jobstate.State, bool) {
		state, ok := in.active[id]
		return state, ok
	}})
	require.NoError(t, err)
	in.x = x
	return in
}

// finish lets n jobs run and end, and returns their ids.
func (in *instance) finish(n int) []jobid.ID {
	var ids []jobid.ID
	for range n {
		in.now += 0.125
		j := jobstate.Summary{ID: in.x.Watermark() + 1, Inactive: in.now, Result: jobstate.ResultCompleted, Ran: true}
		require.NoError(in.t, in.m.Create(j))
		require.NoError(in.t, in.x.Add(j))
		ids = append(ids, j.ID)
	}
	in.now++
	return ids
}

// would returns how many jobs a dry run names.
func (in *instance) would(l purge.Limits) int {
	l.Batch = purge.NoBatch
	p, err := in.x.Plan(in.now, l)
	require.NoError(in.t, err)
	return len(p.Jobs)
}

// force purges batch after batch, and returns how many jobs went.
func (in *instance) force(l purge.Limits) (n int) {
	for {
		p, err := tick(context.Background(), in.x, in.m, in.now, l)
		require.NoError(in.t, err)
		n += len(p.Jobs)
		if !p.More {
			require.Len(in.t, in.m.jobs, in.x.Len(), "the store has what the index has")
			return n
		}
	}
}

// forceIDs purges jobs by id, and returns how many went.
func (in *instance) forceIDs(ids ...jobid.ID) (int, error) {
	p, err := purgeIDs(context.Background(), in.x, in.m, in.now, ids...)
	return len(p.Jobs), err
}

func count(n int) purge.Limits { return purge.Limits{MaxCount: jobstate.Some(n)} }

// TestTheReferencesOwnSequence has the steps and numbers of flux-core's
// t2809-job-purge.
func TestTheReferencesOwnSequence(t *testing.T) {
	in := newInstance(t)
	one := count(6)
	one.Batch = 1
	old := jobstate.Some(time.Millisecond)
	play := func(steps ...step) {
		for i, s := range steps {
			in.finish(s.end)
			require.Equal(t, s.gone, in.would(s.limits), "step %d", i)
			require.Equal(t, s.gone, in.force(s.limits), "step %d", i)
		}
		require.Zero(t, in.x.Len())
	}
	play(
		step{10, purge.Limits{}, 0}, // no limits are no purge (flux-core#7536)
		step{0, count(8), 2}, step{0, count(8), 0}, step{0, one, 2},
		step{0, purge.Limits{MaxCount: jobstate.Some(1000), MaxAge: old}, 6}, step{0, count(1), 0},
		step{2, count(1), 1}, step{0, count(0), 1},
	)
	_, err := in.x.Plan(in.now, purge.Limits{Batch: 10000})
	require.ErrorContains(t, err, "invalid limits")
	_, err = in.x.Plan(in.now, count(-42))
	require.ErrorContains(t, err, "invalid limits")
	in.byID()
	play(step{10, count(5), 5}, step{0, purge.Limits{MaxAge: old}, 5})
	require.Equal(t, purge.ResultCounts{}, in.x.Stats().Resident)
	require.Equal(t, purge.ResultCounts{Completed: 27}, in.x.Stats().Purged)
	require.NoError(t, in.x.Check())
}

// A step lets jobs end, and purges by limits.
type step struct {
	end    int
	limits purge.Limits
	gone   int // as many as a dry run says
}

// byID is the part about purges by id: four inactive jobs and one active one.
func (in *instance) byID() {
	t := in.t
	ids := in.finish(4)
	running := in.x.Watermark() + 1
	in.x.RaiseWatermark(running)
	in.active[running] = jobstate.StateRun

	p, err := in.x.PlanIDs(ids[0])
	require.NoError(t, err)
	require.Len(t, p.Jobs, 1)
	n, err := in.forceIDs(ids[0])
	require.NoError(t, err)
	require.Equal(t, 1, n)
	for _, try := range []func(...jobid.ID) (int, error){
		in.forceIDs,
		func(ids ...jobid.ID) (int, error) { p, err := in.x.PlanIDs(ids...); return len(p.Jobs), err },
	} {
		_, err = try(ids[0])
		require.ErrorIs(t, err, purge.ErrPurged, "with a tombstone there is more to say than not found")
		_, err = try(1 << 50)
		require.ErrorIs(t, err, purge.ErrUnknown)
		_, err = try(running)
		require.ErrorIs(t, err, purge.ErrActive)
		require.ErrorContains(t, err, "job is active: RUN")
	}
	p, err = in.x.PlanIDs(ids[1], ids[2])
	require.NoError(t, err)
	require.Len(t, p.Jobs, 2)
	n, err = in.forceIDs(ids[1], ids[2])
	require.NoError(t, err)
	require.Equal(t, 2, n)
	_, err = in.forceIDs(ids[3], ids[0])
	require.ErrorIs(t, err, purge.ErrPurged, "all or none")
	n, err = in.forceIDs(ids[3])
	require.NoError(t, err)
	require.Equal(t, 1, n)
	delete(in.active, running)
	require.NoError(t, in.x.Add(jobstate.Summary{ID: running, Inactive: in.now, Result: jobstate.ResultCompleted, Ran: true}))
	require.Equal(t, 1, in.force(count(0)))
}
