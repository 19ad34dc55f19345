package logfile

import (
	"io"
	"io/fs"
	"os"

	"github.com/joblife/joblife/internal/syncdir"
)

// FS is what this package needs of a file system. A test can pass one that fails or loses
// data.
type FS interface {
	// OpenFile is os.OpenFile.
	OpenFile(name string, flag int, perm fs.FileMode) (File, error)
	// Stat is os.Stat.
	Stat(name string) (fs.FileInfo, error)
	// SameFile is os.SameFile, of what Stat returned here and in File.
	SameFile(a, b fs.FileInfo) bool
	// SyncDir makes the names in a directory durable, on systems where that is possible.
	SyncDir(dir string) error
	// Lock locks an open file until it is closed, against every other open file in
	// this process and others. It does not wait: the error is ErrLocked. The end
	// of a process, in any way, releases its locks.
	Lock(f File) error
	// Remove is os.Remove, of a file that was just created and could not be filled.
	Remove(name string) error
}

// File is what this package needs of an open file. An *[os.File] is one. None of
// its methods retains the bytes it is given.
type File interface {
	io.ReaderAt
	// Writer writes to the end of the file, which was opened with os.O_APPEND.
	io.Writer
	io.Closer
	// Stat describes the open file, even if its name now denotes another file.
	Stat() (fs.FileInfo, error)
	// Sync returns when all that was written is on stable storage.
	Sync() error
	// Truncate changes the size.
	Truncate(size int64) error
}

type osFS struct{}

func (osFS) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	f, err := os.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err // not a nil *os.File in a File that is not nil
	}
	return f, nil
}

func (osFS) Stat(name string) (fs.FileInfo, error) { return os.Stat(name) }

func (osFS) SameFile(a, b fs.FileInfo) bool { return os.SameFile(a, b) }

func (osFS) SyncDir(dir string) error { return syncdir.Sync(os.Open, dir) }

func (osFS) Remove(name string) error { return os.Remove(name) }

func (osFS) Lock(f File) error { return Lock(f) }

func orOS(fsys FS) FS {
	if fsys == nil {
		return osFS{}
	}
	return fsys
}
