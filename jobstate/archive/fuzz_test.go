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
	"github.com/joblife/joblife/jobstate/jobid"
)

func FuzzWalk(f *testing.F) {
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
		a, err := walk(bytes.NewReader(b), limits)
		require.Equal(t, before, b)
		again, againErr := walk(iotest.HalfReader(bytes.NewReader(b)), limits)
		require.Equal(t, a, again, "however the reader cuts")
		require.Equal(t, err == nil, againErr == nil)
		requireArchive(t, a, limits)
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
	limits := archive.Limits{HeldBytes: 512, FileBytes: 128, Entries: 4}
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
		whole := read(t, b)
		requireArchive(t, whole, archive.Limits{}.WithDefaults())

		small, err := walk(bytes.NewReader(b), limits)
		requireArchive(t, small, limits)
		require.True(t, err == nil || errors.Is(err, archive.ErrLimit))

		short, err := walk(bytes.NewReader(b[:min(int(cut), len(b))]), archive.Limits{})
		requireArchive(t, short, archive.Limits{}.WithDefaults())
		require.True(t, err == nil || errors.Is(err, archive.ErrTruncated))
		require.Equal(t, whole.Jobs[:len(short.Jobs)], short.Jobs, "what comes later changes no job that was given")
	})
}

// requireArchive requires what holds for every archive.
func requireArchive(t require.TestingT, a found, l archive.Limits) {
	highest, ok := a.MaxID()
	require.True(t, ok || len(a.Jobs) == 0)
	given := map[jobid.ID]bool{}
	for _, j := range a.Jobs {
		require.False(t, given[j.ID], "given twice")
		given[j.ID] = true
		require.LessOrEqual(t, j.ID, highest)
		require.NotNil(t, j.Eventlog)
		require.NotNil(t, j.Jobspec)
		held := 0
		for _, v := range [][]byte{j.Eventlog, j.Jobspec, j.R, j.ExecEventlog} {
			held += len(v)
			require.LessOrEqual(t, int64(len(v)), l.FileBytes)
		}
		require.LessOrEqual(t, int64(held), l.HeldBytes)
	}
	failed, others := map[jobid.ID]bool{}, 0
	for i, f := range a.Failures {
		require.True(t, i == 0 || a.Failures[i-1].Path <= f.Path)
		require.Less(t, len(f.Error()), 500)
		require.LessOrEqual(t, len(f.Path), 64)
		switch {
		case !strings.HasPrefix(f.Path, "job/") || errors.Is(f, archive.ErrBadID):
			others++
		case given[f.ID]:
			require.ErrorIs(t, f, archive.ErrApart)
			fallthrough
		default:
			require.False(t, failed[f.ID], "two failures of a job")
			failed[f.ID] = true
			given[f.ID] = true
		}
	}
	require.LessOrEqual(t, len(given)+others, l.Entries)
}
