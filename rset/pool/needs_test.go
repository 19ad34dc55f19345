package pool_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/rset/pool"
)

func TestNeedsAskAsAJobspecDoes(t *testing.T) {
	small := rapid.Int64Range(0, 5)
	rapid.Check(t, func(t *rapid.T) {
		n := pool.Needs{
			Nodes: small.Draw(t, "nodes"), Slots: small.Draw(t, "slots"), Cores: small.Draw(t, "cores"), GPUs: small.Draw(t, "gpus"),
			Duration: time.Duration(rapid.Int64Range(0, 1e12).Draw(t, "duration")),
		}
		n.Exclusive = n.Nodes > 0 && rapid.Bool().Draw(t, "exclusive")
		spec, err := jobspec.New(jobspec.Job{
			Nodes: n.Nodes, Slots: n.Slots, Cores: n.Cores, GPUs: n.GPUs, Exclusive: n.Exclusive,
			Duration: n.Duration, Command: []string{"app"},
		})
		require.NoError(t, err)
		want, err := pool.NewRequest(spec)
		require.NoError(t, err)
		q, err := n.Request()
		require.NoError(t, err)
		require.Equal(t, want.Asked(), q.Asked())
		require.Equal(t, want.String(), q.String())
		require.InDelta(t, want.Duration(), q.Duration(), 1000, "a jobspec has seconds as a float")
	})
}

func TestNeedsThatMakeNoRequestAreRefused(t *testing.T) {
	for _, n := range []pool.Needs{
		{Nodes: -1}, {Slots: -1}, {Cores: math.MinInt64}, {GPUs: -1}, {Duration: -1}, {Exclusive: true},
	} {
		q, err := n.Request()
		require.Nil(t, q)
		require.ErrorIs(t, err, pool.ErrRequest, "%+v", n)
	}
	for _, n := range []pool.Needs{
		{Nodes: jobspec.MaxCount + 1}, {GPUs: math.MaxInt64},
		{Nodes: jobspec.MaxCount, Slots: jobspec.MaxCount, Cores: jobspec.MaxCount},
	} {
		_, err := n.Request()
		require.ErrorIs(t, err, pool.ErrLimit, "%+v", n)
	}
}
