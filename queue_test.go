package joblife_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/rset/alloc"
)

// As flux-core's queue stop --nocheckpoint.
func TestAVolatileStopEndsWithARestart(t *testing.T) {
	s := silent(t, joblife.Config{Queues: []string{"a", "b"}})
	s.step(joblife.StartQueue{Queue: "b", Reason: "broken"})
	queue := func(name string, want joblife.QueueStatus) {
		t.Helper()
		got, _ := s.m.Queue(name)
		require.Equal(t, want, got)
	}
	n := len(s.store)
	s.step(joblife.StartQueue{Queue: "a", Reason: "the end", Volatile: true})
	s.step(joblife.StartQueue{Queue: "b", Start: true, Volatile: true})
	require.Len(t, s.store, n)
	queue("a", joblife.QueueStatus{Enabled: true, StopReason: "the end"})
	queue("b", joblife.QueueStatus{Enabled: true, Started: true})
	s.submit(jobspec.Job{Nodes: 1, Queue: "a"})
	require.Empty(t, sent[alloc.Request](s))
	s.step(joblife.EnableQueue{Queue: "a", Reason: "full"}) // whose record has the start too
	snap := slices.Collect(s.m.Snapshot())
	for _, records := range [][]joblife.Record{s.store, snap} {
		s.restore(records)
		queue("a", joblife.QueueStatus{Started: true, DisableReason: "full"})
		queue("b", joblife.QueueStatus{Enabled: true, StopReason: "broken"})
	}
	s.hello()
	require.Len(t, sent[alloc.Request](s), 1)
	s.step(joblife.StartQueue{Queue: "a", Reason: "for good"})
	s.restart()
	queue("a", joblife.QueueStatus{StopReason: "for good", DisableReason: "full"})
}

func TestNamedQueuesMayBeginStopped(t *testing.T) {
	s := silent(t, joblife.Config{Queues: []string{"a", "b"}, QueuesStopped: true})
	queue := func(name string, started bool) {
		t.Helper()
		got, ok := s.m.Queue(name)
		require.True(t, ok)
		require.Equal(t, joblife.QueueStatus{Enabled: true, Started: started}, got)
	}
	queue("a", false)
	s.submit(jobspec.Job{Nodes: 1, Queue: "a"})
	require.Empty(t, sent[alloc.Request](s))
	s.step(joblife.StartQueue{Queue: "a", Start: true})
	require.Len(t, sent[alloc.Request](s), 1)
	s.restart()
	queue("a", true)
	queue("b", false)
	s.step(joblife.Reload{Config: joblife.Config{}})
	queue("", true)
	s = silent(t, joblife.Config{QueuesStopped: true})
	queue("", true)
}
