package joblife

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/guard"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/purge"
	"github.com/joblife/joblife/rset/alloc"
)

// A machine decides what follows from an input. Files below it have its parts, each with a
// state of its own; those above it dispatch inputs. Only hooks go both ways: what happens is
// passed to them, and what they say is an input.
type machine struct {
	core

	cfg      Config
	actions  *perilog.Config // of the jobs that are submitted now
	offline  *idset.Set
	shutdown shutdown

	inbox  inbox
	timers timers
	waits  waits
	queues queues
	absent map[string]QueueStatus // the records of queues that the configuration lacks
	keys   keys
	sched  scheduler
	exec   executor
	purger purger
	acting int // how many jobs are acting

	allocations allocations
	outside     map[jobid.ID]*job // jobs whose nodes are perhaps not among those
	leaders     idset.Set         // ranks that run commands for jobs that need not hold them
	quarantine  quarantine

	scratch *perilog.Scratch
	text    []byte         // scratch of entry
	decoded jobstate.Event // scratch of applyEntry
}

// begin makes a machine of the zero one. Its parts refer to it, so it must not be copied.
func (m *machine) begin(cfg Config) (err error) {
	m.core = core{
		outbox:   outbox{volatile: cfg.Volatile, out: new(batch), sent: new(batch)},
		jobTable: jobTable{jobs: make(map[jobid.ID]*job), invalid: make(map[jobid.ID]*job)},
	}
	m.cfg, m.offline = cfg, cfg.Offline
	m.timers, m.waits, m.allocations, m.scratch = newTimers(), newWaits(), newAllocations(), new(perilog.Scratch)
	m.sched.core, m.exec.core, m.purger.core = &m.core, &m.core, &m.core
	m.sched.queue = alloc.NewQueue(alloc.Config{MaxJobs: math.MaxInt}) // Submit limits them
	if err := m.configure(cfg); err != nil {
		return err
	}
	if m.index, err = purge.New(m.purger.config(&cfg)); err != nil {
		return fmt.Errorf("joblife: %w", err)
	}
	if !cfg.Epoch.IsZero() {
		if _, err := jobid.NewGenerator(cfg.Generator, cfg.Epoch); err != nil {
			return fmt.Errorf("joblife: %w", err)
		}
	}
	return nil
}

// configure sets what a Reload may change.
func (m *machine) configure(cfg Config) error {
	if err := cfg.check(); err != nil {
		return err
	}
	list, added := m.queues.named(cfg.Queues, m.queues == nil && !cfg.QueuesStopped)
	if m.queues != nil { // earlier ones of these names may be in the records
		for _, name := range added {
			m.record(list.record(name))
		}
		for name := range m.queues {
			if list[name] == nil {
				m.absent = put(m.absent, name, m.queues[name].kept)
			}
		}
	}
	m.queues = list
	actions := cfg.Actions
	m.actions = &actions
	for _, a := range slices.Concat(actions.Prologs, actions.Epilogs) {
		if !a.PerRank {
			m.leaders.Insert(a.Leader) // and those before, which actions that have begun keep
		}
	}
	m.purger.limits, m.cfg.Private = cfg.Limits, cfg.Private
	return nil
}

// A shutdown has begun or not, and ends at a time; 0: at none.
type shutdown struct {
	begun bool
	at    eventlog.Timestamp
}

func (s shutdown) over(now eventlog.Timestamp) bool { return s.begun && s.at != 0 && now >= s.at }

func (m *machine) dispatch(in Input) error {
	// A pointer to an input, or a type that embeds one, is an Input too, and may be nil.
	if t := reflect.TypeOf(in); t == nil || t.Kind() != reflect.Struct || t.PkgPath() != inputPath {
		return fmt.Errorf("%w: input %T", ErrInvalid, in)
	}
	return in.dispatch(m)
}

var inputPath = reflect.TypeFor[Tick]().PkgPath()

