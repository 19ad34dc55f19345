package jobstate

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate/jobid"
)

// Apply folds one entry of the job's log into the job. It is the only way a job
// changes, in a running system and in a replay alike (invariant I5), and it is
// lenient where the reference is: an event without effect is Ignored, with the
// reason. An event that RFC 21 does not allow here, or whose context is
// malformed, is refused with an EventError, and the job is as before (I6). Of
// an ignored event the context is only checked to be a JSON object.
//
// An entry that is to the byte the one before it, the time included, is
// IgnoredDuplicate: a store has repeated an append. Whoever writes a log gives
// two events that are both meant, as two starts of one prolog, different
// timestamps.
//
// Apply retains nothing of e. It allocates what the job keeps (descriptions,
// annotations, updates, an exception) and for the strings, idsets and unknown
// keys of a context, and nothing in the events of a plain life. It costs O(1) in
// the length of the log.
func (j *Job) Apply(e eventlog.Entry) (Outcome, error) {
	outcome, err := j.apply(e)
	if err != nil {
		return 0, &EventError{ID: j.id, Event: clip(e.Name), State: j.State(), Err: err}
	}
	return outcome, nil
}

func (j *Job) apply(e eventlog.Entry) (Outcome, error) {
	if j.Closed() {
		return 0, ErrClosed
	}
	if !validTime(e.Timestamp) {
		return 0, ErrTime
	}
	if len(e.Context) > 0 && !isObject(e.Context) {
		return 0, &ContextError{Event: clip(e.Name), Offset: 0, Err: errType}
	}
	k := kindOf(e.Name)
	state, row := j.State(), &table[k]
	mark := markOf(k, e)
	outcome, when := row.reason, ""
	var err error
	switch {
	case mark == j.last:
		return IgnoredDuplicate, nil
	case k == kUnknown:
		outcome, err = IgnoredUnknown, checkData(e)
	case j.submitted == (k == kSubmit): // submit is first, and once
		err = ErrTransition
	case state.In(row.ignores):
		err = checkData(e)
	case !state.In(row.folds):
		err = ErrTransition
	default:
		if !k.hasContext() {
			err = checkData(e)
		}
		if err == nil {
			outcome, when, err = j.fold(k, e)
		}
	}
	if err != nil {
		return 0, err
	}
	j.last = mark
	if outcome == Applied {
		j.enter(k.next(state, when), k, e.Timestamp)
	}
	return outcome, nil
}

// checkData reports why an entry could not be in a log although nothing of it
// is decoded: what is in memory must be able to be in the log.
func checkData(e eventlog.Entry) error {
	if e.Name == "" || !utf8.ValidString(e.Name) || strings.IndexByte(e.Name, 0) >= 0 {
		return eventlog.ErrEntry
	}
	if len(e.Context) == 0 {
		return nil
	}
	if err := checkValue(e.Context); err != nil {
		return &ContextError{Event: clip(e.Name), Offset: 0, Err: err}
	}
	return nil
}

// enter moves the job to state s at time t.
func (j *Job) enter(s State, k kind, t eventlog.Timestamp) {
	if k == kSubmit {
		j.entered[StateNew.index()] = t
		j.changed = t
	}
	if s == j.State() {
		return
	}
	if j.state == StateSched && s == StatePriority {
		j.prioritized = false // until the next priority event
	}
	j.state, j.changed = s, t
	if i := s.index(); j.entered[i] == 0 {
		j.entered[i] = t
	}
	if s == StateInactive {
		j.trim()
	}
}

// trim gives back what a job needs no more once its log is closed.
func (j *Job) trim() {
	j.deps.index, j.actions.index, j.flagSet.index = nil, nil, nil
}

