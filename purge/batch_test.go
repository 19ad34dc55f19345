package purge_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/purge"
)

// start is the time of the first job of most tests.
const start eventlog.Timestamp = 1_700_000_000

// makeJobs returns jobs 1 to n, one a second.
func makeJobs(n int) []jobstate.Summary {
	jobs := make([]jobstate.Summary, n)
	for i := range jobs {
		jobs[i] = jobstate.Summary{
			ID: jobid.ID(i + 1), Inactive: start + eventlog.Timestamp(i), Result: jobstate.ResultCompleted, Ran: true,
		}
	}
	return jobs
}

// populated returns an index and a store of n jobs.
func populated(t testing.TB, cfg purge.Config, n int) (*purge.Index, *memory) {
	m := newMemory()
	x, err := purge.New(cfg)
	require.NoError(t, err)
	for _, j := range makeJobs(n) {
		require.NoError(t, m.Create(j))
		require.NoError(t, x.Add(j))
	}
	return x, m
}

// tick tells the index the time, and purges a batch by the limits.
func tick(ctx context.Context, x *purge.Index, s purge.Store, now eventlog.Timestamp, l purge.Limits) (purge.Plan, error) {
	if err := x.Observe(now); err != nil {
		return purge.Plan{}, err
	}
	if _, err := x.Claim(now, l); err != nil {
		return purge.Plan{}, err
	}
	return purge.CarryOut(ctx, x, s)
}

// purgeIDs purges jobs by id.
func purgeIDs(ctx context.Context, x *purge.Index, s purge.Store, now eventlog.Timestamp, ids ...jobid.ID) (purge.Plan, error) {
	if _, err := x.ClaimIDs(now, ids...); err != nil {
		return purge.Plan{}, err
	}
	return purge.CarryOut(ctx, x, s)
}

// commit claims a batch and says that its jobs are gone, as if there were no store.
func commit(t require.TestingT, x *purge.Index, now eventlog.Timestamp, l purge.Limits) purge.Plan {
	p, err := x.Claim(now, l)
	require.NoError(t, err)
	_, stay, done := x.Unlinked(p.IDs(), nil)
	require.Equal(t, len(p.Jobs) > 0, done)
	require.Empty(t, stay)
	return p
}

// flux-core#4331 and #4931: other indexes kept purged ids.
func TestATickPurgesAtMostOneHundredJobs(t *testing.T) {
	x, m := populated(t, purge.Config{}, 250)
	for _, want := range []struct {
		n    int
		more bool
	}{{100, true}, {100, true}, {50, false}, {0, false}} {
		p, err := tick(t.Context(), x, m, start+300, purge.PurgeAll())
		require.NoError(t, err)
		require.Len(t, p.Jobs, want.n)
		require.Equal(t, want.more, p.More)
	}
	require.Empty(t, m.jobs)
	require.Zero(t, x.Len())
	require.Equal(t, []string{"prepare", "unlink", "prepare", "unlink", "prepare", "unlink"}, m.calls)
	require.Equal(t, jobid.ID(250), m.watermark)
}

func TestAPurgeOfNothingDoesNotCallTheStore(t *testing.T) {
	x, m := populated(t, purge.Config{TombstoneCount: jobstate.Some(0)}, 3)
	_, err := tick(t.Context(), x, m, start+10, purge.Limits{})
	require.NoError(t, err)
	require.Empty(t, m.calls)
	p, err := tick(t.Context(), x, m, start+10, purge.PurgeAll())
	require.NoError(t, err)
	require.Empty(t, p.Tombstones, "none are kept")
}

func TestAFailedStoreChangesNothingAndTheNextTickResumes(t *testing.T) {
	for _, op := range []string{"prepare", "unlink"} {
		x, m := populated(t, purge.Config{}, 5)
		cause := errors.New("no space")
		m.fails = func(got string) error {
			if got == op {
				return cause
			}
			return nil
		}
		before := x.Stats()
		for range 2 {
			_, err := tick(t.Context(), x, m, start+10, purge.PurgeAll())
			require.ErrorIs(t, err, cause)
			require.EqualError(t, err, "purge: store failed: "+op+": no space")
			require.Equal(t, before, x.Stats())
			require.NoError(t, x.Check())
			require.Len(t, m.jobs, 5)
		}
		m.fails = nil
		p, err := tick(t.Context(), x, m, start+11, purge.PurgeAll())
		require.NoError(t, err)
		require.Len(t, p.Jobs, 5)
		require.Empty(t, m.jobs)
	}
}

func TestADoneContextStopsBeforeTheNextCall(t *testing.T) {
	for calls, op := range []string{"", "prepare", "unlink"} { // the context is done in this call
		x, m := populated(t, purge.Config{}, 5)
		ctx, cancel := context.WithCancel(t.Context())
		m.fails = func(got string) error {
			if got == op {
				cancel()
			}
			return nil
		}
		if op == "" {
			cancel()
		}
		p, err := tick(ctx, x, m, start+10, purge.PurgeAll())
		require.Len(t, m.calls, calls)
		require.Zero(t, x.Stats().Leaving)
		if op == "unlink" {
			require.NoError(t, err, "what the store has removed is gone")
			require.Len(t, p.Jobs, 5)
			require.Zero(t, x.Len())
			continue
		}
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, 5, x.Len())
	}
}

