package dirstore_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog/logfile"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/purge"
	"github.com/joblife/joblife/purge/dirstore"
)

// These tests are about what happens to a store on a real machine: a second process,
// a full disk, files that others damage or leave.

func TestASecondOpenerIsRefused(t *testing.T) {
	s, dir := create(t, 1, 2)
	_, _, err := dirstore.Open(dir, dirstore.Options{})
	require.ErrorIs(t, err, logfile.ErrLocked)
	if runtime.GOOS == "linux" {
		require.ErrorContains(t, err, fmt.Sprintf("in use by process %d", os.Getpid()))
	}
	_, err = dirstore.Repair(dir, 1000, dirstore.Options{})
	require.ErrorIs(t, err, logfile.ErrLocked)
	_, err = dirstore.Create(dir, dirstore.Options{})
	require.ErrorIs(t, err, fs.ErrExist)
	require.NoError(t, s.Add(job(3)))
	require.NoError(t, s.Close())
	s, _, err = dirstore.Open(dir, dirstore.Options{})
	require.NoError(t, err, "it is free again")

	log, _, err := s.OpenLog(1, logfile.SyncAlways)
	require.NoError(t, err)
	require.ErrorIs(t, s.Append(1, line("memo")), logfile.ErrLocked, "each log that is appended to is locked")
	require.NoError(t, log.Close())
	require.NoError(t, s.Append(1, line("memo")))
	require.NoError(t, s.Close())
}

func TestALookerChangesNothing(t *testing.T) {
	d := newDisk()
	writer := d.create(t)
	for id := range jobid.ID(3) {
		require.NoError(t, writer.Add(job(id+1)))
	}
	require.NoError(t, writer.PutTombstones(ctx, tombsOf(9), nil))
	require.NoError(t, writer.PutTombstones(ctx, tombsOf(10), nil))
	_, _, n := d.find("tombstones")
	end := len(n.cache) - 5
	n.cache = n.cache[:end:end]   // torn: it is being written
	delete(d.root.names, "trash") // a backup dropped it
	before := d.root.clone()
	d.calls = nil
	s, err := dirstore.OpenReadOnly(".", d.options())
	require.NoError(t, err)
	got, errs := list(s)
	require.Empty(t, errs)
	require.Equal(t, ids(1, 2, 3), got)
	require.Equal(t, tombsOf(9), tombs(t, s))
	require.Equal(t, jobid.ID(9), s.Watermark())
	_, _, err = s.Evidence()
	require.NoError(t, err)
	_, _, logErr := s.OpenLog(1, logfile.SyncAlways)
	_, unlinkErr := s.Unlink(ctx, ids(1))
	for _, err := range []error{
		logErr, unlinkErr, s.Add(job(5)), s.PutR(1, nil), s.Append(1, line("memo")),
		s.PutWatermark(ctx, 99), s.PutTombstones(ctx, tombsOf(4), nil),
	} {
		require.ErrorIs(t, err, dirstore.ErrReadOnly)
	}
	require.NoError(t, s.Close())
	require.Equal(t, before.names["tombstones"].cache, d.root.names["tombstones"].cache)
	for _, call := range d.calls {
		what, _, _ := strings.Cut(call, " ")
		require.Contains(t, []string{"open", "lstat", "readdir", "read", "stat", "close", "sub"}, what, call)
	}
	_, err = dirstore.OpenReadOnly(t.TempDir(), dirstore.Options{})
	require.ErrorIs(t, err, dirstore.ErrNotStore)
}

