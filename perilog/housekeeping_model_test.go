package perilog_test

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/joblife/joblife/perilog"
)

// hkKill and hkTimeout are those of every run of the model.
const (
	hkKill    = 5
	hkTimeout = 20
)

// hkModel drives housekeeping and hkNaive with the same inputs.
type hkModel struct {
	*hkFollow
	n      *hkNaive
	all    []uint32
	policy func(rank uint32, cause string) string
}

// hkPolicies holds decisions by rank and cause: the default, and one that has
// every decision for every rank.
var hkPolicies = map[string]func(rank uint32, cause string) string{
	"default": func(_ uint32, cause string) string {
		if cause == "ok" {
			return "release"
		}
		return "drain"
	},
	"mixed": func(rank uint32, cause string) string {
		return []string{"release", "hold", "drain"}[(int(rank)+len(cause))%3]
	},
}

func newHKModel(t require.TestingT, ranks string, after float64, policy string) *hkModel {
	m := &hkModel{policy: hkPolicies[policy], all: slices.Collect(hkRanks(ranks).All())}
	var o perilog.HousekeepingOptions
	if policy != "default" {
		o.Decide = func(rank uint32, end perilog.End) perilog.Decision {
			switch m.policy(rank, hkCauses[end.Cause]) {
			case "release":
				return perilog.DecisionRelease
			case "hold":
				return perilog.DecisionHold
			}
			return perilog.DecisionDrain
		}
	}
	var d *fsd.Duration
	if after >= 0 {
		d = hkAfter(fsd.Duration(after))
	}
	m.hkFollow = hkNew(t, hkJob(ranks, d), o)
	m.n = readNaive(t, m.log, m.all)
	return m
}

// check compares after an input: what went back, every state, and every prefix
// of what the input logged, as after a crash there.
func (m *hkModel) check() {
	want, final, any := m.n.settle()
	before := len(m.log)
	parts := m.step()
	if any {
		require.Len(m.t, parts, 1)
		require.Equal(m.t, idset.Of(want...).String(), parts[0].R.Ranks().String())
		require.Equal(m.t, final, parts[0].Final)
	} else {
		require.Empty(m.t, parts)
	}
	require.Equal(m.t, m.n.text(), hkText(m.h, m.all, m.n))
	m.deadline()
	m.prefixes(before)
}

// deadline compares when the next tick is due.
func (m *hkModel) deadline() {
	want := 0.0
	if n := m.n; len(n.in("ready")) > 0 && n.after >= 0 && !n.final {
		want = n.first + n.after
	}
	for _, r := range m.n.runs {
		if len(r.ranks) > 0 && r.deadline > 0 && (want == 0 || r.deadline < want) {
			want = r.deadline
		}
	}
	at, ok := m.h.Deadline()
	require.Equal(m.t, want != 0, ok)
	require.Equal(m.t, want, float64(at))
}

// prefixes replays the log up to each entry that came after a place.
func (m *hkModel) prefixes(from int) {
	for i := from; i < len(m.log); i++ {
		if m.log[i] != '\n' {
			continue
		}
		h, err := perilog.ReplayHousekeeping(m.log[:i+1], m.o)
		require.NoError(m.t, err)
		require.NoError(m.t, h.Check())
		n := readNaive(m.t, m.log[:i+1], m.all)
		require.Equal(m.t, n.text(), hkText(h, m.all, n))
		require.Equal(m.t, h.Status(0).Started.String(), h.Unresolved().String())
	}
}

// crashBefore goes on after a number of the last entries of the log were lost, with
// all that followed from them.
func (m *hkModel) crashBefore(lost int) {
	// What was given out stays so: only what was not taken can be lost.
	for ; lost > 0; lost-- {
		if i := bytes.LastIndexByte(m.log[:len(m.log)-1], '\n'); i >= 0 && !bytes.Contains(m.log[i:], []byte(`"name":"release"`)) {
			m.log = m.log[:i+1]
		}
	}
	h, err := perilog.ReplayHousekeeping(m.log, m.o)
	require.NoError(m.t, err)
	m.h = h
	m.n = readNaive(m.t, m.log, m.all)
	m.requests = nil
	m.step()
	if _, _, due := m.n.clone().settle(); due {
		at, ok := m.h.Deadline()
		require.True(m.t, ok, "what a crash kept is due")
		require.LessOrEqual(m.t, float64(at), m.n.now)
	}
	require.Equal(m.t, idset.Of(m.n.in("draining")...).String(), m.asked().String(), "drains are asked for again")
	require.Equal(m.t, m.n.text(), hkText(m.h, m.all, m.n))
}

