package dirstore_test

import (
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
	"github.com/joblife/joblife/purge/dirstore"
)

// These tests are about what happens to a store on a real machine: a second process,
// a full disk, files that others damage or leave.

func TestASecondOpenerIsRefused(t *testing.T) {
	s, dir := create(t, 1, 2)
	_, err := dirstore.Open(dir, dirstore.Options{})
	require.ErrorIs(t, err, logfile.ErrLocked)
	if runtime.GOOS == "linux" {
		require.ErrorContains(t, err, fmt.Sprintf("in use by process %d", os.Getpid()))
	}
	_, err = dirstore.Create(dir, dirstore.Options{})
	require.ErrorIs(t, err, fs.ErrExist)
	require.NoError(t, s.Add(job(3)))
	require.NoError(t, s.Close())
	s, err = dirstore.Open(dir, dirstore.Options{})
	require.NoError(t, err, "it is free again")

	log, err := logfile.Open(filepath.Join(dir, jobid.ID(1).KVSPath(), "eventlog"), logfile.Options{})
	require.NoError(t, err)
	require.ErrorIs(t, s.Append(1, line("memo")), logfile.ErrLocked, "each log that is appended to is locked")
	require.NoError(t, log.Close())
	require.NoError(t, s.Append(1, line("memo")))
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
		s, err := dirstore.Open(".", d.options())
		require.NoError(t, err, "it opens")
		for _, batch := range [][]jobid.ID{ids(2, 3, 4), ids(5, 6, 7), ids(8, 9, 10)} {
			require.NoError(t, unlink(s, batch), "%+v", limit)
		}
		d.crash()
		s = d.open(t)
		got, errs := list(s)
		require.LessOrEqual(t, len(errs), 1)
		require.Len(t, got, int(last)-9-len(errs))
		require.NoError(t, unlink(s, got[:30]))
		_, _, n = d.find("ballast-4")
		require.NotNil(t, n, "there is room again")
	}
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

func TestAStrayFileWithTheNameOfAJobIsNoJob(t *testing.T) {
	s, dir := create(t, 1)
	write(t, "", dir, "job.ffff.ffff.ffff.ffff")
	write(t, "", dir, "trash", "job.ffff.ffff.ffff.fffe")
	write(t, "", dir, "new", "job.ffff.ffff.ffff.fffd")
	s = reopen(t, s, dir)
	got, errs := list(s)
	require.Equal(t, ids(1), got)
	require.Empty(t, errs)
	require.NoError(t, unlink(s, ids(1<<64-1)))
	require.FileExists(t, filepath.Join(dir, "job.ffff.ffff.ffff.ffff"))
}

func TestAMissingEmptyFolderIsMadeAgain(t *testing.T) {
	s, dir := create(t, 1)
	require.NoError(t, s.Close())
	for _, name := range []string{"trash", "new"} {
		require.NoError(t, os.Remove(filepath.Join(dir, name)))
	}
	s, err := dirstore.Open(dir, dirstore.Options{})
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
	name := filepath.Join(dir, "job.0000.0000.0000.0001/R")
	require.NoError(t, os.Chmod(name, 0o644))
	require.NoError(t, s.PutR(1, []byte("x")))
	info, err := os.Stat(name)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o644), info.Mode().Perm())
}

// On a disk that is full the trash is emptied amid a batch. A job that a crash brings
// back out of the trash is whole.
func TestACrashOnAFullDiskLeavesNoJobInPart(t *testing.T) {
	full := newDisk()
	s := full.create(t)
	for id := range jobid.ID(80) {
		require.NoError(t, s.Add(job(id+1)))
	}
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
