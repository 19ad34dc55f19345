package perilog

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/guard"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset"
)

// The errors of this package. After an error nothing has changed, but Post may have what
// follows from earlier inputs. An event that the job's state does not allow is an error of
// package jobstate.
var (
	// ErrOrder is returned when an event would start the job before its prologs have
	// succeeded, or would free what something holds. The text says what must come first.
	ErrOrder = errors.New("perilog: event comes too early")

	// ErrAction is returned when Reattach, Rerun or ForceFinish cannot do what it is told.
	ErrAction = errors.New("perilog: cannot resolve action")

	// ErrStopped is returned after the deadline of a shutdown. What would start something gets
	// it from the shutdown on.
	ErrStopped = errors.New("perilog: a shutdown has begun: only a restart goes on")
)

// Categories of errors that no caller tells apart.
var (
	errPosted = errors.New("perilog: the job posts this event itself")
	errR      = errors.New("perilog: invalid R")
)

// A JobConfig is what [NewJob] and [RecoverJob] need to know of a job.
type JobConfig struct {
	ID    jobid.ID
	R     *rset.R  // nil if it is not known yet: see [Job.SetR]
	Named []string // the job's resources that have no rank, such as a shared file system
	Owner uint32   // the user id of the instance, which raises the exceptions

	Offline *idset.Set // the ranks that are offline: see [Job.Offline]

	// Distinct gives no two entries of the log the same time: one that is not later than the
	// entry before it, even if it repeats that, gets a time one microsecond after it.
	Distinct bool

	Scratch *Scratch // memory to share with other Jobs; nil: none is shared
}

// A Job is one job and its nodes: it folds the job's log, runs the configured prologs,
// epilogs and housekeeping, and frees each rank when nothing holds it. It only decides;
// Take returns what is to be done.
//
// All prologs, and housekeeping, start with the event alloc. When a prolog fails, the Job
// logs the start of every epilog, a fatal exception, and then the finish of that prolog.
// Otherwise epilogs start at the event finish; or, if a prolog started but the job did not,
// when CLEANUP begins. If neither started, no epilog runs. Epilogs hold their ranks from
// their start, and are launched when no prolog is active.
//
// A Job must not be copied. A time before the latest one counts as the latest one.
type Job struct {
	cfg      *Config
	holds    Holds
	now      eventlog.Timestamp
	actions  []*action // configured prologs and epilogs, in order, then those that only the log knows
	*nodes             // those of holds.scratch until unshareNodes gives it some
	*buffers           // those of holds.scratch until open gives it some

	stopAt    eventlog.Timestamp // 0: no deadline
	owner     uint32
	stopping  bool
	distinct  bool // the times of the log
	executor  executor
	startable bool  // the executor may have been asked when the job left RUN
	phase     phase // of the log
	adopted   uint8 // how many of actions the configuration does not have
}

// nodes has what a Job does with its nodes, and what holds them.
type nodes struct {
	allocation allocation // that of Job.holds
	r          *rset.R
	early      []eventlog.Entry // events that named ranks before r came
	ledger     *rset.Ledger     // nil until a part goes back
	final      bool             // the last fragment went back
	hk         *housekeeping
	offline    *idset.Set
}

// unshareNodes gives j nodes of its own, and their allocation to its holds, before their first change.
func (j *Job) unshareNodes() {
	if j.nodes == &j.holds.scratch.noNodes {
		j.nodes = new(nodes)
		j.holds.allocation = &j.nodes.allocation
	}
}

// Limits of the actions that the configuration does not have.
const (
	maxAdopted = 64      // that a job follows; others are foreign
	maxForeign = 4 << 10 // bytes of a description, so that all that is said of it fits in a line
)

// A stage is how far an action is.
type stage uint8

const (
	stageIdle     stage = iota // its start is not in the log
	stageActive                // its start is in the log
	stageFinished              // its finish is in the log
)

// action is a prolog, an epilog or housekeeping, which this library runs.
type action struct {
	jobstate.ActionKey
	config *ActionConfig // nil: the configuration does not have it
	stage  stage
	run    *run // from its start to its finish

	attempts uint32 // the last one of a run that is over
	foreign  bool   // another writer, whose start does not say how it runs, ends it while it is active

	began    eventlog.Timestamp
	finished eventlog.Timestamp
	success  bool // it finished with status 0
}

