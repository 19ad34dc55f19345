package pool_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/rset/pool"
)

func TestAllocationBudget(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	for _, different := range []bool{false, true} {
		p := clusterOf(t, 4096, different)
		budget := func(want float64, what string, f func()) {
			t.Helper()
			require.LessOrEqual(t, testing.AllocsPerRun(20, f), want, "%s, different=%v", what, different)
		}
		one, all, more := byNode(t, "1", "32"), byNode(t, "4096", "1"), byNode(t, "4097", "1")
		budget(20, "alloc and free of one node", func() {
			r, err := p.Alloc(1, one, 100)
			require.NoError(t, err)
			_, err = p.Free(1, r, true)
			require.NoError(t, err)
		})
		budget(20, "Clone", func() { p.Clone() })
		budget(4, "Feasible", func() { _ = p.Feasible(one) })
		_, err := p.Alloc(2, requestOf(t, specText("["+wholeNodes("1")+"]", "")), 100)
		require.NoError(t, err)
		budget(40, "Alloc when busy", func() {
			_, err := p.Alloc(3, all, 100)
			require.ErrorIs(t, err, pool.ErrBusy)
		})
		require.ErrorIs(t, p.Feasible(more), pool.ErrInfeasible)
		budget(2, "Holder", func() { p.Holder(2) })
	}
}

// A job on all of many equal nodes costs as one on a few.
func TestEqualNodesCostAsOne(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	var allocs [2]float64
	for i, n := range []int{64, 16384} {
		p := clusterOf(t, n, false)
		q := requestOf(t, specText("["+wholeNodes(fmt.Sprint(n))+"]", ""))
		allocs[i] = testing.AllocsPerRun(10, func() {
			r, err := p.Alloc(1, q, 100)
			require.NoError(t, err)
			require.Equal(t, n, r.Len())
			_, err = p.Free(1, r, true)
			require.NoError(t, err)
		})
	}
	require.InDelta(t, allocs[0], allocs[1], 2)
	require.LessOrEqual(t, allocs[1], 20.0)
}
