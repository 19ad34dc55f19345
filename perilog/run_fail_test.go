package perilog

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/fsd"
)

// control returns a report of output that names ranks as failed.
func control(rank uint32, failed string) Report {
	return Report{Kind: ReportOutput, Rank: rank, Line: []byte(`perilog-control: {"version":1,"failed":"` + failed + `"}` + "\n")}
}

// PL-13: a drain names ranks, tells the job and the cause, and leaves an earlier
// reason alone.
func TestARankIsDrainedOnceBeforeItsEndIsTold(t *testing.T) {
	r := started(t, specOf(t, RunEpilog, "0-7"))
	r.requests = nil
	answers := []Answer{
		r.Report(t0+1, Report{Kind: ReportExited, Rank: 5, Status: 256}),
		r.Report(t0+1, Report{Kind: ReportExited, Rank: 1, Status: 9}),
		r.Report(t0+1, Report{Kind: ReportLaunchFailed, Rank: 6}),
		r.Report(t0+1, Report{Kind: ReportExited, Rank: 4}),
		r.Report(t0+1, Report{Kind: ReportUnreachable, Rank: 0}),
		r.Report(t0+1, control(2, "2-3")),
		r.Report(t0+1, Report{Kind: ReportUnreachable, Rank: 3}),
	}
	require.Equal(t, slices.Repeat([]Answer{AnswerApplied}, 7), answers)
	r.fetch()
	require.Equal(t, []string{
		"epilog failed for job ƒ6VxCVPm: 1,5-6",
		"epilog lost contact for job ƒ6VxCVPm: 0",
		"epilog reported node failure for job ƒ6VxCVPm: 2-3",
	}, r.drained())
	for _, q := range r.requests {
		require.Equal(t, "update", q.Mode)
		require.False(t, q.Ranks.IsEmpty())
	}
	require.Equal(t, []RankEnd{
		{5, End{CauseFailed, 256}}, {1, End{CauseSignalled, 9}}, {6, End{CauseLaunchFailed, 256}}, {4, End{CauseOK, 0}},
		{0, End{CauseUnreachable, 68 << 8}}, {3, End{CauseUnreachable, 68 << 8}},
	}, r.ends)
	require.Equal(t, End{CauseUnreachable, 68 << 8}, r.EndOf(3))
	require.Equal(t, End{}, r.EndOf(2))
	require.Equal(t, End{}, r.EndOf(99))
	r.exit("2", 0)
	require.Equal(t, End{CauseReported, 256}, r.EndOf(2))
	r.exit("7", 0)
	require.Len(t, r.drained(), 3)
}

func TestARequestThatWasFetchedIsNotChanged(t *testing.T) {
	r := started(t, specOf(t, RunEpilog, "0-3"))
	r.Report(t0, Report{Kind: ReportExited, Rank: 0, Status: 256})
	first := r.Requests()[0]
	r.Report(t0, Report{Kind: ReportExited, Rank: 1, Status: 256})
	require.Equal(t, "0", first.Ranks.String())
	require.Equal(t, "1", r.Requests()[0].Ranks.String())
	require.Empty(t, r.Requests())
}

// PL-14: a failed epilog is told, and changes nothing of how the job ended.
func TestAFailedEpilogRaisesAnExceptionThatIsNotFatal(t *testing.T) {
	r := started(t, specOf(t, RunEpilog, "0-3"))
	r.exit("0-1,3", 0)
	r.exit("2", 256)
	require.Equal(t, &jobstate.ExceptionContext{Type: "epilog", Severity: 2, Note: "epilog exited with code=1 on fluke2 (rank 2)"},
		r.raised())
}

func TestHousekeepingRaisesNothingSinceItsJobIsNoMore(t *testing.T) {
	r := started(t, specOf(t, RunHousekeeping, "0-3"))
	r.exit("0-3", 256)
	require.Nil(t, r.raised())
	require.Equal(t, VerdictFailed, r.Outcome().Verdict)
	require.Equal(t, []string{"housekeeping failed for job ƒ6VxCVPm: 0", "housekeeping failed for job ƒ6VxCVPm: 1",
		"housekeeping failed for job ƒ6VxCVPm: 2", "housekeeping failed for job ƒ6VxCVPm: 3"}, r.drained())
}

