package jobstate

import (
	"encoding/json"
	"time"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/guard"
	"github.com/joblife/joblife/jobstate/fsd"
)

// EventDrained is the event that confirms a drain.
const EventDrained = "drained"

// The other events of the dialect. Those of housekeeping are in a log of its own: a Job ignores
// them. The others have no prefix "prolog-" or "epilog-": flux-core's job manager loads no log
// with an event of such a name that it does not know.
const (
	eventPerilogLaunch       = "perilog-launch"  // launched again, after the launch in the start
	eventPerilogFail         = "perilog-fail"    // some ranks failed
	eventPerilogRelease      = "perilog-release" // the action ended on some ranks; it goes on
	eventHousekeepingStart   = "housekeeping-start"
	eventHousekeepingLaunch  = "housekeeping-launch"
	eventHousekeepingFail    = "housekeeping-fail"
	eventHousekeepingRelease = "housekeeping-release"
	eventHousekeepingFinish  = "housekeeping-finish"
)

// An ActionKind is prolog, epilog or housekeeping. The zero ActionKind is invalid.
type ActionKind uint8

// The kinds of actions.
const (
	ActionProlog       ActionKind = 1 + iota // runs before the job; delays its start
	ActionEpilog                             // runs after the job; delays the release of its resources
	ActionHousekeeping                       // runs after the epilogs, with a log of its own; delays the release of nodes
)

// String returns "prolog", "epilog" or "housekeeping"; another value prints as ActionKind(n).
func (k ActionKind) String() string {
	return guard.Name("ActionKind", k, "prolog", "epilog", "housekeeping")
}

// event returns the name that fits the kind, "" for an invalid kind.
func (k ActionKind) event(prolog, epilog, housekeeping string) string {
	names := [...]string{ActionProlog: prolog, ActionEpilog: epilog, ActionHousekeeping: housekeeping}
	if int(k) < len(names) {
		return names[k]
	}
	return ""
}

// An ActionKey names an action of a job. Housekeeping has the description "housekeeping".
type ActionKey struct {
	Kind        ActionKind
	Description string
}

// String returns the kind and the description, such as "epilog job-manager.epilog".
func (k ActionKey) String() string { return k.Kind.String() + " " + k.Description }

// ActionMode says how this library runs an action. The zero value: another writer runs it.
type ActionMode struct {
	PerRank bool             // one process on each rank
	Leader  Optional[uint32] // not with PerRank: a single process, on this rank, for all ranks
	// Timeout counts from each launch; when it expires, the action is stopped. KillTimeout
	// counts from the stop; when it expires, the action counts as ended. 0 means never.
	Timeout, KillTimeout time.Duration
}

// Given reports whether PerRank or Leader is set: then this library runs the action.
func (a *ActionMode) Given() bool { return a.PerRank || a.Leader.Set }

// OnFailure says what happens to a rank where housekeeping failed; "" if the event does not.
type OnFailure string

// The values of the key on-failure.
const (
	OnFailureDrain   OnFailure = "drain"   // the rank is freed when its drain is confirmed
	OnFailureHold    OnFailure = "hold"    // the rank is held until an operator decides
	OnFailureRelease OnFailure = "release" // the rank is freed
)

// ActionStartContext is the context of prolog-start, epilog-start and housekeeping-start.
// RFC 21 defines only the description, so the events of other writers have no other field.
type ActionStartContext struct {
	ActionKey
	Ranks     Ranks    // that the action holds; All is an event without the key ranks
	Resources []string // named ones that the action holds: no name twice, none empty
	ActionMode
	// Attempt is the number of the launch that comes with the start, on all ranks; 0 means that
	// the action is not launched yet. It needs PerRank or Leader.
	Attempt uint32

	// Only housekeeping has these: how long after the first rank is done it frees ranks
	// while others still run (absent: never), and what happens to ranks where it failed.
	ReleaseAfter Optional[fsd.Duration]
	OnFailure    OnFailure

	Extra json.RawMessage
}

// ActionLaunchContext is the context of perilog-launch and housekeeping-launch: the action is
// launched on some ranks, later than the launch in its start event.
type ActionLaunchContext struct {
	ActionKey
	Attempt    uint32     // at least 1
	Ranks      *idset.Set // nil is empty
	ActionMode            // set only if the start event has no mode
	Extra      json.RawMessage
}

// ActionFailContext is the context of perilog-fail and housekeeping-fail: the action failed on
// some ranks, and goes on.
type ActionFailContext struct {
	ActionKey
	Ranks  *idset.Set // not empty
	Cause  string     // such as "failed", "timed-out" or "offline"
	Status int32      // a wait status
	Note   string     // "" is absent
	Drain  bool       // the writer drains the ranks
	Extra  json.RawMessage
}

// ActionReleaseContext is the context of perilog-release and housekeeping-release: the action
// has ended on some ranks, or no longer needs some named resources. Its finish still follows.
type ActionReleaseContext struct {
	ActionKey
	Ranks     *idset.Set // nil is empty
	Status    int32      // the worst wait status on these ranks; 0 is success
	Resources []string   // no name twice, none empty
	Extra     json.RawMessage
}

// ActionFinishContext is the context of prolog-finish and epilog-finish, which end an action.
type ActionFinishContext struct {
	ActionKey
	Status int32 // a wait status; 0 is success
	Extra  json.RawMessage
}

// DrainedContext is the context of drained: it confirms that the ranks are drained.
type DrainedContext struct {
	Ranks *idset.Set // nil is empty
	Extra json.RawMessage
}

// FailedRanks has the keys ranks, action and nodelist (optional) of an
// exception of severity 1 or more: these ranks failed, and the job goes on.
type FailedRanks struct {
	Ranks    *idset.Set // not empty
	Nodelist string     // their hosts in rank order, RFC 29; "" is absent
	Action   FailedAction
}

// FailedAction says what happens to ranks that failed. The zero value is invalid.
type FailedAction uint8

// The values of the key action.
const (
	FailedKeep FailedAction = 1 + iota // the ranks stay with the job, and an exception reports them
	FailedDrop                         // neither the job nor the executor holds the ranks after this
)

// String returns "keep" or "drop"; another value prints as FailedAction(n).
func (a FailedAction) String() string { return guard.Name("FailedAction", a, "keep", "drop") }

func (*ActionStartContext) context()   {}
func (*ActionLaunchContext) context()  {}
func (*ActionFailContext) context()    {}
func (*ActionReleaseContext) context() {}
func (*ActionFinishContext) context()  {}
func (*DrainedContext) context()       {}
