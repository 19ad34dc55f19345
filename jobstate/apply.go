package jobstate

import (
	"errors"
	"slices"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/internal/guard"
	"github.com/joblife/joblife/internal/jsonobj"
	"github.com/joblife/joblife/jobstate/jobid"
)

// Apply is [Event.Decode] and [Job.ApplyEvent] in one. It retains nothing of e. For the usual
// events of a job it allocates nothing.
func (j *Job) Apply(e eventlog.Entry) (Outcome, error) {
	var ev Event
	if err := ev.Decode(e); err != nil {
		return 0, j.refuse(e.Name, err)
	}
	return j.ApplyEvent(&ev)
}

// ApplyEvent folds the next event of the job's log into the job. An event without effect is
// ignored, and the Outcome has the reason. An event that RFC 21 does not allow here is refused
// with an [EventError], and the job is as before; an empty Event, with [eventlog.ErrEntry].
//
// An entry with the same bytes as the one before it is [IgnoredDuplicate]: a store repeated an
// append. Times and names of RFC 21 are compared exactly, contexts by a checksum of 56 bits. So
// two real events that are alike, such as two starts of one prolog, need different times. Only
// exceptions may repeat: what raises them is told of each, and the second changes nothing.
//
// ApplyEvent retains nothing of ev. It allocates what the job keeps: new descriptions,
// annotations, updates, an exception. Its time is constant on average.
func (j *Job) ApplyEvent(ev *Event) (Outcome, error) {
	outcome, err := j.apply(ev, markOf(ev))
	if err != nil {
		return 0, j.refuse(ev.entry.Name, err)
	}
	return outcome, nil
}

func (j *Job) refuse(event string, err error) error {
	return &EventError{ID: j.id, Event: guard.Clip(event), State: j.State(), Err: err}
}

func (j *Job) apply(ev *Event, mark entryMark) (Outcome, error) {
	switch {
	case ev.entry.Timestamp == 0:
		return 0, errTime
	case j.repeats(ev, mark):
		return IgnoredDuplicate, nil
	case j.Closed():
		return 0, errClosed
	}
	k, state := ev.kind, j.State()
	if !k.ofJob() {
		j.last = mark
		return IgnoredUnknown, nil
	}
	row := &table[k]
	outcome, when := ignoredState, ""
	var err error
	switch {
	case j.Submitted() == (k == kSubmit): // submit is first, and once
		err = ErrTransition
	case state.In(row.folds):
		outcome, when, err = j.fold(ev)
	case !state.In(row.ignores):
		err = ErrTransition
	}
	if err != nil {
		return 0, err
	}
	j.last = mark
	if outcome == Applied {
		j.enter(k.next(state, when), k, ev.entry.Timestamp)
	}
	return outcome, nil
}

// repeats reports whether an event repeats the one before it. Exceptions may.
func (j *Job) repeats(ev *Event, mark entryMark) bool { return mark == j.last && ev.kind != kException }

func (j *Job) enter(s State, k kind, t eventlog.Timestamp) {
	if k == kSubmit {
		j.entered[StateNew.index()] = t
	}
	if s == j.State() {
		return
	}
	if j.state == StateSched && s == StatePriority {
		j.prioritized = false // until the next priority event
	}
	if j.state == StatePriority {
		j.stayed += max(0, t-j.since)
	}
	j.state, j.since = s, t
	if i := s.index(); j.entered[i] == 0 {
		j.entered[i] = t
	}
	if s == StateInactive {
		j.trim()
	}
}

// trim drops what a job with a closed log does not need.
func (j *Job) trim() {
	j.notes.clip()
	if j.actions != nil {
		j.actions.index = nil
	}
	if j.rare != nil {
		j.rare.deps.index, j.rare.flags.index = nil, nil
	}
}

