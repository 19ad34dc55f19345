package fluxtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

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
	b    *Broker
	id   string
	conn net.Conn

	mu     sync.Mutex
	change sync.Cond
	out    []byte
	over   bool

	topics []string                // subscriptions; guarded by Broker.mu
	byes   map[string]flux.Message // to send when it is gone; of its reader
}

func (b *Broker) accept(conn net.Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refusal != 0 || b.listener == nil {
		_, _ = conn.Write([]byte{max(b.refusal, errno.Perm)})
		_ = conn.Close()
		return
	}
	b.count++
	c := &client{
		b: b, id: fmt.Sprintf("00000000-0000-4000-8000-%012d", b.count), conn: conn,
		byes: make(map[string]flux.Message), out: []byte{0},
	}
	c.change.L = &c.mu
	b.clients[c.id] = c
	b.wg.Go(c.write)
	b.wg.Go(c.read)
}

// send sends a message without a wait.
func (c *client) send(m flux.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if out, err := flux.AppendFrame(c.out, &m); err == nil {
		c.out = out
		c.change.Signal()
	} else {
		c.b.t.Errorf("fluxtest: %s for client %s: %v", m.Type, c.id, err)
	}
}

func (c *client) write() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.over {
		if len(c.out) == 0 {
			c.change.Wait()
			continue
		}
		out := c.out
		c.out = nil
		c.mu.Unlock()
		_, err := c.conn.Write(out)
		c.mu.Lock()
		c.over = c.over || err != nil
	}
}

// read handles what the client sends, and says good-bye for it.
func (c *client) read() {
	r := flux.NewReader(c.conn, 1<<30) // a broker has no limit
	for {
		m, err := r.Read()
		if errors.As(err, new(*flux.SkipError)) {
			c.b.t.Errorf("fluxtest: client %s: %v", c.id, err)
		} else if err != nil {
			break
		} else {
			c.handle(m)
		}
	}
	_ = c.conn.Close()
	c.mu.Lock()
	c.over = true
	c.change.Signal()
	c.mu.Unlock()
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
