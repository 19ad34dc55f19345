package perilog

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/refdata"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset"
)

// Each test of this file is something that happened to users of flux-core,
// named by its issue or commit there: the part of it that is about running.

// The timer was armed when all ranks had started. One never did, and so the
// epilog never timed out: the job was in it for ever.
func TestFlux6644AnEpilogThatNeverStartedOnOneRankTimesOut(t *testing.T) {
	r := started(t, specOf(t, RunEpilog, "0-3"))
	for _, rank := range []uint32{0, 1, 3} {
		r.report(Report{Kind: ReportStarted, Rank: rank})
		r.exit(idset.Of(rank).String(), 0)
	}
	require.Equal(t, t0+1800, r.tick())
	require.Equal(t, "2", r.asked(RequestSignal)[0].Ranks.String())
	require.Equal(t, t0+1860, r.tick())
	require.True(t, r.Done())
	require.Equal(t, []string{"epilog timed out for job ƒ6VxCVPm: 2"}, r.drained())
	require.EqualValues(t, 2, r.raised().Severity)
}

// A canceled prolog whose kill timed out had the status of the ranks that
// ended, 0: no exception was raised, and the job started.
func TestFlux4e8ae3433ACanceledPrologWhoseKillTimedOutIsNoSuccess(t *testing.T) {
	r := started(t, specOf(t, RunProlog, "0-3"))
	r.exit("0-2", 0)
	r.Exception(t0+5, 0)
	r.fetch()
	r.tick()
	require.True(t, r.Done())
	o := r.Outcome()
	require.Equal(t, VerdictCanceled, o.Verdict)
	require.NotZero(t, o.Status)
	require.Equal(t, []string{"prolog canceled then timed out for job ƒ6VxCVPm: 3"}, r.drained())
	// It is done once: nothing that comes later makes it done again, which is
	// how the epilog ran twice.
	require.False(t, r.Tick(t0+9999))
	require.Equal(t, AnswerEnded, r.report(Report{Kind: ReportExited, Rank: 3}))
	require.Same(t, o, r.Outcome())
	require.Len(t, r.ends, 4)
}

// Users could drain nodes by pressing Ctrl-C during the prolog: the tasks that
// SIGTERM killed looked like failures.
func TestFlux5734CtrlCDuringAPrologDrainsNobody(t *testing.T) {
	r := started(t, specOf(t, RunProlog, "0-3"))
	r.Exception(t0+1, 0)
	r.exit("0", 15)
	r.exit("1", 143<<8)
	r.exit("2", 1<<8)
	r.exit("3", 0)
	require.True(t, r.Done())
	require.Empty(t, r.drained())
}

// A prolog that failed or was canceled left its nodes as they were: the epilog
// runs if and only if the outcome says that it did not succeed, however.
func TestFlux6055APrologThatDidNotSucceedSaysSo(t *testing.T) {
	for _, drive := range []func(r *testRun){
		func(r *testRun) { r.exit("0-3", 256) },
		func(r *testRun) { r.Exception(t0+1, 0); r.exit("0-3", 0) },
		func(r *testRun) { r.tick(); r.exit("0-3", 0) },
	} {
		r := started(t, specOf(t, RunProlog, "0-3"))
		drive(r)
		require.False(t, r.Outcome().Verdict.OK())
	}
}

// A restart forgot what was running, and jobs were stuck for ever. What was
// running can be attached to again, run again, or finished by force.
func TestFlux4108AnActionThatARestartForgotCanBeResolved(t *testing.T) {
	again := func() *testRun {
		run, err := NewRun(specOf(t, RunEpilog, "0-3"))
		require.NoError(t, err)
		return &testRun{Run: run, t: t}
	}
	r := again()
	require.NoError(t, r.Reattach(t0-600, t0))
	r.exit("0-3", 0)
	require.Equal(t, VerdictSuccess, r.Outcome().Verdict)

	r = again()
	require.NoError(t, r.Start(t0))
	r.fetch()
	require.Len(t, r.asked(RequestLaunch), 1)

	r = again()
	require.NoError(t, r.Reattach(t0-600, t0))
	require.Equal(t, AnswerApplied, r.ForceFinish(t0, nil, "alice"))
	require.True(t, r.Done())
	require.Contains(t, r.Outcome().Detail, "by alice")
}

