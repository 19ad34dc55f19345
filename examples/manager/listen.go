package main

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/joblife/joblife/examples/internal/lines"
)

// maxClients is how many clients the socket has at once.
const maxClients = 1024

// accept serves the clients of a socket until ctx is done.
func (o *options) accept(ctx context.Context, l net.Listener, ready func(), stderr io.Writer) error {
	p, err := newProcess(*o, stderr)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	ready()
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
		in := input{line: lines.Line{Err: err}}
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
			_ = in.client.out.(*lines.Outbox).Run() // the reader tells of it
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
	box := lines.NewOutbox(conn, false)
	return &client{
		id: id, out: box, senders: make(map[string]bool),
		broken: func(error) { _ = conn.Close() }, // the reader tells of it
		close: func() {
			_ = conn.SetWriteDeadline(time.Now().Add(patience))
			box.End()
		},
	}
}
