package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
)

// Job 1 has three of four nodes for 100 s, and 2 wants all. Job 3 takes too long for
// the last node, and 4 does not.
func TestPolicies(t *testing.T) {
	nodes, err := rset.Parse([]byte(`{"version":1,"execution":{"R_lite":[{"rank":"0-3","children":{"core":"0"}}]}}`))
	require.NoError(t, err)
	for policy, want := range map[string][]jobid.ID{fifo: {1}, easy: {1, 4}, conservative: {1, 4}} {
		s, err := newScheduler(policy, nodes, new(idset.Set))
		require.NoError(t, err)
		for i, j := range []jobspec.Job{{Nodes: 3, Duration: 100}, {Nodes: 4, Duration: 100}, {Nodes: 1, Duration: 200}, {Nodes: 1, Duration: 50}} {
			j.Exclusive, j.Command, j.Duration = true, []string{"a"}, j.Duration*time.Second
			spec, err := jobspec.New(j)
			require.NoError(t, err)
			text, err := spec.MarshalJSON()
			require.NoError(t, err)
			require.NoError(t, s.dispatch(alloc.Request{JobInfo: alloc.JobInfo{ID: jobid.ID(i + 1), Priority: 16}, Jobspec: text}))
		}
		responses, err := s.decide(time.Unix(1000, 0))
		require.NoError(t, err)
		var got []jobid.ID
		for _, r := range responses {
			got = append(got, r.ID)
		}
		require.Equal(t, want, got, policy)
		require.Len(t, s.waiting, 4-len(want))
	}
}
