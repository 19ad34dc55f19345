package logfile_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog/logfile"
	"github.com/joblife/joblife/internal/disk"
)

// side returns the name of the n-th side file.
func side(n int) string { return fmt.Sprintf("%s.torn-%d", name, n) }

func TestRepairKeepsTheTornTextInASideFile(t *testing.T) {
	torn := line(2)[:9]
	d := with(lines(0, 2) + torn)
	done, err := logfile.Repair(name, logfile.RepairOptions{FS: d})
	require.NoError(t, err)
	require.Equal(t, logfile.Repaired{Side: side(1), Offset: int64(len(lines(0, 2))), Size: 9}, done)
	require.Equal(t, lines(0, 2), d.Read(name))
	require.Equal(t, torn, d.Read(side(1)))
	require.EqualValues(t, 0o600, d.Mode(side(1)))
	require.Equal(t, d.Count("open"), d.Count("close"))
	d.Crash()
	require.Equal(t, lines(0, 2), d.Read(name))
	require.Equal(t, torn, d.Read(side(1)))

	l := openLog(t, d)
	require.NoError(t, l.Append([]byte(line(2))))
	require.Equal(t, lines(0, 3), d.Read(name))
}

func TestRepairNeverOverwritesASideFileAndGivesUpWhereThereAreTooMany(t *testing.T) {
	d := with("")
	for n := 2; n < 1000; n++ {
		d.Put(side(n), "kept")
	}
	for _, n := range []int{1, 1000} {
		d.Set(name, line(0)+fmt.Sprint("torn ", n))
		done, err := logfile.Repair(name, logfile.RepairOptions{FS: d})
		require.NoError(t, err)
		require.Equal(t, side(n), done.Side)
		require.Equal(t, fmt.Sprint("torn ", n), d.Read(side(n)))
	}
	d.Set(name, line(0)+"torn")
	_, err := logfile.Repair(name, logfile.RepairOptions{FS: d})
	require.ErrorContains(t, requireError(t, err, "repair"), "too many side files")
	require.Equal(t, line(0)+"torn", d.Read(name))
	require.Equal(t, "kept", d.Read(side(2)))
}

func TestRepairKeepsWhatASideFileCannotHold(t *testing.T) {
	content := lines(0, 2) + line(2)[:30]
	for what, tt := range map[string]struct {
		op   string
		f    disk.Fault
		gone bool // what was written of the side file is removed
	}{
		"no open":        {"open", disk.Fault{Err: errDisk}, false},
		"no stat":        {"stat", disk.Fault{Err: errDisk}, false},
		"no read":        {"read", disk.Fault{Err: errDisk}, false},
		"a write fails":  {"write", disk.Fault{N: 7, Err: errDisk}, true},
		"a short write":  {"write", disk.Fault{N: 7}, true},
		"no sync":        {"sync", disk.Fault{Err: errDisk}, true},
		"no sync of dir": {"syncdir", disk.Fault{Err: errDisk}, true},
		"no close":       {"close", disk.Fault{Err: errDisk}, true},
		"no truncate":    {"truncate", disk.Fault{Err: errDisk}, false},
	} {
		d := with(content)
		d.Fail(tt.op, tt.f)
		_, err := logfile.Repair(name, logfile.RepairOptions{FS: d})
		requireError(t, err, "repair")
		require.NotErrorIs(t, err, logfile.ErrDamaged)
		require.Equal(t, content, d.Read(name), what)
		if tt.gone {
			require.Len(t, d.Files(), 1, what)
		}
		if tt.op != "open" {
			require.Equal(t, d.Count("open"), d.Count("close"), what)
		}
		done, err := logfile.Repair(name, logfile.RepairOptions{FS: d})
		require.NoError(t, err)
		require.Equal(t, lines(0, 2), d.Read(name))
		require.Equal(t, content, d.Read(name)+d.Read(done.Side))
	}

	// The last sync: the log is cut.
	d := with(content)
	d.Fail("sync", disk.Fault{})
	d.Fail("sync", disk.Fault{Err: errDisk})
	_, err := logfile.Repair(name, logfile.RepairOptions{FS: d})
	require.ErrorIs(t, requireError(t, err, "repair"), errDisk)
	require.Equal(t, lines(0, 2), d.Read(name))

	// The file shrinks while it is copied.
	d = with(content)
	d.Before = func(op, _ string) error {
		if d.Count("open") == 2 && op == "read" {
			d.Set(name, content[:len(content)-3])
		}
		return nil
	}
	_, err = logfile.Repair(name, logfile.RepairOptions{FS: d})
	require.ErrorIs(t, err, logfile.ErrChanged)
	require.Len(t, d.Files(), 1)
	_, err = logfile.Repair("none", logfile.RepairOptions{FS: d})
	require.ErrorIs(t, err, fs.ErrNotExist)
	requireError(t, err, "repair")
}

// The side file is durable before the log is cut.
func TestACrashWithinRepairLosesNothing(t *testing.T) {
	content := lines(0, 2) + line(2)[:30]
	for _, coin := range []bool{false, true} {
		for k := 1; ; k++ {
			d := with(content)
			d.Coin = func() bool { return coin }
			d.StopAt(k)
			_, _ = logfile.Repair(name, logfile.RepairOptions{FS: d})
			if !d.Stopped() {
				require.Greater(t, k, 10)
				break
			}
			d.Crash()
			got := d.Read(name)
			if got == lines(0, 2) {
				got += d.Read(side(1))
			}
			require.Equal(t, content, got, "call %d", k)
		}
	}
}

// recorded returns a log of a running instance.
func recorded(t testing.TB) []byte {
	b, err := os.ReadFile(filepath.Join("..", "testdata", "prolog.eventlog"))
	require.NoError(t, err)
	require.Greater(t, bytes.Count(b, []byte("\n")), 5)
	return b
}

// SM-4: a crash at any byte.
func TestEveryPrefixOfALogIsOpenedOrRepaired(t *testing.T) {
	log := recorded(t)
	for size := range bytes.IndexByte(log[1000:], '\n') + 1002 {
		openAny(t, log[:size])
	}
}
