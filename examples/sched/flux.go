package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/joblife/joblife/examples/internal/errno"
	"github.com/joblife/joblife/examples/internal/flux"
	"github.com/joblife/joblife/examples/internal/lines"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset/pool"
)

// services are those that a scheduler has to be.
var services = []string{"sched", "feasibility"}

const (
	startWait = 30 * time.Second      // for what a broker itself answers
	firstWait = 50 * time.Millisecond // before another session; then twice as long each time
	maxWait   = 5 * time.Second
	inbox     = 256      // messages that are not handled
	long      = 64 << 10 // bytes of one that is handled before more are read
	maxHeld   = 1024     // requests that wait for a session
)

var (
	// errOver ends a session: another follows.
	errOver = errors.New("the session is over")
	// errGone is one that an operator has caused.
	errGone = fmt.Errorf("%w: the job manager is gone", errOver)
	// errRemoved ends the program.
	errRemoved = errors.New("the module is removed")
	// errBlind ends it, too: the module resource is gone, as at the end of an instance.
	errBlind = errors.New("no more is known of the resources")
)

// A broker is a connection to a running Flux, and the peer of the sessions with its job manager.
// All but push belongs to the goroutine of run.
type broker struct {
	o      options
	module bool   // that the broker has loaded; else a client
	name   string // in the log
	ascii  bool   // job ids in annotations and in the log begin with f

	ctx  context.Context
	conn *flux.Conn
	in   chan func() error
	over chan struct{} // closed when nobody reads in any more

	s        *session
	era      int                        // counts sessions: what was for an earlier one comes too late
	failed   int                        // sessions, since the last that stored an R
	broken   error                      // why run ends
	at       *flux.Message              // the request that is handled
	waits    map[jobid.ID]*flux.Message // sched.alloc without its last response
	held     []*flux.Message            // requests that wait for a session
	managers map[string]bool            // who sent what is of a session, and is not gone: the next may speak before
	raised   map[jobid.ID]bool          // jobs that got an exception
	bits     int                        // of flux module debug
	placed   map[jobid.ID]int           // places in the queue that jobs were told
	starts   []start                    // to store
	size     int                        // of starts, in bytes
}

