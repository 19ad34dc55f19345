package dirstore

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/joblife/joblife/eventlog/logfile"
	"github.com/joblife/joblife/internal/syncdir"
)

// folder is what this package needs of a file system: one directory and what is below it.
// Names are relative to the directory, which is "." itself. The methods do what those of
// [os.Root] do. A file that is opened without os.O_APPEND is written from its start.
type folder interface {
	logfile.FS
	Lstat(name string) (fs.FileInfo, error)
	// ReadDir returns what a directory has, in any order.
	ReadDir(name string) ([]fs.DirEntry, error)
	Mkdir(name string, perm fs.FileMode) error
	// Rename is os.Root.Rename. No crash leaves both names, or none.
	Rename(oldName, newName string) error
	Chmod(name string, mode fs.FileMode) error
	// Sub is os.Root.OpenRoot: the folder of that name, which is not a link. It is
	// closed before the one that it came from.
	Sub(dir string) (folder, error)
	Close() error
}

// osFS is a directory of the operating system's file system. Being an os.Root,
// it follows no symbolic link that leads out of the directory.
type osFS struct{ *os.Root }

func openFolder(dir string) (folder, error) { return subFolder(os.OpenRoot(dir)) }

// subFolder returns no folder, rather than one without a root, with an error.
func subFolder(root *os.Root, err error) (folder, error) {
	if err != nil {
		return nil, err
	}
	return osFS{root}, nil
}

func (o osFS) OpenFile(name string, flag int, perm fs.FileMode) (logfile.File, error) {
	f, err := o.Root.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err // not a nil *os.File in a File that is not nil
	}
	return f, nil
}

func (osFS) SameFile(a, b fs.FileInfo) bool { return os.SameFile(a, b) }

func (o osFS) Sub(dir string) (folder, error) { return subFolder(o.OpenRoot(dir)) }

func (osFS) Lock(f logfile.File) error { return logfile.Lock(f) }

func (o osFS) SyncDir(dir string) error { return syncdir.Sync(o.Open, dir) }

func (o osFS) ReadDir(name string) ([]fs.DirEntry, error) {
	d, err := o.Open(name)
	if err != nil {
		return nil, err
	}
	list, err := d.ReadDir(-1)
	if err := errors.Join(err, d.Close()); err != nil {
		return nil, err
	}
	return list, nil
}

// readFile returns what a regular file holds, at most limit bytes of it.
func readFile(fsys folder, name string, limit int64) (data []byte, err error) {
	info, err := fsys.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errNotRegular
	}
	if info.Size() > limit {
		return nil, errTooLarge(info.Size(), limit)
	}
	f, err := fsys.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	data = make([]byte, info.Size())
	// What others append meanwhile is not looked at; what is cut off is an error.
	if n, err := f.ReadAt(data, 0); n < len(data) {
		return nil, cmp.Or(err, errCount)
	}
	return data, nil
}

// writeNew writes a file that does not exist and makes its content durable, not its name.
func writeNew(fsys folder, name string, data []byte) error {
	f, err := fsys.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return err
	}
	if err = finish(f, data, true); err != nil {
		_ = fsys.Remove(name) // it is our own
	}
	return err
}

// finish writes to an open file, makes that durable if it must be, and closes the file.
func finish(f logfile.File, data []byte, durable bool) error {
	n, err := f.Write(data)
	if err == nil && n != len(data) {
		err = errCount
	}
	if err == nil && durable {
		err = f.Sync()
	}
	return cmp.Or(err, f.Close())
}

// replace writes a file, durably: whatever happens, its name denotes what it did before, or
// all of data. The file keeps its permissions.
func replace(fsys folder, dir, name string, data []byte) error {
	temp := filepath.Join(dir, name+tempSuffix)
	mode := fileMode
	switch info, err := fsys.Lstat(filepath.Join(dir, name)); {
	case err == nil && info.Mode().IsRegular():
		mode = info.Mode().Perm()
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := remove(fsys, temp); err != nil {
		return err
	}
	err := writeNew(fsys, temp, data)
	if err != nil {
		return err
	}
	if mode != fileMode {
		err = fsys.Chmod(temp, mode)
	}
	if err == nil {
		err = fsys.Rename(temp, filepath.Join(dir, name))
	}
	if err != nil {
		_ = fsys.Remove(temp)
		return err
	}
	return fsys.SyncDir(dir)
}

// remove is fsys.Remove, but a file that is not there is no error.
func remove(fsys folder, name string) error {
	if err := fsys.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
