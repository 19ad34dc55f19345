package joblife

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/internal/jsonobj"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/rset/alloc"
)

const (
	eventAnnotations  = "annotations"         // volatile: the scheduler annotates a job that waits
	eventAllocRequest = "debug.alloc-request" // of a job with the flag debug
	eventStartRequest = "debug.start-request" // likewise
	eventReattached   = "debug.exec-reattach-finish"
)

// A scheduler is the session of one (RFC 27), and the jobs that wait for it.
type scheduler struct {
	*core
	queue *alloc.Queue
	later []alloc.Message // between hello and ready
	sends []alloc.Send    // scratch of send
}

// send hands out what the queue wants sent. Only a bug in this package makes the queue fail.
func (s *scheduler) send(sends []alloc.Send, err error) {
	must("the queue and the jobs disagree", err)
	for _, msg := range sends {
		var jobspec json.RawMessage
		if msg.Topic == alloc.TopicAlloc {
			j := s.jobs[msg.Job.ID]
			jobspec = j.request()
			s.debug(j, eventAllocRequest)
		}
		s.out.Sched = append(s.out.Sched, msg.Message(jobspec))
	}
	s.sends = sends[:0]
}

// block stops the jobs of queues that do not start them, and starts the others.
func (s *scheduler) block(starts func(queue string) bool) {
	var stop, start []jobid.ID
	for _, j := range s.sorted(jobstate.StatePriority | jobstate.StateSched) {
		switch {
		case !j.queued:
		case starts(j.queue):
			start = append(start, j.id)
		default:
			stop = append(stop, j.id)
		}
	}
	s.send(s.queue.Stop(s.sends, stop...))
	s.send(s.queue.Start(s.sends, start...))
}

// enqueue makes a job wait for resources with its priority; stopped, without a request.
func (s *scheduler) enqueue(j *job, stopped bool) {
	state := j.job()
	if state.State() != jobstate.StateSched || state.HasFlag(flagBypass) {
		return
	}
	info := infoOf(state)
	switch {
	case j.queued:
		s.send(s.queue.Prioritize(s.sends, []alloc.Priority{{ID: j.id, Priority: info.Priority}}))
	case stopped:
		s.send(s.sends, s.queue.AddStopped(info))
	default:
		s.send(s.queue.Add(s.sends, info))
	}
	j.queued = true
}

// renew replaces a request whose jobspec has changed.
func (s *scheduler) renew(j *job, stopped bool) {
	if !j.queued {
		return
	}
	s.send(s.queue.Renew(s.sends, j.id))
	if stopped {
		s.send(s.queue.Stop(s.sends, j.id))
	} else {
		s.send(s.queue.Start(s.sends, j.id))
	}
}

func (s *scheduler) dequeue(j *job) {
	if j.queued {
		s.forget(j)
		s.send(s.queue.Cancel(s.sends, j.id))
	}
}

func (s *scheduler) forget(j *job) {
	j.queued = false
	s.unannotate(j)
}

// hello begins a session, which learns what is held.
func (s *scheduler) hello(partialOK bool, held []alloc.HelloResponse) {
	s.lost()
	s.queue.Hello(nil) // which forgets nothing more
	a := alloc.Announce(held, partialOK)
	s.out.Hello = &a
	for _, e := range a.Failed {
		s.fault("", e.ID, e.Err)
	}
	// It need not know of jobs that hold nothing and only have to end.
	for _, j := range s.sorted(jobstate.StateRunning | jobstate.StateInactive) {
		_, holds := j.holding()
		j.hidden = j.r != nil && !holds
	}
}

func (s *scheduler) ready(in alloc.Ready) error {
	sends, response, err := s.queue.Ready(s.sends, in)
	if err != nil {
		return err
	}
	s.out.Sched = append(append(s.out.Sched, response), s.later...)
	s.later = nil
	s.send(sends, nil)
	return nil
}

// lost ends the session: requests are void, and what was not handed out yet.
func (s *scheduler) lost() {
	for _, id := range s.queue.Lost(nil) {
		s.unannotate(s.jobs[id])
	}
	s.later, s.out.Hello, s.out.Sched = nil, nil, s.out.Sched[:0]
}

