package jobstate

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/jsonobj"
	"github.com/joblife/joblife/internal/jsonscan"
)

// Level says how grave a finding is. The zero Level is invalid.
type Level uint8

// The levels of findings.
const (
	// LevelNote: legal, or of no effect, but worth knowing.
	LevelNote Level = 1 + iota
	// LevelError: the log violates RFC 18 or RFC 21.
	LevelError
)

// String returns "note" or "error"; another value prints as Level(n).
func (l Level) String() string {
	switch l {
	case LevelNote:
		return "note"
	case LevelError:
		return "error"
	default:
		return "Level(" + itoa(int(l)) + ")"
	}
}

// MaxFindings is the largest number of findings that Validate returns. Where a
// log has more, one that says so takes the last place.
const MaxFindings = 1000

// Finding is one thing that Validate says of a log.
type Finding struct {
	Level  Level
	Line   int    // from 1
	Offset int64  // of the line's first byte, from 0
	Event  string // the event's name, cut at 64 bytes; "" where the line has none
	Text   string // one line
}

// String returns the finding in one line: `line 7: free: error: …`.
func (f Finding) String() string {
	s := fmt.Sprintf("line %d: ", f.Line)
	if f.Event != "" {
		s += f.Event + ": "
	}
	return s + f.Level.String() + ": " + f.Text
}

// Validate reads a log and names what is wrong with it by RFC 18 and RFC 21:
// lines that are no entries, missing, mistyped and out-of-range keys, events
// out of order, resources given back while a prolog or an epilog is active,
// anything after clean. Findings come in the order of the lines; none is a
// good log. A log that ends before clean is good as far as it goes.
//
// A bad line is judged by itself: the lines after it are read as if it had
// been right, as far as what it says can be read. Validate costs O(len(log)) and keeps no reference to log.
func Validate(log []byte) []Finding {
	v := validator{job: NewJob(0)}
	if len(log) == 0 {
		v.line = 1
		v.add(LevelError, "the log is empty")
	}
	for len(log) > 0 && len(v.findings) <= MaxFindings {
		v.line++
		line, rest, whole := bytes.Cut(log, []byte("\n"))
		v.event = ""
		if whole {
			v.check(log[:len(line)+1])
		} else {
			v.add(LevelError, "the last line is torn: it has no newline")
		}
		v.offset += int64(len(log) - len(rest))
		log = rest
	}
	if len(v.findings) > MaxFindings {
		v.findings = v.findings[:MaxFindings]
		last := &v.findings[MaxFindings-1]
		last.Event, last.Text = "", "and more: the rest is not listed"
	}
	return v.findings
}

// validator is a Validate under way.
type validator struct {
	job      *Job
	ev       Event
	findings []Finding
	released idset.Set
	freed    bool // a free stood where it may

	releasedAll bool // a release named all ranks
	line        int
	offset      int64
	event       string
	time        eventlog.Timestamp
}

func (v *validator) add(l Level, format string, args ...any) {
	v.findings = append(v.findings, Finding{
		Level: l, Line: v.line, Offset: v.offset, Event: v.event, Text: fmt.Sprintf(format, args...),
	})
}

// check judges one line and folds it.
func (v *validator) check(line []byte) {
	e, err := eventlog.Parse(line)
	if err != nil {
		var bad *eventlog.SyntaxError
		if errors.As(err, &bad) {
			v.add(LevelError, "not an entry: offset %d: %v", v.offset+bad.Offset, bad.Err)
		} else {
			v.add(LevelError, "not an entry: %v", err)
		}
		return
	}
	v.event = clip(e.Name)
	if v.job.Closed() {
		v.add(LevelError, "stands after the end of the log")
		return
	}
	if e.Timestamp < v.time {
		v.add(LevelNote, "is older than the entry before it")
	}
	v.time = e.Timestamp
	k := kindOf(e.Name)
	bad := v.ev.Decode(e)
	switch {
	case bad == nil && v.job.last == markOf(&v.ev):
		v.add(LevelNote, "repeats the entry before it")
		return
	case bad == nil && !k.ofJob():
		_, _ = v.job.ApplyEvent(&v.ev)
		return
	case !v.job.submitted && k != kSubmit:
		v.add(LevelError, "stands before submit, which must be the first event")
		v.assume(kSubmit, e)
	}
	if k.ofJob() {
		v.judge(k, bad == nil)
	}
	if bad == nil {
		_, bad = v.job.ApplyEvent(&v.ev)
	}
	if bad != nil {
		v.refused(k, e, bad)
	}
}

