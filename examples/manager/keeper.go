//go:build unix

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/examples/internal/errno"
	"github.com/joblife/joblife/examples/internal/flux"
	"github.com/joblife/joblife/jobstate/jobid"
)

// A keeper has the connection to the broker, and runs the manager as a process of its own, the
// worker. If that ends, the keeper starts another one, and tells it what it has to know of the
// sessions that go on: the scheduler, the executor and all who wait notice nothing. It decides
// nothing, and stores nothing.
type keeper struct {
	module bool // of the broker; else a client that has registered the service
	file   bool // it has another configuration than the broker's, until that changes
	stderr io.Writer
	broker *flux.Conn
	end    func()       // as the broker asks a module to
	odd    atomic.Int64 // messages that cannot be read

	mu      sync.Mutex
	worker  *worker
	begun   bool                   // a worker has served requests
	closing bool                   // the broker shuts down
	left    bool                   // no worker comes any more
	conf    []byte                 // with which workers begin, the last that one has accepted
	starts  []change               // what has changed queues in the workers alone, and what followed
	plugins []change               // what has loaded and removed plugins
	open    bySender[*request]     // requests that are not answered to their end
	last    uint64                 // the number of the last of them
	size    int                    // of all of them
	calls   map[uint32]*calling    // requests of workers, by their matchtag at the broker
	commits int                    // how many of the worker's are for the KVS to commit
	tag     uint32                 // the last of these
	told    map[asked]told         // what was told to streams that go on
	own     map[asked]func(answer) // the keeper's requests to a worker
	sched   schedSession
	exec    execSession
	started map[jobid.ID]*startedJob // what executors were asked
}

// A request is one that came for the manager.
type request struct {
	flux.Message
	number uint64
	came   eventlog.Timestamp
	sent   bool          // to a worker
	cancel *flux.Message // that ends it
}

// unanswered names a request that nobody wants answered, and that waits for a worker.
func unanswered(number uint64) asked { return asked{fmt.Sprint("request ", number), 0} }

// A calling is a request that a worker made.
type calling struct {
	worker  *worker
	tag     uint32
	topic   string
	rank    uint32
	pid     int // of a process that rexec has started, when started is closed
	started chan struct{}
	done    chan struct{} // closed with the last response
}

// keep serves a running Flux by workers until ctx is done, the broker ends, the module is
// removed, or workers end again and again.
func (o *options) keep(ctx context.Context, uri string, stderr io.Writer) error {
	module := uri == "" && os.Getenv(flux.ModuleURI) != ""
	if module {
		uri = os.Getenv(flux.ModuleURI)
	}
	k := &keeper{
		module: module, file: o.file != "", conf: o.text, stderr: stderr,
		open: make(bySender[*request]), calls: make(map[uint32]*calling), tag: firstCall, told: make(map[asked]told),
		own: make(map[asked]func(answer)), started: make(map[jobid.ID]*startedJob),
	}
	ctx, k.end = context.WithCancel(ctx)
	defer k.end()
	k.sched.reset()
	k.mu.Lock() // no message before there is a worker
	conn, err := flux.Dial(ctx, link(uri, k.fromBroker, k.skipped))
	k.broker = conn
	k.mu.Unlock()
	if err != nil {
		return fmt.Errorf("-flux: %w", err)
	}
	defer conn.Close()
	if err = k.follow(ctx); err == nil {
		err = k.run(ctx)
	}
	switch k.leave(); {
	case errors.Is(err, context.Canceled): // it was asked to end
		err = nil
	case err != nil:
		(&fluxLog{conn}).say(flux.LogErr, err.Error())
	}
	if module {
		conn.Leave(err)
	}
	return err
}

// leave answers those whom no worker has answered, and who would wait for ever.
func (k *keeper) leave() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.left = true
	for sender, list := range k.open {
		for tag, q := range list {
			k.refuse(&q.Message, errno.NoSys, hasEnded)
			k.drop(asked{sender, tag})
		}
	}
}

const hasEnded = "the job manager has ended"

// refuse answers a request that no worker gets.
func (k *keeper) refuse(m *flux.Message, errnum uint32, text string) {
	if !m.Flags.Has(flux.FlagNoResponse) {
		k.respond(senderOf(m), m.RespondError(errnum, text))
	}
}

// respond sends an answer to who has asked, or says that what the keeper asked is refused.
func (k *keeper) respond(sender string, m flux.Message) {
	switch {
	case sender != selfSender:
		k.toBroker(m)
	case m.Errnum != 0 && !k.left:
		fmt.Fprintln(k.stderr, "manager: error: the configuration stays as it was:", m.Err())
	}
}

