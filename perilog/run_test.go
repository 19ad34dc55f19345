package perilog

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
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

// testRun is a run and all that came out of it.
type testRun struct {
	*Run
	t        testing.TB
	requests []Request
	ends     []RankEnd
}

// started returns the run of a spec, started at t0.
func started(t testing.TB, spec Spec) *testRun {
	t.Helper()
	run, err := NewRun(spec)
	require.NoError(t, err)
	r := &testRun{Run: run, t: t}
	require.NoError(t, r.Start(t0))
	r.fetch()
	return r
}

// fetch takes what came out.
func (r *testRun) fetch() {
	r.requests = append(r.requests, slices.Clone(r.Requests())...)
	r.ends = r.AppendEnded(r.ends)
}

// report reports, a second after the start, and returns the answer.
func (r *testRun) report(rep Report) Answer {
	a := r.Report(t0+1, rep)
	r.fetch()
	return a
}

// exit reports that commands exited with a wait status.
func (r *testRun) exit(ranks string, status int32) {
	r.t.Helper()
	for rank := range ranksOf(r.t, ranks).All() {
		require.Equal(r.t, AnswerApplied, r.report(Report{Kind: ReportExited, Rank: rank, Status: status}))
	}
}

// tick lets time come to the deadline, and returns it.
func (r *testRun) tick() eventlog.Timestamp {
	r.t.Helper()
	deadline, ok := r.Deadline()
	require.True(r.t, ok)
	require.False(r.t, r.Tick(before(deadline)))
	require.True(r.t, r.Tick(deadline))
	r.fetch()
	return deadline
}

// asked returns the requests of a kind that came out.
func (r *testRun) asked(kind RequestKind) []Request {
	var out []Request
	for _, q := range r.requests {
		if q.Kind == kind {
			out = append(out, q)
		}
	}
	return out
}

// drained returns the drains that came out, as "reason: ranks".
func (r *testRun) drained() []string {
	var out []string
	for _, q := range r.asked(RequestDrain) {
		out = append(out, q.Reason+": "+q.Ranks.String())
	}
	return out
}

// raised returns the exception that came out, nil if there was none.
func (r *testRun) raised() *jobstate.ExceptionContext {
	r.t.Helper()
	asked := r.asked(RequestRaise)
	if len(asked) == 0 {
		return nil
	}
	require.Len(r.t, asked, 1)
	return asked[0].Exception
}

// before returns the last time before t.
func before(t eventlog.Timestamp) eventlog.Timestamp {
	return eventlog.Timestamp(math.Nextafter(float64(t), 0))
}

// causes returns the outcome's groups in words, ok ones left out.
func causes(o *Outcome) string {
	var out []string
	for _, g := range o.Groups {
		if !g.Cause.OK() {
			out = append(out, g.words()+" "+g.Ranks.String())
		}
	}
	return strings.Join(out, "; ")
}

