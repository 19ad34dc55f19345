package perilog_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/race"
	"github.com/joblife/joblife/perilog"
)

// epilogOf returns a job on n nodes whose epilog runs, but for some that are offline.
func epilogOf(t testing.TB, n int, offline ...uint32) *perilog.Job {
	a := perRank()
	a.WaitOffline = true
	b := offlineBench(t, n, perilog.Config{Epilogs: []perilog.ActionConfig{a}}, idset.Of(offline...))
	b.run()
	b.take()
	return b.job
}

// step reports the end of the epilog on a rank, and takes what follows.
func step(job *perilog.Job, rank uint32) int {
	job.Report(100, perilog.Report{Action: epilog, Attempt: 1, Kind: perilog.ReportExited, Rank: rank})
	todo := job.Take(100)
	return todo.Free.R.Ranks().Len()
}

// TestAllocations: a report, the event that follows and its fold allocate nothing, nor does a signal.
// The fragment that goes back is new: an R, and sets of a rank.
func TestAllocations(t *testing.T) {
	race.Skip(t)
	prologs := newBench(t, 4096, perilog.Config{Prologs: []perilog.ActionConfig{perRank()}})
	prologs.take()
	rank := uint32(0)
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		prologs.job.Report(100, perilog.Report{Action: prolog, Attempt: 1, Kind: perilog.ReportExited, Rank: rank})
		prologs.job.Take(100)
		rank++
	}), "a report of a prolog")

	prologs.job.Tick(1000)
	signal := prologs.job.Take(1000).Signal[0]
	require.Zero(t, testing.AllocsPerRun(10, func() { prologs.job.Signaled(1000, signal) }), "a signal that goes out")

	epilogs := func(job *perilog.Job) float64 {
		rank = 0
		return testing.AllocsPerRun(1000, func() { step(job, rank); rank++ })
	}
	n := epilogs(epilogOf(t, 4096))
	require.LessOrEqual(t, n, 7.0, "a report of an epilog, and its fragment")
	require.Equal(t, n, epilogs(epilogOf(t, 4096, 4095)), "the same, while an offline node is waited for: nobody looks for it")

	drains := func(n int) float64 {
		b := newBench(t, n, perilog.Config{Housekeeping: &perilog.HousekeepingConfig{}})
		b.run()
		b.take()
		for i := range uint32(n) {
			b.report(perilog.Report{Action: perilog.Housekeeping(), Attempt: 1, Kind: perilog.ReportExited, Rank: i, Status: 1 << 8})
		}
		b.take()
		rank = 0
		return testing.AllocsPerRun(32, func() { b.job.Drained(100, idset.Of(rank)); b.job.Take(100); rank++ })
	}
	require.Equal(t, drains(64), drains(4096), "a drain that is confirmed")
}

// BenchmarkReport measures the end of an epilog on a node and the fragment that
// gives it back, in small and large jobs by turns: it is to cost the same.
func BenchmarkReport(b *testing.B) {
	for _, n := range []int{16, 1024, 16384} {
		b.Run(sizes[n], func(b *testing.B) {
			b.ReportAllocs()
			freed, rank := 0, uint32(n)
			var job *perilog.Job
			for b.Loop() {
				if int(rank) >= n-1 { // the last one ends the job
					b.StopTimer()
					job, rank = epilogOf(b, n), 0
					b.StartTimer()
				}
				freed += step(job, rank)
				rank++
			}
			require.Equal(b, b.N, freed)
		})
	}
}

var sizes = map[int]string{16: "16", 1024: "1024", 16384: "16384"}
