package sched

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"strings"
	"time"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/guard"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
	"github.com/joblife/joblife/rset/pool"
)

// Config configures a [Scheduler].
type Config struct {
	Policy  Policy   // nil means FIFO
	Fit     pool.Fit // the order in which nodes are taken; 0 means pool.FitBest
	MaxJobs int      // the number of jobs that wait or have resources; 0 or less means 2^20
	Limit   int      // the number of requests that may be outstanding, for Ready; 0 or less means any number

	// Annotate adds annotations to responses, as flux-core has them: sched.t_estimate and
	// sched.reason_pending for a job that has a reservation, at most 8 at a time;
	// sched.resource_summary for an allocation; and sched.backfill, the job with the
	// reservation before which it started.
	Annotate bool
	// Forecast is the least time between two forecasts of FIFO, which tell the first 8 jobs
	// when they are to start, with Annotate. 0 or less means that there are none: a forecast
	// costs more than most decisions.
	Forecast time.Duration

	// Logf is told in words what the responses do not say: what a job wants, holds and gives
	// back, why it has to wait without an estimate, and what changes in the inventory. It must
	// not call the Scheduler. Nil means that nobody is told.
	Logf func(format string, args ...any)
}

const defaultMaxJobs = 1 << 20

// A Scheduler decides which job gets which resources, and when. [New] makes one; the zero
// Scheduler is invalid. Do not copy a Scheduler.
type Scheduler struct {
	_   guard.NoCopy
	cfg Config

	now        eventlog.Timestamp // of the last Decide; it never goes back
	pool       *pool.Pool         // nil before the first Acquire
	scheduling json.RawMessage    // the key of the inventory, nil if it has none
	ready      bool               // all that is held is known
	unknown    int                // jobs of this hello whose resources are not known
	jobs       map[jobid.ID]*job  // that wait or have resources
	queue      queue              // of those that wait
	wants      wants
	out        []alloc.Response

	view    Pass
	passing bool   // the policy is at work
	full    bool   // something has changed that is not a new job
	fresh   []*job // new jobs since the last pass

	reserved []*job             // in this pass or before, perhaps not any more
	until    eventlog.Timestamp // the earliest start of these: before it they stand
	head     *job               // with the reservation of EASY; nil: none
	looked   key                // how far Conservative has looked
	looks    bool               // it has
	counts
	estimates
}

// A Job waits for resources.
type Job struct {
	alloc.JobInfo
	Request *pool.Request
}

// A job waits or has resources.
type job struct {
	Job
	want
	state    state
	odd      bool               // it has, or wants, something else than whole nodes: see counts
	planned  bool               // in the pool
	estimate eventlog.Timestamp // the start that was told; 0: none
	behind   jobid.ID           // whose reservation it starts before; 0: none
	end      ending             // as in counts.ends; no nodes: it is not there
}

// A state is what a job does.
type state uint8

const (
	waits state = iota + 1
	holds       // resources
	gone
)

func (j *job) key() key { return key{j.Priority, j.ID} }

// New returns a scheduler without an inventory.
func New(cfg Config) *Scheduler {
	cfg.MaxJobs = cmp.Or(max(cfg.MaxJobs, 0), defaultMaxJobs)
	cfg.Limit = min(max(cfg.Limit, 0), math.MaxInt32)
	if cfg.Policy == nil {
		cfg.Policy = FIFO{}
	}
	if cfg.Logf == nil {
		cfg.Logf = func(string, ...any) {}
	}
	s := &Scheduler{cfg: cfg, jobs: make(map[jobid.ID]*job)}
	s.view.s = s
	s.until = never
	return s
}

// Pool returns a copy of the pool, in constant time; nil before the first Acquire.
func (s *Scheduler) Pool() *pool.Pool {
	if s.pool == nil {
		return nil
	}
	return s.pool.Clone()
}

// Ready reports whether it is known what all jobs have: the last EndHello succeeded, and no
// alloc.HelloResponse came since. Otherwise nothing starts.
func (s *Scheduler) Ready() bool { return s.ready }

// Len returns the number of jobs that wait.
func (s *Scheduler) Len() int { return s.queue.n }

// Jobs returns an iterator over the jobs that wait, in the order of the queue. The
// Scheduler must not change meanwhile.
func (s *Scheduler) Jobs() iter.Seq[Job] {
	return func(yield func(Job) bool) {
		for _, c := range s.queue.chunks {
			for i := range c.entries {
				if !yield(c.entries[i].job.Job) {
					return
				}
			}
		}
	}
}

// named is a job for people: its id as in the messages, and as Flux prints it.
type named jobid.ID

func (n named) String() string { return fmt.Sprintf("job %d (%v)", uint64(n), jobid.ID(n)) }

// ranks is a set of ranks for people.
type ranks struct{ *idset.Set }

