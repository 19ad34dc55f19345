package logfile_test

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/joblife/joblife/eventlog/logfile"
	"github.com/joblife/joblife/internal/disk"
)

// The power fails at any call to the system: each batch that was acknowledged is there. Of
// the last one there may be a part, and zeros for the rest, which Repair cuts off.
func TestAttackByPowerCuts(t *testing.T) {
	disk.Cuts{
		Soak: os.Getenv("JOBLIFE_SOAK"),
		Work: func(dir string, seed uint64, say func(string)) error {
			log, err := openReal(dir)
			if err != nil {
				return err
			}
			random := rand.New(rand.NewPCG(seed, 1))
			for range 10 {
				text, err := os.ReadFile(filepath.Join(dir, name))
				if err != nil {
					return err
				}
				say(string(text))
				if err := log.Append([]byte(line(strings.Count(string(text), "\n") + random.IntN(1000)))); err != nil {
					return err
				}
			}
			text, err := os.ReadFile(filepath.Join(dir, name))
			say(string(text))
			return errors.Join(err, log.Close())
		},
		Read: func(dir string) (string, error) {
			log, err := openReal(dir)
			if err != nil {
				return "", err
			}
			text, err := os.ReadFile(filepath.Join(dir, name))
			return string(text), errors.Join(err, log.Close())
		},
	}.Run(t)
}

// openReal repairs and opens the log in a folder, or creates it.
func openReal(dir string) (*logfile.Log, error) {
	path := filepath.Join(dir, name)
	_, err := logfile.Repair(path, logfile.RepairOptions{})
	if errors.Is(err, logfile.ErrDamaged) { // the line has its newline, and zeros
		_, err = logfile.Repair(path, logfile.RepairOptions{Cut: true})
	}
	if errors.Is(err, fs.ErrNotExist) {
		return logfile.Create(path, logfile.Options{})
	}
	if err != nil {
		return nil, err
	}
	return logfile.Open(path, logfile.Options{})
}
