package archive_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/jobstate/archive"
	"github.com/joblife/joblife/jobstate/jobid"
)

// entry is a file of an archive to be made; a directory if its path ends in a
// slash, a link if to is set.
type entry struct{ path, value, to string }

// pack makes a plain tar archive.
func pack(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{Name: e.path, Mode: 0o644, Size: int64(len(e.value)), Typeflag: tar.TypeReg}
		if strings.HasSuffix(e.path, "/") {
			h.Typeflag = tar.TypeDir
		}
		if e.to != "" {
			h.Typeflag, h.Linkname = tar.TypeSymlink, e.to
		}
		require.NoError(t, w.WriteHeader(h))
		_, err := w.Write([]byte(e.value))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return b.Bytes()
}

// zip compresses with gzip.
func zip(t testing.TB, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := w.Write(b)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return out.Bytes()
}

// dir returns the directory of a job.
func dir(id jobid.ID) string {
	return fmt.Sprintf("job/%04x/%04x/%04x/%04x/", uint64(id)>>48, uint64(id)>>32&0xffff, uint64(id)>>16&0xffff, uint64(id)&0xffff)
}

const (
	submitted = `{"timestamp":1.0,"name":"submit","context":{"userid":0,"urgency":16,"flags":0,"version":1}}` + "\n"
	validated = `{"timestamp":2.0,"name":"validate"}` + "\n"
	spec      = `{"version":1}`
)

// job returns the keys of a good job.
func job(id jobid.ID) []entry {
	return []entry{
		{path: dir(id) + "J", value: "signed"},
		{path: dir(id) + "R", value: fmt.Sprintf("R of %d", id)},
		{path: dir(id) + "eventlog", value: submitted + validated},
		{path: dir(id) + "guest/exec/eventlog", value: fmt.Sprintf("exec of %d", id)},
		{path: dir(id) + "guest/output", value: "a lot of output"},
		{path: dir(id) + "jobspec", value: fmt.Sprintf("jobspec of %d", id)},
	}
}

// join joins lists of entries.
func join(lists ...[]entry) (all []entry) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

// found is what Walk says and what it gave.
type found struct {
	*archive.Archive
	Jobs []archive.Job
}

// walk reads an archive.
func walk(r io.Reader, l archive.Limits) (found, error) {
	jobs := []archive.Job{}
	a, err := archive.Walk(r, l, func(j archive.Job) error {
		jobs = append(jobs, j)
		return nil
	})
	return found{a, jobs}, err
}

// read reads an archive that ends well.
func read(t testing.TB, b []byte) found {
	t.Helper()
	a, err := walk(bytes.NewReader(b), archive.Limits{})
	require.NoError(t, err)
	return a
}

// requireGood requires that these are the good jobs, whole, and in this order.
func requireGood(t testing.TB, a found, want ...jobid.ID) {
	t.Helper()
	require.Len(t, a.Jobs, len(want))
	for i, id := range want {
		require.Equal(t, archive.Job{
			ID:           id,
			Eventlog:     []byte(submitted + validated),
			Jobspec:      []byte(fmt.Sprintf("jobspec of %d", id)),
			R:            []byte(fmt.Sprintf("R of %d", id)),
			ExecEventlog: []byte(fmt.Sprintf("exec of %d", id)),
		}, a.Jobs[i])
	}
}

// texts returns the failures as text.
func texts(a found) (out []string) {
	for _, f := range a.Failures {
		out = append(out, f.Error())
	}
	return out
}

// kept returns the size of what is kept of a good job: its values, and 256 bytes.
func kept(id jobid.ID) int64 {
	n := int64(256)
	for _, e := range job(id) {
		if !strings.HasSuffix(e.path, "/J") && !strings.HasSuffix(e.path, "/output") {
			n += int64(len(e.value))
		}
	}
	return n
}
