// Package lines has what the programs share that speak in JSON lines, on standard input
// and output or on a unix socket: reading lines and sending them without a wait, the socket,
// the command line, and transcripts of conversations.
package lines

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Max is how long a line may be, its newline included.
const Max = 16 << 20

// A Line is a line of input, or why there is none.
type Line struct {
	Number int // from 1
	Text   []byte
	Err    error // io.EOF at the end; *LongError; else the input is broken
	share  share
}

// Done gives back the room of a line. Call it after each line that was read with a Budget.
func (l *Line) Done() { l.share.hold(0) }

// free is how long a line may be without room in a Budget.
const free = 64 << 10

// A LongError says that a line is too long, or that there is no room for it while others
// have lines that are not read. The next lines can be read.
type LongError struct {
	Limit int
	Full  bool
	Head  []byte // how the line begins
}

// maxHead is how many bytes of a long line are kept.
const maxHead = 4 << 10

func (e *LongError) Error() string {
	if e.Full {
		return fmt.Sprintf("line is longer than %d bytes, for which there is no room now, and was skipped", e.Limit)
	}
	return fmt.Sprintf("line is longer than %d bytes and was skipped", e.Limit)
}

// Read returns the lines of r that are not empty, then an error, io.EOF at
// the end. The last line needs no newline, unless the input broke off there. It
// ends when ctx does, if nothing keeps r from returning. Long lines have to find room in the
// Budget, which may be nil.
func Read(ctx context.Context, r io.Reader, limit int, room *Budget) <-chan Line {
	lines := make(chan Line)
	send := func(l Line) bool {
		select {
		case lines <- l:
			return true
		case <-ctx.Done():
			return false
		}
	}
	go func() {
		br := bufio.NewReaderSize(r, 1<<16)
		for n := 1; ; n++ {
			s := share{of: room, free: free}
			text, err := readLine(br, limit, &s)
			var long *LongError
			tooLong, last := errors.As(err, &long), errors.Is(err, io.EOF)
			switch {
			case tooLong && !send(Line{Number: n, Err: err}):
				return
			case (err == nil || last) && len(bytes.TrimSpace(text)) > 0:
				if !send(Line{Number: n, Text: text, share: s}) {
					return
				}
			default:
				s.hold(0)
			}
			if err != nil && !tooLong {
				send(Line{Number: n, Err: err})
				return
			}
		}
	}()
	return lines
}

// readLine reads up to the next newline, or to the end, and returns the line
// without it. With the end it returns what there was before it, and the error.
// Of a line beyond the limit, or beyond its share, it returns nothing but a *LongError.
func readLine(br *bufio.Reader, limit int, s *share) ([]byte, error) {
	var text []byte
	var long *LongError
	for {
		part, err := br.ReadSlice('\n')
		n := len(text) + len(part)
		switch {
		case long != nil:
		case n > limit:
			long = &LongError{Limit: limit}
		case !s.hold(n):
			long = &LongError{Limit: s.free, Full: true}
		default:
			text = append(text, part...)
		}
		if long != nil {
			if long.Head == nil {
				long.Head = bytes.Clone(append(text[:min(len(text), maxHead)], part...)[:min(n, maxHead)])
			}
			text = nil
			s.hold(0)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case long != nil && (err == nil || errors.Is(err, io.EOF)):
			return nil, long
		case err != nil:
			return text, err
		}
		return bytes.TrimSuffix(text, []byte("\n")), nil
	}
}

// unquote takes away what strconv.Quote escapes beside what is not printable.
var unquote = strings.NewReplacer(`\\`, `\`, `\"`, `"`)

// Escape returns a text as one line without what a terminal would obey.
func Escape(text string) string {
	quoted := strconv.Quote(text)
	return unquote.Replace(quoted[1 : len(quoted)-1])
}

// Count returns a number and a noun, in the plural unless the number is 1.
func Count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}