// PL-12: one outcome, with the ranks by cause, whatever the number of nodes.
func TestAnOutcomeNamesTheRanksOfEachCause(t *testing.T) {
	spec := specOf(t, RunProlog, "0-9")
	spec.Offline = ranksOf(t, "9")
	r := started(t, spec)
	r.report(Report{Kind: ReportLaunchFailed, Rank: 8, Detail: "exec: \x1b[1m denied"})
	r.exit("1,3", 2<<8)
	r.exit("2", 256)
	r.exit("4", 11)
	r.report(Report{Kind: ReportUnreachable, Rank: 5})
	r.exit("0", 0)
	r.tick()
	r.exit("6", 15)
	r.tick()
	o := r.Outcome()
	require.Equal(t, "exited with code=1 2; exited with code=2 1,3; killed by signal 11 4; timed out 6-7; "+
		"failed to launch 8; lost contact 5; not run (offline) 9", causes(o))
	require.Equal(t, "prolog exited with code=1 on fluke2 (rank 2); exited with code=2 on fluke[1,3] (rank 1,3); "+
		"killed by signal 11 on fluke4 (rank 4); timed out on fluke[6-7] (rank 6-7); "+
		"failed to launch on fluke8 (rank 8); lost contact on fluke5 (rank 5); not run (offline) on fluke9 (rank 9)", o.Note)
	require.Equal(t, "1-9", o.Failed.String())
	require.EqualValues(t, 68<<8, o.Worst)
	require.EqualValues(t, 68<<8, o.Status)
	require.Equal(t, t0, o.Start)
	require.Equal(t, t0+1860, o.End)
	require.Equal(t, "rank 8 (fluke8): failed to launch, status 256: \"exec: \\x1b[1m denied\"\n"+
		"rank 1 (fluke1): failed, status 512\nrank 3 (fluke3): failed, status 512\nrank 2 (fluke2): failed, status 256\n"+
		"rank 4 (fluke4): killed by signal, status 11\nrank 5 (fluke5): unreachable, status 17408\n"+
		"rank 6 (fluke6): timed out, status 15\nrank 7 (fluke7): timed out, status 15: \"deaf to SIGTERM\"\n", o.Detail)
	require.Same(t, o, r.Outcome())
	require.Len(t, r.asked(RequestRaise), 1)
}

func TestWhatAnOutcomeSaysIsBounded(t *testing.T) {
	var ranks, hosts []string
	for i := range 3000 {
		ranks = append(ranks, fmt.Sprint(i*2))
		hosts = append(hosts, fmt.Sprintf("n%d-%d", i*7%1000, i))
	}
	spec := specOf(t, RunProlog, "0-1")
	spec.Ranks, spec.Hosts = ranksOf(t, strings.Join(ranks, ",")), nil
	r := started(t, spec)
	long := strings.Repeat("\xff", 1<<20)
	for i := range uint32(3000) {
		status := int32(i%120+1) << 8
		r.report(Report{Kind: ReportExited, Rank: i * 2, Status: status, Detail: long})
	}
	o := r.Outcome()
	require.Len(t, o.Groups, 120)
	require.LessOrEqual(t, len(o.Note), MaxNote)
	require.Greater(t, len(o.Note), MaxNote/2)
	require.Regexp(t, `; and \d+ more causes$`, o.Note)
	require.LessOrEqual(t, len(o.Detail), MaxDetail)
	require.Greater(t, len(o.Detail), MaxDetail/2)
	require.Regexp(t, `\nand 29\d\d more\n$`, o.Detail)
	require.Less(t, cap(r.details.text), 4*MaxDetail)

	spec.Hosts = hostsR(t, hosts, spec.Ranks)
	spec.Description = strings.Repeat("d", MaxDescription)
	r = started(t, spec)
	r.ForceFinish(t0, nil, "alice")
	require.Equal(t, "prolog "+spec.Description+" finished by force on 3000 nodes (rank 3000 in all)", r.Outcome().Note)
}

