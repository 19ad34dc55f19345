package boltstore_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog/logfile"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/purge"
	"github.com/joblife/joblife/purge/boltstore"
)

// mounted returns the folder of a disk with so much room.
func mounted(t *testing.T, size string) (dir string) {
	dir = t.TempDir()
	if text, err := exec.Command("mount", "-t", "tmpfs", "-o", "size="+size, "tmpfs", dir).CombinedOutput(); err != nil {
		t.Skipf("mount: %v: %s", err, text)
	}
	t.Cleanup(func() { _ = exec.Command("umount", dir).Run() })
	return dir
}

// What a full disk leaves of a new file is not taken for one that is damaged.
func TestANewFileOnAFullDisk(t *testing.T) {
	for _, size := range []string{"4k", "12k", "20k"} {
		dir := mounted(t, size)
		_, err := boltstore.Open(filepath.Join(dir, "jobs.db"))
		require.True(t, logfile.IsFull(err), "%s: %v", size, err)
		require.NoError(t, exec.Command("mount", "-o", "remount,size=4m", dir).Run())
		s, err := boltstore.Open(filepath.Join(dir, "jobs.db"))
		require.NoError(t, err, size)
		require.NoError(t, s.Close())
	}
}

func TestAFullDiskIsOpenedAndPurged(t *testing.T) {
	dir := mounted(t, "4m")
	path := filepath.Join(dir, "jobs.db")
	s, err := boltstore.Open(path)
	require.NoError(t, err)
	last := jobid.ID(0)
	for err == nil {
		last++
		err = s.Append(job(last, clean(t), make([]byte, 1024), nil))
	}
	require.True(t, logfile.IsFull(err), err)
	require.Greater(t, last, jobid.ID(500))
	require.NoError(t, s.Close())
	for n, size := 0, 1<<16; size > 0; n++ { // others take the rest
		if os.WriteFile(filepath.Join(dir, fmt.Sprint(n)), make([]byte, size), 0o600) != nil {
			size /= 16
		}
	}

	s, err = boltstore.Open(path)
	require.NoError(t, err)
	for first := jobid.ID(1); first < 400; first += 100 {
		ids, tombs := make([]jobid.ID, 100), make([]jobstate.Summary, 100)
		for i := range ids {
			ids[i] = first + jobid.ID(i)
			tombs[i] = jobstate.Summary{ID: ids[i], Inactive: 1}
		}
		require.NoError(t, s.Prepare(t.Context(), purge.Plan{Watermark: last + first, Tombstones: tombs}))
		_, err := s.Unlink(t.Context(), ids)
		require.NoError(t, err)
	}
	require.NoError(t, s.Append(job(last+1000, clean(t), make([]byte, 1024), nil)))
	ev, _, err := s.Snapshot()
	require.NoError(t, err)
	require.Equal(t, int(last)-400, len(ev.Jobs)+len(ev.Active))
	require.NoError(t, s.Close())
}
