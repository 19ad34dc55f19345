package perilog

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
)

// A run is a success only if every rank did its work: a prolog that failed or was canceled
// left its nodes as they were, and nothing cleaned them (flux-core#6055). The words are
// those that the job's user reads.
func TestARunIsASuccessOnlyIfEveryRankDidItsWork(t *testing.T) {
	rank2 := func(rep Report) func(*testRun) {
		return func(r *testRun) {
			rep.Rank = 2
			r.exit("0-1,3", 0)
			require.Equal(r.t, AckApplied, r.report(rep))
		}
	}
	exits := func(status int32) func(*testRun) { return rank2(Report{Kind: ReportExited, Status: status}) }
	for _, c := range []struct {
		name, note string
		status     int32
		cause      endCause
		drive      func(r *testRun)
	}{
		{"a nonzero exit", "prolog exited with code=7 on fluke2 (rank 2)", 7 << 8, causeFailed, exits(7 << 8)},
		{"a signal", "prolog killed by signal 11 on fluke2 (rank 2)", 0x8b, causeSignaled, exits(0x8b)},
		{"a signal that a shell tells", "prolog killed by signal 9 on fluke2 (rank 2)", 137 << 8, causeSignaled, exits(137 << 8)},
		{"the largest signal that a shell tells", "prolog killed by signal 64 on fluke2 (rank 2)", 192 << 8, causeSignaled, exits(192 << 8)},
		{"a code above that of a signal", "prolog exited with code=193 on fluke2 (rank 2)", 193 << 8, causeFailed, exits(193 << 8)},
		{"the code 128, which is no signal", "prolog exited with code=128 on fluke2 (rank 2)", 128 << 8, causeFailed, exits(128 << 8)},
		{"a status with the bits beyond alone", "prolog exited with code=1 on fluke2 (rank 2)", 1 << 8, causeFailed, exits(math.MinInt32)},
		{"a status that tells of a core and no signal", "prolog exited with code=1 on fluke2 (rank 2)", 1 << 8, causeFailed, exits(0x80)},
		{"a failed launch", "prolog failed to launch on fluke2 (rank 2)", 127 << 8, causeLaunchFailed,
			rank2(Report{Kind: ReportLaunchFailed, Status: 127 << 8})},
		{"a failed launch without a status", "prolog failed to launch on fluke2 (rank 2)", 1 << 8, causeLaunchFailed,
			rank2(Report{Kind: ReportLaunchFailed})},
		{"a lost node", "prolog lost contact on fluke2 (rank 2)", 68 << 8, causeUnreachable, rank2(Report{Kind: ReportUnreachable})},
		{"a node that names itself", "prolog reported node failure on fluke2 (rank 2)", 1 << 8, causeReported,
			func(r *testRun) { r.says(2, `{"version":1,"failed":true}`); r.exit("0-3", 0) }},
		{"a node that another names, with a note", "prolog reported node failure on fluke2 (rank 2): gpu 1 is gone", 1 << 8, causeReported,
			func(r *testRun) { r.says(0, `{"version":1,"failed":"2","note":"gpu 1 is gone"}`); r.exit("0-3", 0) }},
		{"a line that is not understood", "prolog bad control line on fluke2 (rank 2): bad control line: version: offset 16: key is missing",
			1 << 8, causeControl, func(r *testRun) { r.says(2, `{"failed":"2"}`); r.exit("0-3", 0) }},
		{"a timeout that is obeyed", "prolog timed out on fluke2 (rank 2)", 15, causeTimedOut,
			func(r *testRun) { r.exit("0-1,3", 0); r.tick(); r.exit("2", 15) }},
		{"a timeout that is obeyed with exit 0", "prolog timed out on fluke2 (rank 2)", 15, causeTimedOut,
			func(r *testRun) { r.exit("0-1,3", 0); r.tick(); r.exit("2", 0) }},
		{"a timeout that is not obeyed", "prolog timed out on fluke2 (rank 2)", 15, causeTimedOut,
			func(r *testRun) { r.exit("0-1,3", 0); r.tick(); r.tick() }},
		{"a timeout where one rank never started (flux-core#6644)", "prolog timed out on fluke2 (rank 2)", 15, causeTimedOut,
			func(r *testRun) {
				for _, rank := range []uint32{0, 1, 3} {
					r.report(Report{Kind: ReportStarted, Rank: rank})
				}
				r.exit("0-1,3", 0)
				r.tick()
				r.tick()
			}},
		{"a cancel", "prolog canceled on fluke2 (rank 2)", 15, causeCanceled,
			func(r *testRun) { r.exit("0-1,3", 0); r.cancel(); r.exit("2", 15) }},
		{"a cancel that is obeyed with exit 0", "prolog canceled on fluke2 (rank 2)", 15, causeCanceled,
			func(r *testRun) { r.exit("0-1,3", 0); r.cancel(); r.exit("2", 0) }},
		{"a cancel that is not obeyed (flux-core@4e8ae3433)", "prolog canceled then timed out on fluke2 (rank 2)", 15, causeCanceledTimedOut,
			func(r *testRun) { r.exit("0-1,3", 0); r.cancel(); r.tick() }},
		{"a finish by force", "prolog finished by force on fluke2 (rank 2): by alice", 1 << 8, causeForced,
			func(r *testRun) { r.exit("0-1,3", 0); r.force("2", 1<<8) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := launched(t, perRank(t, "0-3"))
			c.drive(r)
			require.True(t, r.Done())
			o := r.Outcome()
			require.Equal(t, c.status, o.Status)
			require.Equal(t, c.note, o.Note)
			require.Equal(t, "2", o.Failed.String())
			require.Equal(t, c.cause.name(), o.Groups[len(o.Groups)-1].Cause)
			require.Equal(t, causes[c.cause].reported, o.reported)
			require.Len(t, r.ends, 4)
		})
	}
	t.Run("if it did", func(t *testing.T) {
		r := launched(t, perRank(t, "0-3"))
		r.exit("0-3", 0)
		o := r.Outcome()
		require.Zero(t, o.Status)
		require.Empty(t, o.Note)
		require.Empty(t, o.Detail)
		require.True(t, o.Failed.IsEmpty())
		require.Empty(t, r.failures)
		require.Empty(t, r.signals)
	})
}

