package perilog_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/perilog"
)

// hkNaive is housekeeping as one would write it first: a map of ranks, each
// with its state, and every rule spelled out rank by rank. It reads the log by
// itself, too.
type hkNaive struct {
	state map[uint32]string // waiting, started, held, draining, ready, free
	cause map[uint32]string // as the log names it; of ranks on which the work ended
	gone  map[uint32]bool
	began map[uint32]float64 // when the work was launched

	after float64 // release-after; below 0: unset
	first float64 // when the work ended on the first rank
	final bool

	// What a crash loses.

	now  float64
	runs []*hkNaiveRun
}

type hkNaiveRun struct {
	ranks    map[uint32]bool // that are still active
	deadline float64         // 0: none
	told     bool            // to stop
}

func (n *hkNaive) clone() *hkNaive {
	m := *n
	m.state, m.cause = maps.Clone(n.state), maps.Clone(n.cause)
	m.gone, m.began = maps.Clone(n.gone), maps.Clone(n.began)
	m.runs = nil
	for _, r := range n.runs {
		m.runs = append(m.runs, &hkNaiveRun{ranks: maps.Clone(r.ranks), deadline: r.deadline, told: r.told})
	}
	return &m
}

func (n *hkNaive) in(states ...string) []uint32 {
	var out []uint32
	for rank, s := range n.state {
		if slices.Contains(states, s) {
			out = append(out, rank)
		}
	}
	slices.Sort(out)
	return out
}

// unresolved returns ranks that were started and that no run has.
func (n *hkNaive) unresolved() []uint32 {
	return slices.DeleteFunc(n.in("started"), func(rank uint32) bool { return n.run(rank) != nil })
}

func (n *hkNaive) run(rank uint32) *hkNaiveRun {
	for _, r := range n.runs {
		if r.ranks[rank] {
			return r
		}
	}
	return nil
}

// text is the state that the log tells.
func (n *hkNaive) text() string {
	var b strings.Builder
	for _, s := range []string{"waiting", "started", "held", "draining", "ready", "free"} {
		fmt.Fprintf(&b, "%s %v; ", s, n.in(s))
	}
	ends := map[string][]uint32{}
	for rank, c := range n.cause {
		ends[c] = append(ends[c], rank)
	}
	for _, ranks := range ends {
		slices.Sort(ranks)
	}
	gone := slices.Sorted(maps.Keys(n.gone))
	fmt.Fprintf(&b, "ends %v; gone %v; first %v; after %v; final %v", ends, gone, n.first, n.after, n.final)
	return b.String()
}

// settle gives back what may go back and returns it, and whether it is all.
func (n *hkNaive) settle() (ranks []uint32, final, any bool) {
	if n.final {
		return nil, false, false
	}
	last := len(n.in("waiting", "started", "held", "draining")) == 0
	ready := n.in("ready")
	if !last && (len(ready) == 0 || n.after < 0 || n.first == 0 || n.now < n.first+n.after) {
		return nil, false, false
	}
	for _, rank := range ready {
		n.state[rank] = "free"
	}
	n.final = last
	return ready, last, true
}

func (n *hkNaive) end(rank uint32, cause, state string) {
	n.state[rank], n.cause[rank] = state, cause
	if n.first == 0 {
		n.first = n.now
	}
	for _, r := range n.runs {
		delete(r.ranks, rank)
	}
}

// ready makes ranks ready, whatever they are.
func (n *hkNaive) ready(ranks []uint32, cause string) {
	for _, rank := range ranks {
		switch n.state[rank] {
		case "waiting", "started":
			n.end(rank, cause, "ready")
		case "held", "draining":
			n.state[rank] = "ready"
		}
	}
}

// start starts a run; from a launch if that was before.
func (n *hkNaive) start(ranks []uint32, at, timeout float64) {
	r := &hkNaiveRun{ranks: map[uint32]bool{}}
	for _, rank := range ranks {
		r.ranks[rank] = true
		n.state[rank], n.began[rank] = "started", at
		delete(n.cause, rank)
	}
	if timeout > 0 {
		r.deadline = at + timeout
	}
	if r.deadline > 0 && r.deadline <= n.now { // taken up after its timeout
		r.told, r.deadline = true, n.now+hkKill
	}
	n.runs = append(n.runs, r)
}

