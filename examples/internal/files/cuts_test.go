package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/joblife/joblife/internal/disk"
)

// The power fails at any call to the system: a file has its old text or its new one.
func TestAttackByPowerCuts(t *testing.T) {
	read := func(dir string) (string, error) {
		text, err := os.ReadFile(filepath.Join(dir, "a", "b", "key"))
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return string(text), err
	}
	disk.Cuts{
		Soak: os.Getenv("JOBLIFE_SOAK"), Read: read,
		Work: func(dir string, seed uint64, say func(string)) error {
			if err := MakeDir(filepath.Join(dir, "a", "b")); err != nil {
				return err
			}
			text, err := read(dir)
			if err == nil {
				err = SyncDir(filepath.Join(dir, "a", "b")) // what a process left that was killed
			}
			say(text)
			for n := range 5 {
				text := fmt.Sprintf("text %d of a process that began with %d", n, seed)
				if err = errors.Join(err, Write(filepath.Join(dir, "a", "b", "key"), []byte(text))); err == nil {
					say(text)
				}
			}
			return err
		},
	}.Run(t)
}
