package jobstate

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/internal/guard"
	"github.com/joblife/joblife/internal/jsonobj"
	"github.com/joblife/joblife/internal/logline"
)

// Event is one entry of a log, decoded and checked once for all that fold the log. The zero
// Event is ready for Decode. One Event can decode a whole log: it reuses its memory.
type Event struct {
	_ guard.NoCopy

	entry eventlog.Entry
	kind  kind
	mem   scratch

	submit         SubmitContext
	jobspecUpdate  JobspecUpdateContext
	resourceUpdate ResourceUpdateContext
	setFlags       SetFlagsContext
	dependencyAdd  DependencyAddContext
	dependencyRem  DependencyRemoveContext
	priority       PriorityContext
	urgency        UrgencyContext
	alloc          AllocContext
	start          ActionStartContext
	launch         ActionLaunchContext
	fail           ActionFailContext
	actionRelease  ActionReleaseContext
	actionFinish   ActionFinishContext
	finish         FinishContext
	release        ReleaseContext
	exception      ExceptionContext
	drained        DrainedContext
	memo           MemoContext
}

// Decode replaces what the Event held. It checks the time, the name, and the context by the
// grammar of the event; the context of an unknown event is any JSON object. It does not look
// at the state of a job.
//
// The Event aliases e until the next Decode. After an error it holds no entry. The error names
// what is wrong with the context, or wraps [eventlog.ErrEntry] for a time or name that no event
// can have. Decode allocates the strings of a context. For the events of actions it allocates
// nothing once it has read their descriptions, if the ranks are few ranges.
func (ev *Event) Decode(e eventlog.Entry) error {
	k, action, _ := kindOf(e.Name)
	ev.entry, ev.kind, ev.mem.action = e, k, action
	err := errTime
	if guard.IsTime(e.Timestamp) {
		err = ev.decodeContext(k, &e)
		if k == kUnknown && (e.Name == "" || !utf8.ValidString(e.Name) || strings.IndexByte(e.Name, 0) >= 0) {
			err = errName
		}
	}
	if err != nil {
		ev.entry, ev.kind = eventlog.Entry{}, kUnknown
	}
	return err
}

// decodeLine decodes the first line of a log, and returns its size without the newline. It is
// eventlog.Entries and Decode, and passes over the context once less.
func (ev *Event) decodeLine(log []byte) (size int, name string, err error) {
	size = bytes.IndexByte(log, '\n')
	if size >= 0 && ev.decodeUsual(log[:size]) {
		return size, ev.entry.Name, nil
	}
	for e, err := range eventlog.Entries(log) {
		if err == nil {
			err = ev.Decode(e)
		}
		return size, e.Name, err
	}
	return size, "", nil // not reached
}

// decodeUsual decodes a line of the usual form. It reports false for any other, for one whose
// time is an integer, which an Entry remembers, and for one at fault: eventlog has the error.
func (ev *Event) decodeUsual(line []byte) bool {
	l, ok := logline.Cut(line)
	if !ok || l.Integer != 0 || !guard.IsTime(l.Time) || len(line) > eventlog.DefaultMaxLine {
		return false
	}
	k, action, name := kindOf(l.Name)
	ev.entry, ev.kind = eventlog.Entry{Timestamp: eventlog.Timestamp(l.Time), Context: l.Context}, k
	ev.mem.action = action
	switch {
	case k.ofJob():
		ev.entry.Name = name
	case logline.IsPlain(l.Name):
		ev.entry.Name = ev.mem.intern(l.Name)
	default:
		return false
	}
	return ev.decodeContext(k, &ev.entry) == nil
}

// Entry returns the entry that was decoded, and the zero Entry if there is none.
func (ev *Event) Entry() eventlog.Entry { return ev.entry }

// Context returns the typed context; nil for an event that has none and for a name that this
// package does not know. The Event owns it. It is valid until the next Decode and must not be
// changed. To keep one, give it an Event of its own, and an entry that is not changed later.
func (ev *Event) Context() Context {
	switch ev.kind {
	case kSubmit:
		return &ev.submit
	case kJobspecUpdate:
		return &ev.jobspecUpdate
	case kResourceUpdate:
		return &ev.resourceUpdate
	case kSetFlags:
		return &ev.setFlags
	case kDependencyAdd:
		return &ev.dependencyAdd
	case kDependencyRemove:
		return &ev.dependencyRem
	case kPriority:
		return &ev.priority
	case kUrgency:
		return &ev.urgency
	case kAlloc:
		return &ev.alloc
	case kPrologStart, kEpilogStart, kHousekeepingStart:
		return &ev.start
	case kPerilogLaunch, kHousekeepingLaunch:
		return &ev.launch
	case kPerilogFail, kHousekeepingFail:
		return &ev.fail
	case kPerilogRelease, kHousekeepingRelease:
		return &ev.actionRelease
	case kPrologFinish, kEpilogFinish, kHousekeepingFinish:
		return &ev.actionFinish
	case kFinish:
		return &ev.finish
	case kRelease:
		return &ev.release
	case kException:
		return &ev.exception
	case kDrained:
		return &ev.drained
	case kMemo:
		return &ev.memo
	default:
		return nil
	}
}

// Action returns the key of the action that the event is of, and false if it is of none.
func (ev *Event) Action() (ActionKey, bool) {
	switch c := ev.Context().(type) {
	case *ActionStartContext:
		return c.ActionKey, true
	case *ActionLaunchContext:
		return c.ActionKey, true
	case *ActionFailContext:
		return c.ActionKey, true
	case *ActionReleaseContext:
		return c.ActionKey, true
	case *ActionFinishContext:
		return c.ActionKey, true
	}
	return ActionKey{}, false
}

// decodeContext reads the context of an entry of kind k.
func (ev *Event) decodeContext(k kind, e *eventlog.Entry) error {
	if len(e.Context) == 0 {
		if k == kAlloc { // which may have none
			ev.alloc = AllocContext{}
		} else if ev.Context() != nil {
			return contextError(e.Name, errAbsent)
		}
		return nil
	}
	p := plain{rest: e.Context}
	if p.decode(ev, k) {
		return nil
	}
	return ev.decodeAny(e)
}

// decodeAny reads a context of any form, of the kind that ev has.
func (ev *Event) decodeAny(e *eventlog.Entry) error {
	d := jsonobj.NewDoc(e.Context)
	d.Depth = contextDepth
	o := d.Object()
	if c := ev.Context(); c != nil {
		x := codec{m: &ev.mem}
		for o.Next() {
			x.unread++
		}
		x.members(&o, c, e.Context)
	}
	if f := d.Fault(); f != nil {
		return contextError(e.Name, f)
	}
	return nil
}

// contextDepth is how many levels a context may have. The entry around it is one level.
const contextDepth = jsonobj.DefaultDepth - 1
