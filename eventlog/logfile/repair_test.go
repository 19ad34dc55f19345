package logfile_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/eventlog/logfile"
)

// side returns the name of the n-th side file.
func side(n int) string { return fmt.Sprintf("%s.torn-%d", name, n) }

func TestRepairKeepsTheTornTextInASideFile(t *testing.T) {
	torn := line(2)[:9]
	d := with(name, lines(0, 2)+torn)
	done, err := logfile.Repair(name, logfile.RepairOptions{FS: d})
	require.NoError(t, err)
	require.Equal(t, logfile.Repaired{Side: side(1), Offset: int64(len(lines(0, 2))), Size: 9}, done)
	require.Equal(t, lines(0, 2), d.read(name))
	require.Equal(t, torn, d.read(side(1)))
	require.EqualValues(t, 0o600, d.names[side(1)].mode)
	require.Equal(t, d.count("open"), d.count("close"))
	d.crash()
	require.Equal(t, lines(0, 2), d.read(name))
	require.Equal(t, torn, d.read(side(1)))

	l := openLog(t, d, logfile.SyncAlways)
	require.NoError(t, l.Append([]byte(line(2))))
	require.Equal(t, lines(0, 3), d.read(name))
}

func TestRepairDoesNothingToALogThatIsComplete(t *testing.T) {
	for _, content := range []string{"", lines(0, 3)} {
		d := with(name, content)
		done, err := logfile.Repair(name, logfile.RepairOptions{FS: d, Cut: true})
		require.NoError(t, err)
		require.Equal(t, logfile.Repaired{Offset: int64(len(content))}, done)
		require.Equal(t, content, d.read(name))
		require.Len(t, d.names, 1)
		require.Zero(t, d.count("truncate")+d.count("sync"))
	}
}

func TestRepairNeverOverwritesASideFile(t *testing.T) {
	d := with(name, lines(0, 2))
	d.put(side(2), "kept")
	for i, n := range []int{1, 3, 4} {
		d.names[name].cache = append(d.names[name].cache, fmt.Sprint("torn ", i)...)
		done, err := logfile.Repair(name, logfile.RepairOptions{FS: d})
		require.NoError(t, err)
		require.Equal(t, side(n), done.Side)
		require.Equal(t, fmt.Sprint("torn ", i), d.read(side(n)))
	}
	require.Equal(t, "kept", d.read(side(2)))
}

func TestRepairGivesUpWhereThereAreTooManySideFiles(t *testing.T) {
	content := lines(0, 2) + "torn"
	d := with(name, content)
	for n := 1; n < 1000; n++ {
		d.put(side(n), "")
	}
	_, err := logfile.Repair(name, logfile.RepairOptions{FS: d})
	require.NoError(t, err)
	d.names[name].cache = []byte(content)
	_, err = logfile.Repair(name, logfile.RepairOptions{FS: d})
	require.ErrorContains(t, requireError(t, err, "repair"), "too many side files")
	require.Equal(t, content, d.read(name))
}

// Entries that were acknowledged may be among those that follow.
func TestRepairSetsAsideEntriesOnlyIfToldTo(t *testing.T) {
	damaged := "garbage\n" + lines(2, 5) + "\x00\x00"
	d := with(name, lines(0, 2)+damaged)
	_, err := logfile.Repair(name, logfile.RepairOptions{FS: d})
	var damage *logfile.DamageError
	require.ErrorAs(t, err, &damage)
	require.Equal(t, 3, damage.Entries)
	require.Equal(t, lines(0, 2)+damaged, d.read(name))
	require.Len(t, d.names, 1)

	done, err := logfile.Repair(name, logfile.RepairOptions{FS: d, Cut: true})
	require.NoError(t, err)
	require.Equal(t, logfile.Repaired{
		Side: side(1), Offset: int64(len(lines(0, 2))), Size: int64(len(damaged)), Entries: 3,
	}, done)
	require.Equal(t, lines(0, 2), d.read(name))
	require.Equal(t, damaged, d.read(side(1)))
}

func TestRepairKeepsWhatASideFileCannotHold(t *testing.T) {
	content := lines(0, 2) + line(2)[:30]
	for what, tt := range map[string]struct {
		op   string
		f    fault
		cut  bool // the failure comes after the cut
		gone bool // what was written of the side file is removed
	}{
		"no open":         {"open", fault{err: errDisk}, false, false},
		"no stat":         {"stat", fault{err: errDisk}, false, false},
		"no read":         {"read", fault{err: errDisk}, false, false},
		"a write fails":   {"write", fault{n: 7, err: errDisk}, false, true},
		"a short write":   {"write", fault{n: 7}, false, true},
		"no sync":         {"sync", fault{err: errDisk}, false, true},
		"no sync of dir":  {"syncdir", fault{err: errDisk}, false, true},
		"no close":        {"close", fault{err: errDisk}, false, true},
		"no truncate":     {"truncate", fault{err: errDisk}, false, false},
		"no remove":       {"remove", fault{err: errDisk}, true, false},
		"the second sync": {"sync", fault{}, true, false},
	} {
		d := with(name, content)
		d.fail(tt.op, tt.f)
		if what == "the second sync" {
			d.fail("sync", fault{err: errDisk})
		}
		_, err := logfile.Repair(name, logfile.RepairOptions{FS: d})
		if what == "no remove" {
			require.NoError(t, err) // none was called
			continue
		}
		requireError(t, err, "repair")
		require.NotErrorIs(t, err, logfile.ErrDamaged)
		want := content
		if tt.cut {
			want = lines(0, 2)
		}
		require.Equal(t, want, d.read(name), what)
		if tt.gone {
			require.Len(t, d.names, 1, what)
		}
		if what != "no close" {
			opens := d.count("open")
			if tt.op == "open" {
				opens--
			}
			require.Equal(t, opens, d.count("close"), what)
		}
		d.faults = map[string][]fault{}
		done, err := logfile.Repair(name, logfile.RepairOptions{FS: d})
		require.NoError(t, err)
		require.Equal(t, lines(0, 2), d.read(name))
		if !tt.cut {
			require.Equal(t, content, d.read(name)+d.read(done.Side))
		}
	}

	// The file shrinks while it is copied.
	d := with(name, content)
	for range whereTornIsCopied(t, content) {
		d.fail("read", pass("read"))
	}
	d.fail("read", fault{n: 3, err: io.EOF})
	_, err := logfile.Repair(name, logfile.RepairOptions{FS: d})
	require.ErrorIs(t, err, logfile.ErrChanged)
	require.Equal(t, content, d.read(name))
	require.Len(t, d.names, 1)
	_, err = logfile.Repair("none", logfile.RepairOptions{FS: d})
	require.ErrorIs(t, err, fs.ErrNotExist)
	requireError(t, err, "repair")
}