// NewJob returns a job whose log is empty. It keeps c, which the caller must not
// change, and R, which is immutable. The error is that of [Config.Check] or [Job.SetR].
func NewJob(c *Config, s JobConfig) (*Job, error) {
	j := &Job{cfg: c, owner: s.Owner, distinct: s.Distinct}
	j.holds.init(s.ID, s.Scratch)
	none := j.holds.scratch
	if err := none.checkConfig(c); err != nil {
		return nil, err
	}
	j.nodes, j.buffers = &none.noNodes, &none.noEffects
	j.setOffline(s.Offline)
	j.configure(nil)
	if s.R != nil {
		if err := j.SetR(s.R, s.Named...); err != nil {
			return nil, err
		}
	}
	return j, nil
}

// SetConfig replaces the configuration, and keeps c. An action is due if it is configured
// when its phase begins: prologs and housekeeping with alloc, epilogs when they are due. A
// phase has begun when the log has another event after that and the starts that followed.
// If there were no prologs, an added one is due until the executor is asked. What has begun
// goes on as it is.
//
// [RecoverJob] with c does the same: what a start does not say, such as the command, comes from c,
// or from the first later configuration that has the action. What another writer started before c
// had it, that writer ends: only RecoverJob lists it as lost, so that [Job.Rerun] can launch it as
// the Job's own. The error is that of [Config.Check].
func (j *Job) SetConfig(c *Config) error {
	if err := j.holds.scratch.checkConfig(c); err != nil {
		return err
	}
	begun := slices.DeleteFunc(j.actions, func(a *action) bool { return a.stage == stageIdle })
	j.cfg = c
	j.configure(begun)
	if h := j.hk; h != nil {
		h.config = cmp.Or(h.config, j.housekeepingAction().config)
	}
	return nil
}

func (j *Job) setOffline(ranks *idset.Set) {
	if j.offline != nil || !ranks.IsEmpty() {
		j.unshareNodes()
		j.offline = ranks.Clone()
	}
}

// configure sets the actions: those of the configuration, and what has begun.
func (j *Job) configure(begun []*action) {
	j.actions = make([]*action, 0, len(j.cfg.Prologs)+len(j.cfg.Epilogs)+len(begun))
	for _, k := range []jobstate.ActionKind{jobstate.ActionProlog, jobstate.ActionEpilog} {
		list := j.cfg.actions(k)
		for i := range list {
			key := list[i].key(k)
			if n := slices.IndexFunc(begun, func(a *action) bool { return a.ActionKey == key }); n >= 0 {
				begun[n].config = cmp.Or(begun[n].config, &list[i])
				j.actions = append(j.actions, begun[n])
				begun = slices.Delete(begun, n, n+1)
			} else if j.holds.hold(key) == nil { // else it is foreign
				j.actions = append(j.actions, &action{ActionKey: key, config: &list[i]})
			}
		}
	}
	j.actions = append(j.actions, begun...)
}

// Holds returns what holds the job's ranks, without housekeeping. The caller must not change it.
func (j *Job) Holds() *Holds { return &j.holds }

// State returns the job as package jobstate knows it. The caller must not change it.
func (j *Job) State() *jobstate.Job { return j.holds.job }

// R returns the effective R, without the ranks that the job dropped; nil if there is no R yet.
func (j *Job) R() *rset.R {
	if j.r == nil || j.holds.dropped.IsEmpty() {
		return j.r
	}
	r, _ := j.r.Restrict(idset.Difference(&j.holds.all, &j.holds.dropped)) // which has all of them
	return r
}

// Holders yields those of [Holds.Holders], and housekeeping, which holds ranks that nothing else
// holds until they are freed or a scheduler revokes them. Do not change the Job meanwhile.
func (j *Job) Holders() iter.Seq[Holder] {
	return func(yield func(Holder) bool) {
		for h := range j.holds.Holders() {
			if !yield(h) {
				return
			}
		}
		if j.hk == nil || j.final || j.holds.revoked {
			return
		}
		if ranks := idset.Difference(&j.holds.left, &j.hk.freed); !ranks.IsEmpty() {
			yield(Holder{Kind: HolderHousekeeping, Description: j.hk.Description, Since: cmp.Or(j.hk.run.start, j.hk.began), Ranks: ranks})
		}
	}
}

