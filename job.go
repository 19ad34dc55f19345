package joblife

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/internal/guard"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/purge"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
)

// job is one job that is not over, or whose housekeeping is not. There may be millions that
// wait, so that what few of them have is in rare.
type job struct {
	id    jobid.ID
	nodes *perilog.Job
	text  []byte        // the jobspec as it was submitted
	spec  *jobspec.Spec // with its updates; nil while nobody asks for it and there are none
	queue string        // that it names
	r     *rset.R       // the allocation
	log   []byte        // its eventlog, as far as it is durable
	rare  *rare         // nil: it has nothing of that

	pos        int32          // in the list of m.lists
	size       uint32         // bytes of its log, durable or not
	computed   uint32         // the priority that a hook gave
	state      jobstate.State // as m.lists has it
	start      start
	ranked     bool // there is a computed priority
	dirty      bool
	drains     bool // m.drains has it
	housekept  bool // it has housekeeping
	public     bool // its submit was handed out and done, or comes from a restart
	later      bool // a hook validates it later
	queued     bool // m.queue has it
	hidden     bool // the scheduler does not know of it: it held nothing at hello
	unreturned bool // its resources do not go back to the scheduler: they did not come from it, or were revoked
}

// rare is what few jobs have.
type rare struct {
	keep   []byte  // the log of its housekeeping, as far as it is durable
	notes  []byte  // all annotations, if the log does not tell; nil: it does
	alarms []timer // what hooks asked for a later time
	doomed *Raise  // what a hook raised while the job was in NEW
	timer  due
}

// more returns the rare of a job, to change it.
func (j *job) more() *rare {
	if j.rare == nil {
		j.rare = new(rare)
	}
	return j.rare
}

// has returns the rare of a job, to read it.
func (j *job) has() rare {
	if j.rare == nil {
		return rare{}
	}
	return *j.rare
}

// start is how far the request to start a job is.
type start uint8

const (
	startNone   start = iota
	startWanted       // to be sent when the executor says hello
	startSent         // sent, perhaps in an earlier life
	startAsk          // perhaps sent in an earlier life: the executor has to say, and must not start it now
)

// job returns the job as its log tells.
func (j *job) job() *jobstate.Job { return j.nodes.State() }

// current returns what the job has now: the allocation without the ranks that it
// dropped, with the expiration of the latest update. Nil: it was allocated nothing.
func (j *job) current() *rset.R { return j.expiring(j.nodes.R()) }

// expiring returns r with the expiration of the latest update, unless that is before r's
// start, as in a log that somebody else wrote.
func (j *job) expiring(r *rset.R) *rset.R {
	at, ok := j.job().Expiration()
	if !ok || r == nil || r.Expiration() == at {
		return r
	}
	if updated, err := r.WithTimes(r.Start(), at); err == nil {
		return updated
	}
	return r
}

// touch has a job settled before the Step ends.
func (m *Manager) touch(j *job) {
	if !j.dirty {
		j.dirty = true
		m.dirty.push(j)
	}
}

// list is the index of a state in m.lists.
func list(s jobstate.State) int { return bits.TrailingZeros8(uint8(s)) }

// move puts a job in the list of a state; 0 is none.
func (m *Manager) move(j *job, to jobstate.State) {
	if j.state != 0 {
		from := &m.lists[list(j.state)]
		last := len(*from) - 1
		(*from)[j.pos] = (*from)[last]
		(*from)[j.pos].pos = j.pos
		(*from)[last] = nil
		*from = (*from)[:last]
	}
	if j.state = to; to != 0 {
		l := &m.lists[list(to)]
		j.pos = int32(len(*l))
		*l = append(*l, j)
	}
}

func (m *Manager) apply(j *job, c jobstate.Context) error { return m.applyUpTo(math.MaxInt, j, c) }

// applyUpTo is apply if the log of the job does not get longer than limit.
func (m *Manager) applyUpTo(limit int, j *job, c jobstate.Context) error {
	e, text, err := jobstate.EncodeEntry(m.text[:0], m.now, c)
	if err != nil {
		return err
	}
	m.text = text
	if err := fitsLog(limit, j, e); err != nil {
		return err
	}
	return m.applyEntry(j, e)
}

// request is applyUpTo for what somebody asks for.
func (m *Manager) request(by Cred, j *job, c jobstate.Context) error {
	limit := m.cfg.maxLog(by)
	if x, ok := c.(*jobstate.ExceptionContext); ok && x.Severity == 0 {
		if _, over := j.job().Cause(); !over {
			limit = math.MaxInt // a job can always be ended, once
		}
	}
	return m.applyUpTo(limit, j, c)
}

// fitsLog returns why the log of a job has no room for an event. To a store a log beyond its
// own limit is a failure, which no user may bring about.
func fitsLog(limit int, j *job, e eventlog.Entry) error {
	if n := int(j.size) + len(e.Name) + len(e.Context) + lineFrame; n > limit {
		return fmt.Errorf("%w: the log of %v has no room for the event %s: %d bytes, at most %d", ErrLimit, j.id, guard.Quote(e.Name), n, limit)
	}
	return nil
}

