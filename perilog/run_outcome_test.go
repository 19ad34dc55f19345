package perilog

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
)

func TestANoteTellsEachCauseOnce(t *testing.T) {
	r := launched(t, perRank(t, "0-9"))
	r.exit("0,2", 1<<8)
	r.exit("1,9", 2<<8)
	r.exit("3", 11)
	r.says(4, `{"version":1,"failed":"4-5","note":"link down"}`)
	r.exit("4-5", 0)
	r.exit("6", 0)
	r.report(Report{Kind: ReportUnreachable, Rank: 7})
	r.cancel()
	r.exit("8", 15)
	o := r.Outcome()
	require.Equal(t, "prolog exited with code=1 on fluke[0,2] (rank 0,2); exited with code=2 on fluke[1,9] (rank 1,9); "+
		"reported node failure on fluke[4-5] (rank 4-5): link down; killed by signal 11 on fluke3 (rank 3); "+
		"canceled on fluke8 (rank 8); lost contact on fluke7 (rank 7)", o.Note)
	require.Equal(t, "0-5,7-9", o.Failed.String())
	require.EqualValues(t, 68<<8, o.Status)
	seen := new(idset.Set)
	for _, g := range o.Groups {
		require.False(t, seen.Intersects(g.Ranks), "a rank is in one group")
		seen.UnionWith(g.Ranks)
	}
	require.Equal(t, "0-9", seen.String())
}

func TestANoteWithoutHostsNamesRanksAlone(t *testing.T) {
	spec := perRank(t, "0-3")
	spec.Hosts = func(*idset.Set) string { return "" }
	r := launched(t, spec)
	r.exit("0-3", 256)
	require.Equal(t, "prolog exited with code=1 on rank 0-3", r.Outcome().Note)
	require.True(t, strings.HasPrefix(r.Outcome().Detail, "rank 0: failed, status 256\n"))
}

func TestNamesThatAreTooLongAreCounted(t *testing.T) {
	spec := perRank(t, "0-999")
	spec.Hosts = func(*idset.Set) string { return strings.Repeat("x", 257) }
	r := launched(t, spec)
	for rank := range uint32(1000) {
		r.report(Report{Kind: ReportExited, Rank: rank, Status: int32(rank%2) << 8})
	}
	require.Equal(t, "prolog exited with code=1 on 500 nodes (rank 500 in all)", r.Outcome().Note)
}

// What comes from outside is bounded, however much of it comes.
func TestANoteIsBounded(t *testing.T) {
	spec := perRank(t, "0-499")
	spec.Hosts = func(ranks *idset.Set) string { return strings.Repeat("h", 200) }
	r := launched(t, spec)
	for rank := range uint32(500) {
		r.says(rank, fmt.Sprintf(`{"version":1,"failed":"%d","note":"%d%s"}`, rank, rank, strings.Repeat("é", 999)))
	}
	r.exit("0-499", 0)
	o := r.Outcome()
	require.LessOrEqual(t, len(o.Note), maxRunNote)
	require.Regexp(t, `^prolog reported node failure on h+ \(rank 0\): 0é+; .*; and \d+ more$`, o.Note)
	require.Len(t, r.notes, maxNotes)
	for _, n := range r.notes {
		require.LessOrEqual(t, len(n.text), maxNote)
		require.Regexp(t, `^\d+é+$`, n.text, "no character is cut")
	}

	r = launched(t, perRank(t, "0-254"))
	for rank := range uint32(255) {
		r.exit(fmt.Sprint(rank), int32(rank+1)<<8) // each with a code of its own
	}
	require.LessOrEqual(t, len(r.Outcome().Note), maxRunNote)
	require.Regexp(t, `; and 2\d\d more$`, r.Outcome().Note)
}

func TestDetailsAreBoundedAndCounted(t *testing.T) {
	r := launched(t, perRank(t, "0-999"))
	for rank := range uint32(1000) {
		r.report(Report{Kind: ReportExited, Rank: rank, Status: 256, Detail: strings.Repeat("long\n", 999)})
	}
	d := r.Outcome().Detail
	require.LessOrEqual(t, len(d), maxDetail)
	require.Greater(t, len(d), maxDetail/2)
	lines := strings.Split(strings.TrimSuffix(d, "\n"), "\n")
	require.Equal(t, fmt.Sprintf("and %d more", 1000-(len(lines)-1)), lines[len(lines)-1])
	require.LessOrEqual(t, len(lines[0]), 2*maxDetailText)

	r = launched(t, perRank(t, "0-1"))
	r.report(Report{Kind: ReportExited, Rank: 0, Status: 256, Detail: "line 1\nline \"2\"\x00\x7f\xff"})
	r.report(Report{Kind: ReportLaunchFailed, Rank: 1})
	require.Equal(t, "rank 0 (fluke0): failed, status 256: \"line 1 line \\\"2\\\"  \"\nrank 1 (fluke1): failed to launch, status 256\n",
		r.Outcome().Detail)
}