// refused names why the reducer refused an event, and goes on as if it had
// been right where the order was.
func (v *validator) refused(k kind, e eventlog.Entry, err error) {
	if refusal := (*EventError)(nil); errors.As(err, &refusal) {
		err = refusal.Err
	}
	if errors.Is(err, ErrTransition) {
		return // judge has named it
	}
	v.add(LevelError, "%v", err)
	if k.ofJob() && v.job.State().In(table[k].folds) {
		v.assume(k, e)
	}
}

// assume does what the event does, as far as its context can be read.
func (v *validator) assume(k kind, e eventlog.Entry) {
	j, when := v.job, ""
	switch k {
	case kSubmit:
		j.submitted, j.state, j.version = true, StateNew, LogVersion
		if e.Name == EventSubmit && !hasKey(e.Context, "version") {
			j.version, when = 0, whenOld
		}
	case kAlloc:
		j.allocated, j.wasAllocated = true, true
	case kFinish:
		j.finished = true
	case kRelease:
		j.finalRelease = true
	case kException:
		if string(peek(e.Context, "severity")) == "0" && j.State() != StateNew {
			when = whenFatal
		}
	case kPrologFinish, kEpilogFinish:
		description, _ := jsonscan.String(peek(e.Context, "description"))
		if a := j.active(k.action(), description); a != nil {
			j.endAction(actionKey{k.action(), description}, a, false)
		}
	}
	j.last = entryMark{}
	j.enter(k.next(j.State(), when), k, e.Timestamp)
}

// judge names what is wrong with an event in the state before it; decoded tells
// whether its context was good.
func (v *validator) judge(k kind, decoded bool) {
	j := v.job
	state := j.State()
	switch {
	case k == kSubmit && j.submitted:
		v.add(LevelError, "stands twice")
		return
	case k == kValidate && state == StateDepend && j.version == 0:
		// Some writers had validate before they had version.
	case !state.In(table[k].proper):
		v.add(LevelError, "is out of order: the job is in %v", state)
		return
	}
	v.judgeOrder(k)
	if decoded {
		v.judgeContext(k)
	}
}

// judgeOrder names what does not depend on the context.
func (v *validator) judgeOrder(k kind) {
	j := v.job
	switch k {
	case kDepend:
		if names := j.Dependencies(); len(names) > 0 {
			v.add(LevelError, "dependencies are not satisfied: %d, the first is %q", len(names), clip(names[0]))
		}
	case kAlloc:
		if j.wasAllocated {
			v.add(LevelError, "stands twice")
		}
	case kStart:
		v.judgeStart()
	case kFinish:
		switch {
		case j.finished:
			v.add(LevelError, "stands twice")
		case !j.started:
			v.add(LevelNote, "the job did not start")
		}
	case kFree:
		v.judgeFree()
	case kClean:
		v.judgeClean()
	case kPrologStart:
		if j.started {
			v.add(LevelError, "the job has started: a prolog can not hold it any more")
		}
	}
}

