package joblife_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog/logfile"
	"github.com/joblife/joblife/jobstate/jobspec"
)

// long skips a benchmark that takes minutes.
func long(b *testing.B) {
	if os.Getenv("JOBLIFE_LONG") == "" {
		b.Skip("set JOBLIFE_LONG=1: it takes minutes")
	}
}

// fill has n jobs more in the Manager: inactive ones, or ones that wait.
func (w *mill) fill(n int, pending bool) {
	w.mute = pending
	for range n / 100 {
		w.lives(100)
	}
	w.mute = false
}

// resident compares lifecycles beside many jobs with those of an empty Manager. The
// two take turns. A quarter of the turns was faster than what counts, so that other
// load on the machine matters little.
func resident(b *testing.B, n int, pending bool) {
	const batch = 500
	mills := []*mill{newMill(b, joblife.Config{}), newMill(b, joblife.Config{})}
	mills[1].fill(n, pending)
	var took, allocs [2][]float64
	runtime.GC()
	for b.Loop() {
		for i, w := range mills {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := time.Now()
			for range batch {
				w.life()
			}
			took[i] = append(took[i], float64(time.Since(start).Nanoseconds())/batch)
			runtime.ReadMemStats(&after)
			allocs[i] = append(allocs[i], float64(after.Mallocs-before.Mallocs)/batch)
		}
	}
	b.ReportMetric(quartile(took[0]), "ns/life-empty")
	b.ReportMetric(quartile(took[1]), "ns/life")
	b.ReportMetric(quartile(took[1])/quartile(took[0]), "time-ratio")
	b.ReportMetric(quartile(allocs[1])/quartile(allocs[0]), "allocs-ratio")
	runtime.KeepAlive(mills)
}

func quartile(list []float64) float64 {
	slices.Sort(list)
	return list[len(list)/4]
}

// BenchmarkResident is a lifecycle beside jobs that are inactive, and ones that wait.
func BenchmarkResident(b *testing.B) {
	b.Run("inactive=100000", func(b *testing.B) { resident(b, 100_000, false) })
	b.Run("pending=10000", func(b *testing.B) { resident(b, 10_000, true) })
}

// BenchmarkLongResident is BenchmarkResident with a million jobs.
func BenchmarkLongResident(b *testing.B) {
	long(b)
	b.Run("inactive=1000000", func(b *testing.B) { resident(b, 1_000_000, false) })
	b.Run("pending=1000000", func(b *testing.B) { resident(b, 1_000_000, true) })
}

// BenchmarkDurable runs jobs with a log on a disk: in the folder that JOBLIFE_BENCH_DIR
// names, or a temporary one. Several jobs share each Ready, and so one sync.
func BenchmarkDurable(b *testing.B) {
	for _, group := range []int{1, 16, 128, 1024} {
		b.Run(fmt.Sprintf("group=%d", group), func(b *testing.B) {
			dir, err := os.MkdirTemp(cmp.Or(os.Getenv("JOBLIFE_BENCH_DIR"), b.TempDir()), "joblife")
			require.NoError(b, err)
			defer os.RemoveAll(dir)
			log, err := logfile.Create(filepath.Join(dir, "log"), logfile.Options{Policy: logfile.SyncGroup})
			require.NoError(b, err)
			defer log.Close()
			w := newMillOf(b, joblife.Config{}, max(128, group))
			var batch []byte
			syncs := 0
			w.store = func(records []joblife.Record) {
				var err error
				if batch, err = joblife.AppendRecords(batch[:0], records); err != nil {
					b.Fatal(err)
				}
				if err := log.Append(batch); err != nil {
					b.Fatal(err)
				}
				if err := log.Sync(); err != nil {
					b.Fatal(err)
				}
				syncs++
			}
			n := 0
			for b.Loop() {
				w.lives(group)
				n += group
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "lives/s")
			b.ReportMetric(float64(syncs)/float64(n), "syncs/job")
			b.ReportMetric(float64(log.Size())/float64(n), "bytes/job")
		})
	}
}

// records returns the records of n jobs, which run, or are inactive.
func records(tb testing.TB, n int, inactive bool) []joblife.Record {
	w := newMill(tb, joblife.Config{})
	w.own = true
	w.text = text(tb, jobspec.Job{Nodes: 1, Command: []string{"true"}})
	w.lazy = !inactive
	var list []joblife.Record
	w.store = func(records []joblife.Record) {
		for _, r := range records {
			list = append(list, r.Clone())
		}
	}
	for range n / 100 {
		w.lives(100)
	}
	return list
}

func restore(b *testing.B, n int, inactive bool) {
	list := records(b, n, inactive)
	runtime.GC()
	b.ReportAllocs()
	for b.Loop() {
		_, out, err := joblife.Restore(time.Unix(1_700_000_000, 0), joblife.Config{}, func(yield func(joblife.Record, error) bool) {
			for _, r := range list {
				if !yield(r, nil) {
					return
				}
			}
		})
		require.NoError(b, err)
		require.Empty(b, out.Quarantined)
		if !inactive {
			require.Len(b, out.Running, n)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/job")
}

// BenchmarkRestore makes a Manager of the records of jobs.
func BenchmarkRestore(b *testing.B) {
	b.Run("inactive=10000", func(b *testing.B) { restore(b, 10_000, true) })
	b.Run("running=10000", func(b *testing.B) { restore(b, 10_000, false) })
}

// BenchmarkLongRestore is BenchmarkRestore with many jobs.
func BenchmarkLongRestore(b *testing.B) {
	long(b)
	b.Run("inactive=100000", func(b *testing.B) { restore(b, 100_000, true) })
	b.Run("inactive=1000000", func(b *testing.B) { restore(b, 1_000_000, true) })
	b.Run("running=100000", func(b *testing.B) { restore(b, 100_000, false) })
}
