package main

import (
	"context"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

// Jobs that start count among those that hybrid considers. So with one no job overtakes another.
func TestHybridConsidersItsDepth(t *testing.T) {
	s, _ := page(t, "-jobs", "150", "-nodes", "32", "-seeds", "1", "-load", "2", "-prolog", "0", "-policy", "hybrid", "-depth", "1")
	require.IsNonDecreasing(t, each(s.runs[0][wholeJob].counted(1, maxNodes), func(j *job) float64 { return float64(j.began) }))
}

// User 1 has a node and was first in the queue. With fair share, user 2 goes first.
func TestFairLetsThoseWithFewerNodesGoFirst(t *testing.T) {
	work := []arrival{
		{submit: 0, run: 1000, limit: 1000, size: 1, user: 1}, {submit: 0, run: 100, limit: 100, size: 1, user: 3},
		{submit: 1, run: 50, limit: 50, size: 1, user: 1}, {submit: 2, run: 50, limit: 50, size: 1, user: 2},
	}
	for policy, want := range map[string][]seconds{"fifo": {100, 150}, "fair": {150, 100}} {
		o, err := parse([]string{"-nodes", "2", "-prolog", "0", "-epilog", "0", "-policy", policy, "-html", ""}, io.Discard)
		require.NoError(t, err)
		c, err := newCluster(o, work, wholeJob, 1)
		require.NoError(t, err)
		require.NoError(t, c.play(context.Background(), func(int) {}))
		require.Equal(t, want, []seconds{c.jobs[3].began, c.jobs[4].began}, policy)
	}
}
