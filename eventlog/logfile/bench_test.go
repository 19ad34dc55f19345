package logfile_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog/logfile"
)

// BenchmarkAppend is a batch of recorded entries, on the disk of the machine.
func BenchmarkAppend(b *testing.B) {
	l, err := logfile.Create(filepath.Join(b.TempDir(), "eventlog"), logfile.Options{})
	require.NoError(b, err)
	batch := recorded(b)
	b.SetBytes(int64(len(batch)))
	for b.Loop() {
		if err := l.Append(batch); err != nil {
			b.Fatal(err)
		}
	}
	require.NoError(b, l.Close())
}

// BenchmarkRead is a log of 100,000 recorded entries and more.
func BenchmarkRead(b *testing.B) {
	path := filepath.Join(b.TempDir(), "eventlog")
	var log []byte
	for range 10_000 {
		log = append(log, recorded(b)...)
	}
	require.NoError(b, os.WriteFile(path, log, 0o600))
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
}