// inform sends what is about resources of the scheduler. Between hello and ready it waits;
// without a scheduler, the next hello tells of it.
func (s *scheduler) inform(msg alloc.Message) {
	switch s.queue.Phase() {
	case alloc.PhaseOnline:
		s.out.Sched = append(s.out.Sched, msg)
	case alloc.PhaseGreeting:
		s.later = append(s.later, msg)
	}
}

// unannotate drops what the scheduler has said of a job: all but memos.
func (s *scheduler) unannotate(j *job) {
	old := j.rareCopy().notes
	if len(old) == 0 {
		return
	}
	var notes json.RawMessage
	doc := jsonobj.NewDoc(old)
	if memos := doc.Root().Member("user"); !memos.Absent() {
		notes = userNotes(memos.Raw())
	}
	if !bytes.Equal(notes, old) {
		s.setNotes(j, notes)
	}
}

// setNotes sets the annotations of a job, which readers of the journal get.
func (s *scheduler) setNotes(j *job, notes []byte) {
	j.setNotes(notes)
	if len(notes) == 0 {
		notes = []byte("null")
	}
	s.journal(j, s.now, eventAnnotations, slices.Concat([]byte(`{"annotations":`), notes, []byte("}")), true)
}

// An executor is the session of one (RFC 32).
type executor struct {
	*core
	on bool // it said hello
}

// start asks the executor to start a job, now or when it says hello.
func (x *executor) start(j *job) {
	switch {
	case x.on && j.start == startAsk: // its response decides
	case x.on:
		x.send(j)
	case j.start == startNone:
		j.start = startWanted
	case j.start == startAsk:
		j.start = startSent // it may start
	}
}

// send asks the executor to start a job or to go on with it, perhaps once more.
func (x *executor) send(j *job) {
	started := j.job().Started()
	reattach := started || j.state == jobstate.StateCleanup || j.start == startAsk
	if j.start != startAsk {
		j.start = startSent
	}
	x.out.Exec = append(x.out.Exec, exec.Start{
		ID: j.id, UserID: j.job().UserID(), Jobspec: j.request(), R: j.current(), Reattach: reattach, Started: started,
	})
	if !reattach {
		x.debug(j, eventStartRequest)
	}
}

// handOut notes which jobs an executor may have from now on.
func (x *executor) handOut() {
	for _, msg := range x.out.Exec {
		if s, ok := msg.(exec.Start); ok && x.jobs[s.ID] != nil {
			x.jobs[s.ID].handed = true
		}
	}
}

// hello begins a session, which learns what runs and what has ended it. In a shutdown it only says
// which jobs it has of those that have not started.
func (x *executor) hello(stopping bool) {
	x.lost()
	x.on = true
	for _, j := range x.sorted(jobstate.StateRunning) {
		if j.start == startNone || j.job().Released() || stopping && j.start == startWanted {
			continue
		}
		if stopping && j.state == jobstate.StateRun && !j.job().Started() {
			j.start = startAsk
		}
		x.send(j)
		if cause, ok := j.job().Cause(); ok {
			x.out.Raised = append(x.out.Raised, Raised{Job: j.id, ExceptionContext: jobstate.ExceptionContext{
				Type: cause.Type, Note: cause.Note, UserID: cause.UserID, WaitStatus: cause.WaitStatus,
			}})
		}
	}
}

// lost ends the session, and takes back what was not handed out.
func (x *executor) lost() {
	x.on = false
	for _, msg := range x.out.Exec {
		s, ok := msg.(exec.Start)
		if j := x.jobs[s.ID]; ok && !s.Reattach && j != nil && j.start == startSent && !j.handed {
			j.start = startWanted
			x.unwanted(j)
		}
	}
	x.out.Exec = clearTo(x.out.Exec)
}

// unwanted gives up a start of a job that is ending, and that no executor has.
func (x *executor) unwanted(j *job) {
	if j.state == jobstate.StateCleanup && j.start == startWanted {
		j.start = startNone
		j.life.NotStarted(x.now)
		x.touch(j)
	}
}

func (x *executor) expire(j *job, at eventlog.Timestamp) {
	if x.on && (j.start == startSent || j.start == startAsk) {
		x.out.Exec = append(x.out.Exec, exec.Expiration{ID: j.id, Expiration: at})
	}
}
