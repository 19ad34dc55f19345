package alloc

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/joblife/joblife/internal/guard"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset"
)

// Config limits a [Queue].
type Config struct {
	MaxJobs int // number of jobs, including canceled ones that wait for a response; 0 or less means 2^22
}

const (
	defaultMaxJobs = 4 << 20
	maxPairs       = 1 << 20 // jobs of a Prioritize message, which fit in a message
	maxSpare       = 1 << 8
)

// A Queue is the manager's side of the protocol: the jobs that wait for resources, and which of
// them the scheduler has a request for. Queue order is by priority, greatest first, then by id,
// and so by the time of submission. The zero Queue is empty and has the defaults of Config. Do
// not copy a Queue.
//
// Each operation appends the messages to send to dst and returns it; the caller sends them, in
// that order. After an error it returns dst as it was, and nothing has changed.
type Queue struct {
	_     guard.NoCopy
	cfg   Config
	pairs int               // jobs of a Prioritize message; 0: maxPairs
	jobs  map[jobid.ID]*job // all, canceled ones too
	in    [states]list      // by state; claimed jobs come before pending ones
	phase Phase
	limit int    // the maximum number of requests without a response; 0: no limit
	marks uint64 // the greatest mark of a job: see Prioritize
	spare []*job // zero, to be used again; at most maxSpare
}

// A job is what the queue knows of a job, a canceled one too.
type job struct {
	JobInfo
	state   state
	stopped bool
	stale   bool   // its request is recalled, and has the jobspec of before Renew
	mark    uint64 // the last Prioritize that named it
}

// blocked reports whether the job must not have a request.
func (j *job) blocked() bool { return j.Priority == 0 || j.stopped }

// NewQueue returns an empty queue without a scheduler.
func NewQueue(c Config) *Queue { return &Queue{cfg: c} }

// A Send is one message to send to the scheduler, without the jobspec of a request.
type Send struct {
	Topic string     // TopicAlloc, TopicCancel, TopicPrioritize or TopicFree
	Job   JobInfo    // zero for TopicPrioritize
	R     *rset.R    // for TopicFree: all that a response gave to a canceled or a renewed job
	jobs  []Priority // for TopicPrioritize; the caller may keep the message
}

// Message returns the message. Only a request has the jobspec.
func (s Send) Message(jobspec json.RawMessage) Message {
	switch s.Topic {
	case TopicAlloc:
		return Request{JobInfo: s.Job, Jobspec: jobspec}
	case TopicCancel:
		return Cancel{ID: s.Job.ID}
	case TopicPrioritize:
		return Prioritize{Jobs: s.jobs}
	}
	return Free{ID: s.Job.ID, R: s.R, Final: true}
}

func (q *Queue) get(id jobid.ID) (*job, error) {
	j := q.jobs[id]
	if j == nil || j.state == stateCanceled {
		return nil, jobError(id, errNotFound)
	}
	return j, nil
}

// Add adds a job, and sends its request when its turn comes. The error is ErrLimit if the queue
// is full. It is an error if the queue has the job; a canceled one counts until the response to
// its request, which could be to a second one.
func (q *Queue) Add(dst []Send, j JobInfo) ([]Send, error) {
	if err := q.add(j, false); err != nil {
		return dst, err
	}
	return q.update(dst), nil
}

// AddStopped is Add for a job that is stopped: it gets no request before [Queue.Start].
func (q *Queue) AddStopped(j JobInfo) error { return q.add(j, true) }

func (q *Queue) add(j JobInfo, stopped bool) error {
	if old := q.jobs[j.ID]; old != nil {
		if old.state == stateCanceled {
			return fmt.Errorf("%w: %v is canceled, and its request has no response", errExists, j.ID)
		}
		return jobError(j.ID, errExists)
	}
	most := cmp.Or(max(q.cfg.MaxJobs, 0), defaultMaxJobs)
	if n := len(q.jobs); n >= most {
		return fmt.Errorf("%w: %d jobs, at most %d are allowed", ErrLimit, n+1, most)
	}
	if q.jobs == nil {
		q.jobs = make(map[jobid.ID]*job)
	}
	if len(q.spare) == 0 {
		q.spare = append(q.spare, new(job))
	}
	last := len(q.spare) - 1
	added := q.spare[last]
	q.spare = q.spare[:last]
	added.JobInfo, added.stopped = j, stopped
	q.jobs[j.ID] = added
	q.enter(added)
	return nil
}