// PL-3: a job whose prolog did not end in success never starts, whatever kept
// it from that.
func TestAPrologIsASuccessOnlyIfEveryRankDidItsWork(t *testing.T) {
	all := func(r *testRun) { r.exit("0-3", 0) }
	for _, c := range []struct {
		name, note string
		status     int32
		drive      func(r *testRun)
	}{
		{"a nonzero exit", "prolog exited with code=7 on fluke2 (rank 2)", 7 << 8,
			func(r *testRun) { r.exit("0-1,3", 0); r.exit("2", 7<<8) }},
		{"a signal", "prolog killed by signal 11 on fluke2 (rank 2)", 0x8b,
			func(r *testRun) { r.exit("0-1,3", 0); r.exit("2", 0x8b) }},
		{"a signal that a shell reports", "prolog killed by signal 9 on fluke2 (rank 2)", 137 << 8,
			func(r *testRun) { r.exit("0-1,3", 0); r.exit("2", 137<<8) }},
		{"an exit code too great for a signal", "prolog exited with code=255 on fluke2 (rank 2)", 255 << 8,
			func(r *testRun) { r.exit("0-1,3", 0); r.exit("2", 255<<8) }},
		{"a wait status of which only the bits beyond are set", "prolog exited with code=1 on fluke2 (rank 2)", 1 << 8,
			func(r *testRun) { r.exit("0-1,3", 0); r.exit("2", math.MinInt32) }},
		{"a failed launch", "prolog failed to launch on fluke2 (rank 2)", 127 << 8, func(r *testRun) {
			r.exit("0-1,3", 0)
			r.report(Report{Kind: ReportLaunchFailed, Rank: 2, Status: 127 << 8, Detail: "no such file"})
		}},
		{"a failed launch without a status", "prolog failed to launch on fluke2 (rank 2)", 1 << 8, func(r *testRun) {
			r.exit("0-1,3", 0)
			r.report(Report{Kind: ReportLaunchFailed, Rank: 2})
		}},
		{"a lost node", "prolog lost contact on fluke2 (rank 2)", 68 << 8, func(r *testRun) {
			r.exit("0-1,3", 0)
			r.report(Report{Kind: ReportUnreachable, Rank: 2})
		}},
		{"a node that the prolog reports", "prolog reported node failure on fluke2 (rank 2)", 1 << 8, func(r *testRun) {
			r.report(Report{Kind: ReportOutput, Rank: 2, Line: []byte(`perilog-control:{"version":1}`)})
			all(r)
		}},
		{"a timeout that is obeyed", "prolog timed out on fluke2 (rank 2)", 15,
			func(r *testRun) { r.exit("0-1,3", 0); r.tick(); r.exit("2", 15) }},
		{"a timeout that is obeyed with exit 0", "prolog timed out on fluke2 (rank 2)", 15,
			func(r *testRun) { r.exit("0-1,3", 0); r.tick(); r.exit("2", 0) }},
		{"a timeout that is not obeyed", "prolog timed out on fluke2 (rank 2)", 15,
			func(r *testRun) { r.exit("0-1,3", 0); r.tick(); r.tick() }},
		{"a cancel", "prolog canceled on fluke2 (rank 2)", 15,
			func(r *testRun) { r.exit("0-1,3", 0); r.Cancel(t0 + 1); r.exit("2", 15) }},
		{"a cancel after which all exit with 0", "prolog canceled on fluke[0-3] (rank 0-3)", 15,
			func(r *testRun) { r.Cancel(t0 + 1); all(r) }},
		{"a cancel that is not obeyed", "prolog canceled then timed out on fluke2 (rank 2)", 15,
			func(r *testRun) { r.exit("0-1,3", 0); r.Cancel(t0 + 1); r.tick() }},
		{"a finish by force", "prolog finished by force on fluke2 (rank 2)", 1 << 8,
			func(r *testRun) { r.exit("0-1,3", 0); r.ForceFinish(t0+1, nil, "alice"); r.fetch() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := started(t, specOf(t, RunProlog, "0-3"))
			c.drive(r)
			require.True(t, r.Done())
			o := r.Outcome()
			require.False(t, o.Verdict.OK())
			require.Equal(t, c.status, o.Status)
			require.Equal(t, c.note, o.Note)
			require.Equal(t, &jobstate.ExceptionContext{Type: "prolog", Note: c.note}, r.raised())
		})
	}
	t.Run("but if it did", func(t *testing.T) {
		r := started(t, specOf(t, RunProlog, "0-3"))
		all(r)
		require.Equal(t, VerdictSuccess, r.Outcome().Verdict)
		require.Zero(t, r.Outcome().Status)
		require.Empty(t, r.Outcome().Note)
		require.Len(t, r.requests, 1, "the launch")
	})
}

func TestANodeThatIsOfflineIsNotLaunchedAndNotDrained(t *testing.T) { // PL-10
	spec := specOf(t, RunProlog, "0-3")
	spec.Offline = ranksOf(t, "1,7")
	r := started(t, spec)
	require.Equal(t, "0,2-3", r.requests[0].Ranks.String())
	require.Equal(t, []RankEnd{{Rank: 1, End: End{Cause: CauseOffline, Status: 68 << 8}}}, r.ends)
	require.Equal(t, AnswerEnded, r.report(Report{Kind: ReportStarted, Rank: 1}))
	require.Equal(t, AnswerStranger, r.report(Report{Kind: ReportStarted, Rank: 7}))
	r.exit("0,2-3", 0)
	require.Equal(t, VerdictFailed, r.Outcome().Verdict)
	require.Equal(t, "prolog not run (offline) on fluke1 (rank 1)", r.raised().Note)
	require.Empty(t, r.drained())
}