// What is kept are the first reports: a short one after a long one that had no
// room would seem to be all there was.
func TestDetailsEndWhereTheRoomDoes(t *testing.T) {
	r := started(t, specOf(t, RunEpilog, "0-99"))
	for rank := range uint32(99) {
		r.report(Report{Kind: ReportExited, Rank: rank, Status: 256, Detail: strings.Repeat("x", 256)})
	}
	r.exit("99", 256)
	require.NotContains(t, r.Outcome().Detail, "rank 99 ")
	require.Regexp(t, `\nand \d\d more\n$`, r.Outcome().Detail)
}

func TestANoteWithoutHostsNamesTheRanks(t *testing.T) {
	spec := specOf(t, RunEpilog, "0-3")
	spec.Hosts = nil
	r := started(t, spec)
	r.exit("0,2-3", 0)
	r.exit("1", 256)
	require.Equal(t, "epilog exited with code=1 on rank 1", r.Outcome().Note)
	require.Equal(t, "rank 1: failed, status 256\n", r.Outcome().Detail)
	spec.Hosts = flukes(t, "5-6") // of other ranks
	r = started(t, spec)
	r.exit("0-3", 256)
	require.Equal(t, "epilog exited with code=1 on rank 0-3", r.Outcome().Note)
}

func TestANamedActionIsNamedInNotesAndReasons(t *testing.T) {
	spec := specOf(t, RunEpilog, "0-3")
	spec.Description = "scrub"
	r := started(t, spec)
	r.exit("0-2", 0)
	r.exit("3", 256)
	require.Equal(t, "epilog scrub exited with code=1 on fluke3 (rank 3)", r.raised().Note)
	require.Equal(t, "epilog", r.raised().Type)
	require.Equal(t, []string{"epilog scrub failed for job ƒ6VxCVPm: 3"}, r.drained())
}

// PL-11.
func TestFailuresWithinTheToleranceAreSuccessWithASetOfFailedRanks(t *testing.T) {
	const exits, canceled = 0, 1
	for _, c := range []struct {
		name     string
		ranks    string
		tolerate Tolerate
		failed   string
		verdict  Verdict
		how      int
	}{
		{"none by default", "0-9", Tolerate{}, "3", VerdictFailed, exits},
		{"as many as the count", "0-9", Tolerate{Count: 2}, "3,5", VerdictTolerated, exits},
		{"not more than the count", "0-9", Tolerate{Count: 2}, "3,5,7", VerdictFailed, exits},
		{"as many as the fraction", "0-9", Tolerate{Fraction: 0.3}, "3,5,7", VerdictTolerated, exits},
		{"not more than the fraction", "0-9", Tolerate{Fraction: 0.3}, "3,5,7-8", VerdictFailed, exits},
		{"a fraction that is not exact as a float", "0-99", Tolerate{Fraction: 0.29}, "0-28", VerdictTolerated, exits},
		{"a fraction is rounded down", "0-98", Tolerate{Fraction: 0.29}, "0-28", VerdictFailed, exits},
		{"the greater of both", "0-9", Tolerate{Count: 1, Fraction: 0.2}, "3,5", VerdictTolerated, exits},
		{"the greater of both, otherwise", "0-9", Tolerate{Count: 2, Fraction: 0.1}, "3,5", VerdictTolerated, exits},
		{"those that are named", "0-9", Tolerate{Ranks: idset.Of(3, 5, 7)}, "3,7", VerdictTolerated, exits},
		{"not those that are not named", "0-9", Tolerate{Ranks: idset.Of(3, 5, 7)}, "2", VerdictFailed, exits},
		{"those that are named do not count", "0-9", Tolerate{Count: 1, Ranks: idset.Of(3)}, "3,5", VerdictTolerated, exits},
		{"not all, whatever is tolerated", "0-9", Tolerate{Count: 99, Fraction: 1}, "0-9", VerdictFailed, exits},
		{"not all, even by name", "0-1", Tolerate{Ranks: idset.Of(0, 1)}, "0-1", VerdictFailed, exits},
		{"all but one", "0-9", Tolerate{Fraction: 1}, "0-8", VerdictTolerated, exits},
		{"nothing of a canceled run", "0-9", Tolerate{Fraction: 1}, "3", VerdictCanceled, canceled},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec := specOf(t, RunProlog, c.ranks)
			spec.Tolerate = c.tolerate
			r := started(t, spec)
			failed := ranksOf(t, c.failed)
			good := idset.Difference(spec.Ranks, failed).String()
			r.exit(good, 0)
			if c.how == canceled {
				r.Cancel(t0 + 1)
			}
			r.exit(c.failed, 256)
			o := r.Outcome()
			require.Equal(t, c.verdict, o.Verdict)
			require.Equal(t, c.failed, o.Failed.String())
			require.Equal(t, c.verdict == VerdictTolerated, o.Status == 0)
			require.EqualValues(t, 256, o.Worst)
		})
	}
}

