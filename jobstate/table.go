package jobstate

import (
	"github.com/joblife/joblife/internal/guard"
	"github.com/joblife/joblife/internal/logline"
)

// The names of the events that RFC 21 defines.
const (
	EventSubmit           = "submit"
	EventValidate         = "validate"
	EventInvalidate       = "invalidate"
	EventJobspecUpdate    = "jobspec-update"
	EventResourceUpdate   = "resource-update"
	EventSetFlags         = "set-flags"
	EventDependencyAdd    = "dependency-add"
	EventDependencyRemove = "dependency-remove"
	EventDepend           = "depend"
	EventPriority         = "priority"
	EventFluxRestart      = "flux-restart"
	EventUrgency          = "urgency"
	EventAlloc            = "alloc"
	EventPrologStart      = "prolog-start"
	EventPrologFinish     = "prolog-finish"
	EventEpilogStart      = "epilog-start"
	EventEpilogFinish     = "epilog-finish"
	EventStart            = "start"
	EventFinish           = "finish"
	EventRelease          = "release"
	EventFree             = "free"
	EventClean            = "clean"
	EventException        = "exception"
	EventMemo             = "memo"
)

// kind is the number of an event in the table; 0 is any name that this package does not know.
type kind uint8

const (
	kUnknown kind = iota
	kSubmit
	kValidate
	kInvalidate
	kJobspecUpdate
	kResourceUpdate
	kSetFlags
	kDependencyAdd
	kDependencyRemove
	kDepend
	kPriority
	kFluxRestart
	kUrgency
	kAlloc
	kPrologStart
	kPrologFinish
	kEpilogStart
	kEpilogFinish
	kStart
	kFinish
	kRelease
	kFree
	kClean
	kException
	kMemo
	kPerilogLaunch
	kPerilogFail
	kPerilogRelease
	kDrained
	numKinds // of a job's log; the log of housekeeping has those that follow
	kHousekeepingStart
	kHousekeepingLaunch
	kHousekeepingFail
	kHousekeepingRelease
	kHousekeepingFinish
	kOld // the names that kPerilogLaunch and so on had, first those of prologs
)

// oldNames are read for one minor version.
var oldNames = [...]string{"prolog-launch", "prolog-fail", "prolog-release", "epilog-launch", "epilog-fail", "epilog-release"}

// ofJob reports whether the event is one of a job's log that has a row.
func (k kind) ofJob() bool { return k != kUnknown && k < numKinds }

// action returns the kind of action that the event is about; 0 is in the context.
func (k kind) action() ActionKind {
	switch k {
	case kPrologStart, kPrologFinish:
		return ActionProlog
	case kEpilogStart, kEpilogFinish:
		return ActionEpilog
	case kPerilogLaunch, kPerilogFail, kPerilogRelease:
		return 0
	default:
		return ActionHousekeeping
	}
}

type edge struct {
	from State  // a mask
	to   State  // a single state
	when string // what must hold for the edge to be taken; "" is always
}

// The conditions that edges carry.
const (
	whenOld   = "no version" // submit without a version: the rules before validate existed
	whenFatal = "severity=0"
)

// row is what RFC 21 and flux-core say of one event. A state in neither folds nor ignores refuses it.
type row struct {
	name    string
	folds   State  // the states in which the event takes effect
	ignores State  // the states in which flux-core ignores it
	proper  State  // the states in which RFC 21 has it; Validate names it elsewhere
	edges   []edge // the first that fits is taken; none: the state stays
}

// anytime is every state in which a log is open.
const anytime = StateNew | StateActive

