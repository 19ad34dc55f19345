package perilog

import (
	"strconv"
	"strings"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/joblife/joblife/rset"
)

// A Key names an action of a job, as the log does.
type Key struct {
	Kind        jobstate.ActionKind
	Description string
}

// String returns the kind and the description, such as "epilog
// job-manager.epilog".
func (k Key) String() string { return k.Kind.String() + " " + k.Description }

// clip returns the key with at most 64 bytes of the description, which may come
// from a log.
func (k Key) clip() Key {
	k.Description = strings.ToValidUTF8(clip(k.Description), "")
	return k
}

// A JobSpec says what a [Job] is made for.
type JobSpec struct {
	RunJob                // R may be empty: then there is nothing to run
	Holds    HoldsOptions // see [NewHolds]
	Owner    uint32       // the user id that exceptions are raised as: that of the instance
	WholeJob bool         // epilogs give no rank back before they are done
}

// A Job runs the configured prologs and epilogs of one job. It has the [Holds]
// of the job and a [Run] for each action that runs, turns the events of the
// job's log into runs, and what becomes of them into events. It does nothing
// itself: what it wants done comes out of Take.
//
// The embedder gives every event of the job's log to Apply, in the order of the
// log and after it is in the log; tells what happens on the nodes by Report,
// Drained and Offline; and calls Tick at Deadline. It calls Take after each
// event, as an epilog has to start in the log before the next one lets go of
// its ranks, and after each of the others, or several that came together.
//
// Prologs start with the event alloc, all at once. When one fails or is
// canceled, or ends after the job was canceled, every epilog is started in the
// log before that prolog is finished there, so that the nodes are not given
// back in between. Epilogs start at finish, and at the beginning of CLEANUP
// where the job never started and a prolog did; a job on which neither happened
// left nothing to clean. They are launched when no prolog is active any more.
// So exactly one start of each epilog follows any prolog that started.
//
// What an action ends on is let go in the log as it ends, a rank by itself if
// it comes by itself, but for ranks for which a drain is asked: these when the
// drain is confirmed, as a rank where an action failed must not be given to
// another job. Ranks that the executor releases early, where HoldsOptions have
// that free them, go back without an epilog.
//
// A Job must not be copied, and one goroutine at a time may use it. Times are
// those of the caller; one that is before the latest counts as the latest.
type Job struct {
	spec    JobSpec
	holds   *Holds
	actions []*action // prologs first, each kind in the order of the configuration
	now     eventlog.Timestamp

	effects Effects
	spare   Effects // the storage of the effects taken last
	ends    []RankEnd

	stopping bool
	stopAt   eventlog.Timestamp // 0: no deadline
}

// A stage is how far a configured action is.
type stage uint8

const (
	stageIdle      stage = iota // its start is neither in the log nor posted
	stageStarting               // its start is posted
	stageActive                 // its start is in the log
	stageFinishing              // its finish is posted
	stageFinished               // its finish is in the log
)

func (s stage) String() string {
	switch s {
	case stageIdle:
		return "idle"
	case stageStarting:
		return "starting"
	case stageActive:
		return "active"
	case stageFinishing:
		return "finishing"
	case stageFinished:
		return "finished"
	default:
		return "stage(" + strconv.Itoa(int(s)) + ")"
	}
}

// action is a configured action.
type action struct {
	key    Key
	config *ActionConfig
	stage  stage
	run    *Run // nil: not launched, or what became of it was lost
	lost   bool // it was active when the log was read back, and nobody has said what became of it

	unclaimed idset.Set // after a check-in: ranks of the run of which nobody has said that it goes on
	ended     idset.Set // ranks on which it ended, which no posted event says yet
	draining  idset.Set // ranks for which a drain was asked that is not confirmed
	raise     *jobstate.ExceptionContext
	forced    forced
	worst     int32 // the worst wait status of what the log says that it ended on
	earlier   int32 // worst as it was when the run was made: what it ended on before

	raisedEarlier bool // the exception of that was posted

	began, finished eventlog.Timestamp // as the log has it; 0: not yet
}

// forced is an end by force that is to be logged.
type forced struct {
	set    bool
	status int32
	who    string
}

// ActionRequest is what an action wants done.
type ActionRequest struct {
	Action Key
	Request
}

// Effects is what a [Job] wants done, in the order of its fields.
type Effects struct {
	// Post are events to append to the job's log, in this order, BEFORE any
	// other event of the job that comes later; each is to be given to
	// [Job.Apply] once it is there.
	Post []eventlog.Entry
	// Requests are launches, signals and drains, to be done in this order. A
	// launch comes out only after the start of its action was given to Apply,
	// and so AFTER it is durable. Each can be repeated without harm. A drain is
	// to be confirmed by [Job.Drained].
	Requests []ActionRequest
}

// IsEmpty reports whether there is nothing to do.
func (e Effects) IsEmpty() bool { return len(e.Post) == 0 && len(e.Requests) == 0 }

