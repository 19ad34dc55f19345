// Package fluxtest has a broker of Flux for tests that have no Flux. It is alone in its instance
// and has the services that clients register, those that a test writes in Go, and attr.get,
// config.get, log.append and state-machine.monitor.
//
//	b := fluxtest.Start(t)
//	b.Serve("kvs.commit", func(q flux.Message, answer func(flux.Message)) {
//		answer(q.Respond(flux.Text(`{"rootseq":1}`)))
//	})
//	c, err := flux.Dial(ctx, flux.Config{URI: b.URI()})
//
// As a real one, it trusts the owner's connections: a message with a Rolemask comes from the
// user that it says, so one connection can play many users.
package fluxtest

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/examples/internal/errno"
	"github.com/joblife/joblife/examples/internal/flux"
)

// A Service answers requests. It may keep answer and call it later, from any goroutine, or
// many times. It is called by one goroutine for each client, and must not wait for that client.
type Service = func(q flux.Message, answer func(flux.Message))

// A Broker is a fake. Its methods may be called by many goroutines.
type Broker struct {
	t    testing.TB
	path string
	wg   sync.WaitGroup

	mu       sync.Mutex
	listener net.Listener
	refusal  byte
	count    int // of connections, for identities
	clients  map[string]*client
	services map[string]Service // by topic, or by the name of a service
	owners   map[string]*client // of services, by name
	faults   map[string]fault   // by topic
	seq      uint32             // of the last event
	attrs    map[string]string
	config   string
	readers  []func(config string)
	state    flux.State
	followed []func(flux.State)
	log      []string
}

// A fault is what happens to the requests of a topic.
type fault struct {
	errnum uint32
	text   string
	held   *[]func() // what is to do when the topic is let go; nil: it is not held
}

// Start starts a broker that ends with the test.
func Start(t testing.TB) *Broker {
	dir, err := os.MkdirTemp("", "flux") // t.TempDir is too long for a socket
	require.NoError(t, err)
	b := &Broker{
		t: t, path: filepath.Join(dir, "local-0"), clients: make(map[string]*client), services: make(map[string]Service),
		owners: make(map[string]*client), faults: make(map[string]fault), config: "{}", state: flux.StateRun,
		attrs: map[string]string{"rank": "0", "size": "1", "hostlist": "fake", "security.owner": fmt.Sprint(os.Getuid()),
			"version": "0.88.0"},
	}
	b.builtins()
	b.Listen()
	t.Cleanup(func() {
		b.Stop()
		b.wg.Wait()
		require.NoError(t, os.RemoveAll(dir))
	})
	return b
}

// URI returns what clients dial.
func (b *Broker) URI() string { return "local://" + b.path }

// Listen lets clients in. Start has done so; it is for after Stop.
func (b *Broker) Listen() {
	l, err := net.Listen("unix", b.path)
	if err != nil {
		b.t.Errorf("fluxtest: %v", err)
		return
	}
	b.mu.Lock()
	b.listener = l
	b.mu.Unlock()
	b.wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			b.accept(conn)
		}
	})
}

// Stop ends all connections and lets nobody in. Services in Go stay.
func (b *Broker) Stop() {
	b.mu.Lock()
	if b.listener != nil {
		_ = b.listener.Close()
		b.listener = nil
	}
	b.mu.Unlock()
	b.Cut()
}

// Cut ends all connections, and with them the services of clients. They can connect again.
func (b *Broker) Cut() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.clients {
		_ = c.socket.Close()
		c.leave()
	}
}

// Refuse has clients that connect from now on refused with an error number. 0 lets them in.
func (b *Broker) Refuse(errnum byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refusal = errnum
}

// Serve has a Service answer the requests of a topic, or those of all topics of a service if it
// gets a name without a period. nil takes it away.
func (b *Broker) Serve(topic string, s Service) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.services[topic] = s; s == nil {
		delete(b.services, topic)
	}
}

// Fail has all requests of a topic answered with an error, even service.add. 0 ends that.
func (b *Broker) Fail(topic string, errnum uint32, text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.faults[topic] = fault{errnum: errnum, text: text}
}

// Hold keeps all requests of a topic until the function that it returns is called.
func (b *Broker) Hold(topic string) (release func()) {
	held := new([]func())
	b.mu.Lock()
	b.faults[topic] = fault{held: held}
	b.mu.Unlock()
	return func() {
		b.mu.Lock()
		list := *held
		delete(b.faults, topic)
		b.mu.Unlock()
		for _, do := range list {
			do()
		}
	}
}

// publish numbers an event, and sends it to those who want it.
func (b *Broker) publish(e flux.Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seq++
	e.Seq = b.seq
	e.Flags |= flux.FlagRoute
	e.Route = append(e.Route, hop)
	for _, c := range b.clients {
		if c.wants(e.Topic) {
			c.send(e)
		}
	}
}

// Await waits until a client has registered a service, or the test ends.
func (b *Broker) Await(service string) {
	require.Eventually(b.t, func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.owners[service] != nil
	}, waitLimit, waitStep, "no client has registered %s", service)
}

// request routes a request, with what passed it on in its route.
func (b *Broker) request(c *client, q flux.Message) {
	answer := func(r flux.Message) {
		r.UserID, r.Rolemask = uint32(os.Getuid()), flux.RoleOwner // of this instance
		if !q.Flags.Has(flux.FlagNoResponse) {
			b.respond(r)
		}
	}
	b.mu.Lock()
	f := b.faults[q.Topic]
	if f.held != nil {
		*f.held = append(*f.held, func() { b.request(c, q) })
	}
	word, _ := q.Service()
	s, owner := b.services[q.Topic], b.owners[word]
	if s == nil {
		s = b.services[word]
	}
	b.mu.Unlock()
	switch {
	case f.held != nil:
	case f.errnum != 0:
		answer(q.RespondError(f.errnum, f.text))
	case q.Nodeid != 0 && q.Nodeid != flux.NodeidAny || q.Flags.Has(flux.FlagUpstream):
		answer(q.RespondError(errno.Unreachable, ""))
	case b.local(c, &q, answer):
	case s != nil:
		s(q, answer)
	case owner != nil && strings.HasPrefix(q.Topic, word+"."):
		owner.send(q)
	default:
		answer(q.RespondError(errno.NoSys, "No service matching "+q.Topic+" is registered"))
	}
}

// respond passes a response on to the last hop of its route, if that is there.
func (b *Broker) respond(r flux.Message) {
	n := len(r.Route) - 2
	if n < 0 || r.Route[n+1] != hop {
		return // it is for nobody
	}
	b.mu.Lock()
	c := b.clients[r.Route[n]]
	b.mu.Unlock()
	if c != nil {
		r.Route = r.Route[:n]
		c.send(r)
	}
}