// Cancel removes a job at once, as after a fatal exception, and takes back its request. What
// the scheduler has allocated meanwhile, the queue frees. A job that the queue does not have,
// as one that has resources, is an error.
func (q *Queue) Cancel(dst []Send, id jobid.ID) ([]Send, error) {
	j, err := q.get(id)
	if err != nil {
		return dst, err
	}
	switch j.state {
	case stateSent:
		q.move(j, stateCanceled)
		dst = append(dst, Send{Topic: TopicCancel, Job: j.JobInfo})
	case stateRecalled:
		q.move(j, stateCanceled)
	default:
		q.drop(j)
	}
	return q.update(dst), nil
}

// Prioritize sets the priorities of jobs. The queue sends the changed priorities of jobs that
// have a request, in one message for up to 2^20 jobs, in the order given. It recalls the request
// of a job that gets priority 0, or that must make way for a better one. A job that the queue
// does not have, or that is named twice, is an error. For k of n jobs it takes k log n steps.
func (q *Queue) Prioritize(dst []Send, jobs []Priority) ([]Send, error) {
	q.marks += 2 // marks-1: named in this call; marks: and changed for the scheduler
	for _, p := range jobs {
		j, err := q.get(p.ID)
		if err == nil && j.mark == q.marks-1 {
			err = jobError(p.ID, errExists)
		}
		if err != nil {
			return dst, err
		}
		j.mark = q.marks - 1
	}
	changed := 0
	for _, p := range jobs {
		j := q.jobs[p.ID]
		if j.Priority == p.Priority {
			continue
		}
		q.in[j.state].remove(j)
		j.Priority = p.Priority
		switch {
		case j.state == stateRecalled:
			q.in[stateRecalled].insert(j)
		case j.state != stateSent:
			q.enter(j)
		case j.blocked():
			j.state = stateRecalled
			q.in[stateRecalled].insert(j)
			dst = append(dst, Send{Topic: TopicCancel, Job: j.JobInfo})
		default:
			q.in[stateSent].insert(j)
			j.mark = q.marks
			changed++
		}
	}
	dst = q.recall(dst)
	dst = q.reprioritize(dst, jobs, changed)
	return q.fill(dst), nil
}

// reprioritize appends the new priorities of jobs that Prioritize marked, if still sent.
func (q *Queue) reprioritize(dst []Send, jobs []Priority, changed int) []Send {
	if changed == 0 {
		return dst
	}
	pairs := make([]Priority, 0, changed)
	for _, p := range jobs {
		if j := q.jobs[p.ID]; j.mark == q.marks && j.state == stateSent {
			pairs = append(pairs, p)
		}
	}
	for part := range slices.Chunk(pairs, cmp.Or(q.pairs, maxPairs)) {
		dst = append(dst, Send{Topic: TopicPrioritize, jobs: part})
	}
	return dst
}

// Stop blocks jobs whatever their priority, as those of a named queue, and recalls their
// requests. A stopped job stays as it is. A job that the queue does not have is an error.
func (q *Queue) Stop(dst []Send, ids ...jobid.ID) ([]Send, error) {
	return q.setStopped(dst, ids, true)
}

// Start undoes Stop, with the same error. A job that is not stopped stays as it is. A recalled
// job gets another request after the response to the first.
func (q *Queue) Start(dst []Send, ids ...jobid.ID) ([]Send, error) {
	return q.setStopped(dst, ids, false)
}