func TestANamedActionIsNamedInNotesAndReasons(t *testing.T) {
	spec := perRank(t, "0-3")
	spec.ActionKey = jobstate.ActionKey{Kind: jobstate.ActionEpilog, Description: "scrub"}
	r := launched(t, spec)
	r.exit("0-2", 0)
	r.exit("3", 256)
	require.Equal(t, "epilog scrub exited with code=1 on fluke3 (rank 3)", r.Outcome().Note)
	require.Equal(t, []string{"epilog scrub failed for job ƒuZZybuNNy: 3"}, r.drained())
}

// A log may hold any failure and any end. Folding one again changes nothing.
func TestWhatTheLogTellsIsFoldedOnce(t *testing.T) {
	r := launched(t, perRank(t, "0-5"))
	fold := func() {
		r.Fold(t0+1, &jobstate.ActionFailContext{Ranks: set(t, "1,99"), Cause: causeFailed.name(), Status: 256, Drain: true})
		r.Fold(t0+1, &jobstate.ActionFailContext{Ranks: set(t, "2"), Cause: causeReported.name(), Status: 256, Note: "no disk", Drain: true})
		r.Fold(t0+1, &jobstate.ActionFailContext{Ranks: set(t, "5"), Cause: causeControl.name(), Status: 256, Note: "what?", Drain: true})
		r.Released(t0+2, set(t, "3,77"), 0)
		r.Released(t0+2, set(t, "4"), 256)
	}
	fold()
	require.Equal(t, "0,2,5", r.Open().String(), "2 and 5 were told of while they ran")
	first := r.Outcome()
	fold()
	again := r.Outcome()
	require.Equal(t, first.Note, again.Note)
	require.Equal(t, first.Detail, again.Detail)
	r.Fold(t0+1, &jobstate.ActionFailContext{Ranks: set(t, "1-4"), Cause: causeTimedOut.name(), Status: 15})
	require.Equal(t, "0,5", r.Open().String())
	r.fetch()
	require.Empty(t, r.failures, "what the log tells is not told to it again")
	require.Empty(t, r.ends)

	r.Lose()
	require.Equal(t, "0,5", r.At(slotLost).String())
	r.exit("0", 0)
	r.exit("5", 0)
	require.Equal(t, "failed 1,4; control 5; timed-out 2", r.causes())
	require.Equal(t, "prolog exited with code=1 on fluke[1,4] (rank 1,4); bad control line on fluke5 (rank 5): what?; "+
		"timed out on fluke2 (rank 2): no disk", r.Outcome().Note)
	require.Contains(t, r.Outcome().Detail, "rank 1 (fluke1): failed, status 256: \"before a restart\"\n")

	// A rank whose drain the log has is not drained again.
	r = launched(t, perRank(t, "0-1"))
	r.Fold(t0, &jobstate.ActionFailContext{Ranks: set(t, "1"), Cause: causeControl.name(), Status: 256, Drain: true})
	r.Lose()
	r.Launch(t0, 2, set(t, "0-1"))
	require.Equal(t, AckApplied, r.report(Report{Kind: ReportExited, Rank: 1, Attempt: 2, Status: 256}))
	require.Empty(t, r.drained())
	require.Empty(t, r.failures, "nor is it told again")
}

func TestACommandForAllRanksIsFolded(t *testing.T) {
	r := launched(t, single(t, 4, "4-7"))
	r.Released(t0, set(t, "5"), 0)
	r.Fold(t0, &jobstate.ActionFailContext{Ranks: set(t, "4"), Cause: causeUnreachable.name(), Status: 68 << 8, Drain: true})
	require.Equal(t, "4", r.At(slotRunning).String(), "the rest of it was not logged")
	r.Fold(t0, &jobstate.ActionFailContext{Ranks: set(t, "4,6-7"), Cause: causeUnreachable.name(), Status: 68 << 8})
	require.True(t, r.Done())
	require.Equal(t, "unreachable 4,6-7", r.causes())
	require.Equal(t, "prolog lost contact on fluke4 (rank 4)", r.Outcome().Note)
}

// A failure is one whatever status and cause a damaged log gives it.
func TestAFailureInTheLogIsNeverAnEndInSuccess(t *testing.T) {
	for _, status := range []int32{0, -1, -256, 0x7f, 0x80, 1 << 16} {
		r := launched(t, perRank(t, "0-1"))
		r.Fold(t0, &jobstate.ActionFailContext{Ranks: set(t, "1"), Cause: "ok", Status: status})
		r.exit("0", 0)
		require.Equal(t, "failed 1", r.causes(), "status %d", status)
		require.Greater(t, r.Outcome().Status, int32(0))

		r = launched(t, perRank(t, "0-1"))
		r.Released(t0, set(t, "1"), status)
		r.exit("0", 0)
		require.Equal(t, status == 0, r.Outcome().Status == 0, "status %d", status)
		require.Equal(t, status == 0, r.Outcome().Note == "", "status %d", status)
	}
	r := launched(t, perRank(t, "0"))
	r.Fold(t0, &jobstate.ActionFailContext{Ranks: set(t, "0"), Cause: causeForced.name()})
	require.Equal(t, "forced 0", r.causes())
	require.Zero(t, r.Outcome().Status, "an operator may say that it ended well")
}
