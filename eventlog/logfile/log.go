package logfile

import (
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/internal/guard"
)

const defaultMaxBatch = 64 << 20

// Options say how a log is kept. The zero value is the default.
type Options struct {
	// FS is the file system; nil means the operating system's.
	FS FS
	// MaxBatch is the maximum number of bytes in a batch. 0 or less means 64 MiB.
	MaxBatch int
}

// A Log is a log that is open for appending. The zero Log behaves as a closed one.
type Log struct {
	_        guard.NoCopy
	fs       FS
	file     File // nil if closed
	name     string
	info     fs.FileInfo // of the file, when it was opened
	maxBatch int
	size     int64 // of what is durable
	failed   bool
}

// Open locks a log that exists and opens it for appending; an empty file is a log. It reads
// the whole log, and makes it durable: a process that was killed may have left it in the
// operating system's memory. The error is a *[DamageError] if the log is damaged: call
// [Repair] first. It is [ErrLocked] if the log is in use, fs.ErrNotExist if there is none.
func Open(name string, o Options) (*Log, error) {
	return open("open", name, o, os.O_RDWR|os.O_APPEND)
}

// Create creates an empty log, which only its owner can read, opens it and makes its name
// durable. The directory must exist. The error is fs.ErrExist if there is a file of that
// name. After any other error there may be an empty log, which Open accepts.
func Create(name string, o Options) (*Log, error) {
	return open("create", name, o, os.O_RDWR|os.O_APPEND|os.O_CREATE|os.O_EXCL)
}

func open(op, name string, o Options, flag int) (*Log, error) {
	l := &Log{fs: orOS(o.FS), name: name, maxBatch: cmp.Or(max(o.MaxBatch, 0), defaultMaxBatch)}
	var err error
	if l.file, err = openFile(l.fs, name, flag); err != nil {
		return nil, newError(op, name, 0, nil, err)
	}
	if err := l.start(flag&os.O_CREATE != 0); err != nil {
		_ = l.file.Close() // nothing was written
		if damage, ok := err.(*DamageError); ok {
			return nil, damage
		}
		return nil, newError(op, name, l.size, nil, err)
	}
	return l, nil
}

// start finds out what the file holds, and makes it durable.
func (l *Log) start(created bool) error {
	info, err := lock(l.fs, l.file)
	if err != nil {
		return err
	}
	if created && info.Size() > 0 {
		return fs.ErrExist // another process opened it before it was locked
	}
	if err := inspect(l.name, l.file, info.Size()); err != nil {
		return err
	}
	l.info, l.size = info, info.Size()
	if !created {
		// Of an empty file too: a writer before may have cut off what the disk
		// still has, and the next batch is not to be mixed with it.
		if err := l.file.Sync(); err != nil {
			return err
		}
	}
	return l.fs.SyncDir(filepath.Dir(l.name))
}

// Size returns how many bytes the log has. All of them survive a crash of the machine.
func (l *Log) Size() int64 { return l.size }

// Append appends a batch, lines as [eventlog.AppendEntry] makes them, with one write and
// one fsync. An empty batch does nothing. When Append returns nil the batch is durable.
//
// The error is ErrBatch if the batch is invalid. If the write fails, Append cuts off what it
// wrote: the log is as before and accepts further batches, for example when the disk has
// space again. If that is not possible, the error is ErrFailed.
//
// If fsync fails, the batch may or may not be on the disk, and the operating system may
// report the next fsync as a success. So Append cuts the batch off, and the error is
// ErrFailed. If cutting off fails too, the error says so: then do not trust bytes beyond
// Size until the machine has restarted.
//
// After fsync, Append looks at the file. The error is ErrFailed and ErrChanged if the log's
// name denotes another file or no file, or if another process changed the size; it is
// ErrFailed if Append cannot look. It cuts nothing off then.
//
// Append does not retain batch. It allocates nothing for its entries if the names of the
// events are in RFC 21.
func (l *Log) Append(batch []byte) error {
	switch {
	case l.file == nil:
		return newError("append", l.name, l.size, nil, fs.ErrClosed)
	case l.failed:
		return newError("append", l.name, l.size, ErrFailed, ErrFailed)
	}
	if err := l.checkBatch(batch); err != nil {
		return newError("append", l.name, l.size, ErrBatch, err)
	}
	if len(batch) == 0 {
		return nil
	}
	end := l.size + int64(len(batch))
	n, err := l.file.Write(batch)
	if n != len(batch) || err != nil {
		return l.takeBack(n, len(batch), err)
	}
	if err := l.file.Sync(); err != nil {
		return l.fail(end, err)
	}
	size, err := sameName(l.fs, l.name, l.info)
	switch {
	case err != nil:
	case size < end:
		err = errShrank
	case size > end:
		err = errGrew
	default:
		l.size = end
		return nil
	}
	l.failed = true
	return newError("append", l.name, l.size, ErrFailed, err)
}

func (l *Log) checkBatch(batch []byte) error {
	if len(batch) > l.maxBatch {
		return fmt.Errorf("%d bytes, the limit is %d", len(batch), l.maxBatch)
	}
	for _, err := range eventlog.Entries(batch) {
		if err != nil {
			return err
		}
	}
	return nil
}

// takeBack undoes a write that put n bytes into the file, as the system says.
func (l *Log) takeBack(n, batch int, err error) error {
	switch {
	case n < 0 || n > batch:
		err = errCount
	case err == nil:
		err = io.ErrShortWrite
	}
	most := l.size + int64(batch)
	cut, cutErr := l.cut(most)
	if cutErr == nil && cut {
		// Without it the next batch goes where, on the disk, this one is: a
		// crash could leave a mixture of both, which might even be an event.
		cutErr = l.file.Sync()
	}
	if cutErr != nil {
		return l.fail(most, fmt.Errorf("%w; undoing it failed: %w", err, cutErr))
	}
	return newError("append", l.name, l.size, nil, err)
}

// fail cuts off what is not durable and ends the log. At most so many bytes are the log's own.
func (l *Log) fail(most int64, err error) error {
	l.failed = true
	if _, cutErr := l.cut(most); cutErr != nil {
		err = fmt.Errorf("%w; cutting off what is not durable failed: %w", err, cutErr)
	}
	return newError("append", l.name, l.size, ErrFailed, err)
}

// cut makes the file end where the log does, and reports whether it did not.
func (l *Log) cut(most int64) (bool, error) {
	info, err := l.file.Stat()
	switch {
	case err != nil:
		return false, err
	case info.Size() < l.size:
		return false, errShrank
	case info.Size() > most:
		return false, errGrew
	case info.Size() == l.size:
		return false, nil
	}
	return true, l.file.Truncate(l.size)
}

// Close closes the log. Closing a closed log is fs.ErrClosed.
func (l *Log) Close() error { return closeFile(&l.file, l.name, l.size) }

func closeFile(file *File, name string, offset int64) error {
	err := fs.ErrClosed
	if *file != nil {
		err = (*file).Close()
	}
	*file = nil
	return newError("close", name, offset, nil, err)
}