// A writer does all that it can, at any moment of one who looks.
func TestALookerStandsAWriterThatGoesOn(t *testing.T) {
	for at := 0; ; at++ {
		d := newDisk()
		writer := d.create(t)
		for id := range jobid.ID(3) {
			require.NoError(t, writer.Add(job(id+1)))
		}
		require.NoError(t, writer.PutTombstones(ctx, tombsOf(9, 10), nil))
		d.calls = nil
		wrote := false
		d.onCall = func() {
			if wrote || len(d.calls) < at {
				return
			}
			wrote = true
			writer.CompactNext()
			require.NoError(t, errors.Join(writer.PutWatermark(ctx, 20), writer.PutTombstones(ctx, tombsOf(11), ids(9)),
				unlink(writer, ids(2)), writer.Add(job(4))))
		}
		s, err := dirstore.OpenReadOnly(".", d.options())
		require.NoError(t, err, at)
		got, errs := list(s)
		require.Empty(t, errs, at)
		require.Contains(t, [][]jobid.ID{ids(1, 2, 3), ids(1, 3), ids(1, 3, 4)}, got)
		require.Contains(t, [][]purge.Record{tombsOf(9, 10), tombsOf(10, 11)}, tombs(t, s))
		require.Contains(t, ids(10, 11, 20), s.Watermark())
		if !wrote {
			require.Greater(t, at, 20)
			return
		}
	}
}

// afterSub calls a function when a directory was opened.
type afterSub struct {
	dirstore.FS
	do func(dir string)
}

func (f afterSub) Sub(dir string) (dirstore.FS, error) {
	sub, err := f.FS.Sub(dir)
	f.do(dir)
	return sub, err
}

func TestAJobThatIsUnlinkedWhileALookerReadsItIsNotDamaged(t *testing.T) {
	_, dir := create(t, 1, 2, 3)
	s, err := dirstore.OpenReadOnly(dir, dirstore.Wrap(func(fsys dirstore.FS) dirstore.FS {
		return afterSub{fsys, func(name string) {
			if name == jobid.ID(2).KVSPath() {
				// A writer is amid unlinking it.
				aside := filepath.Join(dir, "trash", name)
				require.NoError(t, os.Rename(filepath.Join(dir, name), aside))
				require.NoError(t, os.Remove(filepath.Join(aside, "eventlog")))
			}
		}}
	}))
	require.NoError(t, err)
	got, errs := list(s)
	require.Empty(t, errs)
	require.Equal(t, ids(1, 3), got)
	require.NoError(t, s.Close())
}

// fill fills a disk of which only some blocks or inodes are left.
func fill(t *testing.T, d *disk, s *dirstore.Store) (last jobid.ID) {
	for id := jobid.ID(1); ; id++ {
		if err := s.Add(job(id)); err != nil {
			require.True(t, logfile.IsFull(err), err)
			return id - 1
		}
	}
}

func TestAFullDiskIsPurgedAndOpened(t *testing.T) {
	for _, limit := range []struct{ blocks, inodes int }{{400, 0}, {0, 300}} {
		d := newDisk()
		s := d.create(t)
		d.blocks, d.inodes = limit.blocks, limit.inodes
		last := fill(t, d, s)
		require.Greater(t, last, jobid.ID(40))
		// Something else takes what is left: logs grow.
		_, _, n := d.find("job.0000.0000.0000.0001/eventlog")
		for d.blocks > 0 && d.full(true, func() {}) == nil {
			n.cache = append(n.cache, make([]byte, 4096)...)
		}
		d.blocks -= min(1, d.blocks) // one block less than is used
		s, report, err := dirstore.Open(".", d.options())
		require.NoError(t, err, "it opens")
		require.Equal(t, last, s.Watermark())
		_ = report
		var purged jobid.ID
		for _, batch := range [][]jobid.ID{ids(2, 3, 4), ids(5, 6, 7), ids(8, 9, 10)} {
			require.NoError(t, s.PutWatermark(ctx, last+purged+1), "%+v", limit)
			require.NoError(t, s.PutTombstones(ctx, tombsOf(batch...), nil))
			require.NoError(t, unlink(s, batch))
			purged += 3
		}
		d.crash()
		s = d.open(t)
		require.GreaterOrEqual(t, s.Watermark(), last)
		require.Len(t, tombs(t, s), 9)
		got, errs := list(s)
		require.LessOrEqual(t, len(errs), 1)
		require.Len(t, got, int(last)-9-len(errs))
		require.NoError(t, unlink(s, got[:30]))
		_, _, n = d.find("ballast-4")
		require.NotNil(t, n, "there is room again")
	}
}

