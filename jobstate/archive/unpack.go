package archive

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"io"
)

// input is the caller's reader. It counts, and remembers the reader's error.
type input struct {
	r     io.Reader
	err   error
	count int64
}

// Read is of an io.Reader.
func (s *input) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	s.count += int64(n)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		s.err = err
	}
	return n, err
}

// meter counts what is read, and the zeros at the end of it.
type meter struct {
	r        io.Reader
	src      *input
	offset   int64
	limits   *Limits
	zeros    int64
	exceeded bool
}

// Read reads as far as the limit goes; beyond it is an error, if there is more.
func (m *meter) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	if left := min(m.limits.Bytes, freeBytes+m.limits.backed(m.src.count)) - m.offset; int64(n) > left {
		m.exceeded = true
		n, err = int(left), errBytes
	}
	m.offset += int64(n)
	last := len(bytes.TrimRight(p[:n], "\x00"))
	if last > 0 {
		m.zeros = 0
	}
	m.zeros += int64(n - last)
	return n, err
}

// sniffed is how many bytes tell what an archive is compressed with.
const sniffed = 10

// decompress returns a reader of what r holds, uncompressed.
func decompress(r io.Reader) (io.Reader, error) {
	b := bufio.NewReader(r)
	// What is too short to tell is no archive; tar says so.
	head, _ := b.Peek(sniffed)
	switch {
	case bytes.HasPrefix(head, []byte("BZh")) && len(head) == sniffed &&
		(string(head[4:]) == "1AY&SY" || string(head[4:]) == "\x17rE8P\x90"):
		return bzip2.NewReader(b), nil
	case bytes.HasPrefix(head, []byte("\x1f\x8b\x08")):
		return gzip.NewReader(b)
	case bytes.HasPrefix(head, []byte("\xfd7zXZ\x00")):
		return nil, errXZ
	case bytes.HasPrefix(head, []byte("\x28\xb5\x2f\xfd")):
		return nil, errZstd
	}
	return b, nil
}
