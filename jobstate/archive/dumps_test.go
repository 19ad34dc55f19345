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
	r    bool
	fail error
}{
	{"dump-0-40-0", 7751073792, 645, true, nil},
	{"dump-0-41-0", 8069840896, 697, true, nil},
	{"dump-0-45-0-no-checkpoint", 455300087808, 710, true, nil},
	{"dump-0-45-0-queue-anon", 455300087808, 710, true, nil},
	{"dump-0-45-0-queues-named", 455300087808, 710, true, nil},
	{"dump-0-46-0-queue-anon-v1", 263721058304, 709, true, nil},
	{"dump-0-46-0-queues-named-v1", 263721058304, 709, true, nil},
	{"dump-baddir", 0, 0, true, archive.ErrBadID},
	{"dump-noeventlog", 8069840896, 0, true, archive.ErrNoEventlog},
	{"dump-nojobspec", 8069840896, 0, true, archive.ErrNoJobspec},
	{"dump-nosubmit", 8069840896, 0, true, archive.ErrNoSubmit},
	{"dump-shorteventlog", 8053063680, 0, false, archive.ErrNotValidated},
}

func TestArchivesThatFluxWroteGiveTheirJobOrOneFailure(t *testing.T) {
	compared := 0
	for _, d := range dumps {
		b := refdata.Read(t, "dumps/"+d.name+".tar.bz2")
		compared++
		a := read(t, b)
		for _, key := range []string{"resource/R", "resource/eventlog", "admin/eventlog"} {
			v, ok := a.Key(key)
			require.True(t, ok, d.name)
			require.NotEmpty(t, v)
		}
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
		require.Contains(t, string(j.Jobspec), `"resources":`)
		require.Contains(t, string(j.R), `"R_lite":`)
		require.Contains(t, string(j.ExecEventlog), `"name":"done"`)
	}
	require.Equal(t, 12, compared)
}

func TestArchivesThatFluxWroteReplay(t *testing.T) {
	replayed := 0
	for _, d := range dumps {
		b := refdata.Read(t, "dumps/"+d.name+".tar.bz2")
		for _, j := range read(t, b).Jobs {
			replayed++
			job, err := jobstate.Replay(j.ID, j.Eventlog)
			require.NoError(t, err, d.name)
			require.Equal(t, jobstate.StateInactive, job.State(), d.name)
			s, err := jobspec.Parse(j.Jobspec)
			require.NoError(t, err, d.name)
			require.Equal(t, "true", s.Name())
		}
		// What a loader sets aside is a legal log all the same.
		if d.fail == archive.ErrNotValidated {
			for _, e := range renamed(t, b, 0) {
				if strings.HasSuffix(e.path, "0000/eventlog") {
					replayed++
					job, err := jobstate.Replay(d.id, []byte(e.value))
					require.NoError(t, err)
					require.Equal(t, jobstate.StateNew, job.State())
				}
			}
		}
	}
	require.Equal(t, 8, replayed)
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
		parts := strings.Split(h.Name, "/")
		if parts[0] != "job" || len(parts) < 6 {
			continue
		}
		parts[1] = fmt.Sprintf("%04x", n)
		out = append(out, entry{path: strings.Join(parts, "/"), value: string(v)})
	}
}

func TestAnArchiveOfGoodAndDamagedOnesGivesEveryGoodJob(t *testing.T) {
	var all []entry
	for i, d := range dumps {
		entries := renamed(t, refdata.Read(t, "dumps/"+d.name+".tar.bz2"), i)
		require.NotEmpty(t, entries)
		all = append(all, entries...)
	}
	for _, b := range [][]byte{pack(t, all...), zip(t, pack(t, all...))} {
		a := read(t, b)
		good, failed := 0, 0
		for i, d := range dumps {
			if d.fail == nil {
				require.Equal(t, d.id|jobid.ID(i)<<48, a.Jobs[good].ID)
				require.Len(t, a.Jobs[good].Eventlog, d.log)
				require.Equal(t, d.r, a.Jobs[good].R != nil)
				good++
				continue
			}
			require.ErrorIs(t, a.Failures[failed], d.fail)
			failed++
		}
		require.Equal(t, 7, good)
		require.Equal(t, 5, failed)
		require.Len(t, a.Jobs, good)
		require.Len(t, a.Failures, failed)
	}
}
