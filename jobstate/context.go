package jobstate

import (
	"encoding/json"
	"math"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/guard"
	"github.com/joblife/joblife/internal/jsonobj"
)

// Context is the typed context of an event: a pointer to a type of this package whose name ends
// in Context. A field Extra is a JSON object of the keys that this package does not know, which
// are written after the others; nil if there are none.
type Context interface{ context() }

// Flags is the mask of flags in a submit event.
type Flags uint32

// The flags of flux-core. RFC 21 names only debug.
const (
	_            Flags = 1 << iota // the jobspec came signed
	FlagDebug                      // debug.* events are wanted in the log
	FlagWaitable                   // the submitter will wait for the job
	_                              // the jobspec was not validated
)

// The urgencies with a meaning of their own (RFC 30).
const (
	UrgencyHold     = 0  // on hold: priority 0, never sent to a scheduler
	UrgencyDefault  = 16 // if the submitter gave none
	UrgencyExpedite = 31 // expedited: the highest priority; also the largest urgency
)

// MaxPriority is the largest priority. An expedited job has it.
const MaxPriority = math.MaxUint32

// MaxSeverity is the severity of the least severe exception. 0 is fatal.
const MaxSeverity = 7

// LogVersion is the version of the log format of RFC 21 that this package writes.
const LogVersion = 1

// SubmitContext is the context of submit.
type SubmitContext struct {
	UserID  uint32 // who submitted it
	Urgency uint8  // at most UrgencyExpedite
	Flags   Flags
	Version int // LogVersion; 0: absent, the log follows the older rules
	Extra   json.RawMessage
}

// DependencyAddContext is the context of dependency-add.
type DependencyAddContext struct {
	Description string // such as "begin-time=1600000000"
	Extra       json.RawMessage
}

// DependencyRemoveContext is the context of dependency-remove.
type DependencyRemoveContext struct {
	Description string // as it was added
	Extra       json.RawMessage
}

// SetFlagsContext is the context of set-flags.
type SetFlagsContext struct {
	Flags []string // "debug", "alloc-bypass", …; empty is legal and sets nothing
	Extra json.RawMessage
}

// JobspecUpdateContext is the context of jobspec-update.
type JobspecUpdateContext struct {
	Updates []Update // in the order of the event; a writer needs at least one
}

// Update sets one value of the jobspec.
type Update struct {
	// Path is attributes, resources or tasks, or a path below one, its keys joined by periods.
	Path  string
	Value json.RawMessage // any JSON value
}

// ResourceUpdateContext is the context of resource-update.
type ResourceUpdateContext struct {
	Expiration eventlog.Timestamp // 0: the job's resources do not expire
	Extra      json.RawMessage
}

// PriorityContext is the context of priority.
type PriorityContext struct {
	Priority uint32 // MaxPriority if a plugin computed a greater value
	Extra    json.RawMessage
}

// UrgencyContext is the context of urgency.
type UrgencyContext struct {
	UserID  uint32 // who changed it
	Urgency uint8  // at most UrgencyExpedite
	Extra   json.RawMessage
}

// AllocContext is the context of alloc.
type AllocContext struct {
	Annotations json.RawMessage // a JSON object; nil: absent
	Extra       json.RawMessage
}

// ReleaseContext is the context of release.
type ReleaseContext struct {
	Ranks Ranks // that the executor has released
	Final bool  // it holds no rank any more
	Extra json.RawMessage
}

// FinishContext is the context of finish.
type FinishContext struct {
	Status int32 // the largest wait status of the job shells, as wait(2) gives it
	Extra  json.RawMessage
}

// ExceptionContext is the context of exception.
type ExceptionContext struct {
	Type       string           // such as "cancel" or "timeout"
	Severity   uint8            // 0 is fatal, at most MaxSeverity
	Note       string           // may be empty
	UserID     Optional[uint32] // absent if it is -1, which flux-core wrote before 0.41
	WaitStatus Optional[int32]  // of the task that caused it, if one did
	Failed     *FailedRanks     // nil unless the exception names ranks that failed; then Severity is at least 1
	Extra      json.RawMessage
}

// MemoContext is the context of memo.
type MemoContext struct {
	Values json.RawMessage // a JSON object; null as a value removes the key
}

// Optional is a value that may be absent. The zero Optional is absent.
type Optional[T any] struct {
	Value T    // the zero value if it is absent
	Set   bool // it is present
}

// Some returns a present value.
func Some[T any](v T) Optional[T] { return Optional[T]{Value: v, Set: true} }

// Ranks is the set of ranks that an event names. The zero value names none.
type Ranks struct {
	All bool       // all ranks of the job; Set is ignored
	Set *idset.Set // nil is empty
}

// String returns "all" or the idset.
func (r Ranks) String() string {
	if r.All {
		return "all"
	}
	return r.Set.String()
}

func (*SubmitContext) context()           {}
func (*DependencyAddContext) context()    {}
func (*DependencyRemoveContext) context() {}
func (*SetFlagsContext) context()         {}
func (*JobspecUpdateContext) context()    {}
func (*ResourceUpdateContext) context()   {}
func (*PriorityContext) context()         {}
func (*UrgencyContext) context()          {}
func (*AllocContext) context()            {}
func (*ReleaseContext) context()          {}
func (*FinishContext) context()           {}
func (*ExceptionContext) context()        {}
func (*MemoContext) context()             {}

// NewEntry encodes c as the entry of its event at time t. The error names the key, or wraps
// [eventlog.ErrEntry] for a time that no event can have. The entry of an event without a
// context is eventlog.Entry{Timestamp: t, Name: EventStart}.
func NewEntry(t eventlog.Timestamp, c Context) (eventlog.Entry, error) {
	e, _, err := EncodeEntry(nil, t, c)
	return e, err
}

// EncodeEntry is [NewEntry] into the caller's memory: it appends the context, one JSON object,
// to dst, and the entry's Context aliases the new bytes. After an error it returns dst as it
// was. If dst has room, it allocates nothing, unless there are Extra, updates or a memo.
func EncodeEntry(dst []byte, t eventlog.Timestamp, c Context) (eventlog.Entry, []byte, error) {
	if !guard.IsTime(t) {
		return eventlog.Entry{}, dst, errTime
	}
	w := jsonobj.Write(dst, contextDepth)
	x := codec{w: &w}
	name := x.members(new(jsonobj.Reader), c, nil)
	if name == "" {
		return eventlog.Entry{}, dst, contextError("unknown event", errKind)
	}
	out, err := w.End()
	if err != nil {
		return eventlog.Entry{}, dst, contextError(name, err)
	}
	e := eventlog.Entry{Timestamp: t, Name: name, Context: out[len(dst):len(out):len(out)]}
	if name == EventAlloc && string(e.Context) == "{}" {
		e.Context, out = nil, dst // flux-core writes none
	}
	return e, out, nil
}
