package loop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/internal/guard"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/perilog/exec"
)

// A Config configures a [Loop]. Effects and Refused must be set.
type Config struct {
	// Store keeps the records. It may be nil if the Manager is volatile.
	Store Store
	// Begin, in place of Store, is for a store that works by messages. It begins to store Append and
	// Unlink of rd, which is valid until done, and returns. Any goroutine then calls done, with what
	// the Store's methods would return. What Begin waits for may come by Do, even after ctx has
	// ended. So the next commit takes all that comes meanwhile: the caller has to limit it, and at
	// the end to Step no more. After a panic or another error Run returns without done.
	Begin func(rd *joblife.Ready, done func(failed map[jobid.ID]error, err error))
	// Effects does what a Ready wants done, from Hello to Drain, and passes on Journal, Answers,
	// Results and Faults. The Scheduler's and the Executor's part is done: it may look, such as for
	// an alloc.Free in Sched, which says that ranks are free, as the event release does not. A crash
	// may lose it, and none comes after Restore for what is free already: Manager.Allocated has what
	// is not. Its records are durable, and the Store has removed the jobs in Unlink. It is called
	// once for each Ready, in order, and after functions of [Loop.Do]. The Ready is valid until it
	// returns. The answers to Calls are not in it. A Ready that the Store had when a hello came has
	// messages of the session before: for the scheduler, drop them until Hello comes.
	Effects func(m *joblife.Manager, rd *joblife.Ready)
	// Scheduler is a scheduler in the same program. New puts the hello. The Scheduler gets
	// Hello, Sched and Drain of a Ready before Effects, and its errors join Faults. The Loop
	// confirms a drain that is no error. What the Scheduler decides is dispatched after
	// Effects. If the Manager refuses a response, the rest is void, and a new session begins
	// with what is held. But if in that session too a response is refused before one that
	// allocates or denies, it is the last one: put SchedHello and SchedReady for another. Nil:
	// Effects sends Hello and Sched, and drains.
	Scheduler Scheduler
	// Executor runs the jobs and actions on nodes, which speak in functions of [Loop.Hear]; the
	// zero Executor will do. The Loop's goroutine owns it, and no other Loop may have it: what it
	// says at the end is lost. New has it expect what Recovered says,
	// and puts the hello: no other ExecHello or ExecLost is taken. It gets Exec, Raised, Launch and Signal of a Ready before Effects, and
	// its errors join Faults. What follows comes after Effects, after functions of Do and Hear,
	// and when it is due. An action that a restart has lost, and no node has, runs again; if it
	// may not, or the configuration has it no more, it has failed. Nil: Effects does this.
	Executor *exec.Executor
	// Commands sends commands of the Executor to nodes, in order, and owns the slice. It must not
	// wait, and may use the Executor. Drop a command for a node that is gone: its next hello
	// repairs that. It must be set if Executor is.
	Commands func([]exec.Command)
	// Recovered is what joblife.Restore left, for the Executor. The zero Recovered has nothing.
	Recovered joblife.Recovered
	// Refused is called with each input of Put, Scheduler and Executor that the Manager refuses. What
	// the error is about may not be durable yet: tell no user. It must not change the Manager.
	Refused func(in joblife.Input, err error)
	// MaxInputs is how many inputs may wait; 0 means 2^18. Call and View may use half.
	MaxInputs int
}

// A Store keeps records. One call goes on at a time, and each call may take its time. It
// keeps no slice. An error ends the Loop. joblifetest.CheckStore tests a Store.
type Store interface {
	// Append makes records durable, in order. If it fails it may have stored the first of them.
	Append(records []joblife.Record) error
	// Unlink removes what is stored of jobs: see [purge.Store]. A store without anything to
	// remove, such as a log of all records, returns nil. Jobs in failed are tried again later.
	//
	// [purge.Store]: https://pkg.go.dev/github.com/joblife/joblife/purge#Store
	Unlink(ctx context.Context, ids []jobid.ID) (failed map[jobid.ID]error, err error)
}

// Stats are counts since the Loop was made.
type Stats struct {
	Waiting int           // inputs and Views in the inbox, now
	Inputs  uint64        // those that the Manager accepted, Ticks included
	Refused uint64        // those that it refused
	Commits uint64        // Readies with records that the Store has stored
	Storing time.Duration // how long the Store has worked, under Run
}

// A Loop runs a Manager. Any goroutine may use it. It must not be copied.
type Loop struct {
	_   guard.NoCopy
	m   *joblife.Manager
	cfg Config

	wake    chan struct{} // there is something to do
	written chan outcome  // of the store
	hailed  chan struct{} // closed when the Executor has had the starts of its first hello
	ended   chan struct{} // closed at the end

	mu      sync.Mutex
	runs    bool // Run or Advance does
	inbox   []request
	head    int // of the inbox
	bytes   int // in it
	left    []*call
	lastTag uint64
	stats   Stats // but Waiting
	over    bool
	cause   error // why; nil: a Shutdown is complete

	// Of the goroutine that runs.
	system   systemClock
	clock    func() time.Time // nil: now is what Advance was told
	now      time.Time
	inline   bool // the store works in this goroutine
	stopping bool // the context has ended
	batch    []request
	rd       joblife.Ready
	writing  bool
	calls    map[uint64]*call // those that wait for an answer, by tag
	steps    int              // requests since the last Ready
	size     int              // bytes in them
	next     []*call          // those that are answered when all steps are durable
	sent     []*call          // those that are answered when rd is
	ticked   bool             // in this Advance
	decided  bool             // in this Advance, at the Scheduler's Deadline
	broken   error            // why the Loop ends
	void     bool             // the Scheduler's session is over, until a Ready has the next Hello
	second   bool             // it follows a refused response, and nothing was accepted since
}

