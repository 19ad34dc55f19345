package loop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate/jobid"
)

// The limits of what is done at once.
const (
	maxBatch = 128     // inputs before the store and the clock get a look
	maxSteps = 1 << 14 // inputs that share a commit
	maxWait  = time.Minute
)

// turn does what can be done without a wait, and reports whether there was anything.
func (l *Loop) turn() (busy bool) {
	select {
	case o := <-l.written:
		l.stored(o)
		busy = true
	default:
	}
	more := l.take()
	for _, r := range l.batch {
		if l.broken == nil {
			l.request(r)
			busy = true
		}
	}
	clear(l.batch)
	if at, ok := l.m.Deadline(); ok && l.broken == nil && !at.After(l.Now()) && !(l.inline && (l.ticked || more)) {
		l.ticked = true
		_ = l.step(joblife.Tick{})
	}
	if at, ok := l.decides(); ok && !at.Time().After(l.Now()) && !(l.inline && l.decided) {
		l.decided, busy = true, true
		l.decide(max(at, eventlog.FromTime(l.Now()))) // which may be rounded down
	}
	busy = l.execute() || busy
	if !l.writing && l.broken == nil {
		busy = l.send() || busy
	}
	return busy
}

// take takes inputs out of the inbox, and forgets the calls that nobody waits for. It reports
// whether more wait.
func (l *Loop) take() (more bool) {
	l.batch = l.batch[:0]
	l.mu.Lock()
	left := l.left
	l.left = nil
	if l.cfg.Begin != nil || !l.writing || l.steps < maxSteps && l.size < maxBytes { // else they wait for the next commit
		l.batch = append(l.batch, l.inbox[l.head:min(len(l.inbox), l.head+maxBatch)]...)
		clear(l.inbox[l.head : l.head+len(l.batch)])
		l.head += len(l.batch)
		if 2*l.head >= len(l.inbox) {
			l.inbox, l.head = slices.Delete(l.inbox, 0, l.head), 0
		}
		for _, r := range l.batch {
			l.bytes -= r.size
		}
	}
	more = len(l.inbox) > l.head
	l.mu.Unlock()
	for _, c := range left {
		if l.calls[c.tag] == c {
			delete(l.calls, c.tag)
			_ = l.step(joblife.WaitCancel{Tag: c.tag}) // if it waits; refused at most after a Shutdown
		}
	}
	return more
}

// request dispatches an input, or lets a reader view the Manager.
func (l *Loop) request(r request) {
	if r.hear != nil {
		r.hear()
		return
	}
	l.steps++ // refused or not: who asks waits for the store
	l.size += r.size
	c := r.call
	switch {
	case r.do != nil:
		then := r.do(l.m)
		if then == nil && l.cfg.Scheduler != nil {
			then = func() {} // it decides after what f did with it
		}
		if then != nil {
			l.next = append(l.next, &call{then: then})
		}
		return
	case c == nil:
		if err := l.step(r.in); err != nil {
			l.cfg.Refused(r.in, err)
		}
		return
	case c.view != nil:
		select {
		case c.view <- struct{}{}:
			<-c.back
			l.next = append(l.next, c)
		case <-c.gone:
		}
		return
	}
	select {
	case <-c.gone:
		return // its caller is gone, or goes
	default:
	}
	if c.err = l.step(r.in); c.err == nil && c.tag != 0 {
		l.calls[c.tag] = c
	} else { // what a refusal says has to be durable too
		l.next = append(l.next, c)
	}
}

// Now returns the time of the inputs, which does not step back. Only Effects and functions of Do and Hear may call it.
func (l *Loop) Now() time.Time {
	if l.clock != nil {
		if now := l.clock(); now.After(l.now) {
			l.now = now
		}
	}
	return l.now
}

// A systemClock goes on when the system's is set back, so that what waits does not wait longer.
type systemClock struct {
	read     func() time.Time
	last, at time.Time
}

func (c *systemClock) now() time.Time {
	now := c.read()
	elapsed := max(0, now.Sub(c.last)) // by the monotonic clock
	c.last = now
	return c.next(now.Round(0), elapsed)
}

// next returns the time at which the clock reads t, so long after it was read last.
func (c *systemClock) next(t time.Time, elapsed time.Duration) time.Time {
	if at := c.at.Add(elapsed); !c.at.IsZero() && at.After(t) {
		t = at
	}
	c.at = t
	return t
}

// step dispatches an input. After ErrClock no other input can do better.
func (l *Loop) step(in joblife.Input) error {
	err := l.m.Step(l.Now(), in)
	if errors.Is(err, joblife.ErrClock) {
		l.fail(err)
	}
	if t, ok := in.(joblife.Tagged); ok {
		in = t.In
	}
	switch in.(type) {
	case joblife.SchedHello, joblife.SchedLost:
		l.void = true // what the store has is void
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		l.stats.Inputs++
	} else {
		l.stats.Refused++
	}
	return err
}

func (l *Loop) fail(err error) { l.broken = cmp.Or(l.broken, fmt.Errorf("loop: %w", err)) }