// asked returns the ranks for which a drain was asked since the last call.
func (m *hkModel) asked() *idset.Set {
	all := new(idset.Set)
	for _, q := range m.requests {
		if q.Kind == perilog.RequestDrain {
			all.UnionWith(q.Ranks)
		}
	}
	m.requests = nil
	return all
}

func (m *hkModel) at() eventlog.Timestamp { return eventlog.Timestamp(m.n.now) }

func (m *hkModel) startRanks(ranks, offline *idset.Set) {
	m.asked()
	got, err := m.h.Start(m.at(), perilog.Spec{
		Ranks: ranks, Offline: offline, Timeout: hkTimeout, KillTimeout: hkKill, Command: []string{"clean"},
	})
	able := append(m.n.in("waiting", "held", "draining"), m.n.unresolved()...)
	if !idset.Of(able...).ContainsAll(ranks) {
		require.ErrorIs(m.t, err, perilog.ErrHousekeepingRanks)
		m.check()
		return
	}
	require.NoError(m.t, err)
	want := idset.Difference(ranks, offline)
	require.Equal(m.t, want.String(), got.String())
	if !want.IsEmpty() {
		m.n.start(slices.Collect(want.All()), m.n.now, hkTimeout)
	}
	m.check()
	launched := new(idset.Set)
	for _, q := range m.requests {
		if q.Kind == perilog.RequestLaunch {
			launched.UnionWith(q.Ranks)
		}
	}
	require.Equal(m.t, want.String(), launched.String())
}

// ends holds the reports that end a rank, by the name of the cause.
var hkReports = map[string]perilog.Report{
	"ok":            {Kind: perilog.ReportExited},
	"failed":        {Kind: perilog.ReportExited, Status: 2 << 8},
	"signalled":     {Kind: perilog.ReportExited, Status: 11},
	"unreachable":   {Kind: perilog.ReportUnreachable},
	"launch-failed": {Kind: perilog.ReportLaunchFailed},
}

func (m *hkModel) report(rank uint32, cause string) {
	rep := hkReports[cause]
	rep.Rank = rank
	got := m.h.Report(m.at(), rep)
	r := m.n.run(rank)
	if r == nil {
		require.NotEqual(m.t, perilog.AnswerApplied, got)
		m.check()
		return
	}
	require.Equal(m.t, perilog.AnswerApplied, got)
	if r.told && cause != "unreachable" {
		cause = "timed-out"
	}
	m.n.end(rank, cause, hkStates[m.policy(rank, cause)])
	m.check()
}

func (m *hkModel) tickBy(d float64) {
	m.n.now += d
	m.h.Tick(m.at())
	m.n.tick(hkKill, func(rank uint32, cause string) string { return hkStates[m.policy(rank, cause)] })
	m.check()
}

func (m *hkModel) drained(ranks *idset.Set) {
	rest := m.h.Drained(m.at(), ranks)
	want := idset.Intersect(ranks, idset.Of(m.n.in("draining")...))
	require.Equal(m.t, idset.Difference(ranks, want).String(), rest.String())
	for rank := range want.All() {
		m.n.state[rank] = "ready"
	}
	m.check()
}

func (m *hkModel) force(ranks *idset.Set) {
	rest, err := m.h.ForceFinish(m.at(), ranks, "root")
	require.NoError(m.t, err)
	want := idset.Intersect(ranks, idset.Of(m.n.in("waiting", "started", "held", "draining")...))
	require.Equal(m.t, idset.Difference(ranks, want).String(), rest.String())
	m.n.ready(slices.Collect(want.All()), "abandoned")
	m.check()
}

