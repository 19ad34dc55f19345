package perilog_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/perilog"
)

// A move is an input to a cluster.
type move struct {
	name string
	do   func(*cluster)
}

// moves returns what can happen to a cluster now. Ranks in the same situation
// are interchangeable, so that only the first of them moves.
func (w *cluster) moves() []move { return w.movesLike(w.situation) }

// movesLike is moves, for ranks that are interchangeable where like says the
// same of them.
func (w *cluster) movesLike(like func(uint32) string) []move {
	if w.state.State() == jobstate.StateInactive {
		return nil
	}
	var list []move
	add := func(name string, do func(*cluster)) { list = append(list, move{name, do}) }
	for _, key := range w.keys {
		seen := map[string]bool{}
		running := w.running[key.String()]
		for rank := range running.All() {
			if seen[like(rank)] {
				continue
			}
			seen[like(rank)] = true
			add(fmt.Sprintf("%v exits 0 on %d", key, rank), func(w *cluster) { w.exit(key, rank, 0) })
			add(fmt.Sprintf("%v exits 1 on %d", key, rank), func(w *cluster) { w.exit(key, rank, 1<<8) })
		}
	}
	for x := range w.job.Holds().Holders() {
		key := perilog.Key{Kind: jobstate.ActionEpilog, Description: x.Description}
		if x.Kind == perilog.HolderProlog {
			key.Kind = jobstate.ActionProlog
		}
		// The process ended while nobody listened, or was never launched: its node
		// says that it has none.
		if rank, gone := idset.Difference(perilog.ActiveRanks(w.job, key), w.running[key.String()]).Min(); gone {
			add(fmt.Sprintf("%v is not there on %d", key, rank), func(w *cluster) {
				w.report(key, perilog.Report{Kind: perilog.ReportUnreachable, Rank: rank})
			})
		}
	}
	if _, ok := w.job.Deadline(); ok {
		add("tick", (*cluster).tick)
	}
	if !w.drains.IsEmpty() {
		add("drained", (*cluster).confirm)
	}
	if w.job.MayStart() {
		add("start", (*cluster).begin)
	}
	if w.started && !w.state.Finished() {
		add("finish", func(w *cluster) {
			w.event("finish", `{"status":0}`)
			w.pump()
		})
	}
	if w.state.Finished() && !w.state.Released() {
		add("release", func(w *cluster) {
			w.event("release", `{"ranks":"all","final":true}`)
			w.pump()
		})
	}
	if _, fatal := w.state.Cause(); !fatal {
		add("cancel", func(w *cluster) { w.exception(0) })
	}
	for _, u := range w.job.Unresolved() {
		if u.Why != perilog.WhyLost {
			continue
		}
		add("reattach", func(w *cluster) {
			require.NoError(w.t, w.job.Reattach(w.now, u.Action))
			w.pump()
		})
		add("force", func(w *cluster) {
			require.NoError(w.t, w.job.ForceFinish(w.now, u.Action, 15, "alice"))
			w.forced.UnionWith(u.Ranks)
			w.pump()
		})
		if u.Action.Kind == jobstate.ActionEpilog || !w.state.State().In(jobstate.StateCleanup) {
			add("rerun", func(w *cluster) {
				// Who runs an action again has seen to it that it does not run.
				if running := w.running[u.Action.String()]; running != nil {
					running.SubtractWith(u.Ranks)
				}
				require.NoError(w.t, w.job.Rerun(w.now, u.Action))
				w.pump()
			})
		}
		break
	}
	add("crash", (*cluster).crash)
	return list
}

// situation returns all that tells one rank from another and can matter still.
func (w *cluster) situation(rank uint32) string {
	if w.freed.Contains(rank) {
		return "freed"
	}
	var b strings.Builder
	fmt.Fprint(&b, w.drains.Contains(rank))
	for _, key := range slices.Sorted(maps.Keys(w.running)) {
		if w.running[key].Contains(rank) {
			fmt.Fprint(&b, " ", key, w.drained.Contains(rank) || w.forced.Contains(rank))
		}
	}
	perilog.DescribeRank(w.job, rank, &b)
	return b.String()
}

// canonical returns the state but for times and the names of ranks.
func (w *cluster) canonical() string {
	var ranks []string
	for rank := range w.spec.R.Ranks().All() {
		ranks = append(ranks, w.situation(rank))
	}
	slices.Sort(ranks)
	_, fatal := w.state.Cause()
	return fmt.Sprint(ranks, w.burned, w.started, fatal, w.state.State(), w.finals, perilog.DescribeStages(w.job))
}