// follow has the keeper hear of what the manager has to know of the broker.
func (k *keeper) follow(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startWait)
	defer cancel()
	rank, err := k.broker.Attr(ctx, "rank")
	if err == nil && rank != "0" {
		err = fmt.Errorf("this is the broker of rank %s: a job manager belongs on rank 0", rank)
	}
	if name := filepath.Base(os.Args[0]); err == nil && k.module && name != serviceName {
		err = fmt.Errorf("the module is %s: name it %s, by --name or in os.execv", name, serviceName)
	}
	if version := ""; err == nil {
		version, err = k.broker.Attr(ctx, "version")
		if stderr := io.MultiWriter(&fluxLog{k.broker}, k.stderr); err == nil && !strings.HasPrefix(version, "0.88.") { // its states may have other numbers
			fmt.Fprintf(stderr, "manager: warning: flux-core %s: this was made for 0.88, and may run no epilogs\n", version)
		}
	}
	if err == nil {
		_, err = k.broker.FollowState(k.state)
	}
	if text := json.RawMessage(nil); err == nil && !k.file {
		err = k.broker.GetConfig(ctx, &text)
		k.conf = text
	}
	if err == nil && !k.module { // a module is told, and is the service
		if _, err = k.broker.FollowConfig(k.config); err == nil {
			err = k.broker.Register(ctx, serviceName) // before a worker touches the jobs
		}
		if flux.Errnum(err) == errno.Exists {
			err = fmt.Errorf("the instance has a job manager: remove its module first (%w)", err)
		}
	}
	if err != nil {
		return fmt.Errorf("-flux: %w", err)
	}
	return nil
}

// state takes the state of the broker.
func (k *keeper) state(s flux.State, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err == nil && s >= flux.StateCleanup && !k.closing {
		k.closing = true
		k.tell("broker-shutdown", nil)
	}
}

// config asks the worker to load the configuration of the broker, as that asks a module.
func (k *keeper) config(text []byte, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case err != nil:
	case k.file: // it is how it was, and no change
		k.file = false
	default:
		m := flux.NewRequest(topicReload, flux.Text(text))
		m.Rolemask, m.Route, m.Matchtag = flux.RoleOwner, []string{selfSender}, uint32(2*k.last+1)
		k.forward(m)
	}
}

// selfSender is the keeper, as one who asks. It is the name of no connection.
const selfSender = "keeper"

// tell tells the worker, if it serves requests.
func (k *keeper) tell(method string, text []byte) {
	if !k.serving() {
		return
	}
	m := flux.NewRequest(serviceName+"."+method, nil)
	if text != nil {
		m.Payload = flux.Text(text)
	}
	m.Rolemask = flux.RoleOwner
	m.Flags |= flux.FlagNoResponse
	k.send(m)
}

// firstCall is beyond the matchtags of the keeper's own calls.
const firstCall = 1 << 31

// The limits of workers that end: so many in so long a time.
const (
	maxRestarts   = 10
	restartPeriod = time.Minute
)

// restartWait is before the second restart within the period, and twice as long before each that
// follows, up to maxRestartWait: what ends workers, such as a machine without memory, may pass.
var restartWait = 20 * time.Millisecond

const maxRestartWait = 2 * time.Second

// run runs workers one after the other.
func (k *keeper) run(ctx context.Context) error {
	var ends []time.Time
	for {
		w, why := k.start()
		if why == nil {
			asked, err := k.await(ctx, w)
			if asked {
				return cmp.Or(err, k.stop(w))
			}
			why = w.err
		}
		switch {
		case !k.begun:
			return fmt.Errorf("the manager ended before it served requests: %w", why)
		case k.broker.Err() != nil:
			return fmt.Errorf("-flux: %w", k.broker.Err())
		}
		now := time.Now()
		ends = slices.DeleteFunc(append(ends, now), func(t time.Time) bool { return now.Sub(t) > restartPeriod })
		if len(ends) > maxRestarts {
			return fmt.Errorf("the manager ended %d times in less than %v: %w", len(ends), restartPeriod, why)
		}
		fmt.Fprintf(k.stderr, "manager: the worker has ended (%v), and another one begins\n", why)
		if err := k.clear(ctx); err != nil {
			return fmt.Errorf("-flux: %w", err)
		}
		if len(ends) > 1 {
			select {
			case <-ctx.Done():
			case <-time.After(min(restartWait<<(len(ends)-2), maxRestartWait)):
			}
		}
	}
}

