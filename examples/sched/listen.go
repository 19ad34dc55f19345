package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"

	"github.com/joblife/joblife/rset/alloc"
)

// maxPath is how long the path of a socket may be on all systems.
const maxPath = 103

// listen serves sessions on a unix socket, one at a time, until ctx is done. It
// says where on stdout.
func listen(ctx context.Context, o options, stdout, stderr io.Writer) error {
	l, err := openSocket(o.socket)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = l.Close() })() // which removes the socket
	fmt.Fprintf(stdout, "sched: listening on unix:%s\n", o.socket)

	var busy atomic.Bool // a session goes on
	var sessions sync.WaitGroup
	defer sessions.Wait()
	for {
		conn, err := l.Accept()
		if ctx.Err() != nil {
			if err == nil {
				_ = conn.Close()
			}
			return nil
		}
		if err != nil {
			return err
		}
		if !busy.CompareAndSwap(false, true) {
			turnAway(conn)
			continue
		}
		sessions.Wait() // for the last one to be gone
		sessions.Add(1)
		go func() {
			defer sessions.Done()
			attend(ctx, o, conn, stderr)
			busy.Store(false) // before the peer sees the connection closed
			_ = conn.Close()
		}()
	}
}

// attend serves a connection.
func attend(ctx context.Context, o options, conn net.Conn, stderr io.Writer) {
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })() // a read or write that waits ends
	if err := serve(ctx, o, conn, conn, stderr); err != nil && !errors.Is(err, errRefused) && ctx.Err() == nil {
		fmt.Fprintln(stderr, "sched: session:", err)
	}
}

// turnAway refuses a peer while there is a session already.
func turnAway(conn net.Conn) {
	b, _ := alloc.Line{Topic: topicError, Errnum: errnoBusy, Errstr: "another session is going on"}.AppendText(nil)
	_, _ = conn.Write(b) // a new connection has room for a line; the peer may be gone
	_ = conn.Close()
}

// openSocket makes a socket that only this user may connect to. It takes the
// place of one without a listener.
func openSocket(path string) (net.Listener, error) {
	if len(path) > maxPath {
		return nil, fmt.Errorf("-listen: the path has %d bytes, a socket can have %d: choose a shorter one", len(path), maxPath)
	}
	switch info, err := os.Lstat(path); {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("-listen: %w", err)
	case info.Mode()&os.ModeSocket == 0:
		return nil, fmt.Errorf("-listen: %s exists and is not a socket: choose another path", path)
	default:
		if conn, err := net.Dial("unix", path); err == nil {
			_ = conn.Close()
			return nil, fmt.Errorf("-listen: another process listens on %s: end it, or choose another path", path)
		}
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("-listen: %w", err)
		}
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("-listen: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("-listen: %w", err)
	}
	return l, nil
}
