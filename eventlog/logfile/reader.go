package logfile

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/internal/guard"
)

// End is the ReaderOptions.Offset that skips the history.
const End int64 = -1

// ReaderOptions say what a Reader reads. The zero value is the default.
type ReaderOptions struct {
	// FS is the file system; nil means the operating system's.
	FS FS
	// Offset is where to begin: 0, the start, or such as Reader.Offset of an earlier Reader. It
	// must be where a line begins: otherwise Next returns ErrChanged. End, or any value below
	// 0, means after the last complete line.
	Offset int64
}

// A Reader reads the entries of a log and follows it as it grows. Others may append to the
// log meanwhile. The zero Reader behaves as a closed one.
//
// The newest entries may not be durable yet: Append has written them and has not
// returned. If its fsync fails they are gone, and Next returns ErrChanged.
type Reader struct {
	_       guard.NoCopy
	fs      FS
	file    File // nil if closed
	name    string
	info    fs.FileInfo // of the file, when it was opened
	lines   feed        // what the Decoder reads: whole lines
	dec     *eventlog.Decoder
	first   int64 // where the Decoder began
	offset  int64 // where the next line begins
	history int64 // where the history ends
	marked  bool  // ErrEndOfHistory was returned
	twice   bool
	err     error // that reading ended with

	// buf[last:next] is the line before, or as much of it as is known. buf[next:fed]
	// is lines that the Decoder has or can read, buf[fed:end] is not looked at yet.
	buf                  []byte
	last, next, fed, end int
	again                []byte // room for another read
}

// feed gives a Decoder lines, and never an end: it would be the last.
type feed struct{ rest []byte }

