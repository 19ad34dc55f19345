package logfile_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/eventlog/logfile"
)

// These tests are about what others do to a log: a second process, a writer that
// takes back what it wrote, an operator.

func TestASecondOpenerIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "eventlog")
	l, err := logfile.Create(path, logfile.Options{})
	require.NoError(t, err)
	for range 2 {
		_, err = logfile.Open(path, logfile.Options{})
		require.ErrorIs(t, err, logfile.ErrLocked)
		if runtime.GOOS == "linux" {
			require.ErrorContains(t, err, "by process "+strconv.Itoa(os.Getpid()))
		}
		_, err = logfile.Repair(path, logfile.RepairOptions{})
		require.ErrorIs(t, err, logfile.ErrLocked)
	}
	r, err := logfile.OpenReader(path, logfile.ReaderOptions{})
	require.NoError(t, err, "readers are welcome")
	require.NoError(t, r.Close())
	require.NoError(t, l.Append([]byte(line(0))))
	require.NoError(t, l.Close())
	l, err = logfile.Open(path, logfile.Options{})
	require.NoError(t, err, "it is free again")
	require.NoError(t, l.Close())
	done, err := logfile.Repair(path, logfile.RepairOptions{})
	require.NoError(t, err)
	require.Zero(t, done.Size)
}

// A crash leaves a last line without a newline. A last line with one that is no
// event was written so, or the disk has damaged it.
func TestADamagedLastLineIsNotCutSilently(t *testing.T) {
	for _, last := range []string{"garbage\n", line(2)[:10] + "\n", "\n"} {
		content := lines(0, 2) + last
		d := with(name, content)
		_, err := logfile.Repair(name, logfile.RepairOptions{FS: d})
		var damage *logfile.DamageError
		require.ErrorAs(t, err, &damage)
		require.ErrorIs(t, err, logfile.ErrDamaged)
		require.NotErrorIs(t, err, eventlog.ErrTorn)
		require.EqualValues(t, len(lines(0, 2)), damage.Offset)
		require.Zero(t, damage.Entries)
		require.Equal(t, content, d.read(name))
		require.Len(t, d.names, 1)
		done, err := logfile.Repair(name, logfile.RepairOptions{FS: d, Cut: true})
		require.NoError(t, err)
		require.Equal(t, last, d.read(done.Side))
	}
}

// A limit that is asked after the read may cover what the read did not see: a batch
// that took the place of another one in between.
func TestALimitIsAskedBeforeTheRead(t *testing.T) {
	d := with(name, lines(0, 2))
	l := openLog(t, d, logfile.SyncGroup)
	asked := len(d.calls)
	reads := 0
	r, err := logfile.OpenReader(name, logfile.ReaderOptions{FS: d, Limit: func() int64 {
		reads = d.count("read")
		asked = len(d.calls)
		return l.Durable()
	}})
	require.NoError(t, err)
	require.Equal(t, lines(0, 2), next(t, r)+next(t, r))
	require.Equal(t, endOfHistory, next(t, r))
	require.NoError(t, l.Append([]byte(line(2))))
	require.Equal(t, "EOF", next(t, r))
	require.Equal(t, reads+1, d.count("read"), "one read after the last question")
	require.Less(t, asked, len(d.calls))
	require.NoError(t, l.Sync())
	require.Equal(t, line(2), next(t, r))
}

// The first half of what a read returns may be older than the second: then it holds
// a line that no writer wrote.
func TestAReadAcrossATruncationReturnsOnlyWrittenEntries(t *testing.T) {
	a, b := line(1), line(2)
	require.Equal(t, len(a), len(b))
	mixed := a[:len(a)/2] + b[len(b)/2:]
	d := with(name, line(0)+a)
	r := openReader(t, d, 0)
	d.names[name].cache = []byte(line(0) + mixed) // what the first read sees
	torn := 0
	d.onRead = func() {
		torn++
		if torn == 1 {
			return
		}
		d.names[name].cache = []byte(line(0) + b) // the writer is done
	}
	require.Equal(t, line(0), next(t, r))
	require.Equal(t, b, next(t, r))
	require.Equal(t, endOfHistory, next(t, r))
}
