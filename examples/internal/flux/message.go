package flux

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/joblife/joblife/examples/internal/errno"
	"github.com/joblife/joblife/examples/internal/strict"
)

// A Type says what a message is.
type Type uint8

// The types of messages. RFC 3 has another one between brokers.
const (
	TypeRequest  Type = 1
	TypeResponse Type = 2
	TypeEvent    Type = 4
)

func (t Type) String() string {
	switch t {
	case TypeRequest:
		return "request"
	case TypeResponse:
		return "response"
	case TypeEvent:
		return "event"
	}
	return fmt.Sprintf("Type(%d)", uint8(t))
}

// Flags are bits of a message.
type Flags uint8

// The flags of messages. Topic, Payload and Route say which parts there are: the fields of a
// Message decide them.
const (
	FlagTopic      Flags = 1 << iota
	FlagPayload          // an empty payload is one
	FlagNoResponse       // the sender wants no response
	FlagRoute            // there is a route, though it may be empty
	FlagUpstream         // route it away from the rank Nodeid, which is the sender's
	FlagPrivate          // the event is for its sender and the owner of the instance
	FlagStreaming        // there may be many responses
	FlagUser1
)

// Has reports whether all flags of g are set.
func (f Flags) Has(g Flags) bool { return f&g == g }

// NodeidAny asks the closest broker that has the service, from here to rank 0. No rank is
// larger than NodeidMax.
const (
	NodeidAny uint32 = 1<<32 - 1
	NodeidMax uint32 = 1<<32 - 3
)

// UserUnknown lets the connection say who the sender is.
const UserUnknown uint32 = 1<<32 - 1

// The roles of a Rolemask. RoleLocal is about the connection: it came through a socket of this
// broker.
const (
	RoleOwner uint32 = 1 << iota
	RoleUser
	RoleLocal
	RoleAdmin
)

// A Message is one message of RFC 3. NewRequest and NewEvent make those of a client: the zero
// value is of no type, and its user is root.
type Message struct {
	Type     Type
	Flags    Flags
	UserID   uint32
	Rolemask uint32 // 0: the broker sets user and roles to those of the connection

	Nodeid   uint32 // of a request: a rank, or NodeidAny
	Matchtag uint32 // of a request or response; 0: nothing waits for a response
	Errnum   uint32 // of a response; 0: no error
	Seq      uint32 // of an event; rank 0 counts them from 1

	// Route has who passed a request on, the first sender first. A response has the route of its
	// request, and loses the last hop at each. Route[0] is no proof of who sent a request: a
	// client can put what it likes there. UserID is one.
	Route   []string
	Topic   string
	Payload []byte // as it is on the wire: a text ends in a NUL; nil: there is none
}

// NewRequest returns a request that any broker may serve, from the user of the connection.
func NewRequest(topic string, payload []byte) Message {
	return Message{Type: TypeRequest, Flags: FlagRoute, UserID: UserUnknown, Nodeid: NodeidAny, Topic: topic, Payload: payload}
}

// NewEvent returns an event from the user of the connection. Rank 0 numbers it.
func NewEvent(topic string, payload []byte) Message {
	return Message{Type: TypeEvent, Flags: FlagRoute, UserID: UserUnknown, Topic: topic, Payload: payload}
}

// Respond returns a response to the request m. Nobody wants it if m has FlagNoResponse.
func (m *Message) Respond(payload []byte) Message {
	return Message{
		Type: TypeResponse, Flags: m.Flags, UserID: UserUnknown, Matchtag: m.Matchtag,
		Route: slices.Clone(m.Route), Topic: m.Topic, Payload: payload,
	}
}

// Pong returns the answer to a ping of a service on rank 0: what came, as it came, and by which way.
func (m *Message) Pong() Message {
	text, err := m.JSON()
	if err != nil {
		return m.RespondError(errno.Protocol, "a ping is an object")
	}
	var hops []string
	for _, hop := range m.Route {
		hops = append(hops, hop[:min(8, len(hop))])
	}
	service, _ := m.Service()
	own, _ := json.Marshal(struct { // of words and numbers
		Route    string `json:"route"`
		UserID   uint32 `json:"userid"`
		Rolemask uint32 `json:"rolemask"`
		Rank     uint32 `json:"rank"`
	}{strings.Join(append(hops, service), "!"), m.UserID, m.Rolemask, 0})
	pong := append(make([]byte, 0, len(text)+len(own)+1), '{')
	for member := range strict.All(text) {
		switch member.Name(text) {
		case "route", "userid", "rolemask", "rank":
		default:
			pong = append(append(pong, text[member.Key:member.End]...), ',')
		}
	}
	return m.Respond(append(append(pong, own[1:]...), 0))
}

// RespondError is Respond with an error number, which is not 0, and a text that may be empty.
// ENODATA is the orderly end of many responses.
func (m *Message) RespondError(errnum uint32, text string) Message {
	r := m.Respond(nil)
	r.Errnum = errnum
	if text != "" {
		r.Payload = Text(text)
	}
	return r
}

// Sender returns the identity of who sent a request first, "" if it has no route.
func (m *Message) Sender() string {
	if len(m.Route) == 0 {
		return ""
	}
	return m.Route[0]
}

// isGuests reports whether a guest sent it. What has no roles is from the other end itself.
func (m *Message) isGuests() bool { return m.Rolemask != 0 && m.Rolemask&RoleOwner == 0 }

// Service returns the first word of the topic, which names the service of a request, and the
// rest, which names the method. A client that is gone makes a method disconnect, or x.disconnect
// if it has asked for x.y.
func (m *Message) Service() (service, method string) {
	service, method, _ = strings.Cut(m.Topic, ".")
	return service, method
}

// Err returns an *Error if the message is a response with an error number.
func (m *Message) Err() error {
	if m.Type != TypeResponse || m.Errnum == 0 {
		return nil
	}
	text, _, _ := bytes.Cut(m.Payload, []byte{0})
	return &Error{m.Topic, m.Errnum, string(text)}
}

// JSON returns the payload without its NUL if it is a JSON object, as those of texts have to be.
// The result is a part of the payload.
func (m *Message) JSON() ([]byte, error) {
	text, ok := bytes.CutSuffix(m.Payload, []byte{0})
	switch {
	case m.Payload == nil:
		return nil, fmt.Errorf("flux: %s: %w: no payload", quote(m.Topic), ErrMessage)
	case !ok:
		return nil, fmt.Errorf("flux: %s: %w: the payload does not end in a NUL", quote(m.Topic), ErrMessage)
	case !bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("{")) || !json.Valid(text):
		return nil, fmt.Errorf("flux: %s: %w: the payload is not a JSON object", quote(m.Topic), ErrMessage)
	}
	return text, nil
}

// Text returns a payload with a text and its final NUL.
func Text[T string | []byte](text T) []byte {
	return append(append(make([]byte, 0, len(text)+1), text...), 0)
}
