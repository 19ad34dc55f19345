package lines

import (
	"fmt"
	"io"
	"sync"
)

// Room is how many bytes a peer may be behind with reading, and freeRoom how many of them
// are not of a Budget.
const (
	Room     = 64 << 20
	freeRoom = 256 << 10
)

// An Outbox sends without a wait, so that a peer can write much before it reads.
type Outbox struct {
	out     io.Writer
	patient bool // wait where there is no room, instead of an error
	wake    chan struct{}

	mu     sync.Mutex
	room   sync.Cond // behind is less, or failed is set
	text   []byte    // to send
	behind int       // how many bytes are not sent
	share  share     // of them
	failed error     // nothing more is sent
	done   bool      // nothing more comes
	calm   func()    // to call when the peer has read; nil: nobody asks
}

// NewOutbox returns an Outbox. A patient one waits where there is no room, instead of an error,
// and needs no Budget, which may be nil.
func NewOutbox(out io.Writer, patient bool, room *Budget) *Outbox {
	b := &Outbox{out: out, patient: patient, wake: make(chan struct{}, 1), share: share{of: room, free: freeRoom}}
	b.room.L = &b.mu
	return b
}

// Calm reports whether the peer has read nearly all. If not, then is called when it has.
func (b *Outbox) Calm(then func()) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.patient || b.failed != nil || b.behind <= freeRoom {
		return true
	}
	b.calm = then
	return false
}

// Write keeps a text to send. The error says that the client does not read, or is gone.
func (b *Outbox) Write(text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.patient && b.failed == nil && b.behind > Room {
		b.room.Wait()
	}
	if n := b.behind + len(text); b.failed == nil && !b.patient && (n > Room || !b.share.hold(n)) {
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

func (b *Outbox) signal() {
	select {
	case b.wake <- struct{}{}:
	default: // it will look
	}
}

// End lets Run send what is kept, and no more.
func (b *Outbox) End() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done = true
	b.signal()
}

// Run sends until the End, and returns why if it is another end.
func (b *Outbox) Run() error {
	defer b.forget()
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

// forget drops what will not be sent.
func (b *Outbox) forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failed == nil {
		b.failed = io.ErrClosedPipe
	}
	b.text = nil
	b.share.hold(0)
}

func (b *Outbox) next() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	text := b.text
	b.text = nil
	return text
}

// sent notes that so many bytes were sent, or why not.
func (b *Outbox) sent(n int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.behind -= n; b.failed == nil {
		b.failed = err
	}
	b.share.hold(b.behind)
	b.room.Signal()
	if b.calm != nil && b.behind <= freeRoom {
		b.calm()
		b.calm = nil
	}
}

// ended reports whether nothing more is to be sent, and why if it failed.
func (b *Outbox) ended() (bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.done || b.failed != nil, b.failed
}
