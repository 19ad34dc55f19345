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

// A process was killed after it had made the folder a: the next one keeps it too.
func TestMakeDirKeepsWhatAKilledProcessMade(t *testing.T) {
	d := disk.New()
	if err := d.Mkdir("a", 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range d.Record(t, "", func(dir, _ string, _ func(string)) error { return MakeDir(filepath.Join(dir, "a", "b")) }) {
		if err := d.Do(c); err != nil {
			t.Fatal(err)
		}
	}
	d.Crash() // which leaves what was synced alone
	if err := d.OpenDir("a/b"); err != nil {
		t.Fatal(err)
	}
}

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
