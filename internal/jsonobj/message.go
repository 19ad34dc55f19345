package jsonobj

import (
	"encoding/json"
	"fmt"
)

const maxLine = 64 << 20 // bytes of a line or a payload

// How deep values may be nested: a line is an object as deep as the JSON library of
// Flux allows, a payload is in it, and a value is in a payload.
const (
	lineDepth    = DefaultDepth
	payloadDepth = lineDepth - 1
	valueDepth   = payloadDepth - 1
)

// Protocol has the errors of messages: payloads, which are objects, and lines that carry them.
type Protocol struct {
	Invalid error // is wrapped if a text is not a message, or a value cannot be one
	Limit   error // is wrapped if a text has more than maxLine bytes
}

// ParsePayload reads a message by a function. An empty payload reads as an empty
// object. After an error the message is zero. The name is what errors call it.
func ParsePayload[M any](p *Protocol, name func() string, payload []byte, read func(m *M, o *Reader)) (M, error) {
	if len(payload) == 0 {
		payload = []byte("{}")
	}
	return parse(p, name, payload, payloadDepth, read)
}

// ParseLine reads the object of a line as ParsePayload reads a payload, which may be in it.
func ParseLine[M any](p *Protocol, line []byte, read func(m *M, o *Reader)) (M, error) {
	return parse(p, func() string { return "line" }, line, lineDepth, read)
}

func parse[M any](p *Protocol, name func() string, b []byte, depth int, read func(m *M, o *Reader)) (M, error) {
	var d struct { // one allocation
		doc Doc
		o   Reader
		m   M
	}
	var none M
	if len(b) > maxLine {
		return none, p.tooLong(len(b))
	}
	d.doc.text, d.doc.Depth = b, depth
	d.o = d.doc.Object()
	read(&d.m, &d.o)
	if d.doc.Failed() {
		return none, fmt.Errorf("%w: %s: %w", p.Invalid, name(), d.doc.Fault())
	}
	return d.m, nil
}

func (p *Protocol) tooLong(bytes int) error {
	return fmt.Errorf("%w: %d bytes, at most %d are allowed", p.Limit, bytes, maxLine)
}

// WritePayload returns a Writer of a payload behind what dst holds. EndPayload ends it.
func WritePayload(dst []byte) Writer { return Write(dst, payloadDepth) }

// WriteLine returns a Writer of a line behind what dst holds. EndPayload ends it.
func WriteLine(dst []byte) Writer { return Write(dst, lineDepth) }

// EndPayload ends a payload or a line as [Writer.End] ends an object.
func (p *Protocol) EndPayload(w *Writer, name string) ([]byte, error) {
	out, err := w.End()
	if err != nil {
		return out, fmt.Errorf("%w: %s: %w", p.Invalid, name, err)
	}
	if n := len(out) - w.start; n > maxLine {
		return out[:w.start], p.tooLong(n)
	}
	return out, nil
}

// Object is Raw for the text of an object.
func (w *Writer) Object(key string, raw json.RawMessage) {
	if KindOf(raw) != KindObject {
		w.Fail(key, errObject)
		return
	}
	w.Raw(key, raw)
}

// Append appends a value of a payload by a function, and checks how deep it is nested.
func (w *Writer) Append(key string, value func(dst []byte) []byte) {
	w.Key(key)
	start := len(w.Out)
	w.Out = value(w.Out)
	if err := Check(w.Out[start:], valueDepth); err != nil {
		w.Fail(key, err)
	}
}
