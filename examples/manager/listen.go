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
	reading, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() { p.welcome(reading, l, &all) })
	err = p.run(ctx)
	cancel()
	_ = l.Close() // which removes the socket
	all.Wait()
	return err
}

// welcome takes in clients, and reads what they say until ctx is done.
func (p *process) welcome(ctx context.Context, l net.Listener, all *sync.WaitGroup) {
	unread, unsent := lines.NewBudget(maxUnread), lines.NewBudget(maxUnsent)
	for id := 1; ; id++ {
		conn, err := lines.Accept(ctx, l, func(err error) { p.put(input{odd: err}) })
		if err != nil {
			p.put(input{line: lines.Line{Err: err}})
			return
		}
		c := newClient(id, conn, unsent)
		if !p.put(input{client: c}) {
			_ = conn.Close()
			return
		}
		all.Go(func() {
			_ = c.out.(*lines.Outbox).Run() // the reader tells of it
			_ = conn.Close()
		})
		all.Go(func() {
			defer context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Unix(1, 0)) })()
			c.read(ctx, conn, unread, p.put)
		})
	}
}

// patience is how long a client may take to read the last lines.
const patience = 2 * time.Second

// newClient returns the client of a connection.
func newClient(id int, conn net.Conn, unsent *lines.Budget) *client {
	box := lines.NewOutbox(conn, false, unsent)
	return &client{
		id: id, out: box, calm: box.Calm,
		broken: func(error) { _ = conn.Close() }, // the reader tells of it
		close: func() {
			_ = conn.SetWriteDeadline(time.Now().Add(patience))
			box.End()
		},
	}
}
