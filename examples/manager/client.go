package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"
)

// A client is a connection, or standard input and output, which has the id 0. Many senders
// may speak on it.
type client struct {
	id        int
	out       io.Writer
	broken    func(error)     // to call when a Write failed
	close     func()          // ends the connection after what was written
	senders   map[string]bool // the keys of those who asked for something
	scheduler bool            // it said sched-hello
}

// key returns what the service calls a sender. Those of two clients differ. On standard
// input a line without a sender may be anyone's: its key is "".
func (c *client) key(sender *string) string {
	switch {
	case sender == nil && c.id == 0:
		return ""
	case sender == nil:
		return strconv.Itoa(c.id)
	}
	return strconv.Itoa(c.id) + ":" + *sender
}

// keys returns the keys of all senders.
func (c *client) keys() []string { return slices.Sorted(maps.Keys(c.senders)) }

// An input is a line of a client. The first of a client has neither text nor error.
type input struct {
	client *client
	line   line
}

// read gives the lines of a client to inputs, and the error at their end. It goes on
// until then, or until ctx is done.
func (c *client) read(ctx context.Context, r io.Reader, inputs chan<- input) {
	lines := readLines(ctx, r, maxLine)
	for {
		var in input
		select {
		case <-ctx.Done():
			return
		case l := <-lines:
			in = input{c, l}
		}
		select {
		case <-ctx.Done():
			return
		case inputs <- in:
		}
		var long *longError
		if in.line.err != nil && !errors.As(in.line.err, &long) {
			return
		}
	}
}

// outboxRoom is how many bytes a client of the socket may be behind with reading.
const outboxRoom = 64 << 20

// An outbox sends to a connection without a wait.
type outbox struct {
	conn net.Conn
	wake chan struct{}

	mu     sync.Mutex
	text   []byte // to send
	behind int    // how many bytes are not sent
	failed error  // nothing more is sent
	done   bool   // nothing more comes
}

func newOutbox(conn net.Conn) *outbox {
	return &outbox{conn: conn, wake: make(chan struct{}, 1)}
}

// Write keeps a text to send. The error says that the client does not read, or is gone.
func (b *outbox) Write(text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failed == nil && b.behind+len(text) > outboxRoom {
		b.failed = fmt.Errorf("it does not read: %d bytes wait", b.behind)
	}
	if b.failed != nil {
		return 0, b.failed
	}
	b.text = append(b.text, text...)
	b.behind += len(text)
	b.signal()
	return len(text), nil
}

func (b *outbox) signal() {
	select {
	case b.wake <- struct{}{}:
	default: // it will look
	}
}

// patience is how long a client may take to read the last lines.
const patience = 2 * time.Second

// end sends what is kept, and no more.
func (b *outbox) end() {
	_ = b.conn.SetWriteDeadline(time.Now().Add(patience))
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done = true
	b.signal()
}

// run sends until the end, and closes the connection.
func (b *outbox) run() {
	defer func() { _ = b.conn.Close() }()
	for range b.wake {
		for text := b.next(); len(text) > 0; text = b.next() {
			_, err := b.conn.Write(text)
			b.sent(len(text), err)
		}
		if b.ended() {
			return
		}
	}
}

// next takes what is to be sent.
func (b *outbox) next() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	text := b.text
	b.text = nil
	return text
}

// sent notes that so many bytes were sent, or why not.
func (b *outbox) sent(n int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.behind -= n; b.failed == nil {
		b.failed = err
	}
}

// ended reports whether nothing more is to be sent.
func (b *outbox) ended() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.done || b.failed != nil
}
