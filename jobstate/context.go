package jobstate

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/jsonscan"
)

// ActionKind tells prologs from epilogs. The zero ActionKind is invalid.
type ActionKind uint8

// The kinds of actions.
const (
	ActionProlog ActionKind = 1 + iota // holds the start of the job
	ActionEpilog                       // holds the release of its resources
)

// String returns "prolog" or "epilog"; another value prints as ActionKind(n).
func (k ActionKind) String() string {
	switch k {
	case ActionProlog:
		return "prolog"
	case ActionEpilog:
		return "epilog"
	default:
		return "ActionKind(" + itoa(int(k)) + ")"
	}
}

func (k ActionKind) eventName(prolog, epilog string) string {
	switch k {
	case ActionProlog:
		return prolog
	case ActionEpilog:
		return epilog
	default:
		return ""
	}
}

// Context is the typed context of an RFC 21 event. The types of this package
// whose names end in Context implement it, by pointer, and no others do.
//
// AppendJSON checks what it writes as strictly as decoding checks what it
// reads, and returns dst unchanged with a ContextError where that fails. Keys
// that RFC 21 does not name are kept in Extra, a JSON object or nil, and are
// written after the others.
type Context interface {
	// EventName returns the name of the event whose context it is.
	EventName() string
	// AppendJSON appends the context as one JSON object.
	AppendJSON(dst []byte) ([]byte, error)
	decode(raw json.RawMessage) error
}

// Flags is the mask of flags in a submit event, as the reference defines it.
// RFC 21 names only debug.
type Flags uint32

// The flags of flux-core.
const (
	FlagPreSigned  Flags = 1 << iota // the jobspec came signed
	FlagDebug                        // debug.* events are wanted in the log
	FlagWaitable                     // the submitter will wait for the job
	FlagNoValidate                   // the jobspec was not validated
)

// The urgencies with a meaning of their own (RFC 30).
const (
	UrgencyHold     = 0  // held: priority 0, never sent to a scheduler
	UrgencyDefault  = 16 // where the submitter gave none
	UrgencyExpedite = 31 // expedited: the highest priority; also the largest urgency
)

// MaxPriority is the priority of an expedited job and the largest of all.
const MaxPriority = math.MaxUint32

// MaxSeverity is the severity of the least severe exception. 0 is fatal.
const MaxSeverity = 7

// LogVersion is the version of the log format of RFC 21 that this package
// writes. A submit event without a version follows the rules before it.
const LogVersion = 1

// SubmitContext is the context of submit.
type SubmitContext struct {
	UserID  uint32
	Urgency uint8 // at most UrgencyExpedite
	Flags   Flags
	Version int // LogVersion; 0: absent, the log follows the old rules
	Extra   json.RawMessage
}

// DependencyAddContext is the context of dependency-add.
type DependencyAddContext struct {
	Description string
	Extra       json.RawMessage
}

// DependencyRemoveContext is the context of dependency-remove.
type DependencyRemoveContext struct {
	Description string
	Extra       json.RawMessage
}

// SetFlagsContext is the context of set-flags.
type SetFlagsContext struct {
	Flags []string // "debug", "alloc-bypass", …; empty is legal and sets nothing
	Extra json.RawMessage
}

// JobspecUpdateContext is the context of jobspec-update.
type JobspecUpdateContext struct {
	Updates []Update // at least one
}

// Update sets one jobspec attribute.
type Update struct {
	Path  string          // period-delimited, begins with "attributes."
	Value json.RawMessage // any JSON value
}

// ResourceUpdateContext is the context of resource-update.
type ResourceUpdateContext struct {
	Expiration eventlog.Timestamp // 0: the job's resources do not expire
	Extra      json.RawMessage
}

// PriorityContext is the context of priority.
type PriorityContext struct {
	Priority uint32
	Extra    json.RawMessage
}

// UrgencyContext is the context of urgency.
type UrgencyContext struct {
	UserID  uint32
	Urgency uint8 // at most UrgencyExpedite
	Extra   json.RawMessage
}

// AllocContext is the context of alloc.
type AllocContext struct {
	Annotations json.RawMessage // a JSON object; nil: absent
	Extra       json.RawMessage
}

// ActionStartContext is the context of prolog-start and epilog-start.
type ActionStartContext struct {
	Kind        ActionKind
	Description string
	Extra       json.RawMessage
}

// ActionFinishContext is the context of prolog-finish and epilog-finish.
type ActionFinishContext struct {
	Kind        ActionKind
	Description string
	Status      int32 // 0 is success
	Extra       json.RawMessage
}

// ReleaseContext is the context of release.
type ReleaseContext struct {
	Ranks Ranks
	Final bool
	Extra json.RawMessage
}

// FinishContext is the context of finish.
type FinishContext struct {
	Status int32 // the largest wait status of the job shells, as wait(2) gives it
	Extra  json.RawMessage
}

// ExceptionContext is the context of exception.
type ExceptionContext struct {
	Type       string
	Severity   uint8  // 0 is fatal, at most MaxSeverity
	Note       string // may be empty
	UserID     Optional[uint32]
	WaitStatus Optional[int32] // of the task that caused it, where one did
	Extra      json.RawMessage
}

// MemoContext is the context of memo.
type MemoContext struct {
	Values json.RawMessage // a JSON object; a null removes the key
}

// Optional is a value that may be absent. The zero Optional is absent.
type Optional[T any] struct {
	Value T
	Set   bool
}

// Some returns a present value.
func Some[T any](v T) Optional[T] { return Optional[T]{Value: v, Set: true} }

// Ranks is the set of ranks that a release event names. The zero value names
// none.
type Ranks struct {
	All bool       // "all"; Set is not looked at
	Set *idset.Set // nil is empty
}

