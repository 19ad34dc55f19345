package jobstate

import (
	"encoding/json"
	"iter"
	"math"
	"time"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/internal/guard"
	"github.com/joblife/joblife/jobstate/jobid"
)

// Job is one job, folded from its log. Only [Job.Apply] and [Job.ApplyEvent] change it, live and
// in a replay. The zero Job has id 0, is in NEW and has no entry yet.
type Job struct {
	_ guard.NoCopy

	id      jobid.ID
	entered [numStates]eventlog.Timestamp // when each state was first entered; 0: never

	finishTime eventlog.Timestamp // 0: did not finish

	last    entryMark  // the entry before, to know its repetition
	worst   *Exception // the most severe, the first among equals
	actions *actions   // nil: no prolog or epilog is active, and no prolog failed
	rare    *rare      // nil: nothing of it
	notes   annotations

	userid     uint32
	flags      Flags
	priority   uint32
	waitStatus int32

	since  eventlog.Timestamp // when the state was entered, the last time
	stayed eventlog.Timestamp // how long the job was in PRIORITY, without the present stay

	state        State
	urgency      uint8
	version      uint8 // of submit; 0: the old rules
	invalid      bool  // an invalidate was folded; the log is closed
	started      bool  // a start came
	success      bool  // finish status 0, and no fatal exception before it
	stopped      bool  // a fatal exception came before any finish
	allocated    bool  // holds resources now
	wasAllocated bool  // held resources once
	finalRelease bool
	prioritized  bool // has a priority, and SCHED was not reverted since
}

// rare is what few jobs have.
type rare struct {
	deps          ordered[string, dependency]
	flags         ordered[string, struct{}] // the names that set-flags gave and that have no bit in Job.flags
	updates       []Update
	expiration    eventlog.Timestamp
	open          uint32   // how many of deps are not satisfied
	expirationSet bool     // a resource-update came
	summary       *Summary // all that is known of the job; nil: it was folded
}

// seldom returns the rare part, for a change.
func (j *Job) seldom() *rare {
	if j.rare == nil {
		j.rare = new(rare)
	}
	return j.rare
}

// dependency returns a dependency, nil if the job never had it.
func (j *Job) dependency(description string) *dependency {
	if j.rare == nil {
		return nil
	}
	return j.rare.deps.get(description)
}

// dependency is one dependency of a job, by its description.
type dependency struct{ satisfied bool }

// Exception is an exception of a job, with the fields of its event.
type Exception struct {
	Time       eventlog.Timestamp
	Type       string           // such as "cancel" or "timeout"
	Severity   uint8            // 0 is fatal
	Note       string           // in words; may be empty
	UserID     Optional[uint32] // who raised it
	WaitStatus Optional[int32]  // of the task that caused it
}

// ActiveAction is a prolog or an epilog that is active.
type ActiveAction struct {
	ActionKey
	Active int                // number of active actions of this key; at least 1
	Since  eventlog.Timestamp // when the first of these started
}

// NewJob returns a job that has no entry yet. It is in NEW: see [Job.Submitted].
func NewJob(id jobid.ID) *Job { return &Job{id: id, state: StateNew} }

// ID returns the id that was passed to NewJob or Replay.
func (j *Job) ID() jobid.ID { return j.id }

// Last returns the time of the last entry; 0 if there is none.
func (j *Job) Last() eventlog.Timestamp { return j.last.time }

// State returns the state. It is never a mask.
func (j *Job) State() State {
	if j.state == 0 {
		return StateNew // the zero Job
	}
	return j.state
}

// Submitted reports whether a submit event came. Before it, the job has only an id.
func (j *Job) Submitted() bool { return j.entered[StateNew.index()] != 0 }

// Closed reports whether clean or invalidate closed the log: only its repetition is not refused.
func (j *Job) Closed() bool { return j.invalid || j.state == StateInactive }

// UserID returns the submitter's user id, 0 before submit.
func (j *Job) UserID() uint32 { return j.userid }

// HasFlag reports whether the flag of that name is set, by a set-flags event or
// in the mask of submit: "debug", "waitable", "novalidate", "alloc-bypass", ….
func (j *Job) HasFlag(name string) bool {
	if f := flagOf(name); f != 0 && j.flags&f != 0 {
		return true
	}
	return j.rare != nil && j.rare.flags.get(name) != nil
}

// Urgency returns the current urgency (RFC 30), 0 before submit.
func (j *Job) Urgency() int { return int(j.urgency) }

// Priority returns the priority, and false while the job has none: before the first priority
// event, and after a return from SCHED to PRIORITY, until the next priority event.
func (j *Job) Priority() (uint32, bool) { return j.priority, j.prioritized }

