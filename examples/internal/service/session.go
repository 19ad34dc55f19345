package service

import "encoding/json"

// A session is what the sessions with a scheduler and with an executor have in common. The
// zero session has no peer. Messages wait until the peer reads, since all jobs together may
// have more to say than a peer may be behind.
type session struct {
	sender string   // the peer, whose disconnect ends the session
	begun  *Request // its hello
	live   bool     // what the Manager says is not for an earlier session
	list   []outgoing
}

// An outgoing adds a message to an Out, and returns its length. It encodes the message only
// then, so that a message that waits takes little memory.
type outgoing func(out *Out) int

func (p *session) add(o outgoing) { p.list = append(p.list, o) }

// begin begins a session. A Ready that the store has is not for it.
func (p *session) begin(c *core, r *Request) {
	p.sender, p.begun = r.Sender, r
	c.then = append(c.then, func() { p.live = p.live || p.begun == r })
}

// mark returns the Session of the hello, 0 without one.
func (p *session) mark() uint32 {
	if p.begun == nil {
		return 0
	}
	return p.begun.Session
}

const (
	maxFlow   = 1 << 20 // bytes to a peer in one Out, beside the last message
	maxBehind = 1 << 16 // messages that wait, beside four for each active job
)

// flow adds to out what the peer has room for; with a nil reads, everything.
func (p *session) flow(out *Out, reads func(sender string) bool) {
	if len(p.list) == 0 || reads != nil && !reads(p.sender) {
		return
	}
	for n := 0; len(p.list) > 0 && n < maxFlow; p.list = p.list[1:] {
		n += p.list[0](out)
		p.list[0] = nil
	}
}

// isFar reports whether more waits than maxBehind allows, so that the session must end.
func (p *session) isFar(c *core) bool {
	return len(p.list) > maxBehind && len(p.list) > maxBehind+4*c.activeJobs()
}

// drop ends a session whose peer does not know that it is over.
func (p *session) drop(c *core, lost func() error) error {
	sender := p.sender
	err := lost()
	c.quick.Ended = append(c.quick.Ended, sender)
	return err
}

// call adds a message that is a request to the peer.
func call[M any](p *session, topic string, tag uint64, appendTo func([]byte, M) ([]byte, error), m M) {
	p.add(func(out *Out) int {
		text, ok := encode(out, topic, appendTo, m)
		if ok {
			out.Calls = append(out.Calls, Call{Tag: tag, Topic: topic, To: p.sender, Session: p.mark(), Nodeid: Any, Payload: text})
		}
		return len(text)
	})
}

// encode encodes a message. If that fails, it logs the error.
func encode[M any](out *Out, topic string, appendTo func([]byte, M) ([]byte, error), m M) (json.RawMessage, bool) {
	text, err := appendTo(nil, m)
	if err != nil {
		out.errorf("%s: %v", topic, err)
	}
	return text, err == nil
}
