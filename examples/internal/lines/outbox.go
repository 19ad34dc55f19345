package lines

import (
	"cmp"
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

	mu     sync.Mutex
	change sync.Cond // of what follows
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
	b := &Outbox{out: out, patient: patient, share: share{of: room, free: freeRoom}}
	b.change.L = &b.mu
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
		b.change.Wait()
	}
	if n := b.behind + len(text); b.failed == nil && !b.patient && (n > Room || !b.share.hold(n)) {
		b.failed = fmt.Errorf("it does not read: %d bytes wait", b.behind)
	}
	b.change.Broadcast()
	if b.failed != nil {
		return 0, b.failed
	}
	b.text = append(b.text, text...)
	b.behind += len(text)
	return len(text), nil
}

// End lets Run send what is kept, and no more.
func (b *Outbox) End() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done = true
	b.change.Broadcast()
}

// Run sends until the End, and returns why if it is another end.
func (b *Outbox) Run() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.failed == nil && (len(b.text) > 0 || !b.done) {
		if len(b.text) == 0 {
			b.change.Wait()
			continue
		}
		text := b.text
		b.text = nil
		b.mu.Unlock()
		_, err := b.out.Write(text)
		b.mu.Lock()
		b.failed = cmp.Or(b.failed, err)
		b.behind -= len(text)
		b.share.hold(b.behind)
		b.change.Broadcast()
		if b.calm != nil && b.behind <= freeRoom {
			b.calm()
			b.calm = nil
		}
	}
	err := b.failed
	b.failed = cmp.Or(err, io.ErrClosedPipe)
	b.text = nil
	b.share.hold(0)
	return err
}
