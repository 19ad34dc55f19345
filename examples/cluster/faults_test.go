package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/examples/cluster/auth"
	"github.com/joblife/joblife/examples/cluster/client"
	"github.com/joblife/joblife/examples/cluster/engine"
	"github.com/joblife/joblife/examples/cluster/wire"
	"github.com/joblife/joblife/perilog"
)

// A proxy is a network that can be cut.
type proxy struct {
	to string

	mu    sync.Mutex
	cut   bool
	conns []net.Conn
}

// newProxy returns a proxy to a server, and its URL.
func newProxy(t *testing.T, url string) (*proxy, string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &proxy{to: strings.TrimPrefix(url, "nats://")}
	t.Cleanup(func() {
		_ = l.Close()
		p.set(true)
	})
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go p.serve(c)
		}
	}()
	return p, "nats://" + l.Addr().String()
}

func (p *proxy) serve(c net.Conn) {
	defer c.Close()
	s, err := net.Dial("tcp", p.to)
	if err != nil {
		return
	}
	defer s.Close()
	p.mu.Lock()
	if p.cut {
		p.mu.Unlock()
		return
	}
	p.conns = append(p.conns, c, s)
	p.mu.Unlock()
	go func() {
		_, _ = io.Copy(s, c)
		_ = s.Close()
	}()
	_, _ = io.Copy(c, s)
}

// set cuts the network, or mends it.
func (p *proxy) set(cut bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cut = cut; cut {
		for _, c := range p.conns {
			_ = c.Close()
		}
		p.conns = nil
	}
}

// A manager and a node lose their network again and again.
func TestNothingIsLostByACutNetwork(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a minute")
	}
	eachRound(t, 60, func(ctx context.Context, t *testing.T, n int) {
		f := launch(t, fleetConfig{nodes: 4})
		first, url := newProxy(t, f.file.URL)
		f.start("manager -nats " + url)
		second, url := newProxy(t, f.file.URL)
		f.start("manager -nats " + url)
		node, url := newProxy(t, f.file.URL)
		f.kill("node 0")
		f.start("node -nats " + url + " 0")
		f.check(ctx, f.under(ctx, t, n, func(*rand.Rand) time.Duration {
			p := []*proxy{first, second, node}[rand.IntN(3)]
			p.set(true)
			time.Sleep(rand.N(3500 * time.Millisecond))
			p.set(false)
			return rand.N(time.Second)
		}))
	})
}

// A log that has no room stops the instance, and goes on when it has.
func TestNothingIsLostByAFullLog(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a minute")
	}
	eachRound(t, 60, func(ctx context.Context, t *testing.T, n int) {
		f := launch(t, fleetConfig{nodes: 4, managers: 2})
		_ = f.active(ctx)
		conn, err := nats.Connect(f.file.URL, f.options(auth.Manager())...)
		require.NoError(t, err)
		defer conn.Close()
		js, err := jetstream.New(conn)
		require.NoError(t, err)
		stream, err := js.Stream(ctx, f.file.Instance.Log())
		require.NoError(t, err)
		room := func(bytes int64) {
			cfg := stream.CachedInfo().Config
			cfg.MaxBytes = bytes
			_, err := js.UpdateStream(ctx, cfg)
			require.NoError(t, err)
		}
		grown, step := int64(0), int64(n)*1000/3
		jobs := f.under(ctx, t, n, func(*rand.Rand) time.Duration {
			grown += step
			room(grown)
			return 4 * time.Second // long enough for a manager to lose its lease
		})
		require.Greater(t, grown, 3*step, "the log was never full")
		room(-1)
		f.check(ctx, jobs)
	})
}

// A standby that has read more than a log that is restored begins again with that log.
func TestAStandbyBeginsAgainWithALogThatIsRestored(t *testing.T) {
	w := begin(t, 1, perilog.Config{})
	dir, old := filepath.Join(w.dir, "mine"), filepath.Join(w.dir, "backup")
	s, err := engine.Serve(engine.Server{URL: "nats://127.0.0.1:0", Dir: dir}, "")
	require.NoError(t, err)
	w.url = s.ClientURL()
	ctx := within(t, time.Minute)
	e, err := engine.Make(ctx, engine.Config{URL: w.url, Instance: "main", Name: "other"})
	require.NoError(t, err)
	defer e.Close()
	w.Client, err = client.Open(w.url, "main", w.cfg.Owner)
	require.NoError(t, err)
	defer w.Client.Close()
	copied := func(to, from string) { // while no server runs
		s.Shutdown()
		s.WaitForShutdown()
		require.NoError(t, os.RemoveAll(to))
		require.NoError(t, os.CopyFS(to, os.DirFS(from)))
		s, err = engine.Serve(engine.Server{URL: w.url, Dir: dir}, "")
		require.NoError(t, err)
	}
	defer func() { s.Shutdown(); s.WaitForShutdown() }()

	active := w.manager()
	before := w.submit(ctx, "", 1, "true")
	copied(old, dir)
	after := w.submit(ctx, "", 1, "true")
	w.manager()
	last, _, err := e.Last(ctx)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		status, err := w.Ask(ctx, "status", wire.Request{})
		return err == nil && len(status.Status.Standbys) == 1 && status.Status.Standbys[0].Seq >= last
	}, 20*time.Second, 50*time.Millisecond)
	copied(dir, old)
	active()
	_, err = w.Job(ctx, before)
	require.NoError(t, err)
	_, err = w.Job(ctx, after)
	require.ErrorIs(t, err, client.ErrRefused)
}

// Streams that were made with fewer replicas than the instance has now get as many, and keep more.
func TestStreamsGetMoreReplicas(t *testing.T) {
	f := launch(t, fleetConfig{nodes: 2, servers: 3, simulate: true})
	ctx := within(t, time.Minute)
	for i, n := range []int{1, 3, 1} {
		e, err := engine.Make(ctx, engine.Config{URL: f.file.URL, Instance: "main", Name: fmt.Sprint("make-", i), Replicas: n, Options: f.options(auth.Manager())})
		require.NoError(t, err)
		defer e.Close()
		js, err := jetstream.New(e.Conn)
		require.NoError(t, err)
		for _, name := range []string{e.Log(), e.Snapshots(), e.Instance.Archive(), "KV_" + e.Bucket()} {
			s, err := js.Stream(ctx, name)
			require.NoError(t, err)
			require.Equal(t, []int{1, 3, 3}[i], s.CachedInfo().Config.Replicas, name)
		}
	}
}
