package logfile

import (
	"bufio"
	"errors"
	"io"
	"io/fs"

	"github.com/joblife/joblife/eventlog"
)

// inspect reads the first size bytes of a file as a log. The error is a
// *[DamageError], or what the file system said.
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

// shortest is an entry such that none is shorter, without its newline. So lines
// made to be many cost no error each.
const shortest = `{"timestamp":1,"name":"x"}`

// countEntries returns how many lines of a damaged log are entries. What follows
// its last newline is not one.
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

// checkName returns an error if a name denotes anything but a regular file: opening a
// FIFO would wait. It leaves a missing file to the call that opens it.
func checkName(fsys FS, name string) error {
	if info, err := fsys.Stat(name); err == nil && !info.Mode().IsRegular() {
		return errNotRegular
	}
	return nil
}

// regular returns what a file is, or an error unless it is a regular one.
func regular(file File) (fs.FileInfo, error) {
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errNotRegular
	}
	return info, err
}

// sameName returns how it comes that a name does not denote a file any more, nil
// if it does, and then the file's size.
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