// Each kind of report at each stage of a process.
func TestAReportIsAnsweredByWhatRuns(t *testing.T) {
	stages := []struct {
		name  string
		drive func(r *testRun)
	}{
		{"idle", func(*testRun) {}},
		{"running", func(r *testRun) { r.Launch(t0, 1, r.spec.Ranks) }},
		{"started", func(r *testRun) {
			r.Launch(t0, 1, r.spec.Ranks)
			r.report(Report{Kind: ReportStarted, Rank: 1})
		}},
		{"stopping", func(r *testRun) { r.Launch(t0, 1, r.spec.Ranks); r.cancel() }},
		{"lost", func(r *testRun) { r.Launch(t0, 1, r.spec.Ranks); r.Lose() }},
		{"ended", func(r *testRun) { r.Launch(t0, 1, r.spec.Ranks); r.exit("1", 0) }},
		{"launched again", func(r *testRun) {
			r.Launch(t0, 1, r.spec.Ranks)
			r.Lose()
			r.Launch(t0, 2, r.spec.Ranks)
		}},
	}
	reports := []struct {
		name string
		rep  Report
		want string // the answers, stage by stage
	}{
		{"started", Report{Kind: ReportStarted}, "unknown applied repeated applied applied ended stale"},
		{"exited", Report{Kind: ReportExited}, "unknown applied applied applied applied ended stale"},
		{"stopped by a debugger", Report{Kind: ReportExited, Status: 0x137f}, "unknown ignored ignored ignored ignored ended stale"},
		{"launch failed", Report{Kind: ReportLaunchFailed}, "unknown applied applied applied applied ended stale"},
		{"unreachable", Report{Kind: ReportUnreachable}, "unknown applied applied applied applied ended stale"},
		{"plain output", Report{Kind: ReportOutput, Line: []byte("hello")}, "unknown ignored ignored ignored applied ended stale"},
		{"progress", Report{Kind: ReportOutput, Line: []byte(ControlPrefix + `{"version":1,"progress":0.5}`)},
			"unknown ignored ignored ignored applied ended stale"},
		{"a failed node", Report{Kind: ReportOutput, Line: []byte(ControlPrefix + `{"version":1,"failed":"1"}`)},
			"unknown applied applied applied applied ended stale"},
		{"nonsense", Report{Kind: ReportOutput, Line: []byte(ControlPrefix)}, "unknown applied applied applied applied ended stale"},
		{"no kind", Report{}, "unknown ignored ignored ignored ignored ended stale"},
		{"a kind beyond", Report{Kind: ReportOutput + 1}, "unknown ignored ignored ignored ignored ended stale"},
	}
	for _, lead := range []bool{false, true} {
		for _, c := range reports {
			got := ""
			for _, s := range stages {
				spec := perRank(t, "0-1")
				if lead {
					spec = single(t, 1, "0-1")
				}
				r := &testRun{run: makeRun(spec), t: t, now: t0 + 1}
				s.drive(r)
				rep := c.rep
				rep.Rank = 1
				answer := r.report(rep)
				got += " " + []string{"", "applied", "repeated", "ended", "stale", "unknown", "ignored"}[answer]
				if answer == AckStale || answer == AckUnknown || answer == AckEnded {
					before, after := *r.run, r.run
					r.report(rep)
					before.spec.Hosts, after.spec.Hosts = nil, nil
					require.Equal(t, before, *after)
				}
				require.Equal(t, AckUnknown, r.report(Report{Kind: c.rep.Kind, Rank: 7, Attempt: 1}))
				if s.name != "idle" {
					require.Equal(t, AckStale, r.report(Report{Kind: c.rep.Kind, Rank: 1, Attempt: 9}))
				}
			}
			require.Equal(t, " "+c.want, got, "%s, single %t", c.name, lead)
		}
	}
}

