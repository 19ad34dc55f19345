package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/examples/cluster/engine"
	"github.com/joblife/joblife/examples/cluster/wire"
	"github.com/joblife/joblife/jobstate/jobid"
)

func TestTheArchiveHasMoreJobsThanOneBatch(t *testing.T) {
	ctx, open := begin(t)
	e := open("a")
	require.NoError(t, e.ReadArchive(ctx, func(wire.Archived) { t.Error("there is a job") }))
	require.NoError(t, e.Archive(ctx, nil))
	jobs := make([]wire.Archived, 2300)
	for i := range jobs {
		jobs[i].ID, jobs[i].UserID, jobs[i].Name = jobid.ID(i+1), uint32(i%3), fmt.Sprint("job ", i)
	}
	require.NoError(t, e.Archive(ctx, jobs))
	jobs[7].Name = "another"
	require.NoError(t, e.Archive(ctx, jobs[7:8]))
	require.NoError(t, e.Unarchive(ctx, 0, 1))
	require.NoError(t, e.Unarchive(ctx, 0, 1))
	got := make(map[jobid.ID]string)
	require.NoError(t, e.ReadArchive(ctx, func(j wire.Archived) { got[j.ID] = j.Name }))
	require.Len(t, got, 2299)
	require.Equal(t, "another", got[8])
	require.Equal(t, "job 2299", got[2300])
	_, err := e.Archived(ctx, 0, 1)
	require.ErrorIs(t, err, engine.ErrNotArchived)
	_, err = e.Archived(ctx, 0, 2) // of another user
	require.ErrorIs(t, err, engine.ErrNotArchived)
}

// Who writes to its log for ever does not stop the archive.
func TestALogThatIsTooLongIsCutInTheMiddle(t *testing.T) {
	ctx, open := begin(t)
	e := open("a")
	var log strings.Builder
	for i := range 12_000 {
		fmt.Fprintf(&log, "{\"timestamp\":%d,\"name\":\"memo\",\"context\":{\"a\":\"%s\"}}\n", 1_700_000_000+i, strings.Repeat("x", 1000))
	}
	j := wire.Archived{JobInfo: wire.JobInfo{ID: 1, UserID: 5, Inactive: 1_700_200_000, Eventlog: log.String()}}
	require.Greater(t, int64(log.Len()), e.MaxPayload())
	require.NoError(t, e.Archive(ctx, []wire.Archived{j}))
	got, err := e.Archived(ctx, 5, 1)
	require.NoError(t, err)
	cut, n := 0, 0
	for entry, err := range eventlog.Entries([]byte(got.Eventlog)) {
		require.NoError(t, err)
		if n++; entry.Name == "cut" {
			cut++
		}
	}
	require.Equal(t, 1, cut)
	require.Greater(t, n, 1000)
	require.True(t, strings.HasPrefix(log.String(), got.Eventlog[:1000]))
	require.True(t, strings.HasSuffix(log.String(), got.Eventlog[len(got.Eventlog)-1000:]))
}
