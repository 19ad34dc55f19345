package alloc

import (
	"encoding/json"

	"github.com/joblife/joblife/internal/jsonobj"
)

// The topics of messages. A response has the topic of its request.
const (
	TopicHello       = "job-manager.sched-hello" // Hello and HelloResponse
	TopicReady       = "job-manager.sched-ready" // Ready and ReadyResponse
	TopicAlloc       = "sched.alloc"             // Request and Response
	TopicCancel      = "sched.cancel"            // Cancel, without a response of its own
	TopicPrioritize  = "sched.prioritize"        // Prioritize, without a response
	TopicFree        = "sched.free"              // Free, without a response
	TopicExpiration  = "sched.expiration"        // Expiration; the response has no payload
	TopicFeasibility = "feasibility.check"       // Feasibility; the response has no payload
)

// NoData is the errnum that ends the responses to a hello: ENODATA.
const NoData = 61

// A Line is the envelope of a message on a stream of JSON lines.
type Line struct {
	Topic   string
	Payload json.RawMessage // an object; empty: none
	Errnum  int             // of a failure; 0: no failure
	Errstr  string          // of a failure, for people; may be empty
}

// ParseLine parses one line, with or without its newline: an object with a topic
// and either a payload, which is an object, or an errnum above 0 and perhaps an
// errstr. A line may have neither. Unknown keys are ignored. The payload is only
// checked to be JSON, and aliases b. The error is ErrMessage or ErrLimit.
func ParseLine(b []byte) (Line, error) {
	l, err := protocol().ParseLine(b)
	return Line(l), err
}

// AppendText appends the line with its newline, the payload without white space. It
// refuses what ParseLine refuses, with ErrMessage or ErrLimit, and then returns dst
// as it was.
func (l Line) AppendText(dst []byte) ([]byte, error) {
	return protocol().AppendLine(dst, jsonobj.Line(l))
}

// AppendMessage appends the line that carries a message, with its newline. The error
// is ErrMessage or ErrLimit, and then it returns dst as it was. It encodes the payload
// in place.
func AppendMessage(dst []byte, topic string, m Message) ([]byte, error) {
	return protocol().AppendMessage(dst, topic, m.append)
}