func TestNamesOfWhatARunSays(t *testing.T) {
	names := map[string]bool{}
	for c := causeFailed; c <= causeForced; c++ {
		require.Equal(t, c, causeNamed(c.name()))
		require.NotEmpty(t, c.String())
		require.False(t, names[c.name()])
		names[c.name()] = true
	}
	require.Equal(t, causeFailed, causeNamed("of a later version"))
	require.Equal(t, causeFailed, causeNamed("ok"), "no failure is that")
	require.Equal(t, causeFailed, causeNamed(""))
}

// The reasons of drains, and what is not drained.
func TestARankThatFailedIsDrainedUnlessUsersOrOperatorsDidIt(t *testing.T) {
	for _, c := range []struct {
		name, want string
		drive      func(r *testRun)
	}{
		{"exit 1", "prolog failed for job ƒuZZybuNNy: 1", func(r *testRun) { r.exit("1", 1<<8) }},
		{"signal", "prolog failed for job ƒuZZybuNNy: 1", func(r *testRun) { r.exit("1", 11) }},
		{"launch failed", "prolog failed for job ƒuZZybuNNy: 1", func(r *testRun) { r.report(Report{Kind: ReportLaunchFailed, Rank: 1}) }},
		{"lost", "prolog lost contact for job ƒuZZybuNNy: 1", func(r *testRun) { r.report(Report{Kind: ReportUnreachable, Rank: 1}) }},
		{"lost after a cancel", "prolog lost contact for job ƒuZZybuNNy: 1",
			func(r *testRun) { r.cancel(); r.report(Report{Kind: ReportUnreachable, Rank: 1}) }},
		{"reported", "prolog reported node failure for job ƒuZZybuNNy: 1", func(r *testRun) { r.says(0, `{"version":1,"failed":"1"}`) }},
		{"not understood", "prolog bad control line for job ƒuZZybuNNy: 1", func(r *testRun) { r.says(1, "") }},
		{"timed out", "prolog timed out for job ƒuZZybuNNy: 1", func(r *testRun) { r.exit("0", 0); r.tick(); r.exit("1", 15) }},
		{"deaf", "prolog timed out for job ƒuZZybuNNy: 1", func(r *testRun) { r.exit("0", 0); r.tick(); r.tick() }},
		{"canceled and deaf", "prolog canceled then timed out for job ƒuZZybuNNy: 1", func(r *testRun) { r.exit("0", 0); r.cancel(); r.tick() }},
		{"canceled with Ctrl-C (flux-core#5734)", "", func(r *testRun) { r.cancel(); r.exit("0", 15); r.exit("1", 143<<8) }},
		{"canceled, with exit 1", "", func(r *testRun) { r.cancel(); r.exit("0-1", 1<<8) }},
		{"canceled before the launch", "", func(r *testRun) { r.cancel(); r.report(Report{Kind: ReportLaunchFailed, Rank: 1}) }},
		{"forced", "", func(r *testRun) { r.force("1", 1<<8) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := launched(t, perRank(t, "0-1"))
			c.drive(r)
			var want []string
			if c.want != "" {
				want = []string{c.want}
			}
			require.Equal(t, want, r.drained())
		})
	}
}

