package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/examples/internal/errno"
	"github.com/joblife/joblife/examples/internal/flux"
	"github.com/joblife/joblife/examples/internal/lines"
	"github.com/joblife/joblife/examples/internal/service"
	"github.com/joblife/joblife/examples/internal/service/conf"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
)

// A broker is the client that a worker has: the instance, by way of its keeper.
type broker struct {
	p      *process
	c      *client
	conn   *flux.Conn
	begun  chan struct{}           // closed when there is a process
	routes bySender[*flux.Message] // requests that are not answered to their end
	awaits atomic.Bool             // that the keeper reads

	// logged has when the log of a job has an exception, by its hash, but for those that came
	// again. It is read once for the messages that come again together.
	logged map[jobid.ID]map[uint64][]eventlog.Timestamp
	seed   maphash.Seed
}

// A asked is what names a request.
type asked struct {
	sender   string
	matchtag uint32
}

// A bySender has something of each request. What is of one sender costs nothing of others.
type bySender[T any] map[string]map[uint32]T

func (s bySender[T]) of(a asked) T { return s[a.sender][a.matchtag] }

func (s bySender[T]) set(a asked, v T) {
	if s[a.sender] == nil {
		s[a.sender] = make(map[uint32]T)
	}
	s[a.sender][a.matchtag] = v
}

func (s bySender[T]) drop(a asked) {
	if delete(s[a.sender], a.matchtag); len(s[a.sender]) == 0 {
		delete(s, a.sender)
	}
}

// senderOf names who sent a request, or gets a response. Any client can put the name of another
// in front of its route, so those that are not the owner's have the user's id in theirs.
func senderOf(m *flux.Message) string {
	if m.Rolemask&flux.RoleOwner != 0 {
		return m.Sender()
	}
	return fmt.Sprint(m.Sender(), " of user ", m.UserID)
}

// workerVariable says to a process that it is the worker of a keeper: "1", or workerEnding if the
// broker shuts down, so that no epilog begins.
const (
	workerVariable = "JOBLIFE_WORKER"
	workerEnding   = "ending"
)

// startWait is how long the broker may take for its answers at the start.
const startWait = 30 * time.Second

// attach serves a running Flux until ctx is done, the broker ends, or the module is removed.
func (o *options) attach(ctx context.Context, uri string, stderr io.Writer) error {
	if o.store == "memory" {
		o.store = "lines"
	}
	if os.Getenv(workerVariable) != "" {
		return o.work(ctx, os.Getenv(flux.ModuleURI))
	}
	return o.keep(ctx, uri, stderr)
}

// work is the worker of a keeper.
func (o *options) work(ctx context.Context, uri string) error {
	signal.Notify(make(chan os.Signal, 1), os.Interrupt, syscall.SIGTERM) // a second one does not kill: the keeper sees to that
	b := &broker{begun: make(chan struct{}), routes: make(bySender[*flux.Message]), seed: maphash.MakeSeed()}
	conn, err := flux.Dial(ctx, link(uri, b.handle, func(err error) {
		<-b.begun
		b.p.printf(service.LevelError, "%v", err)
	}))
	if err != nil {
		return fmt.Errorf("-flux: %w", err)
	}
	defer conn.Close()
	log := &fluxLog{conn}
	if err = o.ask(ctx, conn); err == nil {
		if os.Getenv(workerVariable) == workerEnding { // before it reads the jobs
			o.config.Manager.Actions.Epilogs = nil
		}
		b.conn = conn
		err = o.serveFlux(ctx, b, log)
	}
	if err != nil {
		log.say(flux.LogErr, err.Error())
	}
	return err
}

