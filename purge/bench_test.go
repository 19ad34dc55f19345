package purge_test

import (
	"fmt"
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/internal/race"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/purge"
)

// benchPass measures one job's way through an index where n jobs stay: Add, and its
// share of Claim and Unlinked, tombstones included.
func benchPass(b *testing.B, n int) {
	c := newChurn(b, n)
	for range 1100 { // as many tombstones as are kept
		c.batch(b)
	}
	runtime.GC()
	b.ReportAllocs()
	before := c.x.Compared()
	jobs := 0
	for b.Loop() {
		c.batch(b)
		jobs += purge.DefaultBatch
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(jobs), "ns/job")
	b.ReportMetric(float64(c.x.Compared()-before)/float64(jobs), "comparisons/job")
}

func BenchmarkPass(b *testing.B) {
	for _, n := range []int{10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprintf("jobs=%d", n), func(b *testing.B) { benchPass(b, n) })
	}
}

// shuffled returns n jobs in an order that is neither.
func shuffled(n int) []jobstate.Summary {
	jobs := make([]jobstate.Summary, n)
	state := uint64(1)
	for i := range jobs {
		jobs[i] = churnJob(i)
		state = state*6364136223846793005 + 1442695040888963407
		k := int(state >> 33 % uint64(i+1))
		jobs[i], jobs[k] = jobs[k], jobs[i]
	}
	return jobs
}

// heapBytes returns how many bytes are in use.
func heapBytes() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// perJob returns how many bytes a job costs that stays in an index of n, which were
// built at once, or added one by one as they ended.
func perJob(t testing.TB, n int, atOnce bool) float64 {
	before := heapBytes()
	var x *purge.Index
	if atOnce {
		jobs := shuffled(n)
		var err error
		x, err = purge.Recover(purge.Config{}, purge.Snapshot{Jobs: jobs})
		require.NoError(t, err)
	} else {
		x = new(purge.Index)
		for i := range n {
			require.NoError(t, x.Add(churnJob(i)))
		}
	}
	bytes := float64(heapBytes()-before) / float64(n)
	runtime.KeepAlive(x)
	return bytes
}

func BenchmarkMemory(b *testing.B) {
	for _, n := range []int{10_000, 100_000, 1_000_000} {
		for _, atOnce := range []bool{false, true} {
			b.Run(fmt.Sprintf("at once=%v/jobs=%d", atOnce, n), func(b *testing.B) {
				var bytes float64
				for b.Loop() {
					bytes = perJob(b, n, atOnce)
				}
				b.ReportMetric(bytes, "bytes/job")
			})
		}
	}
}

func TestAMassPurgeGivesItsMemoryBack(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector needs memory of its own")
	}
	const stay = 1000
	n := 100_000
	if os.Getenv("JOBLIFE_LONG") != "" {
		n = 2_000_000
	}
	before := heapBytes()
	x := newChurn(t, n).x
	full := heapBytes() - before
	for more := true; more; {
		more = commit(t, x, start+eventlog.Timestamp(n)/64, purge.Limits{MaxCount: jobstate.Some(stay), Batch: purge.MaxBatch}).More
	}
	require.NoError(t, x.Check())
	require.Equal(t, stay, x.Len())
	left := heapBytes() - before
	t.Logf("%d kB of %d jobs, %d kB of %d and %d tombstones", full>>10, n, left>>10, stay, x.Stats().Tombstones.Total())
	require.Less(t, left, uint64(9<<18))
	runtime.KeepAlive(x)
}

func TestAJobNeedsLessThanSeventyTwoBytes(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector needs memory of its own")
	}
	for _, n := range []int{25_000, 31_250, 37_500, 43_750, 50_000} { // a map's memory doubles in between
		for _, atOnce := range []bool{false, true} {
			bytes := perJob(t, n, atOnce)
			t.Logf("%d jobs, at once: %v: %.1f bytes per job", n, atOnce, bytes)
			require.Less(t, bytes, 72.0)
		}
	}
}
