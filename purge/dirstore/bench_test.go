package dirstore_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/purge/dirstore"
)

// BenchmarkUnlink is a batch, on the disk of the machine; the jobs are added while the clock
// stands still.
func BenchmarkUnlink(b *testing.B) {
	for _, n := range []int{1, 100} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s, _ := create(b)
			ids := make([]jobid.ID, n)
			next := jobid.ID(1)
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				for i := range ids {
					ids[i] = next
					require.NoError(b, s.Add(job(next)))
					next++
				}
				b.StartTimer()
				if err := unlink(s, ids); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(n), "jobs/op")
		})
	}
}

// plainBatch is a purge as one would write it for the same files, without a check: the jobs
// are moved aside, durably, before their files go.
func plainBatch(dir string, ids []jobid.ID) error {
	var errs []error
	for _, id := range ids {
		errs = append(errs, os.Rename(filepath.Join(dir, id.KVSPath()), filepath.Join(dir, "trash", id.KVSPath())))
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	errs = append(errs, d.Sync(), d.Close())
	for _, id := range ids {
		name := filepath.Join(dir, "trash", id.KVSPath())
		for _, key := range []string{"/eventlog", "/jobspec", "/R", ""} {
			errs = append(errs, os.Remove(name+key))
		}
	}
	return errors.Join(errs...)
}

// BenchmarkRatio purges batches of 100 in turns with the plain version, and reports how
// much of the time that takes: what is left is the file system's, which removes four
// inodes for each job. The shortest turn of either counts, for on a busy host the others
// measure what else runs there.
func BenchmarkRatio(b *testing.B) {
	s, dir := create(b)
	plain := b.TempDir()
	mkdir(b, plain, "trash")
	next := jobid.ID(1)
	var best [2]time.Duration
	for b.Loop() {
		ids := jobids(next, 100)
		next += 100
		for i, batch := range []func() error{
			func() error { return unlink(s, ids) },
			func() error { return plainBatch(plain, ids) },
		} {
			b.StopTimer()
			for _, id := range ids {
				name := []string{dir, plain}[i]
				mkdir(b, name, id.KVSPath())
				write(b, string(job(id).Eventlog), name, id.KVSPath(), "eventlog")
				write(b, string(job(id).Jobspec), name, id.KVSPath(), "jobspec")
				write(b, string(job(id).R), name, id.KVSPath(), "R")
			}
			b.StartTimer()
			before := b.Elapsed()
			err := batch()
			if took := b.Elapsed() - before; best[i] == 0 || took < best[i] {
				best[i] = took
			}
			require.NoError(b, err)
		}
	}
	b.ReportMetric(float64(best[0].Microseconds())/1000, "ms/batch")
	b.ReportMetric(float64(best[1])/float64(best[0]), "plain/ours")
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

// BenchmarkRecovery opens a store with jobs, and reads them all. The jobs are written without
// a sync.
func BenchmarkRecovery(b *testing.B) {
	for _, n := range []int{1, 64, 10_000} {
		s, dir := create(b)
		for i := range n {
			id := jobid.ID(i + 1)
			mkdir(b, dir, id.KVSPath())
			write(b, string(job(id).Eventlog), dir, id.KVSPath(), "eventlog")
			write(b, string(job(id).Jobspec), dir, id.KVSPath(), "jobspec")
			write(b, string(job(id).R), dir, id.KVSPath(), "R")
		}
		require.NoError(b, s.Close())
		b.Run(fmt.Sprintf("open/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s, err := dirstore.Open(dir, dirstore.Options{})
				if err != nil {
					b.Fatal(err)
				}
				_ = s.Close()
			}
			b.ReportMetric(float64(n), "jobs/op")
		})
		s, err := dirstore.Open(dir, dirstore.Options{})
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
