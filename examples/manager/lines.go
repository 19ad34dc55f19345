package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
)

// maxLine is how long a line may be, its newline included.
const maxLine = 16 << 20

// line is a line of input, or why there is none.
type line struct {
	number int // from 1
	text   []byte
	err    error // io.EOF at the end; *longError; else the input is broken
}

// longError says that a line is too long. The next lines can be read.
type longError struct{ limit int }

func (e *longError) Error() string {
	return fmt.Sprintf("line is longer than %d bytes and was skipped", e.limit)
}

// readLines returns the lines of r that are not empty, then an error, io.EOF at
// the end. The last line needs no newline, unless the input broke off there. It
// ends when ctx does, if nothing keeps r from returning.
func readLines(ctx context.Context, r io.Reader, limit int) <-chan line {
	lines := make(chan line)
	send := func(l line) bool {
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
			text, err := readLine(br, limit)
			var long *longError
			tooLong, last := errors.As(err, &long), errors.Is(err, io.EOF)
			switch {
			case tooLong && !send(line{n, nil, err}):
				return
			case (err == nil || last) && len(bytes.TrimSpace(text)) > 0 && !send(line{n, text, nil}):
				return
			case err != nil && !tooLong:
				send(line{n, nil, err})
				return
			}
		}
	}()
	return lines
}

// readLine reads up to the next newline, or to the end, and returns the line
// without it. With the end it returns what there was before it, and the error.
// Of a line beyond the limit it returns nothing but a *longError.
func readLine(br *bufio.Reader, limit int) ([]byte, error) {
	var text []byte
	long := false
	for {
		part, err := br.ReadSlice('\n')
		long = long || len(text)+len(part) > limit
		if !long {
			text = append(text, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case long && (err == nil || errors.Is(err, io.EOF)):
			return nil, &longError{limit}
		case err != nil:
			return text, err
		}
		return text, nil
	}
}
