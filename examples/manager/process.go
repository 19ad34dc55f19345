package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/examples/internal/errno"
	"github.com/joblife/joblife/examples/internal/lines"
	"github.com/joblife/joblife/examples/internal/service"
	"github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/rset/alloc"
)

// A process is the service, and what goes between it, the clients and the store. Its inputs
// come by put.
type process struct {
	o      options
	clock  *lines.Clock
	store  store
	kvs    *kvs // the store, if a peer has it
	stderr io.Writer
	live   bool            // the Loop runs; else each input is handled to its end
	over   context.Context // ends with the process
	cancel func()
	opened chan struct{} // closed when there is a service
	alive  func()        // is called each second from then on, while the Loop turns; may be nil
	ended  chan bool     // closed when the Loop runs no more

	mu     sync.Mutex // where no Loop runs
	inside bool       // the Loop has called
	last   time.Time  // of the Loop, where it does not run

	started bool             // the store is being read
	startBy time.Time        // when it is read without a bridge; zero: nobody has come
	service *service.Service // nil until it is
	early   []early          // requests that came before that
	room    [2]int           // for more requests of the owner, and of guests, while the store is busy

	clients []*client // by age
	calls   calls
	nobody  []call  // calls that there was nobody for
	writing bool    // the peer commits
	client  *client // whose line is being handled, and
	line    int     // its number
	failed  error   // why the process ends
	stats   stats
}

// stats is what the summary prints.
type stats struct{ requests, failures, refused, submitted, over, commits int }

// An early request came before the service.
type early struct {
	client *client
	line   int
	message
}

// The limits of requests that come while the store is read, or while the peer commits.
const (
	maxBusy    = 64 << 20 // bytes of guests, and as many of the owner
	perRequest = 4 << 10  // of them, for what is kept of each
)

func busyRoom() [2]int { return [2]int{maxBusy, maxBusy} }

// newProcess returns a process that has not read its store.
func newProcess(o options, stderr io.Writer) (*process, error) {
	p := &process{
		o: o, clock: o.NewClock(), stderr: stderr, room: busyRoom(), opened: make(chan struct{}), ended: make(chan bool),
	}
	p.over, p.cancel = context.WithCancel(context.Background())
	var err error
	if p.store, err = openStore(p); err != nil {
		err = fmt.Errorf("-store: %w", err)
	}
	return p, err
}

// bridgeIn is how long a store waits for the bridge: what an earlier process left needs it.
const bridgeIn = 10 * time.Second

// meet notes that a client said something. The store is read when one comes that may be the
// bridge: it says more than a hello of its own.
func (p *process) meet(c *client, m message) {
	if m.Sender == nil && (m.Topic == alloc.TopicHello || m.Topic == exec.TopicHello) {
		return
	}
	if c.spoke = true; !p.started {
		p.start()
	}
}

// now returns the time, by which calls can wait.
func (p *process) now() time.Time { return p.clock.Time() }

// fail ends the process. The first reason counts.
func (p *process) fail(err error) {
	if p.failed == nil {
		p.failed = err
		p.hangUp()
		p.cancel()
	}
}

// printf writes a message for people.
func (p *process) printf(level service.Level, format string, args ...any) {
	word := map[service.Level]string{service.LevelError: "error: ", service.LevelWarning: "warning: "}[level]
	text := fmt.Sprintf(format, args...)
	if p.o.config.ASCII {
		text = strings.ReplaceAll(text, "ƒ", "f")
	}
	fmt.Fprintf(p.stderr, "manager: %s%s\n", word, lines.Escape(text))
}

func (p *process) warnf(format string, args ...any) { p.printf(service.LevelWarning, format, args...) }

// blame is printf about the line that is handled, which is at fault. A guest could fill the log.
func (p *process) blame(m message, format string, args ...any) {
	where := ""
	if !m.isOwners() {
		return
	}
	if p.line > 0 {
		where = fmt.Sprintf("line %d: ", p.line)
	}
	if p.client.id > 0 {
		where = fmt.Sprintf("client %d: %s", p.client.id, where)
	}
	p.warnf("%s%s", where, fmt.Sprintf(format, args...))
}

