package alloc

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset"
)

// What Config says where it says nothing.
const (
	DefaultMaxJobs  = 4 << 20
	DefaultMaxPairs = 1 << 20 // which fit in MaxBytes
)

// Config says how a queue works. In each field, 0 or less means the default.
type Config struct {
	MaxJobs  int // how many jobs it holds, with cancelled ones that are not answered
	MaxPairs int // how many jobs one Prioritize message names; for more there are several
}

// withDefaults returns c with what it does not say.
func (c Config) withDefaults() Config {
	if c.MaxJobs <= 0 {
		c.MaxJobs = DefaultMaxJobs
	}
	if c.MaxPairs <= 0 {
		c.MaxPairs = DefaultMaxPairs
	}
	return c
}

// A Queue is the manager's side of the protocol: the jobs that wait for
// resources, and which of them the scheduler was asked for. Operations return
// what is to be sent, in that order; the caller sends it. The zero Queue is
// empty, and as NewQueue makes it of a zero Config. A Queue must not be copied,
// and one goroutine at a time may use it.
//
// Every operation appends what is to be sent to the slice that it is given, and
// returns it; after an error it returns it as it was, and nothing has changed.
type Queue struct {
	_     noCopy
	cfg   Config
	jobs  map[jobid.ID]*job // all, cancelled ones too
	order list              // all but cancelled ones
	in    [states]list      // by state; those of claimed come before those of Pending
	phase Phase
	limit int    // of requests without an answer; 0: none
	marks uint64 // no mark of a job is greater
}

// noCopy makes go vet report copies of a type that has it as a field.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

// A job is one that the queue knows.
type job struct {
	Job
	state   State
	stopped bool
	mark    uint64
}

// held reports whether the job must not be asked for.
func (j *job) held() bool { return j.Priority == 0 || j.stopped }

// NewQueue returns an empty queue. No scheduler is there yet.
func NewQueue(c Config) *Queue { return &Queue{cfg: c} }

// A SendKind is what is to be sent.
type SendKind uint8

// What there is to send. The zero SendKind is none.
const (
	SendAlloc      SendKind = iota + 1 // a Request for Send.Job
	SendCancel                         // a Cancel of the request for Send.Job
	SendPrioritize                     // a Prioritize of Send.Jobs
	SendFree                           // a Free of Send.R, the final one of Send.Job
)

// String returns the topic, or "SendKind(200)" if there is none.
func (k SendKind) String() string {
	switch k {
	case SendAlloc:
		return TopicAlloc
	case SendCancel:
		return TopicCancel
	case SendPrioritize:
		return TopicPrioritize
	case SendFree:
		return TopicFree
	}
	return fmt.Sprintf("SendKind(%d)", uint8(k))
}

// A Send is one message to the scheduler.
type Send struct {
	Kind SendKind
	Job  Job        // zero for SendPrioritize
	Jobs []Priority // of SendPrioritize, the caller's to keep
	R    *rset.R    // of SendFree: the allocation that nobody wants any more
}

// AppendLine appends the message as a line; the jobspec matters to SendAlloc
// only. The errors are those of AppendMessage; the zero Send is an error.
func (s Send) AppendLine(dst []byte, jobspec []byte) ([]byte, error) {
	switch s.Kind {
	case SendAlloc:
		return AppendMessage(dst, TopicAlloc, Request{Job: s.Job, Jobspec: jobspec})
	case SendCancel:
		return AppendMessage(dst, TopicCancel, Cancel{ID: s.Job.ID})
	case SendPrioritize:
		return AppendMessage(dst, TopicPrioritize, Prioritize{Jobs: s.Jobs})
	case SendFree:
		return AppendMessage(dst, TopicFree, Free{ID: s.Job.ID, R: s.R, Final: true})
	}
	return dst, &MessageError{Message: "send", Key: "kind", Offset: -1, Err: errRange}
}

// get returns the job with an id, unless it is cancelled or not there.
func (q *Queue) get(id jobid.ID) (*job, error) {
	j := q.jobs[id]
	if j == nil || j.state == Canceled {
		return nil, &JobError{ID: id, Err: ErrUnknown}
	}
	return j, nil
}

// Add puts a job into the queue, to be asked for when its turn comes. The error
// is a *JobError, ErrExists, or ErrOutstanding if a job with this id was
// cancelled and its request is not answered yet; or a *LimitError if the queue
// is full.
func (q *Queue) Add(dst []Send, j Job) ([]Send, error) {
	if old := q.jobs[j.ID]; old != nil {
		err := ErrExists
		if old.state == Canceled {
			err = ErrOutstanding
		}
		return dst, &JobError{ID: j.ID, Err: err}
	}
	if n, most := len(q.jobs), q.cfg.withDefaults().MaxJobs; n >= most {
		return dst, &LimitError{What: "jobs", Got: n + 1, Limit: most}
	}
	if q.jobs == nil {
		q.jobs = make(map[jobid.ID]*job)
	}
	added := &job{Job: j}
	q.jobs[j.ID] = added
	q.order.insert(added)
	q.enter(added)
	return q.settle(dst), nil
}

