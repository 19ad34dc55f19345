package main

import (
	"bytes"
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
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
	"github.com/joblife/joblife/rset/pool"
)

// Topics beside those of package alloc.
const (
	topicAcquire = "resource.acquire"
	topicError   = "sched.error" // answers a line that has no topic
)

// refusal is an error that knows its errnum.
type refusal struct {
	errnum int
	text   string
}

func (e *refusal) Error() string { return e.text }

func refuse(errnum int, format string, args ...any) error {
	return &refusal{errnum, fmt.Sprintf(format, args...)}
}

// errnumOf returns the errnum of an error.
func errnumOf(err error) int {
	var r *refusal
	var long *lines.LongError
	switch {
	case errors.As(err, &r):
		return r.errnum
	case errors.As(err, &long), errors.Is(err, alloc.ErrLimit):
		return errno.Size
	case errors.Is(err, alloc.ErrMessage), errors.Is(err, pool.ErrAcquire):
		return errno.Protocol
	case errors.Is(err, pool.ErrInfeasible):
		return errno.Overflow
	case errors.Is(err, pool.ErrNotFound):
		return errno.NoEntry
	case errors.Is(err, pool.ErrExists):
		return errno.Exists
	}
	return errno.Invalid
}

// session is the scheduler's end of a conversation.
type session struct {
	scheduler
	out     io.Writer
	stderr  io.Writer
	clock   *lines.Clock
	greeted bool  // a hello was answered to its end
	line    int   // the number of the line that is handled
	failed  error // why out cannot be written to
	refused int   // lines
}

func newSession(o options, out, stderr io.Writer) *session {
	s := &session{out: out, stderr: stderr, clock: o.NewClock()}
	s.scheduler = scheduler{
		policy: newPolicies[o.policy](o),
		answer: func(a alloc.Response) { s.send(alloc.TopicAlloc, a) },
		logf:   func(string, ...any) {},
		limit:  o.limit,
		fit:    o.fit,
		jobs:   make(map[jobid.ID]*job),
		most:   maxJobs,
	}
	if o.Verbose {
		s.logf = s.errorf
	}
	s.tick()
	return s
}

// tick advances the time. If the clock is set back, the time does not change here.
func (s *session) tick() {
	now := max(s.now, s.clock.Now())
	s.stats.until(now)
	s.now = now
}

// due returns what fires when the forecast is due that was put off.
func (s *session) due() <-chan time.Time {
	if f, ok := s.policy.(*forecasting); ok && f.period > 0 && f.stale && s.ready {
		return s.clock.At(f.next.Time())
	}
	return nil
}