// Renew replaces the request of a job whose jobspec has changed, if it has one. What the
// response to that gives is freed, and it denies nothing. A job that the queue does not have
// is an error.
func (q *Queue) Renew(dst []Send, id jobid.ID) ([]Send, error) {
	j, err := q.get(id)
	if err != nil {
		return dst, err
	}
	if j.state == stateSent {
		q.move(j, stateRecalled)
		dst = append(dst, Send{Topic: TopicCancel, Job: j.JobInfo})
	}
	j.stale = j.state == stateRecalled
	return q.update(dst), nil
}

func (q *Queue) setStopped(dst []Send, ids []jobid.ID, stopped bool) ([]Send, error) {
	for _, id := range ids {
		if _, err := q.get(id); err != nil {
			return dst, err
		}
	}
	for _, id := range ids {
		j := q.jobs[id]
		j.stopped = stopped
		switch {
		case j.state == stateSent && stopped:
			q.move(j, stateRecalled)
			dst = append(dst, Send{Topic: TopicCancel, Job: j.JobInfo})
		case j.state == statePending, j.state == stateClaimed, j.state == stateBlocked:
			q.in[j.state].remove(j)
			q.enter(j)
		}
	}
	return q.update(dst), nil
}

// An Outcome says what a response of the scheduler means for the job.
type Outcome uint8

// The outcomes. The zero Outcome comes with an error.
const (
	OutcomeAllocated Outcome = iota + 1 // the job has its resources and left the queue
	OutcomeAnnotated                    // the job has new annotations and stays
	OutcomeDenied                       // the job can never run and left the queue
	OutcomeRequeued                     // the request is canceled or renewed; the job waits again, its annotations are void
	OutcomeReturned                     // the job was canceled and got resources: a Free returns them
	OutcomeDropped                      // nothing to do: the job was canceled
)

// String returns the outcome in lower case, or "Outcome(200)" for an unknown one.
func (o Outcome) String() string {
	return guard.Name("Outcome", o, "allocated", "annotated", "denied", "requeued", "returned", "dropped")
}

// Response handles the response of the scheduler to a request. A recalled job may still get
// resources, even if it is blocked. A ResponseCancel without a Cancel requeues the job.
//
// It is an error if the scheduler has no request for the job. The error is ErrMessage if the
// response lacks what its type requires.
func (q *Queue) Response(dst []Send, a Response) ([]Send, Outcome, error) {
	if err := a.check(); err != nil {
		return dst, 0, messageError("alloc response", err)
	}
	j := q.jobs[a.ID]
	if j == nil || j.state != stateSent && j.state != stateRecalled && j.state != stateCanceled {
		return dst, 0, fmt.Errorf("%w: %v response for job %v, which has no request", errProtocol, a.Type, a.ID)
	}
	canceled, out := j.state == stateCanceled, OutcomeDropped
	if a.Type == ResponseSuccess && (canceled || j.stale) {
		out = OutcomeReturned
		r, _ := a.R.Restrict(a.R.Ranks()) // drops the key scheduling
		dst = append(dst, Send{Topic: TopicFree, Job: j.JobInfo, R: r})
	}
	switch {
	case a.Type == ResponseAnnotate && canceled:
		return dst, OutcomeDropped, nil
	case a.Type == ResponseAnnotate:
		return dst, OutcomeAnnotated, nil
	case canceled:
	case a.Type == ResponseCancel || j.stale:
		q.in[j.state].remove(j)
		q.enter(j)
		return q.update(dst), OutcomeRequeued, nil
	case a.Type == ResponseSuccess:
		out = OutcomeAllocated
	default:
		out = OutcomeDenied
	}
	q.drop(j)
	return q.update(dst), out, nil
}

// Hello handles the hello of a scheduler, which replaces the one before: it does what Lost does.
// [Announce] returns the response. The caller sends what jobs free from then on after Ready.
func (q *Queue) Hello(dst []jobid.ID) []jobid.ID {
	dst = q.Lost(dst)
	q.phase = PhaseGreeting
	return dst
}