// run decides until nothing follows. No post of a hook waits when it decides.
func (m *machine) run() {
	limit := maxPosts + m.posts.len() + maxPostsPerJob*len(m.jobs)
	for done := 0; ; {
		for _, t := range m.inbox.staged { // timers that hooks asked for, once the input is accepted (I6)
			if j := m.jobs[t.post.job]; j != nil && !j.job().Closed() {
				m.timers.add(j, t)
			}
		}
		m.inbox.staged = m.inbox.staged[:0]
		switch {
		case m.posts.len() > 0:
			p := m.posts.pop()
			err := fmt.Errorf("%w: hooks asked for more than %d inputs in one Step", ErrLimit, limit)
			if _, ends := p.in.(DependencyRemove); !ends { // each ends something, so there is no loop of them
				done++
			}
			if done <= limit {
				err = m.dispatchPost(p.in)
			}
			if err != nil {
				m.fault(p.hook, p.job, err)
			}
		case m.dirty.len() > 0:
			if j := m.dirty.first(); !m.log(j) && !m.decide(j) {
				m.emit(j)
				m.dirty.pop()
				j.dirty = false
			}
		default:
			m.waits.answer(&m.outbox, m.count)
			return
		}
	}
}

func (m *machine) dispatchPost(in Input) error {
	m.inbox.posting = true
	defer func() { m.inbox.posting = false }()
	return m.dispatch(in)
}

// signaled lets kill timeouts count from when the signals are handed out.
func (m *machine) signaled() {
	for _, s := range m.out.Signal {
		if j := m.jobs[s.Job]; j != nil {
			j.life.Signaled(m.now, s.Signal)
			m.timers.schedule(j)
		}
	}
}

// visible returns a job that by may know of.
func (m *machine) visible(by Cred, id jobid.ID) (View, bool) {
	v, ok := m.view(id)
	if !ok || !m.isPublic(id) || !m.cfg.sees(by, v.UserID()) {
		return View{}, false
	}
	return v, true
}

// active returns a job that by may change: a durable one (EL-6), unless a hook asks.
func (m *machine) active(by Cred, id jobid.ID) (*job, error) {
	if !m.inbox.posting && !m.isPublic(id) {
		return nil, fmt.Errorf("%w: %v", ErrUnknown, id)
	}
	return m.live(by, id)
}

// activeOf is active for what only the instance's owner may do.
func (m *machine) activeOf(by Cred, id jobid.ID) (*job, error) {
	if err := owner(by); err != nil {
		return nil, err
	}
	return m.active(by, id)
}

// live is active for what hooks bring about: they know of jobs that are not durable.
func (m *machine) live(by Cred, id jobid.ID) (*job, error) {
	j := m.jobs[id]
	switch {
	case j == nil || j.job().Closed():
		if rec, ok := m.index.Ended(id); ok && m.cfg.sees(by, rec.UserID) {
			return nil, fmt.Errorf("%w: %v", ErrInactive, id)
		}
		return nil, fmt.Errorf("%w: %v", ErrUnknown, id)
	case !m.cfg.sees(by, j.job().UserID()):
		return nil, fmt.Errorf("%w: %v", ErrUnknown, id)
	case by.Guest && by.UserID != j.job().UserID():
		return nil, fmt.Errorf("%w: %v is a job of another user", ErrDenied, id)
	}
	return j, nil
}

// change logs an event that somebody asked for with a tag.
func (m *machine) change(by Cred, id jobid.ID, tag uint64, c jobstate.Context) error {
	j, err := m.active(by, id)
	if err == nil {
		err = m.request(by, j, c)
	}
	if err != nil {
		return err
	}
	m.answer(Answer{Tag: tag, Job: id})
	return nil
}

func (m *machine) apply(j *job, c jobstate.Context) error { return m.applyUpTo(math.MaxInt, j, c) }

// applyUpTo is apply if the log of the job does not get longer than limit.
func (m *machine) applyUpTo(limit int, j *job, c jobstate.Context) error {
	e, err := m.entry(m.now, c)
	if err == nil {
		err = fitsLog(limit, j.id, int(j.size), e)
	}
	if err != nil {
		return err
	}
	return m.applyEntry(j, e)
}

// entry returns an event that can be stored. It is valid until the next call.
func (m *machine) entry(at eventlog.Timestamp, c jobstate.Context) (e eventlog.Entry, err error) {
	if e, m.text, err = jobstate.EncodeEntry(m.text[:0], at, c); err != nil {
		return e, err
	}
	return e, fitsEntry(e)
}

func (m *machine) request(by Cred, j *job, c jobstate.Context) error {
	limit := m.cfg.maxLog(by)
	switch x := c.(type) {
	case *jobstate.ExceptionContext:
		if _, over := j.job().Cause(); !over && x.Severity == 0 {
			limit = math.MaxInt // a job can always be ended, if only once
		}
	case *jobstate.JobspecUpdateContext:
		limit -= besideUpdate
	}
	return m.applyUpTo(limit, j, c)
}