// NewJob returns the actions of a job whose log is still empty. It retains R,
// which is immutable, and copies the rest. The error is a *SpecError if an
// action of the configuration can not run on the job's ranks.
func NewJob(c Config, s JobSpec) (*Job, error) {
	s.Offline = s.Offline.Clone()
	j := &Job{spec: s, holds: NewHolds(s.R, s.Holds)}
	for _, list := range []struct {
		kind    jobstate.ActionKind
		actions []ActionConfig
	}{{jobstate.ActionProlog, c.Prologs}, {jobstate.ActionEpilog, c.Epilogs}} {
		for i := range list.actions {
			if err := j.configure(list.kind, &list.actions[i]); err != nil {
				return nil, err
			}
		}
	}
	return j, nil
}

// configure adds an action.
func (j *Job) configure(kind jobstate.ActionKind, c *ActionConfig) error {
	snapshot := *c // with what a Run would make of it
	spec := c.Spec(j.spec.RunJob)
	if spec.Ranks.IsEmpty() {
		spec.Ranks = idset.Of(0) // none to run on, but a configuration to check
	}
	probe, err := NewRun(spec)
	if err != nil {
		return err
	}
	spec = probe.Spec()
	if want := runKind(kind); spec.Kind != want {
		return &SpecError{Field: "Kind", Reason: "is " + spec.Kind.String() + " among the " + want.String() + "s"}
	}
	snapshot.Description, snapshot.Command, snapshot.Tolerate = spec.Description, spec.Command, spec.Tolerate
	snapshot.KillTimeout, snapshot.Cancel = spec.KillTimeout, spec.Cancel
	key := Key{kind, snapshot.Description}
	if j.action(key) != nil {
		return &SpecError{Field: "Description", Reason: "names two actions of one kind"}
	}
	j.actions = append(j.actions, &action{key: key, config: &snapshot})
	return nil
}

// runKind returns the kind of run that an action of the log is.
func runKind(kind jobstate.ActionKind) RunKind {
	if kind == jobstate.ActionProlog {
		return RunProlog
	}
	return RunEpilog
}

// action returns the configured action of that name, or nil.
func (j *Job) action(key Key) *action {
	for _, a := range j.actions {
		if a.key == key {
			return a
		}
	}
	return nil
}

// Holds returns who holds what of the job. The caller must not change it.
func (j *Job) Holds() *Holds { return j.holds }

// Feed is [Holds.Feed]: what the ledger of the job may free now. It is empty
// while events are to come that hold something.
func (j *Job) Feed(l *rset.Ledger) rset.Fragment {
	if j.startsDue() {
		return rset.Fragment{R: new(rset.R)}
	}
	return j.holds.Feed(l)
}

// MayStart reports whether the job may be started: nothing holds it, see
// [Holds.MayStart], and every prolog has ended in success, one that was not
// started yet included.
func (j *Job) MayStart() bool {
	for _, a := range j.actions {
		if a.key.Kind == jobstate.ActionProlog && a.stage != stageFinished {
			return false
		}
	}
	return j.holds.MayStart()
}

// MayFree reports whether the event free may be posted: nothing holds the job,
// see [Holds.MayFree], and no epilog is about to.
func (j *Job) MayFree() bool { return j.holds.MayFree() && !j.startsDue() }

// MayClean reports whether the event clean may be posted: nothing is active,
// see [Holds.MayClean], and no epilog is about to be.
func (j *Job) MayClean() bool { return j.holds.MayClean() && !j.startsDue() }

// startsDue reports whether an epilog is to start, or its start is not in the
// log yet.
func (j *Job) startsDue() bool {
	due := j.epilogsDue()
	for _, a := range j.actions {
		if a.key.Kind == jobstate.ActionEpilog && (a.stage == stageStarting || due && a.stage == stageIdle) {
			return true
		}
	}
	return false
}

// Deadline returns the time at which Tick is to be called next, and false if
// there is none.
func (j *Job) Deadline() (eventlog.Timestamp, bool) {
	var first eventlog.Timestamp
	for _, a := range j.actions {
		if a.run == nil {
			continue
		}
		if t, ok := a.run.Deadline(); ok && (first == 0 || t < first) {
			first = t
		}
	}
	if j.stopping && j.stopAt != 0 && !j.stopped() && (first == 0 || j.stopAt < first) {
		first = j.stopAt
	}
	return first, first != 0
}

// Elapsed returns how long the job has spent in its prologs, as for moving its
// expiration by as much: from the first start of one to the last finish in the
// log, 0 before that.
func (j *Job) Elapsed() fsd.Duration {
	var first, last eventlog.Timestamp
	for _, a := range j.actions {
		if a.key.Kind != jobstate.ActionProlog || a.finished == 0 {
			continue
		}
		if first == 0 || a.began < first {
			first = a.began
		}
		last = max(last, a.finished)
	}
	return fsd.Duration(max(0, last-first))
}

// Take returns what is to be done and forgets it. The slices are valid until the
// next call of Take.
func (j *Job) Take() Effects {
	if !j.stopped() {
		j.react()
	}
	out := j.effects
	clear(j.spare.Post)
	clear(j.spare.Requests)
	j.effects = Effects{Post: j.spare.Post[:0], Requests: j.spare.Requests[:0]}
	j.spare = out
	return out
}

// advance sets the time, which never goes back and is one that an event can have.
func (j *Job) advance(now eventlog.Timestamp) {
	if now > j.now && isTime(now) {
		j.now = now
	}
}
