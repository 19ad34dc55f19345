package perilog_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/joblife/joblife/perilog"
)

// hkNode is a state that can be reached: the log that leads to it, and the
// naive form of it, which knows what runs.
type hkNode struct {
	log  []byte
	text string // of the real thing
	n    *hkNaive
}

// key is the state without what has no effect: how the work ended on a rank.
func (s *hkNode) key() string {
	return fmt.Sprint(s.n.state, s.n.unresolved(), s.n.gone, s.n.first, s.n.now, s.n.final)
}

// hkExhaust walks all states of the housekeeping of ranks 0 to n-1.
type hkExhaust struct {
	t      testing.TB
	o      perilog.HousekeepingOptions
	all    []uint32
	policy func(rank uint32, cause string) string
	shrink bool // ranks can be gone
}

// inputs returns what can be done in any state, with what the naive form makes
// of it.
func (x *hkExhaust) inputs() map[string]func(h *perilog.Housekeeping, n *hkNaive) {
	at := func(n *hkNaive) eventlog.Timestamp { return eventlog.Timestamp(n.now) }
	in := map[string]func(h *perilog.Housekeeping, n *hkNaive){
		"tick": func(h *perilog.Housekeeping, n *hkNaive) {
			n.now = min(n.now+30, float64(hkT0)+60)
			h.Tick(at(n))
		},
		"crash": func(*perilog.Housekeeping, *hkNaive) {}, // the next step begins with one
		"reattach": func(h *perilog.Housekeeping, n *hkNaive) {
			require.NoError(x.t, h.Reattach(at(n), perilog.Spec{}))
			n.start(n.unresolved(), n.now, 0)
		},
		"start all": func(h *perilog.Housekeeping, n *hkNaive) {
			waiting := n.in("waiting")
			got, err := h.Start(at(n), perilog.Spec{Offline: idset.Of(0)})
			require.NoError(x.t, err)
			waiting = slices.DeleteFunc(waiting, func(rank uint32) bool { return rank == 0 })
			require.Equal(x.t, idset.Of(waiting...).String(), got.String())
			n.start(waiting, n.now, 0)
		},
	}
	for _, rank := range x.all {
		one := idset.Of(rank)
		in[fmt.Sprint("start ", rank)] = func(h *perilog.Housekeeping, n *hkNaive) {
			able := n.state[rank] != "ready" && n.state[rank] != "free" && n.run(rank) == nil
			_, err := h.Start(at(n), perilog.Spec{Ranks: one})
			require.Equal(x.t, able, err == nil)
			if able {
				n.start([]uint32{rank}, n.now, 0)
			}
		}
		for _, cause := range []string{"ok", "failed"} {
			in[fmt.Sprint(cause, " ", rank)] = func(h *perilog.Housekeeping, n *hkNaive) {
				rep := hkReports[cause]
				rep.Rank = rank
				runs := n.run(rank) != nil
				require.Equal(x.t, runs, h.Report(at(n), rep) == perilog.AnswerApplied)
				if runs {
					n.end(rank, cause, hkStates[x.policy(rank, cause)])
				}
			}
		}
		in[fmt.Sprint("drained ", rank)] = func(h *perilog.Housekeeping, n *hkNaive) {
			asked := n.state[rank] == "draining"
			require.Equal(x.t, asked, h.Drained(at(n), one).IsEmpty())
			if asked {
				n.state[rank] = "ready"
			}
		}
		in[fmt.Sprint("force ", rank)] = func(h *perilog.Housekeeping, n *hkNaive) {
			_, err := h.ForceFinish(at(n), one, "root")
			require.NoError(x.t, err)
			n.ready([]uint32{rank}, "abandoned")
		}
		if !x.shrink {
			continue
		}
		in[fmt.Sprint("shrink ", rank)] = func(h *perilog.Housekeeping, n *hkNaive) {
			h.Shrink(at(n), one)
			if n.state[rank] != "free" {
				n.gone[rank] = true
				n.ready([]uint32{rank}, "unreachable")
			}
		}
	}
	return in
}

