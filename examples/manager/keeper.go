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
	"net"
	"os"
	osexec "os/exec"
	"slices"
	"sync"
	"syscall"
	"time"

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
	over   chan error // why it ends; nil if it was asked to

	mu      sync.Mutex
	worker  *worker
	closing bool                   // the broker shuts down
	conf    []byte                 // its configuration, for a client
	open    map[asked]*request     // requests that are not answered to their end
	last    uint64                 // the number of the last of them
	size    int                    // of all of them
	calls   map[uint32]*calling    // requests of workers, by their matchtag at the broker
	tag     uint32                 // the last of these
	told    map[asked]told         // what was told to streams that go on
	own     map[asked]func(answer) // the keeper's requests to a worker
	sched   schedSession
	exec    map[string]string        // services of executors, by sender
	started map[jobid.ID]*startedJob // what executors were asked
}

// A request is one that came for the manager.
type request struct {
	flux.Message
	number uint64
}

// topicRun runs a process.
const topicRun = "rexec.exec"

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

// A worker is a process that manages jobs.
type worker struct {
	cmd     *osexec.Cmd
	conn    *flux.Conn
	ready   chan struct{} // closed when it can serve requests
	serving bool          // it knows what goes on
	gone    chan struct{} // closed when it has ended, with err
	err     error
}

// keep serves a running Flux by workers until ctx is done, the broker ends, the module is
// removed, or workers end again and again.
func (o *options) keep(ctx context.Context, uri string, stderr io.Writer) error {
	module := uri == "" && os.Getenv(flux.ModuleURI) != ""
	if module {
		uri = os.Getenv(flux.ModuleURI)
	}
	k := &keeper{
		module: module, file: o.file != "", stderr: stderr, over: make(chan error, 1),
		open: make(map[asked]*request), calls: make(map[uint32]*calling), tag: firstCall, told: make(map[asked]told),
		own: make(map[asked]func(answer)), exec: make(map[string]string), started: make(map[jobid.ID]*startedJob),
	}
	k.sched.reset()
	k.mu.Lock() // no message before there is a worker
	conn, err := flux.Dial(ctx, flux.Config{URI: uri, Handle: k.fromBroker})
	if err != nil {
		k.mu.Unlock()
		return fmt.Errorf("-flux: %w", err)
	}
	k.broker = conn
	k.mu.Unlock()
	defer conn.Close()
	if err = k.follow(ctx); err == nil {
		err = k.run(ctx)
	}
	if module {
		conn.Leave(err)
	}
	return err
}

// follow has the keeper hear of what the manager has to know of the broker.
func (k *keeper) follow(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startWait)
	defer cancel()
	rank, err := k.broker.Attr(ctx, "rank")
	if err == nil && rank != "0" {
		err = fmt.Errorf("this is the broker of rank %s: a job manager belongs on rank 0", rank)
	}
	if err == nil {
		_, err = k.broker.FollowState(k.state)
	}
	if err == nil && !k.module { // a module is told
		_, err = k.broker.FollowConfig(k.config)
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

// config takes the configuration of the broker.
func (k *keeper) config(text []byte, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case err != nil:
	case k.file: // it is how it was, and no change
		k.file = false
	default:
		k.conf = text
		k.tell("config-reload", text)
	}
}

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
	maxRestarts   = 5
	restartPeriod = time.Minute
)