func (m *Manager) applyEntry(j *job, e eventlog.Entry) error {
	if err := fitsEntry(e); err != nil {
		return err
	}
	err := m.decoded.Decode(e)
	if err != nil {
		return err
	}
	var spec *jobspec.Spec
	switch c := m.decoded.Context().(type) {
	case *jobstate.JobspecUpdateContext:
		spec, err = m.updated(j, c)
	case *jobstate.SetFlagsContext:
		err = m.flagged(j, c)
	}
	if err != nil {
		return err
	}
	outcome, err := j.nodes.ApplyEvent(m.now, &m.decoded)
	if err != nil {
		return err
	}
	if spec != nil && !outcome.Ignored() {
		j.spec, j.queue = spec, spec.Queue()
	}
	m.touch(j)
	if outcome != jobstate.IgnoredDuplicate {
		m.log(j)
	}
	return nil
}

// jobspec returns the jobspec of a job with its updates. It is kept until the
// next Ready is done, so that a job that waits is small.
func (m *Manager) jobspec(j *job) *jobspec.Spec {
	if j.spec == nil {
		spec, err := jobspec.Parse(j.text)
		if err != nil {
			panic("joblife: a jobspec that was checked: " + err.Error())
		}
		j.spec = spec
		m.out.parsed = append(m.out.parsed, j)
	}
	return j.spec
}

// forgetSpecs drops jobspecs that the text of the job tells.
func forgetSpecs(list []*job) {
	for _, j := range list {
		if j.spec != nil && j.spec.Original() == j.spec {
			j.spec = nil
		}
	}
}

// updated returns the jobspec of a job after an update.
func (m *Manager) updated(j *job, c *jobstate.JobspecUpdateContext) (spec *jobspec.Spec, err error) {
	spec = m.jobspec(j)
	for _, u := range c.Updates {
		if spec, err = spec.Update(u.Path, u.Value); err != nil {
			return nil, err
		}
	}
	if spec.Queue() != j.queue {
		err = m.queues.admits(spec.Queue())
	}
	return spec, err
}

// log takes note of what a job has posted.
func (m *Manager) log(j *job) bool {
	records := j.nodes.Settle(m.now)
	for i := range records {
		m.logged(j, &records[i])
	}
	return len(records) > 0
}

// decided takes in an event without a context, which the state of the job allows.
func (m *Manager) decided(j *job, name string) {
	must(m.applyEntry(j, eventlog.Entry{Timestamp: m.now, Name: name}))
}

// must panics for a decision that the state of the job does not allow.
func must(err error) {
	if err != nil {
		panic("joblife: a decision that is not legal: " + err.Error())
	}
}

// settle takes the next decisions for a job, and reports whether there may be more.
func (m *Manager) settle(j *job) bool {
	if m.log(j) || m.decide(j) {
		return true
	}
	m.carry(j)
	return false
}

// decide posts the event that takes a job to its next state, if it is due.
func (m *Manager) decide(j *job) bool {
	s := j.job()
	switch s.State() {
	case jobstate.StateNew:
		if j.later || s.Closed() {
			return false
		}
		m.decided(j, jobstate.EventValidate)
		return true
	case jobstate.StateDepend:
		if in := j.has().doomed; in != nil {
			j.rare.doomed = nil
			m.doom(j, *in)
			return true
		}
		if !s.MayDepend() {
			return false
		}
		m.decided(j, jobstate.EventDepend)
		return true
	case jobstate.StatePriority:
		p, ok := m.priority(j)
		if !ok {
			return false
		}
		must(m.apply(j, &jobstate.PriorityContext{Priority: p}))
		return true
	}
	return false
}

// doom raises a fatal exception for a hook, as soon as RFC 21 allows it: not in NEW.
func (m *Manager) doom(j *job, in Raise) {
	if j.state == jobstate.StateNew {
		if more := j.more(); more.doomed == nil {
			more.doomed = &in
		}
		return
	}
	if err := m.dispatchPost(in); err != nil {
		m.fault("", j.id, err)
	}
}

// priority returns the priority of a job by RFC 30.
func (m *Manager) priority(j *job) (uint32, bool) {
	urgency := j.job().Urgency()
	if urgency == jobstate.UrgencyHold || urgency == jobstate.UrgencyExpedite {
		return jobstate.PriorityOf(urgency, 0), true
	}
	for i := range m.cfg.Hooks {
		h := &m.cfg.Hooks[i]
		if h.Priority == nil {
			continue
		}
		var computed uint32
		later := true
		m.call(h, j, func(e *Event) { computed, later = h.Priority(e) })
		if !later {
			j.computed, j.ranked = computed, true
		}
		return jobstate.PriorityOf(urgency, j.computed), j.ranked
	}
	if j.ranked {
		return jobstate.PriorityOf(urgency, j.computed), true
	}
	return jobstate.PriorityOf(urgency, uint32(urgency)), true
}

