package fluxtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/examples/internal/errno"
	"github.com/joblife/joblife/examples/internal/flux"
)

const (
	waitLimit = 10 * time.Second
	waitStep  = time.Millisecond

	// hop is the identity of the module that serves the socket: requests have it last in their
	// route.
	hop = "10000000-0000-4000-8000-000000000000"
)

// A client is one connection.
type client struct {
	*flux.Conn // without a limit, as a broker has none
	b          *Broker
	id         string
	socket     net.Conn

	topics []string                // subscriptions; guarded by Broker.mu
	byes   map[string]flux.Message // to send when it is gone; of its reader
}

func (b *Broker) accept(socket net.Conn) {
	b.mu.Lock() // no message is handled before the client is whole
	defer b.mu.Unlock()
	if b.refusal != 0 || b.listener == nil {
		_, _ = socket.Write([]byte{max(b.refusal, errno.Perm)})
		_ = socket.Close()
		return
	}
	_, _ = socket.Write([]byte{0}) // it is let in
	b.count++
	c := &client{b: b, id: idOf(b.count), socket: socket, byes: make(map[string]flux.Message)}
	b.clients[c.id] = c
	c.Conn = flux.New(socket, flux.Config{Handle: c.handle, Max: 1 << 30, Room: math.MaxInt, Skipped: func(err error) {
		b.t.Errorf("fluxtest: client %s: %v", c.id, err)
	}})
	b.wg.Go(c.follow)
}

// Load makes the next program a module of the name. It finds its connection in the environment, as if
// it had read its welcome. said gets what it says of its state.
func (b *Broker) Load(name string, said func(flux.Message)) {
	conn, err := net.Dial("unix", b.path)
	require.NoError(b.t, err)
	_, err = conn.Read(make([]byte, 1)) // it is let in
	require.NoError(b.t, err)
	b.mu.Lock()
	b.owners[name] = b.clients[idOf(b.count)]
	b.mu.Unlock()
	b.Serve("module.status", func(q flux.Message, answer func(flux.Message)) {
		said(q)
		answer(q.Respond(nil))
	})
	f, err := conn.(*net.UnixConn).File()
	require.NoError(b.t, errors.Join(err, conn.Close()))
	b.t.Setenv(flux.ModuleURI, fmt.Sprintf("fd://%d", f.Fd()))
	b.t.Cleanup(func() { _ = f.Close() }) // the program has closed it, if all went well
}

func idOf(count int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", count) }

// send sends a message without a wait.
func (c *client) send(m flux.Message) {
	if err := c.Send(m); err != nil && c.Err() == nil {
		c.b.t.Errorf("fluxtest: %s for client %s: %v", m.Type, c.id, err)
	}
}

// follow says good-bye for a client when it is gone.
func (c *client) follow() {
	<-c.Done()
	_ = c.Close()
	c.b.mu.Lock()
	c.leave()
	c.b.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(c.byes)) {
		c.b.request(c, c.byes[key])
	}
}

// leave takes away what a client has here. Broker.mu is held.
func (c *client) leave() {
	delete(c.b.clients, c.id)
	maps.DeleteFunc(c.b.owners, func(_ string, owner *client) bool { return owner == c })
}

// handle does what a broker does with a message of its client.
func (c *client) handle(m flux.Message) {
	if m.UserID == flux.UserUnknown {
		m.UserID = uint32(os.Getuid())
	}
	if m.Rolemask == 0 {
		m.Rolemask = flux.RoleOwner | flux.RoleLocal
	}
	m.Flags |= flux.FlagRoute
	switch m.Type {
	case flux.TypeRequest:
		m.Route = append(m.Route, c.id, hop)
		if !isLocal(m.Topic) && !m.Flags.Has(flux.FlagNoResponse) {
			bye := m
			bye.Topic = m.Topic[:strings.LastIndexByte(m.Topic, '.')+1] + "disconnect"
			bye.Flags |= flux.FlagNoResponse
			bye.Payload = nil
			if key := fmt.Sprint(bye.Topic, bye.Nodeid); c.byes[key].Type == 0 {
				c.byes[key] = bye
			}
		}
		c.b.request(c, m)
	case flux.TypeResponse:
		c.b.respond(m)
	case flux.TypeEvent:
		m.Route = append(m.Route, hop)
		c.b.publish(m)
	}
}

// wants reports whether a client has subscribed to a topic. Broker.mu is held.
func (c *client) wants(topic string) bool {
	return slices.ContainsFunc(c.topics, func(prefix string) bool { return strings.HasPrefix(topic, prefix) })
}

func isLocal(topic string) bool {
	return topic == "service.add" || topic == "event.subscribe"
}

// local serves what is about the connection itself, and reports whether it is.
func (b *Broker) local(from *client, q *flux.Message, answer func(flux.Message)) bool {
	if !isLocal(q.Topic) {
		return false
	}
	var in struct{ Service, Topic *string }
	text, err := q.JSON()
	if err == nil {
		err = json.Unmarshal(text, &in)
	}
	arg := in.Topic
	if strings.HasPrefix(q.Topic, "service.") {
		arg = in.Service
	}
	if err != nil || arg == nil {
		answer(q.RespondError(errno.Protocol, ""))
		return true
	}
	b.mu.Lock()
	errnum := from.local(q.Topic, *arg)
	b.mu.Unlock()
	answer(q.RespondError(errnum, ""))
	return true
}

// local does what the topic says, and returns an error number. Broker.mu is held.
func (c *client) local(topic, arg string) uint32 {
	switch {
	case topic == "event.subscribe":
		c.topics = append(c.topics, arg)
	case strings.Contains(arg, "."):
		return errno.Invalid
	case c.b.owners[arg] != nil || c.b.services[arg] != nil:
		return errno.Exists
	default:
		c.b.owners[arg] = c
	}
	return 0
}