// fold takes the event into the job, all but the change of state, and returns
// the condition that chooses the edge. After an error nothing has changed.
func (j *Job) fold(k kind, e eventlog.Entry) (Outcome, string, error) {
	switch k {
	case kSubmit:
		return j.foldSubmit(e.Context)
	case kInvalidate:
		j.invalid = true
	case kDependencyAdd:
		return j.foldDependencyAdd(e.Context)
	case kDependencyRemove:
		return j.foldDependencyRemove(e.Context)
	case kPriority:
		var c PriorityContext
		if err := c.decode(e.Context); err != nil {
			return 0, "", err
		}
		j.priority, j.prioritized = c.Priority, true
	case kUrgency:
		var c UrgencyContext
		if err := c.decode(e.Context); err != nil {
			return 0, "", err
		}
		j.urgency = c.Urgency
	case kJobspecUpdate:
		var c JobspecUpdateContext
		if err := c.decode(e.Context); err != nil {
			return 0, "", err
		}
		j.updates = append(j.updates, c.Updates...)
	case kResourceUpdate:
		var c ResourceUpdateContext
		if err := c.decode(e.Context); err != nil {
			return 0, "", err
		}
		j.expiration, j.expirationSet = c.Expiration, true
	case kSetFlags:
		return j.foldSetFlags(e.Context)
	case kMemo:
		var c MemoContext
		if err := c.decode(e.Context); err != nil {
			return 0, "", err
		}
		j.notes.mergeAt("user", c.Values)
	case kException:
		return j.foldException(e)
	case kPrologStart, kEpilogStart, kPrologFinish, kEpilogFinish:
		return j.foldAction(k, e)
	default:
		return j.foldRun(k, e.Context)
	}
	return Applied, "", nil
}

// foldRun takes in the events from alloc to clean.
func (j *Job) foldRun(k kind, raw json.RawMessage) (Outcome, string, error) {
	switch k {
	case kAlloc:
		var c AllocContext
		if err := c.decode(raw); err != nil {
			return 0, "", err
		}
		j.allocated, j.wasAllocated = true, true
		if c.Annotations != nil {
			j.notes.merge(c.Annotations)
		}
	case kStart:
		j.started = true
	case kFinish:
		var c FinishContext
		if err := c.decode(raw); err != nil {
			return 0, "", err
		}
		if j.finished {
			return IgnoredFinished, "", nil
		}
		_, fatal := j.Cause()
		j.finished, j.waitStatus, j.success = true, c.Status, c.Status == 0 && !fatal
	case kRelease:
		var c ReleaseContext
		if err := c.decode(raw); err != nil {
			return 0, "", err
		}
		j.finalRelease = j.finalRelease || c.Final
	case kFree:
		if !j.allocated {
			return IgnoredFreed, "", nil
		}
		j.allocated = false
	}
	return Applied, "", nil
}

func (j *Job) foldSubmit(raw json.RawMessage) (Outcome, string, error) {
	var c SubmitContext
	if err := c.decode(raw); err != nil {
		return 0, "", err
	}
	if c.Version > LogVersion {
		return 0, "", ErrVersion
	}
	j.submitted, j.state = true, StateNew
	j.userid, j.urgency, j.flags, j.version = c.UserID, c.Urgency, c.Flags, int32(c.Version)
	if c.Version == 0 {
		return Applied, whenOld, nil
	}
	return Applied, "", nil
}

func (j *Job) foldDependencyAdd(raw json.RawMessage) (Outcome, string, error) {
	var c DependencyAddContext
	if err := c.decode(raw); err != nil {
		return 0, "", err
	}
	if d := j.deps.get(c.Description); d != nil {
		if d.satisfied {
			return 0, "", ErrDependency
		}
		return IgnoredDependency, "", nil
	}
	j.deps.put(c.Description, dependency{})
	return Applied, "", nil
}

func (j *Job) foldDependencyRemove(raw json.RawMessage) (Outcome, string, error) {
	var c DependencyRemoveContext
	if err := c.decode(raw); err != nil {
		return 0, "", err
	}
	d := j.deps.get(c.Description)
	if d == nil || d.satisfied {
		return IgnoredDependency, "", nil
	}
	d.satisfied = true
	return Applied, "", nil
}

