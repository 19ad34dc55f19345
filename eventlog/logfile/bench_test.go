package logfile_test

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/eventlog/logfile"
)

// nowhere is a file system of one file that counts bytes and keeps none: what
// is left is the cost of this package.
type nowhere struct{ file *countingFile }

func (n nowhere) OpenFile(string, int, fs.FileMode) (logfile.File, error) { return n.file, nil }
func (n nowhere) Stat(string) (fs.FileInfo, error)                        { return n.file.Stat() }
func (n nowhere) SameFile(a, b fs.FileInfo) bool                          { return true }
func (n nowhere) Lock(logfile.File) error                                 { return nil }
func (n nowhere) SyncDir(string) error                                    { return nil }
func (n nowhere) Remove(string) error                                     { return nil }

type countingFile struct{ size int64 }

func (f *countingFile) ReadAt([]byte, int64) (int, error) { return 0, io.EOF }
func (f *countingFile) Write(p []byte) (int, error)       { f.size += int64(len(p)); return len(p), nil }
func (f *countingFile) Stat() (fs.FileInfo, error)        { return info{1, f.size, 0o600}, nil }
func (f *countingFile) Sync() error                       { return nil }
func (f *countingFile) Truncate(int64) error              { return nil }
func (f *countingFile) Close() error                      { return nil }

// batchOf returns n recorded entries.
func batchOf(b *testing.B, n int) []byte {
	var out []byte
	for {
		for line := range bytes.Lines(recorded(b)) {
			if n == 0 {
				return out
			}
			out = append(out, line...)
			n--
		}
	}
}

// report tells entries a second.
func report(b *testing.B, entries int) {
	b.ReportMetric(float64(entries)*float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

func BenchmarkAppend(b *testing.B) {
	for _, policy := range []string{"always", "group", "never"} {
		for _, disk := range []string{"none", "real"} {
			for _, n := range []int{1, 64, 4 << 10} {
				b.Run(fmt.Sprintf("policy=%s/disk=%s/batch=%d", policy, disk, n), func(b *testing.B) {
					o := logfile.Options{Policy: map[string]logfile.SyncPolicy{
						"always": logfile.SyncAlways, "group": logfile.SyncGroup, "never": logfile.SyncNever,
					}[policy]}
					if disk == "none" {
						o.FS = nowhere{new(countingFile)}
					}
					benchAppend(b, o, n)
				})
			}
		}
	}
}

// benchAppend appends batches; with SyncGroup it calls Sync after each 16th.
func benchAppend(b *testing.B, o logfile.Options, n int) {
	path := filepath.Join(b.TempDir(), "eventlog")
	batch := batchOf(b, n)
	l, err := logfile.Create(path, o)
	require.NoError(b, err)
	b.ReportAllocs()
	b.SetBytes(int64(len(batch)))
	i := 0
	for b.Loop() {
		if err := l.Append(batch); err != nil {
			b.Fatal(err)
		}
		if i++; i%16 == 0 {
			if err := l.Sync(); err != nil {
				b.Fatal(err)
			}
		}
		if l.Size() > 256<<20 { // do not fill the disk
			b.StopTimer()
			require.NoError(b, l.Close())
			if o.FS == nil {
				require.NoError(b, os.Remove(path))
			} else {
				o.FS = nowhere{new(countingFile)}
			}
			l, err = logfile.Create(path, o)
			require.NoError(b, err)
			b.StartTimer()
		}
	}
	report(b, n)
	require.NoError(b, l.Close())
}

func BenchmarkRead(b *testing.B) {
	for _, n := range []int{1, 64, 4 << 10, 100_000} {
		path := filepath.Join(b.TempDir(), "eventlog")
		log := batchOf(b, n)
		require.NoError(b, os.WriteFile(path, log, 0o600))
		b.Run(fmt.Sprintf("entries=%d/by=reader", n), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(log)))
			for b.Loop() {
				r, err := logfile.OpenReader(path, logfile.ReaderOptions{})
				require.NoError(b, err)
				for err == nil {
					_, err = r.Next()
				}
				require.Equal(b, int64(len(log)), r.Offset())
				require.NoError(b, r.Close())
			}
			report(b, n)
		})
		b.Run(fmt.Sprintf("entries=%d/by=decoder", n), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(log)))
			for b.Loop() {
				f, err := os.Open(path)
				require.NoError(b, err)
				for _, err := range eventlog.NewDecoder(f, eventlog.DecoderOptions{}).All() {
					if err != nil {
						b.Fatal(err)
					}
				}
				require.NoError(b, f.Close())
			}
			report(b, n)
		})
	}
}

func BenchmarkFollow(b *testing.B) {
	for _, n := range []int{1, 64, 4 << 10} {
		b.Run(fmt.Sprintf("batch=%d", n), func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "eventlog")
			l, err := logfile.Create(path, logfile.Options{Policy: logfile.SyncNever})
			require.NoError(b, err)
			batch := batchOf(b, n)
			r, err := logfile.OpenReader(path, logfile.ReaderOptions{})
			require.NoError(b, err)
			_, err = r.Next()
			require.Equal(b, logfile.ErrEndOfHistory, err)
			b.ReportAllocs()
			b.SetBytes(int64(len(batch)))
			for b.Loop() {
				if err := l.Append(batch); err != nil {
					b.Fatal(err)
				}
				for err = nil; err == nil; {
					_, err = r.Next()
				}
				if err != io.EOF {
					b.Fatal(err)
				}
			}
			report(b, n)
			require.Equal(b, l.Size(), r.Offset())
		})
	}
	b.Run("nothing new", func(b *testing.B) {
		path := filepath.Join(b.TempDir(), "eventlog")
		require.NoError(b, os.WriteFile(path, batchOf(b, 64), 0o600))
		r, err := logfile.OpenReader(path, logfile.ReaderOptions{Offset: logfile.End})
		require.NoError(b, err)
		b.ReportAllocs()
		for b.Loop() {
			_, _ = r.Next()
		}
	})
}

func BenchmarkOpen(b *testing.B) {
	for _, n := range []int{1, 64, 4 << 10, 100_000} {
		b.Run(fmt.Sprintf("entries=%d", n), func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "eventlog")
			log := batchOf(b, n)
			require.NoError(b, os.WriteFile(path, log, 0o600))
			b.ReportAllocs()
			b.SetBytes(int64(len(log)))
			for b.Loop() {
				l, err := logfile.Open(path, logfile.Options{})
				require.NoError(b, err)
				require.NoError(b, l.Close())
			}
			report(b, n)
		})
	}
}