// What is told of a node while the command runs does not end the command, which
// may have other work to do (flux-core#6842). It stands if the command then does that work. If it
// does not, the end of the command is a failure of its own, whatever it told before.
func TestANodeThatIsReportedFailsWithoutEndingTheCommand(t *testing.T) {
	for _, c := range []struct {
		name, causes string
		mayRun       bool
		drive        func(r *testRun)
	}{
		{"it exits", "reported 1", false, func(r *testRun) { r.exit("1", 0) }},
		{"it is told to stop", "reported 1", false, func(r *testRun) { r.cancel(); r.exit("1", 15) }},
		{"it is lost in a restart, and is run again", "reported 1", false, func(r *testRun) {
			r.Lose()
			r.Launch(r.now, 2, set(r.t, "1"))
			r.report(Report{Kind: ReportExited, Rank: 1, Attempt: 2})
		}},
		{"it exits badly", "failed 1", false, func(r *testRun) { r.exit("1", 256) }},
		{"it is killed", "signaled 1", false, func(r *testRun) { r.exit("1", 9) }},
		{"it is past its timeout", "timed-out 1", true, func(r *testRun) { r.tick(); r.exit("1", 15) }},
		{"it is deaf", "timed-out 1", true, func(r *testRun) { r.tick(); r.tick() }},
		{"it is canceled, and deaf", "canceled-timed-out 1", true, func(r *testRun) { r.cancel(); r.tick() }},
		{"it is lost", "unreachable 1", true, func(r *testRun) { r.report(Report{Kind: ReportUnreachable, Rank: 1}) }},
		{"it writes a line that is not understood", "control 1", false, func(r *testRun) {
			require.Equal(r.t, AckApplied, r.says(1, "nonsense"))
			require.Equal(r.t, AckIgnored, r.says(1, `{"version":1,"failed":true}`))
			r.exit("1", 0)
		}},
		{"it writes such a line, and is lost", "control 1", true, func(r *testRun) {
			require.Equal(r.t, AckApplied, r.says(1, "nonsense"))
			r.report(Report{Kind: ReportUnreachable, Rank: 1})
		}},
		{"it writes such a line, and is deaf", "control 1", true, func(r *testRun) {
			require.Equal(r.t, AckApplied, r.says(1, "nonsense"))
			r.tick()
			r.tick()
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, spec := range []runSpec{perRank(t, "0-1"), single(t, 1, "0-1")} {
				r := launched(t, spec)
				if spec.PerRank {
					r.exit("0", 0)
				} else {
					require.Equal(t, AckApplied, r.says(1, `{"version":1,"released":"0"}`))
				}
				require.Equal(t, AckApplied, r.says(1, `{"version":1,"failed":true,"note":"x"}`))
				require.Equal(t, AckIgnored, r.says(1, `{"version":1,"failed":"1","note":"y"}`))
				require.Equal(t, AckIgnored, r.says(1, `{"version":1,"failed":"0"}`))
				require.Equal(t, AckIgnored, r.says(1, `{"version":1,"failed":"9"}`))
				require.Equal(t, AckIgnored, r.says(1, `{"version":1,"failed":false}`))
				require.Equal(t, AckIgnored, r.says(1, `{"version":1,"note":"a note alone"}`))
				require.Equal(t, AckIgnored, r.says(1, `{"version":1,"released":"1"}`), "only one command for all releases, and not where it runs")
				require.Equal(t, "1", r.At(slotRunning).String())
				c.drive(r)
				require.Equal(t, c.causes, r.causes())
				o := r.Outcome()
				require.Contains(t, o.Note, ": x")
				require.Equal(t, causes[causeNamed(strings.Fields(c.causes)[0])].reported, o.reported)
				require.Equal(t, c.mayRun, o.mayRun)
				require.Equal(t, []string{"prolog reported node failure for job ƒuZZybuNNy: 1"}, r.drained(), "once")

				again := launched(t, spec) // a restart reads what was told
				for _, f := range r.failures {
					again.Fold(t0, &f)
				}
				again.Lose()
				if lost := again.At(slotLost); !lost.IsEmpty() {
					again.force(again.Open().String(), 0)
				} else {
					require.Equal(t, o.reported, again.Outcome().reported)
				}
			}
		})
	}
}