func (f *feed) Read(p []byte) (int, error) {
	if len(f.rest) == 0 {
		return 0, io.ErrUnexpectedEOF // not reached: what it is given ends with a line
	}
	n := copy(p, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}

// OpenReader opens a log for reading. The log may be empty. Its last line may be torn,
// since a writer may still be writing it. The error is fs.ErrNotExist if there is no log.
func OpenReader(name string, o ReaderOptions) (*Reader, error) {
	r := &Reader{fs: orOS(o.FS), name: name, offset: o.Offset}
	var err error
	if r.file, err = openFile(r.fs, name, os.O_RDONLY); err != nil {
		return nil, newError("read", name, 0, nil, err)
	}
	if err := r.start(); err != nil {
		_ = r.file.Close() // nothing was written
		return nil, newError("read", name, 0, nil, err)
	}
	return r, nil
}

// start finds out where to begin and where the history ends.
func (r *Reader) start() error {
	info, err := regular(r.file)
	if err != nil {
		return err
	}
	r.info, r.history = info, info.Size()
	if r.offset < 0 {
		if r.offset, err = lastLine(r.file, r.history); err != nil {
			return err
		}
	}
	if r.offset > r.history {
		r.err = newError("read", r.name, r.offset, nil, errShrank)
	}
	if r.offset > 0 {
		// All that is known of the line before is how it ends.
		r.buf, r.next, r.fed, r.end = []byte("\n"), 1, 1, 1
	}
	r.first = r.offset
	r.dec = eventlog.NewDecoder(&r.lines, eventlog.DecoderOptions{})
	return nil
}

// lastLine returns the offset behind the last newline within size bytes.
func lastLine(file io.ReaderAt, size int64) (int64, error) {
	buf := make([]byte, min(size, smallBuffer))
	for size > 0 {
		piece := buf[:min(size, smallBuffer)]
		n, err := readAt(file, piece, size-int64(len(piece)))
		if err == nil && n < len(piece) {
			err = errShrank
		}
		if err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(piece, '\n'); i >= 0 {
			return size - int64(len(piece)-i-1), nil
		}
		size -= int64(len(piece))
	}
	return 0, nil
}

// Next returns the next entry. It does not wait: the error is io.EOF if there is no entry
// now, and a later call looks again. The error is [ErrEndOfHistory] once, after the entries
// that were complete when the Reader was opened.
//
// The entry is valid until the next call, except its Name; Clone keeps it.
//
// A *[DamageError] is an invalid line. ErrChanged means that the log shrank or was
// overwritten, or, after all entries of the file, that the name denotes another file or no
// file. Both end the Reader: later calls return them again. After any other error, which
// comes from the file system, Next can be called again.
//
// To notice an overwritten log, Next compares the last line that it returned with the
// file, each time it looks.
func (r *Reader) Next() (eventlog.Entry, error) {
	if r.err != nil {
		return eventlog.Entry{}, r.err
	}
	if r.file == nil {
		return eventlog.Entry{}, newError("read", r.name, r.offset, nil, fs.ErrClosed)
	}
	if r.next == r.fed {
		if err := r.more(); err != nil {
			return eventlog.Entry{}, err
		}
	}
	for e, err := range r.dec.All() {
		if err != nil {
			r.err = r.damage(err)
			return eventlog.Entry{}, r.err
		}
		end := r.next + int(r.first+r.dec.Offset()-r.offset)
		r.twice = bytes.Equal(r.buf[r.last:r.next], r.buf[r.next:end])
		r.last, r.next = r.next, end
		r.offset = r.first + r.dec.Offset()
		return e, nil
	}
	return eventlog.Entry{}, nil // not reached: a Decoder that is fed yields
}

func (r *Reader) damage(err error) error {
	var syntax *eventlog.SyntaxError
	if errors.As(err, &syntax) { // always
		moved := *syntax
		moved.Offset += r.first
		err = &moved
	}
	return &DamageError{Name: r.name, Offset: r.offset, Err: err}
}

// Duplicate reports whether the last entry from Next has the same bytes as the one before
// it: a writer that was not sure of the first append may have repeated it. Next returns
// both. Duplicate is false for the first entry after ReaderOptions.Offset.
func (r *Reader) Duplicate() bool { return r.twice }

// Offset returns where the last entry from Next ends, in bytes from the start of the log.
func (r *Reader) Offset() int64 { return r.offset }

// Close closes the file. Closing a closed Reader is fs.ErrClosed.
func (r *Reader) Close() error { return closeFile(&r.file, r.name, r.offset) }

// more looks for complete lines and gives them to the Decoder. The error is what Next returns.
func (r *Reader) more() error {
	err := r.look()
	switch {
	case err == nil:
		r.lines.rest = r.buf[r.next:r.fed]
		return nil
	case err == io.EOF && !r.marked:
		err = ErrEndOfHistory
	case err != io.EOF && err != ErrEndOfHistory:
		failure := newError("read", r.name, r.offset, nil, err)
		if errors.Is(err, ErrChanged) {
			r.err = failure
		}
		return failure
	}
	r.marked = true
	return err
}

// look finds complete lines, or so much of one that it is too long. The error is
// ErrEndOfHistory if there are lines but of no history.
func (r *Reader) look() error {
	looked, moved := false, false
	for more := true; ; {
		unread := r.buf[r.next:r.end]
		lines := unread
		if !r.marked {
			lines = unread[:min(int64(len(unread)), max(r.history-r.offset, 0))]
		}
		if i := bytes.LastIndexByte(lines, '\n'); i >= 0 {
			r.fed = r.next + i + 1
			return nil
		}
		if len(lines) < len(unread) && bytes.IndexByte(unread, '\n') >= 0 {
			return ErrEndOfHistory
		}
		if len(unread) > eventlog.DefaultMaxLine {
			r.fed = r.end
			return nil
		}
		if looked && !more {
			_, err := sameName(r.fs, r.name, r.info)
			switch {
			case err == nil:
				return io.EOF
			case moved || !errors.Is(err, ErrChanged):
				return err
			}
			// What was written between the last look and the change comes first.
			moved = true
		}
		var err error
		if more, err = r.fill(); err != nil {
			return err
		}
		looked = true
	}
}

// The buffer grows as that of an eventlog.Decoder.
const (
	smallBuffer = 4 << 10
	largeBuffer = 64 << 10
)

// fill reads the file anew, from the line before the next one on, and reports
// whether there may be more. What was in the buffer behind the last complete line
// is not kept: a writer whose write failed may have put something else in its
// place since, and half of each would make a line that no one wrote.
//
// It reads twice. A read is not atomic: while it goes on, a writer may take back a batch
// and append another one, and a line that begins in the one and ends in the other was
// never in the log. What both reads show was in the log together.
func (r *Reader) fill() (more bool, err error) {
	before := r.buf[r.last:r.next]
	size, held := len(r.buf), len(before)+r.end-r.next
	switch {
	case size < smallBuffer:
		size = smallBuffer
	case held >= size || r.end == size && size < largeBuffer:
		size *= 2
	}
	r.fed, r.end = r.next, r.next
	if len(r.again) != size {
		r.again = make([]byte, size)
	}
	start := r.offset - int64(len(before))
	n, err := readAt(r.file, r.again, start)
	switch {
	case err != nil:
		return false, err
	case !bytes.HasPrefix(before, r.again[:min(n, len(before))]):
		return false, errOverwritten
	case n < len(before):
		return false, errShrank
	}
	r.buf, r.again = r.again, r.buf
	r.last, r.next = 0, len(before)
	r.fed, r.end = r.next, r.next
	if len(r.again) < n {
		r.again = make([]byte, size)
	}
	m, err := readAt(r.file, r.again[:n], start)
	if err != nil {
		return false, err
	}
	same := m
	if !bytes.Equal(r.again[:m], r.buf[:m]) {
		for same = 0; r.again[same] == r.buf[same]; {
			same++
		}
	}
	r.end = max(same, r.next)
	return r.end == size, nil
}

// readAt reads from a file, less than p only if the file ends there.
func readAt(file io.ReaderAt, p []byte, offset int64) (int, error) {
	n, err := file.ReadAt(p, offset)
	if n < 0 || n > len(p) || n < len(p) && err == nil {
		return 0, errCount
	}
	if err == io.EOF {
		err = nil
	}
	return n, err
}
