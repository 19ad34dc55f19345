package jobstate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate"
)

// One test for each clause of RFC 21 that says MUST, SHALL, SHOULD or MAY, in
// its order and named by its section, but for those of a state and its events, which
// TestEveryEventInEveryState has, one initial and one final state and unknown events among
// them; for several exceptions, of which TestResultsAndExitCodes has rows; for the contexts
// of set-flags, alloc and memo, of which TestRefusedContextsLeaveTheJob and
// TestAnnotationsMergeByRFC27 have rows; and for the clause that a replay reproduces the
// state, which TestFoldOfWhatWasNotRefusedIsTheLiveState proves. Three clauses of "Design Criteria" are
// not this package's but those of a job manager and its transport: who may
// watch a job, who initiates a change of state, and that events are logged.

func TestRFC21DesignStatesExistForPhasesThatLast(t *testing.T) {
	waits := map[string]jobstate.State{}
	for s := jobstate.StateNew; s <= jobstate.StateInactive; s <<= 1 {
		lines := upTo(s)
		if s == jobstate.StateCleanup {
			lines = append(lines, `epilog-start {"description":"e"}`)
		}
		j, _ := run(t, lines...)
		waits[j.Waiting()] = j.State()
		if s == jobstate.StateInactive {
			break
		}
	}
	require.Len(t, waits, 7, "each state tells what the job waits for: %v", waits)
}

func TestRFC21DesignAllTransitionsAreDrivenByEvents(t *testing.T) {
	j := jobstate.NewJob(1)
	for _, e := range script(whole...) {
		before := j.State()
		_, _, _, _ = j.Waiting(), j.MayStart(), j.MayFree(), j.MayClean()
		require.Equal(t, before, j.State(), "to ask changes nothing")
		_, err := j.Apply(e)
		require.NoError(t, err)
	}
	require.Equal(t, jobstate.StateInactive, j.State())
}

func TestRFC21DesignLogsOfRecentVersionsAreIngested(t *testing.T) {
	t.Log("SM-6")
	j, _ := run(t, append([]string{`submit {"userid":5,"urgency":16,"flags":0}`}, whole[2:]...)...)
	require.Equal(t, jobstate.StateInactive, j.State(), "before version 1, submit led to DEPEND")
	at, _ := j.Entered(jobstate.StateDepend)
	require.Equal(t, eventlog.Timestamp(1000), at)
	_, last := run(t, `submit {"userid":1,"urgency":16,"flags":0}`, "validate")
	require.Equal(t, jobstate.IgnoredState, last, "flux-core 0.41 wrote validate and no version")
	_, err := jobstate.NewJob(1).Apply(entry(1, "submit", `{"userid":5,"urgency":16,"flags":0,"version":2}`))
	require.ErrorIs(t, err, jobstate.ErrVersion)
}

func TestRFC21ExceptionsHaveASeverityFrom0To7(t *testing.T) {
	for severity := -1; severity <= 8; severity++ {
		j, _ := run(t, upTo(jobstate.StateRun)...)
		_, err := j.Apply(entry(99, "exception", fmt.Sprintf(`{"type":"x","severity":%d,"note":""}`, severity)))
		if severity < 0 || severity > 7 {
			require.ErrorIs(t, err, jobstate.ErrContext)
			continue
		}
		require.NoError(t, err)
		// Severity 0 leads to CLEANUP at once, any other changes no state.
		require.Equal(t, severity == 0, j.State() == jobstate.StateCleanup)
	}
}

func TestRFC21KeysBeyondThoseListedMayBeIncluded(t *testing.T) {
	for name, context := range samples {
		if !strings.HasSuffix(context, "}") || name == "jobspec-update" || name == "memo" || name == "made-up" {
			continue // any key is one of theirs
		}
		c, err := jobstate.ParseContext(entry(1, name, strings.TrimSuffix(context, "}")+`,"vendor.x":[1]}`))
		require.NoError(t, err, name)
		text, err := jobstate.AppendContext(nil, c)
		require.NoError(t, err)
		require.Contains(t, string(text), `,"vendor.x":[1]}`, "it is kept: %s", name)
	}
}

// required asserts that the event needs each key of a good context.
func required(t *testing.T, name string, keys map[string]string) {
	t.Helper()
	var members []string
	for _, k := range sortedKeys(keys) {
		members = append(members, fmt.Sprintf("%q:%s", k, keys[k]))
	}
	var ev jobstate.Event
	require.NoError(t, ev.Decode(entry(1, name, "{"+strings.Join(members, ",")+"}")))
	for i, k := range sortedKeys(keys) {
		rest := append(append([]string{}, members[:i]...), members[i+1:]...)
		err := ev.Decode(entry(1, name, "{"+strings.Join(rest, ",")+"}"))
		require.ErrorIs(t, err, jobstate.ErrContext)
		require.ErrorContains(t, err, k+": offset 0: key is missing")
	}
}