// step does an input in a state and returns the state after it.
func (x *hkExhaust) step(from *hkNode, name string, input func(*perilog.Housekeeping, *hkNaive)) *hkNode {
	h, err := perilog.ReplayHousekeeping(from.log, x.o)
	require.NoError(x.t, err)
	to := &hkNode{n: from.n.clone()}
	h.Take()
	if name == "crash" {
		to.n.runs = nil
	} else if running := idset.Difference(idset.Of(to.n.in("started")...), idset.Of(to.n.unresolved()...)); !running.IsEmpty() {
		require.NoError(x.t, h.Reattach(eventlog.Timestamp(to.n.now), perilog.Spec{Ranks: running}))
	}
	input(h, to.n)
	before := to.n.clone()
	want, final, any := to.n.settle()
	e := h.Take()
	if any {
		require.Len(x.t, e.Free, 1, name)
		require.Equal(x.t, idset.Of(want...).String(), e.Free[0].R.Ranks().String(), name)
		require.Equal(x.t, final, e.Free[0].Final, name)
		for _, rank := range want { // I3
			require.Equal(x.t, "ready", before.state[rank])
		}
	} else {
		require.Empty(x.t, e.Free, name)
	}
	if len(e.Log) == 0 {
		require.Equal(x.t, from.text, h.String(), name)
		to.log, to.text = from.log, from.text
		return to
	}
	require.Equal(x.t, to.n.text(), hkText(h, x.all, to.n), name)
	require.NoError(x.t, h.Check())
	to.log = append(slices.Clone(from.log), e.Log...)
	again, err := perilog.ReplayHousekeeping(to.log, x.o)
	require.NoError(x.t, err)
	to.text = h.String()
	require.Equal(x.t, to.text, again.String(), name)
	return to
}

// walk visits all states and returns their number, and that of steps.
func (x *hkExhaust) walk(after *fsd.Duration) (states, steps, finals int) {
	ranks := idset.Of(x.all...)
	j := hkJob(ranks.String(), after)
	j.R = hkEqual(x.t, len(x.all)) // which is read fastest
	h, err := perilog.NewHousekeeping(hkT0, j, x.o)
	require.NoError(x.t, err)
	log := slices.Clone(h.Take().Log)
	first := &hkNode{log: log, text: h.String(), n: readNaive(x.t, log, x.all)}
	seen := map[string]bool{first.key(): true}
	inputs := x.inputs()
	names := make([]string, 0, len(inputs))
	for name := range inputs {
		names = append(names, name)
	}
	slices.Sort(names)
	for queue := []*hkNode{first}; len(queue) > 0; queue = queue[1:] {
		for _, name := range names {
			steps++
			to := x.step(queue[0], name, inputs[name])
			if seen[to.key()] {
				continue
			}
			seen[to.key()] = true
			if to.n.final {
				finals++
			}
			queue = append(queue, to)
		}
	}
	return len(seen), steps, finals
}

// Every state that can be reached with up to three ranks, every input and a
// crash in each.
func TestEveryStateOfThreeRanks(t *testing.T) {
	type count struct{ states, steps, finals int }
	got := map[string]count{}
	for after, d := range map[string]*fsd.Duration{"unset": nil, "0s": hkAfter(0), "30s": hkAfter(30)} {
		for n := 1; n <= 3; n++ {
			// Ranks that are gone double the states of each.
			x := &hkExhaust{t: t, policy: hkPolicies["mixed"], shrink: n < 3}
			x.o.Decide = func(rank uint32, end perilog.End) perilog.Decision {
				switch x.policy(rank, hkCauses[end.Cause]) {
				case "release":
					return perilog.DecisionRelease
				case "hold":
					return perilog.DecisionHold
				}
				return perilog.DecisionDrain
			}
			for rank := range uint32(n) {
				x.all = append(x.all, rank)
			}
			var c count
			c.states, c.steps, c.finals = x.walk(d)
			got[fmt.Sprint(after, " ", n)] = c
		}
	}
	// Whether what is ready has gone back follows from the time of the first end
	// and the present one, so that release-after changes no count.
	for _, after := range []string{"unset", "0s", "30s"} {
		require.Equal(t, count{39, 390, 12}, got[after+" 1"])
		require.Equal(t, count{237, 3792, 24}, got[after+" 2"])
		require.Equal(t, count{975, 18525, 6}, got[after+" 3"])
	}
}
