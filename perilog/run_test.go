package perilog

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/hostlist"
)

// t0 is when every run of these tests starts.
const t0 = eventlog.Timestamp(1795226020)

// ranksOf returns a set of ranks from its text.
func ranksOf(t testing.TB, text string) *idset.Set {
	t.Helper()
	set, err := idset.Parse(text)
	require.NoError(t, err)
	return set
}

// flukes returns the R of ranks that are on the hosts fluke0, fluke1, ….
func flukes(t testing.TB, ranks string) *rset.R {
	t.Helper()
	list, err := hostlist.Parse("fluke[" + ranks + "]")
	require.NoError(t, err)
	r, err := rset.New(rset.Config{
		Entries: []rset.Entry{{Ranks: ranksOf(t, ranks), Children: map[string]*idset.Set{"core": idset.Of(0)}}},
		Hosts:   list,
	})
	require.NoError(t, err)
	return r
}

// specOf returns the spec of a run on every one of the ranks, which have hosts.
func specOf(t testing.TB, kind RunKind, ranks string) Spec {
	t.Helper()
	return Spec{
		Kind: kind, Job: jobid.ID(209346101248), UserID: 1001,
		Ranks: ranksOf(t, ranks), Hosts: flukes(t, ranks),
		Command: []string{"flux-imp", "run", kind.String()}, PerRank: true,
		Timeout: 30 * fsd.Minute, KillTimeout: fsd.Minute,
	}
}

// started returns the run of a spec, started at t0, and its first requests
// fetched.
func started(t testing.TB, spec Spec) *Run {
	t.Helper()
	r, err := NewRun(spec)
	require.NoError(t, err)
	require.NoError(t, r.Start(t0))
	r.Requests()
	return r
}

// exit reports an exit.
func exit(t testing.TB, r *Run, rank uint32, status int32) {
	t.Helper()
	require.Equal(t, AnswerApplied, r.Report(t0+1, Report{Kind: ReportExited, Rank: rank, Status: status}))
}

func TestARunThatFailsOnOneRankSaysSoOnce(t *testing.T) {
	r := started(t, specOf(t, RunProlog, "0-3"))
	for _, rank := range []uint32{0, 3, 1, 2} {
		status := int32(0)
		if rank == 3 {
			status = 256
		}
		exit(t, r, rank, status)
	}
	require.True(t, r.Done())
	requests := r.Requests()
	require.Len(t, requests, 2)
	require.Equal(t, RequestDrain, requests[0].Kind)
	require.Equal(t, "3", requests[0].Ranks.String())
	require.Equal(t, "prolog failed for job ƒ6VxCVPm", requests[0].Reason)
	require.Equal(t, "update", requests[0].Mode)
	require.Equal(t, RequestRaise, requests[1].Kind)
	require.Equal(t, &jobstate.ExceptionContext{
		Type: "prolog", Severity: 0, Note: "prolog exited with code=1 on fluke3 (rank 3)",
	}, requests[1].Exception)
	require.Equal(t, int32(256), r.Outcome().Status)
}