// New returns a Loop for a Manager, which is the Loop's from then on; no Ready of it may be
// outstanding. The error says what is missing in cfg.
func New(m *joblife.Manager, cfg Config) (*Loop, error) {
	switch {
	case m == nil:
		return nil, errors.New("loop: the Manager is nil")
	case cfg.Effects == nil || cfg.Refused == nil:
		return nil, errors.New("loop: Config needs Effects and Refused")
	case cfg.Store != nil && cfg.Begin != nil:
		return nil, errors.New("loop: Config has both Store and Begin")
	case (cfg.Executor == nil) != (cfg.Commands == nil):
		return nil, errors.New("loop: Config has one of Executor and Commands: it needs both, or none")
	case cfg.MaxInputs < 0:
		return nil, fmt.Errorf("loop: MaxInputs is %d: give 1 or more, or 0 for the default", cfg.MaxInputs)
	}
	cfg.MaxInputs = cmp.Or(cfg.MaxInputs, maxInputs)
	l := &Loop{
		m: m, cfg: cfg, now: m.Now(), system: systemClock{read: time.Now}, calls: make(map[uint64]*call),
		wake: make(chan struct{}, 1), written: make(chan outcome, 1), hailed: make(chan struct{}), ended: make(chan struct{}),
	}
	if l.system.now(); l.now.After(l.system.at) { // from here on it does not step back
		l.system.at = l.now
	}
	if cfg.Executor != nil {
		if err := l.hail(); err != nil {
			return nil, err
		}
	}
	if cfg.Scheduler != nil {
		l.greet()
	}
	return l, nil
}

// Stats returns the counts.
func (l *Loop) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.stats
	s.Waiting = len(l.inbox) - l.head
	return s
}

// Run runs the Manager until ctx ends, the Store fails, or a Shutdown is complete. It
// returns the cause of ctx, the error, or nil. When it has returned, the Loop has no goroutine
// left. A Loop runs once. A Store that hangs delays the end: let it have a time limit.
func (l *Loop) Run(ctx context.Context) error {
	if err := l.begin(l.system.now); err != nil {
		return err
	}
	cause := errPanic
	defer func() {
		if l.writing && l.cfg.Begin == nil { // even in a panic, so that a restart has the Store for itself
			<-l.written
		}
		l.end(cause)
	}()
	defer context.AfterFunc(ctx, l.signal)()
	l.inline = false
	cause = l.run(ctx)
	return cause
}

func (l *Loop) run(ctx context.Context) error {
	for ctx.Err() == nil {
		busy := l.turn()
		switch {
		case l.broken != nil:
			return l.broken
		case l.m.Stopped():
			return l.stop()
		case !busy:
			l.wait()
		}
	}
	return cmp.Or(l.stop(), context.Cause(ctx))
}

// Advance moves the time of a simulator on to now, which must not be before the last, or that of
// the Manager: then the error is joblife.ErrClock, and nothing has changed. Any other error is as
// Run's and ends the Loop, as does a Shutdown that is complete. Advance passes the inputs that were
// put, then a Tick if one is due, and what Effects puts, until nothing follows; the Scheduler
// decides if its Deadline is due. Store and Effects run in the caller's goroutine, so that the same
// calls have the same effects, byte by byte. Between two calls the caller may look at the Manager
// and the Scheduler, such as at their Deadlines, and use the Executor. A Call waits for an Advance
// by another goroutine.
func (l *Loop) Advance(now time.Time) error {
	if err := l.begin(nil); err != nil {
		return err
	}
	over, cause := false, errPanic
	defer func() {
		if over {
			l.end(cause)
		}
		l.mu.Lock()
		l.runs = false
		l.mu.Unlock()
	}()
	if now.Before(l.now) {
		return fmt.Errorf("loop: %w: %v is before %v", joblife.ErrClock, now, l.now)
	}
	over = true // in a panic
	l.now, l.inline, l.ticked, l.decided = now, true, false, false
	for busy := true; busy && l.broken == nil; {
		busy = l.turn()
	}
	cause = l.broken
	over = cause != nil || l.m.Stopped() && !l.writing
	return cause
}

// begin makes the caller's goroutine the one that runs.
func (l *Loop) begin(clock func() time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.over:
		return l.endError()
	case l.runs:
		return errors.New("loop: it runs already")
	}
	l.runs, l.clock = true, clock
	return nil
}

// end answers all who still wait.
func (l *Loop) end(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over, l.cause = true, cause
	l.inbox, l.head = nil, 0
	close(l.ended)
}
