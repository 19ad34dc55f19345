package lines

import (
	"errors"
	"time"

	"github.com/joblife/joblife/eventlog/logfile"
)

// openWait is how long Open waits.
const openWait = time.Second

// Open opens a store, and waits a second while it is in use: a process that was killed may not
// be gone yet, and the child that it was about to start has the lock until it runs its program.
func Open[T any](open func() (T, error)) (T, error) {
	for until := time.Now().Add(openWait); ; time.Sleep(openWait / 50) {
		store, err := open()
		if !errors.Is(err, logfile.ErrLocked) || time.Now().After(until) {
			return store, err
		}
	}
}
