package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// maxPath is how long the path of a socket may be on all systems.
const maxPath = 103

// maxClients is how many clients the socket has at once.
const maxClients = 1024

// listen serves the clients of a unix socket until ctx is done. It says where on stdout.
func listen(ctx context.Context, o options, stdout, stderr io.Writer) error {
	l, err := openSocket(o.socket)
	if err != nil {
		return err
	}
	p, err := newProcess(o, stderr)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	if p.store.isLocal() {
		p.start()
	}
	fmt.Fprintf(stdout, "manager: listening on unix:%s\n", o.socket)
	s := sessions{inputs: make(chan input)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.all.Add(1)
	go s.accept(l)
	err = p.run(ctx, s.inputs)
	s.cancel()
	_ = l.Close() // which removes the socket
	s.all.Wait()
	return err
}

// sessions are the goroutines of a socket.
type sessions struct {
	inputs chan input
	ctx    context.Context
	cancel func()
	all    sync.WaitGroup
}

// accept takes in clients.
func (s *sessions) accept(l net.Listener) {
	defer s.all.Done()
	for id := 1; ; id++ {
		conn, err := l.Accept()
		in := input{line: line{err: err}}
		if err == nil {
			in.client = newClient(id, conn)
		}
		select {
		case s.inputs <- in:
		case <-s.ctx.Done():
			if err == nil {
				_ = conn.Close()
			}
			return
		}
		if err != nil {
			return
		}
		s.all.Add(2)
		go func() {
			defer s.all.Done()
			_ = in.client.out.(*outbox).run() // the reader tells of it
			_ = conn.Close()
		}()
		go func() {
			defer s.all.Done()
			defer context.AfterFunc(s.ctx, func() { _ = conn.SetReadDeadline(time.Unix(1, 0)) })()
			in.client.read(s.ctx, conn, s.inputs)
		}()
	}
}

// patience is how long a client may take to read the last lines.
const patience = 2 * time.Second

// newClient returns the client of a connection.
func newClient(id int, conn net.Conn) *client {
	box := newOutbox(conn, false)
	return &client{
		id: id, out: box, senders: make(map[string]bool),
		broken: func(error) { _ = conn.Close() }, // the reader tells of it
		close: func() {
			_ = conn.SetWriteDeadline(time.Now().Add(patience))
			box.end()
		},
	}
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
