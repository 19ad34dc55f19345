package service

import (
	"fmt"
	"slices"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/examples/internal/errno"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
)

// waits has the requests that wait for a job's end, and the ends that no request has asked
// for yet. Each end is told once. A restart forgets them.
type waits struct {
	*core
	active map[jobid.ID]struct{} // jobs that may be waited for, and are not over
	one    map[jobid.ID]*Request // who waits for a job
	any    []*Request            // who waits for any job, in their order
	ended  map[jobid.ID]zombie
	order  []jobid.ID // of ended, oldest first; some may have been told since
}

// A waitResult is how a job ended.
type waitResult struct {
	ID      jobid.ID `json:"id"`
	Success bool     `json:"success"`
	Errstr  string   `json:"errstr"`
}

// A zombie is a job that is over and whose end was not told yet.
type zombie struct {
	end     waitResult
	listing listed
}

func (w *waits) hooks() joblife.Hooks {
	waitable := func(e *joblife.HookEvent) bool { return e.Job.Job().HasFlag("waitable") }
	count := func(e *joblife.HookEvent, n int) {
		if n < 0 {
			delete(w.active, e.Job.ID())
		} else if waitable(e) {
			w.active[e.Job.ID()] = struct{}{}
		}
	}
	h := counting("service waits", count)
	event, over := h.Event, h.Inactive
	h.Event = func(e *joblife.HookEvent) {
		if event(e); e.Entry.Name == jobstate.EventSetFlags {
			count(e, 1)
		}
	}
	h.Inactive = func(e *joblife.HookEvent) {
		if over(e); waitable(e) {
			w.waited(zombie{resultOf(e.Job.Job()), listJob(e.Job)})
		}
	}
	return h
}

// waited answers a request that waits for the end of a job, or else keeps the end.
func (w *waits) waited(z zombie) {
	id := z.end.ID
	switch one := w.one[id]; {
	case one != nil:
		delete(w.one, id)
		w.open.answer(one, z.end)
	case len(w.any) > 0:
		w.open.answer(w.any[0], z.end)
		w.any[0] = nil
		w.any = w.any[1:]
	default:
		w.ended[id] = z
		w.order = append(w.order, id)
	}
}

// wait waits for the end of one job, or with the id -1 of any.
func (w *waits) wait(r *Request, p struct {
	ID int64 `json:"id"`
}) (any, error) {
	id := jobid.ID(p.ID)
	if p.ID == -1 {
		if end, ok := w.oldest(); ok {
			return w.reap(end), nil
		}
		w.any = append(w.any, r)
		w.refuse()
		return nil, errLater
	}
	if _, ok := w.ended[id]; ok {
		return w.reap(id), nil
	}
	v, ok := w.m.Job(id)
	switch {
	case !ok || v.State() == jobstate.StateInactive:
		return nil, fail(errno.NoChild, "invalid job id, or job may be inactive and not waitable")
	case w.one[id] != nil:
		return nil, fail(errno.NoChild, "job id already has a waiter")
	case !v.Job().HasFlag("waitable"):
		return nil, fail(errno.NoChild, "job was not submitted with FLUX_JOB_WAITABLE")
	}
	w.one[id] = r
	w.refuse()
	return nil, errLater
}

// refuse refuses the last request that waits for any job, if more wait than jobs will end.
func (w *waits) refuse() {
	if n := len(w.any); n > 0 && n+len(w.one) > len(w.active) {
		w.quick.fail(w.any[n-1], fail(errno.NoChild, "there are no more waitable jobs"))
		w.any = slices.Delete(w.any, n-1, n)
	}
}

func (w *waits) oldest() (jobid.ID, bool) {
	for len(w.order) > 0 {
		if _, ok := w.ended[w.order[0]]; ok {
			return w.order[0], true
		}
		w.order = w.order[1:]
	}
	return 0, false
}

// reap returns the end of a job, which is told once.
func (w *waits) reap(id jobid.ID) waitResult {
	r := w.ended[id].end
	delete(w.ended, id)
	if len(w.order) > 16+2*len(w.ended) {
		w.order = slices.DeleteFunc(w.order, func(id jobid.ID) bool { _, ok := w.ended[id]; return !ok })
	}
	return r
}

