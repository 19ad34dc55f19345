package dirstore

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strconv"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/purge"
)

// A Repaired says what Repair did.
type Repaired struct {
	// Watermark is the watermark after the repair.
	Watermark jobid.ID
	// Side is the name of the file with a copy of the damaged log of tombstones;
	// "" if the log was not damaged. Lost is the number of its lines that could
	// not be read.
	Side string
	Lost int
}

// Repair repairs a store that Open refuses as damaged. It never lowers the watermark:
// the new one is the greatest of the old one, atLeast, and every id of which the store
// has a trace. If neither copy of the watermark can be read, atLeast must not be less
// than any id that was handed out: take one that a generator makes now. Repair keeps the
// tombstones whose lines can be read, and does not read jobs.
//
// Repair leaves a store that is not damaged as it is. The error is [ErrDamaged] if the
// watermark cannot be read and atLeast is 0; then nothing was changed. Other errors
// come from Open and from the file system.
func Repair(dir string, atLeast jobid.ID, o Options) (Repaired, error) {
	s, err := start(dir, o)
	if err != nil {
		return Repaired{}, fail("repair", dir, err)
	}
	done, err := s.repair(atLeast)
	if err := errors.Join(err, s.end()); err != nil {
		return Repaired{}, fail("repair", dir, err)
	}
	return done, nil
}

func (s *Store) repair(atLeast jobid.ID) (done Repaired, err error) {
	if s.gone(trashName) && s.gone(markName(0)) && s.gone(markName(1)) {
		return done, fmt.Errorf("%w: it has neither a watermark nor a trash", ErrNotStore)
	}
	if err := s.lockDir(true); err != nil {
		return done, err
	}
	_, err = s.readMark()
	switch {
	case err == nil:
	case !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrLimit) && !errors.Is(err, fs.ErrNotExist):
		return done, err
	case atLeast == 0:
		return done, fmt.Errorf("%w: the watermark cannot be read, and no id was given", ErrDamaged)
	}
	s.high = max(s.high, atLeast)
	if err := s.look(); err != nil {
		return done, err
	}
	if done.Side, done.Lost, err = s.repairTombs(); err != nil {
		return done, fmt.Errorf("%s: %w", tombsName, cause(err))
	}
	err = s.keepHigh() // both copies
	done.Watermark = s.mark
	return done, err
}

// repairTombs writes the log of tombstones anew if a line cannot be read. The
// damaged one is kept as a side file before.
func (s *Store) repairTombs() (side string, lost int, err error) {
	data, err := readFile(s.fs, tombsName, math.MaxInt)
	if errors.Is(err, fs.ErrNotExist) {
		return "", 0, nil
	}
	if err != nil {
		return "", 0, err
	}
	s.tombs.live = make(map[jobid.ID]purge.Record)
	for line := range bytes.Lines(data) {
		e, err := eventlog.Parse(line)
		if err == nil && bytes.HasSuffix(line, []byte("\n")) {
			var rec record
			if rec, err = parseRecord(e); err == nil {
				s.apply(rec, e.Timestamp)
				continue
			}
		}
		lost++
	}
	if lost == 0 {
		return "", 0, nil
	}
	for n := 1; ; n++ {
		side = tombsName + sideSuffix + strconv.Itoa(n)
		if err = writeNew(s.fs, side, data); !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	if err == nil {
		err = s.fs.SyncDir(".")
	}
	if err == nil {
		err = s.rewrite()
	}
	return side, lost, err
}
