package logfile

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/joblife/joblife/eventlog"
)

// RepairOptions say how a log is repaired. The zero value is the default.
type RepairOptions struct {
	// FS is the file system; nil means the operating system's.
	FS FS
	// Cut makes Repair cut off everything from the first invalid line on. By default
	// an invalid line is an error, unless it is the last one and has no newline:
	// only such a line is surely the result of a crash.
	Cut bool
}

// Repaired says what Repair did.
type Repaired struct {
	Side    string // the file with the bytes that were cut off, "" if the log was not damaged
	Offset  int64  // how many bytes the log has now
	Size    int64  // how many were cut off
	Entries int    // how many entries are among them; 0 unless RepairOptions.Cut is set
}

// maxSides is how many side files a log may have: one torn so often has another problem.
const maxSides = 1000

// Repair makes a torn log end after its last entry, and keeps what followed in a side
// file, whose name is the log's name and ".torn-1", or the next number that is free. It
// does nothing to a complete log, so it can be called before each Open.
//
// The side file and its name are durable before the log is cut, and the cut before
// Repair returns. A crash in between loses nothing, but can leave a side file with
// bytes that are still in the log.
//
// The error is a *[DamageError] if the log is damaged otherwise and Cut is not set, or
// [ErrLocked]. Unless it came from the last fsync, the log is unchanged.
func Repair(name string, o RepairOptions) (Repaired, error) {
	fsys := orOS(o.FS)
	file, err := openFile(fsys, name, os.O_RDWR)
	if err != nil {
		return Repaired{}, newError("repair", name, 0, nil, err)
	}
	done, err := repair(fsys, file, name, o.Cut)
	err = cmp.Or(err, file.Close())
	var damage *DamageError
	switch {
	case errors.As(err, &damage):
		return Repaired{}, damage
	case err != nil:
		return Repaired{}, newError("repair", name, done.Offset, nil, err)
	}
	return done, nil
}

func repair(fsys FS, file File, name string, cut bool) (Repaired, error) {
	info, err := lock(fsys, file)
	if err != nil {
		return Repaired{}, err
	}
	err = inspect(name, file, info.Size())
	if err == nil {
		return Repaired{Offset: info.Size()}, nil
	}
	damage, ok := err.(*DamageError)
	if !ok || !cut && !errors.Is(damage.Err, eventlog.ErrTorn) {
		return Repaired{}, err
	}
	done := Repaired{Offset: damage.Offset, Size: damage.Size - damage.Offset, Entries: damage.Entries}
	tail := io.NewSectionReader(file, done.Offset, done.Size)
	if done.Side, err = setAside(fsys, tail, name, info.Mode().Perm()); err != nil {
		return done, err
	}
	if err := file.Truncate(done.Offset); err != nil {
		return done, err
	}
	return done, file.Sync()
}

// setAside copies the end of a log to a new side file and makes it durable.
func setAside(fsys FS, tail *io.SectionReader, name string, mode fs.FileMode) (side string, err error) {
	var file File
	for n := 1; file == nil; n++ {
		if n > maxSides {
			return "", errSides
		}
		side = fmt.Sprintf("%s.torn-%d", name, n)
		// Never one that exists: it holds what was set aside before.
		file, err = fsys.OpenFile(side, os.O_WRONLY|os.O_APPEND|os.O_CREATE|os.O_EXCL, mode)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return "", err
		}
	}
	n, err := io.Copy(file, tail)
	if err == nil && n != tail.Size() {
		err = errShrank
	}
	if err == nil {
		err = file.Sync()
	}
	if err = cmp.Or(err, file.Close()); err == nil {
		err = fsys.SyncDir(filepath.Dir(name))
	}
	if err != nil {
		_ = fsys.Remove(side) // its bytes are still in the log
		return "", err
	}
	return side, nil
}
