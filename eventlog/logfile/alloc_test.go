package logfile_test

import (
	"bytes"
	"io"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/eventlog/logfile"
	"github.com/joblife/joblife/internal/race"
)

func TestAppendingAllocatesNothingByTheBatch(t *testing.T) {
	race.Skip(t)
	batch := recorded(t)
	l, err := logfile.Create(filepath.Join(t.TempDir(), "eventlog"), logfile.Options{})
	require.NoError(t, err)
	for _, b := range [][]byte{batch, bytes.Repeat(batch, 20)} {
		allocs := testing.AllocsPerRun(20, func() {
			if err := l.Append(b); err != nil {
				t.Fatal(err)
			}
		})
		require.LessOrEqual(t, allocs, 4.0, "a stat, and nothing by the batch")
	}
	require.NoError(t, l.Close())
}

func TestReadingAllocatesNothingPerEntry(t *testing.T) {
	race.Skip(t)
	path := filepath.Join(t.TempDir(), "eventlog")
	l, err := logfile.Create(path, logfile.Options{})
	require.NoError(t, err)
	require.NoError(t, l.Append(bytes.Repeat(recorded(t), 1000)))
	names := strings.Repeat(`{"timestamp":1.5,"name":"debug.a"}`+"\n"+`{"timestamp":1.5,"name":"debug.b"}`+"\n", 1000)
	require.NoError(t, l.Append([]byte(names)))
	// The file and its name, the Decoder, the buffers of 4 to 64 KiB, two names.
	n := 0
	allocs := testing.AllocsPerRun(5, func() {
		r, err := logfile.OpenReader(path, logfile.ReaderOptions{})
		require.NoError(t, err)
		for n = 0; ; n++ {
			if _, err := r.Next(); err != nil {
				require.Equal(t, logfile.ErrEndOfHistory, err)
				break
			}
		}
		require.NoError(t, r.Close())
	})
	require.Greater(t, n, 10_000)
	require.LessOrEqual(t, allocs, 40.0, "%d entries", n)

	// Following costs what it takes to look at the file.
	r, err := logfile.OpenReader(path, logfile.ReaderOptions{Offset: logfile.End})
	require.NoError(t, err)
	batch := recorded(t)
	allocs = testing.AllocsPerRun(50, func() {
		require.NoError(t, l.Append(batch))
		for err = error(nil); err != io.EOF; {
			_, err = r.Next()
		}
	})
	require.LessOrEqual(t, allocs, 12.0)
}

// A Reader of a log that is one long line holds it a few times, not more.
func TestABadLogCostsMemoryInProportion(t *testing.T) {
	const size = 8 << 20
	for what, content := range map[string]string{
		"one line":   strings.Repeat("x", size),
		"empty":      strings.Repeat("\n", size),
		"two bytes":  strings.Repeat("{\n", size/2),
		"long lines": strings.Repeat(strings.Repeat("x", eventlog.DefaultMaxLine)+"\n", 8),
	} {
		d := with(content)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := logfile.Open(name, logfile.Options{FS: d})
		require.Error(t, err)
		r := openReader(t, d, 0)
		_, err = r.Next()
		require.ErrorIs(t, err, logfile.ErrDamaged)
		openReader(t, d, logfile.End)
		runtime.ReadMemStats(&after)
		used := int64(after.TotalAlloc - before.TotalAlloc)
		require.Less(t, used, int64(20*eventlog.DefaultMaxLine), what)
	}
}
