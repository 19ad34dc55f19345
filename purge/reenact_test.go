package purge_test

import (
	"math/bits"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/purge"
)

// comparisons returns how often jobs are compared per job that is added at the end
// and per job that is purged, where n jobs stay.
func comparisons(t *testing.T, n int) float64 {
	jobs := makeJobs(n + 5000)
	x, err := purge.Recover(purge.Config{TombstoneCount: jobstate.Some(0)}, purge.Snapshot{Jobs: jobs[:n]})
	require.NoError(t, err)
	before := x.Compared()
	for _, j := range jobs[n:] {
		require.NoError(t, x.Add(j))
		if x.Len() < n+100 {
			continue
		}
		require.Len(t, commit(t, x, j.Inactive, count(n)).Jobs, 100)
	}
	return float64(x.Compared()-before) / 5000
}

// flux-core#4286 and #6419: throughput fell with the number of inactive jobs, as a
// list was scanned, from the wrong end even.
// PU-2.
func TestTheCostOfAJobGrowsWithTheLogarithmOfThoseThere(t *testing.T) {
	small, large := comparisons(t, 1<<10), comparisons(t, 1<<16)
	t.Logf("%.1f comparisons per job with 2^10, %.1f with 2^16", small, large)
	require.Less(t, large/small, 16.0/10*1.25)
	require.Less(t, large, 5.0*16)
}

// PU-6, flux-core#4300: the greatest id was purged, and came back after a crash. Also
// see TestIdsNeverComeBackWhereverTheStoreDies.
func TestTheWatermarkIsStoredBeforeTheJobThatProvesItGoes(t *testing.T) {
	x, m := populated(t, purge.Config{TombstoneCount: jobstate.Some(0)}, 4)
	p, err := purgeIDs(t.Context(), x, m, start+10, 4)
	require.NoError(t, err)
	require.Equal(t, jobid.ID(4), p.Watermark)
	require.Equal(t, []string{"prepare", "unlink"}, m.calls)
	p, err = tick(t.Context(), x, m, start+10, count(0))
	require.NoError(t, err)
	require.Equal(t, jobid.ID(3), p.Watermark, "no greater than that of a job that goes")
	again, err := purge.Recover(purge.Config{}, m.snapshot())
	require.NoError(t, err)
	require.Equal(t, jobid.ID(4), again.Watermark())
}

// flux-core#4711, #4801 and #5047: a purge of an active job made statistics wrong,
// and said "no such file".
func TestAnErrorTellsWhyAJobCannotBePurgedByID(t *testing.T) {
	x, m := populated(t, purge.Config{Active: func(id jobid.ID) (jobstate.State, bool) { return jobstate.StateRun, id == 77 }}, 3)
	_, err := x.Pin(2, purge.Pin{Kind: purge.PinHousekeeping, By: "rank 3"})
	require.NoError(t, err)
	_, err = purgeIDs(t.Context(), x, m, start+10, 3)
	require.NoError(t, err)
	before := x.Stats()
	for id, want := range map[jobid.ID]string{
		77:  `purge: ƒ2L: job is active: RUN`,
		2:   `purge: ƒ3: job is pinned by housekeeping "rank 3"`,
		3:   `purge: ƒ4: job was purged: completed`,
		100: `purge: ƒ2j: no such job`,
	} {
		_, err := purgeIDs(t.Context(), x, m, start+10, 1, id)
		require.EqualError(t, err, want)
	}
	require.Equal(t, before, x.Stats())
	_, err = x.PlanIDs(make([]jobid.ID, purge.MaxBatch+1)...)
	require.EqualError(t, err, "purge: too many ids: 1001, the limit is 1000")
	_, err = x.ClaimIDs(0, 1)
	require.ErrorIs(t, err, purge.ErrClock)
}

// flux-core#3611: who waited for a job that was purged waited for ever; #3702 and
// #4287: a dependency on a job that ended long ago.
func TestAPurgedJobStillAnswers(t *testing.T) {
	x, m := populated(t, purge.Config{}, 2)
	_, err := tick(t.Context(), x, m, start+10, count(1))
	require.NoError(t, err)
	j, ok := x.Ended(1)
	require.True(t, ok)
	require.Equal(t, jobstate.ResultCompleted, j.Result)
	require.Equal(t, start, j.Inactive)
	require.ErrorIs(t, x.Add(j), purge.ErrPurged, "ids do not come back")
	x, err = purge.Recover(purge.Config{}, m.snapshot())
	require.NoError(t, err)
	again, ok := x.Ended(1)
	require.True(t, ok)
	require.Equal(t, j, again)
	_, ok = x.Ended(3)
	require.False(t, ok)
}

// A restart with a backlog in any order, which once was quadratic: the jobs are
// sorted, and the tree is filled at its end.
// PU-2.
func TestABacklogInAnyOrderIsBuiltByComparingLittle(t *testing.T) {
	const n = 1 << 15
	jobs := makeJobs(n)
	for i := range jobs { // an order that is neither
		k := i * 7919 % n
		jobs[i], jobs[k] = jobs[k], jobs[i]
	}
	x, err := purge.Recover(purge.Config{}, purge.Snapshot{Jobs: jobs})
	require.NoError(t, err)
	require.NoError(t, x.Check())
	require.Less(t, x.Compared(), uint64(2*n*bits.Len(n)))
}
