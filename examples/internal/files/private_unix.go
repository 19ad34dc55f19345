//go:build unix

package files

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// private says why others than this user may write a folder.
func private(dir string) error {
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
