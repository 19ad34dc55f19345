package flux

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// The limits of a message beside its size.
const (
	MaxHops  = 256
	MaxHop   = 255  // bytes of an identity in a route
	MaxTopic = 1024 // bytes
)

const (
	magic     = 0x8e
	version   = 1
	protoSize = 20

	long = 255 // it stands for a length of four bytes that follow
)

// Parse decodes a message, without the frame around it. The payload is a part of b. It refuses
// what AppendBinary would write in another way. The error is ErrMessage or ErrLimit, with an
// offset in b.
func Parse(b []byte) (m Message, err error) {
	p := parser{b: b}
	if len(b) < 1+protoSize || b[len(b)-1-protoSize] != protoSize {
		return m, malformed(max(0, len(b)-1-protoSize), "no block of %d bytes at the end", protoSize)
	}
	p.end = len(b) - 1 - protoSize
	if err := m.proto(b[p.end+1:], p.end+1); err != nil {
		return Message{}, err
	}
	if m.Flags.Has(FlagRoute) {
		if m.Route, err = p.route(); err != nil {
			return Message{}, err
		}
	}
	if m.Flags.Has(FlagTopic) {
		if m.Topic, err = p.topic(); err != nil {
			return Message{}, err
		}
	}
	if m.Flags.Has(FlagPayload) {
		if m.Payload, err = p.part(); err != nil {
			return Message{}, err
		}
	}
	if p.at != p.end {
		return Message{}, malformed(p.at, "%d bytes that no flag speaks of", p.end-p.at)
	}
	return m, nil
}

// proto decodes the block at the end of a message, which lies at an offset of it.
func (m *Message) proto(b []byte, offset int) error {
	if b[0] != magic || b[1] != version {
		return malformed(offset, "it begins with %#x %#x instead of %#x %#x", b[0], b[1], magic, version)
	}
	m.Type, m.Flags = Type(b[2]), Flags(b[3])
	m.UserID, m.Rolemask = binary.BigEndian.Uint32(b[4:]), binary.BigEndian.Uint32(b[8:])
	one, two := binary.BigEndian.Uint32(b[12:]), binary.BigEndian.Uint32(b[16:])
	switch m.Type {
	case TypeRequest:
		m.Nodeid, m.Matchtag = one, two
	case TypeResponse:
		m.Errnum, m.Matchtag = one, two
	case TypeEvent:
		m.Seq = one
		if two != 0 {
			return malformed(offset+16, "an event has %#x where nothing belongs", two)
		}
	default:
		return malformed(offset+2, "no message is of type %d", b[2])
	}
	if err := m.check(); err != nil {
		return malformed(offset+3, "%s", err)
	}
	return nil
}

// check judges what the parts and the numbers of a type can be, by the flags.
func (m *Message) check() error {
	switch {
	case !m.Flags.Has(FlagTopic):
		return fmt.Errorf("%s without a topic", m.Type)
	case m.Nodeid > NodeidMax && m.Nodeid != NodeidAny:
		return fmt.Errorf("no rank is %d", m.Nodeid)
	}
	return nil
}

// A parser goes through the parts of a message before the last.
type parser struct {
	b       []byte
	at, end int
}

// part returns the next part, which is never nil.
func (p *parser) part() ([]byte, error) {
	if p.at >= p.end {
		return nil, malformed(p.at, "a part is missing")
	}
	start := p.at
	n, rest := int64(p.b[start]), p.b[start+1:p.end]
	if n == long {
		if len(rest) < 4 {
			return nil, malformed(start, "a length breaks off")
		}
		if n, rest = int64(binary.BigEndian.Uint32(rest)), rest[4:]; n < long {
			return nil, malformed(start, "four bytes for the length %d", n)
		}
	}
	if n > int64(len(rest)) {
		return nil, malformed(start, "a part of %d bytes where %d are left", n, len(rest))
	}
	p.at = p.end - len(rest) + int(n)
	return rest[:n:n], nil
}

