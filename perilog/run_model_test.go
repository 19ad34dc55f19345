package perilog

import (
	"fmt"
	"math"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
)

// modelRun is a run, its model, and what both are driven by.
type modelRun struct {
	t     *rapid.T
	run   *run
	naive *naiveRun

	sent   map[uint32]bool // attempts whose signals were taken and not handed out
	before *idset.Set      // where a process ran or was lost before the action
	ends   map[uint32]int
	drains map[uint32]int
}

// maxRank is the largest rank that the model draws; ranks have gaps.
const maxRank = 6

func drawRanks(t *rapid.T, label string) *idset.Set {
	out := new(idset.Set)
	bits := rapid.IntRange(0, 1<<(maxRank+1)-1).Draw(t, label)
	for rank := range uint32(maxRank + 1) {
		if bits>>rank&1 != 0 {
			out.Insert(rank)
		}
	}
	return out
}

func newModelRun(t *rapid.T) *modelRun {
	spec := runSpec{
		ActionKey: jobstate.ActionKey{Kind: jobstate.ActionEpilog, Description: "job-manager.epilog"}, Ranks: drawRanks(t, "ranks"), Hosts: flukes,
		ActionMode: jobstate.ActionMode{
			PerRank: rapid.IntRange(0, 2).Draw(t, "per rank") > 0, Leader: jobstate.Some(rapid.Uint32Range(0, maxRank).Draw(t, "leader")),
			Timeout:     rapid.SampledFrom([]time.Duration{50 * time.Second, 0, 1}).Draw(t, "timeout"),
			KillTimeout: rapid.SampledFrom([]time.Duration{5 * time.Second, 1, time.Hour}).Draw(t, "kill timeout"),
		},
		Kill: rapid.Bool().Draw(t, "kill"), IgnoreControl: rapid.IntRange(0, 3).Draw(t, "ignore") == 0,
	}
	m := &modelRun{t: t, run: makeRun(spec), naive: newNaiveRun(spec), ends: map[uint32]int{}, drains: map[uint32]int{}, sent: map[uint32]bool{}}
	m.run.now = 1000
	m.naive.advance(1000)
	m.before = new(idset.Set)
	return m
}

// now draws the time of an action.
func (m *modelRun) now() eventlog.Timestamp {
	step := rapid.SampledFrom([]float64{0, 0, 1, 4, 30, -20}).Draw(m.t, "step")
	return m.naive.now + eventlog.Timestamp(step)
}

// some draws a subset.
func (m *modelRun) some(of *idset.Set) *idset.Set { return idset.Intersect(of, drawRanks(m.t, "some")) }

func (m *modelRun) launch(*rapid.T) {
	ranks, now := drawRanks(m.t, "launch"), m.now()
	attempt := m.naive.last + 1
	if rapid.IntRange(0, 9).Draw(m.t, "damaged") == 0 {
		attempt = rapid.SampledFrom([]uint32{0, 1, attempt + 3, math.MaxUint32}).Draw(m.t, "attempt")
	}
	ends := map[uint32]bool{}
	for rank, p := range m.naive.procs {
		ends[rank] = p.stage == slotEnded
	}
	m.run.Launch(now, attempt, ranks)
	m.naive.launch(now, attempt, ranks)
	for rank, p := range m.naive.procs {
		if ends[rank] && p.stage == slotRunning {
			delete(m.ends, rank)
		}
	}
}

