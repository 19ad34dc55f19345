package pool_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/rset/pool"
)

func TestNeedsAskAsAJobspecDoes(t *testing.T) {
	gpus := vertex("gpu", "1")
	for _, c := range []struct {
		needs pool.Needs
		spec  string
	}{
		{pool.Needs{Cores: 3}, specText(shape("slot", "1", vertex("core", "3")), "")},
		{pool.Needs{Slots: 5, Cores: 2, GPUs: 1}, specText(shape("slot", "5", vertex("core", "2"), gpus), "")},
		{pool.Needs{Nodes: 2, Slots: 3, Cores: 4}, specText(shape("node", "2", vertex("slot", "3", vertex("core", "4"))), "")},
		{pool.Needs{Nodes: 2, Cores: 4, GPUs: 1}, specText(shape("node", "2", vertex("slot", "1", vertex("core", "4"), gpus)), "")},
		{
			pool.Needs{Nodes: 2, Cores: 4, Whole: true},
			specText("["+whole(vertex("node", "2", vertex("slot", "1", vertex("core", "4"))))+"]", ""),
		},
	} {
		q, err := c.needs.Request()
		require.NoError(t, err)
		want := requestOf(t, c.spec)
		require.Equal(t, want.Asked(), q.Asked())
		require.Equal(t, want.String(), q.String())
	}
	q, err := pool.Needs{Nodes: 4, Duration: time.Hour}.Request()
	require.NoError(t, err)
	require.Equal(t, "4 whole nodes", q.String())
	require.Equal(t, time.Hour, q.Duration())

	p := upPool(t, "rank[0-3]/core[0-3],gpu0 n[0-3]")
	r, err := p.Alloc(1, q, 100)
	require.NoError(t, err)
	require.Equal(t, "rank[0-3]/core[0-3],gpu0", r.String())
	require.EqualValues(t, 3700, r.Expiration())
}

func TestNeedsThatMakeNoRequestAreRefused(t *testing.T) {
	for _, n := range []pool.Needs{
		{}, {GPUs: 1}, {Slots: 2}, {Nodes: -1}, {Nodes: 1, Slots: -1}, {Cores: -1}, {Cores: 1, GPUs: -1},
		{Cores: 1, Duration: -1}, {Cores: 1, Whole: true}, {Nodes: 1, GPUs: 1},
	} {
		q, err := n.Request()
		require.Nil(t, q)
		require.ErrorIs(t, err, pool.ErrRequest, "%+v", n)
	}
	for _, n := range []pool.Needs{
		{Nodes: jobspec.MaxCount, Slots: jobspec.MaxCount, Cores: jobspec.MaxCount},
		{Cores: 1, Slots: jobspec.MaxCount, GPUs: jobspec.MaxCount, Nodes: jobspec.MaxCount},
	} {
		_, err := n.Request()
		require.ErrorIs(t, err, pool.ErrLimit, "%+v", n)
	}
}
