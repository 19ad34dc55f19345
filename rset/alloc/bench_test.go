package alloc_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset/alloc"
)

// full returns a queue of n jobs with a scheduler that takes limit requests;
// 0: there is none. Priorities repeat, ids are as a generator makes them.
func full(n, limit int) *alloc.Queue { return fill(alloc.NewQueue(alloc.Config{}), n, limit) }

func fill(q *alloc.Queue, n, limit int) *alloc.Queue {
	for i := range n {
		if _, err := q.Add(nil, alloc.JobInfo{ID: idOf(i), Priority: priorityOf(i)}); err != nil {
			panic(err)
		}
	}
	if limit > 0 {
		q.Hello(nil)
		if _, _, err := q.Ready(nil, alloc.Ready{Limit: limit}); err != nil {
			panic(err)
		}
	}
	return q
}

func idOf(i int) jobid.ID { return jobid.ID(i+1) << 24 }

func priorityOf(i int) uint32 { return uint32(uint64(i)*7919%1000 + 2) }

// steps are operations that leave as many jobs as there were. Each gets the
// number of its call.
func steps(q *alloc.Queue, n int) map[string]func(i int) []alloc.Send {
	var dst []alloc.Send
	keep := func(out []alloc.Send, err error) []alloc.Send {
		if err != nil {
			panic(err)
		}
		dst = out[:0]
		return out
	}
	one := make([]alloc.Priority, 1)
	next := n
	return map[string]func(i int) []alloc.Send{
		// A job comes in the middle of the queue and is canceled.
		"add,cancel": func(i int) []alloc.Send {
			id := idOf(n + i)
			keep(q.Add(dst, alloc.JobInfo{ID: id, Priority: priorityOf(i*31) / 2}))
			return keep(q.Cancel(dst, id))
		},
		"prioritize": func(i int) []alloc.Send {
			one[0] = alloc.Priority{ID: idOf(int(uint64(i) * 7919 % uint64(n))), Priority: priorityOf(i) / 2}
			return keep(q.Prioritize(dst, one))
		},
		"stop,start": func(i int) []alloc.Send {
			id := idOf(int(uint64(i) * 7919 % uint64(n)))
			keep(q.Stop(dst, id))
			return keep(q.Start(dst, id))
		},
		// The first request is denied, the next job is asked for, and a new job
		// comes.
		"answer,add": func(int) []alloc.Send {
			for j := range q.List(alloc.StateSent) {
				out, _, err := q.Response(dst, alloc.Response{ID: j.ID, Type: alloc.ResponseDeny})
				keep(out, err)
				break
			}
			next++
			return keep(q.Add(dst, alloc.JobInfo{ID: idOf(2*n + next), Priority: 1}))
		},
		// A better job comes, the last request is recalled and answered, the
		// better job is asked for and canceled, and the other one is asked for
		// again.
		"recall": func(int) []alloc.Send {
			next++
			id := idOf(2*n + next)
			sends := keep(q.Add(dst, alloc.JobInfo{ID: id, Priority: 1 << 20}))
			if len(sends) == 1 && sends[0].Topic == alloc.TopicCancel {
				out, _, err := q.Response(dst, alloc.Response{ID: sends[0].Job.ID, Type: alloc.ResponseCancel})
				keep(out, err)
			}
			keep(q.Cancel(dst, id))
			out, _, err := q.Response(dst, alloc.Response{ID: id, Type: alloc.ResponseCancel})
			return keep(out, err)
		},
	}
}

// comparisons returns how many jobs an operation compares on average, but for
// those in the short lists of what is sent, which begin anew with a hello.
func comparisons(name string, n, limit int) float64 {
	var total int
	q := alloc.NewQueue(alloc.Config{})
	q.CountComparisons(&total)
	fill(q, n, limit)
	step := steps(q, n)[name]
	const calls = 2000
	total = 0
	for i := range calls {
		step(i)
	}
	return float64(total) / calls
}

// What O(log n) is, without a clock: 64 times as many jobs are 1.6 times as
// many bits, and no operation compares much more than that.
func TestEveryOperationComparesInTheLogarithmOfTheJobs(t *testing.T) {
	for name, limit := range map[string]int{"add,cancel": 8, "prioritize": 0, "stop,start": 0, "answer,add": 8, "recall": 8} {
		few, many := comparisons(name, 1<<10, limit), comparisons(name, 1<<16, limit)
		t.Logf("%s: %.0f comparisons of 1024 jobs, %.0f of 65536", name, few, many)
		require.Greater(t, few, 10.0, "it counts")
		require.Less(t, many/few, 2.2, name)
		require.Less(t, many, 16*16.0, name)
	}
}
