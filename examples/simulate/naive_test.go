package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife/internal/refdata"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
)

// A naive simulator of jobs that get whole nodes and give them back at once. It shares
// no code with the library. It counts nodes, and looks at all jobs at each moment.
type naive struct {
	nodes   int
	easy    bool
	jobs    []naiveJob
	now     seconds
	free    int
	queue   []int // jobs that wait, in the order in which they came
	running []int
}

// A naiveJob has its nodes until over. The scheduler believes that it has them until expires.
type naiveJob struct {
	arrival
	prolog, epilog       seconds
	start, over, expires seconds
}

// run returns when each job gets its nodes.
func (n *naive) run() (starts []seconds) {
	n.free = n.nodes
	for next := 0; next < len(n.jobs) || len(n.running) > 0; {
		n.now = math.MaxInt64
		if next < len(n.jobs) {
			n.now = n.jobs[next].submit
		}
		for _, i := range n.running {
			n.now = min(n.now, n.jobs[i].over)
		}
		n.running = slices.DeleteFunc(n.running, func(i int) bool {
			over := n.jobs[i].over <= n.now
			if over {
				n.free += n.jobs[i].size
			}
			return over
		})
		for ; next < len(n.jobs) && n.jobs[next].submit <= n.now; next++ {
			n.queue = append(n.queue, next)
		}
		n.schedule()
	}
	for _, j := range n.jobs {
		starts = append(starts, j.start)
	}
	return starts
}

// schedule is FIFO: jobs start in order until one does not fit. With EASY, later ones start
// before that one, the head, if they do not delay it.
func (n *naive) schedule() {
	for len(n.queue) > 0 && n.jobs[n.queue[0]].size <= n.free {
		n.start(n.queue[0])
		n.queue = n.queue[1:]
	}
	if !n.easy || len(n.queue) == 0 {
		return
	}
	shadow, extra := n.shadow(n.jobs[n.queue[0]].size)
	waits := n.queue[:1:1]
	for _, i := range n.queue[1:] {
		j := &n.jobs[i]
		inTime := n.now+j.limit <= shadow
		switch {
		case j.size > n.free || !inTime && j.size > extra:
			waits = append(waits, i)
			continue
		case !inTime:
			extra -= j.size
		}
		n.start(i)
	}
	n.queue = waits
}

// shadow returns when the head can start if all jobs end when they expire, and how many nodes
// it leaves free then. A job that is late is taken to end now.
func (n *naive) shadow(size int) (at seconds, extra int) {
	ends := make(map[seconds]int)
	var times []seconds
	for _, i := range n.running {
		t := max(n.now, n.jobs[i].expires)
		ends[t] += n.jobs[i].size
		times = append(times, t)
	}
	slices.Sort(times)
	free := n.free
	for _, t := range slices.Compact(times) {
		if free += ends[t]; free >= size {
			return t, free - size
		}
	}
	panic("a job that is larger than the machine")
}

func (n *naive) start(i int) {
	j := &n.jobs[i]
	j.start, j.expires, j.over = n.now, n.now+j.limit, n.now+j.prolog+j.run+j.epilog
	n.free -= j.size
	n.running = append(n.running, i)
}

// requireNaive requires that both simulators start each job at the same time.
func requireNaive(t require.TestingT, work []arrival, args ...string) {
	o, err := parse(append(args, "-html", ""), io.Discard)
	require.NoError(t, err)
	c, err := newCluster(o, work, wholeJob, o.seed)
	require.NoError(t, err)
	n := naive{nodes: o.nodes, easy: o.policy == "easy"}
	longest := func(of seconds, id int, kind jobstate.ActionKind, nodes int) seconds {
		if of == 0 {
			return 0
		}
		return slices.Max(c.takes(jobid.ID(id), kind, nodes))
	}
	for i, a := range work {
		n.jobs = append(n.jobs, naiveJob{
			arrival: a, prolog: longest(o.prolog, i+1, jobstate.ActionProlog, a.size), epilog: longest(o.epilog, i+1, jobstate.ActionEpilog, a.size),
		})
	}
	require.NoError(t, c.play(context.Background(), func(int) {}))
	for i, start := range n.run() {
		require.Equal(t, start, c.jobs[i+1].began-n.jobs[i].prolog, "job %d of %d: %+v", i+1, len(work), n.jobs[i])
	}
}

// Random workloads, with prologs and epilogs and without.
func TestANaiveSimulatorStartsEachJobAtTheSameTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(what string, lo, hi int) int { return rapid.IntRange(lo, hi).Draw(t, what) }
		nodes := draw("nodes", 1, 12)
		work := make([]arrival, draw("jobs", 1, 40))
		at := 0
		for i := range work {
			at += draw("gap", 0, 20)
			run := draw("run", 1, 60)
			work[i] = arrival{submit: seconds(at), run: seconds(run), limit: seconds(run + draw("more", 0, 60)), size: draw("size", 1, nodes)}
		}
		requireNaive(t, work, "-nodes", fmt.Sprint(nodes), "-policy", rapid.SampledFrom([]string{"fifo", "easy"}).Draw(t, "policy"),
			"-prolog", fmt.Sprint(draw("prolog", 0, 5)), "-epilog", fmt.Sprint(draw("epilog", 0, 5)), "-straggle", "0.1", "-straggler", "30")
	})
}

// A published workload, as it is and with epilogs.
func TestANaiveSimulatorAgreesOnAPublishedWorkload(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	name := refdata.Path(t, "traces/NASA-iPSC-1993-3.1-cln.swf.gz")
	for _, policy := range []string{"fifo", "easy"} {
		for _, epilog := range []string{"0", "30"} {
			args := []string{"-swf", name, "-policy", policy, "-prolog", "0", "-epilog", epilog}
			o, err := parse(args, io.Discard)
			require.NoError(t, err)
			s := newStudy(o, io.Discard)
			require.NoError(t, s.open())
			requireNaive(t, s.work, append(args, "-nodes", fmt.Sprint(o.nodes))...)
		}
	}
}
