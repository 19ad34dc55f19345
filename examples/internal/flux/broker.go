package flux

import (
	"context"
	"encoding/json"
	"fmt"
)

// CallJSON is Call with JSON on both sides. The request has no payload if in is nil, and the
// payload of the response is dropped if out is nil.
func (c *Conn) CallJSON(ctx context.Context, topic string, nodeid uint32, in, out any) error {
	var payload []byte
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("flux: %s: %w", quote(topic), err)
		}
		payload = Text(text)
	}
	m, err := c.Call(ctx, topic, nodeid, payload)
	if err != nil || out == nil {
		return err
	}
	return m.unmarshal(out)
}

// unmarshal decodes the payload.
func (m *Message) unmarshal(out any) error {
	text, err := m.JSON()
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, out); err != nil {
		return fmt.Errorf("flux: %s: %w: %w", quote(m.Topic), ErrMessage, err)
	}
	return nil
}

// Register makes this client a service of its broker: requests whose topic begins with the name
// and a period reach Handle. EEXIST says that the broker has such a service, EINVAL that the
// name has a period. When a client that wanted answers is gone, a request SERVICE.disconnect
// with the same route comes, which wants none. Nobody answers what a service leaves open when
// its own connection ends.
func (c *Conn) Register(ctx context.Context, service string) error {
	return c.CallJSON(ctx, "service.add", NodeidAny, map[string]string{"service": service}, nil)
}

// Subscribe asks for the events whose topic begins with a text; "" asks for all. An event comes
// once, however many texts fit.
func (c *Conn) Subscribe(ctx context.Context, topic string) error {
	return c.CallJSON(ctx, "event.subscribe", NodeidAny, map[string]string{"topic": topic}, nil)
}

// Attr returns an attribute of the broker, such as rank, size, hostlist or security.owner.
// ENOENT says that it has none of that name.
func (c *Conn) Attr(ctx context.Context, name string) (string, error) {
	var out struct{ Value string }
	err := c.CallJSON(ctx, "attr.get", NodeidAny, map[string]string{"name": name}, &out)
	return out.Value, err
}

// GetConfig decodes the configuration of the broker, an object of the tables of its TOML files.
func (c *Conn) GetConfig(ctx context.Context, out any) error {
	return c.CallJSON(ctx, "config.get", NodeidAny, nil, out)
}

// FollowConfig calls f with the text of the configuration, and again after each change of it,
// from the goroutine of Handle, until an error. Forget ends it.
func (c *Conn) FollowConfig(f func(text []byte, err error)) (matchtag uint32, err error) {
	m := NewRequest("config.get", nil)
	m.Flags |= FlagStreaming
	return c.Start(m, func(m Message, err error) {
		if err != nil {
			f(nil, err)
			return
		}
		f(m.JSON())
	})
}

// A State is what a broker does, by the numbers of flux-core 0.88. Other versions have others.
type State int

// The states of a broker in their order.
const (
	StateLoadBuiltins State = iota
	StateJoin
	StateConfigSync
	StateInit   // rc1 loads the modules
	StateQuorum // it waits for other brokers
	StateRun    // the initial program runs
	StateCleanup
	StateShutdown // it waits for the brokers below
	StateFinalize // rc3 removes the modules
	StateGoodbye
	StateUnloadBuiltins
	StateExit
)

// FollowState calls f with the state of the broker, and again with each that follows, from the
// goroutine of Handle, until an error. A program that manages jobs ends them at StateCleanup.
func (c *Conn) FollowState(f func(State, error)) (matchtag uint32, err error) {
	m := NewRequest("state-machine.monitor", nil)
	m.Flags |= FlagStreaming
	return c.Start(m, func(m Message, err error) {
		var out struct{ State *State }
		if err == nil {
			err = m.unmarshal(&out)
		}
		if err == nil && out.State == nil {
			err = fmt.Errorf("flux: %s: %w: no state", m.Topic, ErrMessage)
		}
		if err != nil {
			f(0, err)
			return
		}
		f(*out.State, nil)
	})
}