// serveFlux serves what is received until ctx is done, or the connection ends.
func (o *options) serveFlux(ctx context.Context, b *broker, log io.Writer) error {
	p, err := newProcess(*o, log)
	if err != nil {
		return err
	}
	p.live, p.calls.last = true, firstTag
	b.p, b.c = p, p.only(nil)
	b.c.put, b.c.receive, b.c.calm = b.send, b.receive, b.calm
	b.c.broken = func(err error) { p.fail(fmt.Errorf("-flux: %w", err)) }
	close(b.begun)
	go func() {
		<-b.conn.Done()
		p.put(input{line: lines.Line{Err: fmt.Errorf("-flux: %w", b.conn.Err())}})
	}()
	p.mu.Lock()
	b.c.spoke = true
	p.start()
	p.mu.Unlock()
	p.alive = func() { _ = b.conn.Running() } // the end of the connection tells
	go func() {
		<-p.opened
		p.alive()
	}()
	return p.run(ctx)
}

// maxPayload is the longest payload between broker, keeper and worker. In base64 the longest log
// has 22 MiB.
const maxPayload = 64 << 20

// link returns the configuration of a connection between two of them.
func link(uri string, handle func(flux.Message), skipped func(error)) flux.Config {
	return flux.Config{URI: uri, Handle: handle, Skipped: skipped, Max: maxPayload + 1<<20, Room: 2 * maxPayload}
}

// Most bytes that wait on such a connection before who sends more waits, and before the scheduler
// and the executor are told more.
const (
	fullBehind = maxPayload / 2
	calmBehind = 1 << 20
)