func TestTheWatermarkIsDurableBeforeTheTrashIsEmptiedForRoom(t *testing.T) {
	d := newDisk()
	s := d.create(t)
	require.NoError(t, s.Add(job(7)))
	// A crash left a job in the trash, and the watermark is still 0. It cannot be written.
	require.NoError(t, d.Rename("job.0000.0000.0000.0007", "trash/job.0000.0000.0000.0007"))
	d.broken = "watermark-2"
	s, report, err := dirstore.Open(".", d.options())
	require.NoError(t, err)
	require.Equal(t, jobid.ID(7), s.Watermark())
	require.NotEmpty(t, report.Problems)
	_, _, n := d.find("trash/job.0000.0000.0000.0007")
	require.NotNil(t, n, "it is the only evidence")
	d.broken = ""
	require.NoError(t, unlink(s, nil))
	_, _, n = d.find("trash/job.0000.0000.0000.0007")
	require.Nil(t, n)
	d.crash()
	require.Equal(t, jobid.ID(7), d.open(t).Watermark())
}

func TestOpenTellsWhatItRepaired(t *testing.T) {
	s, dir := create(t, 1)
	require.NoError(t, s.PutTombstones(ctx, tombsOf(3), nil))
	require.NoError(t, s.Close())
	name := filepath.Join(dir, "tombstones")
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(name, append(text, "{torn"...), 0o600))
	s, report, err := dirstore.Open(dir, dirstore.Options{})
	require.NoError(t, err)
	require.Equal(t, logfile.Repaired{Side: "tombstones.torn-1", Offset: int64(len(text)), Size: 5}, report.Tombstones)
	require.Empty(t, report.Problems)

	log := filepath.Join(dir, "job.0000.0000.0000.0001", "eventlog")
	text, err = os.ReadFile(log)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(log, append(text, "{t"...), 0o600))
	l, done, err := s.OpenLog(1, logfile.SyncAlways)
	require.NoError(t, err)
	require.EqualValues(t, 2, done.Size)
	require.Contains(t, done.Side, "eventlog.torn-1")
	require.NoError(t, l.Close())
	require.NoError(t, s.Close())

	text, err = os.ReadFile(name)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(name, append(text, "damaged\n"...), 0o600))
	_, _, err = dirstore.Open(dir, dirstore.Options{})
	require.ErrorIs(t, err, dirstore.ErrDamaged, "a crash leaves no newline")
	require.ErrorContains(t, err, fmt.Sprintf("offset %d", len(text)))
}

func TestForeignFilesInTheTrashAreLookedAtOnce(t *testing.T) {
	calls := func(foreign int) int {
		d := newDisk()
		s := d.create(t)
		for id := range jobid.ID(foreign) {
			require.NoError(t, s.Add(job(id+1)))
			_, _, n := d.find((id + 1).KVSPath())
			n.names["core"] = &node{mode: 0o600}
			n.kept["core"] = n.names["core"]
		}
		require.NoError(t, unlink(s, jobids(1, foreign)))
		s = d.open(t)
		require.NoError(t, s.Add(job(1000)))
		d.calls = nil
		require.NoError(t, unlink(s, ids(1000)))
		return len(d.calls)
	}
	require.Equal(t, calls(1), calls(50))
}

// jobids returns the ids from first on.
func jobids(first jobid.ID, n int) (out []jobid.ID) {
	for i := range n {
		out = append(out, first+jobid.ID(i))
	}
	return out
}

func TestAJobCostsUnlinkOneDirectoryHandle(t *testing.T) {
	d := newDisk()
	s := d.create(t)
	for id := range jobid.ID(100) {
		require.NoError(t, s.Add(job(id+1)))
	}
	require.NoError(t, s.PutWatermark(ctx, 100))
	d.calls = nil
	require.NoError(t, unlink(s, jobids(1, 100)))
	count := map[string]int{}
	for _, call := range d.calls {
		what, _, _ := strings.Cut(call, " ")
		count[what]++
	}
	require.Equal(t, map[string]int{
		"lstat": 100 + 400, "rename": 100, "syncdir": 1, "sub": 100 + 1, "remove": 500,
	}, count)
}