// ranged asserts that an integer of a context ends at lo and hi.
func ranged(t *testing.T, name, format string, lo, hi int64) {
	t.Helper()
	var ev jobstate.Event
	for _, n := range []int64{lo, hi} {
		require.NoError(t, ev.Decode(entry(1, name, fmt.Sprintf(format, fmt.Sprint(n)))))
	}
	for _, text := range []string{fmt.Sprint(lo - 1), fmt.Sprint(hi + 1), "1.0", `"1"`, "true", "null"} {
		require.ErrorIs(t, ev.Decode(entry(1, name, fmt.Sprintf(format, text))), jobstate.ErrContext, text)
	}
}

// What a prolog or epilog prevents until it finishes is a row of TestWhatAJobHoldsAndMayDo,
// and that its finish matches a start, of TestPrologsAndEpilogsAreCountedByDescription.
func TestRFC21KeysThatAreRequired(t *testing.T) {
	for name, keys := range map[string]map[string]string{
		"submit":            {"userid": "1", "urgency": "16", "flags": "0"},
		"resource-update":   {"expiration": "1742137890"},
		"set-flags":         {"flags": `["debug"]`},
		"dependency-add":    {"description": `"begin-time=1552594348"`},
		"dependency-remove": {"description": `"begin-time=1552594348"`},
		"priority":          {"priority": "42"},
		"urgency":           {"urgency": "0", "userid": "5588"},
		"prolog-start":      {"description": `"/usr/sbin/job-prolog.sh"`},
		"prolog-finish":     {"description": `"p"`, "status": "0"},
		"epilog-start":      {"description": `"/usr/sbin/job-epilog.sh"`},
		"epilog-finish":     {"description": `"e"`, "status": "0"},
		"release":           {"ranks": `"all"`, "final": "true"},
		"finish":            {"status": "0"},
		"exception":         {"type": `"oom"`, "severity": "0"},
	} {
		required(t, name, keys)
	}
	ranged(t, "urgency", `{"userid":5588,"urgency":%s}`, 0, 31)
	j, _ := run(t, append(upTo(jobstate.StateRun), `resource-update {"expiration":5}`)...)
	at, ok := j.Expiration()
	require.True(t, ok)
	require.Equal(t, eventlog.Timestamp(5), at)
}

func TestRFC21SubmitEvent(t *testing.T) {
	ranged(t, "submit", `{"userid":5588,"flags":0,"urgency":%s}`, 0, 31)
	// The version is required of a writer; logs before version 1 have none.
	found := jobstate.Validate([]byte(logOf(`submit {"userid":1,"urgency":16,"flags":0}`)))
	require.Len(t, found, 1)
	require.Contains(t, found[0].Text, "no version")
}

// The keys were widened to all of a jobspec (flux-core#5419).
func TestRFC21JobspecUpdateIsADictionaryOfPathsAtLeastOne(t *testing.T) {
	var ev jobstate.Event
	require.NoError(t, ev.Decode(entry(1, "jobspec-update", `{"attributes.system.duration":3600}`)))
	require.ErrorIs(t, ev.Decode(entry(1, "jobspec-update", `["attributes.x"]`)), jobstate.ErrContext)
	require.ErrorIs(t, ev.Decode(entry(1, "jobspec-update", `{"other.x":1}`)), jobstate.ErrContext)
	_, err := jobstate.AppendContext(nil, &jobstate.JobspecUpdateContext{})
	require.ErrorIs(t, err, jobstate.ErrContext, "none is written")
	found := jobstate.Validate([]byte(logOf(submit, `jobspec-update {}`)))
	require.Len(t, found, 1, "and one that the reference wrote is named")
}

func TestRFC21EventsWithoutADefinedContext(t *testing.T) {
	for name, lines := range map[string][]string{
		"validate": {submit}, "invalidate": {submit}, "depend": {submit, "validate"}, "flux-restart": {submit},
	} {
		require.Empty(t, jobstate.Validate([]byte(logOf(append(lines, name)...))))
		found := jobstate.Validate([]byte(logOf(append(lines, name+` {"a":1}`)...)))
		require.Len(t, found, 1, name)
		require.Equal(t, jobstate.LevelNote, found[0].Level)
	}
}

