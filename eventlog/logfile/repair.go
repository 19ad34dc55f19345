package logfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// RepairOptions say how a log is repaired. The zero value is the default.
type RepairOptions struct {
	// FS is the file system; nil is that of the operating system.
	FS FS
	// Cut makes Repair set aside entries too: those that follow the first line
	// that is none. By default such a log is an error, because entries that
	// were acknowledged may be among them.
	Cut bool
}

// Repaired tells what Repair did.
type Repaired struct {
	// Side is the name of the file with the bytes that were cut off, "" if the
	// log was not damaged.
	Side string
	// Offset is how many bytes the log has now.
	Offset int64
	// Size is how many bytes were cut off.
	Size int64
	// Entries is how many entries are among them; 0 unless RepairOptions.Cut.
	Entries int
}

// maxSides is how many side files a log may have. A log that was torn so often
// has another problem.
const maxSides = 1000

// Repair makes a damaged log end after the last entry before the damage, and
// keeps what followed in a side file, the log's name with ".torn-1" after it or
// the next number that is free. It does nothing to a log that is not damaged,
// so that it can be called before each Open. No one may have the log open
// for appending.
//
// The side file and its name are durable before the log is cut, and the cut is
// before Repair returns. So a crash in between loses nothing; it may leave a
// side file with bytes that are still in the log.
//
// The error is a *[DamageError] if entries follow the damage and Cut is not set,
// else an *[Error]. Unless it came from the last fsync, the log is unchanged.
func Repair(name string, o RepairOptions) (Repaired, error) {
	fsys := orOS(o.FS)
	file, err := fsys.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return Repaired{}, newError("repair", name, 0, nil, err)
	}
	done, err := repair(fsys, file, name, o.Cut)
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	var damage *DamageError
	switch {
	case errors.As(err, &damage):
		return Repaired{}, damage
	case err != nil:
		return Repaired{}, newError("repair", name, done.Offset, nil, err)
	}
	return done, nil
}

// repair is Repair of an open file.
func repair(fsys FS, file File, name string, entriesToo bool) (Repaired, error) {
	info, err := regular(file)
	if err != nil {
		return Repaired{}, err
	}
	err = inspect(name, file, info.Size())
	if err == nil {
		return Repaired{Offset: info.Size()}, nil
	}
	damage, ok := err.(*DamageError)
	if !ok || damage.Entries > 0 && !entriesToo {
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
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = fsys.SyncDir(filepath.Dir(name))
	}
	if err != nil {
		_ = fsys.Remove(side) // its bytes are still in the log
		return "", err
	}
	return side, nil
}