func TestARunOfOfflineNodesAloneIsDoneAtOnce(t *testing.T) { // PL-10
	spec := specOf(t, RunEpilog, "0-3")
	spec.Offline = spec.Ranks
	r := started(t, spec)
	require.True(t, r.Done())
	require.Empty(t, r.asked(RequestLaunch))
	require.Len(t, r.ends, 4)
	require.Equal(t, VerdictFailed, r.Outcome().Verdict)
	require.Equal(t, "offline 0-3", strings.ReplaceAll(causes(r.Outcome()), "not run (offline)", "offline"))
	_, ok := r.Deadline()
	require.False(t, ok)
}

// PL-5: only a fatal exception cancels, and by default only a prolog.
func TestAnExceptionCancelsAPrologIfItIsFatal(t *testing.T) {
	for _, c := range []struct {
		name     string
		kind     RunKind
		policy   CancelPolicy
		severity uint8
		cancels  bool
	}{
		{"a prolog by a fatal one", RunProlog, CancelDefault, 0, true},
		{"not a prolog by one that is not fatal", RunProlog, CancelDefault, 1, false},
		{"not an epilog", RunEpilog, CancelDefault, 0, false},
		{"not housekeeping", RunHousekeeping, CancelDefault, 0, false},
		{"an epilog whose policy says so", RunEpilog, CancelOnException, 0, true},
		{"not a prolog whose policy says so", RunProlog, CancelNever, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec := specOf(t, c.kind, "0-3")
			spec.Cancel = c.policy
			r := started(t, spec)
			r.exit("1", 0)
			deadline, _ := r.Deadline()
			answer := r.Exception(t0+2, c.severity)
			r.fetch()
			signals := r.asked(RequestSignal)
			if !c.cancels {
				require.Equal(t, AnswerIgnored, answer)
				require.Empty(t, signals)
				require.Equal(t, RunRunning, r.State())
				after, _ := r.Deadline()
				require.Equal(t, deadline, after)
				return
			}
			require.Equal(t, AnswerApplied, answer)
			require.Len(t, signals, 1)
			require.Equal(t, 15, signals[0].Signal)
			require.Equal(t, "0,2-3", signals[0].Ranks.String())
			require.Equal(t, RunCanceling, r.State())
			after, _ := r.Deadline()
			require.Equal(t, t0+2+60, after)
		})
	}
}

func TestACanceledRunRaisesNothingDrainsNothingAndIsSignalledOnce(t *testing.T) { // PL-5
	r := started(t, specOf(t, RunProlog, "0-3"))
	require.Equal(t, AnswerApplied, r.Exception(t0+1, 0))
	require.Equal(t, AnswerRepeated, r.Exception(t0+2, 0))
	require.Equal(t, AnswerRepeated, r.Cancel(t0+3))
	deadline, _ := r.Deadline()
	require.Equal(t, t0+1+60, deadline)
	r.fetch()
	r.exit("0", 15)
	r.exit("1", 143<<8)
	r.exit("2", 0)
	r.report(Report{Kind: ReportLaunchFailed, Rank: 3})
	require.Len(t, r.asked(RequestSignal), 1)
	require.Empty(t, r.drained())
	require.Nil(t, r.raised())
	require.Equal(t, VerdictCanceled, r.Outcome().Verdict)
	require.Equal(t, "canceled 0-3", causes(r.Outcome()))
	require.EqualValues(t, 143<<8, r.Outcome().Status)
	require.Equal(t, AnswerEnded, r.Cancel(t0+9))
}

func TestACancelByAnAdministratorTellsTheJobSinceNothingElseDoes(t *testing.T) {
	for _, exception := range []bool{false, true} {
		spec := specOf(t, RunProlog, "0-3")
		spec.Cancel = CancelNever
		r := started(t, spec)
		require.Equal(t, AnswerApplied, r.Cancel(t0+1))
		if exception {
			require.Equal(t, AnswerIgnored, r.Exception(t0+2, 0))
		}
		r.exit("0-3", 15)
		if exception {
			require.Nil(t, r.raised())
		} else {
			require.Equal(t, "prolog canceled on fluke[0-3] (rank 0-3)", r.raised().Note)
		}
	}
}

