package main

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
	"github.com/joblife/joblife/rset/pool"
)

// BenchmarkBackfill is a cluster without lines: requests, frees and decisions alone. 64
// jobs wait, nodes are shared, and a job ends after a half or all of its time limit. The
// policies take turns, and the least cost of each counts: others use the machine too.
func BenchmarkBackfill(b *testing.B) {
	const jobs = 3000
	for _, nodes := range []int{64, 1024, 16384} {
		b.Run(fmt.Sprint("nodes=", nodes), func(b *testing.B) {
			cost := map[string]float64{}
			for b.Loop() {
				for _, policy := range []string{"fifo", "easy"} {
					c := cluster(b, policy, nodes, jobs).Seconds() / jobs
					if least, ok := cost[policy]; !ok || c < least {
						cost[policy] = c
					}
				}
			}
			b.ReportMetric(1/cost["fifo"], "fifo-jobs/s")
			b.ReportMetric(1/cost["easy"], "easy-jobs/s")
			b.ReportMetric(cost["easy"]/cost["fifo"], "easy/fifo")
		})
	}
}

// ends are the running jobs of a cluster, by when they end.
type ends []ending

type ending struct {
	at eventlog.Timestamp
	id jobid.ID
	r  *rset.R
}

func (e ends) Len() int { return len(e) }
func (e ends) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].id < e[j].id
}
func (e ends) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *ends) Push(x any)   { *e = append(*e, x.(ending)) }
func (e *ends) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

const begin = eventlog.Timestamp(1e6)

// cluster runs jobs and returns the time that the scheduler took.
func cluster(b *testing.B, policy string, nodes, jobs int) time.Duration {
	var running ends
	now, rng := begin, rand.New(rand.NewPCG(7, 7))
	length := map[jobid.ID]float64{} // of what the limit is
	s := scheduler{
		policy: newPolicies[policy](options{depth: 100}),
		logf:   func(string, ...any) {},
		jobs:   map[jobid.ID]*job{}, most: maxJobs,
		answer: func(a alloc.Response) {
			require.NotEqual(b, alloc.ResponseDeny, a.Type)
			if a.Type == alloc.ResponseSuccess {
				limit := float64(a.R.Expiration() - a.R.Start())
				heap.Push(&running, ending{now + eventlog.Timestamp(length[a.ID]*limit), a.ID, a.R})
				delete(length, a.ID)
			}
		},
	}
	ranks := idset.Range(0, uint32(nodes-1))
	inventory, err := rset.New(rset.Config{Entries: []rset.Entry{{Ranks: ranks, Children: map[string]*idset.Set{"core": idset.Range(0, 47)}}}})
	require.NoError(b, err)
	s.now = now
	require.NoError(b, s.acquire(pool.Acquire{Resources: inventory, Change: pool.Change{Up: ranks}}))
	require.NoError(b, s.adopted())
	var spent time.Duration
	timed := func(f func() error) {
		s.now = now
		start := time.Now()
		err := f()
		spent += time.Since(start)
		require.NoError(b, err)
	}
	for id := jobid.ID(1); id <= jobid.ID(jobs) || len(running) > 0; {
		if id <= jobid.ID(jobs) && len(s.waiting) < 64 {
			j := jobspec.Job{Command: []string{"a"}, Slots: 1 + rng.Int64N(64), Cores: 1, Duration: time.Duration(1+rng.IntN(240)) * time.Minute}
			if rng.IntN(2) == 0 { // some nodes, at most an eighth of all
				j.Nodes, j.Slots, j.Cores = 1+rng.Int64N(max(int64(nodes)/8>>rng.IntN(5), 1)), 1, 8+rng.Int64N(40)
			}
			length[id] = 0.5 + rng.Float64()/2
			q := alloc.Request{JobInfo: alloc.JobInfo{ID: id, Priority: 16, Submit: now}, Jobspec: []byte(specOf(j, ""))}
			timed(func() error { return s.request(q) })
			id++
			continue
		}
		e := heap.Pop(&running).(ending)
		now = e.at
		timed(func() error { return s.free(alloc.Free{ID: e.id, R: e.r, Final: true}) })
	}
	b.ReportMetric(float64(now-begin), policy+"-makespan-s")
	return spent
}
