package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/examples/internal/errno"
	"github.com/joblife/joblife/examples/internal/lines"
	"github.com/joblife/joblife/examples/internal/strict"
	"github.com/joblife/joblife/rset/alloc"
	"github.com/joblife/joblife/rset/pool"
	"github.com/joblife/joblife/rset/sched"
)

// topicError answers a line that has no topic.
const topicError = "sched.error"

var (
	errNoTopic     = errors.New("no such topic")
	errNoInventory = errors.New("there is no inventory yet")
)

// errnums are those of errors.
var errnums = []struct {
	err    error
	errnum int
}{
	{alloc.ErrLimit, errno.Size}, {alloc.ErrMessage, errno.Protocol}, {pool.ErrAcquire, errno.Protocol},
	{pool.ErrInfeasible, errno.Overflow}, {pool.ErrNotFound, errno.NoEntry}, {pool.ErrExists, errno.Exists},
	{errNoTopic, errno.NoSys}, {errNoInventory, errno.Again}, {sched.ErrNotReady, errno.Again}, {sched.ErrExists, errno.Exists}, {sched.ErrNoR, errno.NoEntry}, {sched.ErrLimit, errno.NoMemory},
}

func errnumOf(err error) int {
	if long := new(lines.LongError); errors.As(err, &long) {
		return errno.Size
	}
	for _, e := range errnums {
		if errors.Is(err, e.err) {
			return e.errnum
		}
	}
	return errno.Invalid
}

// textOf returns what an error says to the peer.
func textOf(err error) string { return strings.TrimPrefix(err.Error(), "sched: ") }

// session is the scheduler's end of a conversation.
type session struct {
	*sched.Scheduler
	stats
	now     eventlog.Timestamp // of the line; it never goes back
	out     io.Writer
	stderr  io.Writer
	clock   *lines.Clock
	greeted bool  // a hello was answered to its end
	line    int   // the number of the line that is handled
	failed  error // why the session ends
	refused int   // lines
	verbose bool
}

func newSession(o options, out, stderr io.Writer) *session {
	s := &session{out: out, stderr: stderr, clock: o.NewClock(), stats: newStats(), verbose: o.Verbose}
	cfg := sched.Config{
		Policy: policies[o.policy](o), Fit: o.fit, Limit: o.limit, Annotate: true, Forecast: o.period,
	}
	if o.Verbose {
		cfg.Logf = s.errorf
	}
	s.Scheduler = sched.New(cfg)
	s.tick()
	return s
}

// tick advances the time. If the clock is set back, the time does not change here.
func (s *session) tick() {
	s.now = max(s.now, s.clock.Now())
	s.stats.until(s.now)
}

// due returns what fires when there is something to decide though no line comes.
func (s *session) due() <-chan time.Time {
	if at, ok := s.Deadline(); ok {
		return s.clock.At(at.Time())
	}
	return nil
}

// wake decides what is due. The error is one that ends the session.
func (s *session) wake() error {
	s.line = 0
	s.tick()
	s.decide()
	return s.failed
}

// decide sends what the scheduler decides.
func (s *session) decide() {
	for _, a := range s.Decide(s.now) {
		s.answered(a, s.now)
		s.logAnswer(a)
		s.send(alloc.TopicAlloc, a)
	}
}

// logAnswer says what an answer does.
func (s *session) logAnswer(a alloc.Response) {
	if !s.verbose {
		return
	}
	name := fmt.Sprintf("job %d (%v)", uint64(a.ID), a.ID)
	switch a.Type {
	case alloc.ResponseSuccess:
		s.errorf("%s gets %v", name, a.R)
	case alloc.ResponseDeny:
		s.errorf("%s denied: %s", name, a.Note)
	case alloc.ResponseCancel:
		s.errorf("%s canceled", name)
	case alloc.ResponseAnnotate:
		var m struct {
			Sched struct {
				Start *eventlog.Timestamp `json:"t_estimate"`
			} `json:"sched"`
		}
		if _ = json.Unmarshal(a.Annotations, &m); m.Sched.Start != nil { // these are ours
			s.errorf("%s is to start at %v", name, *m.Sched.Start)
		} else {
			s.errorf("the start of %s is no longer known", name)
		}
	}
}

// errorf writes a message for people about the line that is handled.
func (s *session) errorf(format string, args ...any) {
	where := ""
	if s.line > 0 {
		where = fmt.Sprintf("line %d: ", s.line)
	}
	fmt.Fprintf(s.stderr, "sched: %s%s\n", where, lines.Escape(fmt.Sprintf(format, args...)))
}

