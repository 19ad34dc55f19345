package eventlog

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"iter"
)

// The limits of writing, and the defaults of reading.
const (
	// DefaultMaxLine is the maximum number of bytes in a line, without its newline.
	DefaultMaxLine = 1 << 20
	// DefaultMaxDepth is the maximum number of levels in an entry: the entry is the first,
	// its name and an empty context are the second. Flux's JSON library has the same limit.
	DefaultMaxDepth = 2048
)

// DecoderOptions are the limits of a Decoder. The zero value is the default.
type DecoderOptions struct {
	// MaxLine is as DefaultMaxLine, which 0 or less means. It bounds the memory.
	MaxLine int
	// MaxDepth is as DefaultMaxDepth, which 0 or less means; 1 means 2.
	MaxDepth int
	// MaxEvents is the maximum number of entries. 0 or less means no limit.
	MaxEvents int
	// StrictKeys refuses keys that RFC 18 does not name ([ErrEntry]). By default
	// an Entry keeps such a key, and AppendEntry writes it again.
	StrictKeys bool
}

// inForce returns the limits that o means.
func (o DecoderOptions) inForce() DecoderOptions {
	o.MaxLine = cmp.Or(max(o.MaxLine, 0), DefaultMaxLine)
	o.MaxDepth = max(cmp.Or(max(o.MaxDepth, 0), DefaultMaxDepth), 2)
	return o
}

// Decoder reads the entries of a log from a reader. It returns what [Entries] returns for
// the whole log. The zero Decoder is not valid: All panics.
type Decoder struct {
	r     io.Reader
	p     parser
	names names

	buf        []byte // what was read and is not yet handed out is buf[start:end]
	start, end int
	scanned    int // how much of it is known to hold no newline

	line         int   // of the entry handed out last
	offset       int64 // after it
	readErr, err error
}

// NewDecoder returns a Decoder that reads from r. It can read beyond the last
// entry that it returned.
func NewDecoder(r io.Reader, o DecoderOptions) *Decoder {
	d := &Decoder{r: r}
	d.p = parser{o: o.inForce(), names: &d.names}
	return d
}

// Line returns the line number of the last entry returned, from 1; 0 before the first.
func (d *Decoder) Line() int { return d.line }

// Offset returns the number of bytes in the entries returned so far, newlines
// included: where the next one begins. After [ErrTorn] it is the size of the log
// without the torn line.
func (d *Decoder) Offset() int64 { return d.offset }

// All returns an iterator over the entries that are left. It ends with the log or after the
// first error, which comes with a zero Entry. The error is a *[SyntaxError], or wraps the
// error of the reader and names the line and the offset. After a break, another loop over
// All continues where the first one stopped. After an error it yields that error again.
//
// An Entry is valid until the next step of the iterator. Its Name stays valid;
// [Entry.Clone] keeps the rest. A step allocates as Parse does, except for recent names.
func (d *Decoder) All() iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) { d.all(yield) }
}

// all is the body of All, which so can be inlined.
func (d *Decoder) all(yield func(Entry, error) bool) {
	for {
		var e Entry
		err := d.next(&e)
		if err == io.EOF {
			return
		}
		if err != nil {
			yield(Entry{}, err)
			return
		}
		if !yield(e, nil) {
			return
		}
	}
}

// next sets e to the next entry. The error is io.EOF at the end of the log.
func (d *Decoder) next(e *Entry) error {
	if d.err != nil {
		return d.err
	}
	line, err := d.nextLine()
	if err != nil {
		return err // and again, for the reader is not asked again
	}
	var invalid *SyntaxError
	if n := d.p.o.MaxEvents; n > 0 && d.line >= n {
		invalid = syntaxError(ErrLimit, 0, fmt.Errorf("more than %d entries", n))
	} else {
		invalid = d.p.line(line, e)
	}
	if invalid != nil {
		d.err = invalid.at(d.line+1, d.offset)
		return d.err
	}
	d.start += len(line) + 1
	d.scanned = 0
	d.line++
	d.offset += int64(len(line)) + 1
	return nil
}

// nextLine returns the next line, in the buffer, without its newline; io.EOF at the end of the log.
func (d *Decoder) nextLine() ([]byte, error) {
	for {
		unread := d.buf[d.start:d.end]
		if i := bytes.IndexByte(unread[d.scanned:], '\n'); i >= 0 {
			return unread[:d.scanned+i], nil
		}
		d.scanned = len(unread)
		switch limit := d.p.o.MaxLine; {
		case len(unread) > limit:
			return nil, lineError(limit).at(d.line+1, d.offset)
		case d.readErr == io.EOF && len(unread) == 0:
			return nil, io.EOF
		case d.readErr == io.EOF:
			return nil, syntaxError(ErrTorn, 0, ErrTorn).at(d.line+1, d.offset)
		case d.readErr != nil:
			return nil, fmt.Errorf("eventlog: line %d: offset %d: %w", d.line+1, d.offset+int64(len(unread)), d.readErr)
		}
		d.fill()
	}
}

// The buffer doubles when the reader fills it; beyond largeBuffer only a line that needs it
// makes it grow.
const (
	smallBuffer = 4 << 10
	largeBuffer = 64 << 10
)

// maxEmptyReads is how many times in a row a reader may return nothing.
const maxEmptyReads = 100

// fill reads more, behind what is in the buffer, or sets readErr.
func (d *Decoder) fill() {
	unread := d.buf[d.start:d.end]
	switch size := len(d.buf); {
	case size == 0:
		d.buf = make([]byte, smallBuffer)
	case len(unread) == size || d.end == size && size < largeBuffer:
		d.buf = make([]byte, 2*size)
	}
	d.start, d.end = 0, copy(d.buf, unread)
	for range maxEmptyReads {
		n, err := d.r.Read(d.buf[d.end:])
		if n < 0 || n > len(d.buf)-d.end {
			n, err = 0, errCount
		}
		d.end += n
		d.readErr = err
		if n > 0 || err != nil {
			return
		}
	}
	d.readErr = io.ErrNoProgress
}