// "Request 60, tolerate 10 failures".
func TestFlux6842APrologOn60NodesTolerates10Failures(t *testing.T) {
	for failures, verdict := range map[uint32]Verdict{0: VerdictSuccess, 10: VerdictTolerated, 11: VerdictFailed} {
		spec := specOf(t, RunProlog, "0-59")
		spec.Tolerate = Tolerate{Count: 10, Drop: true}
		r := started(t, spec)
		for rank := range uint32(60) {
			switch {
			case rank >= failures:
				r.exit(idset.Of(rank).String(), 0)
			case rank%2 == 0:
				// The script goes on, so that the rest of the prolog is done.
				r.report(control(rank, idset.Of(rank).String()))
				r.exit(idset.Of(rank).String(), 0)
			default:
				r.exit(idset.Of(rank).String(), 256)
			}
		}
		require.Equal(t, verdict, r.Outcome().Verdict)
		require.Len(t, r.drained(), int(failures))
		if verdict == VerdictTolerated {
			require.Equal(t, `{"ranks":"0-9","nodelist":"fluke[0-9]","action":"drop"}`, string(r.raised().Extra))
			require.NotZero(t, r.raised().Severity)
			require.Zero(t, r.Outcome().Status)
		}
	}
}

// An empty set of ranks was passed to drain.
func TestFluxFa1329b0aNoDrainIsAskedForWithoutARank(t *testing.T) {
	r := started(t, specOf(t, RunProlog, "0-3"))
	r.exit("0-2", 0)
	r.Exception(t0+1, 0)
	r.exit("3", 15) // before its kill timeout: no rank is left that is deaf
	require.False(t, r.Tick(t0+61))
	require.Empty(t, r.asked(RequestDrain))
}

// A failed epilog overwrote the reason for which the node was drained, "broker
// was unresponsive".
func TestFlux6c054e647ADrainLeavesAnEarlierReasonAlone(t *testing.T) {
	r := started(t, specOf(t, RunEpilog, "0-3"))
	r.report(Report{Kind: ReportUnreachable, Rank: 3})
	r.exit("0-2", 256)
	for _, q := range r.asked(RequestDrain) {
		require.Equal(t, "update", q.Mode)
	}
	require.Len(t, r.asked(RequestDrain), 4)
}

// An exception for a failed epilog changed the status of jobs that were good.
func TestFluxA767a8315AnExceptionOfAnEpilogIsNotFatal(t *testing.T) {
	for _, drive := range []func(r *testRun){
		func(r *testRun) { r.exit("0-3", 256) },
		func(r *testRun) { r.tick(); r.tick() },
		func(r *testRun) { r.Cancel(t0 + 1); r.tick() },
	} {
		r := started(t, specOf(t, RunEpilog, "0-3"))
		drive(r)
		require.Equal(t, "epilog", r.raised().Type)
		require.EqualValues(t, 2, r.raised().Severity)
	}
}

// A canceled prolog raised a second exception.
func TestFlux862f5d99aACanceledPrologRaisesNoOtherException(t *testing.T) {
	r := started(t, specOf(t, RunProlog, "0-3"))
	r.exit("3", 256) // also where one rank failed of its own
	r.Exception(t0+1, 0)
	r.exit("0-2", 15)
	require.Nil(t, r.raised())
	require.Equal(t, "prolog exited with code=1 on fluke3 (rank 3); canceled on fluke[0-2] (rank 0-2)", r.Outcome().Note)
}

// The timeout "infinity" has no encoding in JSON, and so the query failed.
func TestFluxB69652df0AnInfiniteTimeoutCanBeQueried(t *testing.T) {
	c, err := FromMap(map[string]any{"job-manager": map[string]any{"prolog": map[string]any{
		"command": []any{"true"}, "timeout": "infinity"}}})
	require.NoError(t, err)
	text, err := json.Marshal(c.Prologs[0])
	require.NoError(t, err)
	require.Contains(t, string(text), `"Timeout":"0s"`)
	r := started(t, c.Prologs[0].Spec(RunJob{R: flukes(t, "0-3")}))
	_, ok := r.Deadline()
	require.False(t, ok)
	text, err = json.Marshal(r.Remaining(t0))
	require.NoError(t, err)
	require.Equal(t, `"infinity"`, string(text))
}

// One exception for each node flooded the logs of jobs, and what it said could
// be sensitive.
func TestFlux7022AThousandFailedNodesAreOneExceptionWithoutDetails(t *testing.T) {
	spec := specOf(t, RunProlog, "0-999")
	r := started(t, spec)
	for rank := range uint32(1000) {
		r.Report(t0+1, Report{Kind: ReportExited, Rank: rank, Status: 256, Detail: "mount -o password=secret"})
	}
	r.fetch()
	require.Equal(t, "prolog exited with code=1 on fluke[0-999] (rank 0-999)", r.raised().Note)
	require.Len(t, r.drained(), 1)
	require.NotContains(t, r.Outcome().Note, "secret")
	require.Contains(t, r.Outcome().Detail, "secret")
}