// The log of tombstones cannot be replaced by a smaller one.
func TestALogThatCannotBeReplacedStays(t *testing.T) {
	d := newDisk()
	s := d.create(t)
	require.NoError(t, s.PutTombstones(ctx, tombsOf(9, 10), nil))
	d.stuck = "tombstones.new"
	s.CompactNext()
	d.calls = nil
	for id := jobid.ID(11); id <= 13; id++ {
		require.NoError(t, s.PutTombstones(ctx, tombsOf(id), nil))
		_, _, n := d.find("tombstones.new")
		require.Nil(t, n)
	}
	tries := 0
	for _, call := range d.calls {
		if call == "rename tombstones.new" {
			tries++
		}
	}
	require.Equal(t, 1, tries, "the next is a mebibyte later")
	d.crash()
	require.Equal(t, tombsOf(9, 10, 11, 12, 13), tombs(t, d.open(t)))
}

func TestRepairNeverLowersTheWatermark(t *testing.T) {
	for _, tt := range []struct {
		name, file   string
		atLeast      jobid.ID
		want         jobid.ID
		wantDamaged  bool
		changedMark  bool
		lostTombLine bool
	}{
		{name: "nothing is damaged", file: mark(50), want: 50},
		{name: "nothing is damaged, a lower id", file: mark(50), atLeast: 5, want: 50},
		{name: "nothing is damaged, a greater id", file: mark(50), atLeast: 70, want: 70},
		{name: "damaged, no id", file: "watermark", wantDamaged: true},
		{name: "damaged", file: strings.Replace(mark(50), "32", "31", 1), atLeast: 60, want: 60},
		{name: "damaged, evidence is greater", file: "", atLeast: 6, want: 30},
		{name: "removed", file: "-", atLeast: 60, want: 60},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, dir := create(t, 1, 20)
			require.NoError(t, s.PutTombstones(ctx, tombsOf(30), nil))
			require.NoError(t, s.Close())
			removeMarks(t, dir)
			if tt.file != "-" {
				writeMarks(t, tt.file, dir)
			}
			done, err := dirstore.Repair(dir, tt.atLeast, dirstore.Options{})
			if tt.wantDamaged {
				require.ErrorIs(t, err, dirstore.ErrDamaged)
				_, _, err = dirstore.Open(dir, dirstore.Options{})
				require.ErrorIs(t, err, dirstore.ErrDamaged)
				return
			}
			require.NoError(t, err)
			require.Equal(t, dirstore.Repaired{Watermark: tt.want}, done)
			s, _, err = dirstore.Open(dir, dirstore.Options{})
			require.NoError(t, err)
			require.Equal(t, tt.want, s.Watermark())
			require.NoError(t, s.Close())
		})
	}
	_, err := dirstore.Repair(t.TempDir(), 5, dirstore.Options{})
	require.ErrorIs(t, err, dirstore.ErrNotStore)
}

func TestRepairKeepsTheTombstonesThatCanBeRead(t *testing.T) {
	s, dir := create(t, 1)
	for _, id := range ids(3, 4, 5) {
		require.NoError(t, s.PutTombstones(ctx, tombsOf(id), nil))
	}
	require.NoError(t, s.Close())
	name := filepath.Join(dir, "tombstones")
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	damaged := strings.Replace(string(text), `"4 `, `"8 `, 1)
	require.NoError(t, os.WriteFile(name, []byte(damaged), 0o600))
	_, _, err = dirstore.Open(dir, dirstore.Options{})
	require.ErrorIs(t, err, dirstore.ErrDamaged)
	done, err := dirstore.Repair(dir, 0, dirstore.Options{})
	require.NoError(t, err)
	require.Equal(t, dirstore.Repaired{Watermark: 5, Side: "tombstones.torn-1", Lost: 1}, done)
	kept, err := os.ReadFile(filepath.Join(dir, done.Side))
	require.NoError(t, err)
	require.Equal(t, damaged, string(kept))
	s, _, err = dirstore.Open(dir, dirstore.Options{})
	require.NoError(t, err)
	require.Equal(t, tombsOf(3, 5), tombs(t, s))
	require.NoError(t, s.Close())
}