// fitsLog keeps users from making a log so long that the store fails.
func fitsLog(limit int, id jobid.ID, size int, e eventlog.Entry) error {
	if n := size + lineSize(e); n > limit {
		return fmt.Errorf("%w: the log of %v has no room for the event %s: %d bytes, at most %d by MaxLog", ErrLimit, id, guard.Quote(e.Name), n, limit)
	}
	return nil
}

// lineSize is how long the line of an event may be.
func lineSize(e eventlog.Entry) int { return len(e.Name) + len(e.Context) + lineFrame }

func (m *machine) applyEntry(j *job, e eventlog.Entry) error {
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
	case *jobstate.MemoContext:
		err = j.fitMemo(e.Context)
	case *jobstate.SetFlagsContext:
		// The scheduler that gave the resources would not get them back.
		if j.r != nil && !j.job().HasFlag(flagBypass) && slices.Contains(c.Flags, flagBypass) {
			err = fmt.Errorf("%w: %v has the scheduler's resources", ErrInvalid, j.id)
		}
	}
	if err != nil {
		return err
	}
	outcome, err := j.life.ApplyEvent(m.now, &m.decoded)
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

// starts reports whether the jobs of a queue go to the scheduler.
func (m *machine) starts(name string) bool {
	q := m.queues[name]
	return q != nil && q.now.Started && !m.shutdown.begun
}

// updated returns the jobspec with more updates, within MaxJobspec, which limits their time too.
func (m *machine) updated(j *job, c *jobstate.JobspecUpdateContext) (*jobspec.Spec, error) {
	for _, u := range c.Updates {
		if err := fitsIn(m.cfg.maxJobspec(), maxDepth, "jobspec", u.Value, 0); err != nil {
			return nil, err
		}
	}
	spec, err := m.spec(j).UpdateAll(func(yield func(string, json.RawMessage) bool) {
		for _, u := range c.Updates {
			if !yield(u.Path, u.Value) {
				return
			}
		}
	})
	if err == nil {
		err = fitsIn(m.cfg.maxJobspec(), maxDepth, "jobspec", spec.Text(), 0)
	}
	if err == nil && spec.Queue() != j.queue {
		err = m.queues.admits(spec.Queue())
	}
	same := func(a, b jobspec.Dependency) bool { return bytes.Equal(a.JSON, b.JSON) }
	if err == nil && !slices.EqualFunc(slices.Collect(m.spec(j).Dependencies()), slices.Collect(spec.Dependencies()), same) {
		err = fmt.Errorf("%w: the dependencies of %v are those of its submission, of which each can be removed", ErrInvalid, j.id) // a restart asks for them again
	}
	return spec, err
}

// log stores what a job has posted, and reports whether there was anything.
func (m *machine) log(j *job) bool {
	records := j.life.Decide(m.now)
	for i := range records {
		m.logged(j, &records[i])
	}
	return len(records) > 0
}

// decided applies an event without a context, which the state of the job allows.
func (m *machine) decided(j *job, name string) {
	must(notLegal, m.applyEntry(j, eventlog.Entry{Timestamp: m.now, Name: name}))
}

const notLegal = "a decision that is not legal"

// must panics for an error that only a bug in this package brings.
func must(bug string, err error) {
	if err != nil {
		panic("joblife: " + bug + ": " + err.Error())
	}
}

