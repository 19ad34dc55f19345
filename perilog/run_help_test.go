package perilog

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
)

// t0 is when every run of these tests is launched.
const t0 = eventlog.Timestamp(1795226020)

// set returns a set of ranks from its text.
func set(t require.TestingT, text string) *idset.Set {
	s, err := idset.Parse(text)
	require.NoError(t, err)
	return s
}

// flukes names the hosts of ranks: rank 3 is on fluke3.
func flukes(ranks *idset.Set) string {
	switch ranks.Len() {
	case 0:
		return ""
	case 1:
		return "fluke" + ranks.String()
	}
	return "fluke[" + ranks.String() + "]"
}

// perRank returns the spec of a prolog on every one of the ranks.
func perRank(t testing.TB, ranks string) runSpec {
	return runSpec{
		ActionKey: jobstate.ActionKey{Kind: jobstate.ActionProlog, Description: "job-manager.prolog"}, Ranks: set(t, ranks), Hosts: flukes,
		ActionMode: jobstate.ActionMode{PerRank: true, Timeout: 30 * time.Minute, KillTimeout: time.Minute},
	}
}

// single returns the spec of one command on a leader that serves ranks.
func single(t testing.TB, leader uint32, ranks string) runSpec {
	s := perRank(t, ranks)
	s.PerRank, s.Leader = false, jobstate.Some(leader)
	return s
}

// testRun is a run and all that came out of it.
type testRun struct {
	*run
	t        testing.TB
	now      eventlog.Timestamp
	failures []jobstate.ActionFailContext
	ends     []rankEnd
	signals  []Signal
}

// launched returns the run of a spec, launched everywhere at t0 as attempt 1.
func launched(t testing.TB, spec runSpec) *testRun {
	t.Helper()
	r := &testRun{run: makeRun(spec), t: t, now: t0}
	r.Launch(t0, 1, spec.Ranks)
	r.fetch()
	return r
}

// fetch takes what came out.
func (r *testRun) fetch() {
	failures, signals := r.Take()
	r.failures = append(r.failures, failures...)
	r.ends = append(r.ends, slices.Clone(r.TakeEnds())...)
	for _, s := range signals {
		r.signals = append(r.signals, s)
		r.Signaled(r.now, s.Attempt)
	}
}

// report reports of attempt 1, unless the report has one.
func (r *testRun) report(rep Report) Ack {
	if rep.Attempt == 0 {
		rep.Attempt = 1
	}
	a := r.Report(r.now, rep)
	r.fetch()
	return a
}

// exit reports that the command exited with a wait status on ranks.
func (r *testRun) exit(ranks string, status int32) {
	r.t.Helper()
	for rank := range set(r.t, ranks).All() {
		require.Equal(r.t, AckApplied, r.report(Report{Kind: ReportExited, Rank: rank, Status: status}), "rank %d", rank)
	}
}

// says reports a control line.
func (r *testRun) says(rank uint32, object string) Ack {
	return r.report(Report{Kind: ReportOutput, Rank: rank, Line: []byte(ControlPrefix + object + "\n")})
}

// cancel cancels the run now.
func (r *testRun) cancel() {
	r.Cancel(r.now)
	r.fetch()
}

// force finishes ranks by force.
func (r *testRun) force(ranks string, status int32) {
	r.Force(r.now, set(r.t, ranks), status, "alice")
	r.fetch()
}

// tick lets time come to the deadline. Nothing happens before it.
func (r *testRun) tick() {
	r.t.Helper()
	deadline, ok := r.Deadline()
	require.True(r.t, ok)
	before := *r.run
	r.Tick(eventlog.Timestamp(math.Nextafter(float64(deadline), 0)))
	require.Equal(r.t, before.count, r.count)
	require.Empty(r.t, r.run.signals)
	r.now = deadline
	r.Tick(deadline)
	r.fetch()
}

// drained returns the drains that were asked for, as "reason: ranks".
func (r *testRun) drained() []string {
	var out []string
	for _, f := range r.failures {
		if f.Drain {
			out = append(out, drainReason(&f, 6731191091817518)+": "+f.Ranks.String())
		}
	}
	return out
}

// causes returns the outcome's groups, those that ended well left out.
func (r *testRun) causes() string {
	require.True(r.t, r.Done())
	var out []string
	for _, g := range r.Outcome().Groups {
		if g.Cause != "ok" {
			out = append(out, g.Cause+" "+g.Ranks.String())
		}
	}
	return strings.Join(out, "; ")
}