func TestAFailureBeforeACancelIsAFailureOfTheNode(t *testing.T) {
	r := started(t, specOf(t, RunProlog, "0-3"))
	r.exit("3", 256)
	r.Exception(t0+2, 0)
	r.exit("0", 15)
	r.report(Report{Kind: ReportUnreachable, Rank: 1}) // no user does that by canceling
	r.tick()
	require.Equal(t, []string{
		"prolog failed for job ƒ6VxCVPm: 3",
		"prolog lost contact for job ƒ6VxCVPm: 1",
		"prolog canceled then timed out for job ƒ6VxCVPm: 2",
	}, r.drained())
	require.Nil(t, r.raised())
}

func TestSIGKILLIsSentOnlyWhereTheSpecSaysSo(t *testing.T) { // PL-5
	for _, kill := range []bool{false, true} {
		spec := specOf(t, RunEpilog, "0-3")
		spec.Kill = kill
		r := started(t, spec)
		r.exit("0", 0)
		r.tick()
		r.exit("1", 15)
		r.tick()
		signals := r.asked(RequestSignal)
		require.Equal(t, 15, signals[0].Signal)
		require.Equal(t, "1-3", signals[0].Ranks.String())
		if !kill {
			require.Len(t, signals, 1)
			continue
		}
		require.Len(t, signals, 2)
		require.Equal(t, 9, signals[1].Signal)
		require.Equal(t, "2-3", signals[1].Ranks.String())
	}
}

// PL-6: the timer is armed at the launch, and a runner that never calls back can
// not hang a run beyond the timeout and the kill timeout.
func TestATimeoutCountsFromTheLaunch(t *testing.T) {
	r := started(t, specOf(t, RunEpilog, "0-3"))
	require.Equal(t, 1800*fsd.Second, r.Remaining(t0))
	require.Equal(t, 1700*fsd.Second, r.Remaining(t0+100))
	require.Equal(t, fsd.Duration(0), r.Remaining(t0+9999))
	require.Equal(t, 1800*fsd.Second, r.Remaining(eventlog.Timestamp(math.NaN())))
	require.Equal(t, t0+1800, r.tick())
	require.Equal(t, RunTimingOut, r.State())
	require.Equal(t, t0+1860, r.tick())
	require.True(t, r.Done())
	require.Equal(t, "timed out 0-3", causes(r.Outcome()))
	require.Equal(t, fsd.Infinity(), r.Remaining(t0))
	require.False(t, r.Tick(t0+9999))
	require.Equal(t, AnswerEnded, r.report(Report{Kind: ReportExited, Rank: 2}))
}

func TestNoTimeoutIsNoTimerAndHasAnEncoding(t *testing.T) { // PL-6
	for _, timeout := range []fsd.Duration{0, fsd.Infinity()} {
		spec := specOf(t, RunEpilog, "0-3")
		spec.Timeout = timeout
		r := started(t, spec)
		_, ok := r.Deadline()
		require.False(t, ok)
		require.False(t, r.Tick(math.MaxFloat64))
		require.Equal(t, RunRunning, r.State())
		text, err := json.Marshal(map[string]any{"timeout": r.Spec().Timeout, "remaining": r.Remaining(t0)})
		require.NoError(t, err)
		require.Equal(t, `{"remaining":"infinity","timeout":"0s"}`, string(text))
		r.exit("0-3", 0)
	}
}

func TestATickThatComesLateGivesTheWholeKillTimeout(t *testing.T) {
	r := started(t, specOf(t, RunEpilog, "0-3"))
	require.True(t, r.Tick(t0+5000))
	deadline, _ := r.Deadline()
	require.Equal(t, t0+5060, deadline)
	require.Equal(t, AnswerIgnored, r.Cancel(t0+5001), "it is being stopped")
	require.Equal(t, RunTimingOut, r.State())
}

func TestTimersThatAreTooShortToTellFireTogether(t *testing.T) {
	spec := specOf(t, RunEpilog, "0-3")
	spec.Timeout, spec.KillTimeout = 1e-12, 1e-12
	r := started(t, spec)
	require.True(t, r.Tick(t0))
	require.True(t, r.Done())
}

