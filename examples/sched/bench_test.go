package main

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
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

// An ending is a running job of a cluster, and when it ends.
type ending struct {
	at eventlog.Timestamp
	id jobid.ID
	r  *rset.R
}

const begin = eventlog.Timestamp(1e6)

// cluster runs jobs and returns the time that the scheduler took.
func cluster(b *testing.B, policy string, nodes, jobs int) time.Duration {
	var running []ending // in order, the first at the end
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
				e := ending{now + eventlog.Timestamp(length[a.ID]*limit), a.ID, a.R}
				i, _ := slices.BinarySearchFunc(running, e, func(a, b ending) int {
					return cmp.Or(cmp.Compare(b.at, a.at), cmp.Compare(b.id, a.id))
				})
				running = slices.Insert(running, i, e)
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
		e := running[len(running)-1]
		running = running[:len(running)-1]
		now = e.at
		timed(func() error { return s.free(alloc.Free{ID: e.id, R: e.r, Final: true}) })
	}
	b.ReportMetric(float64(now-begin), policy+"-makespan-s")
	return spent
}