// about calls what a line is about.
func (p *process) about(c *client, line int, do func()) {
	defer func(c *client, line int) { p.client, p.line = c, line }(p.client, p.line)
	p.client, p.line = c, line
	do()
}

// handle takes a line, and does all that can be done then.
func (p *process) handle(c *client, l lines.Line) {
	p.about(c, l.Number, func() {
		var long *lines.LongError
		switch {
		case errors.As(l.Err, &long):
			p.refuse(addressee(long.Head), errno.Size, l.Err)
		case l.Err != nil:
			p.fail(fmt.Errorf("line %d: input: %w", l.Number, l.Err))
		default:
			m, err := parseMessage(l.Text)
			p.message(m, len(l.Text), err)
		}
	})
}

// message handles a message of so many bytes, or what could be read of it.
func (p *process) message(m message, size int, err error) {
	if err == nil && m.Time > 0 && !p.clock.Advance(m.Time) && m.Topic == "" {
		err = errNoTopic
	}
	c, line := p.client, p.line
	if err == nil {
		p.meet(c, m)
		if m.Topic == "" { // the time alone
			p.pass()
		}
	}
	p.do(func() {
		p.about(c, line, func() { p.serve(m, size, err) })
	})
}

func (p *process) serve(m message, size int, err error) {
	switch {
	case err != nil:
		p.refuse(m, errno.Protocol, err)
	case p.failed != nil:
	case m.Topic == "": // the time alone
	case !strings.HasPrefix(m.Topic, serviceName+"."):
		p.respond(m)
	case m.Errnum != 0: // an error of the peer's: to answer it would have no end
		p.stats.refused++
		p.blame(m, "%.256s: errnum %d: %.256s", m.Topic, m.Errnum, m.Errstr)
	case p.over.Err() != nil: // it ends, and hears only what the store waits for
	case !p.hasRoom(m, size):
		p.refuse(m, errno.Busy, errors.New("too many requests while the store is busy"))
	case p.service == nil:
		p.early = append(p.early, early{p.client, p.line, m})
	default:
		p.request(m)
	}
}

// hasRoom reports whether a request may wait for the store. That somebody is gone, or that the broker
// shuts down, always may, as the owner says: nobody says it twice.
func (p *process) hasRoom(m message, size int) bool {
	room := &p.room[0]
	if !m.isOwners() {
		room = &p.room[1]
	}
	if p.service == nil || p.writing {
		*room -= size + perRequest
	}
	return *room >= 0 || m.isOwners() && (m.Topic == topicDisconnect || m.Topic == topicShutsDown)
}

// refuse answers a line that changes nothing.
func (p *process) refuse(m message, errnum int, err error) {
	p.stats.refused++
	text := strings.TrimPrefix(err.Error(), m.Topic+": ")
	o, where := output{Topic: topicError, Sender: m.Sender, Errnum: errnum, Errstr: text}, m.Topic+": "
	switch {
	case m.Topic == "":
		where = ""
	case strings.HasPrefix(m.Topic, serviceName+"."):
		o.Topic, o.Matchtag = m.Topic, or(m.Matchtag, 0)
	default: // it answers a call
		o.Errstr = where + text
	}
	p.blame(m, "%.258s%.256s", where, text)
	p.write(p.client, o)
}

// request gives a request to the service.
func (p *process) request(m message) {
	p.stats.requests++
	r := service.Request{
		Topic: m.Topic, Sender: p.client.key(m.Sender), Matchtag: or(m.Matchtag, untagged),
		UserID: or(m.UserID, p.o.owner), Rolemask: or(m.Rolemask, 1), Payload: m.Payload, Single: !or(m.Streaming, true), Session: m.Session,
	}
	if m.Topic == topicDisconnect && m.Sender == nil {
		r.Sender = "" // whose it is, nobody knows
	}
	p.service.Request(r)
	if m.Sender == nil && p.client.id > 0 {
		scheduler, executor := p.service.Roles(r.Sender)
		p.client.scheduler = p.client.scheduler || scheduler
		p.client.executor = p.client.executor || executor
	}
}

