package loop

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/jobstate/jobid"
)

// The limits of what is done at once.
const (
	maxBatch = 128     // inputs before the store and the clock get a look
	maxSteps = 1 << 14 // inputs that share a commit
	maxWait  = time.Minute
)

// turn does what can be done without a wait, and reports whether there was anything.
func (l *Loop) turn() (busy bool, err error) {
	if l.writing {
		select {
		case o := <-l.written:
			if err := l.stored(o); err != nil {
				return true, err
			}
			busy = true
		default:
		}
	}
	l.take()
	for _, r := range l.batch {
		if err := l.request(r); err != nil {
			return true, err
		}
		busy = true
	}
	clear(l.batch)
	if at, ok := l.m.Deadline(); ok && !at.After(l.time()) && !(l.inline && l.ticked) {
		l.ticked = true
		if err := fatal(l.step(joblife.Tick{})); err != nil {
			return true, err
		}
	}
	if l.writing {
		return busy, nil
	}
	sent, err := l.send()
	return busy || sent, err
}

// hasRoom reports whether more inputs may share the next commit.
func (l *Loop) hasRoom() bool { return l.cfg.Begin != nil || l.steps < maxSteps && l.size < maxBytes }

// take takes inputs out of the inbox, and forgets the calls that nobody waits for.
func (l *Loop) take() {
	l.batch = l.batch[:0]
	l.mu.Lock()
	left := l.left
	l.left = nil
	if l.hasRoom() {
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
	l.mu.Unlock()
	for _, c := range left {
		if l.calls[c.tag] == c {
			if delete(l.calls, c.tag); c.waits {
				_ = l.step(joblife.WaitCancel{Tag: c.tag}) // which is refused at most after a Shutdown
			}
		}
	}
}

// request dispatches an input, or lets a reader view the Manager.
func (l *Loop) request(r request) error {
	c := r.call
	l.steps++ // refused or not: who asks waits for the store
	l.size += r.size
	if r.do != nil {
		if then := r.do(l.m); then != nil {
			l.next = append(l.next, &call{then: then})
		}
		return l.broken
	}
	if c == nil {
		err := l.step(r.in)
		if err != nil {
			l.cfg.Refused(r.in, err)
		}
		return fatal(err)
	}
	if c.view != nil {
		select {
		case c.view <- struct{}{}:
			<-c.back
			l.next = append(l.next, c)
		case <-c.gone:
		}
		return nil
	}
	select {
	case <-c.gone:
		return nil // its caller is gone, or goes
	default:
	}
	if c.err = l.step(r.in); c.err == nil && c.tag != 0 {
		l.calls[c.tag] = c
		switch r.in.(type) {
		case joblife.Wait, joblife.WaitEmpty:
			c.waits = true
		}
	} else { // what a refusal says has to be durable too
		l.next = append(l.next, c)
	}
	return fatal(c.err)
}

// fatal returns the error if no other input can do better.
func fatal(err error) error {
	if errors.Is(err, joblife.ErrClock) {
		return fmt.Errorf("loop: %w", err)
	}
	return nil
}

// time returns the time, which does not step back.
func (l *Loop) time() time.Time {
	if l.clock != nil {
		if now := l.clock(); now.After(l.now) {
			l.now = now
		}
	}
	return l.now
}

// step dispatches an input.
func (l *Loop) step(in joblife.Input) error {
	err := l.m.Step(l.time(), in)
	l.mu.Lock()
	if err == nil {
		l.stats.Inputs++
	} else {
		l.stats.Refused++
	}
	l.mu.Unlock()
	switch in.(type) {
	case joblife.SchedHello, joblife.SchedLost:
		l.session.over = true // what the store has is void
	}
	return err
}

// send passes what the Manager has to the store, and reports whether there was anything. If
// not, all that callers wait for is durable.
func (l *Loop) send() (bool, error) {
	l.steps, l.size = 0, 0
	if !l.m.Ready(&l.rd) {
		did := done(l.next)
		if did {
			l.act(&joblife.Ready{})
		}
		answer(&l.next)
		return did, l.broken
	}
	l.writing = true
	l.session.over = l.session.over && l.rd.Hello == nil
	l.sent, l.next = l.next, l.sent
	switch {
	case len(l.rd.Append) > 0 && l.cfg.Store == nil && l.cfg.Begin == nil:
		return true, l.stored(outcome{err: errors.New("there is none, and the Manager is not volatile")})
	case len(l.rd.Append)+len(l.rd.Unlink) == 0, l.cfg.Store == nil && l.cfg.Begin == nil: // of a volatile job nothing is stored
		return true, l.stored(outcome{})
	case l.cfg.Begin != nil:
		var once sync.Once
		l.cfg.Begin(&l.rd, func(failed map[jobid.ID]error, err error) {
			once.Do(func() {
				l.written <- outcome{failed: failed, err: err}
				l.signal()
			})
		})
		return true, nil
	case l.inline:
		return true, l.stored(l.store())
	}
	go func() {
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
	}()
	return true, nil
}

// An outcome is what the store said.
type outcome struct {
	failed map[jobid.ID]error
	err    error
	panics any // the value of a panic, with its stack
	took   time.Duration
}

// store stores what the Ready has.
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
func (l *Loop) stored(o outcome) error {
	l.writing = false
	if o.panics != nil {
		_ = l.m.Abandon(l.rd.Seq)
		panic(o.panics)
	}
	if o.err != nil {
		return errors.Join(fmt.Errorf("loop: store: %w", o.err), l.m.Abandon(l.rd.Seq))
	}
	l.mu.Lock()
	if l.stats.Storing += o.took; len(l.rd.Append) > 0 {
		l.stats.Commits++
	}
	l.mu.Unlock()
	done(l.sent)
	answered := l.answers()
	unlinked := joblife.Unlinked{IDs: slices.Clone(l.rd.Unlink), Failed: o.failed}
	l.act(&l.rd)
	if err := l.m.Done(l.rd.Seq); err != nil {
		return fmt.Errorf("loop: %w", err)
	}
	l.rd = joblife.Ready{} // a large one would stay until the next
	for _, c := range answered {
		close(c.done)
	}
	answer(&l.sent)
	if len(unlinked.IDs) > 0 && !l.stopping && l.broken == nil {
		return fatal(l.step(unlinked))
	}
	return l.broken
}

// act has done what a Ready wants done.
func (l *Loop) act(rd *joblife.Ready) {
	if l.cfg.Scheduler != nil && !l.session.over {
		l.instruct(rd)
	}
	l.cfg.Effects(l.m, rd)
	if l.cfg.Scheduler != nil && !l.session.over && !l.stopping {
		l.decide()
	}
}

// answers takes the answers to Calls out of the Ready.
func (l *Loop) answers() (answered []*call) {
	l.rd.Answers = slices.DeleteFunc(l.rd.Answers, func(a joblife.Answer) bool {
		c, own := l.calls[a.Tag], a.Tag >= ownTags
		if c != nil { // or its caller has left
			delete(l.calls, a.Tag)
			a.Tag = 0
			c.answer, c.err = a, a.Err
			answered = append(answered, c)
		}
		return own
	})
	return answered
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

// answer answers calls.
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
	for more := true; more; {
		for l.writing {
			select {
			case o := <-l.written:
				if err := l.stored(o); err != nil {
					return err
				}
			case <-l.wake:
				if err := l.functions(); err != nil {
					return err
				}
			}
		}
		var err error
		if more, err = l.send(); err != nil {
			return err
		}
	}
	return nil
}

// functions calls those of Do at the end, if what Begin waits for may be among them.
func (l *Loop) functions() error {
	if l.cfg.Begin == nil {
		return nil
	}
	l.take()
	for _, r := range l.batch {
		if r.do == nil {
			continue
		}
		if err := l.request(r); err != nil {
			return err
		}
	}
	if len(l.batch) > 0 {
		l.signal() // there may be more
	}
	return nil
}

// wait waits until there is something to do.
func (l *Loop) wait() {
	at, ok := l.m.Deadline() // a Shutdown's is among them while actions run
	if !ok {
		<-l.wake
		return
	}
	wait := min(at.Sub(l.time()), maxWait) // the clock may be set meanwhile
	if l.timer == nil {
		l.timer = time.NewTimer(wait)
	}
	l.timer.Reset(wait)
	select {
	case <-l.wake:
	case <-l.timer.C:
	}
}