// fromBroker handles a message for the worker.
func (k *keeper) fromBroker(m flux.Message) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch m.Type {
	case flux.TypeRequest:
		k.forward(m)
	case flux.TypeResponse:
		if m.Rolemask&flux.RoleOwner == 0 {
			return // the owner's services alone are asked
		}
		if m.Matchtag == 0 {
			if within := time.Duration(0); k.answered(&m) && k.serving() {
				if k.commits > 0 { // until then the worker can do nothing with it that others see
					within = commitWait
				}
				k.sendWithin(within, m)
			}
			return
		}
		c := k.calls[m.Matchtag]
		if c == nil {
			return
		}
		if last := m.Errnum != 0 || !m.Flags.Has(flux.FlagStreaming); last {
			delete(k.calls, m.Matchtag)
			close(c.done)
			if c.topic == topicCommit && c.worker == k.worker {
				k.commits--
			}
		} else if c.topic == topicRun && !isClosed(c.started) {
			if c.pid = startedPID(&m); c.pid > 0 {
				close(c.started)
			}
		}
		if c.worker == k.worker {
			m.Matchtag = c.tag
			k.send(m)
		}
	}
}

// skipped tells of messages that cannot be read, or are longer than any may be: the first, and then
// each that makes them twice as many, since guests send them too.
func (k *keeper) skipped(err error) {
	if n := k.odd.Add(1); n&(n-1) == 0 {
		fmt.Fprintln(k.stderr, "manager: error:", err)
	}
}

// startedPID returns the process that an answer of rexec has, or 0.
func startedPID(m *flux.Message) int {
	var p struct {
		Type string
		PID  int
	}
	if text, err := m.JSON(); err != nil || json.Unmarshal(text, &p) != nil || p.Type != "started" {
		return 0
	}
	return p.PID
}

// commitWait is how long what a worker is told may wait for more, so that it wakes once for all.
const commitWait = 20 * time.Millisecond

// send sends a message to the worker, if it serves requests. What it has missed it is told when
// it does.
func (k *keeper) send(m flux.Message) { k.sendWithin(0, m) }

func (k *keeper) sendWithin(d time.Duration, m flux.Message) {
	if w := k.worker; w != nil {
		if err := w.conn.SendWithin(d, m); err != nil && !isClosed(w.gone) && w.conn.Err() == nil {
			fmt.Fprintln(k.stderr, "manager: the worker does not read:", err)
			_ = w.cmd.Process.Kill()
		}
	}
}

// forward passes a request on.
func (k *keeper) forward(m flux.Message) {
	m.Flags &^= flagAgain
	a := asked{senderOf(&m), m.Matchtag}
	switch {
	case m.Topic == topicShutdown && m.Rolemask&flux.RoleOwner == 0:
		k.refuse(&m, errno.Perm, "")
		return
	case m.Topic == topicShutdown && !k.module:
		k.refuse(&m, errno.NoSys, "this is no module of the broker")
		return
	case m.Topic == topicShutdown:
		k.end()
		return
	case m.Topic == topicDisconnect:
		if waited := k.disconnect(a.sender); !waited && m.Rolemask&flux.RoleOwner == 0 {
			return // a guest has nothing but what it waits for
		}
		m.Payload, m.Flags = nil, m.Flags|flux.FlagNoResponse
	case k.left:
		k.refuse(&m, errno.NoSys, hasEnded)
		return
	case m.Rolemask&flux.RoleOwner == 0 && len(m.Payload) > flux.Max, sizeOf(&m) > maxOpen:
		k.refuse(&m, errno.Size, "the request is too long")
		return
	case !k.hasRoom(&m):
		k.refuse(&m, errno.Again, "too many requests wait for the job manager")
		return
	case !strings.HasPrefix(m.Topic, serviceName+"."):
		k.refuse(&m, errno.NoSys, "")
		return
	case m.Matchtag == untagged:
		k.refuse(&m, errno.Protocol, "this matchtag is for no use")
		return
	case !m.Flags.Has(flux.FlagNoResponse) && m.Matchtag != 0:
		k.last++
		k.drop(a) // it gave the matchtag out twice
		k.open.set(a, &request{Message: m, number: k.last, came: eventlog.FromTime(time.Now()), sent: k.serving()})
		k.size += sizeOf(&m)
		k.notice(a, &m)
	case m.Topic == topicJournal+"-cancel":
		k.cancel(a.sender, m)
	case !k.serving():
		k.last++
		k.open.set(unanswered(k.last), &request{Message: m, number: k.last})
		k.size += sizeOf(&m)
	}
	if k.serving() {
		k.send(m)
	}
}

// The limits of what waits, so that the next worker can be told all of it: of guests, of all, and
// what a worker has not read when more of guests is refused.
const (
	maxOfGuests = 24 << 20
	maxOpen     = 48 << 20
	maxQueued   = 32 << 20
)

// sizeOf returns how many bytes a request takes, or a few more.
func sizeOf(m *flux.Message) int {
	n := len(m.Payload) + len(m.Topic) + 512
	for _, hop := range m.Route {
		n += len(hop) + 16
	}
	return n
}

