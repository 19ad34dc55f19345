package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife/internal/race"
	"github.com/joblife/joblife/internal/refdata"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
)

// A naive simulator of jobs that get nodes or cores, and give them back at once. It shares no
// code with the library, and looks at all jobs at each moment.
type naive struct {
	node  amount // what each has
	easy  bool
	takes func(i int, kind jobstate.ActionKind, nodes int) seconds

	jobs    []naiveJob
	now     seconds
	free    []amount // of each node
	queue   []int    // jobs that wait, in the order in which they came
	running []int

	// EASY keeps a reservation until something is given back, or it is due, or allWhole changes.
	head    int // the job that has it, -1: none
	shadow  seconds
	claims  map[int]amount // what it has of nodes from then on
	whole   bool           // what allWhole was: any nodes will do, so they are counted
	kept    int            // whole: so many of those that are idle now the head needs
	settled int            // so many jobs of the queue were looked at with it
}

// A naiveJob has some of its nodes until over. The scheduler believes that it has them until
// expires.
type naiveJob struct {
	arrival
	prolog               seconds
	start, over, expires seconds
	has                  map[int]amount // by node
}

// An amount is some cores and gpus.
type amount struct{ cores, gpus int }

func (a amount) add(n int, b amount) amount { return amount{a.cores + n*b.cores, a.gpus + n*b.gpus} }

// room returns how often b is in a.
func (a amount) room(b amount) int {
	n := a.cores / b.cores
	if b.gpus > 0 {
		n = min(n, a.gpus/b.gpus)
	}
	return max(0, n)
}

