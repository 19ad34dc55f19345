package alloc

import (
	"encoding/json"
	"errors"
	"math"

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
	Topic   string          // such as TopicAlloc
	Payload json.RawMessage // an object; empty: none
	Errnum  int             // of a failure; 0: no failure
	Errstr  string          // of a failure, for people; may be empty
}

// ParseLine parses one line, with or without its newline: an object with a topic, and a payload
// or an errnum above 0, perhaps with an errstr, or neither. Unknown keys are ignored. The payload
// aliases b, and is only checked to be a JSON object. The error is ErrMessage or ErrLimit.
func ParseLine(b []byte) (Line, error) { return jsonobj.ParseLine(protocol(), b, (*Line).read) }

const maxTopic = 256 // bytes

var (
	errTopic   = errors.New("must have 1 to 256 bytes")
	errSuccess = errors.New("must not come with errnum")
	errFailure = errors.New("must come with errnum")
)

func (l *Line) read(o *jsonobj.Reader) {
	for o.Next() { // so that Find has all keys
	}
	topic, payload, errstr := o.Need("topic"), o.Find("payload"), o.Find("errstr")
	if l.Topic = topic.Text(); l.Topic == "" || len(l.Topic) > maxTopic {
		topic.Fail(errTopic)
	}
	l.Errnum = int(o.Find("errnum").Int(0, math.MaxInt32))
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

// AppendText appends the line with its newline, the payload without white space. It refuses what
// ParseLine refuses, with the same errors, and then returns dst as it was.
func (l Line) AppendText(dst []byte) ([]byte, error) {
	w := writeLine(dst, l.Topic)
	if len(l.Payload) > 0 {
		w.Object("payload", l.Payload)
		if l.Errnum != 0 {
			w.Fail("payload", errSuccess)
		}
	}
	if l.Errnum < 0 || l.Errnum > math.MaxInt32 {
		w.Fail("errnum", jsonobj.ErrRange)
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
	return endLine(&w)
}

// AppendMessage appends the line of a message, with its newline. The errors are those of Append.
func AppendMessage(dst []byte, topic string, m Message) ([]byte, error) {
	w := writeLine(dst, topic)
	w.Key("payload")
	var err error
	if w.Out, err = m.append(w.Out); err != nil {
		return dst, err
	}
	return endLine(&w)
}

func writeLine(dst []byte, topic string) jsonobj.Writer {
	w := jsonobj.WriteLine(dst)
	if topic == "" || len(topic) > maxTopic {
		w.Fail("topic", errTopic)
	}
	w.Text("topic", topic)
	return w
}

func endLine(w *jsonobj.Writer) ([]byte, error) {
	dst, err := protocol().EndPayload(w, "line")
	if err != nil {
		return dst, err
	}
	return append(dst, '\n'), nil
}

// ParseFromManager parses a line that a manager wrote: a HelloResponse, ReadyResponse, Request,
// Cancel, Prioritize, Free, Expiration or Feasibility. A message and its response have one
// topic, so each side has a function.
//
// The message is nil for a failure, which has an errnum, and for another topic. A ready
// response without a payload, as in early drafts, reads as the zero one. The errors are those of
// ParseLine and Parse; the Line then has what could be read, and no Topic if the text is no line.
// It retains nothing of b but Line.Payload.
func ParseFromManager(b []byte) (Line, Message, error) {
	return parseLine(b, func(l Line) (Message, error) {
		switch l.Topic {
		case TopicHello:
			return parseAny[HelloResponse](l)
		case TopicReady:
			if len(l.Payload) == 0 {
				return ReadyResponse{}, nil
			}
			return parseAny[ReadyResponse](l)
		case TopicAlloc:
			return parseAny[Request](l)
		case TopicCancel:
			return parseAny[Cancel](l)
		case TopicPrioritize:
			return parseAny[Prioritize](l)
		case TopicFree:
			return parseAny[Free](l)
		case TopicExpiration:
			return parseAny[Expiration](l)
		case TopicFeasibility:
			return parseAny[Feasibility](l)
		}
		return nil, nil
	})
}

// ParseFromScheduler is ParseFromManager for a line that a scheduler wrote: a Hello, Ready or
// Response, or a response to Expiration or Feasibility, which has no payload and no message.
func ParseFromScheduler(b []byte) (Line, Message, error) {
	return parseLine(b, func(l Line) (Message, error) {
		switch l.Topic {
		case TopicHello:
			return parseAny[Hello](l)
		case TopicReady:
			return parseAny[Ready](l)
		case TopicAlloc:
			return parseAny[Response](l)
		}
		return nil, nil
	})
}

func parseLine(b []byte, parse func(Line) (Message, error)) (Line, Message, error) {
	l, err := ParseLine(b)
	if err != nil || l.Errnum != 0 {
		return l, nil, err
	}
	m, err := parse(l)
	return l, m, err
}

func parseAny[M Payload](l Line) (Message, error) {
	m, err := Parse[M](l.Payload)
	if err != nil {
		return nil, err
	}
	return m, nil
}
