package flux

import (
	"errors"
	"fmt"
)

// The errors of this package, wrapped in texts that say more.
var (
	ErrURI     = errors.New("no usable URI of a broker")
	ErrDenied  = errors.New("the broker refuses this user")
	ErrFraming = errors.New("not the framing of a broker") // nothing more can be read
	ErrMessage = errors.New("malformed message")           // the next message can be read
	ErrLimit   = errors.New("beyond a limit")
	ErrFull    = errors.New("too much waits for the broker") // nothing was sent
	ErrClosed  = errors.New("the connection is closed")      // by Close
	ErrLost    = errors.New("the broker is gone")
)

// An Error is a response with an error number.
type Error struct {
	Topic  string
	Errnum uint32 // see package errno
	Text   string // of the service; may be empty
}

func (e *Error) Error() string {
	if e.Text == "" {
		return fmt.Sprintf("flux: %s: errno %d", quote(e.Topic), e.Errnum)
	}
	return fmt.Sprintf("flux: %s: %s (errno %d)", quote(e.Topic), quote(e.Text), e.Errnum)
}

// Errnum returns the error number of the response that an error is about, or 0.
func Errnum(err error) uint32 {
	var e *Error
	if errors.As(err, &e) {
		return e.Errnum
	}
	return 0
}

// A SkipError says that a message was skipped. The next one can be read.
type SkipError struct {
	Matchtag uint32 // of a response without a route; 0: it was something else
	Err      error  // ErrMessage or ErrLimit, wrapped

	request *Message // that was too long, without its payload; nil: nobody waits for an answer
}

func (e *SkipError) Error() string { return "flux: a message was skipped: " + e.Err.Error() }

func (e *SkipError) Unwrap() error { return e.Err }

// malformed returns an error at an offset of a message.
func malformed(offset int, format string, args ...any) error {
	return fmt.Errorf("flux: offset %d: %w: %s", offset, ErrMessage, fmt.Sprintf(format, args...))
}

// beyond returns an error at an offset of a message.
func beyond(offset int, format string, args ...any) error {
	return fmt.Errorf("flux: offset %d: %w: %s", offset, ErrLimit, fmt.Sprintf(format, args...))
}

// quote shortens a text of others, and escapes what is not plain in it.
func quote(s string) string {
	const most = 200
	if len(s) > most {
		s = s[:most] + "..."
	}
	q := fmt.Sprintf("%+q", s)
	if q[1:len(q)-1] == s {
		return s
	}
	return q
}
