package alloc

import (
	"encoding/json"
	"math"

	"github.com/joblife/joblife/internal/jsonscan"
)

// Topics, the services that messages are for. An answer has the topic of its
// request.
const (
	TopicHello       = "job-manager.sched-hello" // Hello, answered by HelloJobs
	TopicReady       = "job-manager.sched-ready" // Ready, answered by ReadyAnswer
	TopicAlloc       = "sched.alloc"             // Request, answered by Answers
	TopicCancel      = "sched.cancel"            // Cancel, not answered itself
	TopicPrioritize  = "sched.prioritize"        // Prioritize, not answered
	TopicFree        = "sched.free"              // Free, not answered
	TopicExpiration  = "sched.expiration"        // Expiration, answered without payload
	TopicFeasibility = "feasibility.check"       // Feasibility, answered without payload
)

// NoData is the errnum that ends the answers to a hello: ENODATA.
const NoData = 61

// maxTopic is how long a topic may be.
const maxTopic = 256

// A Line is the envelope of a message where lines of JSON carry them: what
// service it is for, and what it says or how it failed.
type Line struct {
	Topic   string
	Payload json.RawMessage // an object; empty if there is none
	Errnum  int             // of a failure; 0: none
	Errstr  string          // of a failure, for people; may be empty
}

// ParseLine reads one line, the newline optional: an object with a topic,
// perhaps a payload, which is an object, or else the errnum of a failure,
// greater than 0, perhaps with an errstr. An errnum of 0 is no failure. Other
// keys are ignored. The payload is not looked into but for being JSON; it
// aliases b. The error is a *MessageError or a *LimitError.
func ParseLine(b []byte) (Line, error) {
	p := parse("line", b, jsonscan.DefaultDepth, "topic", "payload", "errnum", "errstr")
	var l Line
	if v, ok := p.required("topic"); ok {
		l.Topic = p.text("topic", v)
		if p.err == nil && (l.Topic == "" || len(l.Topic) > maxTopic) {
			p.fail("topic", v.offset, errRange)
		}
	}
	if v, ok := p.optional("errnum"); ok {
		l.Errnum = int(p.number("errnum", v, 0, math.MaxInt32))
	}
	if v, ok := p.optional("payload"); ok {
		if jsonscan.KindOf(v.raw) != jsonscan.KindObject {
			p.fail("payload", v.offset, errKind)
		}
		if l.Errnum != 0 {
			p.fail("payload", v.offset, errSuccess)
		}
		l.Payload = v.raw
	}
	if v, ok := p.optional("errstr"); ok {
		l.Errstr = p.text("errstr", v)
		if l.Errnum == 0 {
			p.fail("errstr", v.offset, errFailure)
		}
	}
	if p.err != nil {
		return Line{}, p.err
	}
	return l, nil
}

// AppendText appends the line with its newline, the payload without white
// space. It refuses what ParseLine would, and then returns dst as it was: the
// error is a *MessageError or a *LimitError.
func (l Line) AppendText(dst []byte) ([]byte, error) {
	w := open("line", dst)
	w.topic(l.Topic)
	if len(l.Payload) > 0 {
		w.object("payload", l.Payload, payloadDepth)
		if l.Errnum != 0 {
			w.fail("payload", errSuccess)
		}
	}
	if l.Errnum < 0 || l.Errnum > math.MaxInt32 {
		w.fail("errnum", errRange)
	}
	if l.Errnum != 0 {
		w.number("errnum", uint64(l.Errnum))
	}
	if l.Errstr != "" {
		w.text("errstr", l.Errstr)
		if l.Errnum == 0 {
			w.fail("errstr", errFailure)
		}
	}
	return w.line()
}

// String returns the line without its newline, or the error of AppendText in
// brackets.
func (l Line) String() string {
	b, err := l.AppendText(nil)
	if err != nil {
		return "<" + err.Error() + ">"
	}
	return string(b[:len(b)-1])
}

// A Message is a payload: any of the types Hello, HelloJob, Ready, ReadyAnswer,
// Request, Answer, Cancel, Prioritize, Expiration, Free and Feasibility.
type Message interface {
	// AppendJSON appends the payload, or returns dst as it was and an error.
	AppendJSON(dst []byte) ([]byte, error)
}

// AppendMessage appends the line that carries a message, with its newline: what
// a Line with the payload would be, at no copy. After an error it returns dst
// as it was.
func AppendMessage(dst []byte, topic string, m Message) ([]byte, error) {
	w := open("line", dst)
	w.topic(topic)
	w.key("payload")
	var err error
	if w.dst, err = m.AppendJSON(w.dst); err != nil && w.err == nil {
		w.err = err
	}
	return w.line()
}

// topic appends the topic.
func (w *writer) topic(topic string) {
	if topic == "" || len(topic) > maxTopic {
		w.fail("topic", errRange)
		return
	}
	w.text("topic", topic)
}

// line ends the object and the line.
func (w *writer) line() ([]byte, error) {
	dst, err := w.close()
	if err != nil {
		return dst, err
	}
	return append(dst, '\n'), nil
}
