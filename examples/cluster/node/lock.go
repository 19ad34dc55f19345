package node

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/joblife/joblife/examples/internal/files"
)

// A folder is that of a node, which this process has until it closes the file or ends. A second
// one would not know the tasks that the first starts, and the manager would take them for lost.
type folder struct {
	*os.File        // "lock": a line with the id, and one with the epoch
	id       string // another folder has another
	epoch    uint64 // the last of which begin is told
}

func lock(dir string) (l *folder, err error) {
	if err := files.MakeDir(dir); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		err = fmt.Errorf("node: another process has %s: end it first (%w)", dir, err)
	}
	text, readErr := io.ReadAll(f)
	id, rest, _ := bytes.Cut(text, []byte{'\n'})
	l = &folder{File: f, id: cmp.Or(string(id), rand.Text())}
	if rest = bytes.TrimSpace(rest); err == nil && readErr == nil && len(rest) > 0 {
		if l.epoch, err = strconv.ParseUint(string(rest), 10, 64); err != nil {
			err = fmt.Errorf("node: the epoch in %s is damaged; if no earlier manager is paused, remove the file: %w", f.Name(), err)
		}
	}
	if err = cmp.Or(err, readErr); err == nil && len(rest) == 0 {
		err = l.begin(0)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return l, nil
}

// begin notes an epoch, durably. It writes in place, which takes no room on a full disk.
func (l *folder) begin(epoch uint64) error {
	l.epoch = epoch
	_, err := l.WriteAt(fmt.Appendf(nil, "%s\n%020d\n", l.id, epoch), 0)
	return cmp.Or(err, l.Sync())
}