// Ready handles the ready of a scheduler: the queue sends requests, of which at most m.Limit
// are outstanding. The caller sends the returned response first. It is an error if there was
// no Hello since the last Ready or Lost, and ErrMessage if the limit is out of range.
func (q *Queue) Ready(dst []Send, m Ready) ([]Send, ReadyResponse, error) {
	if err := m.check(); err != nil {
		return dst, ReadyResponse{}, messageError("ready request", err)
	}
	if q.phase != PhaseGreeting {
		return dst, ReadyResponse{}, fmt.Errorf("%w: ready without a hello, the scheduler is %v", errProtocol, q.Phase())
	}
	q.phase, q.limit = PhaseOnline, m.Limit
	a := ReadyResponse{Count: uint32(q.in[statePending].len())}
	return q.update(dst), a, nil
}

// Lost handles the loss of the scheduler: a disconnect, or a failure in place of a
// response. Jobs with a request wait again, canceled jobs are forgotten, and the queue sends
// nothing until Ready. Lost appends to dst the ids of the jobs that had a request, in queue
// order; their annotations are void. For k requests it takes k log n steps.
func (q *Queue) Lost(dst []jobid.ID) []jobid.ID {
	q.phase, q.limit = PhaseOffline, 0
	back := make([]*job, 0, q.in[stateSent].len()+q.in[stateRecalled].len())
	for _, s := range []state{stateSent, stateRecalled} {
		for j := range q.in[s].all() {
			back = append(back, j)
		}
		q.in[s].clear()
	}
	for j := range q.in[stateCanceled].all() {
		delete(q.jobs, j.ID)
	}
	q.in[stateCanceled].clear()
	slices.SortFunc(back, func(a, b *job) int { return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.ID, b.ID)) })
	for _, j := range back {
		q.enter(j)
		dst = append(dst, j.ID)
	}
	q.balance()
	return dst
}

// A state is what a job in a queue waits for.
type state uint8

const (
	statePending  state = iota + 1 // its turn to get a request
	stateBlocked                   // a priority above 0, and Start if it is stopped
	stateSent                      // the scheduler, which has its request
	stateRecalled                  // the response to a request that was taken back
	stateCanceled                  // as stateRecalled, but the job left the queue
	stateClaimed                   // pending, with a place among the requests: see requests.go
	states                         // the number of states, the invalid one included
)

// A Phase is the progress of the session with a scheduler. The zero Phase is invalid.
type Phase uint8

// The phases of a session.
const (
	PhaseOffline  Phase = iota + 1 // no scheduler is connected
	PhaseGreeting                  // a scheduler said hello
	PhaseOnline                    // a scheduler said hello and ready: it gets requests
)

// String returns the phase in lower case, or "Phase(200)" for an unknown one.
func (p Phase) String() string { return guard.Name("Phase", p, "offline", "greeting", "online") }

// Phase returns the phase of the session with the scheduler.
func (q *Queue) Phase() Phase { return max(q.phase, PhaseOffline) }

// Stats is the number of jobs in each State: Pending, Blocked, Sent, Recalled and Canceled.
type Stats struct {
	Pending, Blocked, Sent, Recalled, Canceled int
}

// Stats returns the number of jobs in each state, in constant time.
func (q *Queue) Stats() Stats {
	return Stats{
		Pending:  q.in[statePending].len() + q.in[stateClaimed].len(),
		Blocked:  q.in[stateBlocked].len(),
		Sent:     q.in[stateSent].len(),
		Recalled: q.in[stateRecalled].len(),
		Canceled: q.in[stateCanceled].len(),
	}
}

// All returns an iterator over the jobs, by id. Canceled jobs are left out.
func (q *Queue) All() iter.Seq[JobInfo] {
	return func(yield func(JobInfo) bool) {
		for _, id := range slices.Sorted(maps.Keys(q.jobs)) {
			if j := q.jobs[id]; j.state != stateCanceled && !yield(j.JobInfo) {
				return
			}
		}
	}
}
