package sched_test

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
	"github.com/joblife/joblife/internal/bomb"
	"github.com/joblife/joblife/internal/race"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
	"github.com/joblife/joblife/rset/sched"
)

// saturated returns a scheduler with so many jobs that wait for nodes: all are in use, and
// as one job ends another starts. step ends one, which is a decision.
func saturated(t require.TestingT, policy sched.Policy, jobs, nodes int) (step func() (started int)) {
	s := begun(t, sched.Config{Policy: policy}, machine(t, nodes, 8))
	rng := rand.New(rand.NewPCG(1, 2))
	specs := make(map[[2]int64][]byte)
	next, now := jobid.ID(1), eventlog.Timestamp(1e6)
	come := func() {
		size := 1 + rng.Int64N(max(int64(nodes)/8>>rng.IntN(6), 1))
		hours := 1 + rng.Int64N(24)
		text, ok := specs[[2]int64{size, hours}]
		if !ok {
			text = specOf(t, jobspec.Job{Nodes: size, Exclusive: true, Duration: time.Duration(hours) * time.Hour})
			specs[[2]int64{size, hours}] = text
		}
		require.NoError(t, s.Handle(alloc.Request{JobInfo: alloc.JobInfo{ID: next, Priority: 16}, Jobspec: text}))
		next++
	}
	var running []alloc.Response
	decide := func() int {
		out := s.Decide(now)
		running = append(running, out...)
		return len(out)
	}
	for s.Len() < jobs {
		come()
		if s.Len()%64 == 0 || s.Len() == jobs {
			decide()
		}
	}
	return func() int {
		now += 10
		i := rng.IntN(len(running))
		a := running[i]
		running[i] = running[len(running)-1]
		running = running[:len(running)-1]
		if err := s.Handle(alloc.Free{ID: a.ID, R: a.R, Final: true}); err != nil {
			require.NoError(t, err)
		}
		for s.Len() < jobs {
			come()
		}
		return decide()
	}
}

func BenchmarkDecide(b *testing.B) {
	for _, policy := range []sched.Policy{sched.FIFO{}, sched.EASY{}, sched.Conservative{Depth: 30}} {
		for _, jobs := range []int{10, 1000, 100_000} {
			for _, nodes := range []int{64, 16_384} {
				b.Run(fmt.Sprintf("%T/jobs=%d/nodes=%d", policy, jobs, nodes), func(b *testing.B) {
					step := saturated(b, policy, jobs, nodes)
					started := 0
					b.ReportAllocs()
					for b.Loop() {
						started += step()
					}
					b.ReportMetric(float64(started)/float64(b.N), "starts/op")
				})
			}
		}
	}
}

// A decision costs what a job costs that starts, also if many wait.
func TestADecisionAllocatesLittle(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	for _, policy := range []sched.Policy{sched.FIFO{}, sched.EASY{}} {
		step := saturated(t, policy, 10_000, 256)
		started := 0
		const runs = 500
		allocs := testing.AllocsPerRun(runs, func() { started += step() })
		// A job: a request, an entry, spans and R of the pool, and what a free takes.
		require.Less(t, allocs, 6+30*float64(started)/runs, "%T: %d starts", policy, started)
		require.NotZero(t, started)
	}
}

// EASY looks at all jobs. With ten times as many it takes little longer.
func TestEASYIsFastWithoutADepth(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector slows down")
	}
	cost := func(jobs int) time.Duration {
		step := saturated(t, sched.EASY{}, jobs, 64)
		least := time.Duration(1 << 62)
		for range 5 {
			begin := bomb.ProcessorTime()
			for range 400 {
				step()
			}
			least = min(least, bomb.ProcessorTime()-begin)
		}
		return least
	}
	few, many := cost(1000), cost(10_000)
	require.LessOrEqual(t, many, 5*few, "10 000 jobs: %v, 1 000 jobs: %v", many, few)
}