func TestRFC21InvalidateEndsTheLog(t *testing.T) {
	j, _ := run(t, submit, "invalidate")
	require.True(t, j.Closed(), "the job is removed at once")
	_, err := j.Apply(entry(9, "made-up", ""))
	require.ErrorIs(t, err, jobstate.ErrClosed)
}

func TestRFC21DependencyEvents(t *testing.T) {
	add, remove := `dependency-add {"description":"a"}`, `dependency-remove {"description":"a"}`
	require.Empty(t, jobstate.Validate([]byte(logOf(submit, add, "validate", remove, "depend"))))
	// The description of a removal must match one that was added.
	found := jobstate.Validate([]byte(logOf(submit, add, "validate", `dependency-remove {"description":"b"}`)))
	require.Len(t, found, 1)
	require.Equal(t, jobstate.LevelError, found[0].Level)
	// And a dependency that was added must be removed.
	found = jobstate.Validate([]byte(logOf(submit, add, "validate", "depend")))
	require.Len(t, found, 1)
	require.Equal(t, jobstate.LevelError, found[0].Level)
}

func TestRFC21PriorityEvent(t *testing.T) {
	require.Empty(t, jobstate.Validate([]byte(logOf(append(whole[:3:3], `priority {"priority":4294967295}`)...))))
	found := jobstate.Validate([]byte(logOf(append(whole[:3:3], `priority {"priority":4294967296}`)...)))
	require.Len(t, found, 1, "the reference writes it, RFC 21 ends before")
}

func TestRFC21TheContextOfFreeStartAndCleanIsEmpty(t *testing.T) {
	for line, name := range map[int]string{6: "start", 9: "free", 10: "clean"} {
		log := append([]string{}, whole...)
		log[line-1] = name + " {}"
		require.Empty(t, jobstate.Validate([]byte(logOf(log...))))
		log[line-1] = name + ` {"a":1}`
		found := jobstate.Validate([]byte(logOf(log...)))
		require.Len(t, found, 1, name)
		require.Equal(t, jobstate.LevelError, found[0].Level)
		require.Equal(t, line, found[0].Line)
	}
}

func TestRFC21ReleaseEvent(t *testing.T) {
	var ev jobstate.Event
	for text, ranks := range map[string]string{`"all"`: "all", `"0-3,7"`: "0-3,7", `"[1,3]"`: "1,3", `"\u0061ll"`: "all"} {
		require.NoError(t, ev.Decode(entry(1, "release", `{"ranks":`+text+`,"final":false}`)))
		require.Equal(t, ranks, ev.Context().(*jobstate.ReleaseContext).Ranks.String())
	}
	for _, bad := range []string{`"3-1"`, `"x"`, `3`, `["0"]`} {
		require.ErrorIs(t, ev.Decode(entry(1, "release", `{"ranks":`+bad+`,"final":true}`)), jobstate.ErrContext)
	}
}

func TestRFC21ExceptionEvent(t *testing.T) {
	// The note is required of a writer, and an empty one is written as such.
	found := jobstate.Validate([]byte(logOf(append(whole[:6:6], `exception {"type":"oom","severity":3}`)...)))
	require.Len(t, found, 1)
	require.Contains(t, found[0].Text, "note")
	text, err := jobstate.AppendContext(nil, &jobstate.ExceptionContext{Type: "oom"})
	require.NoError(t, err)
	require.Equal(t, `{"type":"oom","severity":0,"note":""}`, string(text), "the user id is optional")
}

func TestRFC21DebugEventsHaveAnyContext(t *testing.T) {
	for _, line := range []string{"debug.free-request", `debug.x {"a":[1]}`, "debug."} {
		_, last := run(t, submit, line)
		require.Equal(t, jobstate.IgnoredUnknown, last)
		require.Empty(t, jobstate.Validate([]byte(logOf(submit, line))))
	}
}

func TestRFC21SynchronizationOnCleanupHasACauseOrAStatus(t *testing.T) {
	for _, line := range []string{`finish {"status":256}`, `exception {"type":"x","severity":0,"note":""}`} {
		j, _ := run(t, append(upTo(jobstate.StateRun), line)...)
		require.Equal(t, jobstate.StateCleanup, j.State())
		_, failed := j.Cause()
		_, finished := j.WaitStatus()
		require.True(t, failed || finished)
		result, ok := j.Result()
		require.True(t, ok)
		require.Equal(t, jobstate.ResultFailed, result)
	}
}