// onHold reports whether the job is new or pending, and its urgency or its priority is 0.
func (j *Job) onHold() bool {
	return j.Submitted() && j.state.In(StateNew|StatePending) && (j.urgency == UrgencyHold || j.prioritized && j.priority == 0)
}

// Entered returns when the job first entered s, a single state, as a listing shows it: at submit
// for NEW, at validate for DEPEND (at submit in a log without a version), and so on. RUN begins at
// alloc: prologs may run before start. It returns false for a mask, and a state not entered.
func (j *Job) Entered(s State) (eventlog.Timestamp, bool) {
	if !s.single() {
		return 0, false
	}
	t := j.entered[s.index()]
	return t, t != 0
}

// Spent returns how long the job has been in the states of a mask, all stays together, up to
// now. A job returns to PRIORITY and to SCHED if its urgency or its jobspec changes, or its
// instance restarts: Entered has the first times alone. A stay that ends before it begins,
// since a clock was set back, counts as 0.
func (j *Job) Spent(mask State, now eventlog.Timestamp) time.Duration {
	total := eventlog.Timestamp(0)
	for s := StateNew; s <= StateInactive; s <<= 1 {
		if s.In(mask) {
			total += j.spent(s, now)
		}
	}
	if seconds := float64(total); seconds < math.MaxInt64/float64(time.Second) {
		return time.Duration(math.Round(seconds * float64(time.Second)))
	}
	return math.MaxInt64
}

// spent is Spent for a single state.
func (j *Job) spent(s State, now eventlog.Timestamp) eventlog.Timestamp {
	first := j.entered[s.index()]
	if first == 0 {
		return 0
	}
	end := now // or when a later state was entered for good
	for i := s.index() + 1; i < numStates; i++ {
		if t := j.entered[i]; t != 0 && !(s == StatePriority && i == StateSched.index()) {
			end = t
			break
		}
	}
	switch {
	case s == StatePriority && j.state == s:
		return j.stayed + max(0, now-j.since)
	case s == StatePriority:
		return j.stayed
	case s == StateSched: // and PRIORITY between
		return max(0, end-j.entered[StatePriority.index()]-j.spent(StatePriority, now))
	}
	return max(0, end-first)
}

// HasResources reports whether an alloc came, and neither free nor scheduler-restart since.
func (j *Job) HasResources() bool { return j.allocated }

// WasAllocated reports whether the job ever held resources.
func (j *Job) WasAllocated() bool { return j.wasAllocated }

// Started reports whether a start event came: the job shells ran. For the time take the event;
// Entered(StateRun) is that of alloc.
func (j *Job) Started() bool { return j.started }

// Finished reports whether a finish event came.
func (j *Job) Finished() bool { return j.finishTime != 0 }

// FinishTime returns when the job shells ended, and false before the event finish.
func (j *Job) FinishTime() (eventlog.Timestamp, bool) { return j.finishTime, j.Finished() }

// Released reports whether the final release came: the executor holds no resources of the job.
func (j *Job) Released() bool { return j.finalRelease }

// MayDepend reports whether the log allows the event depend: in DEPEND, without open dependencies.
func (j *Job) MayDepend() bool { return j.state == StateDepend && (j.rare == nil || j.rare.open == 0) }

// MayStart reports whether the log allows the job to start: it is in RUN, holds
// resources and has not started; no prolog is active and no prolog has failed.
func (j *Job) MayStart() bool {
	return j.state == StateRun && !j.Started() && j.allocated && j.live(ActionProlog) == 0 && j.failedPrologs() == 0
}

// MayFree reports whether the log allows the event free, which gives back all resources: the
// job is in CLEANUP and holds resources, the executor has released them or never started the
// job, and no prolog or epilog is active.
func (j *Job) MayFree() bool { return j.allocated && j.swept() }

// MayClean reports whether the log allows the event clean: as MayFree, but without resources.
func (j *Job) MayClean() bool { return !j.allocated && j.swept() }

// swept reports whether only free and clean are left.
func (j *Job) swept() bool {
	return j.state == StateCleanup && (j.finalRelease || !j.Started()) && j.live(ActionProlog)+j.live(ActionEpilog) == 0
}

// Actions yields the prologs and epilogs that are active, in the order in which their
// descriptions first came. The job must not change meanwhile.
func (j *Job) Actions() iter.Seq[ActiveAction] {
	return func(yield func(ActiveAction) bool) {
		if j.actions == nil {
			return
		}
		for key, a := range j.actions.all() {
			if a.live > 0 && !yield(ActiveAction{ActionKey: key, Active: a.live, Since: a.since}) {
				return
			}
		}
	}
}