// send passes what the Manager has to the store, and reports whether there was anything. If
// not, all that callers wait for is durable.
func (l *Loop) send() bool {
	l.steps, l.size = 0, 0
	if !l.m.Ready(&l.rd) {
		did := done(l.next)
		if did {
			l.act(&joblife.Ready{})
		}
		answer(&l.next)
		return did
	}
	l.writing = true
	l.void = l.void && l.rd.Hello == nil
	l.sent, l.next = l.next, l.sent
	switch {
	case len(l.rd.Append) > 0 && l.cfg.Store == nil && l.cfg.Begin == nil:
		l.stored(outcome{err: errors.New("there is none, and the Manager is not volatile: set Store or Begin of Config")})
	case len(l.rd.Append)+len(l.rd.Unlink) == 0, l.cfg.Store == nil && l.cfg.Begin == nil: // of a volatile job nothing is stored
		l.stored(outcome{})
	case l.cfg.Begin != nil:
		var once sync.Once
		l.cfg.Begin(&l.rd, func(failed map[jobid.ID]error, err error) {
			once.Do(func() {
				l.written <- outcome{failed: failed, err: err}
				l.signal()
			})
		})
	case l.inline:
		l.stored(l.store())
	default:
		go l.storeApart()
	}
	return true
}

func (l *Loop) storeApart() {
	o := outcome{err: errors.New("it ended its goroutine")}
	began := time.Now()
	defer func() {
		if v := recover(); v != nil {
			o.panics = fmt.Sprintf("loop: the store panics: %v\n\n%s", v, debug.Stack())
		}
		o.took = time.Since(began)
		l.written <- o
		l.signal()
	}()
	o = l.store()
}

// An outcome is what the store said.
type outcome struct {
	failed map[jobid.ID]error
	err    error
	panics any // the value of a panic, with its stack
	took   time.Duration
}

func (l *Loop) store() (o outcome) {
	if len(l.rd.Append) > 0 {
		if o.err = l.cfg.Store.Append(l.rd.Append); o.err != nil {
			return o
		}
	}
	if len(l.rd.Unlink) > 0 {
		o.failed, o.err = l.cfg.Store.Unlink(context.Background(), l.rd.Unlink) // a stop is orderly
	}
	return o
}

// stored does what follows when the store is done with the Ready.
func (l *Loop) stored(o outcome) {
	l.writing = false
	if o.panics != nil {
		_ = l.m.Abandon(l.rd.Seq)
		panic(o.panics)
	}
	if o.err != nil {
		l.broken = errors.Join(fmt.Errorf("loop: store: %w", o.err), l.m.Abandon(l.rd.Seq))
		return
	}
	l.mu.Lock()
	if l.stats.Storing += o.took; len(l.rd.Append) > 0 {
		l.stats.Commits++
	}
	l.mu.Unlock()
	done(l.sent)
	l.answers()
	unlinked := joblife.Unlinked{IDs: slices.Clone(l.rd.Unlink), Failed: o.failed}
	l.act(&l.rd)
	if err := l.m.Done(l.rd.Seq); err != nil {
		l.fail(err)
		return
	}
	l.rd = joblife.Ready{} // a large one would stay until the next
	answer(&l.sent)
	if len(unlinked.IDs) > 0 && !l.stopping && l.broken == nil {
		_ = l.step(unlinked)
	}
}

// act has done what a Ready wants done.
func (l *Loop) act(rd *joblife.Ready) {
	if l.cfg.Scheduler != nil {
		l.instruct(rd)
	}
	if l.cfg.Executor != nil {
		l.order(rd)
	}
	l.cfg.Effects(l.m, rd)
	l.execute()
	if l.cfg.Scheduler != nil && !l.void && !l.stopping {
		l.decide(eventlog.FromTime(l.Now()))
	}
}

// answers takes the answers to Calls out of the Ready.
func (l *Loop) answers() {
	l.rd.Answers = slices.DeleteFunc(l.rd.Answers, func(a joblife.Answer) bool {
		c, own := l.calls[a.Tag], a.Tag >= ownTags
		if c != nil { // or its caller has left
			delete(l.calls, a.Tag)
			a.Tag = 0
			c.answer, c.err = a, a.Err
			l.sent = append(l.sent, c)
		}
		return own
	})
}

// done calls the functions that wait, and reports whether there was one.
func done(list []*call) (any bool) {
	for _, c := range list {
		if c.then != nil {
			c.then()
			any = true
		}
	}
	return any
}

func answer(list *[]*call) {
	for _, c := range *list {
		if c.done != nil {
			close(c.done)
		}
	}
	clear(*list)
	*list = (*list)[:0]
}

// stop hands out what the Manager has decided.
func (l *Loop) stop() error {
	l.stopping = true
	l.signal() // what came may have been told before
	for more := true; more && l.broken == nil; {
		for l.writing && l.broken == nil {
			select {
			case o := <-l.written:
				l.stored(o)
			case <-l.wake:
				if l.cfg.Begin != nil {
					l.functions()
				}
			}
		}
		more = l.broken == nil && l.send()
	}
	return l.broken
}

// functions calls those of Do at the end: what Begin waits for may be among them.
func (l *Loop) functions() {
	l.take()
	for _, r := range l.batch {
		if r.do != nil && l.broken == nil {
			l.request(r)
		}
	}
	if len(l.batch) > 0 {
		l.signal() // there may be more
	}
}

func (l *Loop) wait() {
	var due <-chan time.Time // nil: never
	at, ok := l.m.Deadline() // a Shutdown's is among them while actions run
	sooner := func(other eventlog.Timestamp, too bool) {
		if too && (!ok || other.Time().Before(at)) {
			at, ok = other.Time(), true
		}
	}
	sooner(l.decides())
	if l.cfg.Executor != nil {
		sooner(l.cfg.Executor.Deadline())
	}
	if ok {
		due = time.After(min(at.Sub(l.Now()), maxWait)) // the clock may be set meanwhile
	}
	select {
	case <-l.wake:
	case <-due:
	}
}