// slots returns of how many parts a job is, and what each is: nodes, or cores, or cores with a gpu.
func (n *naive) slots(i int) (int, amount) {
	each := amount{cores: 1}
	switch j := n.jobs[i]; {
	case n.isWhole(i):
		each = n.node
	case j.gpu:
		each = amount{max(1, n.node.cores/(2*n.node.gpus)), 1}
	}
	return n.jobs[i].size / each.cores, each
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
				for node, what := range n.jobs[i].has {
					n.free[node] = n.free[node].add(1, what)
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

func (n *naive) isWhole(i int) bool { return !n.jobs[i].gpu && n.jobs[i].size%n.node.cores == 0 }

// allWhole reports whether all jobs have or want whole nodes.
func (n *naive) allWhole() bool {
	shares := func(i int) bool { return !n.isWhole(i) }
	return !slices.ContainsFunc(n.queue, shares) && !slices.ContainsFunc(n.running, shares)
}

// later returns what is free of each node at a time, if all jobs end when they expire.
func (n *naive) later(at seconds) []amount {
	free := slices.Clone(n.free)
	for _, i := range n.running {
		if n.jobs[i].expires <= at {
			for node, what := range n.jobs[i].has {
				free[node] = free[node].add(1, what)
			}
		}
	}
	return free
}

// reserve makes a job the head. It can start when enough is free, if all jobs end when they
// expire. A job that is late is taken to end now. Nodes that have more room then than now come first.
func (n *naive) reserve(i int) {
	_, each := n.slots(i)
	var times []seconds
	for _, r := range n.running {
		times = append(times, max(n.now, n.jobs[r].expires))
	}
	slices.Sort(times)
	for _, t := range slices.Compact(times) {
		free := n.later(t)
		var first []int
		for node := range free {
			if free[node].room(each) > n.free[node].room(each) {
				first = append(first, node)
			}
		}
		if n.claims = n.place(i, free, first); n.claims != nil {
			n.head, n.shadow, n.kept = i, t, max(0, len(n.claims)-len(first))
			return
		}
	}
	panic("a job that is larger than the machine")
}

// place returns what a job gets where nodes have room, or nil. Some nodes come first; then the
// fuller ones come before emptier ones, and idle ones last. A job of cores goes to the first
// node that has room for all of it; else it fills one node after the other.
func (n *naive) place(i int, room []amount, first []int) map[int]amount {
	left, each := n.slots(i)
	order := slices.Clone(first)
	var others []int
	for node, free := range n.free {
		if free.cores > 0 && !slices.Contains(first, node) {
			others = append(others, node)
		}
	}
	slices.SortStableFunc(others, func(a, b int) int {
		return cmp.Or(n.free[a].cores-n.free[b].cores, n.free[a].gpus-n.free[b].gpus)
	})
	order = slices.DeleteFunc(append(order, others...), func(node int) bool { return room[node].room(each) == 0 })
	if k := slices.IndexFunc(order, func(node int) bool { return room[node].room(each) >= left }); k >= 0 {
		return map[int]amount{order[k]: amount{}.add(left, each)}
	}
	has := make(map[int]amount)
	for _, node := range order {
		some := min(room[node].room(each), left)
		has[node] = amount{}.add(some, each)
		if left -= some; left == 0 {
			return has
		}
	}
	return nil
}

// room returns how often something is free.
func (n *naive) room(each amount) (sum int) {
	for _, free := range n.free {
		sum += free.room(each)
	}
	return sum
}

// start starts a job if there is room beside what the head has.
func (n *naive) start(i int) bool {
	j := &n.jobs[i]
	room := slices.Clone(n.free)
	late := n.head >= 0 && n.now+j.limit > n.shadow
	switch {
	case late && n.whole:
		if some, each := n.slots(i); some+n.kept > n.room(each) {
			return false
		}
	case late:
		then := n.later(n.shadow)
		for node, claim := range n.claims {
			rest := then[node].add(-1, claim)
			room[node] = amount{min(room[node].cores, rest.cores), min(room[node].gpus, rest.gpus)}
		}
	}
	if j.has = n.place(i, room, nil); j.has == nil {
		return false
	}
	if !late {
		n.kept = max(0, n.kept-len(j.has)) // it gives them back in time
	}
	for node, what := range j.has {
		n.free[node] = n.free[node].add(-1, what)
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
	node := amount{o.units(), o.gpus}
	n := naive{node: node, easy: o.policy == "easy", free: slices.Repeat([]amount{node}, o.nodes)}
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
		nodes, cores, share := draw("nodes", 1, 12), draw("cores", 1, 6), rapid.Bool().Draw(t, "share")
		most, gpus := nodes, 0
		if share {
			most *= cores
			gpus = draw("gpus", 0, cores)
		}
		work := make([]arrival, draw("jobs", 1, 40))
		at := 0
		for i := range work {
			at += draw("gap", 0, 20)
			run := draw("run", 1, 60)
			work[i] = arrival{submit: seconds(at), run: seconds(run), limit: seconds(run + draw("more", 0, 60)), size: draw("size", 1, most)}
			if gpus > 0 && rapid.Bool().Draw(t, "gpu") {
				per := max(1, cores/(2*gpus))
				work[i].gpu, work[i].size = true, min((work[i].size+per-1)/per, nodes*gpus)*per
			}
		}
		requireNaive(t, work, "-nodes", fmt.Sprint(nodes), "-cores", fmt.Sprint(cores), fmt.Sprint("-share=", share), "-gpus", fmt.Sprint(gpus), "-policy", rapid.SampledFrom([]string{"fifo", "easy"}).Draw(t, "policy"),
			"-prolog", fmt.Sprint(draw("prolog", 0, 5)), "-epilog", fmt.Sprint(draw("epilog", 0, 5)), "-straggle", "0.1", "-straggler", "30")
	})
}

// A published workload, as it is and with epilogs, on nodes of a core and on shared ones, and
// each other log that the data's folder happens to have, on the nodes of its header.
func TestANaiveSimulatorAgreesOnAPublishedWorkload(t *testing.T) {
	race.Skip(t)
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	const nasa = "NASA-iPSC-1993-3.1-cln.swf.gz"
	first := refdata.Path(t, "traces/"+nasa)
	names, err := filepath.Glob(filepath.Join(filepath.Dir(first), "*.swf*"))
	require.NoError(t, err)
	require.Contains(t, names, first)
	for _, name := range names {
		machines := [][]string{nil}
		if name == first {
			machines = [][]string{{"-nodes", "128", "-cores", "1"}, {"-nodes", "16", "-cores", "8", "-share"}}
		}
		for _, policy := range []string{"fifo", "easy"} {
			for _, epilog := range []string{"0", "30"} {
				for _, machine := range machines {
					args := append([]string{"-swf", name, "-policy", policy, "-prolog", "0", "-epilog", epilog}, machine...)
					o, err := parse(args, io.Discard)
					require.NoError(t, err)
					s := newStudy(o, io.Discard)
					require.NoError(t, s.open())
					requireNaive(t, s.work, append(args, "-nodes", fmt.Sprint(s.o.nodes), "-cores", fmt.Sprint(s.o.cores))...)
				}
			}
		}
	}
}
