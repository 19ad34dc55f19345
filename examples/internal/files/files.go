// Package files makes files durable, and finds that of the program.
package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// Write makes a file of mode 0600, or replaces it: after a crash it has the old text or the new
// one.
func Write(name string, text []byte) error { return put(name, text, os.Rename) }

// Create is Write for a file that is not there. If it is, the error is fs.ErrExist.
func Create(name string, text []byte) error {
	err := put(name, text, func(from, to string) error {
		if err := os.Link(from, to); err != nil {
			return err
		}
		return os.Remove(from)
	})
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s: %w", name, fs.ErrExist)
	}
	return err
}

func put(name string, text []byte, place func(from, to string) error) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = place(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return SyncDir(filepath.Dir(name))
}

// MakeDir makes a folder of mode 0700, if it is not there, and those above it. When it returns
// their names are durable: otherwise a crash could take what is made durable in the folder. It
// refuses a folder that is there if that is not Private. MakeDir does not look at the folders
// above.
func MakeDir(dir string) error {
	dir = filepath.Clean(dir)
	parent := filepath.Dir(dir)
	err := os.Mkdir(dir, 0o700)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err = MakeDir(parent); err == nil {
			err = os.Mkdir(dir, 0o700)
		}
	case err == nil: // a process that was killed may have just made the one above
		if err = SyncDir(filepath.Dir(parent)); errors.Is(err, fs.ErrPermission) {
			err = nil // it was another user
		}
	}
	there := errors.Is(err, fs.ErrExist)
	if there {
		err = Private(dir)
	}
	if err == nil { // another process may have made it, and was killed
		if err = SyncDir(parent); there && errors.Is(err, fs.ErrPermission) {
			err = nil // it was another user
		}
	}
	return err
}

// SyncDir makes the names in a folder durable. On Windows, where no folder can be synced, it does
// nothing.
func SyncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Program returns the path by which the program that runs can be started again. On Linux that is the
// same program though its file was replaced or removed since; elsewhere it is what the file has now.
func Program() (string, error) {
	const self = "/proc/self/exe"
	if _, err := os.Stat(self); err == nil {
		return self, nil
	}
	return os.Executable()
}