// Freed returns a new set of the ranks that were freed: the key free of RFC 27's hello. After an
// exception of type scheduler-restart all count as freed.
func (j *Job) Freed() *idset.Set {
	if j.holds.revoked {
		return j.holds.all.Clone()
	}
	return j.freed()
}

// freed returns what went back.
func (j *Job) freed() *idset.Set {
	switch {
	case j.final:
		return j.holds.all.Clone()
	case j.ledger != nil:
		return j.ledger.Freed()
	}
	return new(idset.Set)
}

// Done reports whether the job is inactive, and its housekeeping has freed everything.
func (j *Job) Done() bool {
	return j.holds.job.Closed() && (j.hk == nil || j.final || j.holds.revoked) && len(j.effects.Post) == 0
}

// action is find, of what can go on: after the job's log is closed, only housekeeping.
func (j *Job) action(key jobstate.ActionKey) *action {
	a := j.find(key)
	if a != nil && j.holds.job.Closed() && key.Kind != jobstate.ActionHousekeeping {
		return nil
	}
	return a
}

// find returns the action of a key, over or not, or nil.
func (j *Job) find(key jobstate.ActionKey) *action {
	if j.hk != nil && key == j.hk.ActionKey {
		return &j.hk.action
	}
	for _, a := range j.actions {
		if a.ActionKey == key {
			return a
		}
	}
	return nil
}

// Starting reports whether the executor was asked to start the job, or may have been before a
// restart, and its answer is not in the log.
func (j *Job) Starting() bool { return j.start() == startPending }

// Draining reports whether a drain was asked for that is not confirmed.
func (j *Job) Draining() bool {
	return !j.holds.draining.IsEmpty() || j.hk != nil && !j.hk.draining.IsEmpty()
}

// NotStarted tells the Job that the executor lost the job in a restart or refused its start. It
// changes nothing after the event start. If the executor accepts the job and then gives up
// without starting it, apply the event release instead.
func (j *Job) NotStarted(now eventlog.Timestamp) {
	if j.advance(now); !j.holds.job.Started() {
		j.executor = executorIdle
	}
}

// Deadline returns when to call Tick and Take; false for never. A time that has passed means at
// once. The timeout of a launch or a signal that was not taken yet begins with Take.
func (j *Job) Deadline() (eventlog.Timestamp, bool) {
	var first eventlog.Timestamp
	sooner := func(t eventlog.Timestamp, ok bool) {
		if ok && (first == 0 || t < first) {
			first = t
		}
	}
	if j.stopped() {
		return 0, false
	}
	j.timed(func(r *run) { sooner(r.Deadline()) })
	if j.hk != nil && !j.holds.revoked {
		sooner(j.hk.releaseAt())
	}
	sooner(j.stopAt, j.stopAt != 0)
	return first, first != 0
}

// timed calls f with the runs whose timers go on. Launches that were not taken have none.
func (j *Job) timed(f func(*run)) {
	j.eachRun(func(a *action) {
		if !slices.ContainsFunc(j.effects.Launch, func(l Launch) bool { return l.Action == a.ActionKey }) {
			f(a.run)
		}
	})
}

// eachRun calls f with the actions that have a run, housekeeping last.
func (j *Job) eachRun(f func(*action)) {
	for _, a := range j.actions {
		if a.run != nil {
			f(a)
		}
	}
	if j.hk != nil {
		f(&j.hk.action)
	}
}

// PrologTime returns how long the job's prologs took, from the first start to the last finish in
// the log, so that a caller can extend the job's expiration. It is 0 before the first finish.
func (j *Job) PrologTime() time.Duration {
	var first, last eventlog.Timestamp
	for _, a := range j.actions {
		if a.Kind != jobstate.ActionProlog || a.finished == 0 {
			continue
		}
		if first == 0 || a.began < first {
			first = a.began
		}
		last = max(last, a.finished)
	}
	return guard.Duration(max(0, float64(last-first)))
}

// advance sets the time, which never goes back and is one that an event can have.
func (j *Job) advance(now eventlog.Timestamp) {
	if now > j.now && guard.IsTime(now) {
		j.now = now
	}
}

// stamp returns the time for an entry of the log. No deadline passes by it.
func (j *Job) stamp(at eventlog.Timestamp) eventlog.Timestamp {
	last := j.holds.job.Last()
	if !j.distinct || at > last {
		return at
	}
	if next := last + 1e-6; guard.IsTime(next) && (j.stopAt == 0 || next < j.stopAt) {
		return next
	}
	return last
}

