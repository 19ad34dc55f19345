// Package engine keeps an instance on NATS JetStream: the log of its records, who may append to
// it, and snapshots.
//
//	e, err := engine.Open(ctx, engine.Config{URL: url, Instance: "main"})
//	go e.Follow(ctx, from, records) // a standby, or a reader
//	h, err := e.Acquire(ctx)         // who tries
//	held := h.Hold(ctx)              // as long as it may
//	epoch, err := e.Fence(held)      // who writes: nobody who began before can append any more
//	err = e.Writer(epoch).Append(records)
//
// A Writer is a loop.Store. What Append has acknowledged is on the disk of the server, if that
// syncs each message (sync_interval: always), and in the order of its epoch. The lease decides
// only who tries: two that believe to have it do no harm, since the log has one last sequence.
package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/joblife/joblife/examples/cluster/wire"
)

// MaxMessage is how many bytes of records are in one message, and so the longest line of a
// record. A server needs max_payload of 64 KiB more.
const MaxMessage = 4 << 20

// A Config says where the engine of an instance is.
type Config struct {
	URL      string // "" means nats.DefaultURL
	Instance wire.Instance
	Name     string // of this process, as the server shows it; never used before
	Replicas int    // of the streams: 1, 3 or 5, or more where they have more; 0 means 1
	Plain    bool   // only messages: for nodes, and a manager whose records are elsewhere
	Options  []nats.Option
}

// An Engine is a connection to the engine of an instance. Any goroutine may use it.
type Engine struct {
	*nats.Conn
	wire.Instance
	js     jetstream.JetStream
	stream jetstream.Stream
	kv     jetstream.KeyValue
	name   string
	max    int
	leases atomic.Uint64 // that this process has written

	mu   sync.Mutex
	ping *nats.Subscription // once this process has tried to get the lease
}

// Open connects, and waits until the streams of the instance are there or ctx ends.
func Open(ctx context.Context, cfg Config) (*Engine, error) {
	cfg.URL = cmp.Or(cfg.URL, nats.DefaultURL)
	conn, err := nats.Connect(cfg.URL, append([]nats.Option{
		nats.Name(cfg.Name), nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.ReconnectWait(100 * time.Millisecond),
		nats.ReconnectJitter(0, 0), nats.ReconnectBufSize(-1), nats.PingInterval(2 * time.Second), nats.MaxPingsOutstanding(2),
	}, cfg.Options...)...)
	if err != nil {
		return nil, fmt.Errorf("engine: %s: %w", cfg.URL, err)
	}
	e := &Engine{Conn: conn, Instance: cfg.Instance, name: cfg.Name}
	if err := e.open(ctx, cfg); err != nil {
		conn.Close()
		return nil, fmt.Errorf("engine: %s: %w", cfg.URL, err)
	}
	return e, nil
}

// Make is Open for who may make the streams where there are none, and give those that are there
// more replicas.
func Make(ctx context.Context, cfg Config) (*Engine, error) {
	if cfg.Plain {
		return Open(ctx, cfg)
	}
	e, err := Open(ctx, Config{URL: cfg.URL, Name: cfg.Name, Options: cfg.Options})
	if err != nil {
		return nil, err
	}
	defer e.Close()
	err = e.retry(ctx, func(ctx context.Context) error { return e.make(ctx, cfg) })
	if err != nil {
		return nil, fmt.Errorf("engine: streams of %s: %w", cfg.Instance, err)
	}
	return Open(ctx, cfg)
}

func (e *Engine) open(ctx context.Context, cfg Config) (err error) {
	if e.js, err = jetstream.New(e.Conn); err != nil || cfg.Instance == "" || cfg.Plain {
		return err
	}
	return e.retry(ctx, func(ctx context.Context) error {
		var err error
		if e.stream, err = e.js.Stream(ctx, e.Log()); err != nil {
			return fmt.Errorf("stream %s: %w", e.Log(), err)
		}
		if e.kv, err = e.js.KeyValue(ctx, e.Bucket()); err != nil {
			return fmt.Errorf("bucket %s: %w", e.Bucket(), err)
		}
		e.max = min(MaxMessage, int(e.MaxPayload())-64<<10)
		return nil
	})
}

func (e *Engine) make(ctx context.Context, cfg Config) error {
	i, replicas := cfg.Instance, max(cfg.Replicas, 1)
	for _, s := range []jetstream.StreamConfig{
		{Name: i.Log(), Subjects: []string{i.Subject("log", ">")}, DenyDelete: true},
		{Name: i.Snapshots(), Subjects: []string{i.Subject("snap", ">")}},
		{Name: i.Archive(), Subjects: []string{i.Subject("archive", ">")}, MaxMsgsPerSubject: 1, AllowAtomicPublish: true},
	} {
		s.MaxBytes, s.Discard, s.AllowDirect, s.Replicas = -1, jetstream.DiscardNew, true, replicas
		if _, err := e.js.CreateStream(ctx, s); err != nil && !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			return fmt.Errorf("stream %s: %w", s.Name, err)
		}
	}
	_, err := e.js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: i.Bucket(), Storage: jetstream.FileStorage, Replicas: replicas})
	if err != nil && !errors.Is(err, jetstream.ErrBucketExists) {
		return fmt.Errorf("bucket %s: %w", i.Bucket(), err)
	}
	for _, name := range []string{i.Log(), i.Snapshots(), i.Archive(), "KV_" + i.Bucket()} {
		if err := e.raise(ctx, name, replicas); err != nil {
			return fmt.Errorf("stream %s: %w", name, err)
		}
	}
	return nil
}

// raise gives a stream that was there more replicas, if it has fewer.
func (e *Engine) raise(ctx context.Context, name string, replicas int) error {
	s, err := e.js.Stream(ctx, name)
	if err != nil {
		return err
	}
	if cfg := s.CachedInfo().Config; cfg.Replicas < replicas {
		cfg.Replicas = replicas
		_, err = e.js.UpdateStream(ctx, cfg)
	}
	return err
}

// errAlone is the error of a server that is in no cluster and is to keep several replicas, and errMany
// that of more than a stream can have.
var errAlone, errMany = &jetstream.APIError{ErrorCode: 10074}, &jetstream.APIError{ErrorCode: 10052}

// retry calls f until it succeeds or ctx ends: the servers may be starting, or electing. What no
// message can have, or no stream, or no server that is alone, is an error at once.
func (e *Engine) retry(ctx context.Context, f func(context.Context) error) error {
	for {
		try, cancel := context.WithTimeout(ctx, 2*time.Second)
		err := f(try)
		cancel()
		if errors.Is(err, nats.ErrReconnectBufExceeded) { // what is said for want of a connection
			err = fmt.Errorf("%w: is it up?", nats.ErrNoServers)
		}
		if err == nil || ctx.Err() != nil || errors.Is(err, nats.ErrMaxPayload) || errors.Is(err, errAlone) || errors.Is(err, errMany) {
			return err
		}
		if wire.Pause(ctx, 100*time.Millisecond) != nil {
			return err
		}
	}
}

// within puts what failed before an error, if there is one.
func within(what string, err *error) {
	if *err != nil {
		*err = fmt.Errorf("engine: %s: %w", what, *err)
	}
}

// Name returns the name of this process.
func (e *Engine) Name() string { return e.name }