func TestOneBatchIsUnderWayAtATime(t *testing.T) {
	x, _ := populated(t, purge.Config{}, 10)
	p, err := x.Claim(start+20, purge.Limits{MaxCount: jobstate.Some(0), Batch: 4})
	require.NoError(t, err)
	_, err = x.Claim(start+20, purge.PurgeAll())
	require.EqualError(t, err, "purge: the store is removing another batch")
	_, err = x.ClaimIDs(start+20, 10)
	require.EqualError(t, err, "purge: the store is removing another batch")
	dry, err := x.Plan(start+20, count(4))
	require.NoError(t, err)
	require.Equal(t, []jobid.ID{5, 6}, dry.IDs(), "those that leave do not count")
	again, ok := x.Claimed()
	require.True(t, ok)
	require.Equal(t, p, again)
}

// panics is a store that panics.
type panics struct{ *memory }

func (panics) Unlink(context.Context, []jobid.ID) (map[jobid.ID]error, error) { panic("oh") }

func TestAStoreThatPanicsLeavesNoClaim(t *testing.T) {
	x, m := populated(t, purge.Config{}, 5)
	for range 2 {
		require.PanicsWithValue(t, "oh", func() { _, _ = tick(t.Context(), x, panics{m}, start+10, purge.PurgeAll()) })
		require.Zero(t, x.Stats().Leaving)
		require.NoError(t, x.Check())
	}
}

func TestAJobThatCannotBeRemovedStopsNoOther(t *testing.T) {
	x, m := populated(t, purge.Config{}, 10)
	l := purge.PurgeAll()
	l.Batch = 3
	m.stuck[2] = true
	p, err := tick(t.Context(), x, m, start+20, l)
	require.ErrorIs(t, err, errStuck)
	require.EqualError(t, err, "purge: ƒ3: store failed: unlink: input/output error")
	require.Equal(t, []jobid.ID{1, 3}, p.IDs(), "what went")
	require.Len(t, p.Tombstones, 2)
	require.True(t, p.More)
	for range 3 {
		p, err = tick(t.Context(), x, m, start+20, l)
		require.NoError(t, err)
	}
	require.False(t, p.More)
	require.Equal(t, 1, x.Len())
	require.Equal(t, 1, x.Stats().Stuck)
	require.Equal(t, 9, x.Stats().Purged.Total())
	require.NoError(t, x.Check())

	now, delay := start+20, purge.RetryFirst.Seconds()
	for range 9 { // it is tried again, later each time
		require.Equal(t, now+eventlog.Timestamp(delay), x.Due(l))
		_, err = tick(t.Context(), x, m, now+eventlog.Timestamp(delay)-1, l)
		require.NoError(t, err)
		now += eventlog.Timestamp(delay)
		_, err = tick(t.Context(), x, m, now, l)
		require.ErrorIs(t, err, errStuck)
		delay = min(2*delay, purge.RetryMost.Seconds())
		require.NoError(t, x.Check())
	}
	_, err = purgeIDs(t.Context(), x, m, now, 2)
	require.ErrorIs(t, err, errStuck, "by id at once")
	delete(m.stuck, 2)
	p, err = purgeIDs(t.Context(), x, m, now, 2)
	require.NoError(t, err)
	require.Len(t, p.Jobs, 1)
	require.Zero(t, x.Stats().Stuck)
	require.Zero(t, x.Len())
	require.NoError(t, x.Check())
}

// crashed runs a script against a store that dies at a step, and goes on after
// each crash with what is durable. It returns how many steps there were.
func crashed(t *testing.T, cfg purge.Config, diesAt int) int {
	m := newMemory()
	issued := map[jobid.ID]bool{}
	var x *purge.Index
	restart := func() {
		m.diesAt = 0
		var err error
		x, err = purge.Recover(cfg, m.snapshot())
		require.NoError(t, err)
		require.NoError(t, x.Check())
		for id := range issued {
			require.LessOrEqual(t, id, x.Watermark(), "an id would come back")
			if _, active := m.jobs[id]; !active && cfg.TombstoneCount != jobstate.Some(0) {
				_, ok := x.Ended(id)
				require.True(t, ok, "there is no answer for %d", id)
			}
		}
		for id, j := range m.jobs { // what was running ends
			if j == nil {
				done := jobstate.Summary{ID: id, Inactive: start + 50, Result: jobstate.ResultFailed}
				m.jobs[id] = &done
				require.NoError(t, x.Add(done))
			}
		}
	}
	restart()
	m.diesAt = diesAt
	now := start
	beat := func(l purge.Limits) {
		for {
			p, err := tick(t.Context(), x, m, now, l)
			if err != nil {
				require.ErrorIs(t, err, errDead)
				restart()
				continue
			}
			if !p.More {
				return
			}
		}
	}
	for range 7 {
		id := x.Watermark() + 1
		require.False(t, issued[id], "%d came back", id)
		now += 100
		if m.step() != nil {
			restart() // it was not handed out
			continue
		}
		m.jobs[id] = nil
		issued[id] = true
		x.RaiseWatermark(id)
		j := jobstate.Summary{ID: id, Inactive: now, Result: jobstate.ResultCompleted, Ran: true}
		if m.step() != nil {
			restart()
			continue
		}
		m.jobs[id] = &j
		require.NoError(t, x.Add(j))
		beat(purge.Limits{MaxCount: jobstate.Some(2), Batch: 2})
	}
	beat(purge.Limits{MaxCount: jobstate.Some(0), Batch: 2})
	require.Empty(t, m.jobs)
	restart()
	return m.steps
}

func TestIdsNeverComeBackWhereverTheStoreDies(t *testing.T) {
	for _, tombstones := range []jobstate.Optional[int]{{}, jobstate.Some(0)} {
		cfg := purge.Config{TombstoneCount: tombstones}
		points := crashed(t, cfg, 0)
		require.Greater(t, points, 20)
		for at := 1; at <= points; at++ {
			crashed(t, cfg, at)
		}
	}
}
