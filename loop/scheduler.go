package loop

import (
	"fmt"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/rset/alloc"
)

// A Scheduler is a scheduler in the same program, such as [sched.Scheduler].
//
// [sched.Scheduler]: https://pkg.go.dev/github.com/joblife/joblife/rset/sched#Scheduler
type Scheduler interface {
	// Hello begins a session, perhaps after another: these jobs hold resources, and no
	// others do. After an error mend what is wrong, and put SchedHello and SchedReady.
	Hello(alloc.Announcement) error
	// Handle takes a message of the session: a Request, Cancel, Prioritize, Free, Expiration
	// or ReadyResponse. What it refers to is valid until Handle returns, an R excepted. After an
	// error it is not repeated: a job whose Request is refused waits for the next session.
	Handle(alloc.Message) error
	// Drain lets no more jobs start on ranks, in any session. Unknown ranks are no error.
	Drain(ranks *idset.Set) error
	// Decide returns responses, in order, and is called after each Effects and at the Deadline.
	// An alloc.ResponseCancel answers a Cancel: without one the same request comes again. Annotate
	// only what has changed: each change is told in a Ready, after which Decide is called again.
	Decide(now eventlog.Timestamp) []alloc.Response
	// Deadline returns when to call Decide if nothing happens; false: never. That Decide moves it on.
	Deadline() (eventlog.Timestamp, bool)
}

// greet has the Scheduler's next session begin.
func (l *Loop) greet() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inbox = append(l.inbox, request{in: joblife.SchedHello{PartialOK: true}}, request{in: joblife.SchedReady{}})
}

// instruct passes a Ready to the Scheduler, and what goes wrong to Faults. It confirms drains.
func (l *Loop) instruct(rd *joblife.Ready) {
	if rd.Hello != nil && !l.void {
		fault(rd, l.cfg.Scheduler.Hello(*rd.Hello))
	}
	for _, msg := range rd.Sched {
		if !l.void {
			fault(rd, l.cfg.Scheduler.Handle(msg))
		}
	}
	for _, d := range rd.Drain {
		err := l.cfg.Scheduler.Drain(d.Ranks)
		if err == nil && !l.stopping { // else a restart asks again
			err = l.Step(joblife.Drained{Ranks: d.Ranks})
		}
		fault(rd, err)
	}
}

// decides returns when the Scheduler has to decide, which it never has while the store works.
func (l *Loop) decides() (at eventlog.Timestamp, ok bool) {
	if l.cfg.Scheduler == nil || l.void || l.writing || l.broken != nil {
		return 0, false
	}
	return l.cfg.Scheduler.Deadline()
}

// decide dispatches what the Scheduler responds, until the Manager refuses it: then it believes
// what is not so, and a new session tells it what is held. If that did not help the last time,
// none follows: there would be no end.
func (l *Loop) decide(now eventlog.Timestamp) {
	for _, r := range l.cfg.Scheduler.Decide(now) {
		in := joblife.SchedResponse(r)
		err := l.Step(in)
		if err == nil {
			l.second = l.second && r.Type != alloc.ResponseSuccess && r.Type != alloc.ResponseDeny // the job waits as before
			continue
		}
		_ = l.step(joblife.SchedLost{}) // refused at most after a Shutdown
		if l.second {
			err = fmt.Errorf("loop: the Scheduler has no session until SchedHello and SchedReady are put: %w", err)
		} else {
			l.second = true
			l.greet()
		}
		l.cfg.Refused(in, err)
		return
	}
}