// logged takes note of an event that a job has taken in.
func (m *Manager) logged(j *job, r *perilog.Record) {
	context := r.Entry.Context
	same := false
	if !m.volatile {
		n := len(m.out.text)
		text, ok, err := m.frame.line(m.out.text, &r.Entry)
		if err != nil {
			panic("joblife: an event that cannot be written: " + err.Error())
		}
		kind := RecordEvent
		if r.Log == perilog.LogHousekeeping {
			kind = RecordHousekeeping
		}
		m.out.text, same = text, ok
		m.record(Record{Job: j.id, Kind: kind, Data: text[n:len(text):len(text)]})
		if kind == RecordEvent {
			j.size += uint32(len(text) - n)
		}
		if end := len(text) - len("}\n"); ok {
			context = text[end-len(context) : end : end]
		}
	}
	if !same {
		context = m.out.keep(context)
	}
	if r.Log == perilog.LogHousekeeping {
		j.housekept = true
		return
	}
	prev := j.state
	if r.State != prev {
		m.move(j, r.State)
	}
	m.journal(j.id, &r.Entry, context)
	m.follow(j, r, prev)
	m.waits.event(&m.outbox, j.id, r.Entry.Name, j.state, j.job().Closed())
	m.event(j, r.Entry, prev)
	if r.State == jobstate.StateInactive && prev != r.State {
		m.ended(j)
	}
}

// follow does what an event means for the queue and the executor.
func (m *Manager) follow(j *job, r *perilog.Record, prev jobstate.State) {
	switch r.Entry.Name {
	case jobstate.EventPriority:
		m.enqueue(j)
	case jobstate.EventJobspecUpdate:
		m.renew(j)
	case jobstate.EventSetFlags:
		if j.job().HasFlag(flagBypass) {
			m.dequeue(j)
		}
	case jobstate.EventException:
		m.out.Raised = append(m.out.Raised, Raised{j.id, *r.Exception})
		if j.r != nil && j.nodes.Freed().Len() == j.r.Len() { // it was revoked
			j.unreturned = true
		}
	case jobstate.EventStart:
		j.start = startSent // an operator may have said so
	case jobstate.EventMemo:
		j.memoed(r.Entry.Context)
	case jobstate.EventInvalidate:
		m.move(j, 0)
		m.timers.silence(j)
		delete(m.jobs, j.id)
		m.unlinkInvalid(j)
		return
	}
	if j.state == jobstate.StateCleanup && prev != j.state {
		m.dequeue(j)
		if j.start == startWanted {
			j.start = startNone
			j.nodes.NotStarted(m.now)
		}
	}
}

// unlinkInvalid has the store remove a job that was invalidated.
func (m *Manager) unlinkInvalid(j *job) {
	m.invalid[j.id] = j
	m.leave(j)
	m.raiseFloor(j.id)
	m.out.Unlink = append(m.out.Unlink, j.id)
}

func (m *Manager) ended(j *job) {
	rec, err := purge.RecordOf(j.job())
	if err == nil {
		err = m.index.Add(rec)
	}
	if err != nil {
		panic("joblife: an inactive job that cannot be kept: " + err.Error())
	}
	if j.housekept {
		_, _ = m.index.Pin(j.id, purge.Pin{Kind: purge.PinHousekeeping}) // it was just added
	}
	m.timers.silence(j)
	m.leave(j)
}

// retire forgets a job of which nothing is left to do.
func (m *Manager) retire(j *job) {
	if m.jobs[j.id] != j || !j.nodes.Done() {
		return
	}
	m.move(j, 0)
	delete(m.jobs, j.id)
	if j.housekept {
		_, _ = m.index.Unpin(j.id, purge.Pin{Kind: purge.PinHousekeeping})
	}
}

// carry hands out what a job wants done.
func (m *Manager) carry(j *job) {
	todo := j.nodes.Take(m.now)
	for i := range todo.Post { // of housekeeping alone: Settle has returned the others
		m.logged(j, &todo.Post[i])
	}
	for _, l := range todo.Launch {
		m.out.Launch = append(m.out.Launch, Launch{j.id, l})
	}
	for _, s := range todo.Signal {
		m.out.Signal = append(m.out.Signal, Signal{j.id, s})
	}
	for _, d := range todo.Drain {
		m.out.Drain = append(m.out.Drain, Drain{j.id, d})
		if !j.drains {
			j.drains, m.drains = true, append(m.drains, j)
		}
	}
	for _, o := range todo.Outcomes {
		m.out.Outcomes = append(m.out.Outcomes, Outcome{j.id, o})
	}
	if todo.Start {
		m.startJob(j)
	}
	m.unbook(j, todo.Free)
	if !todo.Free.IsEmpty() && !j.hidden {
		m.free(alloc.Free{ID: j.id, R: todo.Free.R, Final: todo.Free.Final})
	}
	m.timers.schedule(j)
	m.retire(j)
}

// unbook lets other jobs have what a job has freed: the fragment that goes back to the
// scheduler, or all ranks that were freed if nothing goes back.
func (m *Manager) unbook(j *job, f rset.Fragment) {
	if !f.IsEmpty() {
		m.bookings.removeR(j.id, f.R)
	}
	if j.unreturned {
		for first, last := range j.nodes.Freed().Ranges() {
			m.bookings.remove(j.id, first, last)
		}
	}
}