// judgeContext names what is wrong with a context that could be decoded.
func (v *validator) judgeContext(k kind) {
	raw := v.ev.entry.Context
	switch k {
	case kStart, kFree, kClean:
		if !isEmpty(raw) {
			v.add(LevelError, "its context must be empty")
		}
	case kValidate, kInvalidate, kDepend, kFluxRestart:
		if !isEmpty(raw) {
			v.add(LevelNote, "has a context, which RFC 21 does not define")
		}
	case kResourceUpdate:
		if !jsonscan.IsInteger(peek(raw, "expiration")) {
			v.add(LevelNote, "expiration is a real number")
		}
	case kSubmit:
		if v.ev.submit.Version == 0 {
			v.add(LevelNote, "has no version: the log follows the rules before version 1")
		}
	case kJobspecUpdate:
		if len(v.ev.jobspecUpdate.Updates) == 0 {
			v.add(LevelError, "sets nothing")
		}
	case kPriority:
		if n, _ := jsonscan.Int64(peek(raw, "priority")); n > MaxPriority {
			v.add(LevelError, "priority is above %d", uint32(MaxPriority))
		}
	case kDependencyAdd:
		v.judgeDependencyAdd(v.ev.dependencyAdd.Description)
	case kDependencyRemove:
		v.judgeDependencyRemove(v.ev.dependencyRem.Description)
	case kException:
		if v.ev.exception.Severity == 0 && v.job.State() == StateNew {
			v.add(LevelError, "is fatal, and the job is in NEW")
		}
		if !hasKey(raw, "note") {
			v.add(LevelError, "%v of exception: note: %v", ErrContext, jsonobj.ErrMissing)
		}
	case kRelease:
		v.judgeRelease()
	case kPrologFinish, kEpilogFinish:
		c := &v.ev.actionFinish
		if v.job.active(c.Kind, c.Description) == nil {
			v.add(LevelNote, "no action %q is active", clip(c.Description))
		}
	}
}

// isEmpty reports whether a context has no keys.
func isEmpty(raw []byte) bool {
	cur := jsonscan.Object(raw)
	return len(raw) == 0 || !cur.Next()
}

func (v *validator) judgeDependencyAdd(description string) {
	if d := v.job.deps.get(description); d != nil && !d.satisfied {
		v.add(LevelNote, "dependency %q is there already", clip(description))
	}
}

func (v *validator) judgeDependencyRemove(description string) {
	switch d := v.job.deps.get(description); {
	case d == nil:
		v.add(LevelError, "dependency %q was never added", clip(description))
	case d.satisfied:
		v.add(LevelError, "dependency %q was removed before", clip(description))
	}
}

func (v *validator) judgeStart() {
	j := v.job
	if !j.allocated {
		v.add(LevelError, "the job has no resources")
	}
	if j.started {
		v.add(LevelError, "stands twice")
	}
	for key, a := range j.actions.all() {
		switch {
		case key.kind != ActionProlog:
		case a.live > 0:
			v.add(LevelError, "prolog %q has not finished", clip(key.description))
		case a.failed:
			v.add(LevelError, "prolog %q has failed", clip(key.description))
		}
	}
}

func (v *validator) judgeRelease() {
	c := &v.ev.release
	switch {
	case !v.job.wasAllocated:
		v.add(LevelError, "the job has no resources")
	case v.job.finalRelease:
		v.add(LevelError, "stands after the final release")
	case v.freed:
		v.add(LevelError, "the resources are free already")
	case v.releasedAll:
		v.add(LevelError, "stands after the release of all ranks")
	}
	if c.Ranks.All {
		v.releasedAll = true
		return
	}
	if twice := idset.Intersect(&v.released, c.Ranks.Set); !twice.IsEmpty() {
		v.add(LevelError, "releases ranks a second time: %s", clip(twice.String()))
	}
	v.released.UnionWith(c.Ranks.Set)
}

func (v *validator) judgeFree() {
	j := v.job
	switch {
	case !j.wasAllocated:
		v.add(LevelError, "the job has no resources")
	case !j.allocated:
		v.add(LevelError, "the resources are free already")
	case j.started && !j.finalRelease:
		v.add(LevelError, "no final release came before it")
	}
	v.freed = true
	v.judgeIdle()
}

// judgeIdle names the prologs and epilogs that are active.
func (v *validator) judgeIdle() {
	for a := range v.job.Actions() {
		v.add(LevelError, "%v %q has not finished", a.Kind, clip(a.Description))
	}
}

func (v *validator) judgeClean() {
	j := v.job
	switch {
	case j.allocated:
		v.add(LevelError, "the job still holds resources")
	case j.started && !j.finalRelease && !v.freed:
		v.add(LevelError, "no final release came before it")
	case j.started && !j.finished:
		v.add(LevelNote, "the job started and did not finish")
	}
	v.judgeIdle()
}