func (r ranks) String() string {
	if r.IsEmpty() {
		return "none"
	}
	return r.Set.String()
}

// Acquire takes a response to resource.acquire: first the inventory, then changes of it.
// Jobs that the inventory can never meet any more are denied. The error is ErrExists for a
// second inventory, ErrNotReady for a change without one, or what pool.New and
// pool.Pool.Update return. After an error nothing has changed.
func (s *Scheduler) Acquire(a pool.Acquire) error {
	p, c := s.pool, a.Change
	switch {
	case a.Resources != nil && p != nil:
		return refuse(ErrExists, "the inventory is known: only the first response may have resources")
	case a.Resources == nil && p == nil:
		return refuse(ErrNotReady, "there is no inventory: the first response must have resources")
	case p == nil:
		var err error
		if p, err = pool.New(a.Resources, pool.Config{MaxJobs: s.cfg.MaxJobs, Fit: s.cfg.Fit}); err != nil {
			return err
		}
	}
	if err := p.Update(c); err != nil {
		return err
	}
	if s.pool = p; a.Resources != nil {
		s.scheduling, s.expires = a.Resources.Scheduling(), a.Resources.Expiration()
	}
	if c.Expiration != nil {
		s.expires = *c.Expiration
	}
	s.full, s.counted = true, false
	if a.Resources != nil || c.Shrink != nil || c.Grow != nil {
		s.inventory()
	}
	s.cfg.Logf("%d cores; ranks up: %v, down: %v, away: %v", s.capacity, ranks{c.Up}, ranks{c.Down}, ranks{c.Shrink})
	if c.Expiration != nil {
		s.cfg.Logf("all expires at %v, where 0 is never", *c.Expiration)
	}
	if len(c.AddProperties)+len(c.RemoveProperties) > 0 || c.Shrink != nil {
		s.denyHopeless()
	}
	return nil
}

func (s *Scheduler) denyHopeless() {
	for j := s.queue.first(nil); j != nil; j = s.queue.after(j.key(), nil) {
		if err := s.pool.Feasible(j.Request); err != nil {
			s.deny(j, err)
		}
	}
}

// Take takes a message of the manager. It may keep the message. The error is ErrNotReady,
// ErrExists, ErrNoR or ErrLimit; that of Pool.Free for an alloc.Free, of
// Pool.SetExpiration for an alloc.Expiration, and of jobspec.Parse, pool.NewRequest and
// Pool.Feasible for an alloc.Feasibility; or there is one for a message that only a
// scheduler sends. Then nothing has changed. What Pool.Adopt reports of an
// alloc.HelloResponse, ErrExists excepted, leaves the job with its resources.
func (s *Scheduler) Take(m alloc.Message) error {
	switch m := m.(type) {
	case alloc.HelloResponse:
		return s.adopt(m)
	case alloc.ReadyResponse:
		return nil
	case alloc.Request:
		return s.request(m)
	case alloc.Cancel:
		s.cancel(m)
		return nil
	case alloc.Prioritize:
		s.prioritize(m)
		return nil
	case alloc.Free:
		return s.free(m)
	case alloc.Expiration:
		return s.expire(m)
	case alloc.Feasibility:
		if s.pool == nil {
			return errNoInventory()
		}
		_, err := s.understand(m.Jobspec)
		return err
	}
	return fmt.Errorf("%w: %T", errSide, m)
}

func errNoInventory() error { return refuse(ErrNotReady, "there is no inventory yet") }

// Missed says that a line of the manager could not be parsed. l is what
// alloc.ParseFromManager returned with the error. If it is, or may be, a response to a
// hello, it is not known what some job has, so EndHello fails.
func (s *Scheduler) Missed(l alloc.Line) {
	if l.Topic == alloc.TopicHello {
		s.ready = false
	}
	if l.Topic == alloc.TopicHello || l.Topic == "" && !s.ready {
		s.unknown++
	}
}

// adopt takes a job that has resources. Nothing starts before the end of the hello.
func (s *Scheduler) adopt(h alloc.HelloResponse) error {
	s.ready = false
	known, err := s.tryAdopt(h)
	if !known {
		s.unknown++
	}
	return err
}