func (m *hkModel) shrink(ranks *idset.Set) {
	m.h.Shrink(m.at(), ranks)
	for rank := range ranks.All() {
		if s := m.n.state[rank]; s != "" && s != "free" {
			m.n.gone[rank] = true
			m.n.ready([]uint32{rank}, "unreachable")
		}
	}
	m.check()
}

func (m *hkModel) reattach(ranks *idset.Set) {
	err := m.h.Reattach(m.at(), perilog.Spec{Ranks: ranks, Timeout: hkTimeout, KillTimeout: hkKill})
	if !idset.Of(m.n.unresolved()...).ContainsAll(ranks) {
		require.ErrorIs(m.t, err, perilog.ErrHousekeepingRanks)
		return
	}
	require.NoError(m.t, err)
	groups := map[float64][]uint32{}
	for rank := range ranks.All() {
		groups[m.n.began[rank]] = append(groups[m.n.began[rank]], rank)
	}
	for _, at := range slices.Sorted(maps.Keys(groups)) {
		m.n.start(groups[at], at, hkTimeout)
	}
	m.check()
}

// PR-1, PR-2, HK-1 to HK-4: whatever happens in whatever order, with crashes.
func TestHousekeepingDoesWhatAMapOfRanksWouldDo(t *testing.T) { rapid.Check(t, hkProperty) }

// FuzzHousekeeping is the same, driven by the fuzzer.
func FuzzHousekeeping(f *testing.F) { f.Fuzz(rapid.MakeFuzz(hkProperty)) }

func hkProperty(t *rapid.T) {
	size := rapid.IntRange(1, 12).Draw(t, "size")
	ranks := new(idset.Set)
	for range size {
		ranks.Insert(rapid.Uint32Range(0, 40).Draw(t, "rank"))
	}
	m := newHKModel(t, ranks.String(), rapid.SampledFrom([]float64{-1, 0, 10, 30}).Draw(t, "after"),
		rapid.SampledFrom(slices.Sorted(maps.Keys(hkPolicies))).Draw(t, "policy"))
	draw := func(what string, from []uint32) *idset.Set {
		set := new(idset.Set)
		for _, rank := range from {
			if rapid.IntRange(0, 2).Draw(t, fmt.Sprintf("%s %d", what, rank)) > 0 {
				set.Insert(rank)
			}
		}
		if rapid.IntRange(0, 9).Draw(t, "odd") == 0 {
			set.Insert(rapid.Uint32Range(0, 45).Draw(t, "stranger"))
		}
		return set
	}
	causes := slices.Sorted(maps.Keys(hkReports))
	end := func(t *rapid.T) {
		if active := m.n.in("started"); len(active) > 0 && rapid.IntRange(0, 9).Draw(t, "known") > 0 {
			m.report(rapid.SampledFrom(active).Draw(t, "rank"), rapid.SampledFrom(causes).Draw(t, "cause"))
			return
		}
		m.report(rapid.Uint32Range(0, 45).Draw(t, "any"), "ok")
	}
	t.Repeat(map[string]func(*rapid.T){
		"start": func(t *rapid.T) {
			m.startRanks(draw("start", append(m.n.in("waiting", "held", "draining"), m.n.unresolved()...)), draw("offline", m.all[:1]))
		},
		"end":      end,
		"end too":  end,
		"end also": end,
		"tick":     func(t *rapid.T) { m.tickBy(float64(rapid.IntRange(0, 12).Draw(t, "seconds"))) },
		"drained":  func(t *rapid.T) { m.drained(draw("drained", m.n.in("draining"))) },
		"force":    func(t *rapid.T) { m.force(draw("force", m.n.in("held", "draining"))) },
		"shrink": func(t *rapid.T) {
			if rapid.IntRange(0, 5).Draw(t, "rarely") == 0 {
				m.shrink(draw("shrink", m.all[:1]))
			}
		},
		"crash":    func(t *rapid.T) { m.crashBefore(rapid.IntRange(0, 2).Draw(t, "lost")) },
		"reattach": func(t *rapid.T) { m.reattach(draw("reattach", m.n.unresolved())) },
	})
	// HK-4: everything ends, and then one fragment was final.
	m.force(idset.Of(m.all...))
	require.True(t, m.h.Done())
	require.Equal(t, 1, m.finals())
}
