//go:build darwin || freebsd || linux

package logfile_test

import (
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog/logfile"
)

// Opening a FIFO waits for its other end.
func TestAFIFOIsNoLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fifo")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	done := make(chan error, 3)
	go func() {
		_, err := logfile.OpenReader(path, logfile.ReaderOptions{})
		done <- err
		_, err = logfile.Open(path, logfile.Options{})
		done <- err
		_, err = logfile.Repair(path, logfile.RepairOptions{})
		done <- err
	}()
	for range 3 {
		select {
		case err := <-done:
			require.ErrorContains(t, err, "not a regular file")
		case <-time.After(10 * time.Second):
			t.Fatal("it waits")
		}
	}
}
