//go:build unix

package files

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// Private refuses a folder if another user owns it or its link, or may write it: what is in it
// may not be ours. It fails with fs.ErrNotExist if there is none.
func Private(dir string) error {
	link, err := os.Lstat(dir)
	info, statErr := os.Stat(dir)
	if err = cmp.Or(err, statErr); err != nil {
		return err
	}
	for _, info := range []fs.FileInfo{link, info} {
		if uid := info.Sys().(*syscall.Stat_t).Uid; int(uid) != os.Geteuid() {
			return fmt.Errorf("%s belongs to user %d: choose another folder, or chown it if you trust what it has", dir, uid)
		}
	}
	if mode := info.Mode().Perm(); mode&0o022 != 0 {
		return fmt.Errorf("others may write %s, of mode %#o: choose another folder, or chmod go-w it if you trust what it has", dir, mode)
	}
	return nil
}