func TestTheLongestTimersAreStillTimes(t *testing.T) {
	spec := specOf(t, RunEpilog, "0-3")
	spec.Timeout, spec.KillTimeout = math.MaxFloat64, math.MaxFloat64
	run, err := NewRun(spec)
	require.NoError(t, err)
	require.NoError(t, run.Start(math.MaxFloat64))
	deadline, ok := run.Deadline()
	require.True(t, ok)
	require.EqualValues(t, math.MaxFloat64, deadline)
	require.True(t, run.Tick(math.MaxFloat64))
	require.True(t, run.Done())
}

func TestAClockThatStepsBackIsTakenAsStandingStill(t *testing.T) {
	r := started(t, specOf(t, RunProlog, "0-3"))
	require.False(t, r.Tick(t0+100))
	for _, now := range []eventlog.Timestamp{t0 - 500, 0, -1, eventlog.Timestamp(math.NaN()), eventlog.Timestamp(math.Inf(1))} {
		require.False(t, r.Tick(now))
		require.Contains(t, r.String(), "at 1795226120.0")
	}
	require.Equal(t, AnswerApplied, r.Cancel(t0-500))
	deadline, _ := r.Deadline()
	require.Equal(t, t0+160, deadline)
	r.exit("0-3", 15)
	require.Equal(t, t0+100, r.Outcome().End)
	require.Equal(t, 100*fsd.Second, r.Outcome().Elapsed()) // PL-17
}

// PL-7: what becomes of the configuration, or of what came out, changes nothing.
func TestARunIsASnapshotOfItsSpec(t *testing.T) {
	spec := specOf(t, RunProlog, "0-3")
	spec.Offline, spec.Tolerate.Ranks = ranksOf(t, "0"), ranksOf(t, "0")
	r, err := NewRun(spec)
	require.NoError(t, err)
	want := r.Spec()
	ruin := func(s Spec) {
		s.Ranks.Remove(1)
		s.Offline.Insert(2)
		s.Tolerate.Ranks.Insert(3)
		s.Command[0] = "rm"
	}
	ruin(spec)
	ruin(r.Spec())
	require.Equal(t, want, r.Spec())
	require.NoError(t, r.Start(t0))
	launch := r.Requests()[0]
	require.Equal(t, "1-3", launch.Ranks.String())
	require.Equal(t, []string{"flux-imp", "run", "prolog"}, launch.Command)
	launch.Command[0] = "rm"
	launch.Ranks.Remove(1)
	require.Equal(t, want, r.Spec())
	require.Equal(t, "1-3", r.Active().String())
}

// PL-9: what is told twice, too late, too early or of a stranger changes nothing.
func TestWhatIsToldTwiceChangesNothing(t *testing.T) {
	run, err := NewRun(specOf(t, RunProlog, "0-3"))
	require.NoError(t, err)
	r := &testRun{Run: run, t: t}
	same := func(want Answer, input func() Answer) {
		t.Helper()
		text := r.String()
		require.Equal(t, want, input())
		require.Equal(t, text, r.String())
		require.Empty(t, r.Requests())
	}
	exit0 := Report{Kind: ReportExited, Rank: 2}
	same(AnswerEarly, func() Answer { return r.Report(0, exit0) })
	same(AnswerEarly, func() Answer { return r.Cancel(0) })
	same(AnswerEarly, func() Answer { return r.ForceFinish(0, nil, "") })
	require.NoError(t, r.Start(t0))
	r.fetch()
	same(AnswerStranger, func() Answer { return r.Report(0, Report{Kind: ReportExited, Rank: 4}) })
	same(AnswerStranger, func() Answer { return r.Report(0, Report{Kind: ReportExited, Rank: math.MaxUint32}) })
	same(AnswerStranger, func() Answer { return r.ForceFinish(0, idset.Of(9), "") })
	same(AnswerIgnored, func() Answer { return r.Report(0, Report{Rank: 2}) })
	same(AnswerIgnored, func() Answer { return r.Report(0, Report{Rank: 2, Kind: 99}) })
	same(AnswerIgnored, func() Answer { return r.Report(0, Report{Rank: 2, Kind: ReportExited, Status: 0x137f}) }) // stopped
	same(AnswerIgnored, func() Answer { return r.Report(0, Report{Rank: 2, Kind: ReportExited, Status: 0xffff}) }) // goes on
	same(AnswerIgnored, func() Answer { return r.Report(0, Report{Rank: 2, Kind: ReportOutput, Line: []byte("hello")}) })
	require.Equal(t, AnswerApplied, r.report(Report{Kind: ReportStarted, Rank: 2}))
	same(AnswerRepeated, func() Answer { return r.Report(0, Report{Kind: ReportStarted, Rank: 2}) })
	require.Equal(t, AnswerApplied, r.report(exit0))
	for kind := ReportStarted; kind <= ReportOutput; kind++ {
		same(AnswerEnded, func() Answer { return r.Report(0, Report{Kind: kind, Rank: 2, Status: 256}) })
	}
	same(AnswerEnded, func() Answer { return r.ForceFinish(0, idset.Of(2), "") })
	r.exit("0-1,3", 0)
	same(AnswerEnded, func() Answer { return r.ForceFinish(0, nil, "") })
	same(AnswerEnded, func() Answer { return r.Cancel(0) })
	require.ErrorIs(t, r.Start(t0), ErrStarted)
	require.ErrorIs(t, r.Reattach(t0, t0), ErrStarted)
}