// Cancel takes a job out of the queue at once, as after a fatal exception, and
// takes back its request. Of the answer that is still to come, nothing is heard
// any more but a SendFree of what the scheduler may have allocated meanwhile;
// until then its id can not be added again. It never touches a job that has its
// resources: that left the queue with the answer. The error is a *JobError,
// ErrUnknown.
func (q *Queue) Cancel(dst []Send, id jobid.ID) ([]Send, error) {
	j, err := q.get(id)
	if err != nil {
		return dst, err
	}
	switch j.state {
	case Sent:
		q.order.remove(j)
		q.move(j, Canceled)
		dst = append(dst, Send{Kind: SendCancel, Job: j.Job})
	case Recalled:
		q.order.remove(j)
		q.move(j, Canceled)
	default:
		q.drop(j)
	}
	return q.settle(dst), nil
}

// Prioritize gives jobs new priorities, many at once. Those that the scheduler
// was asked for and whose priority is another one are told to it in one message,
// or in as few as Config.MaxPairs allows, in the order given; those that get
// priority 0 are recalled instead, and so are those that have to make way for
// others. The error is a *JobError: ErrUnknown, or ErrExists if a job is named
// twice. It costs k log n for k jobs.
func (q *Queue) Prioritize(dst []Send, jobs []Priority) ([]Send, error) {
	q.marks += 2 // marks-1: named in this call; marks: and told to the scheduler
	for _, p := range jobs {
		j, err := q.get(p.ID)
		if err == nil && j.mark == q.marks-1 {
			err = &JobError{ID: p.ID, Err: ErrExists}
		}
		if err != nil {
			return dst, err
		}
		j.mark = q.marks - 1
	}
	told := 0
	for _, p := range jobs {
		j := q.jobs[p.ID]
		if j.Priority == p.Priority {
			continue
		}
		q.order.remove(j)
		q.in[j.state].remove(j)
		j.Priority = p.Priority
		q.order.insert(j)
		switch {
		case j.state == Recalled:
			q.in[Recalled].insert(j)
		case j.state != Sent:
			q.enter(j)
		case j.held():
			j.state = Recalled
			q.in[Recalled].insert(j)
			dst = append(dst, Send{Kind: SendCancel, Job: j.Job})
		default:
			q.in[Sent].insert(j)
			j.mark = q.marks
			told++
		}
	}
	dst = q.recall(dst)
	dst = q.tell(dst, jobs, told)
	return q.fill(dst), nil
}

// tell appends the messages about those jobs that Prioritize marked, at most
// told, and that are not recalled since.
func (q *Queue) tell(dst []Send, jobs []Priority, told int) []Send {
	if told == 0 {
		return dst
	}
	pairs := make([]Priority, 0, told)
	for _, p := range jobs {
		if j := q.jobs[p.ID]; j.mark == q.marks && j.state == Sent {
			pairs = append(pairs, p)
		}
	}
	for part := range slices.Chunk(pairs, q.cfg.withDefaults().MaxPairs) {
		dst = append(dst, Send{Kind: SendPrioritize, Jobs: part})
	}
	return dst
}

// Stop holds a job whatever its priority, as when its queue is stopped: it is
// not asked for, and if it was, the request is recalled. Stopping a job that is
// stopped changes nothing. Stop and Start together have a job asked for again,
// as when its jobspec has changed. The error is a *JobError, ErrUnknown.
func (q *Queue) Stop(dst []Send, id jobid.ID) ([]Send, error) {
	j, err := q.get(id)
	if err != nil {
		return dst, err
	}
	j.stopped = true
	switch j.state {
	case Sent:
		q.move(j, Recalled)
		dst = append(dst, Send{Kind: SendCancel, Job: j.Job})
	case Pending, claimed:
		q.move(j, Held)
	}
	return q.settle(dst), nil
}

// Start ends Stop. A job that was recalled is asked for again once the
// scheduler has answered. The error is a *JobError, ErrUnknown.
func (q *Queue) Start(dst []Send, id jobid.ID) ([]Send, error) {
	j, err := q.get(id)
	if err != nil {
		return dst, err
	}
	j.stopped = false
	if j.state == Held && !j.held() {
		q.move(j, Pending)
	}
	return q.settle(dst), nil
}

// An Outcome is what an answer of the scheduler means.
type Outcome uint8