// tryAdopt is adopt, and reports whether it is known what the job has.
func (s *Scheduler) tryAdopt(h alloc.HelloResponse) (known bool, err error) {
	j := s.jobs[h.ID]
	switch {
	case s.pool == nil:
		return false, refuse(ErrNotReady, "job %v holds resources and there is no inventory: resource.acquire comes first", h.ID)
	case j != nil && j.state == waits:
		return false, refuse(ErrExists, "job %v holds resources, and a request of it waits here", h.ID)
	case j == nil && len(s.jobs) >= s.cfg.MaxJobs:
		return false, s.tooMany(h.ID)
	case h.R == nil:
		return false, refuse(ErrNoR, "job %v has no R, and there is no store to look it up in", h.ID)
	}
	err = s.pool.Adopt(h.ID, h.R, h.Free)
	held, ok := s.pool.Holder(h.ID)
	if !ok || errors.Is(err, pool.ErrExists) {
		return false, err // nothing, or something else than the hello says
	}
	s.full, s.counted = true, false
	if j == nil {
		j = &job{Job: Job{JobInfo: h.JobInfo}, state: holds}
		s.jobs[h.ID] = j
		s.setOdd(j, err != nil || !s.wholeNodes(held.Held))
		s.cfg.Logf("%v holds %v", named(h.ID), held.Held)
	}
	return true, err
}

// EndHello ends the responses to a hello, and returns the message to send then. The error is
// ErrNotReady if there is no inventory, or if it is not known what a job of the hello has;
// then say hello again.
func (s *Scheduler) EndHello() (alloc.Ready, error) {
	unknown := s.unknown
	s.unknown, s.ready = 0, false
	switch {
	case s.pool == nil:
		return alloc.Ready{}, refuse(ErrNotReady, "not ready: there is no inventory, resource.acquire comes first")
	case unknown > 0:
		return alloc.Ready{}, refuse(ErrNotReady, "not ready: the resources of %s are unknown; send the hello again, with R", plural(unknown))
	}
	s.ready, s.full = true, true
	s.cfg.Logf("ready; %s with resources", plural(s.pool.Len()))
	return alloc.Ready{Limit: s.cfg.Limit}, nil
}

func plural(jobs int) string {
	if jobs == 1 {
		return "1 job"
	}
	return fmt.Sprint(jobs, " jobs")
}

func (s *Scheduler) tooMany(id jobid.ID) error {
	return refuse(ErrLimit, "job %v: at most %d jobs are allowed", id, s.cfg.MaxJobs)
}

func (s *Scheduler) request(m alloc.Request) error {
	switch j := s.jobs[m.ID]; {
	case !s.ready:
		return refuse(ErrNotReady, "not ready: the hello has not ended well")
	case j != nil && j.state == holds:
		return refuse(ErrExists, "job %v has resources already", m.ID)
	case j != nil:
		return refuse(ErrExists, "job %v waits already", m.ID)
	case len(s.jobs) >= s.cfg.MaxJobs:
		return s.tooMany(m.ID)
	}
	want, err := s.understand(m.Jobspec)
	if err != nil {
		s.denied(m.ID, err)
		return nil
	}
	j := &job{Job: Job{JobInfo: m.JobInfo, Request: want.request}, want: want, state: waits}
	s.jobs[j.ID] = j
	s.setOdd(j, want.nodes == 0)
	s.queue.insert(j.entry())
	if !s.full {
		s.fresh = append(s.fresh, j)
	}
	s.cfg.Logf("%v wants %v", named(j.ID), j.Request)
	return nil
}

func (j *job) entry() entry { return entry{j.key(), j.need, j} }

// understand returns what a jobspec asks for, if the inventory has it.
func (s *Scheduler) understand(text []byte) (want, error) {
	w, err := s.wants.of(text)
	if err == nil {
		err = s.pool.Feasible(w.request)
	}
	return w, err
}

// cancel takes back a request. It never touches an allocation, since a job that was
// canceled may still run.
func (s *Scheduler) cancel(m alloc.Cancel) {
	j := s.jobs[m.ID]
	if j == nil || j.state == holds {
		s.cfg.Logf("cancel of %v ignored: it does not wait", named(m.ID))
		return
	}
	s.forget(j)
	s.full = true
	s.out = append(s.out, alloc.Response{ID: j.ID, Type: alloc.ResponseCancel})
}

// forget forgets a job that waits.
func (s *Scheduler) forget(j *job) {
	s.leave(j)
	j.state = gone
	s.setOdd(j, false)
	delete(s.jobs, j.ID)
}

// leave takes a job out of the queue.
func (s *Scheduler) leave(j *job) {
	s.unplan(j)
	s.queue.remove(j.key())
	j.estimate = 0
}

func (s *Scheduler) prioritize(m alloc.Prioritize) {
	s.full = true
	for _, p := range m.Jobs {
		j := s.jobs[p.ID]
		if j == nil || j.Priority == p.Priority {
			continue
		}
		if j.state == holds {
			j.Priority = p.Priority
			continue
		}
		s.queue.remove(j.key())
		j.Priority = p.Priority
		s.queue.insert(j.entry())
	}
}

