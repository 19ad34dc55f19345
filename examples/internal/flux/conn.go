package flux

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/joblife/joblife/examples/internal/errno"
)

// A Config says how to connect. The zero value connects to FLUX_URI.
type Config struct {
	URI string // local://PATH; "": FLUX_URI of the environment

	// Handle gets what is not for a Call or Start, in order: requests for the services of this
	// client, events, and other responses. One goroutine calls it, and reads nothing meanwhile:
	// it can Send and Start, but not Call. nil: nobody wants them.
	Handle func(Message)
	// Skipped gets a *SkipError for each message that could not be read. nil: nobody asks.
	Skipped func(error)

	Max  int // bytes of a message; 0: the constant Max
	Room int // bytes that wait for the broker at most; 0: 64 MiB
}

const (
	defaultRoom = 64 << 20
	maxCalls    = 1 << 16     // that are open
	flushWait   = time.Second // for what waits at Close
	maxSpare    = 1 << 16     // bytes of a buffer that is kept
)

// A Conn is a connection to a broker. Its methods may be called by many goroutines.
type Conn struct {
	conf   Config
	conn   net.Conn
	ended  chan struct{} // err is set
	done   chan struct{} // all callbacks have returned
	wrote  chan struct{} // the writer has returned
	wakeup chan struct{} // of the writer

	mu    sync.Mutex
	out   []byte      // to send
	busy  int         // bytes that the writer has at work
	later *time.Timer // wakes the writer for what SendWithin has added; nil: nothing is
	tag   uint32      // the last that was given out
	calls map[uint32]func(Message, error)
	err   error
}

// New returns a connection through a socket whose other end speaks as a broker does after its
// handshake.
func New(conn net.Conn, conf Config) *Conn {
	if conf.Room <= 0 {
		conf.Room = defaultRoom
	}
	c := &Conn{
		conf: conf, conn: newRaw(conn), calls: make(map[uint32]func(Message, error)), wakeup: make(chan struct{}, 1),
		ended: make(chan struct{}), done: make(chan struct{}), wrote: make(chan struct{}),
	}
	go c.read()
	go c.write()
	return c
}

// Done is closed when the connection has ended and no callback runs any more.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err returns why the connection ended: ErrClosed, ErrLost or ErrFraming. It is nil before.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Behind returns how many bytes wait for the other side to read.
func (c *Conn) Behind() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.out) + c.busy
}

// Close ends the connection. What was sent before gets a second to go out. The second Close
// does nothing. The broker tells the services that were asked, by requests SERVICE.disconnect.
func (c *Conn) Close() error {
	c.end(ErrClosed)
	<-c.wrote
	return nil
}

// end sets why the connection ended, once.
func (c *Conn) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = fmt.Errorf("flux: %w", err)
		close(c.ended)
		_ = c.conn.SetWriteDeadline(time.Now().Add(flushWait))
	}
}

// Send sends a message without a wait. ErrFull says that nothing was sent: too much waits
// already. If the Rolemask is 0, the user is that of the connection. Send copies the payload.
func (c *Conn) Send(m Message) error { return c.SendWithin(0, m) }

// SendWithin is Send for a message that may be so late. It goes out with the next one of Send, if
// that comes before, so that the other side wakes once for both.
func (c *Conn) SendWithin(d time.Duration, m Message) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d <= 0 {
		return c.send(&m)
	}
	err := c.put(&m)
	if err == nil && c.later == nil {
		c.later = time.AfterFunc(d, c.wake)
	}
	return err
}

func (c *Conn) send(m *Message) error {
	err := c.put(m)
	if err == nil {
		c.wake()
	}
	return err
}

// wake wakes the writer.
func (c *Conn) wake() {
	select {
	case c.wakeup <- struct{}{}:
	default:
	}
}

// put adds a message to what waits.
func (c *Conn) put(m *Message) error {
	if c.err != nil {
		return c.err
	}
	if m.Rolemask == 0 {
		m.UserID = UserUnknown
	}
	room := c.conf.Room - len(c.out) - c.busy
	if len(m.Payload) > room {
		return fmt.Errorf("flux: %s: %w: %d bytes", quote(m.Topic), ErrFull, len(c.out)+c.busy)
	}
	out, err := AppendFrame(c.out, m)
	switch {
	case err != nil:
		return err
	case len(out)-len(c.out) > room:
		return fmt.Errorf("flux: %s: %w: %d bytes", quote(m.Topic), ErrFull, len(c.out)+c.busy)
	}
	c.out = out
	return nil
}