func TestToleratedRanksAreNamedByOneExceptionThatIsNotFatal(t *testing.T) {
	for _, drop := range []bool{false, true} {
		spec := specOf(t, RunProlog, "0-3")
		spec.Tolerate = Tolerate{Count: 2, Drop: drop}
		r := started(t, spec)
		r.exit("1", 256)
		require.Equal(t, []string{"prolog failed for job ƒ6VxCVPm: 1"}, r.drained(), "at once")
		r.exit("0,2", 0)
		r.exit("3", 256)
		action := map[bool]string{false: "keep", true: "drop"}[drop]
		require.Equal(t, drop, r.Outcome().Drop)
		x := r.raised()
		require.Equal(t, &jobstate.ExceptionContext{Type: "prolog", Severity: 2,
			Note:  "prolog exited with code=1 on fluke[1,3] (rank 1,3)",
			Extra: []byte(`{"ranks":"1,3","nodelist":"fluke[1,3]","action":"` + action + `"}`)}, x)
		entry, err := jobstate.NewEntry(t0, x)
		require.NoError(t, err)
		require.Equal(t, `{"type":"prolog","severity":2,"note":"prolog exited with code=1 on fluke[1,3] (rank 1,3)",`+
			`"ranks":"1,3","nodelist":"fluke[1,3]","action":"`+action+`"}`, string(entry.Context))
		read, ok, err := ParseFailedRanks(entry)
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, "1,3", read.Ranks.String())
		require.Equal(t, "fluke[1,3]", read.Nodelist)
		require.Equal(t, action, read.Action.String())
	}
}

func TestToleratedRanksWithoutHostsAreNamedAlone(t *testing.T) {
	spec := specOf(t, RunProlog, "0-3")
	spec.Tolerate, spec.Hosts = Tolerate{Count: 1}, nil
	r := started(t, spec)
	r.exit("1", 256)
	r.exit("0,2-3", 0)
	require.Equal(t, `{"ranks":"1","action":"keep"}`, string(r.raised().Extra))
}

func TestACommandThatRunsOnceEndsForAllRanks(t *testing.T) {
	spec := specOf(t, RunProlog, "4-7")
	spec.PerRank, spec.Leader, spec.Hosts = false, 0, flukes(t, "0-7")
	spec.Offline = ranksOf(t, "5") // which is not to run it
	r := started(t, spec)
	require.Equal(t, "0", r.requests[0].Ranks.String())
	require.Equal(t, "0", r.Active().String())
	require.Equal(t, AnswerStranger, r.report(Report{Kind: ReportStarted, Rank: 4}))
	require.Equal(t, AnswerApplied, r.report(Report{Kind: ReportStarted, Rank: 0}))
	require.Equal(t, AnswerRepeated, r.report(Report{Kind: ReportStarted, Rank: 0}))
	require.Contains(t, r.String(), "; active 0; started 0;")
	require.Empty(t, r.ends)
	r.exit("0", 3<<8)
	require.Len(t, r.ends, 4)
	require.Equal(t, RankEnd{4, End{CauseFailed, 3 << 8}}, r.ends[0])
	require.Equal(t, "prolog exited with code=3 on fluke0 (rank 0)", r.raised().Note)
	require.Equal(t, "4-7", r.Outcome().Failed.String())
	require.Empty(t, r.drained(), "it tells nothing of a node")
	require.Equal(t, AnswerEnded, r.report(Report{Kind: ReportExited, Rank: 0}))
	require.Equal(t, "", r.Active().String())
}