// table is the state machine: the reducer obeys it, Validate judges by it, and the diagrams in
// testdata show it. No other place knows a transition. Where folds is wider than proper (alloc
// in PRIORITY, free in RUN), the reference takes the event, and so does the reducer.
var table = [numKinds]row{
	kSubmit:     {name: EventSubmit, proper: StateNew, folds: StateNew, edges: []edge{{StateNew, StateDepend, whenOld}, {StateNew, StateNew, ""}}},
	kValidate:   {name: EventValidate, proper: StateNew, folds: StateNew, ignores: StateDepend, edges: []edge{{StateNew, StateDepend, ""}}},
	kInvalidate: {name: EventInvalidate, proper: StateNew, folds: StateNew},

	kDependencyAdd:    {name: EventDependencyAdd, proper: StateNew | StateDepend, folds: StateNew | StateDepend, ignores: StatePriority | StateSched | StateRunning},
	kDependencyRemove: {name: EventDependencyRemove, proper: StateNew | StateDepend, folds: StateNew | StateDepend, ignores: StatePriority | StateSched | StateRunning},

	kDepend:      {name: EventDepend, proper: StateDepend, folds: StateDepend, ignores: StatePriority | StateSched | StateRunning, edges: []edge{{StateDepend, StatePriority, ""}}},
	kPriority:    {name: EventPriority, proper: StatePriority | StateSched, folds: StatePriority | StateSched, ignores: StateDepend | StateRunning, edges: []edge{{StatePriority, StateSched, ""}}},
	kUrgency:     {name: EventUrgency, proper: anytime, folds: anytime, edges: []edge{{StateSched, StatePriority, ""}}},
	kFluxRestart: {name: EventFluxRestart, proper: anytime, folds: anytime, edges: []edge{{StateSched, StatePriority, ""}}},

	kJobspecUpdate:  {name: EventJobspecUpdate, proper: anytime, folds: anytime, edges: []edge{{StateSched, StatePriority, ""}}},
	kResourceUpdate: {name: EventResourceUpdate, proper: StateRunning, folds: StateRunning},
	kSetFlags:       {name: EventSetFlags, proper: anytime, folds: anytime},
	kMemo:           {name: EventMemo, proper: anytime, folds: anytime},

	kAlloc:   {name: EventAlloc, proper: StateSched | StateCleanup, folds: StatePriority | StateSched | StateRunning, edges: []edge{{StateSched, StateRun, ""}}},
	kStart:   {name: EventStart, proper: StateRunning, folds: StateRunning},
	kFinish:  {name: EventFinish, proper: StateRunning, folds: StateRunning, edges: []edge{{StateRun, StateCleanup, ""}}},
	kRelease: {name: EventRelease, proper: StateRunning, folds: StateRunning},
	kFree:    {name: EventFree, proper: StateCleanup, folds: StatePriority | StateSched | StateRunning},
	kClean:   {name: EventClean, proper: StateCleanup, folds: StateCleanup, edges: []edge{{StateCleanup, StateInactive, ""}}},

	kPrologStart:  {name: EventPrologStart, proper: anytime, folds: anytime},
	kPrologFinish: {name: EventPrologFinish, proper: anytime, folds: anytime},
	kEpilogStart:  {name: EventEpilogStart, proper: anytime, folds: anytime},
	kEpilogFinish: {name: EventEpilogFinish, proper: anytime, folds: anytime},

	// The dialect's events fit every open state: what counts is whether the action is active.
	kPerilogLaunch:  {name: eventPerilogLaunch, proper: anytime, folds: anytime},
	kPerilogFail:    {name: eventPerilogFail, proper: anytime, folds: anytime},
	kPerilogRelease: {name: eventPerilogRelease, proper: anytime, folds: anytime},
	kDrained:        {name: EventDrained, proper: anytime, folds: anytime},

	kException: {name: EventException, proper: anytime, folds: anytime, edges: []edge{{StatePending | StateRun, StateCleanup, whenFatal}}},
}

// next returns the state that the event leads to from s; when is the condition that holds.
func (k kind) next(s State, when string) State {
	for _, e := range table[k].edges {
		if s.In(e.from) && (e.when == "" || e.when == when) {
			return e.to
		}
	}
	return s
}

// kinds has the names of all events, each at the place of its kind.
var kinds = func() logline.Names {
	names := [...]string{
		kHousekeepingStart: eventHousekeepingStart, kHousekeepingLaunch: eventHousekeepingLaunch, kHousekeepingFail: eventHousekeepingFail,
		kHousekeepingRelease: eventHousekeepingRelease, kHousekeepingFinish: eventHousekeepingFinish,
	}
	for k, row := range table {
		names[k] = row.name
	}
	return logline.NewNames(append(names[:], oldNames[:]...)...)
}()

// kindOf returns the kind of the event of a name, the kind of its action, and the name.
func kindOf[T string | []byte](name T) (k kind, action ActionKind, same string) {
	same, place, _ := logline.Find(&kinds, name)
	if old := place - int(kOld); old >= 0 {
		return kPerilogLaunch + kind(old%3), ActionProlog + ActionKind(old/3), same
	}
	k = kind(place)
	return k, k.action(), same
}

// Outcome says what Apply did with an event. The zero Outcome is invalid: it comes with an error.
type Outcome uint8

// The outcomes that callers compare. Other outcomes are ignored too; String returns the reason.
const (
	Applied Outcome = 1 + iota // the event is part of the job's state now
	// IgnoredUnknown: the event is unknown here, or of another log. Other readers may use it.
	IgnoredUnknown
	// IgnoredDuplicate: the entry has the same bytes as the one before it, and is no
	// exception. A key-value store that repeats an append causes that (flux-core#2547).
	IgnoredDuplicate

	ignoredState
	ignoredDependency
	ignoredAction
	ignoredStarted
	ignoredFinished
	ignoredFreed
)

var outcomeTexts = []string{
	Applied:           "applied",
	IgnoredUnknown:    "ignored: unknown event",
	IgnoredDuplicate:  "ignored: repeats the entry before it",
	ignoredState:      "ignored: no effect in this state",
	ignoredDependency: "ignored: dependency was added or removed before",
	ignoredAction:     "ignored: no such prolog or epilog is active",
	ignoredStarted:    "ignored: the job has started",
	ignoredFinished:   "ignored: the job has finished before",
	ignoredFreed:      "ignored: the job holds no resources",
}

// Ignored reports whether the event left the job's state as it was. If a manager's own
// event is ignored, the manager need not log it, unless the outcome is [IgnoredUnknown].
func (o Outcome) Ignored() bool { return o > Applied && o <= ignoredFreed }

// String returns "applied", or the reason why the event was ignored.
func (o Outcome) String() string { return guard.Name("Outcome", o, outcomeTexts[1:]...) }