// What an answer means. The zero Outcome comes with an error.
const (
	Allocated Outcome = iota + 1 // the job has its resources and left the queue
	Annotated                    // there is something to tell of the job; it stays
	Denied                       // the job can never run and left the queue
	Requeued                     // the request is taken back; the job waits again, and its annotations are void
	Returned                     // resources came for a cancelled job: a SendFree gives them back, the job never had them
	Dropped                      // about a cancelled job: nothing to do
)

// String returns the outcome in lower case, or "Outcome(200)" if there is none.
func (o Outcome) String() string {
	switch o {
	case Allocated:
		return "allocated"
	case Annotated:
		return "annotated"
	case Denied:
		return "denied"
	case Requeued:
		return "requeued"
	case Returned:
		return "returned"
	case Dropped:
		return "dropped"
	}
	return fmt.Sprintf("Outcome(%d)", uint8(o))
}

// Answer takes an answer of the scheduler to a request. A recalled job may
// still get its resources: then it has them, also if it is held. An AnswerCancel
// that nobody asked for puts the job back all the same, as flux-core does.
//
// The error is an *AnswerError if the scheduler has no request for the job, or a
// *MessageError if the answer lacks what its type has; whether the scheduler is
// to be trusted any longer is up to the caller.
func (q *Queue) Answer(dst []Send, a Answer) ([]Send, Outcome, error) {
	if err := a.check(); err != nil {
		return dst, 0, err
	}
	j := q.jobs[a.ID]
	if j == nil || j.state != Sent && j.state != Recalled && j.state != Canceled {
		return dst, 0, &AnswerError{ID: a.ID, Type: a.Type, Known: j != nil}
	}
	var out Outcome
	switch {
	case a.Type == AnswerAnnotate && j.state == Canceled:
		return dst, Dropped, nil
	case a.Type == AnswerAnnotate:
		return dst, Annotated, nil
	case j.state == Canceled && a.Type == AnswerSuccess:
		r, _ := a.R.Restrict(a.R.Ranks()) // without what the scheduler keeps with it
		dst = append(dst, Send{Kind: SendFree, Job: j.Job, R: r})
		q.drop(j)
		out = Returned
	case j.state == Canceled:
		q.drop(j)
		out = Dropped
	case a.Type == AnswerSuccess:
		q.drop(j)
		out = Allocated
	case a.Type == AnswerDeny:
		q.drop(j)
		out = Denied
	default:
		q.in[j.state].remove(j)
		q.enter(j)
		out = Requeued
	}
	return q.settle(dst), out, nil
}

// Hello takes the hello of a scheduler. It replaces the one before: all that
// Lost says. Nothing is sent until Ready. What to answer, Announce tells; what
// jobs give back after that and before Ready is the caller's to send then.
func (q *Queue) Hello(dst []jobid.ID) []jobid.ID {
	dst = q.Lost(dst)
	q.phase = Greeting
	return dst
}

// Ready lets requests be sent, at most m.Limit without an answer, and returns
// how many jobs wait to be asked for, which is the ReadyAnswer. It goes in
// front of what is to be sent. The error is a *PhaseError if there was no Hello
// since the last Ready or loss, or a *MessageError if the limit is negative or
// too large.
func (q *Queue) Ready(dst []Send, m Ready) ([]Send, ReadyAnswer, error) {
	if err := m.check(); err != nil {
		return dst, ReadyAnswer{}, err
	}
	if q.phase != Greeting {
		return dst, ReadyAnswer{}, &PhaseError{Phase: q.Phase()}
	}
	q.phase, q.limit = Online, m.Limit
	a := ReadyAnswer{Count: uint32(q.in[Pending].len())}
	return q.settle(dst), a, nil
}

// Lost takes the loss of the scheduler: a disconnect, or a failure instead of
// an answer. All jobs that it was asked for wait again, cancelled ones are
// forgotten, and nothing is sent until another scheduler says hello and ready.
// It appends the ids of the jobs that were asked for, in queue order, whose
// annotations are void. It costs k log n for k requests without an answer.
func (q *Queue) Lost(dst []jobid.ID) []jobid.ID {
	q.phase, q.limit = Offline, 0
	back := make([]*job, 0, q.in[Sent].len()+q.in[Recalled].len())
	for _, s := range []State{Sent, Recalled} {
		for j := range q.in[s].all() {
			back = append(back, j)
		}
		q.in[s] = list{}
	}
	for j := range q.in[Canceled].all() {
		delete(q.jobs, j.ID)
	}
	q.in[Canceled] = list{}
	slices.SortFunc(back, func(a, b *job) int { return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.ID, b.ID)) })
	for _, j := range back {
		q.enter(j)
		dst = append(dst, j.ID)
	}
	q.balance()
	return dst
}