// tick fires the timers of runs.
func (n *hkNaive) tick(kill float64, decide func(rank uint32, cause string) string) {
	for _, r := range n.runs {
		if r.deadline == 0 || r.deadline > n.now || len(r.ranks) == 0 {
			continue
		}
		if !r.told {
			r.told, r.deadline = true, n.now+kill
			continue
		}
		for _, rank := range slices.Sorted(maps.Keys(r.ranks)) {
			n.end(rank, "timed-out", decide(rank, "timed-out"))
		}
	}
}

// read folds a log, line by line, as a person would read it.
func readNaive(t require.TestingT, log []byte, all []uint32) *hkNaive {
	n := &hkNaive{state: map[uint32]string{}, cause: map[uint32]string{}, gone: map[uint32]bool{}, began: map[uint32]float64{}}
	for _, line := range bytes.Split(bytes.TrimSuffix(log, []byte("\n")), []byte("\n")) {
		var e struct {
			Timestamp float64
			Name      string
			Context   struct {
				Ranks, Cause, Decision string
				ReleaseAfter           string `json:"release-after"`
				Final                  bool
			}
		}
		require.NoError(t, json.Unmarshal(line, &e))
		set, err := idset.Parse(e.Context.Ranks)
		require.NoError(t, err)
		ranks := slices.Collect(set.All())
		n.now = e.Timestamp
		switch e.Name {
		case "start":
			for _, rank := range all {
				n.state[rank] = "waiting"
			}
			n.after = map[string]float64{"": -1, "0s": 0, "30s": 30, "10s": 10}[e.Context.ReleaseAfter]
		case "launch":
			for _, rank := range ranks {
				n.state[rank], n.began[rank] = "started", e.Timestamp
				delete(n.cause, rank)
			}
		case "end":
			for _, rank := range ranks {
				n.end(rank, e.Context.Cause, hkStates[e.Context.Decision])
			}
		case "drained":
			for _, rank := range ranks {
				n.state[rank] = "ready"
			}
		case "force":
			n.ready(ranks, "abandoned")
		case "shrink":
			for _, rank := range ranks {
				n.gone[rank] = true
			}
			n.ready(ranks, "unreachable")
		case "release":
			for _, rank := range ranks {
				n.state[rank] = "free"
			}
			n.final = e.Context.Final
		default:
			require.FailNow(t, "unknown event", e.Name)
		}
	}
	return n
}

// hkStates holds the state that follows from a decision.
var hkStates = map[string]string{"release": "ready", "hold": "held", "drain": "draining"}

// hkText is the text of hkNaive, of the real thing.
func hkText(h *perilog.Housekeeping, all []uint32, n *hkNaive) string {
	s := h.Status(0)
	m := &hkNaive{state: map[uint32]string{}, cause: map[uint32]string{}, gone: n.gone, first: n.first, after: n.after, final: h.Done()}
	for name, set := range map[string]*idset.Set{
		"waiting": s.Waiting, "started": s.Started, "held": s.Held, "draining": s.Draining, "ready": s.Ready, "free": s.Free,
	} {
		for rank := range set.All() {
			m.state[rank] = name
		}
	}
	for cause := perilog.CauseOK; cause <= perilog.CauseAbandoned; cause++ {
		for rank := range h.EndedBy(cause).All() {
			m.cause[rank] = hkCauses[cause]
		}
	}
	return m.text()
}

// hkCauses holds the names that the log has for causes.
var hkCauses = map[perilog.Cause]string{
	perilog.CauseOK: "ok", perilog.CauseFailed: "failed", perilog.CauseReported: "reported",
	perilog.CauseSignalled: "signalled", perilog.CauseTimedOut: "timed-out", perilog.CauseCanceled: "canceled",
	perilog.CauseCanceledTimedOut: "canceled-timed-out", perilog.CauseLaunchFailed: "launch-failed",
	perilog.CauseUnreachable: "unreachable", perilog.CauseOffline: "offline", perilog.CauseAbandoned: "abandoned",
}
