package archive_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
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

// requireGood requires that these are the good jobs, whole, and in this order.
func requireGood(t testing.TB, a *archive.Archive, want ...jobid.ID) {
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
func texts(a *archive.Archive) (out []string) {
	for _, f := range a.Failures {
		out = append(out, f.Error())
	}
	return out
}

// keys returns the paths of the other keys.
func keys(a *archive.Archive) (out []string) {
	for k := range a.Keys() {
		out = append(out, k)
	}
	return out
}

// read reads an archive that ends well.
func read(t testing.TB, b []byte) *archive.Archive {
	t.Helper()
	a, err := archive.Read(bytes.NewReader(b), archive.Limits{})
	require.NoError(t, err)
	return a
}