func (m *modelRun) report(*rapid.T) {
	lines := []naiveLine{
		{text: "hello"},
		{text: ControlPrefix + `{"version":1,"progress":3}`},
		{text: ControlPrefix + `{"version":1,"failed":true}`, self: true},
		{text: ControlPrefix + `{"version":1,"failed":"1-3","note":"x"}`, failed: []uint32{1, 2, 3}},
		{text: ControlPrefix + `{"version":1,"released":"0-2,99"}`, released: []uint32{0, 1, 2, 99}},
		{text: ControlPrefix + `{"version":1,"released":"4,6","failed":"4"}`, failed: []uint32{4}, released: []uint32{4, 6}},
		{text: ControlPrefix + `{"version":2}`, nonsense: true},
	}
	line := rapid.SampledFrom(lines).Draw(m.t, "line")
	rep := Report{
		Kind: ReportKind(rapid.SampledFrom([]int{1, 2, 2, 2, 3, 4, 5, 5, 5, 0, 6}).Draw(m.t, "kind")),
		Rank: rapid.Uint32Range(0, maxRank+1).Draw(m.t, "rank"), Attempt: m.naive.last, Line: []byte(line.text),
		Status: rapid.SampledFrom([]int32{0, 0, 0, 256, 15, 9, 143 << 8, 255 << 8, 0x7f, -1, 1 << 16, 0x80, math.MinInt32}).Draw(m.t, "status"),
	}
	if rapid.IntRange(0, 9).Draw(m.t, "leader") < 5 && !m.naive.spec.PerRank {
		rep.Rank = m.naive.spec.Leader.Value
	}
	if p := m.naive.procs[rep.Rank]; p != nil && rapid.IntRange(0, 9).Draw(m.t, "late") > 0 {
		rep.Attempt = p.attempt
	}
	now := m.now()
	before := m.told()
	answer := m.run.Report(now, rep)
	require.Equal(m.t, m.naive.report(now, rep, line), answer, "%v", rep)
	if answer != AckApplied {
		require.Equal(m.t, before, m.told(), "only AckApplied changes something")
	}
}

// told returns all that reports change.
func (m *modelRun) told() string {
	r := m.run
	return fmt.Sprint(r.slots, r.lead, r.launches, r.open, r.count, r.end, r.failures, r.ended, r.signals, r.notes, r.details, r.dropped)
}

func (m *modelRun) tick(*rapid.T) {
	now := m.now()
	if d := m.naive.deadline(); d != 0 && rapid.Bool().Draw(m.t, "at the deadline") {
		now = d
	}
	m.run.Tick(now)
	m.naive.tick(now)
}

func (m *modelRun) cancel(*rapid.T) {
	now := m.now()
	m.run.Cancel(now)
	m.naive.cancel(now)
}

// signaled hands out what was taken.
func (m *modelRun) signaled(*rapid.T) {
	now := m.now()
	for attempt := range m.sent {
		m.run.Signaled(now, attempt)
		m.naive.signaled(now, attempt)
	}
	clear(m.sent)
}

func (m *modelRun) lose(*rapid.T) {
	m.run.Lose()
	m.naive.lose()
}

func (m *modelRun) reattach(*rapid.T) {
	ranks, now := m.some(m.naive.in(slotLost)), m.now()
	if ranks.IsEmpty() {
		return
	}
	m.run.Reattach(now, ranks)
	m.naive.reattach(now, ranks)
}

func (m *modelRun) endIdle(*rapid.T) {
	ranks, now := m.some(m.naive.in(slotIdle)), m.now()
	if ranks.IsEmpty() {
		return
	}
	cause := rapid.SampledFrom([]endCause{causeOffline, causeCanceled}).Draw(m.t, "cause")
	drain := cause == causeOffline && rapid.Bool().Draw(m.t, "drain")
	m.run.EndIdle(now, ranks, cause, drain)
	m.naive.endIdle(now, ranks, cause, drain)
}

func (m *modelRun) force(*rapid.T) {
	ranks, now := drawRanks(m.t, "force"), m.now()
	status := rapid.SampledFrom([]int32{0, 256}).Draw(m.t, "status")
	m.run.Force(now, ranks, status, "alice")
	m.naive.force(now, ranks, status)
}