// attach schedules a running Flux until ctx is done, or until the broker removes its module. A
// client whose broker is gone waits for another one.
func (o *options) attach(ctx context.Context, uri string, stderr io.Writer) error {
	module := uri == "" && os.Getenv(flux.ModuleURI) != ""
	if module {
		uri = os.Getenv(flux.ModuleURI)
	}
	conf := *o
	if o.Verbose {
		conf.level = flux.LogDebug
	}
	conf.Verbose = conf.level >= flux.LogDebug
	pause := time.Duration(0)
	for dial := flux.Dial; ; dial = flux.Redial {
		began := time.Now()
		b := &broker{o: conf, module: module, name: filepath.Base(os.Args[0]), ascii: flux.ASCII(os.LookupEnv), ctx: ctx}
		err := b.visit(uri, dial)
		switch {
		case err == nil || ctx.Err() != nil:
			return nil
		case module || !errors.Is(err, flux.ErrLost):
			return fmt.Errorf("-flux: %w", err)
		}
		fmt.Fprintf(stderr, "sched: -%s (it tries again)\n", lines.Escape(err.Error()))
		// A broker that accepts connections and closes them is no reason to spin.
		if pause = min(2*pause+50*time.Millisecond, 5*time.Second); time.Since(began) > time.Minute {
			pause = 0
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// visit schedules for one connection. It returns nil if somebody has asked for the end.
func (b *broker) visit(uri string, dial func(context.Context, flux.Config) (*flux.Conn, error)) error {
	b.in, b.over = make(chan func() error, inbox), make(chan struct{})
	b.s = newSession(b.o, nil, nil)
	b.s.to = b
	b.raised, b.managers = make(map[jobid.ID]bool), make(map[string]bool)
	conn, err := dial(b.ctx, flux.Config{URI: uri, Handle: b.heard})
	if err != nil {
		return err
	}
	defer conn.Close()
	b.conn = conn
	err = b.serve()
	close(b.over)
	if b.ctx.Err() != nil || errors.Is(err, errRemoved) {
		b.s.summarize()
		err = nil
	} else {
		b.log(flux.LogErr, err.Error())
		if b.module && errors.Is(err, errBlind) {
			err = nil // a broker takes the failure of a module for its own
		}
	}
	if b.module {
		conn.Leave(err)
	}
	return err
}

// heard takes a message. One that is long waits until it is handled, so that those of guests need
// little memory together.
func (b *broker) heard(m flux.Message) {
	handled := make(chan struct{})
	b.push(func() error { defer close(handled); return b.receive(&m) })
	if len(m.Payload) > long {
		select {
		case <-handled:
		case <-b.over:
		}
	}
}

// push has f called by the goroutine of run. It is called by that of the connection.
func (b *broker) push(f func() error) {
	select {
	case b.in <- f:
	case <-b.over:
	}
}

// serve goes from one session to the next.
func (b *broker) serve() error {
	registered := false
	go func() { // what comes meanwhile is handled: the answers are behind it
		err := b.register()
		b.push(func() error { registered = true; return err })
	}()
	if err := b.run(func() bool { return registered && b.s.Pool() != nil }); err != nil {
		return err
	}
	if err := b.renew(); err != nil {
		return err
	}
	for {
		err := b.session()
		if !errors.Is(err, errOver) {
			return err
		}
		if err := b.renew(); err != nil {
			return err
		}
		wait := min(firstWait<<min(b.failed, 10), maxWait)
		b.failed++
		level := flux.LogErr
		if errors.Is(err, errGone) {
			level = flux.LogWarning
		}
		b.log(level, fmt.Sprintf("%v; another begins in %v", err, wait))
		waited := false
		time.AfterFunc(wait, func() { b.push(func() error { waited = true; return nil }) })
		if err := b.run(func() bool { return waited }); err != nil && !errors.Is(err, errGone) {
			return err
		}
	}
}

// register becomes the scheduler of the instance, and asks for the inventory.
func (b *broker) register() error {
	ctx, cancel := context.WithTimeout(b.ctx, startWait)
	defer cancel()
	try := func(do func() error) (err error) { // again while there is no room for it, which guests can fill
		for err = do(); errors.Is(err, flux.ErrFull) && ctx.Err() == nil; err = do() {
			time.Sleep(firstWait)
		}
		return err
	}
	var text string
	err := try(func() (err error) {
		text, err = b.conn.Attr(ctx, "rank")
		return err
	})
	if err != nil {
		return err
	}
	rank, err := strconv.ParseUint(text, 10, 32)
	if err != nil || rank != 0 {
		return fmt.Errorf("this is the broker of rank %s: a scheduler belongs on rank 0", text)
	}
	for _, service := range services {
		err := try(func() error { return b.conn.Register(ctx, service) })
		if flux.Errnum(err) == errno.Exists {
			return fmt.Errorf("the instance has a scheduler: remove its module first (%w)", err)
		}
		if err != nil {
			return err
		}
	}
	if b.module { // before there is an inventory: rc1 goes on, and other brokers can join
		if err := try(b.conn.Running); err != nil {
			return err
		}
	}
	return try(b.acquire)
}

// acquire asks for the inventory. What follows comes for the whole time of the connection, whatever
// becomes of the sessions.
func (b *broker) acquire() error {
	q := flux.NewRequest(pool.TopicAcquire, nil)
	q.Flags |= flux.FlagStreaming
	_, err := b.conn.Start(q, func(m flux.Message, err error) {
		b.push(func() error { return b.acquired(&m, err) })
	})
	return err
}

// run handles what comes until a condition holds.
func (b *broker) run(until func() bool) (err error) {
	for handled := 0; err == nil && !until(); {
		if handled++; len(b.in) == 0 || handled%inbox == 0 {
			b.places()
			b.store() // all that has come together
		}
		select {
		case <-b.ctx.Done():
			return b.ctx.Err()
		case <-b.conn.Done():
			return b.conn.Err()
		case f := <-b.in:
			err = f()
		case <-b.s.due():
			err = b.s.wake()
		}
		if err == nil {
			err, b.broken = b.broken, nil
		}
	}
	return err
}

// call sends a request, and calls answer for each response. One that does not come within the
// patience is an error that ends the session: a broker answers for no client that is gone.
func (b *broker) call(q flux.Message, answer func(m *flux.Message, err error) error) error {
	var late *time.Timer
	ended := false
	take := func(m flux.Message, err error) {
		b.push(func() error {
			if ended {
				return nil // it came too late
			}
			if ended = err != nil || !m.Flags.Has(flux.FlagStreaming); ended {
				late.Stop()
			} else {
				late.Reset(b.o.patience)
			}
			return answer(&m, err)
		})
	}
	tag, err := b.conn.Start(q, take)
	if err == nil {
		late = time.AfterFunc(b.o.patience, func() {
			b.conn.Forget(tag)
			take(flux.Message{}, fmt.Errorf("%w: %s: no answer within %v", errOver, q.Topic, b.o.patience))
		})
	}
	return err
}

// ask sends a request, handles what comes, and returns the error of the last response. each gets
// the responses that are no errors.
func (b *broker) ask(q flux.Message, each func(m *flux.Message)) error {
	var ended bool
	var last error
	err := b.call(q, func(m *flux.Message, err error) error {
		if err == nil {
			each(m)
		}
		ended, last = err != nil || !m.Flags.Has(flux.FlagStreaming), err
		return nil
	})
	if err == nil {
		err = b.run(func() bool { return ended })
	}
	if err != nil {
		return err
	}
	return last
}

// log writes to the log of the broker.
func (b *broker) log(level int, text string) {
	if b.ascii {
		text = strings.ReplaceAll(text, "ƒ", "f")
	}
	if level <= b.o.level {
		_ = b.conn.Log(flux.LogEntry{Level: level, Name: b.name, Text: text}) // it may be gone
	}
}
