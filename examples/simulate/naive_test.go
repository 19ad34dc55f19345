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

// A naive simulator of jobs that get nodes or cores, and give them back at once. It shares no
// code with the library, and looks at all jobs at each moment.
type naive struct {
	units int // of a node
	easy  bool
	takes func(i int, kind jobstate.ActionKind, nodes int) seconds

	jobs    []naiveJob
	now     seconds
	free    []int // units of each node
	queue   []int // jobs that wait, in the order in which they came
	running []int

	// EASY keeps a reservation until something is given back, or it is due, or allWhole changes.
	head    int // the job that has it, -1: none
	shadow  seconds
	claims  map[int]int // units that it has of nodes from then on
	whole   bool        // what allWhole was
	settled int         // so many jobs of the queue were looked at with it
}

// A naiveJob has some of its nodes until over. The scheduler believes that it has them until
// expires.
type naiveJob struct {
	arrival
	prolog               seconds
	start, over, expires seconds
	has                  map[int]int // units by node
}

// run returns when each job gets its nodes.
func (n *naive) run() (starts []seconds) {
	n.head = -1
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
				n.head = -1
				for node, units := range n.jobs[i].has {
					n.free[node] += units
				}
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

// schedule is FIFO: jobs start in order until one does not fit. With EASY, that one, the head,
// gets a reservation, and later ones start before it if they do not delay it.
func (n *naive) schedule() {
	if whole := n.allWhole(); n.head < 0 || whole != n.whole || n.now >= n.shadow {
		n.head, n.claims, n.whole, n.settled = -1, nil, whole, 0
	}
	waits := n.queue[:n.settled:n.settled]
	for k, i := range n.queue[n.settled:] {
		switch {
		case n.head < 0 && n.start(i):
			continue
		case n.head < 0 && !n.easy:
			waits = append(waits, n.queue[k:]...)
			n.queue = waits
			return
		case n.head < 0:
			n.reserve(i)
		case n.start(i):
			continue
		}
		waits = append(waits, i)
	}
	n.queue, n.settled = waits, len(waits)
}

func (n *naive) isWhole(i int) bool { return n.jobs[i].size%n.units == 0 }

// allWhole reports whether all jobs that wait want whole nodes.
func (n *naive) allWhole() bool {
	return !slices.ContainsFunc(n.queue, func(i int) bool { return !n.isWhole(i) })
}

// later returns the free units of each node at a time, if all jobs end when they expire.
func (n *naive) later(at seconds) []int {
	free := slices.Clone(n.free)
	for _, i := range n.running {
		if n.jobs[i].expires <= at {
			for node, units := range n.jobs[i].has {
				free[node] += units
			}
		}
	}
	return free
}

// reserve makes a job the head. It can start when enough is free, if all jobs end when they
// expire. A job that is late is taken to end now. Nodes that are not free now come first.
func (n *naive) reserve(i int) {
	var times []seconds
	for _, r := range n.running {
		times = append(times, max(n.now, n.jobs[r].expires))
	}
	slices.Sort(times)
	for _, t := range slices.Compact(times) {
		free := n.later(t)
		var first []int
		for node := range free {
			if free[node] > n.free[node] {
				first = append(first, node)
			}
		}
		if n.claims = n.place(i, free, first); n.claims != nil {
			n.head, n.shadow = i, t
			return
		}
	}
	panic("a job that is larger than the machine")
}

// place returns what a job gets where nodes have room, or nil. Some nodes come first; then the
// fuller ones come before emptier ones, and idle ones last. A job of cores goes to the first
// node that has room for all of it; else it fills one node after the other.
func (n *naive) place(i int, room, first []int) map[int]int {
	order := slices.Clone(first)
	var others []int
	for node, free := range n.free {
		if free > 0 && !slices.Contains(first, node) {
			others = append(others, node)
		}
	}
	slices.SortStableFunc(others, func(a, b int) int { return n.free[a] - n.free[b] })
	least := 1
	if n.isWhole(i) {
		least = n.units
	}
	order = slices.DeleteFunc(append(order, others...), func(node int) bool { return room[node] < least })
	size := n.jobs[i].size
	if k := slices.IndexFunc(order, func(node int) bool { return room[node] >= size }); k >= 0 {
		return map[int]int{order[k]: size}
	}
	has := make(map[int]int)
	for _, node := range order {
		if has[node] = min(room[node], size); has[node] == size {
			return has
		}
		size -= has[node]
	}
	return nil
}

// start starts a job if there is room beside what the head has.
func (n *naive) start(i int) bool {
	j := &n.jobs[i]
	room := slices.Clone(n.free)
	if n.head >= 0 && n.now+j.limit > n.shadow {
		then := n.later(n.shadow)
		for node, units := range n.claims {
			room[node] = max(0, min(room[node], then[node]-units))
		}
	}
	if j.has = n.place(i, room, nil); j.has == nil {
		return false
	}
	for node, units := range j.has {
		n.free[node] -= units
	}
	j.prolog = n.takes(i, jobstate.ActionProlog, len(j.has))
	j.start, j.expires, j.over = n.now, n.now+j.limit, n.now+j.prolog+j.run+n.takes(i, jobstate.ActionEpilog, len(j.has))
	n.running = append(n.running, i)
	return true
}

// requireNaive requires that both simulators start each job at the same time.
func requireNaive(t require.TestingT, work []arrival, args ...string) {
	o, err := parse(append(args, "-html", ""), io.Discard)
	require.NoError(t, err)
	c, err := newCluster(o, work, wholeJob, o.seed)
	require.NoError(t, err)
	n := naive{units: o.units(), easy: o.policy == "easy", free: slices.Repeat([]int{o.units()}, o.nodes)}
	n.takes = func(i int, kind jobstate.ActionKind, nodes int) seconds {
		if kind == jobstate.ActionProlog && o.prolog == 0 || kind == jobstate.ActionEpilog && o.epilog == 0 {
			return 0
		}
		return slices.Max(c.takes(jobid.ID(i+1), kind, nodes))
	}
	for _, a := range work {
		n.jobs = append(n.jobs, naiveJob{arrival: a})
	}
	require.NoError(t, c.play(context.Background(), func(int) {}))
	for i, start := range n.run() {
		require.Equal(t, start, c.jobs[i+1].began-n.jobs[i].prolog, "job %d of %d: %+v", i+1, len(work), n.jobs[i])
	}
}

// Random workloads, with prologs and epilogs and without, on nodes that are shared or not.
func TestANaiveSimulatorStartsEachJobAtTheSameTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(what string, lo, hi int) int { return rapid.IntRange(lo, hi).Draw(t, what) }
		nodes, cores, share := draw("nodes", 1, 12), draw("cores", 1, 4), rapid.Bool().Draw(t, "share")
		most := nodes
		if share {
			most *= cores
		}
		work := make([]arrival, draw("jobs", 1, 40))
		at := 0
		for i := range work {
			at += draw("gap", 0, 20)
			run := draw("run", 1, 60)
			work[i] = arrival{submit: seconds(at), run: seconds(run), limit: seconds(run + draw("more", 0, 60)), size: draw("size", 1, most)}
		}
		requireNaive(t, work, "-nodes", fmt.Sprint(nodes), "-cores", fmt.Sprint(cores), fmt.Sprint("-share=", share), "-policy", rapid.SampledFrom([]string{"fifo", "easy"}).Draw(t, "policy"),
			"-prolog", fmt.Sprint(draw("prolog", 0, 5)), "-epilog", fmt.Sprint(draw("epilog", 0, 5)), "-straggle", "0.1", "-straggler", "30")
	})
}

// A published workload, as it is and with epilogs, on nodes of a core and on shared ones.
func TestANaiveSimulatorAgreesOnAPublishedWorkload(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	name := refdata.Path(t, "traces/NASA-iPSC-1993-3.1-cln.swf.gz")
	for _, policy := range []string{"fifo", "easy"} {
		for _, epilog := range []string{"0", "30"} {
			for _, machine := range [][]string{{"-nodes", "128", "-cores", "1"}, {"-nodes", "16", "-cores", "8", "-share"}} {
				args := append([]string{"-swf", name, "-policy", policy, "-prolog", "0", "-epilog", epilog}, machine...)
				o, err := parse(args, io.Discard)
				require.NoError(t, err)
				s := newStudy(o, io.Discard)
				require.NoError(t, s.open())
				requireNaive(t, s.work, args...)
			}
		}
	}
}
