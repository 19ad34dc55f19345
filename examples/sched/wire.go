package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"github.com/joblife/joblife/examples/internal/strict"
	"github.com/joblife/joblife/rset/alloc"
)

// A wire is a peer at the end of JSON lines.
type wire struct {
	s           *session
	out, stderr io.Writer
}

func (w wire) send(topic string, m alloc.Message) { w.write(alloc.AppendMessage(nil, topic, m)) }

func (w wire) reply(l alloc.Line) error {
	b, err := l.AppendText(nil)
	if err != nil {
		return err
	}
	w.write(b, nil)
	return nil
}

func (w wire) refuse(l alloc.Line, why error) { w.write(appendFailure(l, why)) }

// log writes a text for people. What is a line of its own has no number.
func (w wire) log(_ int, text string) {
	where := ""
	if w.s.line > 0 {
		where = fmt.Sprintf("line %d: ", w.s.line)
	}
	fmt.Fprintf(w.stderr, "sched: %s%s\n", where, text)
}

// write writes a line. After the first failure it writes nothing.
func (w wire) write(b []byte, err error) {
	if err == nil && w.s.failed == nil {
		_, err = w.out.Write(b)
	}
	if err != nil && w.s.failed == nil {
		w.s.failed = fmt.Errorf("output: %w", err)
	}
}

// isEvent reports whether a line is an event: it comes to all who are connected.
func isEvent(text []byte) bool {
	var e struct {
		Event string  `json:"event"`
		Topic *string `json:"topic,omitempty"`
	}
	return strict.Unmarshal(text, &e) == nil && e.Topic == nil
}

// appendFailure returns the line that answers a message with an error, and names the job
// of the message if it has one.
func appendFailure(m alloc.Line, why error) ([]byte, error) {
	b, err := alloc.Line{Topic: m.Topic, Errnum: errnumOf(why), Errstr: textOf(why)}.AppendText(nil)
	var payload map[string]json.RawMessage
	if json.Unmarshal(m.Payload, &payload) != nil {
		return b, err
	}
	if id, fail := strconv.ParseInt(string(payload["id"]), 10, 64); fail == nil && id >= 0 && err == nil {
		b = fmt.Appendf(bytes.TrimSuffix(b, []byte("}\n")), ",\"id\":%d}\n", id)
	}
	return b, err
}