// await waits until no more than so many bytes wait for the other side, or it is gone, or nobody
// wants to wait any more.
func await(c *flux.Conn, most int, over <-chan struct{}) {
	for c.Behind() > most && c.Err() == nil && !isClosed(over) {
		time.Sleep(time.Millisecond)
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// handle takes what is received, and has the connection wait until that is handled. Nothing comes
// before requests are served but answers of the KVS.
func (b *broker) handle(m flux.Message) {
	<-b.begun
	b.p.put(input{client: b.c, flux: &m})
}

// firstTag is beyond the matchtags of the connection's own calls.
const firstTag = 1 << 24

// ask asks the broker for what the command line does not say, and the keeper for the configuration.
func (o *options) ask(ctx context.Context, conn *flux.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, startWait)
	defer cancel()
	owner, err := conn.Attr(ctx, "security.owner")
	var text json.RawMessage
	if err == nil {
		err = conn.GetConfig(ctx, &text)
	}
	if err == nil {
		var id uint64
		id, err = strconv.ParseUint(owner, 10, 32)
		o.owner = uint32(id)
		o.config.Manager.Owner = o.owner
	}
	if err == nil {
		o.config, err = conf.Parse(o.config, text)
	}
	if err != nil {
		return fmt.Errorf("-flux: %w", err)
	}
	return nil
}

// A fluxLog writes lines for people to the broker's log, which flux dmesg shows.
type fluxLog struct{ conn *flux.Conn }

func (l *fluxLog) Write(text []byte) (int, error) {
	for line := range strings.Lines(string(text)) {
		level, text := flux.LogInfo, strings.TrimPrefix(strings.TrimSuffix(line, "\n"), "manager: ")
		if rest, ok := strings.CutPrefix(text, "error: "); ok {
			level, text = flux.LogErr, rest
		} else if rest, ok := strings.CutPrefix(text, "warning: "); ok {
			level, text = flux.LogWarning, rest
		}
		l.say(level, text)
	}
	return len(text), nil
}

func (l *fluxLog) say(level int, text string) {
	_ = l.conn.Log(flux.LogEntry{Level: level, Name: serviceName, Text: text}) // when the broker is gone nobody reads it
}

// receive handles a message of the instance.
func (b *broker) receive(f *flux.Message) {
	if !f.Flags.Has(flagAgain) {
		b.logged = nil
	}
	m := message{Topic: f.Topic}
	raisedAgain := f.Type == flux.TypeRequest && f.Topic == topicRaise && f.Flags.Has(flagAgain)
	var came eventlog.Timestamp
	if raisedAgain {
		came, f.Payload = undated(f.Payload)
	}
	if f.Payload != nil {
		text, err := f.JSON()
		switch {
		case err != nil && f.Type == flux.TypeRequest:
			if !f.Flags.Has(flux.FlagNoResponse) {
				_ = b.reply(f, f.RespondError(errno.Protocol, err.Error()))
			}
			return
		case err != nil: // whose answer it is refuses it, and ends the session of a scheduler
			text = f.Payload
		}
		m.Payload = text
	}
	switch f.Type {
	case flux.TypeRequest:
		if f.Topic == serviceName+".ping" && f.Rolemask != 0 {
			_ = b.reply(f, f.Pong())
			return
		}
		if raisedAgain && b.isRaised(f, m.Payload, came) {
			_ = b.reply(f, f.Respond(nil))
			return
		}
		b.request(f, m)
	case flux.TypeResponse:
		if f.Rolemask&flux.RoleOwner == 0 {
			return // whom the instance does not know asks nothing of it
		}
		if f.Matchtag != 0 {
			m.Matchtag = &f.Matchtag
		}
		if failed := (*flux.Error)(nil); errors.As(f.Err(), &failed) {
			m.Payload, m.Errnum, m.Errstr = nil, int(failed.Errnum), failed.Text
		}
		if !f.Flags.Has(flagAgain) || !b.isLogged(m.Payload) {
			b.p.message(m, len(f.Payload), nil)
		}
	}
}

// flagAgain is on a message that was told to a worker before: a response of an executor, a request
// that is not answered, or what cancels it. Most that come twice say nothing new; of an exception
// the worker looks into the log.
const flagAgain = flux.FlagUser1

// dated returns the payload of a raise that comes again: it begins with the time when it came first.
func dated(came eventlog.Timestamp, payload []byte) []byte {
	return append(append(strconv.AppendFloat(nil, float64(came), 'g', -1, 64), ' '), payload...)
}

// undated takes the time off, which a keeper wrote. It aliases the payload; nil is none.
func undated(text []byte) (came eventlog.Timestamp, payload []byte) {
	date, payload, _ := bytes.Cut(text, []byte(" "))
	t, _ := strconv.ParseFloat(string(date), 64)
	if len(payload) == 0 {
		payload = nil
	}
	return eventlog.Timestamp(t), payload
}

// An exception is what the log has of one.
type exception struct {
	Type     string
	Severity int
	Note     string
	UserID   uint32
}

// maxNote is less than what the log keeps of words from outside: it ends within the last character.
const maxNote = 4<<10 - utf8.UTFMax

// hash returns the hash of what the log and who raised an exception have in common of it. Nobody
// outside can find two with the same one.
func (b *broker) hash(x exception) uint64 {
	x.Type, x.Note = x.Type[:min(len(x.Type), maxNote)], x.Note[:min(len(x.Note), maxNote)]
	return maphash.Comparable(b.seed, x)
}

// exceptions returns those in the log of a job, which need less memory than the log.
func (b *broker) exceptions(id jobid.ID) map[uint64][]eventlog.Timestamp {
	if list, ok := b.logged[id]; ok {
		return list
	}
	stored, err := b.p.store.lookup(id)
	if err != nil {
		b.p.warnf("job %v: %v", id, err)
	}
	list := make(map[uint64][]eventlog.Timestamp)
	for line := range bytes.Lines(stored.Eventlog) {
		var x exception
		if e, err := eventlog.Parse(line); err == nil && e.Name == jobstate.EventException && json.Unmarshal(e.Context, &x) == nil {
			hash := b.hash(x)
			list[hash] = append(list[hash], e.Timestamp)
		}
	}
	if b.logged == nil {
		b.logged = make(map[jobid.ID]map[uint64][]eventlog.Timestamp)
	}
	b.logged[id] = list
	return list
}

// isRaised reports whether the log has what a request raises, in the same words of the same user,
// and not from before the request came. One exception in the log is that of one request.
func (b *broker) isRaised(f *flux.Message, payload []byte, came eventlog.Timestamp) bool {
	var r struct {
		ID jobid.ID
		exception
	}
	if json.Unmarshal(payload, &r) != nil {
		return false
	}
	r.UserID = f.UserID
	logged, x := b.exceptions(r.ID), b.hash(r.exception)
	i := slices.IndexFunc(logged[x], func(at eventlog.Timestamp) bool { return at >= came })
	if i < 0 {
		return false
	}
	logged[x] = slices.Delete(logged[x], i, i+1)
	return true
}

// isLogged reports whether a response of an executor is an exception that is in the log of its
// job. The responses of a job that come again come together.
func (b *broker) isLogged(payload []byte) bool {
	var r struct {
		ID   jobid.ID
		Type string
		Data exception
	}
	if json.Unmarshal(payload, &r) != nil || r.Type != "exception" {
		return false
	}
	r.Data.UserID = b.p.o.owner // as in the log
	logged, x := b.exceptions(r.ID), b.hash(r.Data)
	if len(logged[x]) == 0 {
		return false
	}
	logged[x] = logged[x][1:] // the newest ones may be those of requests
	return true
}

// reply sends the answer to a request. The keeper has to know whose it is: see senderOf.
func (b *broker) reply(f *flux.Message, r flux.Message) error {
	r.UserID, r.Rolemask = f.UserID, f.Rolemask
	return b.conn.Send(r)
}

func (b *broker) request(f *flux.Message, m message) {
	sender, tag, streaming := senderOf(f), f.Matchtag, f.Flags.Has(flux.FlagStreaming)
	m.Sender, m.UserID, m.Rolemask, m.Streaming = &sender, &f.UserID, &f.Rolemask, &streaming
	if f.Flags.Has(flux.FlagNoResponse) {
		tag = 0
	}
	m.Matchtag = &tag
	if f.Topic == topicDisconnect {
		delete(b.routes, sender)
	}
	if tag != 0 {
		to := *f
		to.Payload = nil // it may wait for long
		b.routes.set(asked{sender, tag}, &to)
	}
	size := len(f.Payload)
	if f.Flags.Has(flagAgain) { // it was let in, and the keeper has room for it
		size = -perRequest
	}
	b.p.message(m, size, nil)
}

// send sends what the process has for the instance.
func (b *broker) send(o output) {
	var payload []byte
	if o.Payload != nil {
		text, _ := o.Payload.(json.RawMessage)
		if text == nil {
			var err error
			if text, err = json.Marshal(o.Payload); err != nil {
				o.Errnum, o.Errstr = errno.Invalid, err.Error()
			}
		}
		if payload = flux.Text([]byte(text)); len(payload) > maxPayload {
			o.Errnum, o.Errstr = errno.Size, "the answer is too long"
		}
	}
	var m flux.Message
	switch {
	case o.Event != "":
		m = flux.NewEvent(o.Event, payload)
		if o.Private {
			m.Flags |= flux.FlagPrivate
		}
	case strings.HasPrefix(o.Topic, serviceName+"."):
		a := asked{or(o.Sender, ""), o.Matchtag}
		to := b.routes.of(a)
		if to == nil {
			return // nobody waits
		}
		m = to.Respond(payload)
		m.UserID, m.Rolemask = to.UserID, to.Rolemask // for senderOf
		if o.Errnum != 0 || !isStream(to.Topic) {
			b.routes.drop(a)
		}
		if o.Errnum != 0 {
			if m.Errnum, m.Payload = uint32(o.Errnum), nil; o.Errstr != "" {
				m.Payload = flux.Text(o.Errstr)
			}
		}
	default:
		m = flux.NewRequest(o.Topic, payload)
		if m.Matchtag = o.Matchtag; o.Nodeid != nil {
			m.Nodeid = uint32(*o.Nodeid)
		}
		if o.Stream {
			m.Flags |= flux.FlagStreaming
		}
	}
	await(b.conn, fullBehind, nil) // the Loop has nothing to do but to send more
	if err := b.conn.Send(m); err != nil {
		b.c.broken(err)
	}
}

// calm reports whether the keeper has read nearly all. If not, then is called when it has.
func (b *broker) calm(then func()) bool {
	if b.conn.Behind() <= calmBehind {
		return true
	}
	if !b.awaits.Swap(true) {
		go func() {
			await(b.conn, calmBehind, nil)
			b.awaits.Store(false)
			then()
		}()
	}
	return false
}