// Every state that a job of some ranks with a prolog and an epilog can reach,
// with a cancel at any point and a crash in every state, and also after each
// event, is visited, breadth
// first; after each step the cluster checks I1, I2, I3, I4, I5 and I11. From
// every state there is a way on, until the job is over (I10).
func TestEveryStateOfAJobWithAPrologAndAnEpilog(t *testing.T) {
	tolerant := perRank()
	tolerant.Prologs[0].Tolerate = perilog.Tolerate{Count: 1, Drop: true}
	for _, c := range []struct {
		name          string
		config        perilog.Config
		ranks         int
		crashes       bool // also once between any two steps of the embedder
		states, steps int
	}{
		{"strict", perRank(), 1, true, 502, 4192},
		{"strict", perRank(), 2, true, 3718, 32715},
		{"strict", perRank(), 4, false, 10866, 66654},
		{"tolerant", tolerant, 2, false, 2172, 10245},
	} {
		if perilog.RaceEnabled && c.steps > 10000 {
			continue // the race detector makes this a minute
		}
		first := newCluster(helperless{t}, c.ranks, c.config, nil).allocate()
		states, steps := explore(first, c.crashes)
		t.Logf("%s, %d ranks: %d states, %d steps", c.name, c.ranks, states, steps)
		require.Equal(t, c.states, states, "%s, %d ranks", c.name, c.ranks)
		require.Equal(t, c.steps, steps, "%s, %d ranks", c.name, c.ranks)
	}
}

// helperless is a test without Helper, which costs more than the checks do.
type helperless struct{ require.TestingT }

// explore visits all states that a cluster can reach. If crashes is set it also
// crashes once in a history between any two steps that follow from a move, as
// after each event; between moves it crashes whenever it can.
func explore(first *cluster, crashes bool) (states, steps int) {
	t := first.t
	queue := []*cluster{first}
	seen := map[string]bool{first.canonical(): true}
	for len(queue) > 0 {
		from := queue[0]
		queue[0], queue = nil, queue[1:]
		list := from.moves()
		if len(list) == 0 {
			from.over()
			require.Equal(t, 1, from.starts[epilogKey.String()], "I11: %s", from.log)
		}
		for _, m := range list {
			for fuse, burned := 0, true; burned; fuse++ {
				w := from.copy()
				w.now += 1e-3 // two equal events in a row would be a repetition
				w.fuse = fuse
				m.do(w)
				burned = crashes && !from.burned && w.fuse == 0
				w.fuse = 0
				steps++
				if key := w.canonical(); !seen[key] {
					seen[key] = true
					queue = append(queue, w)
				}
			}
		}
	}
	return len(seen), steps
}

// Every sequence, without crashes and with no two ranks taken for one, that leads
// a job of up to 3 ranks with one action to its end.
func TestEverySequenceOfAJobWithOneAction(t *testing.T) {
	prolog, epilog := perRank(), perRank()
	prolog.Epilogs, epilog.Prologs = nil, nil
	for _, c := range []struct {
		name             string
		config           perilog.Config
		ranks, sequences int
	}{
		{"prolog", prolog, 1, 20}, {"prolog", prolog, 2, 347}, {"prolog", prolog, 3, 7506},
		{"epilog", epilog, 1, 180}, {"epilog", epilog, 2, 5037}, {"epilog", epilog, 3, 136969},
	} {
		if c.ranks > 2 && (perilog.RaceEnabled || testing.Short()) {
			continue // some ten seconds, and a minute under the race detector
		}
		n := sequences(newCluster(helperless{t}, c.ranks, c.config, nil).allocate())
		t.Logf("%s, %d ranks: %d sequences", c.name, c.ranks, n)
		require.Equal(t, c.sequences, n, "%s, %d ranks", c.name, c.ranks)
	}
}

// sequences follows every sequence of moves to its end, and returns how many
// there are.
func sequences(w *cluster) int {
	list := w.movesLike(func(rank uint32) string { return strconv.Itoa(int(rank)) })
	if len(list) == 0 {
		w.over()
		return 1
	}
	n := 0
	for _, m := range list {
		if m.name == "crash" {
			continue
		}
		next := w.copy()
		next.now += 1e-3
		m.do(next)
		n += sequences(next)
	}
	return n
}

// copy returns a cluster in the same state that goes its own way.
func (w *cluster) copy() *cluster {
	all := *w // what is only appended to needs no copy
	w.t, w.log, w.names, w.config, w.spec = nil, nil, nil, perilog.Config{}, perilog.JobSpec{}
	next := deepCopy(w)
	*w = all
	next.t, next.config, next.spec = all.t, all.config, all.spec
	next.log, next.names = slices.Clip(all.log), slices.Clip(all.names)
	return next
}
