package dirstore_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
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
	_, err := dirstore.Open(dir)
	require.ErrorIs(t, err, logfile.ErrLocked)
	if runtime.GOOS == "linux" {
		require.ErrorContains(t, err, fmt.Sprintf("in use by process %d", os.Getpid()))
	}
	_, err = dirstore.Create(dir)
	require.ErrorIs(t, err, fs.ErrExist)
	require.NoError(t, s.Add(job(3)))
	require.NoError(t, s.Close())
	s, err = dirstore.Open(dir)
	require.NoError(t, err, "it is free again")

	log, err := logfile.Open(filepath.Join(dir, jobid.ID(1).KVSPath(), "eventlog"), logfile.Options{})
	require.NoError(t, err)
	require.ErrorIs(t, s.Append(1, line("memo")), logfile.ErrLocked, "each log that is appended to is locked")
	require.NoError(t, log.Close())
	require.NoError(t, s.Append(1, line("memo")))
	require.NoError(t, s.Close())
}

// Open makes durable what a killed process wrote to the job that it changed last.
func TestADamagedJobThatWasChangedLastHidesNoOther(t *testing.T) {
	for _, harm := range []func(log string){
		func(log string) { mkdir(t, log) }, func(log string) { symlink(t, t.TempDir(), log) },
	} {
		s, dir := create(t, 1, 2)
		require.NoError(t, s.Append(1, line("memo")))
		log := filepath.Join(dir, jobid.ID(1).KVSPath(), "eventlog")
		require.NoError(t, os.Remove(log))
		harm(log)
		s = reopen(t, s, dir)
		got, errs := list(s)
		require.Equal(t, []jobid.ID{2}, got)
		require.Len(t, errs, 1)
		require.NoError(t, s.Close())
	}
}

// last lists the names of a directory from the last one.
type last struct{ folder }

func (f last) ReadDir(name string) ([]fs.DirEntry, error) {
	list, err := f.folder.ReadDir(name)
	slices.Reverse(list)
	return list, err
}

func TestAStoreIsFoundInAnyOrderOfItsNames(t *testing.T) {
	d := newDisk()
	add(t, createOn(t, d), 1, 3)
	d.Kill()
	for _, f := range []dirstore.FS{folder{d, "."}, last{folder{d, "."}}} {
		_, err := dirstore.CreateOn(f)
		require.ErrorIs(t, err, fs.ErrExist)
	}
}

func TestAFullDiskIsPurgedAndOpened(t *testing.T) {
	for _, limit := range []struct{ blocks, inodes int }{{400, 0}, {0, 300}} {
		d := newDisk()
		s := createOn(t, d)
		d.Blocks, d.Inodes = limit.blocks, limit.inodes
		last, err := 0, error(nil)
		for ; err == nil; last++ {
			err = s.Add(job(jobid.ID(last + 1)))
		}
		require.True(t, logfile.IsFull(err), err)
		last--
		require.Greater(t, last, 40)
		// Something else takes what is left: logs grow.
		log := "job.0000.0000.0000.0001/eventlog"
		for d.Blocks > 0 && d.Used() <= d.Blocks {
			d.Set(log, d.Read(log)+strings.Repeat("\x00", 4096))
		}
		d.Blocks -= min(1, d.Blocks) // one block less than is used
		s = openOn(t, d)
		for _, batch := range [][]jobid.ID{ids(2, 3, 4), ids(5, 6, 7), ids(8, 9, 10)} {
			require.NoError(t, unlink(s, batch), "%+v", limit)
		}
		d.Crash()
		s = openOn(t, d)
		got, errs := list(s)
		require.LessOrEqual(t, len(errs), 1)
		require.Len(t, got, last-9-len(errs))
		require.NoError(t, unlink(s, got[:30]))
		require.NotEqual(t, "no such file", d.Read("ballast-4"), "there is room again")
	}
}

func TestForeignFilesInTheTrashAreLookedAtOnce(t *testing.T) {
	calls := func(foreign int) int {
		d := newDisk()
		s := createOn(t, d)
		for _, id := range jobids(1, foreign) {
			require.NoError(t, s.Add(job(id)))
			d.Put(id.KVSPath()+"/core", "")
		}
		require.NoError(t, unlink(s, jobids(1, foreign)))
		s = openOn(t, d)
		require.NoError(t, s.Add(job(1000)))
		d.Calls = nil
		require.NoError(t, unlink(s, ids(1000)))
		return len(d.Calls)
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
	s := createOn(t, d)
	add(t, s, 1, 100)
	d.Calls = nil
	require.NoError(t, unlink(s, jobids(1, 100)))
	count := map[string]int{}
	for _, call := range d.Calls {
		what, _, _ := strings.Cut(call, " ")
		count[what]++
	}
	require.Equal(t, map[string]int{
		"lstat": 100, "readdir": 100, "rename": 100, "syncdir": 1, "opendir": 100 + 1, "remove": 500,
	}, count)
}

// The calls that are dear are counted: see the section on cost in doc.go.
func TestFsyncsAreFew(t *testing.T) {
	d := newDisk()
	s := createOn(t, d)
	syncs := func(do func() error) int {
		d.Calls = nil
		require.NoError(t, do())
		return d.Count("sync") + d.Count("syncdir")
	}
	bare := job(1)
	bare.R = nil
	require.Equal(t, 4, syncs(func() error { return s.Add(bare) }))
	require.Equal(t, 5, syncs(func() error { return s.Add(job(2)) }))
	require.Equal(t, 2, syncs(func() error { return s.PutR(1, []byte("first")) }))
	require.Equal(t, 3, syncs(func() error { return s.PutR(1, []byte("again")) }))
	require.Equal(t, 3, syncs(func() error { return s.Append(1, line("memo")) }))
	require.Equal(t, 1, syncs(func() error { return unlink(s, ids(1)) }))
	require.Equal(t, 1, syncs(func() error { return openOn(t, d).Close() }))
	require.NoError(t, s.Append(2, line("memo")))
	require.Equal(t, 3, syncs(func() error { return openOn(t, d).Close() }), "2 was changed last")
}

func ids(list ...jobid.ID) []jobid.ID { return list }

func TestAMissingEmptyFolderIsMadeAgain(t *testing.T) {
	s, dir := create(t, 1)
	require.NoError(t, s.Close())
	for _, name := range []string{"trash", "new"} {
		require.NoError(t, os.Remove(filepath.Join(dir, name)))
	}
	s, err := dirstore.Open(dir)
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