// check compares after every action, and takes what came out of it.
func (m *modelRun) check(*rapid.T) {
	r, n := m.run, m.naive
	m.checkTakes()
	for s := range slotEnded + 1 {
		want := n.in(s)
		require.Equal(m.t, want.String(), r.At(s).String(), "stage %d", s)
		require.Equal(m.t, want.Len(), r.count[s], "stage %d", s)
		require.Equal(m.t, !want.IsEmpty(), r.Has(s), "stage %d", s)
	}
	require.Equal(m.t, n.open().String(), r.Open().String())
	require.Equal(m.t, n.open().Len(), r.open)
	require.Equal(m.t, n.rankSet(func(x *naiveRank) bool { return x.ended && x.status != 0 }).String(), r.Failed().String())
	require.Equal(m.t, n.done(), r.Done())
	require.Equal(m.t, n.last, r.last)
	require.Equal(m.t, n.canceled, r.canceled)
	d, ok := r.Deadline()
	require.Equal(m.t, n.deadline(), d)
	require.Equal(m.t, d != 0, ok)
	m.checkLaunches()
	if r.Done() {
		m.checkOutcome()
	}
	m.before = idset.Union(n.in(slotRunning), n.in(slotLost))
}

// checkTakes compares what came out, which is told once.
func (m *modelRun) checkTakes() {
	r, n := m.run, m.naive
	failures, signals := r.Take()
	for _, f := range failures {
		require.False(m.t, f.Ranks.IsEmpty(), "flux-core@fa1329b0a")
		require.True(m.t, n.spec.Ranks.ContainsAll(f.Ranks))
		require.NotContains(m.t, []string{"", "ok", "canceled"}, f.Cause)
		require.True(m.t, f.Status > 0 || f.Cause == "forced")
		for rank := range f.Ranks.All() {
			if f.Drain {
				m.drains[rank]++
			}
		}
	}
	require.Equal(m.t, n.drains, m.drains, "each rank is drained at most once")
	for _, e := range r.TakeEnds() {
		m.ends[e.Rank]++
		require.Equal(m.t, n.ranks[e.Rank].status, e.Status)
		require.Equal(m.t, n.ranks[e.Rank].cause == causeForced, e.Forced)
	}
	ended := new(idset.Set)
	for _, e := range r.Ends(r.spec.Ranks) {
		ended.Insert(e.Rank)
		x := n.ranks[e.Rank]
		require.Equal(m.t, rankEnd{Rank: e.Rank, Status: x.status, Forced: x.cause == causeForced}, e)
	}
	require.Equal(m.t, n.rankSet(func(x *naiveRank) bool { return x.ended }).String(), ended.String())
	require.Equal(m.t, n.ends, m.ends)
	for rank, x := range n.ranks {
		require.Equal(m.t, x.ended, m.ends[rank] == 1, "each rank ends exactly once")
	}
	var sent []string
	for _, s := range signals {
		require.False(m.t, s.Ranks.IsEmpty())
		m.sent[s.Attempt] = true
		for rank := range s.Ranks.All() {
			require.True(m.t, m.before.Contains(rank) || n.procs[rank].stage == slotRunning, "a signal to what does not run")
			require.Equal(m.t, n.procs[rank].attempt, s.Attempt)
			sent = append(sent, fmt.Sprintf("%d to %d of %d", s.Signal, rank, s.Attempt))
		}
	}
	slices.Sort(sent)
	slices.Sort(n.signals)
	require.Equal(m.t, n.signals, sent)
	n.signals = nil
	failures, signals = r.Take()
	require.True(m.t, len(failures) == 0 && len(signals) == 0 && len(r.TakeEnds()) == 0)
}

// checkLaunches recounts what the launches count.
func (m *modelRun) checkLaunches() {
	r := m.run
	require.True(m.t, slices.IsSortedFunc(r.launches, func(a, b launch) int { return int(a.attempt) - int(b.attempt) }))
	for i, l := range r.launches {
		alive, lost := 0, 0
		for _, p := range m.naive.procs {
			switch {
			case p.attempt != l.attempt:
			case p.stage == slotRunning:
				alive++
			case p.stage == slotLost:
				lost++
			}
		}
		require.Equal(m.t, [2]int{alive, lost}, [2]int{l.alive, l.lost}, "attempt %d", l.attempt)
		require.True(m.t, i > 0 || alive+lost > 0, "what is over is forgotten")
	}
	for rank, p := range m.naive.procs {
		if p.stage == slotRunning || p.stage == slotLost {
			require.Equal(m.t, p.attempt, r.launchOf(r.process(rank).attempt).attempt)
		}
	}
}