// Shutdown ends launches and does not start the job. After the deadline, if it is a time (0 is none),
// the Job refuses all inputs, does not log the ends of actions, and Take returns nothing new:
// [RecoverJob] finds what has not ended. A second call changes the deadline.
func (j *Job) Shutdown(now, deadline eventlog.Timestamp) {
	j.advance(now)
	if j.stopping, j.stopAt = true, 0; guard.IsTime(deadline) {
		j.stopAt = deadline
	}
}

// stopped reports whether the deadline of a shutdown has passed.
func (j *Job) stopped() bool { return j.stopAt != 0 && j.now >= j.stopAt }

// Running reports whether a command runs, or Take has something to return: else a shutdown is
// complete.
func (j *Job) Running() bool {
	for _, a := range j.actions {
		if a.run != nil && (a.run.Has(slotRunning) || a.run.Done()) {
			return true
		}
	}
	return j.hk != nil && j.hk.run.Has(slotRunning) || len(j.effects.Post) > 0
}

// String returns the holds, the progress of each action, and what was freed, in one line.
func (j *Job) String() string {
	dst := []byte(j.holds.String())
	for _, a := range j.actions {
		dst = a.appendText(dst)
	}
	if h := j.hk; h != nil {
		dst = fmt.Appendf(h.appendText(dst), " draining %v ready %v", &h.draining, &h.ready)
	}
	dst = fmt.Appendf(dst, "; freed %v final %t", j.freed(), j.final)
	if j.stopping {
		dst = append(dst, "; stopping"...)
	}
	return string(dst)
}

func (a *action) appendText(dst []byte) []byte {
	dst = fmt.Appendf(dst, "; %v: %s", a.ActionKey, [...]string{"idle", "active", "finished"}[a.stage])
	if r := a.run; r != nil {
		dst = fmt.Appendf(dst, " idle %v running %v lost %v open %v attempt %d", r.At(slotIdle), r.At(slotRunning), r.At(slotLost), r.Open(), r.last)
	}
	return dst
}

// A Scratch is memory that the Jobs of one goroutine share. The zero Scratch is ready for use. What
// Take and Decide return is then valid until the next input or Take of any of these Jobs.
type Scratch struct {
	event, posted jobstate.Event // of Apply, and of what a Job posts
	ended         idset.Set      // ranks on which the current event ends a hold
	want          idset.Set      // ranks that the current event names
	none          rset.R         // the empty one
	checked       *Config        // the last valid configuration, which does not change
	free          []*buffers
	taken         *buffers // those that Take returned last

	// What Jobs share that have none of it. It never changes.
	noNodes      nodes
	noFailures   failures
	noAllocation allocation
	noEffects    buffers
}

// checkConfig checks a configuration once for all Jobs that have it.
func (s *Scratch) checkConfig(c *Config) error {
	if s.checked == c {
		return nil
	}
	err := c.Check()
	if err == nil {
		s.checked = c
	}
	return err
}

// buffers are the memory of effects.
type buffers struct {
	effects Effects
	decided int    // how many of effects.Post Decide has returned
	text    []byte // contexts of effects.Post
}

func (j *Job) open() {
	s := j.holds.scratch
	if j.buffers != &s.noEffects {
		return
	}
	if n := len(s.free); n > 0 {
		j.buffers, s.free[n-1] = s.free[n-1], nil
		s.free = s.free[:n-1]
	} else {
		j.buffers = new(buffers)
	}
}

// close returns the effects of a Job, and frees the memory of those that were returned last.
func (j *Job) close() Effects {
	s := j.holds.scratch
	if j.buffers == &s.noEffects {
		return Effects{}
	}
	if last := s.taken; last != nil {
		e := &last.effects
		e.Post = clearTo(e.Post) // its records may have exceptions
		e.Launch, e.Signal, e.Drain, e.Results = clearTo(e.Launch), clearTo(e.Signal), clearTo(e.Drain), clearTo(e.Results)
		e.Start, e.Free = false, rset.Fragment{}
		last.text, last.decided = last.text[:0], 0
		s.free = append(s.free, last)
	}
	s.taken, j.buffers = j.buffers, &s.noEffects
	return s.taken.effects
}

// clearTo returns s emptied, with its room.
func clearTo[T any](s []T) []T {
	clear(s)
	return s[:0]
}
