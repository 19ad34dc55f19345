package jobstate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/internal/refdata"
	"github.com/joblife/joblife/jobstate"
)

func TestNamesAgreeWithTheReference(t *testing.T) {
	compared := 0
	// encoding/json matches keys without case; "L" and "l" need a raw map.
	for _, raw := range refdata.Lines[map[string]any](t, "vectors/job_state.jsonl.gz", 334) {
		value, _ := raw["value"].(float64)
		if raw["L"] == "(unknown)" {
			continue
		}
		switch raw["kind"] {
		case "state":
			require.Equal(t, raw["L"], jobstate.State(value).String())
			require.Equal(t, raw["S"], jobstate.State(value).Short())
			compared++
		case "result":
			require.Equal(t, raw["L"], jobstate.Result(value).String())
			compared++
		}
	}
	require.Equal(t, 14, compared)
}

func TestAValueWithoutANamePrintsItsNumber(t *testing.T) {
	named := 0
	for v := range 256 {
		s := jobstate.State(v)
		if s.Short() != "" {
			named++
			continue
		}
		require.Equal(t, fmt.Sprintf("State(%d)", v), s.String())
	}
	require.Equal(t, 10, named)
	require.Equal(t, "Result(0) Result(3) Result(9)", fmt.Sprint(jobstate.Result(0), jobstate.Result(3), jobstate.Result(9)))
}

func TestRFC21VirtualStates(t *testing.T) {
	require.Equal(t, []jobstate.State{14, 48, 62}, []jobstate.State{jobstate.StatePending, jobstate.StateRunning, jobstate.StateActive})
	single := 0
	for v := range 256 {
		s := jobstate.State(v)
		if !jobstate.IsSingle(s) {
			continue
		}
		single++
		require.Equal(t, strings.Contains("DEPEND PRIORITY SCHED", s.String()), s.In(jobstate.StatePending), s)
		require.Equal(t, strings.Contains("RUN CLEANUP", s.String()), s.In(jobstate.StateRunning), s)
		require.Equal(t, s != jobstate.StateNew && s != jobstate.StateInactive, s.In(jobstate.StateActive), s)
	}
	require.Equal(t, 7, single)
	require.False(t, jobstate.State(0).In(jobstate.StateActive))
}
