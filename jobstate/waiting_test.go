package jobstate_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/jobstate"
)

func TestWaitingInWords(t *testing.T) {
	at := func(s jobstate.State, more ...string) []string { return append(upTo(s), more...) }
	fatal := `exception {"type":"cancel","severity":0,"note":""}`
	for _, c := range []struct {
		lines []string
		want  string
	}{
		{nil, "submission"},
		{at(jobstate.StateNew), "validation"},
		{at(jobstate.StateNew, "invalidate"), "nothing"},
		{at(jobstate.StateDepend), "the job manager to leave DEPEND"},
		{at(jobstate.StateDepend, `dependency-add {"description":"a"}`), "dependency a"},
		{at(jobstate.StateDepend, `dependency-add {"description":"a"}`, `dependency-add {"description":"b"}`), "dependencies a, b"},
		{at(jobstate.StatePriority), "priority"},
		{at(jobstate.StatePriority, `urgency {"urgency":0,"userid":1}`), "release of the hold"},
		{at(jobstate.StateSched), "resources"},
		{at(jobstate.StateSched, `priority {"priority":0}`), "release of the hold"},
		{at(jobstate.StateRun), "the executor to start it"},
		{at(jobstate.StateRun, `prolog-start {"description":"p"}`), "prolog p"},
		{at(jobstate.StateRun, `prolog-start {"description":"p"}`, `prolog-start {"description":"q"}`), "prologs p, q"},
		{at(jobstate.StateRun, `prolog-start {"description":"p"}`, `prolog-finish {"description":"p","status":1}`), "the exception of its failed prolog"},
		{at(jobstate.StateRun, "start"), "its own end"},
		{at(jobstate.StateRun, "start", fatal), "its own end"},
		{at(jobstate.StateRun, "start", `finish {"status":0}`), "the executor to release its resources"},
		{at(jobstate.StateRun, "start", `finish {"status":0}`, `epilog-start {"description":"e"}`), "epilog e"},
		{at(jobstate.StateRun, "start", `finish {"status":0}`, `release {"ranks":"all","final":true}`), "its resources to be freed"},
		{at(jobstate.StateRun, `prolog-start {"description":"p"}`, fatal), "prolog p"},
		{at(jobstate.StateRun, fatal), "its resources to be freed"},
		{at(jobstate.StateSched, fatal), "its log to be closed"},
		{at(jobstate.StateSched, fatal, "clean"), "nothing"},
		{at(jobstate.StateInactive), "nothing"},
	} {
		j, _ := run(t, c.lines...)
		require.Equal(t, c.want, j.Waiting(), c.lines)
		require.Equal(t, c.want == "the job manager to leave DEPEND", j.MayDepend(), c.lines)
		require.Equal(t, c.want == "the executor to start it", j.MayStart(), c.lines)
		require.Equal(t, c.want == "its resources to be freed", j.MayFree(), c.lines)
	}
}
