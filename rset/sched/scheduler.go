package sched

import (
	"cmp"
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
	"github.com/joblife/joblife/rset/alloc"
	"github.com/joblife/joblife/rset/pool"
)

// Config configures a [Scheduler].
type Config struct {
	Policy  Policy   // nil means FIFO
	Fit     pool.Fit // the order in which nodes are taken; 0 means pool.FitBest
	MaxJobs int      // the number of jobs that wait or have resources; 0 or less means 2^22, as of joblife.Config.MaxActive
	Limit   int      // the number of requests that may be outstanding, for alloc.Ready; 0 or less means any number, as in a loop.Loop

	// Annotate adds annotations to responses, as flux-core has them: sched.t_estimate and
	// sched.reason_pending for a job with a reservation, at most 8 at a time; and for an
	// allocation sched.resource_summary, and sched.backfill, the job before whose reservation
	// it started.
	Annotate bool
	// Forecast is the least time between two forecasts of FIFO, which tell the first 8 jobs when
	// they are to start, with Annotate, and cost more than most decisions; 0 or less: none.
	Forecast time.Duration

	// Logf is told in words what the responses do not say: what a job wants, holds and gives
	// back, why it waits without an estimate, and what changes in the inventory. It must not
	// call the Scheduler. Nil means that nobody is told.
	Logf func(format string, args ...any)
}

// A Scheduler decides which job gets which resources, and when. [New] makes one; the zero
// Scheduler is invalid. Do not copy a Scheduler.
type Scheduler struct {
	_   guard.NoCopy
	cfg Config

	quiet    bool               // nobody is told in words
	now      eventlog.Timestamp // of the last Decide; it never goes back
	pool     *pool.Pool         // nil before the first Acquire
	ready    bool               // all that is held is known
	heard    bool               // EndHello was the last of a hello
	unknown  int                // jobs of this hello whose resources are not known
	jobs     map[jobid.ID]*job  // that wait or have resources
	queue    queue              // of those that wait
	requests requests
	out      []alloc.Response

	view    Pass
	fifo    bool   // the policy is FIFO
	follows bool   // the policy knows what is as it was in the last pass
	passing bool   // the policy is at work
	full    bool   // something has changed that is not a new job
	fresh   []*job // new jobs since the last pass

	reserved []*job             // in this pass or before, perhaps not any more
	until    eventlog.Timestamp // the earliest start of these: before it they stand
	head     *job               // with the reservation of EASY; nil: none
	byCount  bool               // the policy is ours, and one node is as good as another, now and for all jobs that wait
	kept     int64              // byCount: how many of the idle nodes the head needs when it starts
	shared   int                // jobs that wait for something else than a number of whole nodes
	looked   *job               // how far Conservative has looked; nil: not at all

	busy map[*pool.Request]bool // of EASY: they found no room since reservations began anew
	estimates
}

// A Job waits for resources or has them.
type Job struct {
	alloc.JobInfo
	Request *pool.Request // nil: it has resources from before this session
}

type job struct {
	Job
	need
	state    state
	planned  bool               // in the pool
	estimate eventlog.Timestamp // the start that was told; 0: none
}

type state uint8

const (
	waits state = iota + 1
	holds       // resources
	gone
)

func (j *job) key() key { return key{j.Priority, j.ID} }

// New returns a scheduler without an inventory.
func New(cfg Config) *Scheduler {
	cfg.MaxJobs = cmp.Or(max(cfg.MaxJobs, 0), 1<<22)
	cfg.Limit = min(max(cfg.Limit, 0), math.MaxInt32)
	if cfg.Policy == nil {
		cfg.Policy = FIFO{}
	}
	s := &Scheduler{quiet: cfg.Logf == nil}
	if s.quiet {
		cfg.Logf = func(string, ...any) {}
	}
	s.reset(cfg)
	return s
}

// reset makes a scheduler without an inventory of any scheduler.
func (s *Scheduler) reset(cfg Config) {
	*s = Scheduler{cfg: cfg, quiet: s.quiet, jobs: make(map[jobid.ID]*job), busy: make(map[*pool.Request]bool)}
	s.view.s = s
	s.until = never
	switch cfg.Policy.(type) {
	case FIFO, *FIFO:
		s.fifo, s.follows = true, true
	case EASY, *EASY, Conservative, *Conservative:
		s.follows = true
	}
}

// enter begins a call that a policy must not make.
func (s *Scheduler) enter() {
	if s.passing {
		panic("sched: a policy called its Scheduler")
	}
}

// Pool returns a copy of the pool, in constant time; nil before the first Acquire.
func (s *Scheduler) Pool() *pool.Pool {
	if s.pool == nil {
		return nil
	}
	return s.pool.Clone()
}

// Ready reports whether the last EndHello succeeded, and no alloc.HelloResponse came since:
// otherwise nothing starts.
func (s *Scheduler) Ready() bool { return s.ready }

// Len returns the number of jobs that wait.
func (s *Scheduler) Len() int { return s.queue.n }

// Jobs returns an iterator over the jobs that wait, in the order of the queue. Those returned may
// start, go or move meanwhile: a job that moves behind the place reached comes again.
func (s *Scheduler) Jobs() iter.Seq[Job] {
	return func(yield func(Job) bool) {
		for j := s.queue.first(nil); j != nil; {
			at := j.key()
			if !yield(j.Job) {
				return
			}
			j = s.queue.after(at, nil)
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

// Decide lets the policy start jobs, and returns the responses since the last Decide, which the
// caller may keep, and sends in this order. Without a change since then nothing starts. A time
// before that of the last Decide counts as that one.
func (s *Scheduler) Decide(now eventlog.Timestamp) []alloc.Response {
	s.enter()
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
	if !s.full && len(s.fresh) == 0 {
		return
	}
	if byCount := s.follows && s.pool.Uniform() && s.shared == 0; s.byCount != byCount {
		s.byCount, s.full = byCount, true
	}
	if !s.follows {
		s.release()
	}
	s.schedule()
	s.tell()
	clear(s.fresh)
	s.fresh, s.full = s.fresh[:0], false
}

// schedule calls the policy, which may panic.
func (s *Scheduler) schedule() {
	s.passing = true
	defer func() { s.passing = false }()
	s.cfg.Policy.Schedule(&s.view)
}

// start gives a job resources if they are free, beside what is reserved for others.
func (s *Scheduler) start(j *job) bool {
	r, err := s.pool.Alloc(j.ID, j.Request, s.now)
	if err != nil {
		if !errors.Is(err, pool.ErrBusy) { // the inventory has expired, which may be put off
			s.cfg.Logf("%v has to wait: %v", named(j.ID), err)
		}
		return false
	}
	s.leave(j)
	j.state = holds
	resp := alloc.Response{ID: j.ID, Type: alloc.ResponseSuccess, R: r}
	if s.cfg.Annotate {
		resp.Annotations = s.summaryOf(j, r)
	}
	s.out = append(s.out, resp)
	return true
}

// denied answers a request that can never be met.
func (s *Scheduler) denied(id jobid.ID, why error) {
	s.out = append(s.out, alloc.Response{ID: id, Type: alloc.ResponseDeny, Note: Reason(why)})
}

// Reason returns why a jobspec cannot be met, in the words of Flux: the note of a denial, and the
// errstr of the answer to an alloc.Feasibility.
func Reason(err error) string {
	text := strings.TrimPrefix(err.Error(), pool.ErrRequest.Error()+": ")
	if request, ok := strings.CutPrefix(text, pool.ErrInfeasible.Error()+": "); ok {
		return "unsatisfiable " + request
	}
	return strings.TrimPrefix(text, "pool: ")
}
