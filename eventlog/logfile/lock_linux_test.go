package logfile_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog/logfile"
)

// Files of two file systems may have one number. An operator may end the process that is named.
func TestTheHolderOfALockIsNoOther(t *testing.T) {
	var paths []string
	for range 2 {
		dir := t.TempDir()
		if text, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=256m", "tmpfs", dir).CombinedOutput(); err != nil {
			t.Skipf("mount: %v: %s", err, text)
		}
		t.Cleanup(func() { _ = exec.Command("umount", dir).Run() })
		paths = append(paths, filepath.Join(dir, "eventlog"))
		l, err := logfile.Create(paths[len(paths)-1], logfile.Options{})
		require.NoError(t, err)
		require.NoError(t, l.Close())
	}
	kill(t, paths[0], 50, time.Millisecond, func(int) {
		l, err := logfile.Open(paths[1], logfile.Options{})
		require.NoError(t, err)
		_, err = logfile.Open(paths[1], logfile.Options{})
		require.ErrorIs(t, err, logfile.ErrLocked)
		if _, pid, named := strings.Cut(err.Error(), "by process "); named {
			require.Equal(t, strconv.Itoa(os.Getpid()), pid)
		}
		require.NoError(t, l.Close())
	})
}