func TestANodeMayNameSeveralAndTheFirstNoteStands(t *testing.T) {
	r := launched(t, perRank(t, "0-9"))
	require.Equal(t, AckApplied, r.says(0, `{"version":1,"failed":"2-4,77","note":"no disk"}`))
	require.Equal(t, AckApplied, r.says(1, `{"version":1,"failed":"4-6","note":"no\tnet"}`))
	require.Len(t, r.failures, 2)
	require.Equal(t, "2-4", r.failures[0].Ranks.String())
	require.Equal(t, "5-6", r.failures[1].Ranks.String())
	r.failures[1].Ranks = nil
	require.Equal(t, jobstate.ActionFailContext{ActionKey: r.spec.ActionKey, Cause: "reported", Status: 256, Note: "no net", Drain: true}, r.failures[1])
	r.exit("0-9", 0)
	o := r.Outcome()
	require.True(t, o.reported)
	require.Equal(t, "prolog reported node failure on fluke[2-4] (rank 2-4): no disk; reported node failure on fluke[5-6] (rank 5-6): no net", o.Note)
}

// A process that outlives a restart of the manager says again what the log has.
func TestANodeFailureThatIsInTheLogIsNoNews(t *testing.T) {
	r := launched(t, perRank(t, "0-1"))
	r.Fold(t0, &jobstate.ActionFailContext{Ranks: set(t, "1"), Cause: causeReported.name(), Status: 256, Drain: true})
	require.Equal(t, AckIgnored, r.says(1, `{"version":1,"failed":true}`))
	failures, _ := r.Take()
	require.Empty(t, failures)
}

func TestRanksInManyRangesAreAllFound(t *testing.T) {
	spec := perRank(t, "0,2-3,5-9,4096,1000000-1000002,2147483647")
	r := launched(t, spec)
	for rank := range spec.Ranks.All() {
		for _, stranger := range []uint32{1, 4, 10, 4095, 4097, 999999, 1000003, 2147483646, math.MaxUint32} {
			require.Equal(t, AckUnknown, r.report(Report{Kind: ReportStarted, Rank: stranger}))
		}
		require.Equal(t, AckApplied, r.report(Report{Kind: ReportExited, Rank: rank, Status: int32(rank%2) << 8}))
	}
	require.True(t, r.Done())
	require.Equal(t, "3,5,7,9,1000001,2147483647", r.Outcome().Failed.String())
}

// A command for all ranks may hold no rank.
func TestACommandThatHoldsNoRankFailsOfItself(t *testing.T) {
	for _, c := range []struct {
		want  string
		drive func(r *testRun)
	}{
		{"", func(r *testRun) { r.exit("3", 0) }},
		{"failed 3", func(r *testRun) { r.exit("3", 256) }},
		{"control 3", func(r *testRun) { r.says(3, "nonsense"); r.exit("3", 0) }},
		{"timed-out 3", func(r *testRun) { r.tick(); r.tick() }},
		{"canceled 3", func(r *testRun) { r.cancel(); r.exit("3", 0) }},
		{"forced 3", func(r *testRun) { r.force("", 256) }},
	} {
		r := launched(t, single(t, 3, ""))
		require.False(t, r.Done())
		c.drive(r)
		require.Equal(t, c.want, r.causes())
		require.Equal(t, c.want == "", r.Outcome().Status == 0, c.want)
		require.Equal(t, c.want == "", r.Outcome().Note == "", c.want)
		require.Empty(t, r.ends)
		require.Empty(t, r.failures)
	}
}

