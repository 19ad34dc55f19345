package joblifetest

import (
	"pgregory.net/rapid"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/perilog"
)

// RunHooks plays a workload with hooks from newHooks, injects the faults that the package
// documentation lists, and restarts the Manager between Steps, each time with new hooks.
// It fails t at a joblife.Fault, if a restart changes what a job waits for, its priority,
// or whether it was accepted, or if a job waits for something that never comes. Hooks may
// refuse jobs when they are submitted. For dependencies between jobs, set Submit.ID in the
// workload.
func RunHooks(t *rapid.T, newHooks func() []joblife.Hooks, workload []Arrival) {
	if err := runHooks(t, newHooks, workload); err != nil {
		t.Fatal(err)
	}
}

func runHooks(t *rapid.T, newHooks func() []joblife.Hooks, workload []Arrival) error {
	r := newRunner(t, perilog.Config{}, Rs(6).Draw(t, "nodes"))
	r.hooks, r.faulty, r.begins = newHooks, true, true
	return r.play(workload)
}