// route decodes a route, which lies with its last hop first.
func (p *parser) route() (route []string, err error) {
	for {
		start := p.at
		id, err := p.part()
		switch {
		case err != nil:
			return nil, err
		case len(id) == 0:
			slices.Reverse(route)
			return route, nil
		case len(route) == MaxHops:
			return nil, beyond(start, "more than %d hops", MaxHops)
		}
		if err := checkName("a hop", id, MaxHop, start); err != nil {
			return nil, err
		}
		route = append(route, string(id))
	}
}

func (p *parser) topic() (string, error) {
	start := p.at
	topic, err := p.part()
	if err != nil {
		return "", err
	}
	return string(topic), checkName("a topic", topic, MaxTopic, start)
}

// checkName judges an identity or a topic. Brokers let through all bytes but a NUL.
func checkName[T string | []byte](what string, name T, most, offset int) error {
	switch {
	case len(name) == 0:
		return malformed(offset, "%s is empty", what)
	case len(name) > most:
		return beyond(offset, "%s has %d bytes of at most %d", what, len(name), most)
	}
	for i := range len(name) {
		if name[i] == 0 {
			return malformed(offset, "%s has a NUL", what)
		}
	}
	return nil
}

// AppendBinary appends the message as Parse reads it. Flags for the parts that there are get
// set, and others but FlagRoute cleared. After an error dst is as it was.
func (m *Message) AppendBinary(dst []byte) ([]byte, error) {
	n := *m
	n.Flags &^= FlagTopic | FlagPayload
	if n.Topic != "" {
		n.Flags |= FlagTopic
	}
	if n.Payload != nil {
		n.Flags |= FlagPayload
	}
	if len(n.Route) > 0 {
		n.Flags |= FlagRoute
	}
	out := dst
	if n.Flags.Has(FlagRoute) {
		if len(n.Route) > MaxHops {
			return dst, beyond(0, "more than %d hops", MaxHops)
		}
		for _, id := range slices.Backward(n.Route) {
			if err := checkName("a hop", id, MaxHop, len(out)-len(dst)); err != nil {
				return dst, err
			}
			out = appendPart(out, id)
		}
		out = append(out, 0)
	}
	if n.Flags.Has(FlagTopic) {
		if err := checkName("a topic", n.Topic, MaxTopic, len(out)-len(dst)); err != nil {
			return dst, err
		}
		out = appendPart(out, n.Topic)
	}
	if n.Flags.Has(FlagPayload) {
		if int64(len(n.Payload)) > 1<<32-1 {
			return dst, beyond(len(out)-len(dst), "a payload of %d bytes", len(n.Payload))
		}
		out = appendPart(out, n.Payload)
	}
	one, two, err := n.numbers()
	if err == nil {
		err = n.check()
	}
	if err != nil {
		return dst, malformed(len(out)-len(dst), "%s", err)
	}
	out = append(out, protoSize, magic, version, byte(n.Type), byte(n.Flags))
	for _, v := range [...]uint32{n.UserID, n.Rolemask, one, two} {
		out = binary.BigEndian.AppendUint32(out, v)
	}
	return out, nil
}

// numbers returns the last two numbers of a message. Those of other types have to be 0.
func (m *Message) numbers() (one, two uint32, err error) {
	rest := *m
	switch m.Type {
	case TypeRequest:
		one, two = m.Nodeid, m.Matchtag
		rest.Nodeid, rest.Matchtag = 0, 0
	case TypeResponse:
		one, two = m.Errnum, m.Matchtag
		rest.Errnum, rest.Matchtag = 0, 0
	case TypeEvent:
		one = m.Seq
		rest.Seq = 0
	default:
		return 0, 0, fmt.Errorf("no message is of type %d", m.Type)
	}
	if rest.Nodeid|rest.Matchtag|rest.Errnum|rest.Seq != 0 {
		return 0, 0, fmt.Errorf("%s has a number of another type", m.Type)
	}
	return one, two, nil
}

func appendPart[T string | []byte](dst []byte, part T) []byte {
	if len(part) < long {
		dst = append(dst, byte(len(part)))
	} else {
		dst = binary.BigEndian.AppendUint32(append(dst, long), uint32(len(part)))
	}
	return append(dst, part...)
}