// respond takes the response to a call, if it is of the one who was asked.
func (p *process) respond(m message) {
	c, known, err := p.calls.answered(p.client, m)
	switch {
	case err != nil:
	case known:
		err = c.then(m)
	case p.service == nil:
		err = errors.New("the store is not read yet")
	default: // it names a job
		if to, ok := p.service.Whom(m.Topic); ok {
			if client, sender := p.find(to); client != p.client || !m.isFrom(sender) {
				err = errStranger
				break
			}
		}
		err = p.answered(0, m)
	}
	if err != nil {
		p.refuse(m, errno.Invalid, err)
	}
}

// answered gives the service the response to a call of its own.
func (p *process) answered(tag uint64, m message) error {
	return p.service.Respond(service.Response{
		Topic: m.Topic, Tag: tag, Payload: m.Payload, Errnum: m.Errnum, Errstr: m.Errstr,
	})
}

// settle does what the time has brought.
func (p *process) settle() {
	for c, ok := p.calls.overdue(p.now()); ok; c, ok = p.calls.overdue(p.now()) {
		p.lost(c, errno.TimedOut, "there is no answer")
	}
	if !p.started && !p.startBy.IsZero() && !p.startBy.After(p.now()) {
		p.start()
	}
}

// dispatch sends what the service has.
func (p *process) dispatch(out *service.Out) {
	p.tell(out)
	for _, l := range out.Log {
		p.printf(l.Level, "%s", l.Text)
	}
	for _, a := range out.Answers {
		p.answer(a)
	}
	for _, c := range out.Calls {
		p.call(c)
	}
	for _, e := range out.Events {
		for _, c := range p.clients {
			if !c.scheduler || c == p.bridge() {
				p.write(c, output{Event: e.Topic, Private: e.Private, Payload: e.Payload})
			}
		}
	}
	for _, key := range out.Ended {
		p.dismiss(key)
	}
}

// tell counts, and prints with -v, what happened to jobs.
func (p *process) tell(out *service.Out) {
	if len(out.Append) > 0 {
		p.stats.commits++
	}
	for _, r := range out.Append {
		if r.Kind != joblife.RecordEvent {
			continue
		}
		e, err := eventlog.Parse(r.Data)
		if err != nil {
			continue // it was read before
		}
		switch e.Name {
		case "submit":
			p.stats.submitted++
		case "clean":
			p.stats.over++
		}
		if p.o.Verbose {
			fmt.Fprintln(p.stderr, lines.Escape(strings.TrimSpace(fmt.Sprintf("manager: %v %s %s", r.Job, e.Name, e.Context))))
		}
	}
}

// answer sends an answer to whom it is for.
func (p *process) answer(a service.Answer) {
	if a.Errnum != 0 && a.Errnum != 61 {
		p.stats.failures++
	}
	c, sender := p.find(a.Sender)
	if c == nil {
		return // it is gone
	}
	o := output{Topic: a.Topic, Matchtag: a.Matchtag, Sender: sender, Payload: a.Payload, Errnum: a.Errnum, Errstr: a.Errstr}
	if a.Matchtag == untagged {
		o.Matchtag = 0
	}
	p.write(c, o)
}

// find returns the client and the sender that a key is for.
func (p *process) find(key string) (*client, *string) {
	number, name, named := strings.Cut(key, ":")
	id, _ := strconv.Atoi(number) // "" is 0
	i := slices.IndexFunc(p.clients, func(c *client) bool { return c.id == id })
	if i < 0 {
		return nil, nil
	}
	if !named {
		return p.clients[i], nil
	}
	return p.clients[i], &name
}

