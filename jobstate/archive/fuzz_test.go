package archive_test

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/jobstate/archive"
)

func FuzzRead(f *testing.F) {
	small := pack(f, entry{path: dir(1) + "eventlog", value: submitted + validated}, entry{path: dir(1) + "jobspec", value: spec})
	bz2, err := os.ReadFile("testdata/one.tar.bz2")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(small)
	f.Add(small[:700])
	f.Add(zip(f, small))
	f.Add(bz2)
	f.Add(pack(f, entry{path: "job/x/eventlog"}, entry{path: dir(2)}, entry{path: "checkpoint/job-manager", value: `{"max_jobid":3}`}))
	limits := archive.Limits{Bytes: 1 << 20, HeldBytes: 64 << 10, FileBytes: 16 << 10, Entries: 8}
	f.Fuzz(func(t *testing.T, b []byte) {
		before := slices.Clone(b)
		a, err := archive.Read(bytes.NewReader(b), limits)
		require.Equal(t, before, b)
		again, againErr := archive.Read(iotest.HalfReader(bytes.NewReader(b)), limits)
		require.Equal(t, a, again, "however the reader cuts")
		require.Equal(t, err == nil, againErr == nil)
		requireArchive(t, a, limits)
		requireWalk(t, b, limits)
		if err == nil {
			return
		}
		categories := 0
		for _, category := range []error{archive.ErrFormat, archive.ErrTruncated, archive.ErrLimit} {
			if errors.Is(err, category) {
				categories++
			}
		}
		require.Equal(t, 1, categories, "%v", err)
		require.Equal(t, err.Error(), againErr.Error())
		require.LessOrEqual(t, offsetOf(t, err), limits.Bytes)
		require.Less(t, len(err.Error()), 500)
	})
}

// FuzzEntries makes archives of lines: a path, a space and a value, or > and
// where a link leads. Mutations of an archive's bytes seldom get past the checksums.
func FuzzEntries(f *testing.F) {
	d := dir(1)
	f.Add(d+"eventlog "+submitted+d+"jobspec x\n"+d+"R >x\n./"+d+"\njob/x/y\nresource/R r\ncheckpoint/job-manager {\"max_jobid\":3}\n", uint16(0))
	f.Add(d+"R x\njob/0000/0001/e100/ZZZZ/R\n"+d+"R y\n", uint16(1100))
	limits := archive.Limits{HeldBytes: 256, FileBytes: 128, Entries: 4}
	f.Fuzz(func(t *testing.T, text string, cut uint16) {
		var entries []entry
		for line := range strings.Lines(text) {
			path, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
			e := entry{path: strings.ReplaceAll(path, "\x00", "0"), value: value}
			if strings.HasPrefix(value, ">") {
				e = entry{path: e.path, to: "x"}
			}
			if e.path == "" || len(e.path) > 100 || !utf8.ValidString(e.path) {
				continue
			}
			if strings.HasSuffix(e.path, "/") {
				e.value, e.to = "", ""
			}
			entries = append(entries, e)
		}
		b := pack(t, entries...)
		a, err := archive.Read(bytes.NewReader(b), archive.Limits{})
		require.NoError(t, err)
		requireArchive(t, a, archive.Limits{}.WithDefaults())
		requireWalk(t, b, archive.Limits{})

		// The order of entries decides at most which of two failures is told.
		slices.Reverse(entries)
		reversed, err := archive.Read(bytes.NewReader(pack(t, entries...)), archive.Limits{})
		require.NoError(t, err)
		require.Equal(t, a.Jobs, reversed.Jobs)
		require.Equal(t, failed(a), failed(reversed))
		require.Equal(t, keys(a), keys(reversed))

		small, err := archive.Read(bytes.NewReader(b), limits)
		requireArchive(t, small, limits)
		require.True(t, err == nil || errors.Is(err, archive.ErrLimit))

		short, err := archive.Read(bytes.NewReader(b[:min(int(cut), len(b))]), archive.Limits{})
		requireArchive(t, short, archive.Limits{}.WithDefaults())
		require.True(t, err == nil || errors.Is(err, archive.ErrTruncated))
	})
}

// failed returns the paths of the failures.
func failed(a *archive.Archive) (out []string) {
	for _, f := range a.Failures {
		out = append(out, f.Path)
	}
	return out
}

// requireArchive requires what holds for every Archive.
func requireArchive(t require.TestingT, a *archive.Archive, l archive.Limits) {
	held := 0
	highest, ok := a.MaxID()
	require.True(t, ok || len(a.Jobs) == 0)
	for i, j := range a.Jobs {
		require.True(t, i == 0 || a.Jobs[i-1].ID < j.ID)
		require.LessOrEqual(t, j.ID, highest)
		require.NotNil(t, j.Eventlog)
		require.NotNil(t, j.Jobspec)
		for _, v := range [][]byte{j.Eventlog, j.Jobspec, j.R, j.ExecEventlog} {
			held += len(v)
			require.LessOrEqual(t, int64(len(v)), l.FileBytes)
		}
	}
	for i, f := range a.Failures {
		require.True(t, i == 0 || a.Failures[i-1].Path <= f.Path)
		require.Less(t, len(f.Error()), 500)
		require.False(t, slices.ContainsFunc(a.Jobs, func(j archive.Job) bool { return j.ID == f.ID && f.ID != 0 }))
		require.LessOrEqual(t, len(f.Path), 64)
	}
	n := 0
	for k := range a.Keys() {
		v, ok := a.Key(k)
		require.True(t, ok)
		held += len(k) + len(v)
		n++
	}
	require.LessOrEqual(t, int64(held), l.HeldBytes)
	require.LessOrEqual(t, n+len(a.Jobs)+len(a.Failures), l.Entries+1, "a bad checkpoint is one more")
}