func TestACommandThatRunsOnceTimesOutOnItsOwnRank(t *testing.T) {
	spec := specOf(t, RunProlog, "4-7")
	spec.PerRank, spec.Leader, spec.Hosts, spec.Kill = false, 4, flukes(t, "0-7"), true
	r := started(t, spec)
	r.tick()
	r.tick()
	require.Equal(t, "4", r.asked(RequestSignal)[0].Ranks.String())
	require.Equal(t, "4", r.asked(RequestSignal)[1].Ranks.String())
	require.Equal(t, "prolog timed out on fluke4 (rank 4)", r.raised().Note)
	require.Equal(t, []string{"prolog timed out for job ƒ6VxCVPm: 4"}, r.drained(), "it may still run there")
	require.Len(t, r.ends, 4)
}

// Where the one command is out of reach it may still run; what is no node of the
// job is not the run's to drain.
func TestACommandThatRunsOnceAndIsLostHasItsOwnRankDrained(t *testing.T) {
	for leader, want := range map[uint32][]string{4: {"prolog lost contact for job ƒ6VxCVPm: 4"}, 0: nil} {
		spec := specOf(t, RunProlog, "4-7")
		spec.PerRank, spec.Leader = false, leader
		r := started(t, spec)
		require.Equal(t, AnswerApplied, r.report(Report{Kind: ReportUnreachable, Rank: leader}))
		require.Equal(t, want, r.drained())
	}
}

func TestACommandThatRunsOnceCanReportNodes(t *testing.T) {
	spec := specOf(t, RunProlog, "4-7")
	spec.PerRank, spec.Hosts, spec.Tolerate = false, flukes(t, "0-7"), Tolerate{Count: 1}
	r := started(t, spec)
	require.Equal(t, AnswerStranger, r.report(Report{Kind: ReportOutput, Line: []byte(`perilog-control:{"version":1}`)}), "rank 0")
	require.Equal(t, AnswerApplied, r.report(control(0, "3,6")))
	require.Equal(t, AnswerRepeated, r.report(control(0, "6")))
	require.Contains(t, r.String(), "; reported 6;")
	require.Equal(t, []string{"prolog reported node failure for job ƒ6VxCVPm: 6"}, r.drained())
	r.exit("0", 0)
	require.Equal(t, VerdictTolerated, r.Outcome().Verdict)
	require.Equal(t, "prolog reported node failure on fluke6 (rank 6)", r.raised().Note)

	r = started(t, spec)
	r.report(control(0, "6"))
	r.exit("0", 256)
	require.Equal(t, VerdictFailed, r.Outcome().Verdict)
	require.Equal(t, "prolog exited with code=1 on fluke0 (rank 0); reported node failure on fluke6 (rank 6)", r.Outcome().Note)
}

func TestACommandThatRunsOnceFailsWhereItsRankIsOffline(t *testing.T) {
	spec := specOf(t, RunProlog, "4-7")
	spec.PerRank, spec.Hosts, spec.Offline = false, nil, ranksOf(t, "0")
	r := started(t, spec)
	require.True(t, r.Done())
	require.Equal(t, "prolog not run (offline) on rank 0", r.Outcome().Note)
	require.Empty(t, r.asked(RequestLaunch))
}

// PL-11: exiting early is bad, because the rest of the prolog is skipped.
func TestANodeThatIsReportedFailsWithoutEndingTheCommand(t *testing.T) {
	spec := specOf(t, RunProlog, "0-3")
	spec.Tolerate.Count = 1
	r := started(t, spec)
	require.Equal(t, AnswerApplied, r.report(control(1, "1")))
	require.Equal(t, AnswerRepeated, r.report(Report{Kind: ReportOutput, Rank: 1, Line: []byte(`perilog-control:{"version":1,"note":"x"}`)}))
	require.Equal(t, "0-3", r.Active().String())
	r.exit("0", 0)
	require.Equal(t, AnswerEnded, r.report(control(1, "0")))
	require.Equal(t, AnswerStranger, r.report(control(1, "9")))
	require.Equal(t, AnswerIgnored, r.report(control(1, "x")))
	require.Empty(t, r.ends[1:])
	r.exit("1-3", 0)
	require.Equal(t, VerdictTolerated, r.Outcome().Verdict)
	require.Equal(t, "reported node failure 1", causes(r.Outcome()))
	require.Equal(t, []string{"prolog reported node failure for job ƒ6VxCVPm: 1"}, r.drained())
}