func TestAnswersHaveNames(t *testing.T) {
	require.Equal(t, "applied repeated ended stranger early ignored Answer(9)", strings.Join([]string{
		AnswerApplied.String(), AnswerRepeated.String(), AnswerEnded.String(), AnswerStranger.String(),
		AnswerEarly.String(), AnswerIgnored.String(), Answer(9).String()}, " "))
	require.Equal(t, "ready running canceled timeout done RunState(9)", strings.Join([]string{
		RunReady.String(), RunRunning.String(), RunCanceling.String(), RunTimingOut.String(),
		RunDone.String(), RunState(9).String()}, " "))
	require.Equal(t, "launch signal drain raise RequestKind(9)", strings.Join([]string{
		RequestLaunch.String(), RequestSignal.String(), RequestDrain.String(), RequestRaise.String(),
		RequestKind(9).String()}, " "))
	require.Equal(t, "success tolerated failed canceled Verdict(9)", strings.Join([]string{
		VerdictSuccess.String(), VerdictTolerated.String(), VerdictFailed.String(), VerdictCanceled.String(),
		Verdict(9).String()}, " "))
	require.Equal(t, "prolog epilog housekeeping RunKind(9)", strings.Join([]string{
		RunProlog.String(), RunEpilog.String(), RunHousekeeping.String(), RunKind(9).String()}, " "))
	var names []string
	for c := CauseOK; c <= CauseAbandoned+1; c++ {
		names = append(names, c.String())
	}
	require.Equal(t, []string{"ok", "failed", "reported node failure", "killed by signal", "timed out", "canceled",
		"canceled then timed out", "failed to launch", "unreachable", "offline", "finished by force", "Cause(12)"}, names)
}

