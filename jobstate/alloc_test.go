package jobstate_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/jobstate"
)

// TestApplyAllocatesNothingItNeedNotKeep: the events of a plain life, and those
// that a job meets again and again, cost no memory.
func TestApplyAllocatesNothingItNeedNotKeep(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	life := script(
		submit, "validate", "debug.x {}", "depend", `priority {"priority":16}`, `urgency {"userid":1,"urgency":3}`,
		`priority {"priority":3}`, "flux-restart", `priority {"priority":3}`, `alloc {}`, "start",
		`finish {"status":0}`, `release {"ranks":"all","final":true}`, "free", "clean",
	)
	jobs := make([]jobstate.Job, 101)
	n := 0
	allocs := testing.AllocsPerRun(100, func() {
		for _, e := range life {
			if _, err := jobs[n].Apply(e); err != nil {
				t.Fatal(err)
			}
		}
		n++
	})
	require.Zero(t, allocs)
	require.Equal(t, jobstate.StateInactive, jobs[100].State())
}

func TestAccessorsDoNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	j, _ := run(t, append(upTo(jobstate.StateRun), `prolog-start {"description":"p"}`, `exception {"type":"x","severity":0,"note":"n"}`)...)
	live := 0
	require.Zero(t, testing.AllocsPerRun(100, func() {
		for a := range j.Actions() {
			live += a.Live
		}
		_, _ = j.Result()
		_, _ = j.Cause()
		_, _ = j.ExitCode()
		_, _ = j.Entered(jobstate.StateRun)
		_ = j.MayFree()
	}))
	require.Positive(t, live)
}