func (j *Job) foldSetFlags(raw json.RawMessage) (Outcome, string, error) {
	var c SetFlagsContext
	if err := c.decode(raw); err != nil {
		return 0, "", err
	}
	for _, name := range c.Flags {
		if f := flagOf(name); f != 0 {
			j.flags |= f
		} else {
			j.flagSet.put(name, struct{}{})
		}
	}
	return Applied, "", nil
}

// flagOf returns the flag of a name that set-flags may give, 0 for one that
// has no bit in the mask.
func flagOf(name string) Flags {
	switch name {
	case "debug":
		return FlagDebug
	case "waitable":
		return FlagWaitable
	case "novalidate":
		return FlagNoValidate
	default:
		return 0
	}
}

func (j *Job) foldException(e eventlog.Entry) (Outcome, string, error) {
	var c ExceptionContext
	if err := c.decode(e.Context); err != nil {
		return 0, "", err
	}
	if c.Severity == 0 && j.state == StateNew {
		return 0, "", ErrTransition // a job that was never validated has nothing to clean up
	}
	if j.worst == nil || c.Severity < j.worst.Severity {
		j.worst = &Exception{
			Time: e.Timestamp, Type: c.Type, Severity: c.Severity, Note: c.Note,
			UserID: c.UserID, WaitStatus: c.WaitStatus,
		}
	}
	if c.Severity != 0 {
		return Applied, "", nil
	}
	if c.Type == "scheduler-restart" {
		j.allocated = false // the new scheduler does not know the allocation
	}
	return Applied, whenFatal, nil
}

func (j *Job) foldAction(k kind, e eventlog.Entry) (Outcome, string, error) {
	kind, letter := ActionProlog, "p"
	if k == kEpilogStart || k == kEpilogFinish {
		kind, letter = ActionEpilog, "e"
	}
	if k == kPrologFinish || k == kEpilogFinish {
		c := ActionFinishContext{Kind: kind}
		if err := c.decode(e.Context); err != nil {
			return 0, "", err
		}
		a := j.actions.get(letter + c.Description)
		if a == nil || a.live == 0 {
			return IgnoredAction, "", nil
		}
		j.endAction(letter+c.Description, a, c.Status != 0)
		return Applied, "", nil
	}
	c := ActionStartContext{Kind: kind}
	if err := c.decode(e.Context); err != nil {
		return 0, "", err
	}
	if kind == ActionProlog && j.started {
		return IgnoredStarted, "", nil
	}
	a := j.actions.get(letter + c.Description)
	if a == nil {
		j.actions.put(letter+c.Description, action{kind: kind})
		a = j.actions.get(letter + c.Description)
	}
	if a.live == 0 {
		a.since = e.Timestamp
	}
	a.live++
	if kind == ActionProlog {
		j.livePrologs++
	} else {
		j.liveEpilogs++
	}
	return Applied, "", nil
}

// endAction counts a finish of a, which is live.
func (j *Job) endAction(key string, a *action, failed bool) {
	a.live--
	if a.kind == ActionProlog {
		j.livePrologs--
		if failed && !a.failed {
			j.failedPrologs++
		}
	} else {
		j.liveEpilogs--
	}
	a.failed = a.failed || failed
	if a.live == 0 && !a.failed {
		j.actions.del(key) // nothing is left to know of it
	}
}

// Replay folds a whole log. On an error, a ReplayError, it returns the job as
// folded up to the line at fault, which is named. A torn last line is such an
// error (eventlog.ErrTorn): the complete entries before it are folded. An
// empty log gives a job without a submit, and no error.
func Replay(id jobid.ID, log []byte) (*Job, error) {
	j := NewJob(id)
	line := 0
	for e, err := range eventlog.Entries(log) {
		line++
		if err == nil {
			_, err = j.Apply(e)
		}
		if err != nil {
			return j, &ReplayError{ID: id, Line: line, Offset: lineOffset(log, line), Err: err}
		}
	}
	return j, nil
}

// lineOffset returns where line n of a log, counted from 1, begins.
func lineOffset(log []byte, n int) int64 {
	offset := 0
	for ; n > 1; n-- {
		offset += 1 + bytes.IndexByte(log[offset:], '\n')
	}
	return int64(offset)
}