// checkOutcome compares how a run ended that is done.
func (m *modelRun) checkOutcome() {
	o := m.run.Outcome()
	worst, reported := int32(0), true
	seen := new(idset.Set)
	for _, g := range o.Groups {
		for rank := range g.Ranks.All() {
			require.True(m.t, seen.Insert(rank), "a rank is in one group")
			x := m.naive.ranks[rank]
			if x == nil || len(m.naive.ranks) == 0 || x.cause.name() != g.Cause {
				require.False(m.t, m.naive.spec.PerRank)
				require.Equal(m.t, m.naive.procs[m.naive.spec.Leader.Value].cause.name(), g.Cause)
				continue
			}
			require.Equal(m.t, x.cause.name(), g.Cause, "rank %d", rank)
		}
		cause := causeNamed(g.Cause)
		reported = reported && (g.Cause == "ok" || causes[cause].reported)
		if node := cause == causeOffline || cause == causeUnreachable; node && !m.naive.spec.PerRank {
			for rank := range g.Ranks.All() {
				reported = reported && rank == m.naive.spec.Leader.Value
			}
		}
	}
	for rank, x := range m.naive.ranks {
		require.True(m.t, seen.Contains(rank))
		worst = max(worst, x.status)
	}
	if p := m.naive.procs[m.naive.spec.Leader.Value]; !m.naive.spec.PerRank {
		worst = max(worst, p.status)
	}
	require.Equal(m.t, worst, o.Status)
	require.Equal(m.t, worst == 0, o.Note == "")
	require.Equal(m.t, reported, o.reported)
	require.Equal(m.t, m.run.Failed().String(), o.Failed.String())
	require.LessOrEqual(m.t, len(o.Note), maxRunNote)
	require.LessOrEqual(m.t, len(o.Detail), maxDetail)
}

// driveModel drives a run and its model through the same actions. Nothing keeps
// a run with a timeout from its end, if it is ticked.
func driveModel(t *rapid.T) {
	m := newModelRun(t)
	t.Repeat(map[string]func(*rapid.T){
		"": m.check, "launch": m.launch, "report": m.report, "report again": m.report, "tick": m.tick,
		"cancel": m.cancel, "lose": m.lose, "reattach": m.reattach, "end idle": m.endIdle, "force": m.force, "signaled": m.signaled,
	})
	if lost := m.naive.in(slotLost); !lost.IsEmpty() {
		m.run.Reattach(0, lost)
		m.naive.reattach(0, lost)
		m.check(t)
	}
	if idle := m.naive.in(slotIdle); !idle.IsEmpty() {
		m.run.Launch(0, m.naive.last+1, idle)
		m.naive.launch(0, m.naive.last+1, idle)
		m.check(t)
	}
	for !m.run.Done() {
		d, ok := m.run.Deadline()
		if !ok && len(m.sent) > 0 {
			m.signaled(t)
			continue
		}
		if !ok {
			require.Zero(t, m.naive.spec.Timeout)
			m.cancel(t)
			m.check(t)
			continue
		}
		m.run.Tick(d)
		m.naive.tick(d)
		m.check(t)
	}
}

// A run is what a map of ranks says, after any actions in any order.
func TestARunIsAMapOfRanks(t *testing.T) {
	for range map[bool]int{false: 1, true: 100}[os.Getenv("JOBLIFE_DEEP") != ""] {
		rapid.Check(t, driveModel)
	}
}

func FuzzRun(f *testing.F) { f.Fuzz(rapid.MakeFuzz(driveModel)) }
