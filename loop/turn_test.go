package loop_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
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