// call sends a call of the service to whom takes it.
func (p *process) call(c service.Call) {
	out := call{client: p.bridge(), topic: c.Topic, session: c.Session, stream: c.Stream}
	if c.Tag != 0 {
		out.then = func(m message) error { return p.answered(c.Tag, m) }
	}
	if c.To != "" {
		out.client, out.sender = p.find(c.To)
	}
	if !p.ask(out, c.Nodeid, c.Payload) && out.then != nil {
		if p.nobody = append(p.nobody, out); len(p.nobody) == 1 { // all in one function: an inbox has its end
			_ = p.enter(func() {
				list := p.nobody
				p.nobody = nil
				for _, c := range list {
					p.lost(c, errno.NoSys, "there is nobody to ask")
				}
			})
		}
	}
}

// reads reports whether a sender's client has read what it was sent, or is gone.
func (p *process) reads(sender string) bool {
	c, _ := p.find(sender)
	return c == nil || c.calm == nil || c.calm(func() { go p.put(input{}) })
}

// dismiss tells a scheduler or an executor that its session is over. A connection of its own
// ends.
func (p *process) dismiss(key string) {
	c, sender := p.find(key)
	if c == nil {
		return
	}
	p.write(c, output{
		Topic: topicError, Sender: sender, Errnum: errno.Unreachable, Errstr: "the session is over: say hello again",
	})
	if sender == nil && c.id > 0 {
		c.close()
	}
}

// bridge returns the client that takes what no session does: of those who are neither
// scheduler nor executor the one that has been there longest, if it has spoken. If there is
// only one client it is that. It is nil if there is none.
func (p *process) bridge() (b *client) {
	worth := func(c *client) int {
		switch {
		case c.scheduler || c.executor:
			return 0
		case !c.spoke:
			return 1
		}
		return 2
	}
	for _, c := range p.clients {
		if b == nil || worth(c) > worth(b) {
			b = c
		}
	}
	return b
}

// answerIn is how long the answer to a call may take.
const answerIn = 5 * time.Minute

// ask sends a call, and reports whether there is a client to take it.
func (p *process) ask(c call, nodeid int, payload any) bool {
	if c.client == nil {
		return false
	}
	c.until = p.now().Add(answerIn)
	o := output{Topic: c.topic, Sender: c.sender, Session: c.session, Stream: c.stream, Payload: payload}
	if nodeid != service.Any {
		o.Nodeid = &nodeid
	}
	if c.then != nil {
		o.Matchtag = p.calls.add(c)
	}
	p.write(c.client, o)
	return true
}

// lost answers a call that nobody will answer.
func (p *process) lost(c call, errnum int, text string) {
	_ = c.then(message{Topic: c.topic, Errnum: errnum, Errstr: text}) // that of a session that is over has an answer
}

// leave takes back what a client asked for that is gone.
func (p *process) leave(c *client) {
	p.clients = slices.DeleteFunc(p.clients, func(o *client) bool { return o == c })
	if c.close(); len(p.clients) == 0 {
		p.startBy = time.Time{} // it waits for others
	}
	p.early = slices.DeleteFunc(p.early, func(e early) bool { return e.client == c })
	if p.service != nil {
		if err := p.service.Leave(c.owns); err != nil {
			p.printf(service.LevelError, "%v", err)
		}
	}
	for _, lost := range p.calls.of(c) {
		p.lost(lost, errno.Unreachable, "the client is gone")
	}
	if p.kvs != nil && p.kvs.peer == c {
		p.fail(errors.New("-store: the client that has the KVS is gone, and no other can know what is in it: start again when it is back"))
	}
}

// write sends an output to a client.
func (p *process) write(c *client, o output) {
	if c.put != nil {
		c.put(o)
	} else if _, err := c.out.Write(o.line()); err != nil {
		c.broken(err)
	}
}

// summarize writes a summary for people.
func (p *process) summarize() {
	s := &p.stats
	p.printf(service.LevelInfo, "%s, %d failed, %s refused; %s submitted, %d over, %s",
		lines.Count(s.requests, "request"), s.failures, lines.Count(s.refused, "line"),
		lines.Count(s.submitted, "job"), s.over, lines.Count(s.commits, "commit"))
}
