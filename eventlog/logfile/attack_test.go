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
	has := func(l realLog) (string, error) {
		text, err := os.ReadFile(l.path)
		return string(text), err
	}
	cuts := disk.CutsOf(10, openReal, has, func(l realLog, text string, random *rand.Rand) error {
		return l.Append([]byte(line(strings.Count(text, "\n") + random.IntN(1000))))
	})
	cuts.Soak = os.Getenv("JOBLIFE_SOAK")
	cuts.Run(t)
}

type realLog struct {
	*logfile.Log
	path string
}

// openReal repairs and opens the log in a folder, or creates it.
func openReal(dir string) (l realLog, err error) {
	l.path = filepath.Join(dir, name)
	_, err = logfile.Repair(l.path, logfile.RepairOptions{})
	if errors.Is(err, logfile.ErrDamaged) { // the line has its newline, and zeros
		_, err = logfile.Repair(l.path, logfile.RepairOptions{Cut: true})
	}
	if errors.Is(err, fs.ErrNotExist) {
		l.Log, err = logfile.Create(l.path, logfile.Options{})
	} else if err == nil {
		l.Log, err = logfile.Open(l.path, logfile.Options{})
	}
	return l, err
}
