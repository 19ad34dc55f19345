package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/examples/internal/errno"
	"github.com/joblife/joblife/examples/internal/strict"
	"github.com/joblife/joblife/rset/alloc"
)

// serviceName is the service that the manager is.
const serviceName = "job-manager"

// The topics that lines, the worker and the keeper look at, beside those of sessions.
const (
	topicError      = serviceName + ".error"           // answers a line that is no message
	topicReady      = serviceName + ".ready"           // requests are served
	topicDisconnect = serviceName + ".disconnect"      // a sender is gone
	topicShutsDown  = serviceName + ".broker-shutdown" // the broker is in CLEANUP
	topicJournal    = serviceName + ".events-journal"  // the events of all jobs
	topicRaise      = serviceName + ".raise"
	topicShutdown   = serviceName + ".shutdown" // the module is removed
	topicReload     = serviceName + ".config-reload"
	topicQueueStart = serviceName + ".queue-start"
	topicJobtap     = serviceName + ".jobtap"
	topicRun        = "rexec.exec" // runs a process
	topicCommit     = "kvs.commit"
	topicConfig     = "config.get"
	topicStatus     = "module.status"
)

// isStream reports whether a request has many answers, the last one with an error. All others have
// one, whatever their sender believes.
func isStream(topic string) bool { return topic == topicJournal || topic == alloc.TopicHello }

// untagged is the matchtag of a request that has no key for it. Its answers have
// none either.
const untagged = 1<<32 - 1

// A message is a line of input.
type message struct {
	Topic    string          `json:"topic,omitempty"`
	Matchtag *uint32         `json:"matchtag,omitempty"`
	Sender   *string         `json:"sender,omitempty"`
	UserID   *uint32         `json:"userid,omitempty"`
	Rolemask *uint32         `json:"rolemask,omitempty"`
	Payload  json.RawMessage `json:"payload,omitempty"`
	Errnum   int             `json:"errnum,omitempty"`
	Errstr   string          `json:"errstr,omitempty"`

	Session   uint32 `json:"session,omitempty"`   // of a hello: what the calls of its session have
	Streaming *bool  `json:"streaming,omitempty"` // may the request have many answers; nil: yes

	Time eventlog.Timestamp `json:"time,omitempty"`
}

// maxTime is the greatest time in seconds that a line may have.
const maxTime = 1 << 38

// errNoTopic is for an object that is no message.
var errNoTopic = errors.New("the line has no topic")

// parseMessage reads a line. With an error it returns whom to answer.
func parseMessage(text []byte) (m message, err error) {
	if !utf8.Valid(text) {
		return addressee(text), errors.New("the line is not UTF-8")
	}
	switch bad := strict.Unmarshal(text, &m); {
	case bad != nil:
		return addressee(text), fmt.Errorf("malformed line: %w", bad)
	case m.Topic == "" && m.Time == 0:
		err = errNoTopic
	case m.Errnum < 0 || m.Time < 0 || m.Time > maxTime:
		err = errors.New("errnum and time must not be negative, nor time beyond 2^38")
	case string(m.Payload) == "null":
		m.Payload = nil
	}
	return m, err
}

// addressee returns the keys that say whom to answer and blame, as far as a malformed line has them.
func addressee(text []byte) (m message) {
	d := json.NewDecoder(bytes.NewReader(text))
	if first, err := d.Token(); err != nil || first != json.Delim('{') {
		return m
	}
	for {
		key, err := d.Token()
		var value json.RawMessage
		if err != nil || d.Decode(&value) != nil {
			return m
		}
		var word string
		var number uint32
		switch isWord := json.Unmarshal(value, &word) == nil && !strings.ContainsRune(word, utf8.RuneError); {
		case key == "topic" && isWord:
			m.Topic = word
		case key == "sender" && isWord:
			m.Sender = &word
		case key == "matchtag" && json.Unmarshal(value, &number) == nil:
			m.Matchtag = &number
		case key == "rolemask" && json.Unmarshal(value, &number) == nil:
			m.Rolemask = &number
		}
	}
}

// isOwners reports whether the instance's owner sent it.
func (m message) isOwners() bool { return or(m.Rolemask, 1)&1 != 0 }

// failure returns the error that a response tells.
func (m message) failure() error {
	if m.Errnum == 0 {
		return nil
	}
	return &peerError{m}
}

// A peerError is an error that a peer answered.
type peerError struct{ message }

func (e *peerError) Error() string {
	return strings.TrimSuffix(fmt.Sprintf("%s failed: errnum %d: %.256s", e.Topic, e.Errnum, e.Errstr), ": ")
}

// or returns what a line has at a key, or else what that means when it is not there.
func or[T any](value *T, absent T) T {
	if value != nil {
		return *value
	}
	return absent
}

// An output is a line of output.
type output struct {
	Topic    string  `json:"topic,omitempty"`
	Event    string  `json:"event,omitempty"`
	Matchtag uint32  `json:"matchtag,omitempty"`
	Sender   *string `json:"sender,omitempty"`
	Session  uint32  `json:"session,omitempty"`
	Nodeid   *int    `json:"nodeid,omitempty"`
	Stream   bool    `json:"stream,omitempty"`
	Private  bool    `json:"private,omitempty"`
	Payload  any     `json:"payload,omitempty"`
	Errnum   int     `json:"errnum,omitempty"`
	Errstr   string  `json:"errstr,omitempty"`
}

// line returns the text of a line. A payload that is no JSON becomes an error, and the
// answer stays one.
func (o output) line() []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(o); err != nil {
		b.Reset()
		o.Payload, o.Errnum, o.Errstr = nil, errno.Invalid, err.Error()
		_ = e.Encode(o) // numbers and strings
	}
	return b.Bytes()
}
