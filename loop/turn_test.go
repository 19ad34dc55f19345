package loop_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/jobstate/jobid"
)

// What Effects and a Scheduler step without a result keeps no input waiting.
func TestManyStepsWithoutAResult(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context) {
		s := newSite(t, time.Now(), new(disk), config(), 0)
		s.effects = func(*joblife.Ready) {
			for range 1 << 14 {
				require.Error(t, s.l.Step(joblife.ExecResponse{ID: 99}))
			}
		}
		inputs := append([]joblife.Input{joblife.SchedHello{}}, slices.Repeat([]joblife.Input{joblife.Tick{}}, 300)...)
		s.put(inputs...)
		require.NoError(t, s.l.Advance(time.Now()))
		require.Zero(t, s.l.Stats().Waiting)
		stop := s.run(ctx)
		synctest.Wait()
		s.put(inputs...) // at once, while it waits
		synctest.Wait()
		require.Zero(t, s.l.Stats().Waiting)
		require.ErrorIs(t, stop(), context.Canceled)
	})
}

// A simulator may put many reports at the time at which their action times out.
func TestAdvanceTicksAfterTheInputs(t *testing.T) {
	cfg := config()
	cfg.Hooks = []joblife.Hooks{{Event: func(e *joblife.HookEvent) {
		if e.Entry.Name == "submit" && e.Job.ID() == 1 {
			e.PostAt(e.Entry.Timestamp+10, joblife.Memo{ID: 1, Values: []byte(`{"n":1}`)})
		}
	}}}
	s := newSite(t, start, new(disk), cfg, 0)
	s.put(submit(1))
	require.NoError(t, s.l.Advance(start))
	for id := range jobid.ID(300) {
		s.put(submit(2 + id))
	}
	require.NoError(t, s.l.Advance(start.Add(10*time.Second)))
	require.Regexp(t, `(?s)301 submit.* memo`, s.journal.String())
}
