//go:build joblife_mutations

package joblife

import (
	"sync/atomic"

	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/perilog"
)

// activeMutation is the fault that is made, 0 for none.
var activeMutation atomic.Uint32

// mutated reports whether a fault is to be made.
func (m *Manager) mutated(n mutation) bool { return mutation(activeMutation.Load()) == n }

// mutate makes faults in what a job wants done.
func (m *Manager) mutate(j *job, todo *perilog.Effects) {
	if m.mutated(mutationSkippedFinal) {
		todo.Free.Final = false
	}
	if m.mutated(mutationForgottenDrain) && m.seq == 0 {
		todo.Drain = nil
	}
	for _, l := range todo.Launch {
		if l.Action.Kind == jobstate.ActionEpilog && m.mutated(mutationEarlyFree) {
			todo.Free.R, todo.Free.Final = j.r, true
		}
		if l.Action.Kind == jobstate.ActionProlog && m.mutated(mutationEarlyStart) {
			todo.Start = true
		}
	}
}
