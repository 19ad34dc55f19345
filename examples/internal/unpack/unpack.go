// Package unpack bounds what a compressed file unpacks to by the length of the file, so
// that a small one takes little time and memory.
package unpack

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// The limits: bytes for each byte that was read of the file, beyond the first ones. Logs
// of jobs that Flux wrote are 5 to 17 times as long as their gzip.
const (
	ratio     = 32
	partRatio = 8
	first     = 2 << 20
)

// ErrLong is returned when a file unpacks to too much.
var ErrLong = errors.New("unpacks to far more than its own length")

// InFile returns an error of a file with its name, once, and with what helps if it was cut.
func InFile(name string, err error) error {
	switch path := (*fs.PathError)(nil); {
	case errors.As(err, &path):
		return path
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%s: ends too early: copy it again, or wait for its writer", name)
	}
	return fmt.Errorf("%s: %w", name, err)
}

// A File counts the bytes that are read of a file.
type File struct {
	r   io.Reader
	len int64
}

// New returns the File that r reads.
func New(r io.Reader) *File { return &File{r: r} }

// Read reads from the file as it is.
func (f *File) Read(p []byte) (int, error) {
	n, err := f.r.Read(p)
	f.len += int64(n)
	return n, err
}

// Len returns how much was read.
func (f *File) Len() int64 { return f.len }

// Part returns how long a part may be that is in memory as a whole, such as a line.
func (f *File) Part() int64 { return first + partRatio*f.len }

// Bound returns a reader of r, which unpacks the file, that fails with [ErrLong].
func (f *File) Bound(r io.Reader) io.Reader { return &bound{f: f, r: r} }

type bound struct {
	f   *File
	r   io.Reader
	len int64
}

func (b *bound) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if b.len += int64(n); b.len > first+ratio*b.f.len {
		return 0, ErrLong
	}
	return n, err
}
