package flux

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"
	"time"
)

// maxPath is how long the path of a socket may be.
const maxPath = 107

// handshakeWait is how long a broker may take for its first byte.
const handshakeWait = 30 * time.Second

// Dial connects to a broker. The error is ErrURI, ErrDenied, or ErrLost while no broker is
// there, with a text that says what to mend.
func Dial(ctx context.Context, conf Config) (*Conn, error) {
	if number, ok := strings.CutPrefix(conf.URI, "fd://"); ok {
		conn, err := dialFD(number)
		if err != nil {
			return nil, fmt.Errorf("flux: %w: %w", ErrURI, err)
		}
		return New(conn, conf), nil
	}
	path, err := pathOf(conf.URI)
	if err != nil {
		return nil, fmt.Errorf("flux: %w: %w", ErrURI, err)
	}
	conn, err := new(net.Dialer).DialContext(ctx, "unix", path)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("flux: %w, user %d: %w", ErrDenied, os.Getuid(), err)
	case err != nil:
		return nil, fmt.Errorf("flux: %w: %w", ErrLost, explain(path, err))
	}
	if err := handshake(ctx, conn); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("flux: %s: %w", path, err)
	}
	return New(conn, conf), nil
}

// pathOf returns the path of the socket of a URI.
func pathOf(uri string) (string, error) {
	if uri == "" {
		if uri = os.Getenv("FLUX_URI"); uri == "" {
			return "", errors.New("FLUX_URI is not set: run it inside an instance, as with flux start or flux proxy")
		}
	}
	path, ok := strings.CutPrefix(uri, "local://")
	switch {
	case !ok:
		return "", fmt.Errorf("%s is not local://PATH: flux proxy has such a URI for other instances", quote(uri))
	case path == "":
		return "", fmt.Errorf("%s has no path: want local://PATH", uri)
	case len(path) > maxPath:
		return "", fmt.Errorf("the path of %s has %d bytes, a socket can have %d: use a link to a shorter one", quote(uri), len(path), maxPath)
	}
	return path, nil
}

// explain says what to mend if no connection came about.
func explain(path string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s does not exist: is the instance running?", path)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("nothing listens on %s: its broker has ended", path)
	}
	return err
}

// handshake reads the byte with which a broker lets a user in, or the number of its error.
func handshake(ctx context.Context, conn net.Conn) error {
	_ = conn.SetReadDeadline(time.Now().Add(handshakeWait))
	stop := context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Unix(1, 0)) })
	var b [1]byte
	_, err := conn.Read(b[:])
	switch {
	case !stop():
		return ctx.Err()
	case err != nil:
		return fmt.Errorf("%w: it lets nobody in: %w", ErrLost, err)
	case b[0] != 0:
		return fmt.Errorf("%w, user %d (errno %d): see [access] of its configuration", ErrDenied, os.Getuid(), b[0])
	}
	_ = conn.SetReadDeadline(time.Time{})
	return nil
}

// The waits of Redial.
const (
	firstWait = 50 * time.Millisecond
	maxWait   = 5 * time.Second
)

// Redial is Dial that tries again while no broker is there: at once, after 50 ms, and so on with
// twice the wait up to 5 s, until ctx ends. Services and subscriptions ended with the connection
// before: the caller makes them again.
func Redial(ctx context.Context, conf Config) (*Conn, error) {
	for wait := firstWait; ; wait = min(2*wait, maxWait) {
		c, err := Dial(ctx, conf)
		if !errors.Is(err, ErrLost) {
			return c, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(wait):
		}
	}
}