// EventName returns "submit".
func (*SubmitContext) EventName() string { return EventSubmit }

// EventName returns "dependency-add".
func (*DependencyAddContext) EventName() string { return EventDependencyAdd }

// EventName returns "dependency-remove".
func (*DependencyRemoveContext) EventName() string { return EventDependencyRemove }

// EventName returns "set-flags".
func (*SetFlagsContext) EventName() string { return EventSetFlags }

// EventName returns "jobspec-update".
func (*JobspecUpdateContext) EventName() string { return EventJobspecUpdate }

// EventName returns "resource-update".
func (*ResourceUpdateContext) EventName() string { return EventResourceUpdate }

// EventName returns "priority".
func (*PriorityContext) EventName() string { return EventPriority }

// EventName returns "urgency".
func (*UrgencyContext) EventName() string { return EventUrgency }

// EventName returns "alloc".
func (*AllocContext) EventName() string { return EventAlloc }

// EventName returns "prolog-start" or "epilog-start", "" for a Kind that is
// neither.
func (c *ActionStartContext) EventName() string {
	return c.Kind.eventName(EventPrologStart, EventEpilogStart)
}

// EventName returns "prolog-finish" or "epilog-finish", "" for a Kind that is
// neither.
func (c *ActionFinishContext) EventName() string {
	return c.Kind.eventName(EventPrologFinish, EventEpilogFinish)
}

// EventName returns "release".
func (*ReleaseContext) EventName() string { return EventRelease }

// EventName returns "finish".
func (*FinishContext) EventName() string { return EventFinish }

// EventName returns "exception".
func (*ExceptionContext) EventName() string { return EventException }

// EventName returns "memo".
func (*MemoContext) EventName() string { return EventMemo }

// newContext returns an empty context for events that have one, else nil.
func newContext(k kind) Context {
	switch k {
	case kSubmit:
		return new(SubmitContext)
	case kJobspecUpdate:
		return new(JobspecUpdateContext)
	case kResourceUpdate:
		return new(ResourceUpdateContext)
	case kSetFlags:
		return new(SetFlagsContext)
	case kDependencyAdd:
		return new(DependencyAddContext)
	case kDependencyRemove:
		return new(DependencyRemoveContext)
	case kPriority:
		return new(PriorityContext)
	case kUrgency:
		return new(UrgencyContext)
	case kAlloc:
		return new(AllocContext)
	case kPrologStart:
		return &ActionStartContext{Kind: ActionProlog}
	case kPrologFinish:
		return &ActionFinishContext{Kind: ActionProlog}
	case kEpilogStart:
		return &ActionStartContext{Kind: ActionEpilog}
	case kEpilogFinish:
		return &ActionFinishContext{Kind: ActionEpilog}
	case kRelease:
		return new(ReleaseContext)
	case kFinish:
		return new(FinishContext)
	case kException:
		return new(ExceptionContext)
	case kMemo:
		return new(MemoContext)
	default:
		return nil
	}
}

// hasContext reports whether RFC 21 defines a context for the event.
func (k kind) hasContext() bool {
	switch k {
	case kUnknown, kValidate, kInvalidate, kDepend, kFluxRestart, kStart, kFree, kClean:
		return false
	default:
		return true
	}
}

// ParseContext decodes the context of e. It returns nil for a name that
// RFC 21 does not define and for the events that have no context (validate,
// invalidate, depend, flux-restart, start, free, clean). An error is a
// ContextError. The result keeps no reference to e.
func ParseContext(e eventlog.Entry) (Context, error) {
	c := newContext(kindOf(e.Name))
	if c == nil {
		return nil, nil
	}
	if err := c.decode(e.Context); err != nil {
		return nil, err
	}
	switch c := c.(type) { // the two that alias what they decode
	case *AllocContext:
		c.Annotations = bytes.Clone(c.Annotations)
	case *MemoContext:
		c.Values = bytes.Clone(c.Values)
	}
	return c, nil
}

// NewEntry encodes c as the entry of its event at time t. An error is a
// ContextError.
func NewEntry(t eventlog.Timestamp, c Context) (eventlog.Entry, error) {
	if !validTime(t) {
		return eventlog.Entry{}, &ContextError{Event: c.EventName(), Offset: -1, Err: ErrTime}
	}
	raw, err := c.AppendJSON(nil)
	if err != nil {
		return eventlog.Entry{}, err
	}
	return eventlog.Entry{Timestamp: t, Name: c.EventName(), Context: raw}, nil
}

func validTime(t eventlog.Timestamp) bool { return t > 0 && !math.IsInf(float64(t), 0) }

func itoa(n int) string { return strconv.Itoa(n) }

// parseRanks reads "all" or an idset.
func parseRanks(s string) (Ranks, error) {
	if s == "all" {
		return Ranks{All: true}, nil
	}
	set, err := idset.Parse(s)
	return Ranks{Set: set}, err
}

// String returns "all" or the idset.
func (r Ranks) String() string {
	if r.All {
		return "all"
	}
	return r.Set.String()
}

// checkValue reports why raw is not one JSON value.
func checkValue(raw json.RawMessage) error { return jsonscan.Check(raw, contextLimits()) }

// contextLimits are those of a context in an entry, which is one level more.
func contextLimits() jsonscan.Limits { return jsonscan.Limits{Depth: jsonscan.DefaultDepth - 1} }

// isObject reports whether raw, a JSON value, is an object.
func isObject(raw json.RawMessage) bool { return jsonscan.KindOf(raw) == jsonscan.KindObject }

// updatePath reports whether a jobspec-update may carry the path.
func updatePath(path string) bool {
	rest, ok := strings.CutPrefix(path, "attributes.")
	return ok && rest != ""
}
