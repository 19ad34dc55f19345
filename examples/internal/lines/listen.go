package lines

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"
)

// maxPath is how long the path of a socket may be on all systems.
const maxPath = 103

// Listen makes a socket that only this user may connect to. It takes the
// place of one without a listener.
func Listen(path string) (net.Listener, error) {
	if len(path) > maxPath {
		return nil, fmt.Errorf("the path %.64s has %d bytes, a socket can have %d: choose a shorter one", path, len(path), maxPath)
	}
	switch info, err := os.Lstat(path); {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return nil, err
	case info.Mode()&os.ModeSocket == 0:
		return nil, fmt.Errorf("%s exists and is not a socket: choose another path", path)
	default:
		conn, err := net.Dial("unix", path)
		if err == nil {
			_ = conn.Close()
		}
		if full := (net.Error)(nil); err == nil || errors.As(err, &full) && full.Timeout() { // it accepts nobody for now
			return nil, fmt.Errorf("another process listens on %s: end it, or choose another path", path)
		}
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	l, err := (&net.ListenConfig{Control: private}).Listen(context.Background(), "unix", path)
	if call := (*os.SyscallError)(nil); errors.As(err, &call) {
		err = fmt.Errorf("%s: %w", path, call.Err)
	}
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil { // where private does nothing
		_ = l.Close()
		return nil, err
	}
	return l, nil
}

// acceptAgain is how long Accept waits where there is no room for a connection.
const acceptAgain = 100 * time.Millisecond

// Accept accepts a connection. If that fails, as for want of descriptors, it calls tell once and
// tries again until ctx is done. An error says that the listener is closed, or that ctx is done.
func Accept(ctx context.Context, l net.Listener, tell func(error)) (net.Conn, error) {
	for told := false; ; told = true {
		conn, err := l.Accept()
		if err == nil || errors.Is(err, net.ErrClosed) || ctx.Err() != nil {
			return conn, err
		}
		if !told {
			tell(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(acceptAgain):
		}
	}
}