// write sends what waits until the end of the connection, and then closes the socket.
func (c *Conn) write() {
	defer close(c.wrote)
	defer c.conn.Close()
	var spare []byte // what is not in use of two buffers
	for {
		select {
		case <-c.wakeup:
		case <-c.ended:
		}
		c.mu.Lock()
		out, err := c.out, c.err
		c.out, c.busy = spare, len(out)
		if c.later != nil {
			c.later.Stop()
			c.later = nil
		}
		c.mu.Unlock()
		if spare = out[:0]; cap(out) > maxSpare {
			spare = nil
		}
		if len(out) == 0 {
			if err != nil {
				return
			}
			continue
		}
		if _, err := c.conn.Write(out); err != nil {
			c.end(fmt.Errorf("%w: %w", ErrLost, err))
			return
		}
		c.mu.Lock()
		c.busy = 0
		c.mu.Unlock()
	}
}

// read handles what comes until the end, and then ends all calls.
func (c *Conn) read() {
	defer close(c.done)
	r := NewReader(c.conn, c.conf.Max)
	for {
		m, err := r.Read()
		var skip *SkipError
		switch {
		case errors.As(err, &skip):
			if answer := c.answer(skip.Matchtag, true); answer != nil {
				answer(Message{}, err)
			}
			if skip.request != nil {
				_ = c.Send(skip.request.RespondError(errno.Size, skip.Err.Error())) // or its end tells
			}
			if c.conf.Skipped != nil {
				c.conf.Skipped(err)
			}
			continue
		case errors.Is(err, ErrFraming):
			c.end(err)
		case err != nil:
			c.end(fmt.Errorf("%w: %w", ErrLost, err))
		}
		if err := c.Err(); err != nil {
			c.endCalls(err)
			return
		}
		c.deliver(m)
	}
}

func (c *Conn) endCalls(err error) {
	c.mu.Lock()
	calls := c.calls
	c.calls = nil
	c.mu.Unlock()
	for _, tag := range slices.Sorted(maps.Keys(calls)) {
		calls[tag](Message{}, err)
	}
}

// deliver calls who waits for a message.
func (c *Conn) deliver(m Message) {
	if m.Type == TypeResponse && len(m.Route) == 0 && !m.isGuests() {
		last := m.Errnum != 0 || !m.Flags.Has(FlagStreaming)
		if answer := c.answer(m.Matchtag, last); answer != nil {
			answer(m, m.Err())
			return
		}
	}
	if c.conf.Handle != nil {
		c.conf.Handle(m)
	}
}

// answer returns the function of an open call, and closes the call with the last response.
func (c *Conn) answer(tag uint32, last bool) func(Message, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	answer := c.calls[tag]
	if last {
		delete(c.calls, tag)
	}
	return answer
}

// Start sends a request with a matchtag of its own, which it returns, and calls answer for each
// response, from the goroutine of Handle. The last one has an error, or no FlagStreaming. The
// error is an *Error, of which ENODATA is the orderly end of a stream, a *SkipError, or the end
// of the connection. If Start itself returns an error, answer is never called.
func (c *Conn) Start(m Message, answer func(Message, error)) (matchtag uint32, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.err != nil:
		return 0, c.err
	case m.Type != TypeRequest || m.Flags.Has(FlagNoResponse):
		return 0, fmt.Errorf("flux: %s: %w: nothing answers it", quote(m.Topic), ErrMessage)
	case len(c.calls) >= maxCalls:
		return 0, fmt.Errorf("flux: %s: %w: %d calls are open", quote(m.Topic), ErrFull, len(c.calls))
	}
	for c.tag++; c.tag == 0 || c.calls[c.tag] != nil; c.tag++ {
	}
	m.Matchtag = c.tag
	if err := c.send(&m); err != nil {
		return 0, err
	}
	c.calls[c.tag] = answer
	return c.tag, nil
}

// Forget lets all later responses to a request of Start go. Its matchtag stays in use until the
// last of them has come. Some services have a method that cancels a request.
func (c *Conn) Forget(matchtag uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls[matchtag] != nil {
		c.calls[matchtag] = func(Message, error) {}
	}
}

// Call sends a request and waits for one response. An error of the service is an *Error. If ctx
// ends first, the response is dropped when it comes. Nothing is sent after the end of ctx.
func (c *Conn) Call(ctx context.Context, topic string, nodeid uint32, payload []byte) (Message, error) {
	if err := ctx.Err(); err != nil {
		return Message{}, err
	}
	m := NewRequest(topic, payload)
	m.Nodeid = nodeid
	type result struct {
		m   Message
		err error
	}
	first := make(chan result, 1)
	tag, err := c.Start(m, func(m Message, err error) {
		select {
		case first <- result{m, err}:
		default: // a stream that nobody asked for
		}
	})
	if err != nil {
		return Message{}, err
	}
	select {
	case r := <-first:
		return r.m, r.err
	case <-ctx.Done():
		c.Forget(tag)
		return Message{}, fmt.Errorf("flux: %s: %w", quote(topic), ctx.Err())
	case <-c.ended:
	}
	select {
	case r := <-first:
		return r.m, r.err
	default:
		return Message{}, c.Err()
	}
}
