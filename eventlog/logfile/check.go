package logfile

import (
	"bufio"
	"errors"
	"io"
	"io/fs"

	"github.com/joblife/joblife/eventlog"
)

// inspect reads a file as a log. The error is a *[DamageError], or the file system's.
func inspect(name string, file io.ReaderAt, size int64) error {
	d := eventlog.NewDecoder(io.NewSectionReader(file, 0, size), eventlog.DecoderOptions{})
	for _, err := range d.All() {
		if err == nil {
			continue
		}
		if syntax := (*eventlog.SyntaxError)(nil); !errors.As(err, &syntax) {
			return errors.Unwrap(err) // of the reader
		}
		n, countErr := countEntries(io.NewSectionReader(file, d.Offset(), size-d.Offset()))
		if countErr != nil {
			return countErr
		}
		return &DamageError{Name: name, Offset: d.Offset(), Size: size, Entries: n, Err: err}
	}
	if d.Offset() != size {
		return errShrank // while it was read
	}
	return nil
}

// shortest is the shortest entry, without its newline: so many tiny lines cost no error each.
const shortest = `{"timestamp":1,"name":"x"}`

// countEntries returns how many lines of a damaged log are entries. What follows its last newline is not one.
func countEntries(r *io.SectionReader) (n int, err error) {
	lines := bufio.NewReaderSize(r, int(min(r.Size(), eventlog.DefaultMaxLine))+2)
	whole := true // the line at hand, as far as it was read
	for {
		line, err := lines.ReadSlice('\n')
		switch {
		case err == bufio.ErrBufferFull:
			whole = false
		case err == io.EOF:
			return n, nil
		case err != nil:
			return 0, err
		default:
			if whole && len(line) > len(shortest) {
				if _, err := eventlog.Parse(line); err == nil {
					n++
				}
			}
			whole = true
		}
	}
}

// openFile opens a file, unless the name denotes anything but a regular one: opening a FIFO would wait.
func openFile(fsys FS, name string, flag int) (File, error) {
	if info, err := fsys.Stat(name); err == nil && !info.Mode().IsRegular() {
		return nil, errNotRegular
	}
	return fsys.OpenFile(name, flag, 0o600)
}

// regular returns what a file is, or an error unless it is a regular one.
func regular(file File) (fs.FileInfo, error) {
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errNotRegular
	}
	return info, err
}

// lock locks a file and returns what it is then: what another writer acknowledged before is in its size.
func lock(fsys FS, file File) (fs.FileInfo, error) {
	if err := fsys.Lock(file); err != nil {
		return nil, err
	}
	return regular(file)
}

// sameName returns the size of a file if the name still denotes it, else why it does not.
func sameName(fsys FS, name string, was fs.FileInfo) (size int64, err error) {
	info, err := fsys.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 0, errRemoved
	case err != nil:
		return 0, err
	case !fsys.SameFile(was, info):
		return 0, errReplaced
	}
	return info.Size(), nil
}
