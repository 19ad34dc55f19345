package dirstore_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/purge/dirstore"
)

func TestForeignFilesStay(t *testing.T) {
	s, dir := create(t, 1, 2)
	write(t, "1", dir, "mine")
	mkdir(t, dir, "job.1")
	mkdir(t, dir, "job.0000.0000.0000.000A")
	mkdir(t, dir, "job.0000.0000.0000.0001~1")
	mkdir(t, dir, "job.0000.0000.0000.00011")
	write(t, "2", dir, "trash", "mine")
	write(t, "3", dir, "trash", "job.0000.0000.0000.0009")
	mkdir(t, dir, "trash", "job.0000.0000.0000.0001~01")
	write(t, "4", dir, "new", "mine")
	foreign := []string{"core", "1", "eventlog.torn-x", "eventlog.torn-0", "eventlog.torn-01"}
	for _, name := range foreign {
		write(t, "5", dir, "job.0000.0000.0000.0001", name)
	}
	mkdir(t, dir, "job.0000.0000.0000.0001", "guest")
	write(t, "6", dir, "job.0000.0000.0000.0001", "guest", "eventlog")
	write(t, "7", dir, "job.ffff.ffff.ffff.ffff") // a file is no job
	write(t, "8", dir, "new", "job.ffff.ffff.ffff.fffe")

	require.Equal(t, job(1), read(t, s, 1))
	require.NoError(t, unlink(s, []jobid.ID{1, 1<<64 - 1}))
	want := []string{
		"job.0000.0000.0000.0001~1", "job.0000.0000.0000.00011", "job.0000.0000.0000.000A", "job.1", "job.ffff.ffff.ffff.ffff", "mine", "new/job.ffff.ffff.ffff.fffe", "new/mine",
		"trash/job.0000.0000.0000.0001", "trash/job.0000.0000.0000.0001~01", "trash/job.0000.0000.0000.0009", "trash/mine",
	}
	for range 2 {
		ids, errs := list(s)
		require.Equal(t, []jobid.ID{2}, ids)
		require.Empty(t, errs)
		require.ElementsMatch(t, want, s.Foreign())
		for _, name := range append(foreign, "guest/eventlog") {
			require.FileExists(t, filepath.Join(dir, "trash/job.0000.0000.0000.0001", name))
		}
		require.NoFileExists(t, filepath.Join(dir, "trash/job.0000.0000.0000.0001/eventlog"))
		s = reopen(t, s, dir)
	}

	// There may be more of the same name, but not without end.
	for i := range 100 {
		mkdir(t, dir, "job.0000.0000.0000.0001")
		write(t, "", dir, "job.0000.0000.0000.0001", "core")
		if err := unlink(s, []jobid.ID{1, 2}); i < 99 {
			require.NoError(t, err)
		} else {
			require.EqualError(t, err, "job.0000.0000.0000.0001: the trash has no free name")
		}
	}
	require.FileExists(t, filepath.Join(dir, "trash/job.0000.0000.0000.0001~99/core"))
	ids, _ := list(s)
	require.Empty(t, ids, "another job of the batch goes")
	require.NoError(t, s.Add(job(9)))
	require.NoError(t, unlink(s, []jobid.ID{9}))
	require.Equal(t, "3", contents(t, dir, "trash/job.0000.0000.0000.0009"), "a file has its name")
	require.NoDirExists(t, filepath.Join(dir, "trash/job.0000.0000.0000.0009~1"))
}

// What keeps the trash from taking a job is told, and no other name is tried in it.
func TestATrashThatTakesNothingSaysWhy(t *testing.T) {
	s, dir := create(t, 1)
	require.NoError(t, os.Remove(filepath.Join(dir, "trash")))
	write(t, "1", dir, "trash")
	err := unlink(s, []jobid.ID{1})
	require.Error(t, err)
	require.NotContains(t, err.Error(), "free name")
	require.Equal(t, job(1), read(t, s, 1))
}

func contents(t *testing.T, elem ...string) string {
	text, err := os.ReadFile(filepath.Join(elem...))
	require.NoError(t, err)
	return string(text)
}

// symlink makes a symbolic link, or skips the test.
func symlink(t *testing.T, to string, elem ...string) {
	if err := os.Symlink(to, filepath.Join(elem...)); err != nil {
		if runtime.GOOS == "windows" {
			t.Skip("symbolic links need a privilege")
		}
		t.Fatal(err)
	}
}