// Dependencies returns the dependencies that are not satisfied, in the order in which they
// were added. The result is nil if the job never had a dependency, and empty but not nil if
// all are satisfied: a listing shows the two differently.
func (j *Job) Dependencies() []string {
	if j.rare == nil || len(j.rare.deps.items) == 0 {
		return nil
	}
	out := []string{}
	for desc, d := range j.rare.deps.all() {
		if !d.satisfied {
			out = append(out, desc)
		}
	}
	return out
}

// WaitsFor reports whether the job has a dependency that is not satisfied.
func (j *Job) WaitsFor(description string) bool {
	d := j.dependency(description)
	return d != nil && !d.satisfied
}

// HasDependency reports whether the job ever had a dependency, satisfied or not.
func (j *Job) HasDependency(description string) bool { return j.dependency(description) != nil }

// Cause returns the first exception of severity 0, which ended the job unless finish came first;
// false if there was none.
func (j *Job) Cause() (Exception, bool) {
	if j.worst == nil || j.worst.Severity != 0 {
		return Exception{}, false
	}
	return *j.worst, true
}

// Exception returns what a listing shows: the first of the most severe; false if there was none.
func (j *Job) Exception() (Exception, bool) {
	if j.worst == nil {
		return Exception{}, false
	}
	return *j.worst, true
}

// WaitStatus returns the status of finish, as wait(2) gives it, and false before that.
func (j *Job) WaitStatus() (int, bool) { return int(j.waitStatus), j.Finished() }

// ExitCode returns the exit code of the finish status, or of the wait status in the cause of a
// job that did not finish. A signal n gives 128+n. It returns false if there is no status.
func (j *Job) ExitCode() (int, bool) {
	switch cause, ok := j.Cause(); {
	case j.Finished():
		return exitCode(j.waitStatus), true
	case ok && cause.WaitStatus.Set:
		return exitCode(cause.WaitStatus.Value), true
	default:
		return 0, false
	}
}

// exitCode converts a status of wait(2) as a shell does.
func exitCode(status int32) int {
	if signal := int(status & 0x7f); signal != 0 {
		return 128 + signal
	}
	return int(status >> 8 & 0xff)
}

// Success reports whether the finish status is 0 and no fatal exception came before it.
func (j *Job) Success() bool { return j.success }

// Result returns how the job ended, by the rules of a listing: completed after a success; else
// canceled or timeout, if [Job.Exception] returns one of that type, which says when and who;
// else failed. It returns false before CLEANUP. Until INACTIVE it can still change: a cancel
// after a finish with an exit code other than 0 lists as canceled.
func (j *Job) Result() (Result, bool) {
	switch {
	case !j.state.In(StateCleanup | StateInactive):
		return 0, false
	case j.rare != nil && j.rare.summary != nil:
		return j.rare.summary.Result, j.rare.summary.Result != 0
	case j.success:
		return ResultCompleted, true
	case j.worst != nil && j.worst.Type == "cancel":
		return ResultCanceled, true
	case j.worst != nil && j.worst.Type == "timeout":
		return ResultTimeout, true
	default:
		return ResultFailed, true
	}
}

// Annotations returns the annotations as a JSON object of the caller's, merged as
// [MergeAnnotations] does at each call: those of alloc, and memos under the key user; nil if none.
func (j *Job) Annotations() json.RawMessage { return j.notes.merged() }

// Updates yields the path and the value of each jobspec update in the order of the log. Applied
// in this order to the submitted jobspec, they give the current one. The job owns the values.
func (j *Job) Updates() iter.Seq2[string, json.RawMessage] {
	return func(yield func(string, json.RawMessage) bool) {
		if j.rare == nil {
			return
		}
		for _, u := range j.rare.updates {
			if !yield(u.Path, u.Value) {
				return
			}
		}
	}
}

// Expiration returns when the resources expire by the last resource-update; 0 means never.
// It returns false if there was no update: then the expiration in R holds.
func (j *Job) Expiration() (eventlog.Timestamp, bool) {
	if j.rare == nil {
		return 0, false
	}
	return j.rare.expiration, j.rare.expirationSet
}

// PriorityOf returns the priority of a job by RFC 30: 0 for one on hold, [MaxPriority] for an
// expedited one, else the computed priority.
func PriorityOf(urgency int, computed uint32) uint32 {
	switch urgency {
	case UrgencyHold:
		return 0
	case UrgencyExpedite:
		return MaxPriority
	default:
		return computed
	}
}