// run runs workers one after the other.
func (k *keeper) run(ctx context.Context) error {
	var ends []time.Time
	for first := true; ; first = false {
		w, err := k.start()
		if err != nil {
			return err
		}
		asked, why := k.await(ctx, w, first)
		switch {
		case asked:
			return cmp.Or(why, k.stop(w))
		case first && !isClosed(w.ready):
			return cmp.Or(w.err, errors.New("the manager ended before it served requests"))
		case k.broker.Err() != nil:
			return fmt.Errorf("-flux: %w", k.broker.Err())
		}
		now := time.Now()
		ends = slices.DeleteFunc(append(ends, now), func(t time.Time) bool { return now.Sub(t) > restartPeriod })
		if len(ends) > maxRestarts {
			return fmt.Errorf("the manager ended %d times in %v: %w", len(ends), restartPeriod, w.err)
		}
		fmt.Fprintf(k.stderr, "manager: the worker has ended (%v), and another one begins\n", w.err)
		if err := k.clear(ctx); err != nil {
			return fmt.Errorf("-flux: %w", err)
		}
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

// start starts a worker.
func (k *keeper) start() (*worker, error) {
	syscall.ForkLock.RLock() // no other child gets the pair
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(pair[0])
		syscall.CloseOnExec(pair[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, err
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "worker"), os.NewFile(uintptr(pair[1]), "keeper")
	defer ours.Close()
	defer theirs.Close()
	conn, err := net.FileConn(ours)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	w := &worker{cmd: osexec.Command(self, os.Args[1:]...), ready: make(chan struct{}), gone: make(chan struct{})}
	w.cmd.Env = append(os.Environ(), flux.ModuleURI+"=fd://3", workerVariable+"=1")
	w.cmd.ExtraFiles = []*os.File{theirs}
	w.cmd.Stderr = k.stderr
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := w.cmd.Start(); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	w.conn = flux.New(conn, flux.Config{Handle: func(m flux.Message) { k.fromWorker(w, m) }})
	k.worker = w
	go func() {
		<-w.conn.Done() // all that it sent was handled
		if w.err = w.cmd.Wait(); w.err == nil {
			w.err = errors.New("status 0")
		}
		close(w.gone)
	}()
	return w, nil
}

// await tells a worker what it has to know when it serves requests, and waits for its end. It
// reports whether the keeper itself is to end, and why.
func (k *keeper) await(ctx context.Context, w *worker, first bool) (asked bool, why error) {
	select {
	case <-w.ready:
		k.mu.Lock()
		err := k.welcome(w, first)
		k.mu.Unlock()
		if err != nil {
			fmt.Fprintln(k.stderr, "manager:", err)
			_ = w.cmd.Process.Kill() // it has no complete story
		}
	case <-w.gone:
		return false, nil
	case <-ctx.Done():
		return true, nil
	case why := <-k.over:
		return true, why
	case <-k.broker.Done():
		return true, fmt.Errorf("-flux: %w", k.broker.Err())
	}
	select {
	case <-w.gone:
		return isClosed(ctx.Done()), nil
	case <-ctx.Done():
		return true, nil
	case why := <-k.over:
		return true, why
	case <-k.broker.Done():
		return true, fmt.Errorf("-flux: %w", k.broker.Err())
	}
}

// end has the keeper end, once.
func (k *keeper) end(why error) {
	select {
	case k.over <- why:
	default:
	}
}

// stopWait is how long a worker may take to store what is left, and to tell who waits.
const stopWait = 20 * time.Second

// stop ends a worker.
func (k *keeper) stop(w *worker) error {
	_ = w.cmd.Process.Signal(syscall.SIGTERM) // it may be gone
	select {
	case <-w.gone:
	case <-time.After(stopWait):
		_ = w.cmd.Process.Kill()
		<-w.gone
	}
	if w.cmd.ProcessState.Success() {
		return nil
	}
	return w.err
}

// clearWait is how long the processes of a worker may take to end.
var clearWait = startWait

// clear waits until nothing of the worker before is under way: what it wrote, and the processes
// that it had started, which would run on beside those of the next. One that nobody can kill, or
// whose node is silent, holds the jobs of all others up for no longer than clearWait.
func (k *keeper) clear(ctx context.Context) error {
	var running []*calling
	k.mu.Lock()
	for _, c := range k.calls {
		if c.topic == topicRun {
			running = append(running, c)
		}
	}
	k.mu.Unlock()
	limit, cancel := context.WithTimeout(ctx, clearWait)
	defer cancel()
	var all sync.WaitGroup
	for _, c := range running {
		all.Go(func() { k.kill(limit, c) })
	}
	all.Wait()
	ctx, cancel = context.WithTimeout(ctx, startWait)
	defer cancel()
	fence := map[string]any{"namespace": "primary", "flags": 0, "ops": []op{{Key: "joblife.fence", Dirent: value([]byte{})}}}
	return k.broker.CallJSON(ctx, "kvs.commit", flux.NodeidAny, fence, nil)
}

// kill kills a process as soon as it has started, and waits for its end.
func (k *keeper) kill(ctx context.Context, c *calling) {
	select {
	case <-c.started:
		kill := struct {
			PID    int `json:"pid"`
			Signum int `json:"signum"`
		}{c.pid, int(syscall.SIGKILL)}
		_ = k.broker.CallJSON(ctx, "rexec.kill", c.rank, kill, nil) // it may have ended
	case <-c.done:
	case <-ctx.Done():
	}
	select {
	case <-c.done:
	case <-ctx.Done():
		fmt.Fprintf(k.stderr, "manager: error: process %d on rank %d does not end, and its rerun may run beside it\n", c.pid, c.rank)
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
			if k.answered(&m) && k.serving() {
				k.send(m)
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

// send sends a message to the worker, if it serves requests. What it has missed it is told when
// it does.
func (k *keeper) send(m flux.Message) {
	if w := k.worker; w != nil {
		if err := w.conn.Send(m); err != nil && !isClosed(w.gone) && w.conn.Err() == nil {
			fmt.Fprintln(k.stderr, "manager: the worker does not read:", err)
			_ = w.cmd.Process.Kill()
		}
	}
}

// forward passes a request on.
func (k *keeper) forward(m flux.Message) {
	a := asked{senderOf(&m), m.Matchtag}
	switch {
	case m.Topic == serviceName+".shutdown":
		if m.Rolemask&flux.RoleOwner != 0 && k.module {
			k.end(nil)
		}
		return
	case m.Topic == topicDisconnect:
		k.disconnect(a.sender)
	case !k.hasRoom(&m):
		if !m.Flags.Has(flux.FlagNoResponse) {
			k.toBroker(m.RespondError(errno.Again, "too many requests wait for the job manager"))
		}
		return
	case !m.Flags.Has(flux.FlagNoResponse) && m.Matchtag != 0:
		k.last++
		k.drop(a) // it gave the matchtag out twice
		k.open[a] = &request{m, k.last}
		k.size += sizeOf(&m)
		k.notice(a, &m)
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

func sizeOf(m *flux.Message) int { return len(m.Payload) + 512 }

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
	if q := k.open[a]; q != nil {
		k.size -= sizeOf(&q.Message)
		delete(k.open, a)
		delete(k.told, a)
	}
}

func (k *keeper) serving() bool { return k.worker != nil && k.worker.serving }

// fromWorker handles a message of a worker.
func (k *keeper) fromWorker(w *worker, m flux.Message) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case m.Type == flux.TypeResponse:
		k.answer(m)
	case m.Topic == topicStatus:
		k.status(w, m)
	case m.Type == flux.TypeRequest && m.Matchtag != 0:
		for k.tag++; k.tag < firstCall || k.calls[k.tag] != nil; k.tag++ {
		}
		k.calls[k.tag] = &calling{worker: w, tag: m.Matchtag, topic: m.Topic, rank: m.Nodeid, started: make(chan struct{}), done: make(chan struct{})}
		m.Matchtag = k.tag
		k.toBroker(m)
	case m.Type == flux.TypeRequest && !k.asks(&m):
	default:
		k.toBroker(m)
	}
}

func (k *keeper) toBroker(m flux.Message) {
	m.Rolemask = 0 // the user is that of the connection
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
	text, _ := m.JSON()
	if f := k.own[a]; f != nil {
		if m.Errnum != 0 {
			delete(k.own, a)
			text = nil
		}
		f(answer{text, m.Errnum})
		return
	}
	q := k.open[a]
	if q == nil {
		return // who asked is gone
	}
	if s := k.told[a]; s != nil && m.Errnum == 0 {
		if text = s.tell(text); text == nil {
			return
		}
		m.Payload = flux.Text(text)
	}
	if m.Errnum != 0 || !q.Flags.Has(flux.FlagStreaming) {
		k.drop(a)
	}
	if m.Topic == topicExecHello && m.Errnum != 0 {
		delete(k.exec, a.sender)
	}
	k.toBroker(m)
}

// welcome tells a worker what goes on: the sessions, and the requests that wait.
func (k *keeper) welcome(w *worker, first bool) error {
	w.serving = true
	if k.conf != nil { // it may have changed since the worker asked
		k.tell("config-reload", k.conf)
	}
	if k.closing {
		k.tell("broker-shutdown", nil)
	}
	if first {
		if err := k.begin(); err != nil {
			return err
		}
	} else if err := k.resume(w); err != nil {
		return err
	}
	list := slices.Collect(maps.Values(k.open))
	slices.SortFunc(list, func(a, b *request) int { return cmp.Compare(a.number, b.number) })
	for _, q := range list {
		m := q.Message
		if s := k.told[asked{senderOf(&m), m.Matchtag}]; s != nil {
			m.Payload = s.again(m.Payload)
		}
		if err := w.conn.Send(m); err != nil {
			return err
		}
	}
	return nil
}

// begin tells the broker that requests are served.
func (k *keeper) begin() error {
	if k.module {
		return k.broker.Running()
	}
	m := flux.NewRequest("service.add", flux.Text(`{"service":"`+serviceName+`"}`))
	_, err := k.broker.Start(m, func(_ flux.Message, err error) {
		if err != nil {
			k.end(fmt.Errorf("-flux: %w", err))
		}
	})
	return err
}