// forecast makes the forecast that was put off. The error is one that ends the session.
func (s *session) forecast() error {
	s.line = 0
	s.tick()
	s.policy.(*forecasting).forecast(&s.scheduler)
	return s.failed
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
func (s *session) Take(l lines.Line) error {
	s.line = l.Number
	var long *lines.LongError
	if l.Err != nil && !errors.As(l.Err, &long) {
		return fmt.Errorf("line %d: input: %w", l.Number, l.Err)
	}
	m, err := alloc.Line{Topic: topicError}, l.Err
	if err == nil {
		if m, err = alloc.ParseLine(l.Text); err != nil {
			if isEvent(l.Text) {
				return s.failed
			}
			m.Topic = topicError
		}
	}
	if err != nil {
		s.missed()
	} else {
		s.tick()
		err = s.dispatch(m)
	}
	var fatal *fatalError
	if errors.As(err, &fatal) {
		return fmt.Errorf("line %d: %w", l.Number, err)
	}
	if err != nil {
		s.refused++
		s.errorf("%.256s: %v", m.Topic, err)
		s.write(appendFailure(m, err))
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
	b, err := alloc.Line{Topic: m.Topic, Errnum: errnumOf(why), Errstr: why.Error()}.AppendText(nil)
	var payload map[string]json.RawMessage
	if json.Unmarshal(m.Payload, &payload) != nil {
		return b, err
	}
	if id, fail := strconv.ParseInt(string(payload["id"]), 10, 64); fail == nil && id >= 0 && err == nil {
		b = fmt.Appendf(bytes.TrimSuffix(b, []byte("}\n")), ",\"id\":%d}\n", id)
	}
	return b, err
}

// fatalError is a failure that RFC 27 and 28 let end a scheduler.
type fatalError struct{ line alloc.Line }

func (e *fatalError) Error() string {
	text := fmt.Sprintf("%s failed: errnum %d", e.line.Topic, e.line.Errnum)
	if e.line.Errstr != "" {
		text += fmt.Sprintf(": %.256s", e.line.Errstr)
	}
	return text
}

// ofSession are the messages that a manager sends when the hello is over.
var ofSession = []string{alloc.TopicAlloc, alloc.TopicCancel, alloc.TopicPrioritize, alloc.TopicFree, alloc.TopicExpiration}

// dispatch does what a message says. After an error nothing has changed.
func (s *session) dispatch(m alloc.Line) error {
	switch ours := strings.HasPrefix(m.Topic, "job-manager."); {
	case m.Topic == alloc.TopicHello:
		return s.onHello(m)
	case m.Errnum != 0 && (ours || m.Topic == topicAcquire):
		return &fatalError{m}
	case m.Errnum != 0:
		return refuse(errno.Invalid, "a request has no errnum")
	}
	if !s.greeted && slices.Contains(ofSession, m.Topic) {
		s.logf("%s dropped: it is of another session", m.Topic)
		return nil
	}
	switch m.Topic {
	case topicAcquire:
		a, err := pool.ParseAcquire(m.Payload)
		if err != nil {
			return err
		}
		return s.acquire(a)
	case alloc.TopicReady:
		if len(m.Payload) == 0 {
			return nil // as early drafts of RFC 27 have it
		}
		return read(alloc.Parse[alloc.ReadyResponse], m, func(alloc.ReadyResponse) error { return nil })
	case alloc.TopicAlloc:
		return read(alloc.Parse[alloc.Request], m, s.onAlloc)
	case alloc.TopicCancel:
		return read(alloc.Parse[alloc.Cancel], m, func(c alloc.Cancel) error { s.cancel(c); return nil })
	case alloc.TopicPrioritize:
		return read(alloc.Parse[alloc.Prioritize], m, func(p alloc.Prioritize) error { s.prioritize(p); return nil })
	case alloc.TopicFree:
		return read(alloc.Parse[alloc.Free], m, s.free)
	case alloc.TopicExpiration:
		return read(alloc.Parse[alloc.Expiration], m, s.onExpiration)
	case alloc.TopicFeasibility:
		return read(alloc.Parse[alloc.Feasibility], m, s.onFeasibility)
	case topicStatus:
		return s.onStatus()
	case topicHolders:
		return s.onHolders()
	}
	return refuse(errno.NoSys, "no such topic")
}

// read reads a payload and does what it says.
func read[M any](parse func([]byte) (M, error), l alloc.Line, do func(M) error) error {
	m, err := parse(l.Payload)
	if err != nil {
		return err
	}
	return do(m)
}

// onHello takes an answer to the hello: a job that holds resources, or the end
// of them.
func (s *session) onHello(m alloc.Line) error {
	switch m.Errnum {
	case 0:
		h, err := alloc.Parse[alloc.HelloResponse](m.Payload)
		if err != nil {
			s.ready = false
			s.missed()
			return err
		}
		return s.adopt(h)
	case alloc.NoData:
		s.greeted = true
		if err := s.adopted(); err != nil {
			return err
		}
		s.send(alloc.TopicReady, alloc.Ready{Limit: s.limit})
		s.schedule(nil)
		return nil
	}
	return &fatalError{m}
}

// onAlloc takes a request, which may know the time.
func (s *session) onAlloc(q alloc.Request) error {
	s.clock.Advance(q.Submit)
	s.tick()
	return s.request(q)
}

// onExpiration changes an expiration and says that it did.
func (s *session) onExpiration(e alloc.Expiration) error {
	if err := s.expire(e); err != nil {
		return err
	}
	s.write(alloc.Line{Topic: alloc.TopicExpiration}.AppendText(nil))
	return nil
}

// onFeasibility responds whether a job could ever run. That it could not is an
// answer as good as any.
func (s *session) onFeasibility(f alloc.Feasibility) error {
	if s.pool == nil {
		return refuse(errno.Again, "there is no inventory yet")
	}
	m := alloc.Line{Topic: alloc.TopicFeasibility}
	if _, err := s.understand(f.Jobspec); err != nil {
		m.Errnum, m.Errstr = errnumOf(err), reason(err)
	}
	s.write(m.AppendText(nil))
	return nil
}

// summaryOf returns the annotations of an allocation. What was annotated while
// the job waited is taken back.
func summaryOf(j *job, r *rset.R) json.RawMessage {
	sched := map[string]any{"resource_summary": r.String()}
	if j.estimate > 0 {
		sched["t_estimate"], sched["reason_pending"] = nil, nil
	}
	if j.behind > 0 {
		sched["backfill"] = j.behind.String()
	}
	return annotations(sched)
}

// estimateOf returns the annotations of a waiting job; 0 takes them back.
func estimateOf(at eventlog.Timestamp) json.RawMessage {
	if at == 0 {
		return annotations(map[string]any{"t_estimate": nil, "reason_pending": nil})
	}
	return annotations(map[string]any{"t_estimate": at, "reason_pending": "insufficient resources"})
}

// annotations returns the annotations of a scheduler, keys in order.
func annotations(sched map[string]any) json.RawMessage {
	b, err := json.Marshal(map[string]any{"sched": sched})
	if err != nil {
		panic(err) // strings, nulls and times that were read
	}
	return b
}
