package dirstore_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/eventlog/logfile"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/purge/dirstore"
)

var ctx = context.Background()

// line returns an event.
func line(name string) []byte {
	b, err := eventlog.AppendEntry(nil, eventlog.Entry{Timestamp: 1699996421.5, Name: name})
	if err != nil {
		panic(err)
	}
	return b
}

// job returns a job with an eventlog of two lines, a jobspec and an R that tell
// whose they are.
func job(id jobid.ID) dirstore.Stored {
	return dirstore.Stored{
		ID: id, Eventlog: append(line("submit"), line("clean")...),
		Jobspec: fmt.Appendf(nil, `{"of":%d}`, id), R: fmt.Appendf(nil, `{"R":%d}`, id),
	}
}

// create returns a new store with jobs, and its directory.
func create(t testing.TB, ids ...jobid.ID) (*dirstore.Store, string) {
	dir := filepath.Join(t.TempDir(), "store")
	s, err := dirstore.Create(dir)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() }) // it may be closed already
	for _, id := range ids {
		require.NoError(t, s.Add(job(id)))
	}
	return s, dir
}

// reopen closes a store and opens it again.
func reopen(t testing.TB, s *dirstore.Store, dir string) *dirstore.Store {
	require.NoError(t, s.Close())
	s, err := dirstore.Open(dir)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// list returns the ids of the jobs that can be read, and the errors of others.
func list(s *dirstore.Store) (ids []jobid.ID, errs []error) {
	for j, err := range s.Jobs() {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		ids = append(ids, j.ID)
	}
	return ids, errs
}

// read returns a job that can be read.
func read(t testing.TB, s *dirstore.Store, id jobid.ID) dirstore.Stored {
	t.Helper()
	j, err := s.Read(id)
	require.NoError(t, err)
	return j
}

func write(t testing.TB, text string, elem ...string) {
	require.NoError(t, os.WriteFile(filepath.Join(elem...), []byte(text), 0o600))
}

func mkdir(t testing.TB, elem ...string) {
	require.NoError(t, os.Mkdir(filepath.Join(elem...), 0o700))
}

func TestAJobNeedsNoJobspecAndNoR(t *testing.T) {
	s, _ := create(t)
	require.NoError(t, s.Add(dirstore.Stored{ID: 7}))
	j := read(t, s, 7)
	require.Empty(t, j.Eventlog)
	require.Nil(t, j.Jobspec)
	require.Nil(t, j.R)
}

func TestWhatCannotBeKeptIsRefused(t *testing.T) {
	s, dir := create(t)
	s.SetMax(100)
	full := dirstore.Stored{ID: 1, Eventlog: line("memo"), Jobspec: make([]byte, 100), R: make([]byte, 100)}
	require.NoError(t, s.Add(full))
	for name, tt := range map[string]struct {
		err  error
		want string
	}{
		"a job that is there":     {s.Add(dirstore.Stored{ID: 1}), "file already exists"},
		"a torn line":             {s.Add(dirstore.Stored{ID: 2, Eventlog: line("submit")[:10]}), "invalid batch: "},
		"a line that is no event": {s.Add(dirstore.Stored{ID: 2, Eventlog: []byte("{}\n")}), "invalid batch: "},
		"a large eventlog":        {s.Add(dirstore.Stored{ID: 2, Eventlog: make([]byte, 101)}), "limit exceeded: 101 bytes, the limit is 100"},
		"a large jobspec":         {s.Add(dirstore.Stored{ID: 2, Jobspec: make([]byte, 101)}), "limit exceeded: 101 bytes"},
		"a large R":               {s.Add(dirstore.Stored{ID: 2, R: make([]byte, 101)}), "limit exceeded: 101 bytes"},
		"a large R that is put":   {s.PutR(1, make([]byte, 101)), "limit exceeded: 101 bytes"},
		"a log that grows":        {s.Append(1, append(line("memo"), line("memo")...)), "limit exceeded: 1"},
		"a line that is appended": {s.Append(1, []byte("no event\n")), "line 1: "},
	} {
		require.ErrorContains(t, tt.err, tt.want, name)
		require.ErrorContains(t, tt.err, "dirstore: ")
		ids, errs := list(s)
		require.Equal(t, []jobid.ID{1}, ids)
		require.Empty(t, errs)
		require.Equal(t, full, read(t, s, 1))
	}
	require.ErrorIs(t, s.Add(dirstore.Stored{ID: 1}), fs.ErrExist)
	require.ErrorIs(t, s.Append(1, []byte("{}")), logfile.ErrBatch)
	require.ErrorIs(t, s.Append(2, line("memo")), fs.ErrNotExist)
	require.ErrorIs(t, s.PutR(2, nil), fs.ErrNotExist)

	// Whoever wrote it: what is too large is not read.
	write(t, strings.Repeat(" ", 101), dir, "job.0000.0000.0000.0001", "R")
	_, err := s.Read(1)
	require.ErrorContains(t, err, "limit exceeded")
	write(t, strings.Repeat(" ", 1000), dir, "job.0000.0000.0000.0001", "eventlog")
	require.ErrorContains(t, s.Append(1, nil), "limit exceeded: 1000 bytes")
}

func TestATornLineIsNotReadAndSetAsideWhenAppending(t *testing.T) {
	s, dir := create(t, 1)
	log := filepath.Join(dir, "job.0000.0000.0000.0001", "eventlog")
	write(t, string(job(1).Eventlog)+`{"timesta`, log)
	j := read(t, s, 1)
	want := job(1)
	want.Torn = 9
	require.Equal(t, want, j)
	require.NoError(t, s.Append(1, line("memo")))
	j = read(t, s, 1)
	want.Torn, want.Eventlog = 0, append(want.Eventlog, line("memo")...)
	require.Equal(t, want, j) // the side file is not foreign
	side, err := os.ReadFile(log + ".torn-1")
	require.NoError(t, err)
	require.Equal(t, `{"timesta`, string(side))
	require.NoError(t, unlink(s, []jobid.ID{1}))
	require.Empty(t, s.Foreign())
}

func TestADamagedJobHidesNoOther(t *testing.T) {
	s, dir := create(t, 1, 2, 3, 4, 5, 6, 7)
	at := func(n int, key string) string {
		return filepath.Join(dir, fmt.Sprintf("job.0000.0000.0000.%04x", n), key)
	}
	require.NoError(t, os.Remove(at(2, "eventlog")))
	write(t, "no event\n"+string(line("clean")), at(3, "eventlog"))
	require.NoError(t, os.Remove(at(4, "R")))
	mkdir(t, at(4, "R"))
	write(t, "a file", dir, "job.0000.0000.0000.0008")
	mkdir(t, dir, "job.0000.0000.0000.0009")
	s = reopen(t, s, dir)
	ids, errs := list(s)
	require.Equal(t, []jobid.ID{1, 5, 6, 7}, ids)
	var damaged []jobid.ID
	for _, err := range errs {
		require.ErrorIs(t, err, dirstore.ErrDamaged)
		var e *dirstore.JobError
		require.ErrorAs(t, err, &e)
		damaged = append(damaged, e.ID)
	}
	require.Equal(t, []jobid.ID{2, 3, 4, 9}, damaged)
	require.EqualError(t, errs[0], "dirstore: ƒ3: damaged: it has no eventlog")

	require.ErrorIs(t, s.Append(2, line("memo")), dirstore.ErrDamaged)
	require.ErrorIs(t, s.Append(3, line("memo")), dirstore.ErrDamaged)
	require.ErrorIs(t, s.Append(8, line("memo")), dirstore.ErrDamaged)
	require.ErrorIs(t, s.PutR(8, nil), dirstore.ErrDamaged)
	require.ErrorIs(t, s.Add(job(9)), fs.ErrExist)

	// They can be unlinked like any other.
	require.NoError(t, unlink(s, damaged))
	ids, errs = list(s)
	require.Equal(t, []jobid.ID{1, 5, 6, 7}, ids)
	require.Empty(t, errs)
	require.Equal(t, []string{"job.0000.0000.0000.0008", "trash/job.0000.0000.0000.0004"}, s.Foreign())

	write(t, string(job(5).Eventlog)+"no event\n", at(5, "eventlog"))
	require.ErrorIs(t, s.Append(5, line("memo")), dirstore.ErrDamaged)
}

func TestJobsMayChangeWhileTheyAreListed(t *testing.T) {
	s, _ := create(t, 1, 2, 3, 4)
	var got []jobid.ID
	for j, err := range s.Jobs() {
		require.NoError(t, err)
		got = append(got, j.ID)
		require.NoError(t, unlink(s, []jobid.ID{j.ID, 3}))
		if j.ID == 2 {
			break
		}
	}
	require.Equal(t, []jobid.ID{1, 2}, got)
	got, errs := list(s)
	require.Equal(t, []jobid.ID{4}, got)
	require.Empty(t, errs)
}

func TestAListingEndsWithItsStore(t *testing.T) {
	s, _ := create(t, 1, 2, 3)
	n := 0
	for _, err := range s.Jobs() {
		if n++; n == 1 {
			require.NoError(t, s.Close())
		} else {
			require.ErrorIs(t, err, fs.ErrClosed)
		}
	}
	require.Equal(t, 2, n)
}

func TestCreateTakesAnEmptyDirectoryOnly(t *testing.T) {
	_, dir := create(t)
	_, err := dirstore.Create(dir)
	require.ErrorIs(t, err, fs.ErrExist)
	dir = t.TempDir()
	write(t, "", dir, "mine")
	_, err = dirstore.Create(dir)
	require.ErrorContains(t, err, "not made by the store")
	require.NoError(t, os.Remove(filepath.Join(dir, "mine")))
	mkdir(t, dir, "mine")
	_, err = dirstore.Create(dir)
	require.ErrorContains(t, err, "not made by the store")
	_, err = dirstore.Open(dir)
	require.ErrorIs(t, err, dirstore.ErrNotStore)
	_, err = dirstore.Open(filepath.Join(dir, "none"))
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = dirstore.Create(filepath.Join(dir, "none", "none"))
	require.ErrorIs(t, err, fs.ErrNotExist)

	// What a Create left that did not finish is none of that, unless it was used.
	dir = t.TempDir()
	mkdir(t, dir, "trash")
	mkdir(t, dir, "new")
	mkdir(t, dir, "new", "x")
	_, err = dirstore.Create(dir)
	require.ErrorContains(t, err, "not made by the store")
	require.NoError(t, os.Remove(filepath.Join(dir, "new", "x")))
	s, err := dirstore.Create(dir)
	require.NoError(t, err)
	require.NoError(t, s.Close())
}

func TestAClosedStoreDoesNothing(t *testing.T) {
	s, _ := create(t, 1)
	require.NoError(t, s.Close())
	for _, s := range []*dirstore.Store{s, new(dirstore.Store)} {
		_, readErr := s.Read(1)
		_, jobErrs := list(s)
		require.Len(t, jobErrs, 1)
		for _, err := range []error{
			s.Add(job(2)), s.PutR(1, nil), s.Append(1, nil), s.Close(), readErr, jobErrs[0], unlink(s, nil),
		} {
			require.ErrorIs(t, err, fs.ErrClosed)
		}
	}
}

func TestOnlyTheOwnerMayReadAStore(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there are no such permissions")
	}
	_, dir := create(t, 1)
	require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		require.NoError(t, err)
		info, err := e.Info()
		require.NoError(t, err)
		want := fs.FileMode(0o600)
		if e.IsDir() {
			want = fs.ModeDir | 0o700
		}
		require.Equal(t, want, info.Mode(), path)
		return nil
	}))
}
