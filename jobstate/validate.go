package jobstate

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/guard"
	"github.com/joblife/joblife/internal/jsonobj"
)

// Level says how serious a finding is. The zero Level is invalid.
type Level uint8

// The levels of findings.
const (
	LevelNote  Level = 1 + iota // the event is legal but unusual, or has no effect
	LevelError                  // the log violates RFC 18, RFC 21 or the dialect
)

// String returns "note" or "error"; another value prints as Level(n).
func (l Level) String() string { return guard.Name("Level", l, "note", "error") }

const maxFindings = 1000

// Finding is one fault or note that Validate reports.
type Finding struct {
	Level  Level
	Line   int    // from 1
	Offset int64  // of the line's first byte, from 0
	Event  string // the event's name, cut at 64 bytes; "" if the line has none
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

// Validate lists what is wrong with a log by RFC 18, RFC 21 and the dialect: lines that are not
// entries; keys that are missing, of the wrong type or out of range; events out of order;
// resources given back while a prolog or epilog is active; epilogs that start too late; anything
// after clean. Findings come in the order of the lines. A log is valid if none has LevelError; it
// may end before clean. An entry older than the one before it is a note: a clock was set back.
// Validate does not see R, so it does not find a release of ranks that the job never had.
//
// After a bad line, Validate goes on as if the line were legal, as far as it can be read. It
// returns at most 1000 findings; the last one then says that there are more, which may be
// errors. The time is linear in the log. Validate keeps no reference to the log.
func Validate(log []byte) []Finding {
	v := validator{job: NewJob(0), attempts: make(map[ActionKey]uint32)}
	if len(log) == 0 {
		v.line = 1
		v.add(LevelError, "the log is empty")
	}
	for len(log) > 0 && len(v.findings) <= maxFindings {
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
	if len(v.findings) > maxFindings {
		v.findings = v.findings[:maxFindings]
		last := &v.findings[maxFindings-1]
		last.Event, last.Text = "", "there are more findings"
	}
	return v.findings
}

// validator is a Validate under way.
type validator struct {
	job      *Job
	ev       Event
	findings []Finding
	released idset.Set
	failed   idset.Set // ranks that an action or an exception said had failed
	freed    bool      // a free came when it may
	over     bool      // the final release came in CLEANUP; before CLEANUP the job itself holds its ranks
	attempts map[ActionKey]uint32

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
		errors.As(err, &bad) // as every error of Parse is
		v.add(LevelError, "not an entry: offset %d: %v", v.offset+bad.Offset, bad.Err)
		return
	}
	v.event = guard.Clip(e.Name)
	bad := v.ev.Decode(e)
	var mark entryMark
	if bad == nil {
		if mark = markOf(&v.ev); v.job.repeats(&v.ev, mark) {
			v.add(LevelNote, "repeats the entry before it")
			return
		}
	}
	if v.job.Closed() {
		v.add(LevelError, "comes after the end of the log")
		return
	}
	if e.Timestamp < v.time {
		v.add(LevelNote, "is older than the entry before it")
	}
	v.time = e.Timestamp
	k, _, _ := kindOf(e.Name)
	if (bad != nil || k.ofJob()) && !v.job.Submitted() && k != kSubmit {
		v.add(LevelError, "comes before submit, which must be the first event")
		v.assume(kSubmit, e)
	}
	if k.ofJob() {
		v.judge(k, bad == nil)
	}
	if bad == nil {
		_, bad = v.job.apply(&v.ev, mark)
	}
	if bad != nil {
		v.refused(k, e, bad)
	}
}

// refused names why an event was refused. If only its order was right, it goes on as if all was.
func (v *validator) refused(k kind, e eventlog.Entry, err error) {
	if err == ErrTransition {
		return // judge has named it
	}
	text := bare(err)
	if rest, ok := strings.CutPrefix(text, errContext.Error()+" of "+v.event); ok {
		text = errContext.Error() + rest // the finding has the name of the event
	}
	v.add(LevelError, "%s", text)
	if k.ofJob() && v.job.State().In(table[k].folds) {
		v.assume(k, e)
	}
}

// assume does what the event would do, as far as its context can be read.
func (v *validator) assume(k kind, e eventlog.Entry) {
	j, when := v.job, ""
	switch k {
	case kSubmit:
		j.state, j.version = StateNew, LogVersion
		if e.Name == EventSubmit && !hasKey(e.Context, "version") {
			j.version, when = 0, whenOld
		}
	case kAlloc:
		j.allocated, j.wasAllocated = true, true
	case kFinish:
		j.finishTime = e.Timestamp
	case kRelease:
		j.finalRelease = true
	case kException:
		if string(peek(e.Context, "severity")) == "0" && j.State() != StateNew {
			when = whenFatal
		}
	case kPrologFinish, kEpilogFinish:
		description, _ := jsonobj.String(peek(e.Context, "description"))
		key := ActionKey{k.action(), description}
		if a := j.active(key); a != nil {
			j.endAction(key, a, false)
		}
	}
	j.last = entryMark{}
	j.enter(k.next(j.State(), when), k, e.Timestamp)
}
