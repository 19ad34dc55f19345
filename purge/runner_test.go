package purge_test

import (
	"context"
	"errors"
	"slices"
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
func makeJobs(n int) []purge.Record {
	jobs := make([]purge.Record, n)
	for i := range jobs {
		jobs[i] = purge.Record{
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

// commit claims a plan and commits it, as if there were no store.
func commit(t require.TestingT, x *purge.Index, p purge.Plan) purge.Plan {
	p, err := x.Claim(p)
	require.NoError(t, err)
	if len(p.Jobs) > 0 {
		require.NoError(t, x.Commit(p))
	}
	return p
}

func newRunner(t testing.TB, x *purge.Index, m purge.Store, l purge.Limits) *purge.Runner {
	r, err := purge.NewRunner(x, m, l)
	require.NoError(t, err)
	return r
}

func TestATickPurgesAtMostOneHundredJobs(t *testing.T) {
	x, m := populated(t, purge.Config{}, 250)
	r := newRunner(t, x, m, purge.PurgeAll())
	for _, want := range []struct {
		n    int
		more bool
	}{{100, true}, {100, true}, {50, false}, {0, false}} {
		p, err := r.Tick(t.Context(), start+300)
		require.NoError(t, err)
		require.Len(t, p.Jobs, want.n)
		require.Equal(t, want.more, p.More)
	}
	require.Empty(t, m.jobs)
	require.Equal(t, []string{
		"watermark", "tombstones", "unlink", "tombstones", "unlink", "tombstones", "unlink",
	}, m.calls, "the watermark is stored once, and first")
	require.Equal(t, jobid.ID(250), m.watermark)
}

func TestAPurgeOfNothingDoesNotCallTheStore(t *testing.T) {
	x, m := populated(t, purge.Config{TombstoneCount: jobstate.Some(0)}, 3)
	_, err := newRunner(t, x, m, purge.Limits{}).Tick(t.Context(), start+10)
	require.NoError(t, err)
	require.Empty(t, m.calls)
	_, err = newRunner(t, x, m, purge.PurgeAll()).Tick(t.Context(), start+10)
	require.NoError(t, err)
	require.Equal(t, []string{"watermark", "unlink"}, m.calls, "no tombstones are kept")
}

func TestAFailedStoreChangesNothingAndTheNextTickResumes(t *testing.T) {
	for _, op := range []string{"watermark", "tombstones", "unlink"} {
		told := 0
		x, m := populated(t, purge.Config{Purged: func(purge.Plan) { told++ }}, 5)
		r := newRunner(t, x, m, purge.PurgeAll())
		cause := errors.New("no space")
		m.fails = func(got string) error {
			if got == op {
				return cause
			}
			return nil
		}
		before := x.Stats()
		for range 2 {
			_, err := r.Tick(t.Context(), start+10)
			require.ErrorIs(t, err, cause)
			require.ErrorIs(t, err, purge.ErrStore)
			require.Contains(t, err.Error(), op)
			require.Equal(t, before, x.Stats())
			require.NoError(t, x.Check())
			require.Len(t, m.jobs, 5)
			require.Zero(t, told)
		}
		m.fails = nil
		p, err := r.Tick(t.Context(), start+11)
		require.NoError(t, err)
		require.Len(t, p.Jobs, 5)
		require.Equal(t, 1, told)
		require.Empty(t, m.jobs)
	}
}

func TestADoneContextStopsBeforeTheNextCall(t *testing.T) {
	for i, op := range []string{"", "watermark", "tombstones"} {
		x, m := populated(t, purge.Config{}, 5)
		r := newRunner(t, x, m, purge.PurgeAll())
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
		_, err := r.Tick(ctx, start+10)
		require.ErrorIs(t, err, context.Canceled)
		require.Len(t, m.calls, i, "the calls before %s", op)
		require.Equal(t, 5, x.Len())
		require.Zero(t, x.Stats().Leaving)
		_, err = r.Purge(ctx, start+10, purge.PurgeAll())
		require.ErrorIs(t, err, context.Canceled)
		_, err = r.PurgeIDs(ctx, start+10, 1)
		require.ErrorIs(t, err, context.Canceled)
		require.Len(t, m.calls, i)
	}
}

func TestWhatTheStoreHasRemovedIsCommittedThoughTheContextIsDone(t *testing.T) {
	x, m := populated(t, purge.Config{}, 5)
	ctx, cancel := context.WithCancel(t.Context())
	m.fails = func(got string) error {
		if got == "unlink" {
			cancel()
		}
		return nil
	}
	p, err := newRunner(t, x, m, purge.PurgeAll()).Tick(ctx, start+10)
	require.NoError(t, err)
	require.Len(t, p.Jobs, 5)
	require.Zero(t, x.Len())
}

func TestAPurgeByHandInTheMidstOfATickTakesOtherJobs(t *testing.T) {
	x, m := populated(t, purge.Config{}, 10)
	l := purge.PurgeAll()
	l.Batch = 4
	r := newRunner(t, x, m, l)
	m.fails = func(op string) error {
		if op != "unlink" {
			return nil
		}
		m.fails = nil
		_, err := r.PurgeIDs(t.Context(), start+20, 2)
		require.ErrorIs(t, err, purge.ErrLeaving)
		_, err = x.Pin(1, purge.Pin{Kind: purge.PinWaiter})
		require.ErrorIs(t, err, purge.ErrLeaving)
		p, err := r.Purge(t.Context(), start+20, purge.Limits{MaxCount: jobstate.Some(4)})
		require.NoError(t, err)
		require.Equal(t, []jobid.ID{5, 6}, p.IDs(), "those that leave do not count")
		p, err = r.PurgeIDs(t.Context(), start+20, 10)
		require.NoError(t, err)
		require.Equal(t, []jobid.ID{10}, p.IDs())
		return nil
	}
	p, err := r.Tick(t.Context(), start+20)
	require.NoError(t, err)
	require.Equal(t, []jobid.ID{1, 2, 3, 4}, p.IDs())
	require.True(t, p.More)
	require.Equal(t, 3, x.Len())
	require.Len(t, m.jobs, 3)
	require.NoError(t, x.Check())
}

// panics is a store that panics.
type panics struct{ *memory }

func (panics) Unlink(context.Context, []jobid.ID) (map[jobid.ID]error, error) { panic("oh") }

func TestAStoreThatPanicsLeavesNoClaim(t *testing.T) {
	x, m := populated(t, purge.Config{}, 5)
	r := newRunner(t, x, panics{m}, purge.PurgeAll())
	for range 2 {
		require.PanicsWithValue(t, "oh", func() { _, _ = r.Tick(t.Context(), start+10) })
		require.Zero(t, x.Stats().Leaving)
		require.NoError(t, x.Check())
	}
}

func TestARunnerNeedsABoundForItsBatches(t *testing.T) {
	x, m := populated(t, purge.Config{}, 1)
	for _, l := range []purge.Limits{
		{Batch: purge.NoBatch}, {Batch: -2}, {Batch: purge.MaxBatch + 1}, {MaxCount: jobstate.Some(-1)},
	} {
		_, err := purge.NewRunner(x, m, l)
		require.ErrorIs(t, err, purge.ErrLimits)
		_, err = newRunner(t, x, m, purge.Limits{}).Purge(t.Context(), start, l)
		require.ErrorIs(t, err, purge.ErrLimits)
	}
}

func TestAJobThatCannotBeRemovedStopsNoOther(t *testing.T) {
	told := 0
	var m *memory
	x, m := populated(t, purge.Config{Purged: func(p purge.Plan) {
		told += len(p.Jobs)
		require.False(t, m.stuck[2] && slices.Contains(p.IDs(), 2))
		require.Len(t, p.Tombstones, len(p.Jobs))
	}}, 10)
	l := purge.PurgeAll()
	l.Batch = 3
	r := newRunner(t, x, m, l)
	m.stuck[2] = true
	p, err := r.Tick(t.Context(), start+20)
	var job *purge.JobError
	require.ErrorAs(t, err, &job)
	require.Equal(t, jobid.ID(2), job.ID)
	require.ErrorIs(t, err, purge.ErrStore)
	require.ErrorIs(t, err, errStuck)
	require.EqualError(t, err, "purge: ƒ3: store failed: unlink: input/output error")
	require.Equal(t, []jobid.ID{1, 3}, p.IDs(), "what went")
	require.True(t, p.More)
	for range 3 {
		p, err = r.Tick(t.Context(), start+20)
		require.NoError(t, err)
	}
	require.False(t, p.More)
	require.Equal(t, 1, x.Len())
	require.Equal(t, 1, x.Stats().Stuck)
	require.Equal(t, 9, told)
	require.NoError(t, x.Check())

	now, delay := start+20, purge.RetryFirst.Seconds()
	for range 9 { // it is tried again, later each time
		_, err = r.Tick(t.Context(), now+eventlog.Timestamp(delay)-1)
		require.NoError(t, err)
		now += eventlog.Timestamp(delay)
		_, err = r.Tick(t.Context(), now)
		require.ErrorIs(t, err, errStuck)
		delay = min(2*delay, purge.RetryMost.Seconds())
		require.NoError(t, x.Check())
	}
	_, err = r.PurgeIDs(t.Context(), now, 2)
	require.ErrorIs(t, err, errStuck, "by id at once")
	delete(m.stuck, 2)
	p, err = r.PurgeIDs(t.Context(), now, 2)
	require.NoError(t, err)
	require.Len(t, p.Jobs, 1)
	require.Zero(t, x.Stats().Stuck)
	require.Zero(t, x.Len())
	require.NoError(t, x.Check())
}

func TestAStuckJobIsTriedAgainAfterAnAcceptedClockAndPinnedAsAnyOther(t *testing.T) {
	x, m := populated(t, purge.Config{}, 2)
	r := newRunner(t, x, m, purge.PurgeAll())
	m.stuck[1], m.stuck[2] = true, true
	_, err := r.Tick(t.Context(), start+20)
	require.ErrorIs(t, err, errStuck)
	_, err = x.Pin(1, purge.Pin{Kind: purge.PinWaiter})
	require.NoError(t, err)
	require.Equal(t, 1, x.Stats().Stuck)
	require.NoError(t, x.Check())
	_, err = x.Unpin(1, purge.Pin{Kind: purge.PinWaiter})
	require.NoError(t, err)
	clear(m.stuck)
	require.NoError(t, x.AcceptClock(start-1e6), "it does not wait for the wrong time")
	p, err := r.Tick(t.Context(), start-1e6)
	require.NoError(t, err)
	require.Len(t, p.Jobs, 2)
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
		x, err = purge.Recover(cfg, m.evidence())
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
				done := purge.Record{ID: id, Inactive: start + 50, Result: jobstate.ResultFailed}
				m.jobs[id] = &done
				require.NoError(t, x.Add(done))
			}
		}
	}
	restart()
	m.diesAt = diesAt
	now := start
	tick := func(l purge.Limits) {
		for {
			p, err := newRunner(t, x, m, l).Tick(t.Context(), now)
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
		j := purge.Record{ID: id, Inactive: now, Result: jobstate.ResultCompleted, Ran: true}
		if m.step() != nil {
			restart()
			continue
		}
		m.jobs[id] = &j
		require.NoError(t, x.Add(j))
		tick(purge.Limits{MaxCount: jobstate.Some(2), Batch: 2})
	}
	tick(purge.Limits{MaxCount: jobstate.Some(0), Batch: 2})
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