// write writes a line. After the first failure it writes nothing.
func (s *session) write(b []byte, err error) {
	if err == nil && s.failed == nil {
		_, err = s.out.Write(b)
	}
	if err != nil && s.failed == nil {
		s.failed = fmt.Errorf("output: %w", err)
	}
}

func (s *session) send(topic string, m alloc.Message) { s.write(alloc.AppendMessage(nil, topic, m)) }

// hello begins the conversation.
func (s *session) hello() error {
	s.send(alloc.TopicHello, alloc.Hello{PartialOK: true})
	return s.failed
}

// Take takes a line. The error is one that ends the session.
func (s *session) Take(text lines.Line) error {
	s.line = text.Number
	if long := new(lines.LongError); text.Err != nil && !errors.As(text.Err, &long) {
		return fmt.Errorf("line %d: input: %w", text.Number, text.Err)
	}
	l, m, err := alloc.Line{}, alloc.Message(nil), text.Err
	if err == nil {
		l, m, err = alloc.ParseFromManager(text.Text)
	}
	switch {
	case l.Topic != "":
		s.tick()
		err = s.dispatch(l, m, err)
	case text.Err == nil && isEvent(text.Text):
		return s.failed
	default:
		s.Missed(l)
	}
	if err != nil {
		l.Topic = cmp.Or(l.Topic, topicError)
		s.refused++
		s.errorf("%.256s: %s", l.Topic, textOf(err))
		s.write(appendFailure(l, err))
	}
	if s.failed == nil {
		s.decide()
	}
	return s.failed
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

// ofSession are the messages that a manager sends when the hello is over.
var ofSession = []string{alloc.TopicAlloc, alloc.TopicCancel, alloc.TopicPrioritize, alloc.TopicFree, alloc.TopicExpiration}

// dispatch does what a line says. err says that its message cannot be parsed. After an error
// nothing has changed. A failure of the peer ends the session, as RFC 27 and 28 have it.
func (s *session) dispatch(l alloc.Line, m alloc.Message, err error) error {
	switch ours := strings.HasPrefix(l.Topic, "job-manager."); {
	case l.Topic == alloc.TopicHello && l.Errnum == alloc.NoData:
		s.greeted = true
		ready, err := s.EndHello()
		if err == nil {
			s.send(alloc.TopicReady, ready)
		}
		return err
	case l.Errnum != 0 && (ours || l.Topic == pool.TopicAcquire):
		reason := fmt.Sprintf("errnum %d: %.256s", l.Errnum, l.Errstr)
		s.failed = fmt.Errorf("line %d: %s failed: %s", s.line, l.Topic, strings.TrimSuffix(reason, ": "))
		return nil
	case l.Errnum != 0:
		return errors.New("a request has no errnum")
	case !s.greeted && slices.Contains(ofSession, l.Topic):
		if s.verbose {
			s.errorf("%s dropped: it is of another session", l.Topic)
		}
		return nil
	case err != nil:
		s.Missed(l)
		return err
	case m != nil:
		return s.take(m)
	case l.Topic == pool.TopicAcquire:
		a, err := pool.ParseAcquire(l.Payload)
		if err == nil {
			err = s.Acquire(a)
		}
		if err == nil {
			s.capacity = s.Pool().Inventory().Count("core")
		}
		return err
	case l.Topic == topicStatus, l.Topic == topicHolders:
		return s.answer(l.Topic)
	}
	return errNoTopic
}

// take takes a message, and responds to those that have a response of their own.
func (s *session) take(m alloc.Message) error {
	if q, ok := m.(alloc.Request); ok && s.clock.Advance(q.Submit) {
		s.tick()
	}
	err := s.Scheduler.Handle(m)
	switch m.(type) {
	case alloc.Expiration:
		if err == nil {
			s.decide()
			s.write(alloc.Line{Topic: alloc.TopicExpiration}.AppendText(nil))
		}
	case alloc.Feasibility: // that a job could never run is an answer as good as any
		if errors.Is(err, sched.ErrNotReady) {
			return err
		}
		l := alloc.Line{Topic: alloc.TopicFeasibility}
		if err != nil {
			l.Errnum, l.Errstr = errnumOf(err), sched.Reason(err)
		}
		s.write(l.AppendText(nil))
		return nil
	}
	s.took(m, err, s)
	return err
}
