package node

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/joblife/joblife/examples/internal/files"
)

// lock takes the folder of a node for this process, until it closes the file or ends. A second
// one would not know the tasks that the first starts, and the manager would take them for lost.
// It returns the id of the folder.
func lock(dir string) (f *os.File, id string, err error) {
	if err := files.MakeDir(dir); err != nil {
		return nil, "", err
	}
	if f, err = os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return nil, "", err
	}
	if err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		err = fmt.Errorf("node: another process has %s: %w", dir, err)
	}
	text, readErr := io.ReadAll(f)
	if err = cmp.Or(err, readErr); err == nil && len(text) == 0 {
		text = []byte(rand.Text())
		_, err = f.Write(text)
		err = cmp.Or(err, f.Sync())
	}
	if err != nil {
		_ = f.Close()
		return nil, "", err
	}
	return f, string(text), nil
}