// remove removes requests, and returns them in their order, those for one job first.
func (w *waits) remove(which func(*Request) bool) (out []*Request) {
	var ids []jobid.ID
	for id, r := range w.one {
		if which(r) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	for _, id := range ids {
		out = append(out, w.one[id])
		delete(w.one, id)
	}
	return append(out, takeOut(&w.any, which)...)
}

// resultOf returns how a job ended, by the event that led to CLEANUP.
func resultOf(j *jobstate.Job) waitResult {
	r := waitResult{ID: j.ID(), Success: j.Success()}
	status, finished := j.WaitStatus()
	cause, fatal := j.Cause()
	end, _ := j.FinishTime()
	if fatal && !r.Success && (!finished || cause.Time <= end) {
		r.Errstr = fmt.Sprintf("Fatal exception type=%s %s", cause.Type, cause.Note)
		return r
	}
	code := status >> 8 & 0xff
	switch signal := status & 0x7f; {
	case signal == 0x7f || status>>16 != 0:
		r.Errstr = fmt.Sprintf("unexpected wait(2) status %d", status)
	case signal != 0:
		r.Errstr = "job shell " + signalText(signal)
	case code > 128: // by which the shell says that a signal ended its tasks
		r.Errstr = "task(s) " + signalText(code-128)
	case code > 0:
		r.Errstr = fmt.Sprintf("task(s) exited with exit code %d", code)
	}
	return r
}

// signalText returns the words of Linux for a signal.
func signalText(signal int) string {
	names := [...]string{
		1: "Hangup", "Interrupt", "Quit", "Illegal instruction", "Trace/breakpoint trap", "Aborted", "Bus error",
		"Floating point exception", "Killed", "User defined signal 1", "Segmentation fault", "User defined signal 2",
		"Broken pipe", "Alarm clock", "Terminated", "Stack fault", "Child exited", "Continued", "Stopped (signal)",
		"Stopped", "Stopped (tty input)", "Stopped (tty output)", "Urgent I/O condition", "CPU time limit exceeded",
		"File size limit exceeded", "Virtual timer expired", "Profiling timer expired", "Window changed", "I/O possible",
		"Power failure", "Bad system call",
	}
	const first, last = 34, 64 // of the real-time signals
	switch {
	case 0 < signal && signal < len(names):
		return names[signal]
	case first <= signal && signal <= last:
		return fmt.Sprintf("Real-time signal %d", signal-first)
	}
	return fmt.Sprintf("Unknown signal %d", signal)
}

// An emptyWait is a request that waits until there are no jobs in some states.
type emptyWait struct {
	*Request
	states jobstate.State
	tag    uint64 // of the input to the Manager; 0: none yet, since the scheduler has requests
}

// The empties part has those requests.
type empties struct {
	*core
	list    []*emptyWait
	pending int // jobs that are not over, as far as that is durable
}

// hooks count the jobs from before, and note those that end.
func (s *empties) hooks() joblife.Hooks {
	return joblife.Hooks{
		Name: "idle", Restored: func(*joblife.HookEvent) { s.pending++ },
		Inactive: func(e *joblife.HookEvent) { s.ending[e.Job.ID()] = struct{}{} },
	}
}

func (s *empties) count(rd *joblife.Ready) {
	for _, e := range rd.Journal {
		switch e.Entry.Name {
		case jobstate.EventSubmit:
			s.pending++
		case jobstate.EventClean, jobstate.EventInvalidate:
			s.pending--
			delete(s.ending, e.Job)
		}
	}
}

// drain is answered when no job is active.
func (s *empties) drain(r *Request) (any, error) {
	return nil, s.wait(r, jobstate.StateNew|jobstate.StateActive)
}

// idle is answered when no job runs, and the scheduler has no requests.
func (s *empties) idle(r *Request) (any, error) { return nil, s.wait(r, jobstate.StateRunning) }

// maxEmpty limits how many requests wait for no jobs.
const maxEmpty = 1024

func (s *empties) wait(r *Request, states jobstate.State) error {
	if len(s.list) >= maxEmpty {
		return fail(errno.Again, "%d requests wait for jobs to end", maxEmpty)
	}
	w := &emptyWait{Request: r, states: states}
	if err := s.await(w); err != nil {
		return err
	}
	s.list = append(s.list, w)
	return errLater
}

// await asks the Manager to answer when there are no such jobs.
func (s *empties) await(w *emptyWait) error {
	return s.ask(func(tag uint64) joblife.Input {
		w.tag = tag
		return joblife.WaitEmpty{Tag: tag, States: w.states}
	}, func(joblife.Answer) {
		if q := s.m.Stats().Queue; w.states == jobstate.StateRunning && q.Sent+q.Recalled > 0 {
			w.tag = 0
			return
		}
		s.list = slices.DeleteFunc(s.list, func(o *emptyWait) bool { return o == w })
		var payload any
		if w.states == jobstate.StateRunning {
			payload = map[string]int{"pending": s.pending}
		}
		s.open.answer(w.Request, payload)
	})
}

// calmed asks the Manager for the requests that waited only for the scheduler, when it has no
// requests any more.
func (s *empties) calmed() {
	if !slices.ContainsFunc(s.list, func(w *emptyWait) bool { return w.tag == 0 }) {
		return
	}
	if q := s.m.Stats().Queue; q.Sent+q.Recalled > 0 {
		return
	}
	for _, w := range s.list {
		if w.tag != 0 {
			continue
		}
		if err := s.await(w); err != nil {
			s.quick.errorf("%s: %v", w.Topic, err)
			return
		}
	}
}

func (s *empties) remove(which func(*Request) bool) (out []*Request) {
	s.list = slices.DeleteFunc(s.list, func(w *emptyWait) bool {
		if !which(w.Request) {
			return false
		}
		out = append(out, w.Request)
		if delete(s.asked, w.tag); w.tag != 0 {
			if err := s.step(joblife.WaitCancel{Tag: w.tag}); err != nil {
				s.quick.errorf("%s: %v", w.Topic, err)
			}
		}
		return true
	})
	return out
}
