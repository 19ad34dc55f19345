package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/examples/internal/errno"
	"github.com/joblife/joblife/examples/internal/flux"
	"github.com/joblife/joblife/examples/internal/lines"
	"github.com/joblife/joblife/jobstate/jobid"
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
	{alloc.ErrLimit, errno.Size}, {alloc.ErrMessage, errno.Protocol}, {flux.ErrMessage, errno.Protocol}, {pool.ErrAcquire, errno.Protocol},
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
func textOf(err error) string {
	return strings.TrimPrefix(strings.TrimPrefix(err.Error(), "sched: "), "alloc: ")
}

// A peer is the other end of a conversation, with the ways to it.
type peer interface {
	send(topic string, m alloc.Message)
	// reply answers the message that is handled. The error says that the way has no room for it.
	reply(l alloc.Line) error
	// refuse answers the message that is handled and changed nothing.
	refuse(l alloc.Line, why error)
	// log tells people, with a level of package flux.
	log(level int, text string)
}

// session is the scheduler's end of a conversation.
type session struct {
	*sched.Scheduler
	stats
	now     eventlog.Timestamp // of the line; it never goes back
	to      peer
	clock   *lines.Clock
	greeted bool  // a hello was answered to its end
	line    int   // the number of the line that is handled
	failed  error // why the session ends
	refused int   // lines
	verbose bool
}

// newSession returns a session in lines.
func newSession(o options, out, stderr io.Writer) *session {
	s := &session{clock: o.NewClock(), stats: newStats(), verbose: o.Verbose}
	s.to = wire{s, out, stderr}
	cfg := sched.Config{
		Policy: policies[o.policy](o), Fit: o.fit, Limit: o.limit, Annotate: true, Forecast: o.period,
	}
	if o.Verbose {
		cfg.Logf = s.debugf
	}
	s.Scheduler = sched.New(cfg)
	s.tick()
	return s
}

// renew begins another session with the same inventory. Nothing is known of jobs.
func (s *session) renew() error {
	s.forget()
	return s.Hello(alloc.Announcement{})
}

// forget forgets what is counted of the jobs of a session.
func (s *session) forget() {
	s.greeted = false
	s.since, s.cores, s.held = make(map[jobid.ID]eventlog.Timestamp), make(map[jobid.ID]int64), 0
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
		s.debugf("%s gets %v", name, a.R)
	case alloc.ResponseDeny:
		s.debugf("%s denied: %s", name, a.Note)
	case alloc.ResponseCancel:
		s.debugf("%s canceled", name)
	case alloc.ResponseAnnotate:
		var m struct {
			Sched struct {
				Start *eventlog.Timestamp `json:"t_estimate"`
			} `json:"sched"`
		}
		if _ = json.Unmarshal(a.Annotations, &m); m.Sched.Start != nil { // these are ours
			s.debugf("%s is to start at %v", name, *m.Sched.Start)
		} else {
			s.debugf("the start of %s is no longer known", name)
		}
	}
}

// logf tells people about the message that is handled.
func (s *session) logf(level int, format string, args ...any) {
	s.to.log(level, lines.Escape(fmt.Sprintf(format, args...)))
}

func (s *session) errorf(format string, args ...any) { s.logf(flux.LogErr, format, args...) }
func (s *session) debugf(format string, args ...any) { s.logf(flux.LogDebug, format, args...) }

func (s *session) send(topic string, m alloc.Message) { s.to.send(topic, m) }

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
	if l.Topic == "" && text.Err == nil && isEvent(text.Text) {
		return s.failed
	}
	return s.handle(l, m, err)
}

// handle does what a message says, with what alloc.ParseFromManager returns, and what follows.
// The error is one that ends the session.
func (s *session) handle(l alloc.Line, m alloc.Message, err error) error {
	if l.Topic != "" {
		s.tick()
		err = s.dispatch(l, m, err)
	} else {
		s.Missed(l)
	}
	if err != nil {
		s.refused++
		if l.Topic != "" {
			s.errorf("%.256s: %s", l.Topic, textOf(err))
		} else {
			l.Topic = topicError
			s.errorf("%s", textOf(err))
		}
		s.to.refuse(l, err)
	}
	if s.failed == nil {
		s.decide()
	}
	return s.failed
}

// ofSession are the messages that a manager sends when the hello is over.
var ofSession = []string{alloc.TopicAlloc, alloc.TopicCancel, alloc.TopicPrioritize, alloc.TopicFree, alloc.TopicExpiration}

// dispatch does what a line says. err says that its message cannot be parsed. After an error
// nothing has changed. A failure of the peer ends the session, as RFC 27 and 28 have it.
func (s *session) dispatch(l alloc.Line, m alloc.Message, err error) error {
	if l.Topic == alloc.TopicHello && s.greeted { // another hello
		s.forget()
	}
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
			s.debugf("%s dropped: it is of another session", l.Topic)
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
			err = s.acquire(a)
		}
		return err
	case l.Topic == topicStatus, l.Topic == topicHolders:
		return s.answer(l.Topic)
	}
	return errNoTopic
}

// acquire takes the inventory, or a change of it.
func (s *session) acquire(a pool.Acquire) error {
	err := s.Acquire(a)
	if err == nil {
		s.capacity = s.Pool().Inventory().Count("core")
	}
	return err
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
			err = s.to.reply(alloc.Line{Topic: alloc.TopicExpiration})
		}
	case alloc.Feasibility: // that a job could never run is an answer as good as any
		if errors.Is(err, sched.ErrNotReady) {
			return err
		}
		l := alloc.Line{Topic: alloc.TopicFeasibility}
		if err != nil {
			l.Errnum, l.Errstr = errnumOf(err), sched.Reason(err)
		}
		return s.to.reply(l)
	}
	s.took(m, err, s)
	return err
}