func TestSymbolicLinksAreNotFollowed(t *testing.T) {
	outside := t.TempDir()
	for _, name := range []string{"eventlog", "jobspec", "R"} {
		write(t, string(line("secret")), outside, name)
	}
	s, dir := create(t, 1, 2)
	// A job that is a link, files that are links, and a job in the trash that is
	// one.
	symlink(t, outside, dir, "job.0000.0000.0000.0003")
	symlink(t, "job.0000.0000.0000.0002", dir, "job.0000.0000.0000.0004")
	require.NoError(t, os.Remove(filepath.Join(dir, "job.0000.0000.0000.0001", "R")))
	symlink(t, filepath.Join(outside, "R"), dir, "job.0000.0000.0000.0001", "R")
	symlink(t, outside, dir, "trash", "job.0000.0000.0000.0005")
	mkdir(t, dir, "new", "job.0000.0000.0000.0006")
	symlink(t, filepath.Join(outside, "eventlog"), dir, "new", "job.0000.0000.0000.0006", "eventlog")
	s = reopen(t, s, dir)

	ids, errs := list(s)
	require.Equal(t, []jobid.ID{2}, ids)
	require.Len(t, errs, 1)
	for _, id := range []jobid.ID{3, 4} {
		require.ErrorIs(t, s.PutR(id, []byte("x")), dirstore.ErrDamaged)
		require.ErrorIs(t, s.Append(id, line("memo")), dirstore.ErrDamaged)
	}
	require.ErrorContains(t, s.Add(job(6)), "not made by the store")
	require.NoError(t, s.PutR(1, []byte("own")), "the link is replaced")
	require.NoError(t, os.Remove(filepath.Join(dir, "job.0000.0000.0000.0001", "eventlog")))
	symlink(t, filepath.Join(outside, "eventlog"), dir, "job.0000.0000.0000.0001", "eventlog")
	require.ErrorIs(t, s.Append(1, line("memo")), dirstore.ErrDamaged)

	require.NoError(t, unlink(s, []jobid.ID{1, 3, 4}))
	s = reopen(t, s, dir)
	require.Equal(t, job(2), read(t, s, 2))
	for _, name := range []string{"eventlog", "jobspec", "R"} {
		text, err := os.ReadFile(filepath.Join(outside, name))
		require.NoError(t, err)
		require.Equal(t, string(line("secret")), string(text))
	}
	require.Equal(t, []string{
		"job.0000.0000.0000.0003", "job.0000.0000.0000.0004", "new/job.0000.0000.0000.0006",
		"trash/job.0000.0000.0000.0001", "trash/job.0000.0000.0000.0005",
	}, s.Foreign())
}

func TestAStoreWhoseOwnDirectoriesAreLinksIsNotOpened(t *testing.T) {
	for _, name := range []string{"trash", "new"} {
		s, dir := create(t, 1)
		require.NoError(t, s.Close())
		require.NoError(t, os.Remove(filepath.Join(dir, name)))
		symlink(t, "job.0000.0000.0000.0001", dir, name)
		_, err := dirstore.Open(dir)
		require.ErrorContains(t, err, "not made by the store")
	}
}

func TestAJobIsNotLostIfThereIsNoTrash(t *testing.T) {
	s, dir := create(t, 1)
	require.NoError(t, os.Remove(filepath.Join(dir, "trash")))
	require.Error(t, unlink(s, []jobid.ID{1}))
	require.Equal(t, job(1), read(t, s, 1))
}

func TestErrorsTellTheOperationAndTheName(t *testing.T) {
	s, _ := create(t, 1)
	err := s.Add(job(1))
	require.EqualError(t, err, "dirstore: add job.0000.0000.0000.0001: file already exists")
	_, err = s.Read(2)
	var e *dirstore.JobError
	require.ErrorAs(t, err, &e)
	require.Equal(t, jobid.ID(2), e.ID)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "dirstore: ƒ3: ")
	require.NotContains(t, err.Error(), "job.0000.0000.0000.0002")
	done, cancel := context.WithCancel(ctx)
	cancel()
	require.ErrorIs(t, unlinkAll(done, s, []jobid.ID{1}), context.Canceled)
	ids, _ := list(s)
	require.Equal(t, []jobid.ID{1}, ids)
	require.NoError(t, s.Close())
	require.ErrorContains(t, unlink(s, nil), "dirstore: unlink ")
	require.Contains(t, fmt.Sprint(s.Close()), "file already closed")
}
