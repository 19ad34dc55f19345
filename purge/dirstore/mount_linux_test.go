package dirstore_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog/logfile"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/purge/dirstore"
)

// mount mounts a small file system, and skips the test where that is not allowed.
func mount(t *testing.T, args ...string) (dir string) {
	dir = t.TempDir()
	if text, err := exec.Command("mount", append(args, dir)...).CombinedOutput(); err != nil {
		t.Skipf("mount: %v: %s", err, text)
	}
	t.Cleanup(func() { _ = exec.Command("umount", dir).Run() })
	return dir
}

// smallDisks are file systems with little room.
func smallDisks() map[string]func(t *testing.T) (dir string) {
	return map[string]func(t *testing.T) string{
		"tmpfs, bytes": func(t *testing.T) string {
			return mount(t, "-t", "tmpfs", "-o", "size=2m", "tmpfs")
		},
		"tmpfs, inodes": func(t *testing.T) string {
			return mount(t, "-t", "tmpfs", "-o", "size=64m,nr_inodes=600", "tmpfs")
		},
		"ext4, bytes":  func(t *testing.T) string { return ext4(t, "4M", "-N", "4096") },
		"ext4, inodes": func(t *testing.T) string { return ext4(t, "16M", "-N", "512") },
	}
}

// ext4 makes a file system in a file and mounts it.
func ext4(t *testing.T, size string, args ...string) string {
	if !deep {
		t.Skip("it waits for a disk: set JOBLIFE_DEEP=1")
	}
	image := filepath.Join(t.TempDir(), "image")
	require.NoError(t, os.WriteFile(image, nil, 0o600))
	args = append([]string{"-q", "-F", "-m", "0"}, args...)
	if text, err := exec.Command("mkfs.ext4", append(args, image, size)...).CombinedOutput(); err != nil {
		t.Skipf("mkfs.ext4: %v: %s", err, text)
	}
	return mount(t, "-o", "loop", image)
}

func TestARealDiskThatIsFullIsOpenedAndPurged(t *testing.T) {
	for name, disk := range smallDisks() {
		t.Run(name, func(t *testing.T) {
			dir := disk(t)
			store := filepath.Join(dir, "store")
			s, err := dirstore.Create(store)
			require.NoError(t, err)
			const last = jobid.ID(25)
			for _, id := range jobids(1, int(last)) {
				require.NoError(t, s.Add(job(id)))
			}
			// Others take the rest, to the last byte and inode.
			for n, size := 0, 1<<16; size > 0; n++ {
				err := os.WriteFile(filepath.Join(dir, fmt.Sprint(n)), make([]byte, size), 0o600)
				if err != nil {
					require.True(t, logfile.IsFull(err), err)
					size /= 16
				}
			}
			err = s.Add(job(last + 1))
			require.True(t, logfile.IsFull(err), err)
			require.NoError(t, s.Close())

			s, err = dirstore.Open(store)
			require.NoError(t, err)
			purged := jobid.ID(0)
			for ; purged < 20; purged += 5 {
				require.NoError(t, unlink(s, jobids(purged+1, 5)))
			}
			require.NoError(t, s.Add(job(last+100)), "there is room again")
			require.NoError(t, s.Close())
			s, err = dirstore.Open(store)
			require.NoError(t, err)
			got, errs := list(s)
			require.Empty(t, errs)
			require.Len(t, got, int(last-purged)+1)
			require.NoError(t, s.Close())
		})
	}
}
