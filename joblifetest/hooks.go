package joblifetest

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"pgregory.net/rapid"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
)

// maxTicks is how often hooks may ask for a time in a run.
const maxTicks = 10_000

var errTicks = errors.New("joblifetest: hooks ask for a time again and again")

// RunHooks plays a workload with hooks from newHooks, injects the faults that the package
// documentation lists, and restarts the Manager between Steps, each time with new hooks.
// It fails t at a joblife.Fault, if a restart changes what a job waits for, or if a job
// waits for something that never comes. A hook may refuse jobs. For dependencies between
// jobs, set Submit.ID in the workload.
func RunHooks(t *rapid.T, newHooks func() []joblife.Hooks, workload []Arrival) {
	if err := runHooks(t, newHooks, workload); err != nil {
		t.Fatal(err)
	}
}

func runHooks(t *rapid.T, newHooks func() []joblife.Hooks, workload []Arrival) error {
	nodes := Rs(6).Draw(t, "nodes")
	r, err := newRunner(t, joblife.Config{Epoch: epoch(), Hooks: newHooks()}, nodes, newFirst(nodes))
	if err != nil {
		return err
	}
	r.hooks, r.faulty = newHooks, true
	return r.explain(r.play(workload))
}

// dependencies returns what jobs wait for.
func dependencies(m *joblife.Manager) map[jobid.ID][]string {
	all := make(map[jobid.ID][]string)
	for v := range m.Jobs(jobstate.StateNew | jobstate.StateDepend) {
		all[v.ID()] = slices.Sorted(slices.Values(v.Job().Dependencies()))
	}
	return all
}

// restart makes another Manager of the records, and compares what jobs wait for.
func (r *runner) restart() error {
	r.note("restart")
	before, life := dependencies(r.m), r.life+1
	if err := r.restore(); err != nil || r.life != life {
		return err // after a crash another restart did the rest
	}
	after := dependencies(r.m)
	for _, id := range slices.Sorted(maps.Keys(before)) {
		if !slices.Equal(before[id], after[id]) {
			return fmt.Errorf("joblifetest: job %v waits for %q, and for %q after a restart", id, before[id], after[id])
		}
	}
	return r.connect()
}

// crash makes another Manager of the records, which may tell less than was known.
func (r *runner) crash() error {
	r.note("crash")
	life := r.life + 1
	if err := r.restore(); err != nil || r.life != life {
		return err
	}
	return r.connect()
}

// restore makes another Manager of the records, at the same time.
func (r *runner) restore() error {
	if r.hooks != nil {
		r.cfg.Hooks = r.hooks()
	}
	m, rec, err := joblife.Restore(r.now, r.cfg, records(r.stored))
	if err != nil {
		return err
	}
	for _, q := range rec.Quarantined {
		return fmt.Errorf("joblifetest: job %v: %w", q.Job, q.Err)
	}
	for v := range m.Jobs(jobstate.StateNew | jobstate.StateActive) {
		if r.jobs[v.ID()] == nil { // it was submitted, and nobody was told so
			r.jobs[v.ID()], r.seen = r.jobs[0], v.ID()
		}
	}
	r.m, r.met = m, false
	r.life++
	clear(r.todo[:])
	return r.settle()
}

// records yields what is stored.
func records(list []joblife.Record) iter.Seq2[joblife.Record, error] {
	return func(yield func(joblife.Record, error) bool) {
		for _, r := range list {
			if !yield(r, nil) {
				return
			}
		}
	}
}