// What a command for all ranks says of some of them stands, and the rest ends as it does.
func TestACommandForAllRanksReleasesAndReportsThem(t *testing.T) {
	const released, failed = `{"version":1,"released":"%"}`, `{"version":1,"failed":"%","note":"no fan"}`
	for _, c := range []struct {
		leader   uint32
		says     [][2]string // a line, and the ranks that it names
		status   int32
		want     string
		reported bool
	}{
		{4, [][2]string{{released, "5-7,99"}}, 256, "failed 4", false},
		{4, [][2]string{{failed, "7"}, {released, "7"}}, 0, "reported 7", true},
		{4, [][2]string{{`{"version":1,"failed":true}`}}, 0, "reported 4", true},
		{4, [][2]string{{released, "6"}, {failed, "7"}, {"nonsense"}}, 0, "control 4-5,7", false},
		{0, [][2]string{{released, "4-7"}}, 0, "", true},
		{0, [][2]string{{released, "4-7"}}, 256, "failed 0", false}, // it failed at last
		{0, [][2]string{{released, "4-7"}, {"nonsense"}}, 0, "control 0", false},
		{0, [][2]string{{failed, "7"}, {released, "4-7"}}, 256, "failed 0; reported 7", false},
		{0, [][2]string{{failed, "7"}, {released, "4-6"}}, 256, "failed 7", false},
	} {
		r := launched(t, single(t, c.leader, "4-7"))
		for _, says := range c.says {
			line := strings.ReplaceAll(says[0], "%", says[1])
			require.Equal(t, AckApplied, r.says(c.leader, line))
			require.NotEqual(t, AckApplied, r.says(c.leader, line), "it says so once")
		}
		require.False(t, r.Done(), "the command runs")
		r.now = t0 + 5
		r.exit(idset.Of(c.leader).String(), c.status)
		require.Equal(t, c.want, r.causes())
		o := r.Outcome()
		require.Equal(t, c.reported, o.reported, c.want)
		require.Equal(t, c.want == "", o.Status == 0, c.want)
		require.Equal(t, t0+5, r.end)
		for _, drain := range r.drained() {
			require.Regexp(t, "^prolog reported node failure", drain, "the command tells nothing of a node by its end")
		}
	}
}

// A rank that failed and is run again is not drained a second time.
func TestARankIsDrainedOnce(t *testing.T) {
	for _, again := range []func(r *testRun){
		func(r *testRun) { r.report(Report{Kind: ReportExited, Attempt: 2, Rank: 1, Status: 256}) },
		func(r *testRun) { r.report(Report{Kind: ReportUnreachable, Attempt: 2, Rank: 1}) },
		func(r *testRun) { r.says(0, `{"version":1,"failed":"1"}`) },
		func(r *testRun) {
			r.report(Report{Kind: ReportOutput, Attempt: 2, Rank: 1, Line: []byte(ControlPrefix)})
		},
	} {
		r := launched(t, perRank(t, "0-1"))
		r.exit("1", 256)
		r.Launch(t0, 2, set(t, "1"))
		again(r)
		require.Len(t, r.failures, 2)
		require.Len(t, r.drained(), 1)
	}
}

// A restart forgot what was running, and jobs were stuck for ever. What was
// running is attached to again, run again, or finished by force.
func TestFlux4108AnActionThatARestartForgotCanBeResolved(t *testing.T) {
	r := launched(t, perRank(t, "0-3"))
	r.Lose()
	r.Reattach(t0, set(t, "0"))
	r.exit("0-1", 0) // 1 reports by itself
	r.Launch(t0+600, 2, set(t, "2"))
	require.Equal(t, AckApplied, r.report(Report{Kind: ReportExited, Rank: 2, Attempt: 2}))
	require.False(t, r.Done())
	r.force("3", 0)
	require.True(t, r.Done())
	require.Contains(t, r.Outcome().Detail, "alice")
}

// One exception for each node flooded the logs of jobs, and what it said could
// be sensitive.
func TestFlux7022AThousandFailedNodesAreOneNoteWithoutDetails(t *testing.T) {
	r := &testRun{run: makeRun(perRank(t, "0-999")), t: t, now: t0}
	r.Launch(t0, 1, set(t, "0-999"))
	for rank := range uint32(1000) {
		r.Report(t0+1, Report{Kind: ReportExited, Rank: rank, Attempt: 1, Status: 256, Detail: "mount -o password=secret"})
	}
	r.fetch()
	require.Len(t, r.failures, 1, "they are one entry of the log")
	require.Equal(t, []string{"prolog failed for job ƒuZZybuNNy: 0-999"}, r.drained())
	require.Equal(t, "prolog exited with code=1 on fluke[0-999] (rank 0-999)", r.Outcome().Note)
	require.Contains(t, r.Outcome().Detail, "secret")
}
