package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"sync"
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

// outboxRoom is how many bytes a client may be behind with reading.
const outboxRoom = 64 << 20

// An outbox sends without a wait, so that a peer can write much before it reads.
type outbox struct {
	out     io.Writer
	patient bool // wait where there is no room, instead of an error
	wake    chan struct{}

	mu     sync.Mutex
	room   sync.Cond // behind is less, or failed is set
	text   []byte    // to send
	behind int       // how many bytes are not sent
	failed error     // nothing more is sent
	done   bool      // nothing more comes
}

func newOutbox(out io.Writer, patient bool) *outbox {
	b := &outbox{out: out, patient: patient, wake: make(chan struct{}, 1)}
	b.room.L = &b.mu
	return b
}

// Write keeps a text to send. The error says that the client does not read, or is gone.
func (b *outbox) Write(text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.patient && b.failed == nil && b.behind > outboxRoom {
		b.room.Wait()
	}
	if b.failed == nil && !b.patient && b.behind+len(text) > outboxRoom {
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

// end lets run send what is kept, and no more.
func (b *outbox) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done = true
	b.signal()
}

// run sends until the end, and returns why if it is not what end wants.
func (b *outbox) run() error {
	for range b.wake {
		for text := b.next(); len(text) > 0; text = b.next() {
			_, err := b.out.Write(text)
			b.sent(len(text), err)
		}
		if ended, err := b.ended(); ended {
			return err
		}
	}
	return nil
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
	b.room.Signal()
}

// ended reports whether nothing more is to be sent, and why if it failed.
func (b *outbox) ended() (bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.done || b.failed != nil, b.failed
}