func (s *Scheduler) free(m alloc.Free) error {
	if s.pool == nil {
		return errNoInventory()
	}
	freed, err := s.pool.Free(m.ID, m.R, m.Final)
	if err != nil {
		return err
	}
	j := s.jobs[m.ID]
	s.full = true
	s.freed(j, freed.Returned)
	if m.Final {
		j.state = gone
		s.setOdd(j, false)
		delete(s.jobs, m.ID)
	}
	switch {
	case !freed.Rest.IsEmpty():
		s.cfg.Logf("%v done; the fragments left out %v, which is free now", named(m.ID), freed.Rest)
	case m.Final:
		s.cfg.Logf("%v done", named(m.ID))
	default:
		s.cfg.Logf("%v gave back %v", named(m.ID), m.R)
	}
	return nil
}

func (s *Scheduler) expire(m alloc.Expiration) error {
	if s.pool == nil {
		return errNoInventory()
	}
	if err := s.pool.SetExpiration(m.ID, m.Expiration); err != nil {
		return err
	}
	s.full = true
	s.moveEnd(s.jobs[m.ID], m.Expiration)
	s.cfg.Logf("%v expires at %v, where 0 is never", named(m.ID), m.Expiration)
	return nil
}

// Decide lets the policy start jobs, and returns the responses since the last Decide. The
// caller may keep them, and sends them in this order. Without a change since the last
// Decide nothing starts: time frees nothing. A time before that of the last Decide counts
// as that one.
func (s *Scheduler) Decide(now eventlog.Timestamp) []alloc.Response {
	if now > s.now && now <= math.MaxFloat64 {
		s.now = now
	}
	if s.ready {
		s.pass()
		s.forecast()
	}
	out := s.out
	s.out = nil
	return out
}

// pass lets the policy look at the queue, if there is something new.
func (s *Scheduler) pass() {
	if plain := s.whole != nil && s.odd == 0; plain != s.byCount {
		s.byCount, s.counted, s.full = plain, false, true
		s.release()
	}
	if !s.full && len(s.fresh) == 0 {
		return
	}
	switch s.cfg.Policy.(type) {
	case FIFO, EASY, Conservative: // which know what is as it was
	default:
		s.full = true
		s.release()
	}
	s.passing = true
	s.cfg.Policy.Schedule(&s.view)
	s.passing = false
	s.tell()
	clear(s.fresh)
	s.fresh, s.full = s.fresh[:0], false
}

// start gives a job resources if they are free, beside what is reserved for others. The
// job may be denied.
func (s *Scheduler) start(j *job) bool {
	r, err := s.pool.Alloc(j.ID, j.Request, s.now)
	switch {
	case err == nil:
		s.keep(j, r)
		return true
	case errors.Is(err, pool.ErrBusy):
	case errors.Is(err, pool.ErrExpired): // which may be put off
		s.cfg.Logf("%v has to wait: %v", named(j.ID), err)
	default:
		s.deny(j, err)
	}
	return false
}

// keep makes an allocation of what the pool gave a job.
func (s *Scheduler) keep(j *job, r *rset.R) {
	r = s.complete(j, r)
	told := j.estimate > 0
	j.planned = false // Alloc ended it
	s.leave(j)
	j.state = holds
	s.given(j, r)
	resp := alloc.Response{ID: j.ID, Type: alloc.ResponseSuccess, R: r}
	if s.cfg.Annotate {
		resp.Annotations = summaryOf(j, r, told)
	}
	s.out = append(s.out, resp)
}

// complete returns what the pool gave a job, with the key scheduling of the inventory.
func (s *Scheduler) complete(j *job, r *rset.R) *rset.R {
	if s.scheduling == nil {
		return r
	}
	text := append(bytes.TrimSuffix(r.AppendJSON(nil), []byte("}")), `,"scheduling":`...)
	r, err := rset.Parse(append(append(text, s.scheduling...), '}'))
	if err == nil {
		_, err = s.pool.Free(j.ID, nil, true)
	}
	if err == nil {
		err = s.pool.Adopt(j.ID, r, nil) // a hello may tell of it in these words
	}
	if err != nil {
		panic("sched: broken invariant: " + err.Error()) // it was free
	}
	return r
}

// deny answers a request that can never be met.
func (s *Scheduler) deny(j *job, why error) {
	s.forget(j)
	s.full = s.full || !s.passing
	s.denied(j.ID, why)
}

func (s *Scheduler) denied(id jobid.ID, why error) {
	s.out = append(s.out, alloc.Response{ID: id, Type: alloc.ResponseDeny, Note: Reason(why)})
}

// Reason returns why a jobspec cannot be met, in the words that a user of Flux knows: the
// note of a denial, and the errstr of the answer to an alloc.Feasibility.
func Reason(err error) string {
	text := strings.TrimPrefix(err.Error(), pool.ErrRequest.Error()+": ")
	if request, ok := strings.CutPrefix(text, pool.ErrInfeasible.Error()+": "); ok {
		return "unsatisfiable " + request
	}
	return strings.TrimPrefix(text, "pool: ")
}