// Jobs of one jobspec that wait for a partition, for gpus, or for enough cores together on a
// node, cost EASY as one does, while there are idle nodes or cores.
func TestManyJobsThatWaitForTheSameCostAsOne(t *testing.T) {
	race.Skip(t)
	const nodes = 64
	all := idset.Range(0, nodes-1)
	r, err := rset.New(rset.Config{
		Entries:    []rset.Entry{{Ranks: all, Children: map[string]*idset.Set{"core": idset.Range(0, 7), "gpu": idset.Of(0)}}},
		Properties: map[string]*idset.Set{"a": idset.Range(0, nodes/2-1), "b": idset.Range(nodes/2, nodes-1)},
	})
	require.NoError(t, err)
	const a, b = `{"properties":["a"]}`, `{"properties":["b"]}`
	for what, specs := range map[string][3][]byte{ // of a job that runs, of those that wait, and of one that comes and goes
		"partition": {specOf(t, jobspec.Job{Nodes: nodes / 2, Exclusive: true}, a), specOf(t, jobspec.Job{Nodes: 1, Exclusive: true}, a), specOf(t, jobspec.Job{Nodes: 1, Exclusive: true}, b)},
		"gpus":      {specOf(t, jobspec.Job{Nodes: nodes, Slots: 1, Cores: 1, GPUs: 1}), specOf(t, jobspec.Job{Slots: 1, Cores: 1, GPUs: 1}), specOf(t, jobspec.Job{Slots: 1, Cores: 1})},
		"cores":     {specOf(t, jobspec.Job{Nodes: nodes, Slots: 1, Cores: 1}), specOf(t, jobspec.Job{Slots: 1, Cores: 8}), specOf(t, jobspec.Job{Slots: 1, Cores: 1})},
	} {
		cost := func(jobs int) time.Duration {
			s := begun(t, sched.Config{Policy: sched.EASY{}}, r)
			ask := func(id int, spec []byte) {
				require.NoError(t, s.Handle(alloc.Request{JobInfo: alloc.JobInfo{ID: jobid.ID(id), Priority: 16}, Jobspec: spec}))
			}
			ask(1, specs[0])
			require.Len(t, s.Decide(1000), 1, what)
			for id := range jobs {
				ask(id+2, specs[1])
			}
			require.Empty(t, s.Decide(1000), what)
			least := time.Duration(1 << 62)
			for i := range 10 {
				begin := bomb.ProcessorTime()
				for k := range 20 {
					ask(jobs+2+20*i+k, specs[2])
					out := s.Decide(1001)
					require.NoError(t, s.Handle(alloc.Free{ID: out[0].ID, R: out[0].R, Final: true}))
				}
				least = min(least, bomb.ProcessorTime()-begin)
			}
			return least
		}
		few, many := cost(1000), cost(16_000)
		require.LessOrEqual(t, many, 5*few, "%s: 16 000 jobs: %v, 1 000 jobs: %v", what, many, few)
	}
}

// BenchmarkBackfill is a cluster without lines: requests, frees and decisions alone. 64
// jobs wait, nodes are shared, and a job ends after a half or all of its time limit. The
// policies take turns, and the least cost of each counts: others use the machine too.
func BenchmarkBackfill(b *testing.B) {
	const jobs = 3000
	for _, nodes := range []int{64, 1024, 16384} {
		b.Run(fmt.Sprint("nodes=", nodes), func(b *testing.B) {
			cost := map[string]float64{}
			for b.Loop() {
				for name, policy := range map[string]sched.Policy{"fifo": sched.FIFO{}, "easy": sched.EASY{}} {
					c := cluster(b, policy, nodes, jobs).Seconds() / jobs
					if least, ok := cost[name]; !ok || c < least {
						cost[name] = c
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

// cluster runs jobs and returns the time that the scheduler took.
func cluster(b *testing.B, policy sched.Policy, nodes, jobs int) time.Duration {
	var running []ending // in order, the first at the end
	now, rng := eventlog.Timestamp(1e6), rand.New(rand.NewPCG(7, 7))
	length := map[jobid.ID]float64{} // of what the limit is
	s := begun(b, sched.Config{Policy: policy, Annotate: true}, machine(b, nodes, 48))
	var spent time.Duration
	timed := func(m alloc.Message) {
		start := bomb.ProcessorTime()
		err := s.Handle(m)
		out := s.Decide(now)
		spent += bomb.ProcessorTime() - start
		require.NoError(b, err)
		for _, a := range out {
			if a.Type != alloc.ResponseSuccess {
				continue
			}
			limit := float64(a.R.Expiration() - a.R.Start())
			e := ending{now + eventlog.Timestamp(length[a.ID]*limit), a.ID, a.R}
			i, _ := slices.BinarySearchFunc(running, e, func(a, b ending) int {
				return cmp.Or(cmp.Compare(b.at, a.at), cmp.Compare(b.id, a.id))
			})
			running = slices.Insert(running, i, e)
			delete(length, a.ID)
		}
	}
	for id := jobid.ID(1); id <= jobid.ID(jobs) || len(running) > 0; {
		if id <= jobid.ID(jobs) && s.Len() < 64 {
			j := jobspec.Job{Slots: 1 + rng.Int64N(64), Cores: 1, Duration: time.Duration(1+rng.IntN(240)) * time.Minute}
			if rng.IntN(2) == 0 { // some nodes, at most an eighth of all
				j.Nodes, j.Slots, j.Cores = 1+rng.Int64N(max(int64(nodes)/8>>rng.IntN(5), 1)), 1, 8+rng.Int64N(40)
			}
			length[id] = 0.5 + rng.Float64()/2
			timed(alloc.Request{JobInfo: alloc.JobInfo{ID: id, Priority: 16, Submit: now}, Jobspec: specOf(b, j)})
			id++
			continue
		}
		e := running[len(running)-1]
		running = running[:len(running)-1]
		now = e.at
		timed(alloc.Free{ID: e.id, R: e.r, Final: true})
	}
	return spent
}