func TestAStrayFileWithTheNameOfAJobIsNoJob(t *testing.T) {
	s, dir := create(t, 1)
	write(t, "", dir, "job.ffff.ffff.ffff.ffff")
	write(t, "", dir, "trash", "job.ffff.ffff.ffff.fffe")
	write(t, "", dir, "new", "job.ffff.ffff.ffff.fffd")
	s = reopen(t, s, dir)
	require.Equal(t, jobid.ID(1), s.Watermark())
	got, errs := list(s)
	require.Equal(t, ids(1), got)
	require.Empty(t, errs)
	require.NoError(t, unlink(s, ids(1<<64-1)))
	require.FileExists(t, filepath.Join(dir, "job.ffff.ffff.ffff.ffff"))
	require.Equal(t, jobid.ID(1), s.Watermark())
}

func TestAMissingEmptyFolderIsMadeAgain(t *testing.T) {
	s, dir := create(t, 1)
	require.NoError(t, s.Close())
	for _, name := range []string{"trash", "new"} {
		require.NoError(t, os.Remove(filepath.Join(dir, name)))
	}
	s, _, err := dirstore.Open(dir, dirstore.Options{})
	require.NoError(t, err)
	require.NoError(t, s.Add(job(2)))
	require.NoError(t, unlink(s, ids(1, 2)))
	require.NoError(t, s.Close())
}

func TestAReplacedFileKeepsItsMode(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have no modes there")
	}
	s, dir := create(t, 1)
	for name, do := range map[string]func() error{
		"watermark-1":               func() error { return s.PutWatermark(ctx, 99) },
		"job.0000.0000.0000.0001/R": func() error { return s.PutR(1, []byte("x")) },
	} {
		name = filepath.Join(dir, name)
		require.NoError(t, os.Chmod(name, 0o644))
		require.NoError(t, do())
		info, err := os.Stat(name)
		require.NoError(t, err)
		require.Equal(t, fs.FileMode(0o644), info.Mode().Perm())
	}
}

// On a disk that is full the trash is emptied amid a batch. A job that a crash brings
// back out of the trash is whole.
func TestACrashOnAFullDiskLeavesNoJobInPart(t *testing.T) {
	full := newDisk()
	s := full.create(t)
	for id := range jobid.ID(80) {
		require.NoError(t, s.Add(job(id+1)))
	}
	require.NoError(t, s.PutWatermark(ctx, 80))
	require.NoError(t, s.Close())
	full.crash() // all is durable
	step := 12
	if deep {
		step = 1
	}
	for k := 1; ; k += step {
		d := newDisk()
		d.root = full.root.clone()
		s := d.open(t)
		d.tight = jobid.ID(60).KVSPath() // the trash needs a block for its name
		random := rand.New(rand.NewPCG(uint64(k), 7))
		d.coin = func() bool { return random.IntN(2) == 0 }
		d.calls, d.failAt, d.down = nil, k, true
		_, _ = s.Unlink(ctx, jobids(1, 80))
		if len(d.calls) < k {
			require.Greater(t, k, 400)
			break
		}
		d.down = false
		d.crash()
		_, errs := list(d.open(t))
		require.Empty(t, errs, "call %d", k)
	}
}

// I9: the damaged log may have the only trace of an id that was dropped.
func TestNoCrashInARepairForgetsAnID(t *testing.T) {
	full := newDisk()
	s := full.create(t)
	require.NoError(t, s.PutTombstones(ctx, tombsOf(3, 400), nil))
	require.NoError(t, s.PutTombstones(ctx, nil, ids(400)))
	require.NoError(t, s.Close())
	_, _, n := full.find("tombstones")
	n.cache = append(n.cache, "damaged\n"...)
	n.stable = n.cache
	for c, coin := range coins(2) {
		for k := 1; ; k++ {
			d := newDisk()
			d.root, d.coin, d.failAt, d.down = full.root.clone(), coin, k, true
			_, err := dirstore.Repair(".", 0, d.options())
			stopped := len(d.calls) >= k
			d.crash()
			if !stopped {
				require.NoError(t, err)
				require.Greater(t, k, 20)
				break
			}
			_, err = dirstore.Repair(".", 0, d.options())
			require.NoError(t, err, "coin %d, call %d", c, k)
			s := d.open(t)
			require.Equal(t, jobid.ID(400), s.Watermark(), "coin %d, call %d", c, k)
			require.Equal(t, tombsOf(3), tombs(t, s))
		}
	}
}