// A configuration that was loaded anew changed runs that were under way.
func TestFlux7b7b6fe25AConfigurationThatIsReloadedChangesNoRun(t *testing.T) {
	m := map[string]any{"job-manager": map[string]any{"prolog": map[string]any{
		"command": []any{"old"}, "timeout": "5m", "per-rank": true, "tolerate": map[string]any{"ranks": "1"}}}}
	c, err := FromMap(m)
	require.NoError(t, err)
	run, err := NewRun(c.Prologs[0].Spec(RunJob{R: flukes(t, "0-3")}))
	require.NoError(t, err)
	table := m["job-manager"].(map[string]any)["prolog"].(map[string]any)
	table["command"].([]any)[0], table["timeout"] = "new", "1s"
	c.Prologs[0].Command[0], c.Prologs[0].Timeout = "new", 1
	c.Prologs[0].Tolerate.Ranks.Remove(1)
	require.NoError(t, run.Start(t0))
	require.Equal(t, []string{"old"}, run.Requests()[0].Command)
	require.Equal(t, 5*fsd.Minute, run.Remaining(t0))
	require.Equal(t, "1", run.Spec().Tolerate.Ranks.String())
}

// Offline nodes were sure to fail the prolog, and the user saw "exit code=1".
func TestFlux5910AnOfflineNodeIsNamedAsSuch(t *testing.T) {
	spec := specOf(t, RunProlog, "0-3")
	spec.Offline = idset.Of(2)
	r := started(t, spec)
	r.exit("0-1,3", 0)
	require.Equal(t, "prolog not run (offline) on fluke2 (rank 2)", r.raised().Note)
}

// The notes of the exceptions that flux-core raised in the recorded jobs are
// what equivalent reports make here, word for word, and so are their types,
// severities and the statuses of the finish events.
func TestRecordedExceptionsAreReproducedWordForWord(t *testing.T) {
	jobs := refdata.Lines[struct {
		ID  uint64          `json:"id"`
		Log string          `json:"eventlog"`
		R   json.RawMessage `json:"R"`
	}](t, "recorded/brokers.jsonl.gz", 33)
	drive := map[string]func(r *testRun){
		"prolog timed out on fluke1 (rank 1)":          func(r *testRun) { r.exit("0,2-3", 0); r.tick(); r.exit("1", 15) },
		"prolog exited with code=1 on fluke3 (rank 3)": func(r *testRun) { r.exit("0-2", 0); r.exit("3", 256) },
		"epilog exited with code=1 on fluke2 (rank 2)": func(r *testRun) { r.exit("0-1", 0); r.exit("2", 256) },
	}
	for _, job := range jobs {
		for e, err := range eventlog.Entries([]byte(job.Log)) {
			require.NoError(t, err)
			if e.Name != jobstate.EventException {
				continue
			}
			c, err := jobstate.ParseContext(e)
			require.NoError(t, err)
			x := c.(*jobstate.ExceptionContext)
			kind := map[string]RunKind{"prolog": RunProlog, "epilog": RunEpilog}[x.Type]
			if kind == 0 {
				continue
			}
			require.Contains(t, drive, x.Note)
			alloc, err := rset.Parse(job.R)
			require.NoError(t, err)
			r := started(t, Spec{Kind: kind, Job: jobid.ID(job.ID), Ranks: alloc.Ranks(), Hosts: alloc, PerRank: true, Timeout: 2 * fsd.Second})
			drive[x.Note](r)
			got := *r.raised()
			got.UserID = x.UserID // the instance owner's, which who posts it knows
			require.Equal(t, *x, got)
			require.Equal(t, finishStatus(t, job.Log, x.Type), r.Outcome().Status)
			delete(drive, x.Note)
		}
	}
	require.Empty(t, drive, "notes that were not met")
}

// finishStatus returns the status of the finish event of the one action of a
// kind in a log.
func finishStatus(t *testing.T, log, kind string) int32 {
	t.Helper()
	for e, err := range eventlog.Entries([]byte(log)) {
		require.NoError(t, err)
		if c, err := jobstate.ParseContext(e); err == nil && e.Name == kind+"-finish" {
			return c.(*jobstate.ActionFinishContext).Status
		}
	}
	require.Fail(t, "no finish event")
	return 0
}