// decide posts the event that takes a job to its next state, if it is due.
func (m *machine) decide(j *job) bool {
	s := j.job()
	switch s.State() {
	case jobstate.StateNew:
		if j.later || s.Closed() {
			return false
		}
		m.decided(j, jobstate.EventValidate)
		return true
	case jobstate.StateDepend:
		if in := j.rareCopy().doomed; in != nil {
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
		must(notLegal, m.apply(j, &jobstate.PriorityContext{Priority: p}))
		return true
	case jobstate.StateSched:
		return j.reranks && m.rerank(j)
	}
	return false
}

// rerank computes the priority of a job that a restart found in SCHED, and has it wait for
// resources. It reports whether that took an event.
func (m *machine) rerank(j *job) bool {
	j.reranks = false
	last, _ := j.job().Priority()
	p, ok := m.priority(j)
	switch {
	case !ok:
		m.decided(j, jobstate.EventFluxRestart)
	case p != last:
		must(notLegal, m.apply(j, &jobstate.PriorityContext{Priority: p}))
	default:
		m.sched.enqueue(j, !m.starts(j.queue))
		return false
	}
	return true
}

// doom raises a fatal exception for a hook, as soon as RFC 21 allows it: not in NEW.
func (m *machine) doom(j *job, in Raise) {
	if j.state == jobstate.StateNew {
		if more := j.ensureRare(); more.doomed == nil {
			more.doomed = &in
		}
		return
	}
	if err := m.dispatchPost(in); err != nil {
		m.fault("", j.id, err)
	}
}

// logged stores an event, and does what follows from it at once.
func (m *machine) logged(j *job, r *perilog.LogEntry) {
	n, context := m.line(j.id, r)
	if r.Log == perilog.LogHousekeeping {
		j.housekept = true
		return
	}
	j.size += uint32(n)
	prev := j.state
	if r.State != prev {
		m.move(j, r.State)
	}
	m.journal(j, r.Entry.Timestamp, r.Entry.Name, context, false)
	m.follow(j, r, prev)
	m.waits.event(&m.outbox, j.id, r.Entry.Name, j.state)
	m.event(j, r.Entry, prev)
	if r.State == jobstate.StateInactive && prev != r.State {
		m.ended(j)
	}
}

// follow does what an event means for the queue and the executor.
func (m *machine) follow(j *job, r *perilog.LogEntry, prev jobstate.State) {
	switch r.Entry.Name {
	case jobstate.EventPriority:
		m.sched.enqueue(j, !m.starts(j.queue))
	case jobstate.EventJobspecUpdate:
		m.sched.renew(j, !m.starts(j.queue))
	case jobstate.EventSetFlags:
		if j.job().HasFlag(flagBypass) {
			m.sched.dequeue(j)
		}
	case jobstate.EventException:
		m.out.Raised = append(m.out.Raised, Raised{j.id, *r.Exception})
		if j.r != nil && j.life.Freed().Len() == j.r.Len() { // it was revoked
			m.allocations.remove(j.id, j.r) // now, since a hook may give it to another job
			m.outside = put(m.outside, j.id, j)
		}
	case jobstate.EventStart:
		j.start = startSent // perhaps posted by an operator
	case jobstate.EventMemo:
		j.memoed(r.Entry.Context)
	case jobstate.EventInvalidate:
		m.keys.drop(j.id)
		m.move(j, 0)
		m.timers.silence(j)
		delete(m.jobs, j.id)
		m.purger.unlinkInvalid(j)
		return
	}
	if j.state == jobstate.StateCleanup && prev != j.state {
		m.sched.dequeue(j)
		m.exec.unwanted(j)
	}
}

func (m *machine) ended(j *job) {
	rec, ok := j.job().Summary()
	if err := m.index.Add(rec); !ok || err != nil {
		panic("joblife: an inactive job that cannot be kept: " + fmt.Sprint(rec, err))
	}
	if j.housekept {
		_, _ = m.index.Pin(j.id, purge.Pin{Kind: purge.PinHousekeeping}) // it was just added
	}
	m.timers.silence(j)
	m.leave(j)
}

// emit hands out what a job wants done.
func (m *machine) emit(j *job) {
	todo := j.life.Take(m.now)
	for i := range todo.Post { // of housekeeping alone: Decide has returned the others
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
	}
	for _, o := range todo.Results {
		m.out.Results = append(m.out.Results, ActionResult{j.id, o})
	}
	if todo.Start {
		m.exec.start(j)
	}
	if f := todo.Free; !f.IsEmpty() {
		m.allocations.remove(j.id, f.R)
		if !j.hidden {
			m.sched.inform(alloc.Free{ID: j.id, R: f.R, Final: f.Final})
		}
	}
	m.timers.schedule(j)
	gone := j.state == 0 // it was invalidated
	over := gone || j.life.Done()
	if acts := !over && j.life.Running(); acts != j.acting {
		j.acting = acts
		if acts {
			m.acting++
		} else {
			m.acting--
		}
	}
	if gone || !over {
		return
	}
	m.move(j, 0)
	delete(m.jobs, j.id)
	delete(m.outside, j.id)
	m.out.Over = append(m.out.Over, j.id)
	if j.housekept {
		_, _ = m.index.Unpin(j.id, purge.Pin{Kind: purge.PinHousekeeping})
	}
}

// end ends a job with a fatal exception that the Manager raises.
func (m *machine) end(j *job, kind, note string) {
	must(notLegal, m.apply(j, &jobstate.ExceptionContext{Type: kind, Note: sanitizeNote(note), UserID: jobstate.Some(m.cfg.Owner)}))
}