// whereTornIsCopied returns how often Repair reads before it copies.
func whereTornIsCopied(t *testing.T, content string) int {
	d := with(name, content)
	_, err := logfile.Repair(name, logfile.RepairOptions{FS: d})
	require.NoError(t, err)
	reads, opens := 0, 0
	for _, op := range d.calls {
		switch {
		case op == "open":
			opens++
		case op == "read" && opens == 1:
			reads++
		}
	}
	return reads
}

// The side file is durable before the log is cut.
func TestACrashWithinRepairLosesNothing(t *testing.T) {
	content := lines(0, 2) + line(2)[:30]
	whole := with(name, content)
	_, err := logfile.Repair(name, logfile.RepairOptions{FS: whole})
	require.NoError(t, err)
	seen := map[string]int{}
	ops := 0
	for _, op := range whole.calls {
		seen[op]++
		for _, coin := range []bool{false, true} {
			d := with(name, content)
			d.coin = func() bool { return coin }
			for range seen[op] - 1 {
				d.fail(op, pass(op))
			}
			d.fail(op, fault{err: errDisk, then: func() { d.down = true }})
			_, _ = logfile.Repair(name, logfile.RepairOptions{FS: d})
			d.crash()
			got := d.read(name)
			if got == lines(0, 2) {
				got += d.read(side(1))
			}
			require.Equal(t, content, got, "%s %d", op, seen[op])
			ops++
		}
	}
	require.Greater(t, ops, 20)
}

// pass is a fault that is none, for an operation on small files.
func pass(op string) fault {
	if op == "read" || op == "write" {
		return fault{n: 1 << 20}
	}
	return fault{}
}

// recorded returns a log of a running instance.
func recorded(t testing.TB) []byte {
	b, err := os.ReadFile(filepath.Join("..", "testdata", "prolog.eventlog"))
	require.NoError(t, err)
	require.Greater(t, bytes.Count(b, []byte("\n")), 5)
	return b
}

func TestEveryPrefixOfALogIsOpenedOrRepaired(t *testing.T) {
	log := recorded(t)
	log = log[:bytes.IndexByte(log[1000:], '\n')+1001]
	batch := []byte(lines(0, 2))
	for size := range len(log) + 1 {
		prefix := string(log[:size])
		good := prefix[:strings.LastIndexByte(prefix, '\n')+1]
		d := with(name, prefix)
		l, err := logfile.Open(name, logfile.Options{FS: d})
		kept := ""
		if good != prefix {
			require.ErrorIs(t, err, eventlog.ErrTorn)
			var damage *logfile.DamageError
			require.True(t, errors.As(err, &damage))
			require.EqualValues(t, len(good), damage.Offset)
			require.Zero(t, damage.Entries)
			done, err := logfile.Repair(name, logfile.RepairOptions{FS: d})
			require.NoError(t, err)
			kept = d.read(done.Side)
			l = openLog(t, d, logfile.SyncAlways)
		} else {
			require.NoError(t, err)
		}
		require.NoError(t, l.Append(batch))
		require.Equal(t, prefix+string(batch), d.read(name)[:len(good)]+kept+d.read(name)[len(good):])
		text, err := rest(t, openReader(t, d, 0))
		require.Equal(t, logfile.ErrEndOfHistory, err)
		require.Equal(t, good+string(batch), text)
	}
}

func TestARealLogIsRepaired(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "eventlog")
	require.NoError(t, os.WriteFile(path, []byte(lines(0, 2)+"{torn"), 0o640))
	_, err := logfile.Open(path, logfile.Options{})
	require.ErrorIs(t, err, logfile.ErrDamaged)
	done, err := logfile.Repair(path, logfile.RepairOptions{})
	require.NoError(t, err)
	require.Equal(t, path+".torn-1", done.Side)
	kept, err := os.ReadFile(done.Side)
	require.NoError(t, err)
	require.Equal(t, "{torn", string(kept))
	stat, err := os.Stat(done.Side)
	require.NoError(t, err)
	require.Zero(t, stat.Mode().Perm()&0o007, "not more open than the log")
	l, err := logfile.Open(path, logfile.Options{})
	require.NoError(t, err)
	require.NoError(t, l.Append([]byte(line(2))))
	require.NoError(t, l.Close())
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, lines(0, 3), string(got))
}
