package dirstore

import (
	"strconv"

	"github.com/joblife/joblife/eventlog/logfile"
	"github.com/joblife/joblife/internal/guard"
)

// Freeing must not need space: a directory may need a block for the name of a job that is
// moved into it, before a byte is removed. The ballast are files that keep blocks and inodes.
// When the disk is full they are removed one by one, and written again after a purge.

const (
	ballastFiles = 4
	ballastSize  = 64 << 10 // of each
)

// ballastPrefix begins the names of the ballast; a number from 1 follows.
const ballastPrefix = "ballast-"

// ballastName returns the name of the n-th file, from 0.
func ballastName(n int) string { return ballastPrefix + strconv.Itoa(n+1) }

// fillBallast writes what is missing of the ballast, if there is room.
func (s *Store) fillBallast() {
	var data []byte
	for n, there := range s.ballast {
		if there {
			continue
		}
		if data == nil {
			data = guard.Noise(ballastSize)
		}
		if writeNew(s.fs, ballastName(n), data) != nil {
			return
		}
		s.ballast[n] = true
	}
}

// withRoom does what needs space. On a full disk it tries again after it has emptied the
// trash, and after each file of the ballast that it removes.
func (s *Store) withRoom(do func() error) error {
	err := do()
	if err == nil || !logfile.IsFull(err) {
		return err
	}
	// A job that was just moved into the trash must be gone for good before its files
	// go: a crash would bring it back without them.
	if len(s.left) > 0 && s.fs.SyncDir(".") == nil {
		s.clean()
		err = do()
	}
	for n := range s.ballast {
		if err == nil || !logfile.IsFull(err) {
			break
		}
		if s.ballast[n] && remove(s.fs, ballastName(n)) == nil {
			s.ballast[n] = false
			err = do()
		}
	}
	return err
}