func TestAReportedNodeEndsAsReportedUnlessItIsLostOrForced(t *testing.T) {
	for _, c := range []struct {
		name, causes string
		drive        func(r *testRun)
	}{
		{"it exits", "reported node failure 1", func(r *testRun) { r.exit("1", 256) }},
		{"it is told to stop", "reported node failure 1", func(r *testRun) { r.Cancel(t0); r.exit("1", 15) }},
		{"it is past its timeout", "reported node failure 1", func(r *testRun) { r.tick(); r.exit("1", 15) }},
		{"it is deaf", "reported node failure 1", func(r *testRun) { r.tick(); r.tick() }},
		{"it is canceled and deaf", "reported node failure 1", func(r *testRun) { r.Cancel(t0); r.tick() }},
		{"it is lost", "lost contact 1", func(r *testRun) { r.report(Report{Kind: ReportUnreachable, Rank: 1}) }},
		{"it is finished by force", "finished by force 1", func(r *testRun) { r.ForceFinish(t0, nil, "alice") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := started(t, specOf(t, RunProlog, "0-1"))
			r.exit("0", 0)
			r.report(control(1, "1"))
			c.drive(r)
			r.fetch()
			require.Equal(t, c.causes, causes(r.Outcome()))
			require.Equal(t, []string{"prolog reported node failure for job ƒ6VxCVPm: 1"}, r.drained())
		})
	}
}

// PL-8, HK-7.
func TestWhatIsFinishedByForceEndsAndIsRecorded(t *testing.T) {
	r := started(t, specOf(t, RunEpilog, "0-3"))
	r.exit("0", 0)
	require.Equal(t, AnswerApplied, r.ForceFinish(t0+5, ranksOf(t, "0-1,9"), "alice"))
	require.Equal(t, "2-3", r.Active().String())
	require.Equal(t, AnswerApplied, r.ForceFinish(t0+6, nil, "bob"))
	r.fetch()
	require.True(t, r.Done())
	require.Equal(t, "finished by force 1-3", causes(r.Outcome()))
	require.Empty(t, r.drained())
	require.Empty(t, r.asked(RequestSignal))
	require.Equal(t, "rank 1 (fluke1): finished by force, status 256: \"by alice\"\n"+
		"rank 2 (fluke2): finished by force, status 256: \"by bob\"\nrank 3 (fluke3): finished by force, status 256: \"by bob\"\n",
		r.Outcome().Detail)
	require.EqualValues(t, 2, r.raised().Severity)

	spec := specOf(t, RunEpilog, "4-7")
	spec.PerRank = false
	for _, ranks := range []*idset.Set{nil, idset.Of(0), idset.Of(5)} {
		r = started(t, spec)
		require.Equal(t, AnswerStranger, r.ForceFinish(t0, idset.Of(1), "alice"))
		require.Equal(t, AnswerApplied, r.ForceFinish(t0, ranks, "alice"))
		require.True(t, r.Done())
	}
}

func TestWhatWasLaunchedBeforeIsReattachedWithoutALaunch(t *testing.T) {
	run, err := NewRun(specOf(t, RunProlog, "0-3"))
	require.NoError(t, err)
	r := &testRun{Run: run, t: t}
	require.NoError(t, r.Reattach(t0-1000, t0))
	r.fetch()
	require.Empty(t, r.requests)
	require.Equal(t, "0-3", r.Active().String())
	require.Equal(t, 800*fsd.Second, r.Remaining(t0))
	r.exit("0-2", 0)
	require.Equal(t, t0+800, r.tick())
	require.Equal(t, t0+860, r.tick())
	require.Equal(t, t0-1000, r.Outcome().Start)

	run, err = NewRun(specOf(t, RunProlog, "0-3"))
	require.NoError(t, err)
	require.NoError(t, run.Reattach(t0+1000, t0))
	require.Equal(t, 1800*fsd.Second, run.Remaining(t0), "not later than now")

	run, err = NewRun(specOf(t, RunProlog, "0-3"))
	require.NoError(t, err)
	require.NoError(t, run.Reattach(t0-9999, t0))
	require.Equal(t, RunTimingOut, run.State(), "it is past its timeout")
	require.False(t, run.Tick(t0))
	require.Equal(t, 60*fsd.Second, run.Remaining(t0))
}

