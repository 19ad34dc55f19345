package dirstore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/purge"
	"github.com/joblife/joblife/purge/dirstore"
)

// BenchmarkUnlink is a batch as a Runner has them, on the disk of the machine; the
// jobs are added while the clock stands still.
func BenchmarkUnlink(b *testing.B) {
	for _, n := range []int{1, 100} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s, _ := create(b)
			ids, put := make([]jobid.ID, n), make([]purge.Record, n)
			next := jobid.ID(1)
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				for i := range ids {
					ids[i], put[i] = next, tomb(next)
					require.NoError(b, s.Add(job(next)))
					next++
				}
				b.StartTimer()
				if err := s.PutWatermark(ctx, next); err != nil {
					b.Fatal(err)
				}
				if err := s.PutTombstones(ctx, put, nil); err != nil {
					b.Fatal(err)
				}
				if err := unlink(s, ids); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(n), "jobs/op")
		})
	}
}

// BenchmarkAdd is one job, on the disk of the machine.
func BenchmarkAdd(b *testing.B) {
	s, _ := create(b)
	b.ReportAllocs()
	next := jobid.ID(1)
	for b.Loop() {
		if err := s.Add(job(next)); err != nil {
			b.Fatal(err)
		}
		next++
	}
}

// BenchmarkRecovery opens a store with jobs and as many tombstones, and reads
// them all. The jobs are written without a sync.
func BenchmarkRecovery(b *testing.B) {
	for _, n := range []int{1, 64, 10_000} {
		s, dir := create(b)
		var put []purge.Record
		for i := range n {
			id := jobid.ID(i + 1)
			put = append(put, tomb(id+jobid.ID(n)))
			mkdir(b, dir, id.KVSPath())
			write(b, string(job(id).Eventlog), dir, id.KVSPath(), "eventlog")
			write(b, string(job(id).Jobspec), dir, id.KVSPath(), "jobspec")
			write(b, string(job(id).R), dir, id.KVSPath(), "R")
		}
		require.NoError(b, s.PutTombstones(ctx, put, nil))
		require.NoError(b, s.Close())
		b.Run(fmt.Sprintf("open/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s, _, err := dirstore.Open(dir, dirstore.Options{})
				if err != nil {
					b.Fatal(err)
				}
				_ = s.Close()
			}
			b.ReportMetric(float64(n), "jobs/op")
		})
		s, _, err := dirstore.Open(dir, dirstore.Options{})
		require.NoError(b, err)
		b.Run(fmt.Sprintf("read/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				ids, errs := list(s)
				if len(ids) != n || len(errs) > 0 {
					b.Fatal(len(ids), errs)
				}
			}
			b.ReportMetric(float64(n), "jobs/op")
		})
		require.NoError(b, s.Close())
	}
}

// BenchmarkCompaction writes a log of 100,000 tombstones anew, a step with each batch
// of 100, and tells the longest call.
func BenchmarkCompaction(b *testing.B) {
	const n = 100_000
	s, _ := create(b)
	for at := 1; at <= n; at += 1000 {
		require.NoError(b, s.PutTombstones(ctx, tombsOf(jobids(jobid.ID(at), 1000)...), nil))
	}
	var worst time.Duration
	oldest := jobid.ID(1)
	for b.Loop() {
		s.CompactNext()
		for range n/1000 + 10 {
			put, drop := tombsOf(jobids(oldest+n, 100)...), jobids(oldest, 100)
			oldest += 100
			before := b.Elapsed()
			if err := s.PutTombstones(ctx, put, drop); err != nil {
				b.Fatal(err)
			}
			worst = max(worst, b.Elapsed()-before)
		}
	}
	b.ReportMetric(float64(worst.Microseconds())/1000, "worst-ms")
}