func TestASpecThatCanNotRunIsRefusedWithTheFieldsName(t *testing.T) {
	nan := fsd.Duration(math.NaN())
	many := new(idset.Set)
	many.InsertRange(5, 5+MaxRunRanks)
	for text, change := range map[string]func(*Spec){
		"perilog: Spec.Kind: is none of the kinds":                                             func(s *Spec) { s.Kind = 0 },
		"perilog: Spec.Kind: is none of the kinds ":                                            func(s *Spec) { s.Kind = RunHousekeeping + 1 },
		"perilog: Spec.Ranks: is empty":                                                        func(s *Spec) { s.Ranks = nil },
		"perilog: Spec.Ranks: has more than 1048576 ranks":                                     func(s *Spec) { s.Ranks = many },
		"perilog: Spec.Leader: is no rank":                                                     func(s *Spec) { s.PerRank, s.Leader = false, math.MaxUint32 },
		"perilog: Spec.Timeout: is not a duration":                                             func(s *Spec) { s.Timeout = -1 },
		"perilog: Spec.Timeout: is not a duration ":                                            func(s *Spec) { s.Timeout = nan },
		"perilog: Spec.KillTimeout: is not a finite duration":                                  func(s *Spec) { s.KillTimeout = fsd.Infinity() },
		"perilog: Spec.KillTimeout: is not a finite duration ":                                 func(s *Spec) { s.KillTimeout = -1 },
		"perilog: Spec.KillTimeout: is not a finite duration  ":                                func(s *Spec) { s.KillTimeout = nan },
		"perilog: Spec.Cancel: is none of the policies":                                        func(s *Spec) { s.Cancel = CancelNever + 1 },
		"perilog: Spec.Tolerate: the count is negative":                                        func(s *Spec) { s.Tolerate.Count = -1 },
		"perilog: Spec.Tolerate: the fraction is not from 0 to 1":                              func(s *Spec) { s.Tolerate.Fraction = 1.1 },
		"perilog: Spec.Tolerate: the fraction is not from 0 to 1 ":                             func(s *Spec) { s.Tolerate.Fraction = -0.1 },
		"perilog: Spec.Tolerate: the fraction is not from 0 to 1  ":                            func(s *Spec) { s.Tolerate.Fraction = math.NaN() },
		"perilog: Spec.Description: is too long, or has control characters or invalid UTF-8":   func(s *Spec) { s.Description = "a\nb" },
		"perilog: Spec.Description: is too long, or has control characters or invalid UTF-8 ":  func(s *Spec) { s.Description = "\xff" },
		"perilog: Spec.Description: is too long, or has control characters or invalid UTF-8  ": func(s *Spec) { s.Description = strings.Repeat("a", 257) },
	} {
		spec := specOf(t, RunProlog, "0-3")
		change(&spec)
		r, err := NewRun(spec)
		require.Nil(t, r)
		require.EqualError(t, err, strings.TrimRight(text, " "))
		require.ErrorIs(t, err, ErrSpec)
		var e *SpecError
		require.True(t, errors.As(err, &e))
	}
	many.Remove(5)
	spec := specOf(t, RunProlog, "0-3")
	spec.Ranks, spec.Hosts, spec.Description = many, nil, strings.Repeat("a", 256)
	_, err := NewRun(spec)
	require.NoError(t, err)
}

func TestAStartAtNoTimeIsRefusedAndChangesNothing(t *testing.T) {
	r, err := NewRun(specOf(t, RunProlog, "0-3"))
	require.NoError(t, err)
	text := r.String()
	for _, now := range []eventlog.Timestamp{0, -1, eventlog.Timestamp(math.NaN()), eventlog.Timestamp(math.Inf(1))} {
		require.EqualError(t, r.Start(now), "perilog: Spec.now: is not finite and greater than 0")
		require.ErrorIs(t, r.Reattach(now, t0), ErrSpec)
		require.ErrorIs(t, r.Reattach(t0, now), ErrSpec)
		require.Equal(t, text, r.String())
	}
	require.NoError(t, r.Start(t0))
}

func TestDefaultsAreThoseOfTheReference(t *testing.T) {
	for kind, want := range map[RunKind]Spec{
		RunProlog:       {Description: "job-manager.prolog", Cancel: CancelOnException},
		RunEpilog:       {Description: "job-manager.epilog", Cancel: CancelNever},
		RunHousekeeping: {Description: "housekeeping", Cancel: CancelNever},
	} {
		r, err := NewRun(Spec{Kind: kind, Ranks: idset.Of(3), Timeout: fsd.Infinity()})
		require.NoError(t, err)
		got := r.Spec()
		require.Equal(t, want.Description, got.Description)
		require.Equal(t, want.Cancel, got.Cancel)
		require.Equal(t, 60*fsd.Second, got.KillTimeout)
		require.Zero(t, got.Timeout)
		require.Equal(t, RunReady, r.State())
		require.Nil(t, r.Outcome())
	}
}

// hostsR returns the R of ranks on the given hosts.
func hostsR(t testing.TB, hosts []string, ranks *idset.Set) *rset.R {
	t.Helper()
	list, err := hostlist.Parse(strings.Join(hosts, ","))
	require.NoError(t, err)
	r, err := rset.New(rset.Config{
		Entries: []rset.Entry{{Ranks: ranks, Children: map[string]*idset.Set{"core": idset.Of(0)}}},
		Hosts:   list,
	})
	require.NoError(t, err)
	return r
}