func TestRanksInManyRangesAreAllFound(t *testing.T) {
	spec := specOf(t, RunEpilog, "0")
	spec.Ranks, spec.Hosts = ranksOf(t, "0,2-3,5-9,4096,1000000-1000002,2147483647"), nil
	r := started(t, spec)
	for rank := range spec.Ranks.All() {
		for _, stranger := range []uint32{1, 4, 10, 4095, 4097, 999999, 1000003, 2147483646, math.MaxUint32} {
			require.Equal(t, AnswerStranger, r.report(Report{Kind: ReportStarted, Rank: stranger}))
		}
		require.Equal(t, AnswerApplied, r.report(Report{Kind: ReportExited, Rank: rank, Status: int32(rank%2) << 8}))
	}
	require.True(t, r.Done())
	require.Equal(t, "3,5,7,9,1000001,2147483647", r.Outcome().Failed.String())
	told := new(idset.Set)
	for _, e := range r.ends {
		require.True(t, told.Insert(e.Rank))
		require.Equal(t, e.End, r.EndOf(e.Rank))
	}
	require.Equal(t, spec.Ranks.String(), told.String())
}

func TestARunPrintsItsState(t *testing.T) {
	r := started(t, specOf(t, RunProlog, "0-3"))
	r.Report(t0+1, Report{Kind: ReportStarted, Rank: 2})
	r.Report(t0+2, Report{Kind: ReportExited, Rank: 3, Status: 256})
	r.Report(t0+3, Report{Kind: ReportExited, Rank: 0})
	require.Equal(t, "prolog job-manager.prolog: running; active 1-2; started 2; ok 0; exited with code=1 3; worst 256; "+
		"untold 3 0; drain 3; since 1795226020.0; at 1795226023.0; deadline 1795227820.0", r.String())
	r.Exception(t0+4, 0)
	r.fetch()
	r.exit("1-2", 15)
	require.Equal(t, "prolog job-manager.prolog: done; ok 0; exited with code=1 3; canceled 1-2; worst 256; fatal exception; canceled; "+
		"since 1795226020.0; at 1795226024.0", r.String())
	text, err := r.AppendText([]byte("x"))
	require.NoError(t, err)
	require.Equal(t, "x"+r.String(), string(text))
}

func TestATimeBeforeTheStartChangesNothing(t *testing.T) {
	run, err := NewRun(specOf(t, RunProlog, "0-3"))
	require.NoError(t, err)
	require.Equal(t, AnswerIgnored, run.Exception(t0+100, 3))
	require.NoError(t, run.Start(t0))
	require.Equal(t, 1800*fsd.Second, run.Remaining(eventlog.Timestamp(0)))
}

// The process obeyed SIGTERM while nobody listened, and says so after a restart:
// no log tells that the signal was sent, but the clock does.
func TestWhatIsTakenUpAfterItsTimeoutTimedOut(t *testing.T) {
	spec := specOf(t, RunEpilog, "0-1")
	spec.Timeout, spec.KillTimeout = 100, 60
	r, err := NewRun(spec)
	require.NoError(t, err)
	require.NoError(t, r.Reattach(1000, 1121))
	requests := r.Requests()
	require.Len(t, requests, 1)
	require.Equal(t, RequestSignal, requests[0].Kind)
	at, _ := r.Deadline()
	require.Equal(t, eventlog.Timestamp(1181), at, "the kill timeout counts from the signal")
	require.Equal(t, AnswerApplied, r.Report(1122, Report{Kind: ReportExited, Rank: 0}))
	require.Equal(t, CauseTimedOut, r.EndOf(0).Cause)
}
