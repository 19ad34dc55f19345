package flux

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Max is how many bytes a message has at most, unless a Config says another number.
const Max = 16 << 20

// A frame is a magic number, in the byte order of the machine, and a length in network byte
// order.
const (
	frameMagic = 0xffee0012
	frameHead  = 8
)

// AppendFrame appends a message as it goes through a socket. After an error dst is as it was.
func AppendFrame(dst []byte, m *Message) ([]byte, error) {
	start := len(dst)
	out := append(binary.NativeEndian.AppendUint32(dst, frameMagic), 0, 0, 0, 0)
	out, err := m.AppendBinary(out)
	if err != nil {
		return dst, err
	}
	n := len(out) - start - frameHead
	if int64(n) > 1<<32-1 {
		return dst, beyond(0, "a message of %d bytes", n)
	}
	binary.BigEndian.PutUint32(out[start+4:], uint32(n))
	return out, nil
}

// A Reader reads messages from a socket.
type Reader struct {
	r   *bufio.Reader
	max int
}

// NewReader returns a Reader of messages of at most so many bytes; 0 stands for Max.
func NewReader(r io.Reader, most int) *Reader {
	if most <= 0 {
		most = Max
	}
	return &Reader{bufio.NewReaderSize(r, 1<<16), most}
}

// Read returns the next message, with a payload that nothing else has. After a *SkipError the
// next one can be read. Other errors are the end: io.EOF between two messages,
// io.ErrUnexpectedEOF inside one, ErrFraming, or what the reader below returned.
func (r *Reader) Read() (Message, error) {
	n, err := r.head()
	if err != nil {
		return Message{}, err
	}
	if n > int64(r.max) {
		return Message{}, r.skip(n)
	}
	b, err := r.body(int(n))
	if err != nil {
		return Message{}, err
	}
	m, err := Parse(b)
	if err != nil {
		return Message{}, &SkipError{Matchtag: tagOf(b), Err: err}
	}
	return m, nil
}

// head reads the head of a frame and returns the length of what follows.
func (r *Reader) head() (int64, error) {
	head, err := r.r.Peek(frameHead)
	switch {
	case len(head) >= 4 && binary.NativeEndian.Uint32(head) != frameMagic:
		return 0, fmt.Errorf("%w: it begins with %q", ErrFraming, head[:4])
	case errors.Is(err, io.EOF) && len(head) > 0:
		return 0, io.ErrUnexpectedEOF
	case err != nil:
		return 0, err
	}
	n := int64(binary.BigEndian.Uint32(head[4:]))
	_, _ = r.r.Discard(frameHead)
	return n, nil
}

// body reads a message, and has room for no more than twice what has come.
func (r *Reader) body(n int) (b []byte, err error) {
	for len(b) < n {
		at := len(b)
		step := min(n-at, max(at, 1<<16))
		b = slices.Grow(b, step)[:at+step]
		if _, err := io.ReadFull(r.r, b[at:]); err != nil {
			return nil, unexpected(err)
		}
	}
	return b, nil
}

// maxHead is how many bytes come before the payload at most.
const maxHead = (MaxHops+1)*(5+MaxHop) + 5 + MaxTopic

// skip reads a message that is too long, and keeps nothing but what is around its payload.
func (r *Reader) skip(n int64) error {
	var tail [1 + protoSize]byte
	keep := min(n, int64(len(tail)))
	head, err := r.body(int(min(n-keep, maxHead)))
	if err != nil {
		return err
	}
	if _, err := io.CopyN(io.Discard, r.r, n-keep-int64(len(head))); err != nil {
		return unexpected(err)
	}
	if _, err := io.ReadFull(r.r, tail[:keep]); err != nil {
		return unexpected(err)
	}
	return &SkipError{tagOf(tail[:keep]), beyond(0, "a message of %d bytes of at most %d", n, r.max), requestOf(head, tail[:keep])}
}

// requestOf returns a request that wants an answer, without its payload, or nil.
func requestOf(head, tail []byte) *Message {
	var m Message
	if len(tail) < 1+protoSize || tail[0] != protoSize || m.proto(tail[1:], 0) != nil ||
		m.Type != TypeRequest || m.Flags.Has(FlagNoResponse) {
		return nil
	}
	p := parser{b: head, end: len(head)}
	var err error
	if m.Flags.Has(FlagRoute) {
		m.Route, err = p.route()
	}
	if err == nil {
		m.Topic, err = p.topic()
	}
	if err != nil {
		return nil
	}
	return &m
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// tagOf returns the matchtag of a response that cannot be parsed, or 0. A route would show
// that it answers a request of another, but a client gets no such response.
func tagOf(b []byte) uint32 {
	if len(b) < 1+protoSize || b[len(b)-1-protoSize] != protoSize {
		return 0
	}
	m := Message{}
	if m.proto(b[len(b)-protoSize:], 0) != nil || m.Type != TypeResponse || m.isGuests() {
		return 0
	}
	return m.Matchtag
}
