package pool_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/rset/pool"
)

// What a pool has learned of a plan in the way of other jobs does not outlive the plan.
func TestARefusalHoldsAsLongAsItsReason(t *testing.T) {
	long := needs(t, jobspec.Job{Nodes: 1, Cores: 4, Duration: 500e9})
	head := needs(t, jobspec.Job{Nodes: 2, Cores: 4, Duration: 500e9})
	planned := func() *pool.Pool { // job 2 is to have both nodes when job 1 ends
		p := upPool(t, "rank[0-1]/core[0-3] n[0-1]")
		alloc(t, p, 1, needs(t, jobspec.Job{Nodes: 1, Cores: 4, Duration: 100e9}))
		at, err := p.Plan(2, head, 100)
		require.NoError(t, err)
		require.EqualValues(t, 200, at)
		_, err = p.Alloc(3, long, 100)
		require.ErrorIs(t, err, pool.ErrBusy)
		require.True(t, p.Lacks(long, 600), "no other search looks for it again")
		require.True(t, p.Lacks(needs(t, jobspec.Job{Nodes: 1, Cores: 5}), 600), "nor for more cores than are free")
		require.NoError(t, p.Check())
		return p
	}
	p := planned()
	_, err := p.Alloc(4, needs(t, jobspec.Job{Nodes: 1, Cores: 4, Duration: 100e9}), 100)
	require.NoError(t, err, "it ends in time")
	p = planned()
	require.True(t, p.Unplan(2))
	alloc(t, p, 3, long)
	p = planned()
	_, err = p.Free(1, nil, true)
	require.NoError(t, err)
	alloc(t, p, 2, head)
}

func TestARefusalForOneKindIsNoneForAnother(t *testing.T) {
	p := upPool(t, "rank0/core[0-3],gpu0 rank1/core[0-3] n[0-1]")
	_, err := p.Alloc(1, requestOf(t, specText(shape("node", "2", vertex("slot", "1", vertex("core", "2"), vertex("gpu", "1"))), "")), 100)
	require.Error(t, err)
	alloc(t, p, 2, byNode(t, "2", "2"))
}

func TestAnEarlierEndLeavesMoreBesideAPlan(t *testing.T) {
	p := upPool(t, "rank0/core[0-7] n0")
	alloc(t, p, 1, needs(t, jobspec.Job{Nodes: 1, Cores: 4, Duration: 100e9}))
	alloc(t, p, 2, needs(t, jobspec.Job{Nodes: 1, Cores: 2, Duration: 900e9}))
	_, err := p.Plan(3, needs(t, jobspec.Job{Nodes: 1, Cores: 5, Duration: 10e9}), 100)
	require.NoError(t, err)
	long := needs(t, jobspec.Job{Nodes: 1, Cores: 2, Duration: 500e9})
	_, err = p.Alloc(4, long, 100)
	require.ErrorIs(t, err, pool.ErrBusy)
	require.NoError(t, p.SetExpiration(2, 150))
	alloc(t, p, 4, long)
}
