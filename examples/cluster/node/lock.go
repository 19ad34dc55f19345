package node

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// lock takes the folder of a node for this process, until it closes the file or ends. A second
// one would not know the tasks that the first starts, and the manager would take them for lost.
func lock(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("node: another process has %s: %w", dir, err)
	}
	return f, nil
}
