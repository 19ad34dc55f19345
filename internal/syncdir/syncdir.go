// Package syncdir makes the names in a directory durable: those of files that were created,
// renamed or removed there. To sync such a file does not promise that.
package syncdir

import (
	"errors"
	"os"
	"runtime"
)

// Sync makes the names in a directory durable, which it opens with open, such as os.Open. On
// Windows, where no directory can be synced, it does nothing.
func Sync(open func(string) (*os.File, error), dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
