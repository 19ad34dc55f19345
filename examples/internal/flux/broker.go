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
	text, err := m.JSON()
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, out); err != nil {
		return fmt.Errorf("flux: %s: %w: %w", quote(topic), ErrMessage, err)
	}
	return nil
}

// Register makes this client a service of its broker: requests whose topic begins with the name
// and a period reach Handle. EEXIST says that the broker has such a service. When a client that
// has sent requests is gone, a request SERVICE.disconnect comes for each service that it asked.
func (c *Conn) Register(ctx context.Context, service string) error {
	return c.CallJSON(ctx, "service.add", NodeidAny, map[string]string{"service": service}, nil)
}

// Unregister takes Register back.
func (c *Conn) Unregister(ctx context.Context, service string) error {
	return c.CallJSON(ctx, "service.remove", NodeidAny, map[string]string{"service": service}, nil)
}

// Subscribe asks for the events whose topic begins with a text; "" asks for all. Two of the same
// text need two of Unsubscribe. An event comes once, however many texts fit.
func (c *Conn) Subscribe(ctx context.Context, topic string) error {
	return c.CallJSON(ctx, "event.subscribe", NodeidAny, map[string]string{"topic": topic}, nil)
}

// Unsubscribe takes Subscribe back. ENOENT says that there was none.
func (c *Conn) Unsubscribe(ctx context.Context, topic string) error {
	return c.CallJSON(ctx, "event.unsubscribe", NodeidAny, map[string]string{"topic": topic}, nil)
}
