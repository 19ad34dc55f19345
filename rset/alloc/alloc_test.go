package alloc_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/internal/race"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset/alloc"
)

func TestAllocationBudgetOfQueues(t *testing.T) {
	race.Skip(t)
	const n = 4096
	for name, want := range map[string]float64{
		"add,cancel": 0, "prioritize": 0, "stop,start": 0, "answer,add": 0, "recall": 1,
	} {
		q := full(n, 8)
		if name == "prioritize" || name == "stop,start" {
			q = full(n, 0)
		}
		step := steps(q, n)[name]
		i := 0
		got := testing.AllocsPerRun(2000, func() {
			step(i)
			i++
		})
		require.LessOrEqual(t, got, want, name)
	}
	q := full(n, 8)
	require.Zero(t, testing.AllocsPerRun(10, func() {
		_ = q.Stats()
		for range q.States() {
			continue
		}
		for range q.List(alloc.StatePending) {
			continue
		}
	}))
	// A job costs its record, and its share of the map and of two trees.
	jobs := testing.AllocsPerRun(1, func() { full(n, 8) })
	require.Less(t, jobs/n, 1.2)
	var sends []alloc.Send
	var back []jobid.ID
	session := testing.AllocsPerRun(5, func() {
		back = q.Hello(back[:0])
		sends, _, _ = q.Ready(sends[:0], alloc.Ready{})
		back = q.Lost(back[:0])
	})
	require.Less(t, session/n, 0.3)
}

// jobspec is one of usual size.
const jobspec = `{"resources":[{"type":"node","count":4,"with":[{"type":"slot","count":1,"with":[{"type":"core","count":4}],"label":"task"}]}],` +
	`"tasks":[{"command":["true"],"slot":"task","count":{"per_slot":1}}],"attributes":{"system":{"duration":0.0}},"version":1}`

func TestAllocationBudgetOfMessages(t *testing.T) {
	race.Skip(t)
	dst := make([]byte, 0, 4096)
	request := alloc.Request{JobInfo: alloc.JobInfo{ID: 1, Submit: 5}, Jobspec: []byte(jobspec)}
	text, err := alloc.Append(nil, request)
	require.NoError(t, err)
	line, err := alloc.AppendMessage(nil, alloc.TopicAlloc, request)
	require.NoError(t, err)
	cancel := []byte(`{"id":1}`)
	for _, c := range []struct {
		what string
		want float64
		f    func()
	}{
		{"write a request", 0, func() { _, _ = alloc.Append(dst, request) }},
		{"write a cancel", 0, func() { _, _ = alloc.Append(dst, alloc.Cancel{ID: 1}) }},
		{"read a request", 3, func() { _, _ = alloc.Parse[alloc.Request](text) }},
		{"read a cancel", 1, func() { _, _ = alloc.Parse[alloc.Cancel](cancel) }},
		{"read a line", 3, func() { _, _ = alloc.ParseLine(line) }},
	} {
		require.LessOrEqual(t, testing.AllocsPerRun(100, c.f), c.want, c.what)
	}
}
