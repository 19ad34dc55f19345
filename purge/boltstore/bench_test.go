//go:build unix

package boltstore_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/purge"
	"github.com/joblife/joblife/purge/boltstore"
	"github.com/joblife/joblife/purge/dirstore"
)

// A peer is a store under measurement.
type peer struct {
	add  func(first jobid.ID, n int) error
	list func() int
	// What each purge stores of its jobs beside removing them. A directory has none of it.
	prepare func(context.Context, purge.Plan) error
	unlink  func(context.Context, []jobid.ID) (map[jobid.ID]error, error)
}

// peers returns both stores, with a jobspec of 1 KiB and an R of 300 bytes a job.
func peers(b *testing.B, dir string) map[string]peer {
	spec, r := make([]byte, 1024), make([]byte, 300)
	bolt, err := boltstore.Open(filepath.Join(dir, "bolt.db"))
	require.NoError(b, err)
	plain, err := dirstore.Create(filepath.Join(dir, "dir"))
	require.NoError(b, err)
	b.Cleanup(func() { _ = bolt.Close(); _ = plain.Close() })
	return map[string]peer{
		"bolt": {func(first jobid.ID, n int) error {
			var list []joblife.Record
			for i := range n {
				list = append(list, job(first+jobid.ID(i), []byte(life+cleanLine), spec, r)...)
			}
			return bolt.Append(list)
		}, func() (n int) {
			for r := range bolt.Records() {
				if r.Kind == joblife.RecordJobspec {
					n++
				}
			}
			return n
		}, bolt.Prepare, bolt.Unlink},
		"dir": {func(first jobid.ID, n int) error {
			for i := range n {
				j := dirstore.Stored{ID: first + jobid.ID(i), Eventlog: []byte(life + cleanLine), Jobspec: spec, R: r}
				if err := plain.Add(j); err != nil {
					return err
				}
			}
			return nil
		}, func() (n int) {
			for range plain.Jobs() {
				n++
			}
			return n
		}, func(context.Context, purge.Plan) error { return nil }, plain.Unlink},
	}
}

// usage returns how many bytes and inodes a path takes on the disk.
func usage(b *testing.B, path string) (bytes int64, inodes int) {
	require.NoError(b, filepath.WalkDir(path, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if stat, ok := info.Sys().(*syscall.Stat_t); err == nil && ok {
			bytes += stat.Blocks * 512
			inodes++
		}
		return err
	}))
	return bytes, inodes
}

// BenchmarkLongStores measures 100,000 jobs in both stores, sides alternating: what a
// job takes, the time to list one, and the time to purge a batch of 100. It needs
// JOBLIFE_LONG in the environment.
func BenchmarkLongStores(b *testing.B) {
	if os.Getenv("JOBLIFE_LONG") == "" {
		b.Skip("JOBLIFE_LONG is not set: 400,000 files take minutes")
	}
	const n, batch = 100_000, 100
	dir := b.TempDir()
	stores := peers(b, dir)
	for name, s := range stores {
		for first := 0; first < n; first += 1000 {
			require.NoError(b, s.add(jobid.ID(first), 1000), name)
		}
	}
	for name, path := range map[string]string{"bolt": "bolt.db", "dir": "dir"} {
		b.Run("size/"+name, func(b *testing.B) {
			bytes, inodes := usage(b, filepath.Join(dir, path))
			b.ReportMetric(float64(bytes)/n/1000, "KB/job")
			b.ReportMetric(float64(inodes)/n, "inodes/job")
		})
	}
	next := jobid.ID(0)
	b.Run("list", func(b *testing.B) {
		for _, name := range []string{"bolt", "dir", "bolt", "dir"} {
			b.Run(name, func(b *testing.B) {
				jobs := 0
				for range b.N {
					jobs += stores[name].list()
				}
				b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(jobs), "µs/job")
			})
		}
	})
	b.Run("purge", func(b *testing.B) {
		ctx := context.Background()
		for _, name := range []string{"bolt", "dir", "bolt", "dir"} {
			s := stores[name]
			b.Run(name, func(b *testing.B) {
				for b.Loop() {
					ids := make([]jobid.ID, batch)
					tombs := make([]jobstate.Summary, batch)
					for i := range ids {
						ids[i] = next + jobid.ID(i)
						tombs[i] = jobstate.Summary{ID: ids[i], Inactive: 1, Result: jobstate.ResultFailed, Ran: true}
					}
					next += batch
					if next > n {
						b.Fatal(fmt.Sprint("all are purged: ", next))
					}
					require.NoError(b, s.prepare(ctx, purge.Plan{Watermark: next, Tombstones: tombs}))
					_, err := s.unlink(ctx, ids)
					require.NoError(b, err)
				}
			})
		}
	})
}
