package joblife_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobspec"
)

// A guest chooses how many waits there are.
func TestAStepCostsTheSameHoweverManyWaitForOtherStates(t *testing.T) {
	s := newSite(t, joblife.Config{Volatile: true}, 8)
	s.hold["sched"] = true
	id := s.submit(jobspec.Job{Nodes: 1})
	linear(t, func(n int) func() {
		for i := range n {
			_ = s.m.Step(s.now, joblife.Wait{Tag: uint64(i + 1), ID: id, States: jobstate.StateInactive})
			_ = s.m.Step(s.now, joblife.WaitEmpty{Tag: uint64(i + 1), States: jobstate.StateActive})
		}
		s.drop()
		return func() {
			for i := range n {
				_ = s.m.Step(s.now, joblife.SetUrgency{ID: id, Urgency: 8 + i%2})
			}
			require.Equal(t, 2*n, s.m.Stats().Waits)
			for i := range n {
				_ = s.m.Step(s.now, joblife.WaitCancel{Tag: uint64(i + 1)})
			}
		}
	})
}

func TestWaitsAreAnsweredInTheirOrder(t *testing.T) {
	s := newSite(t, joblife.Config{}, 8)
	s.hold["sched"] = true
	id := s.submit(jobspec.Job{Nodes: 1})
	s.last = nil
	var want []uint64
	for i := range uint64(3) {
		for j, states := range []jobstate.State{jobstate.StateCleanup, jobstate.StateInactive, jobstate.StateRun} {
			tag := 10*(3-i) + uint64(j)
			s.step(joblife.Wait{Tag: tag, ID: id, States: states | jobstate.StateCleanup})
			want = append(want, tag)
		}
	}
	s.cancel(id)
	var got []uint64
	for _, a := range s.last {
		got = append(got, a.Tag)
	}
	require.Equal(t, want, got)
}
