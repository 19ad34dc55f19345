package archive_test

import (
	"archive/tar"
	"bytes"
	"compress/bzip2"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/internal/refdata"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/archive"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
)

// dumps are the archives of the data: what the job manager's checkpoint says
// and how large a job's log is, or the failure.
var dumps = []struct {
	name string
	id   jobid.ID
	log  int
	fail error
}{
	{"dump-0-40-0", 7751073792, 645, nil},
	{"dump-0-41-0", 8069840896, 697, nil},
	{"dump-0-45-0-no-checkpoint", 455300087808, 710, nil},
	{"dump-0-45-0-queue-anon", 455300087808, 710, nil},
	{"dump-0-45-0-queues-named", 455300087808, 710, nil},
	{"dump-0-46-0-queue-anon-v1", 263721058304, 709, nil},
	{"dump-0-46-0-queues-named-v1", 263721058304, 709, nil},
	{"dump-baddir", 0, 0, archive.ErrBadID},
	{"dump-noeventlog", 8069840896, 0, archive.ErrNoEventlog},
	{"dump-nojobspec", 8069840896, 0, archive.ErrNoJobspec},
	{"dump-nosubmit", 8069840896, 0, archive.ErrNoSubmit},
	{"dump-shorteventlog", 8053063680, 0, archive.ErrNotValidated},
}

func TestArchivesThatFluxWroteGiveTheirJobOrOneFailure(t *testing.T) {
	for _, d := range dumps {
		b := refdata.Read(t, "dumps/"+d.name+".tar.bz2")
		a := read(t, b)
		id, ok := a.MaxID()
		require.True(t, ok)
		if d.fail != nil {
			require.Empty(t, a.Jobs, d.name)
			require.Len(t, a.Failures, 1, d.name)
			require.ErrorIs(t, a.Failures[0], d.fail, d.name)
			require.Equal(t, d.id, a.Failures[0].ID)
			continue
		}
		require.Empty(t, a.Failures, d.name)
		require.Len(t, a.Jobs, 1, d.name)
		j := a.Jobs[0]
		require.Equal(t, d.id, j.ID)
		require.Equal(t, d.id, id)
		require.Len(t, j.Eventlog, d.log)
		require.Contains(t, string(j.R), `"R_lite":`)
		require.Contains(t, string(j.ExecEventlog), `"name":"done"`)

		job, err := jobstate.Replay(j.ID, j.Eventlog)
		require.NoError(t, err, d.name)
		require.Equal(t, jobstate.StateInactive, job.State(), d.name)
		s, err := jobspec.Parse(j.Jobspec)
		require.NoError(t, err, d.name)
		require.Equal(t, "true", s.Name())
	}
}

// renamed returns the entries of an archive with the job's id changed, so that
// all can stand in one.
func renamed(t *testing.T, b []byte, n int) (out []entry) {
	t.Helper()
	var r io.Reader = bytes.NewReader(b)
	if bytes.HasPrefix(b, []byte("BZh")) {
		r = bzip2.NewReader(r)
	}
	tr := tar.NewReader(r)
	for {
		h, err := tr.Next()
		if err == io.EOF {
			return out
		}
		require.NoError(t, err)
		v, err := io.ReadAll(tr)
		require.NoError(t, err)
		if parts := strings.Split(h.Name, "/"); parts[0] == "job" && len(parts) >= 6 {
			parts[1] = fmt.Sprintf("%04x", n)
			out = append(out, entry{path: strings.Join(parts, "/"), value: string(v)})
		}
	}
}

func TestAnArchiveOfGoodAndDamagedOnesGivesEveryGoodJob(t *testing.T) {
	var all []entry
	var logs, want []string
	var failures []error
	for i, d := range dumps {
		all = append(all, renamed(t, refdata.Read(t, "dumps/"+d.name+".tar.bz2"), i)...)
		if d.fail != nil {
			failures = append(failures, d.fail)
		} else {
			want = append(want, fmt.Sprint(d.id|jobid.ID(i)<<48, d.log))
		}
	}
	a := read(t, zip(t, pack(t, all...)))
	for _, j := range a.Jobs {
		logs = append(logs, fmt.Sprint(j.ID, len(j.Eventlog)))
	}
	require.Equal(t, want, logs)
	require.Len(t, a.Failures, len(failures))
	for i, f := range failures {
		require.ErrorIs(t, a.Failures[i], f)
	}
}