// fold does what the event does to the job, except for the change of state, and
// returns the condition that chooses the edge. After an error nothing has changed.
func (j *Job) fold(ev *Event) (Outcome, string, error) {
	switch ev.kind {
	case kSubmit:
		c := &ev.submit
		if c.Version > LogVersion {
			return 0, "", errVersion
		}
		j.state = StateNew
		j.userid, j.urgency, j.flags, j.version = c.UserID, c.Urgency, c.Flags, uint8(c.Version)
		if c.Version == 0 {
			return Applied, whenOld, nil
		}
	case kInvalidate:
		j.invalid = true
	case kDependencyAdd:
		if d := j.dependency(ev.dependencyAdd.Description); d != nil && d.satisfied {
			return 0, "", errDependency
		} else if d != nil {
			return ignoredDependency, "", nil
		}
		r := j.seldom()
		r.deps.put(ev.dependencyAdd.Description, dependency{})
		r.open++
	case kDependencyRemove:
		d := j.dependency(ev.dependencyRem.Description)
		if d == nil || d.satisfied {
			return ignoredDependency, "", nil
		}
		d.satisfied = true
		j.rare.open--
	case kPriority:
		j.priority, j.prioritized = ev.priority.Priority, true
	case kUrgency:
		j.urgency = ev.urgency.Urgency
	case kJobspecUpdate:
		r := j.seldom()
		for _, u := range ev.jobspecUpdate.Updates {
			r.updates = append(r.updates, Update{Path: u.Path, Value: jsonobj.AppendCompact(make([]byte, 0, len(u.Value)), u.Value)})
		}
	case kResourceUpdate:
		r := j.seldom()
		r.expiration, r.expirationSet = ev.resourceUpdate.Expiration, true
	case kSetFlags:
		for _, name := range ev.setFlags.Flags {
			if f := flagOf(name); f != 0 {
				j.flags |= f
			} else {
				j.seldom().flags.put(name, struct{}{})
			}
		}
	case kMemo:
		j.notes.addMemo(ev.memo.Values)
	case kException:
		return j.foldException(ev.entry.Timestamp, &ev.exception)
	case kPrologStart, kEpilogStart:
		return j.foldActionStart(ev.entry.Timestamp, &ev.start), "", nil
	case kPrologFinish, kEpilogFinish:
		return j.foldActionFinish(&ev.actionFinish), "", nil
	case kPerilogLaunch, kPerilogFail, kPerilogRelease:
		if key, _ := ev.Action(); j.active(key) == nil {
			return ignoredAction, "", nil
		}
	case kAlloc:
		j.allocated, j.wasAllocated = true, true
		if ev.alloc.Annotations != nil {
			j.notes.add(ev.alloc.Annotations)
		}
	case kStart:
		j.started = true
	case kFinish:
		if j.Finished() {
			return ignoredFinished, "", nil
		}
		_, fatal := j.Cause()
		status := ev.finish.Status
		j.waitStatus, j.success = status, status == 0 && !fatal
		j.finishTime = ev.entry.Timestamp
	case kRelease:
		j.finalRelease = j.finalRelease || ev.release.Final
	case kFree:
		if !j.allocated {
			return ignoredFreed, "", nil
		}
		j.allocated = false
	}
	return Applied, "", nil
}

// flagOf returns the flag of a name that set-flags may give, 0 for one that has no bit.
func flagOf(name string) Flags {
	names := [...]string{"debug", "waitable", "novalidate"} // from FlagDebug on
	if i := slices.Index(names[:], name); i >= 0 {
		return FlagDebug << i
	}
	return 0
}

func (j *Job) foldException(t eventlog.Timestamp, c *ExceptionContext) (Outcome, string, error) {
	if c.Severity == 0 && j.state == StateNew {
		return 0, "", ErrTransition // a job that was never validated has nothing to clean up
	}
	if j.worst == nil || c.Severity < j.worst.Severity {
		j.worst = &Exception{
			Time: t, Type: c.Type, Severity: c.Severity, Note: c.Note,
			UserID: c.UserID, WaitStatus: c.WaitStatus,
		}
	}
	if c.Severity != 0 {
		return Applied, "", nil
	}
	j.stopped = j.stopped || !j.Finished()
	if c.Type == "scheduler-restart" {
		j.allocated = false // the new scheduler does not know the allocation
	}
	return Applied, whenFatal, nil
}

// Replay folds a whole log. After an error it returns the job as it was before the line at
// fault, and an *[EventError] that names the line. A torn last line is such an error
// ([eventlog.ErrTorn]). An empty log gives a job without a submit, and no error.
func Replay(id jobid.ID, log []byte) (*Job, error) {
	j := NewJob(id)
	var ev Event // which stays on the stack, as it would not in ReplayWith
	for r := (logReader{log: log}); r.more(); {
		err := r.decode(&ev)
		if err == nil {
			_, err = j.apply(&ev, markOf(&ev))
		}
		if err != nil {
			return j, r.refuse(j, err)
		}
	}
	return j, nil
}

// ReplayWith decodes each line of a log into ev for fold, which passes it to [Job.ApplyEvent]
// and to what else follows the log. It stops at the first fault or refusal, with an error as Replay's.
func (j *Job) ReplayWith(ev *Event, log []byte, fold func(*Event) error) error {
	for r := (logReader{log: log}); r.more(); {
		err := r.decode(ev)
		if err == nil {
			err = fold(ev)
		}
		if err != nil {
			return r.refuse(j, err)
		}
	}
	return nil
}

type logReader struct {
	log         []byte
	start, next int    // offsets of the present line, and of the one after it
	line        int    // the number of the present line
	name        string // of its event
}

func (r *logReader) more() bool { return r.next < len(r.log) }

func (r *logReader) decode(ev *Event) error {
	size, name, err := ev.decodeLine(r.log[r.next:])
	r.start, r.next = r.next, r.next+size+1
	r.name = name
	r.line++
	return err
}

// refuse returns the error of the present line, which has not changed j.
func (r *logReader) refuse(j *Job, err error) error {
	if bare, ok := err.(*EventError); ok { // of ApplyEvent, which does not know the line
		err = bare.Err
	}
	offset := int64(r.start)
	if bad := (*eventlog.SyntaxError)(nil); errors.As(err, &bad) {
		bad.Line = r.line
		bad.Offset += offset
		offset = bad.Offset
	}
	return &EventError{ID: j.id, Line: r.line, Offset: offset, Event: guard.Clip(r.name), State: j.State(), Err: err}
}
