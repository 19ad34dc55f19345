package jobstate_test

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/jobstate"
)

func TestWaitingInWords(t *testing.T) {
	at := func(s jobstate.State, more ...string) []string { return append(upTo(s), more...) }
	fatal := `exception {"type":"cancel","severity":0,"note":""}`
	for _, c := range []struct {
		lines               []string
		want, slurm, reason string
	}{
		{nil, "submission", "PENDING", "None"},
		{at(jobstate.StateNew), "validation", "PENDING", "None"},
		{at(jobstate.StateNew, "invalidate"), "nothing", "FAILED", "None"},
		{at(jobstate.StateDepend), "the job manager to leave DEPEND", "PENDING", "None"},
		{at(jobstate.StateDepend, `dependency-add {"description":"a"}`), "dependency a", "PENDING", "Dependency"},
		{at(jobstate.StateDepend, `dependency-add {"description":"a"}`, `dependency-add {"description":"b"}`), "dependencies a, b", "PENDING", "Dependency"},
		{at(jobstate.StatePriority), "priority", "PENDING", "Priority"},
		{at(jobstate.StatePriority, `urgency {"urgency":0,"userid":1}`), "release of the hold", "PENDING", "JobHeldUser"},
		{at(jobstate.StateSched), "resources", "PENDING", "Resources"},
		{at(jobstate.StateSched, `priority {"priority":0}`), "release of the hold", "PENDING", "JobHeldUser"},
		{at(jobstate.StateRun), "the executor to start it", "CONFIGURING", "None"},
		{at(jobstate.StateRun, `prolog-start {"description":"p"}`), "prolog p", "CONFIGURING", "None"},
		{at(jobstate.StateRun, `prolog-start {"description":"p"}`, `prolog-start {"description":"q"}`), "prologs p, q", "CONFIGURING", "None"},
		{at(jobstate.StateRun, `prolog-start {"description":"p"}`, `prolog-finish {"description":"p","status":1}`), "the exception of its failed prolog", "CONFIGURING", "None"},
		{at(jobstate.StateRun, "start"), "its own end", "RUNNING", "None"},
		{at(jobstate.StateRun, "start", fatal), "its own end", "COMPLETING", "None"},
		{at(jobstate.StateRun, "start", `finish {"status":0}`), "the executor to release its resources", "COMPLETING", "None"},
		{at(jobstate.StateRun, "start", `finish {"status":0}`, `epilog-start {"description":"e"}`), "epilog e", "COMPLETING", "None"},
		{at(jobstate.StateRun, "start", `finish {"status":0}`, `release {"ranks":"all","final":true}`), "its resources to be freed", "COMPLETING", "None"},
		{at(jobstate.StateRun, `prolog-start {"description":"p"}`, fatal), "prolog p", "COMPLETING", "None"},
		{at(jobstate.StateRun, fatal), "its resources to be freed", "COMPLETING", "None"},
		{at(jobstate.StateSched, fatal), "its log to be closed", "COMPLETING", "None"},
		{at(jobstate.StateSched, fatal, "clean"), "nothing", "CANCELLED", "None"},
		{at(jobstate.StateInactive), "nothing", "COMPLETED", "None"},
		{at(jobstate.StateSched, strings.Replace(fatal, "cancel", "timeout", 1), "clean"), "nothing", "TIMEOUT", "None"},
		{at(jobstate.StateSched, strings.Replace(fatal, "cancel", "x", 1), "clean"), "nothing", "FAILED", "None"},
	} {
		j, _ := run(t, c.lines...)
		w := j.Waiting()
		require.Equal(t, c.want, w.String(), c.lines)
		state, reason := j.Slurm()
		require.Equal(t, c.slurm, state, c.lines)
		require.Equal(t, c.reason, reason, c.lines)
	}
	require.Equal(t, "WaitKind(0)", jobstate.Waiting{}.String())
	var zero jobstate.Job
	state, reason := zero.Slurm()
	require.Equal(t, "PENDING", state)
	require.Equal(t, "None", reason)
}

var update = flag.Bool("update", false, "rewrite the golden files")

func TestDiagramsAreTheGoldenOnes(t *testing.T) {
	for file, format := range map[string]jobstate.DiagramFormat{"testdata/states.dot": jobstate.DiagramDOT, "testdata/states.mmd": jobstate.DiagramMermaid} {
		var b bytes.Buffer
		require.NoError(t, jobstate.Diagram(&b, format))
		if *update {
			require.NoError(t, os.WriteFile(file, b.Bytes(), 0o644))
		}
		want, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, string(want), b.String(), "%s: read the difference, then run with -update", file)
	}
}

func TestDiagramReportsErrors(t *testing.T) {
	require.Error(t, jobstate.Diagram(&bytes.Buffer{}, 0))
	broken := errors.New("broken")
	require.ErrorIs(t, jobstate.Diagram(writer(func([]byte) (int, error) { return 0, broken }), jobstate.DiagramDOT), broken)
}

type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }
