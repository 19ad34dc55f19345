package perilog

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate/fsd"
)

// wideSpec returns the spec of a run on that many ranks, in that many ranges or
// in one.
func wideSpec(n int, scattered bool) Spec {
	ranks := new(idset.Set)
	for i := range uint32(n) {
		if scattered {
			i *= 2
		}
		ranks.Insert(i)
	}
	return Spec{Kind: RunEpilog, Job: 1, Ranks: ranks, PerRank: true, Timeout: fsd.Hour, KillTimeout: fsd.Minute}
}

// I12, the steady state: reports of a run in which nothing fails, whatever its
// size, and what comes out of it.
func TestReportsDoNotAllocate(t *testing.T) {
	if RaceEnabled {
		t.Skip("the race detector allocates")
	}
	for _, n := range []uint32{16, 1024, 16384} {
		for _, scattered := range []bool{false, true} {
			r, err := NewRun(wideSpec(int(n), scattered))
			require.NoError(t, err)
			require.NoError(t, r.Start(t0))
			step := uint32(1)
			if scattered {
				step = 2
			}
			var ends []RankEnd
			rank, now := uint32(0), t0
			line := []byte("hello")
			one := func() {
				now += 0.001
				for _, rep := range []Report{
					{Kind: ReportStarted, Rank: rank}, {Kind: ReportOutput, Rank: rank, Line: line},
					{Kind: ReportExited, Rank: rank}, {Kind: ReportExited, Rank: rank}, {Kind: ReportStarted, Rank: 1 << 30},
				} {
					r.Report(now, rep)
				}
				r.Exception(now, 3)
				r.Tick(now)
				r.Deadline()
				r.Remaining(now)
				r.Requests()
				r.EndOf(rank)
				ends = r.AppendEnded(ends[:0])
				rank += step
			}
			one() // makes the room for ends
			require.Zero(t, testing.AllocsPerRun(10, one))
			require.Equal(t, RunRunning, r.State())
			for rank < n*step {
				one()
			}
			require.True(t, r.Done())
			require.Equal(t, VerdictSuccess, r.Outcome().Verdict)
		}
	}
}

func TestAFailureCostsByWhatItTells(t *testing.T) {
	if RaceEnabled {
		t.Skip("the race detector allocates")
	}
	r, err := NewRun(wideSpec(16384, false))
	require.NoError(t, err)
	require.NoError(t, r.Start(t0))
	r.Requests()
	rank := uint32(0)
	allocs := testing.AllocsPerRun(1000, func() {
		r.Report(t0, Report{Kind: ReportExited, Rank: rank, Status: 256})
		r.Requests()
		rank++
	})
	require.LessOrEqual(t, allocs, 8.0)
}

func TestStartingARunCostsByItsRanges(t *testing.T) {
	if RaceEnabled {
		t.Skip("the race detector allocates")
	}
	spec := wideSpec(16384, false)
	require.LessOrEqual(t, testing.AllocsPerRun(10, func() {
		r, _ := NewRun(spec)
		_ = r.Start(t0)
	}), 12.0)
}
