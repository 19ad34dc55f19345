package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/joblife/joblife/examples/internal/errno"
	"github.com/joblife/joblife/examples/internal/lines"
	"github.com/joblife/joblife/rset/alloc"
)

// accept serves sessions on a socket, one at a time, until ctx is done.
func (o *options) accept(ctx context.Context, l net.Listener, ready func(), stderr io.Writer) error {
	defer context.AfterFunc(ctx, func() { _ = l.Close() })() // which removes the socket
	ready()

	var busy atomic.Bool // a session goes on
	var sessions sync.WaitGroup
	defer sessions.Wait()
	for {
		conn, err := lines.Accept(ctx, l, func(err error) { tell(stderr, err) })
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
		sessions.Go(func() {
			o.attend(ctx, conn, stderr)
			busy.Store(false) // before the peer sees the connection closed
			_ = conn.Close()
		})
	}
}

// attend serves a connection.
func (o *options) attend(ctx context.Context, conn net.Conn, stderr io.Writer) {
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })() // a read or write that waits ends
	if err := o.serve(ctx, conn, &patient{conn, o.patience}, stderr); err != nil && !errors.Is(err, lines.ErrRefused) && ctx.Err() == nil {
		tell(stderr, err)
	}
}

// tell tells why a session did not begin, or how it ended.
func tell(stderr io.Writer, err error) {
	fmt.Fprintln(stderr, "sched: session:", lines.Escape(err.Error()))
}

// patient is a connection that is written to as long as the peer reads.
type patient struct {
	net.Conn
	patience time.Duration
}

func (p *patient) Write(text []byte) (int, error) {
	if err := p.SetWriteDeadline(time.Now().Add(p.patience)); err != nil {
		return 0, err
	}
	return p.Conn.Write(text)
}

// turnAway refuses a peer while there is a session already.
func turnAway(conn net.Conn) {
	b, _ := alloc.Line{Topic: topicError, Errnum: errno.Busy, Errstr: "another session is going on"}.AppendText(nil)
	_, _ = conn.Write(b) // a new connection has room for a line; the peer may be gone
	_ = conn.Close()
}
