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

// machine returns nodes of four cores each.
func machine(t *testing.T, nodes uint32) *rset.R {
	t.Helper()
	r, err := rset.New(rset.Config{Entries: []rset.Entry{{
		Ranks: idset.Range(0, nodes-1), Children: map[string]*idset.Set{"core": idset.Range(0, 3)},
	}}})
	require.NoError(t, err)
	return r
}

// ask returns the request of a job for whole nodes, with constraints if there are some.
func ask(t *testing.T, id jobid.ID, nodes int64, takes time.Duration, constraints string) alloc.Request {
	t.Helper()
	spec, err := jobspec.New(jobspec.Job{Nodes: nodes, Exclusive: true, Command: []string{"a"}, Duration: takes})
	require.NoError(t, err)
	if constraints != "" {
		spec, err = spec.Update("attributes.system.constraints", []byte(constraints))
		require.NoError(t, err)
	}
	text, err := spec.MarshalJSON()
	require.NoError(t, err)
	return alloc.Request{JobInfo: alloc.JobInfo{ID: id, Priority: 16}, Jobspec: text}
}

// Job 1 has three of four nodes for 100 s, and 2 wants all. Job 3 takes too long for
// the last node, and 4 does not.
func TestPolicies(t *testing.T) {
	for policy, want := range map[string][]jobid.ID{fifo: {1}, easy: {1, 4}, conservative: {1, 4}} {
		s, err := newScheduler(policy, machine(t, 4), new(idset.Set))
		require.NoError(t, err)
		for _, r := range []alloc.Request{
			ask(t, 1, 3, 100*time.Second, ""), ask(t, 2, 4, 100*time.Second, ""), ask(t, 3, 1, 200*time.Second, ""), ask(t, 4, 1, 50*time.Second, ""),
		} {
			require.NoError(t, s.dispatch(r))
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
