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

// What all clients may leave in memory together, beside a little of each.
const (
	maxUnread = 64 << 20  // bytes of long lines that are not handled yet
	maxUnsent = 256 << 20 // bytes that they are behind with reading
)

// accept serves the clients of a socket until ctx is done.
func (o *options) accept(ctx context.Context, l net.Listener, ready func(), stderr io.Writer) error {
	p, err := newProcess(*o, stderr)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	p.live = o.Now == 0
	ready()
	s := sessions{put: p.put, unread: lines.NewBudget(maxUnread), unsent: lines.NewBudget(maxUnsent)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.all.Add(1)
	go s.accept(l)
	err = p.run(ctx)
	s.cancel()
	_ = l.Close() // which removes the socket
	s.all.Wait()
	return err
}

// sessions are the goroutines of a socket.
type sessions struct {
	put    func(input) bool
	unread *lines.Budget
	unsent *lines.Budget
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
			in.client = newClient(id, conn, s.unsent)
		}
		if !s.put(in) && err == nil {
			_ = conn.Close()
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
			in.client.read(s.ctx, conn, s.unread, s.put)
		}()
	}
}

// patience is how long a client may take to read the last lines.
const patience = 2 * time.Second

// newClient returns the client of a connection.
func newClient(id int, conn net.Conn, unsent *lines.Budget) *client {
	box := lines.NewOutbox(conn, false, unsent)
	return &client{
		id: id, out: box,
		broken: func(error) { _ = conn.Close() }, // the reader tells of it
		close: func() {
			_ = conn.SetWriteDeadline(time.Now().Add(patience))
			box.End()
		},
	}
}
