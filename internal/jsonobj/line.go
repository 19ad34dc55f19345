package jsonobj

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
)

// maxLine is the largest number of bytes of a line or a payload.
const maxLine = 64 << 20

// maxTopic is the largest number of bytes of a topic.
const maxTopic = 256

// How deep values may be nested: a line is an object as deep as the JSON library of
// Flux allows, a payload is in it, and a value is in a payload.
const (
	lineDepth    = DefaultDepth
	payloadDepth = lineDepth - 1
	valueDepth   = payloadDepth - 1
)

// What is wrong with a line, beside what the other causes say.
var (
	errTopic   = errors.New("must have 1 to 256 bytes")
	errSuccess = errors.New("must not come with errnum")
	errFailure = errors.New("must come with errnum")
)

// Protocol reads and writes the messages of a protocol: payloads, which are objects,
// and the lines that carry them.
type Protocol struct {
	Invalid error // is wrapped if a text is not a message, or a value cannot be one
	Limit   error // is wrapped if a text has more than maxLine bytes
}

// Line is the envelope of a message on a stream of JSON lines.
type Line struct {
	Topic   string
	Payload json.RawMessage // an object; empty: none
	Errnum  int             // of a failure; 0: no failure
	Errstr  string          // of a failure, for people; may be empty
}

// ParsePayload reads a message by a function. An empty payload reads as an empty
// object. After an error the message is zero. The name is what errors call it.
func ParsePayload[M any](p *Protocol, name func() string, payload []byte, read func(m *M, o *Reader)) (M, error) {
	if len(payload) == 0 {
		payload = []byte("{}")
	}
	return parse(p, name, payload, payloadDepth, read)
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

// EndPayload ends a payload or a line and returns it behind what was there before, or
// what was there before and the error.
func (p *Protocol) EndPayload(w *Writer, name string) ([]byte, error) {
	out, err := w.End(nil)
	if err != nil {
		return out, fmt.Errorf("%w: %s: %w", p.Invalid, name, err)
	}
	if n := len(out) - w.start; n > maxLine {
		return out[:w.start], p.tooLong(n)
	}
	return out, nil
}

// Object appends a value that is the text of an object, without its white space.
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

// ParseLine reads one line, with or without its newline: an object with a topic and
// either a payload, which is an object, or an errnum above 0 and perhaps an errstr. A
// line may have neither. Unknown keys are ignored. The payload is only checked to be
// JSON, and aliases b.
func (p *Protocol) ParseLine(b []byte) (Line, error) {
	return parse(p, func() string { return "line" }, b, lineDepth, (*Line).read)
}

func (l *Line) read(o *Reader) {
	var payload, errstr Value
	for o.Next() {
		switch string(o.Key()) {
		case "topic":
			if l.Topic = o.Text(); l.Topic == "" || len(l.Topic) > maxTopic {
				o.Value().Fail(errTopic)
			}
		case "payload":
			payload = o.Value()
		case "errnum":
			l.Errnum = int(o.Int(0, math.MaxInt32))
		case "errstr":
			errstr = o.Value()
		}
	}
	o.Require("topic")
	if payload.IsObject() {
		l.Payload = payload.Raw()
	}
	l.Errstr = errstr.Text()
	if !payload.Absent() && l.Errnum != 0 {
		payload.Fail(errSuccess)
	}
	if !errstr.Absent() && l.Errnum == 0 {
		errstr.Fail(errFailure)
	}
}

// AppendLine appends a line with its newline, the payload without white space. It
// refuses what ParseLine refuses, and then returns dst as it was.
func (p *Protocol) AppendLine(dst []byte, l Line) ([]byte, error) {
	w := writeLine(dst, l.Topic)
	if len(l.Payload) > 0 {
		w.Object("payload", l.Payload)
		if l.Errnum != 0 {
			w.Fail("payload", errSuccess)
		}
	}
	if l.Errnum < 0 || l.Errnum > math.MaxInt32 {
		w.Fail("errnum", ErrRange)
	}
	if l.Errnum != 0 {
		w.Int("errnum", int64(l.Errnum))
	}
	if l.Errstr != "" {
		w.Text("errstr", l.Errstr)
		if l.Errnum == 0 {
			w.Fail("errstr", errFailure)
		}
	}
	return p.endLine(&w)
}

// AppendMessage appends the line that carries a payload, which a function appends. It
// does not copy the payload. After an error it returns dst as it was.
func (p *Protocol) AppendMessage(dst []byte, topic string, payload func(dst []byte) ([]byte, error)) ([]byte, error) {
	w := writeLine(dst, topic)
	w.Key("payload")
	var err error
	if w.Out, err = payload(w.Out); err != nil {
		return dst, err
	}
	return p.endLine(&w)
}

func writeLine(dst []byte, topic string) Writer {
	w := Write(dst, lineDepth)
	if topic == "" || len(topic) > maxTopic {
		w.Fail("topic", errTopic)
	}
	w.Text("topic", topic)
	return w
}

func (p *Protocol) endLine(w *Writer) ([]byte, error) {
	dst, err := p.EndPayload(w, "line")
	if err != nil {
		return dst, err
	}
	return append(dst, '\n'), nil
}