// hasRoom reports whether a request may wait for a worker.
func (k *keeper) hasRoom(m *flux.Message) bool {
	size := k.size + sizeOf(m)
	if m.Rolemask&flux.RoleOwner != 0 {
		return size <= maxOpen
	}
	return size <= maxOfGuests && (k.worker == nil || k.worker.conn.Behind() <= maxQueued)
}

// drop forgets a request.
func (k *keeper) drop(a asked) {
	if q := k.open.of(a); q != nil {
		k.size -= sizeOf(&q.Message)
		k.open.drop(a)
		delete(k.told, a)
	}
}

func (k *keeper) serving() bool { return k.worker != nil && k.worker.serving }

// fromWorker handles a message of a worker.
func (k *keeper) fromWorker(w *worker, m flux.Message) {
	await(k.broker, fullBehind, w.late) // k.mu is free meanwhile: what the broker sends is read
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case m.Type == flux.TypeResponse:
		k.answer(m)
	case m.Topic == topicStatus:
		k.status(w, m)
	case m.Topic == topicConfig:
		_ = w.conn.Send(m.Respond(flux.Text(k.conf))) // its end tells
	case m.Type == flux.TypeRequest && m.Matchtag != 0:
		for k.tag++; k.tag < firstCall || k.calls[k.tag] != nil; k.tag++ {
		}
		k.calls[k.tag] = &calling{worker: w, tag: m.Matchtag, topic: m.Topic, rank: m.Nodeid, started: make(chan struct{}), done: make(chan struct{})}
		m.Matchtag = k.tag
		if m.Topic == topicCommit {
			k.commits++
		}
		k.toBroker(m)
	case m.Type == flux.TypeRequest && !k.asks(&m):
	default:
		k.toBroker(m)
	}
}

func (k *keeper) toBroker(m flux.Message) {
	m.Rolemask = 0 // the user is that of the connection
	m.Flags &^= flagAgain
	if err := k.broker.Send(m); err != nil && k.broker.Err() == nil {
		fmt.Fprintln(k.stderr, "manager:", err)
	}
}

// status takes what a worker says of itself as a module.
func (k *keeper) status(w *worker, m flux.Message) {
	var p struct{ Status int }
	text, err := m.JSON()
	if err != nil || json.Unmarshal(text, &p) != nil {
		return
	}
	if p.Status == flux.ModuleRunning && !isClosed(w.ready) {
		close(w.ready)
	}
	if !m.Flags.Has(flux.FlagNoResponse) {
		_ = w.conn.Send(m.Respond(nil))
	}
}

// An answer is what a worker answers to a request.
type answer struct {
	text   []byte // JSON, or nil
	errnum uint32
}

// answer passes an answer on to who has asked.
func (k *keeper) answer(m flux.Message) {
	a := asked{senderOf(&m), m.Matchtag}
	text := textOf(&m)
	if f := k.own[a]; f != nil {
		if m.Errnum != 0 {
			delete(k.own, a)
			text = nil
		}
		f(answer{text, m.Errnum})
		return
	}
	q := k.open.of(a)
	if q == nil {
		return // who asked is gone
	}
	if s := k.told[a]; s != nil && m.Errnum == 0 {
		if text = s.tell(text); text == nil {
			return
		}
		m.Payload = flux.Text(text)
	}
	k.heeds(a, q, &m)
	if m.Errnum != 0 || !isStream(q.Topic) {
		k.drop(a)
	}
	k.respond(a.sender, m)
}

// welcome tells a worker what goes on: the sessions, and the requests that wait.
func (k *keeper) welcome(w *worker) error {
	w.serving = true
	if k.closing {
		k.tell("broker-shutdown", nil)
	}
	for _, c := range slices.Concat(k.starts, k.plugins) {
		k.tell(c.method, c.text)
	}
	var err error
	switch {
	case k.begun:
		err = k.resume(w)
	case k.module:
		err = k.broker.Running()
	}
	if err != nil {
		return err
	}
	k.begun = true
	var list []*request
	for _, of := range k.open {
		list = slices.AppendSeq(list, maps.Values(of))
	}
	slices.SortFunc(list, func(a, b *request) int { return cmp.Compare(a.number, b.number) })
	for _, q := range list {
		m := q.Message
		if m.Flags.Has(flux.FlagNoResponse) || m.Matchtag == 0 {
			k.drop(unanswered(q.number))
		}
		if q.sent {
			m.Flags |= flagAgain
			if m.Topic == topicRaise {
				m.Payload = dated(q.came, m.Payload)
			}
		}
		q.sent = true
		if s := k.told[asked{senderOf(&m), m.Matchtag}]; s != nil {
			m.Payload = s.again(m.Payload)
		}
		if err := w.conn.Send(m); err != nil {
			return err
		}
		if q.cancel != nil {
			k.send(*q.cancel)
		}
	}
	return nil
}
