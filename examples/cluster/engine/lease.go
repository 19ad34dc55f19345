package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const leaseKey = "active"

// TTL is how long a lease lasts that is not renewed. Its holder renews it four times as often.
const TTL = 2 * time.Second

// ErrLost is the cause of the end of a context of Hold.
var ErrLost = errors.New("engine: another manager has the lease, or it could not be renewed")

// A Lease says who is active. Holder is "" after an orderly end.
type Lease struct {
	Holder  string    `json:"holder"`
	Count   uint64    `json:"count"` // of renewals, so that no two have the same text
	Renewed time.Time `json:"-"`     // by the clock of the server
}

// Active returns the lease as it is, with its revision.
func (e *Engine) Active(ctx context.Context) (l Lease, revision uint64, err error) {
	defer within("lease", &err)
	entry, err := e.entry(ctx, leaseKey)
	if err == nil && entry != nil {
		l.Renewed, revision, err = entry.Created(), entry.Revision(), json.Unmarshal(entry.Value(), &l)
	}
	return l, revision, err
}

// Acquire waits until this process has the lease: it was free, or was not renewed for the time
// TTL by the clock of this process, or nobody listens any more who has it. Hold is next.
func (e *Engine) Acquire(ctx context.Context) (*Held, error) {
	if err := e.answerPings(); err != nil {
		return nil, fmt.Errorf("engine: lease: %w", err)
	}
	var seen uint64
	var since time.Time
	silent := 0
	for ; ; time.Sleep(TTL / 20) {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		try, cancel := context.WithTimeout(ctx, TTL)
		l, rev, err := e.Active(try)
		if err == nil && rev != seen {
			seen, since = rev, time.Now()
		}
		if err == nil && l.Holder != "" && time.Since(since) < TTL {
			_, pingErr := e.RequestWithContext(try, e.Subject("ping", l.Holder), nil)
			if silent++; !errors.Is(pingErr, nats.ErrNoResponders) {
				silent = 0
			}
		}
		if err == nil && (l.Holder == "" || silent >= 2 || time.Since(since) >= TTL) {
			h := &Held{e: e, done: make(chan struct{})}
			h.renewed.Store(h.begin())
			if h.revision, err = e.lease(try, e.name, rev); err == nil {
				cancel()
				return h, nil
			}
		}
		cancel()
	}
}

// answerPings says that this process lives, as long as it does.
func (e *Engine) answerPings() (err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ping == nil {
		e.ping, err = e.Subscribe(e.Subject("ping", e.name), func(m *nats.Msg) { _ = m.Respond(nil) })
	}
	return err
}

// lease gives the lease to somebody, "" for nobody. Each text is another, so that it is known
// which one was written if an answer is lost.
func (e *Engine) lease(ctx context.Context, holder string, revision uint64) (uint64, error) {
	text, err := json.Marshal(Lease{Holder: holder, Count: e.leases.Add(1)})
	if err != nil {
		return 0, err
	}
	return e.Update(ctx, leaseKey, text, revision)
}

// A Held is the lease of this process, which Hold renews.
type Held struct {
	e        *Engine
	revision uint64
	done     chan struct{}
	renewed  atomic.Pointer[renewal]
}

// A renewal is when one began that succeeded, and after how many reconnects of this process.
type renewal struct {
	at         time.Time
	reconnects uint64
}

func (h *Held) begin() *renewal { return &renewal{time.Now(), h.e.Stats().Reconnects} }

// Fresh reports whether the lease was renewed within the time TTL over the connection that there
// is, so that no other process has it: one gets it sooner if the server knows nobody who listens.
// Ask after what it is about: this process may have been stopped meanwhile.
func (h *Held) Fresh() bool {
	r := h.renewed.Load()
	return r.good() && h.e.IsConnected() && h.e.Stats().Reconnects == r.reconnects
}

func (r *renewal) good() bool { return time.Since(r.at) < TTL }

// Hold renews the lease at once and from now on; call it once. The context ends with ErrLost when another
// process has it, or when it was not renewed for the time TTL, and when ctx ends. It has ended
// already if the lease is not Fresh any more: this process may have been stopped since Acquire.
func (h *Held) Hold(ctx context.Context) context.Context {
	ctx, lost := context.WithCancelCause(ctx)
	if !h.Fresh() {
		lost(ErrLost)
	}
	go func() {
		defer close(h.done)
		lost(h.renew(ctx))
	}()
	return ctx
}

func (h *Held) renew(ctx context.Context) error {
	tick := time.NewTicker(TTL / 4)
	defer tick.Stop()
	for ctx.Err() == nil {
		began := h.begin()
		try, cancel := context.WithTimeout(ctx, min(TTL/4, TTL-time.Since(h.renewed.Load().at)))
		revision, err := h.e.lease(try, h.e.name, h.revision)
		if err == nil {
			h.revision = revision
			h.renewed.Store(began)
		} else if errors.Is(err, ErrLost) {
			var now Lease
			if now, revision, err = h.e.Active(try); err == nil && now.Holder == h.e.name {
				h.revision = revision // of an earlier renewal, of which no answer came
			} else if err == nil {
				err = ErrLost
			}
		}
		cancel()
		if errors.Is(err, ErrLost) || !h.renewed.Load().good() {
			return ErrLost
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	return context.Cause(ctx)
}

// Release gives the lease back, after the context of Hold has ended: the next one takes over at
// once.
func (h *Held) Release(ctx context.Context) error {
	<-h.done
	now, revision, err := h.e.Active(ctx)
	if err == nil && now.Holder == h.e.name {
		_, err = h.e.lease(ctx, "", revision)
	}
	return err
}

// entry returns a key of the instance, and nil if there is none.
func (e *Engine) entry(ctx context.Context, key string) (entry jetstream.KeyValueEntry, err error) {
	defer within("key "+key, &err)
	err = e.retry(ctx, func(ctx context.Context) error {
		var err error
		if entry, err = e.kv.Get(ctx, key); errors.Is(err, jetstream.ErrKeyNotFound) {
			entry, err = nil, nil
		}
		return err
	})
	return entry, err
}

// Get returns the value of a key of the instance, and nil and 0 if there is none.
func (e *Engine) Get(ctx context.Context, key string) (value []byte, revision uint64, err error) {
	entry, err := e.entry(ctx, key)
	if err != nil || entry == nil {
		return nil, 0, err
	}
	return entry.Value(), entry.Revision(), nil
}

// Update sets the value of a key that has a revision, 0 if there is none. It returns the new
// revision. The error is ErrLost if somebody else has changed it.
func (e *Engine) Update(ctx context.Context, key string, value []byte, revision uint64) (next uint64, err error) {
	defer within("key "+key, &err)
	lost := false
	err = e.retry(ctx, func(ctx context.Context) error {
		var err error
		if next, err = e.kv.Update(ctx, key, value, revision); err == nil {
			return nil
		}
		now, rev, readErr := e.Get(ctx, key)
		switch {
		case readErr != nil || rev <= revision: // perhaps of a replica that lags behind
			return err
		case bytes.Equal(now, value): // the answer was lost
			next = rev
		default:
			lost = true
		}
		return nil
	})
	if lost {
		err = ErrLost
	}
	return next, err
}
