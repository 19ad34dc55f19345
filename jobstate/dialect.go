package jobstate

import (
	"encoding/json"
	"math"
	"strconv"
	"time"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/jsonobj"
	"github.com/joblife/joblife/internal/jsonscan"
)

// The events of the dialect, which RFC 21 does not define. A tool that knows
// RFC 21 alone ignores them. Those of housekeeping are in a log of its own: a
// Job ignores them.
const (
	EventPrologLaunch        = "prolog-launch"  // launched again, after the launch in the start
	EventPrologFail          = "prolog-fail"    // some ranks failed
	EventPrologRelease       = "prolog-release" // the action ended on some ranks; it goes on
	EventEpilogLaunch        = "epilog-launch"
	EventEpilogFail          = "epilog-fail"
	EventEpilogRelease       = "epilog-release"
	EventDrained             = "drained" // a drain that was asked for is confirmed
	EventHousekeepingStart   = "housekeeping-start"
	EventHousekeepingLaunch  = "housekeeping-launch"
	EventHousekeepingFail    = "housekeeping-fail"
	EventHousekeepingRelease = "housekeeping-release"
	EventHousekeepingFinish  = "housekeeping-finish"
)

// ActionKind tells prologs from epilogs and from housekeeping. The zero
// ActionKind is invalid.
type ActionKind uint8

// The kinds of actions.
const (
	ActionProlog       ActionKind = 1 + iota // holds the start of the job
	ActionEpilog                             // holds the release of its resources
	ActionHousekeeping                       // holds nodes after the job, in a log of its own
)

// String returns "prolog", "epilog" or "housekeeping"; another value prints as
// ActionKind(n).
func (k ActionKind) String() string {
	if name := k.event("prolog", "epilog", "housekeeping"); name != "" {
		return name
	}
	return "ActionKind(" + itoa(int(k)) + ")"
}

// event returns the name that fits the kind, "" for an invalid kind.
func (k ActionKind) event(prolog, epilog, housekeeping string) string {
	switch k {
	case ActionProlog:
		return prolog
	case ActionEpilog:
		return epilog
	case ActionHousekeeping:
		return housekeeping
	default:
		return ""
	}
}

// ActionStartContext is the context of prolog-start and epilog-start. RFC 21
// knows the description alone; other writers' events have no more.
type ActionStartContext struct {
	Kind        ActionKind
	Description string
	// Ranks are those that the action holds. All is what an event without the
	// key ranks means, and is written so; the zero value is none.
	Ranks Ranks
	// Resources are the named resources that the action holds, each once and
	// none empty.
	Resources []string

	// How the action runs, where this library launches it: then PerRank or
	// Leader is set, and never both.
	PerRank bool             // one process on each rank
	Leader  Optional[uint32] // one process, on this rank, for all ranks
	// Timeout is when the action is stopped, counted from each launch, and
	// KillTimeout when it is killed, counted from the stop. 0 is never.
	Timeout, KillTimeout time.Duration
	// Attempt is the number of the launch that comes with the start, on all
	// ranks; 0: it is not launched yet. It needs PerRank or Leader.
	Attempt uint32

	Extra json.RawMessage
}

// Owned reports whether the event says how the action runs: this library
// launches it. Otherwise some other writer does.
func (c *ActionStartContext) Owned() bool { return c.PerRank || c.Leader.Set }

// ActionLaunchContext is the context of prolog-launch and epilog-launch: the
// action is launched on some ranks, after the launch in its start.
type ActionLaunchContext struct {
	Kind        ActionKind
	Description string
	Attempt     uint32     // at least 1
	Ranks       *idset.Set // nil is empty
	Extra       json.RawMessage
}

// ActionFailContext is the context of prolog-fail and epilog-fail: the action
// failed on some ranks. It is logged as the failure is accepted.
type ActionFailContext struct {
	Kind        ActionKind
	Description string
	Ranks       *idset.Set // not empty
	Cause       string
	Status      int32  // a wait status
	Note        string // "" is absent
	Drain       bool   // the ranks are to be drained
	Extra       json.RawMessage
}

// ActionReleaseContext is the context of prolog-release and epilog-release: the
// action has ended on some ranks, or needs some named resources no more. The
// action goes on, and its finish still comes.
type ActionReleaseContext struct {
	Kind        ActionKind
	Description string
	Ranks       *idset.Set // nil is empty
	Status      int32      // the worst wait status on these ranks; 0 is success
	Resources   []string   // each once, none empty
	Extra       json.RawMessage
}

// ActionFinishContext is the context of prolog-finish and epilog-finish. A
// finish ends the whole action, whatever other keys it has.
type ActionFinishContext struct {
	Kind        ActionKind
	Description string
	Status      int32 // 0 is success
	Extra       json.RawMessage
}

// DrainedContext is the context of drained: the ranks are drained, as was asked
// for.
type DrainedContext struct {
	Ranks *idset.Set // nil is empty
	Extra json.RawMessage
}

// FailedRanks is what an exception of severity 1 or more says with the keys
// ranks, action and, optional, nodelist: these ranks failed, and the job goes
// on.
type FailedRanks struct {
	Ranks    *idset.Set // not empty
	Nodelist string     // their hosts in rank order, RFC 29; "" is absent
	Action   FailedAction
}

// FailedAction says what becomes of ranks that failed. The zero value is
// invalid.
type FailedAction uint8

// The values of the key action.
const (
	FailedKeep FailedAction = 1 + iota // they stay with the job, which is told
	FailedDrop                         // neither the job nor the executor holds them any more
)

// String returns "keep" or "drop"; another value prints as FailedAction(n).
func (a FailedAction) String() string {
	switch a {
	case FailedKeep:
		return "keep"
	case FailedDrop:
		return "drop"
	default:
		return "FailedAction(" + itoa(int(a)) + ")"
	}
}

func (*ActionStartContext) context()   {}
func (*ActionLaunchContext) context()  {}
func (*ActionFailContext) context()    {}
func (*ActionReleaseContext) context() {}
func (*ActionFinishContext) context()  {}
func (*DrainedContext) context()       {}

func (c *ActionStartContext) decode(o *jsonobj.Reader, m *scratch) {
	*c = ActionStartContext{Kind: c.Kind, Ranks: Ranks{All: true}, Resources: c.Resources[:0]}
	for o.Next() {
		switch string(o.Key()) {
		case "description":
			c.Description = m.text(o.Value())
		case "ranks":
			c.Ranks = Ranks{Set: m.set(o.Value())}
		case "resources":
			c.Resources = m.names(o.Value(), c.Resources)
		case "per-rank":
			if c.PerRank = o.Bool(); !c.PerRank {
				o.Value().Fail(errFalse)
			}
		case "leader":
			c.Leader = Some(uint32(o.Int(0, idset.MaxID)))
		case "timeout":
			c.Timeout = seconds(o.Value())
		case "kill-timeout":
			c.KillTimeout = seconds(o.Value())
		case "attempt":
			c.Attempt = uint32(o.Int(1, math.MaxUint32))
		default:
			c.Extra = m.other(o, c.Extra)
		}
	}
	o.Require("description")
	if err := c.check(); err != nil {
		o.Value().Fail(err)
	}
}

// check returns what no key alone shows.
func (c *ActionStartContext) check() error {
	switch {
	case c.PerRank && c.Leader.Set:
		return errHow
	case c.Attempt > 0 && !c.Owned():
		return errAttempt
	default:
		return nil
	}
}

func (c *ActionStartContext) write(w *jsonobj.Writer) {
	w.Text("description", c.Description)
	if !c.Ranks.All {
		writeSet(w, c.Ranks.Set)
	}
	writeNames(w, c.Resources)
	if c.PerRank {
		w.Bool("per-rank", true)
	}
	if c.Leader.Set {
		writeInt(w, "leader", int64(c.Leader.Value), 0, idset.MaxID)
	}
	writeSeconds(w, "timeout", c.Timeout)
	writeSeconds(w, "kill-timeout", c.KillTimeout)
	if c.Attempt > 0 {
		w.Int("attempt", int64(c.Attempt))
	}
	if err := c.check(); err != nil {
		w.Fail("", err)
	}
	writeExtra(w, c.Extra, "description", "ranks", "resources", "per-rank", "leader", "timeout", "kill-timeout", "attempt")
}

func (c *ActionLaunchContext) decode(o *jsonobj.Reader, m *scratch) {
	*c = ActionLaunchContext{Kind: c.Kind}
	for o.Next() {
		switch string(o.Key()) {
		case "description":
			c.Description = m.text(o.Value())
		case "attempt":
			c.Attempt = uint32(o.Int(1, math.MaxUint32))
		case "ranks":
			c.Ranks = m.set(o.Value())
		default:
			c.Extra = m.other(o, c.Extra)
		}
	}
	o.Require("description", "attempt", "ranks")
}

func (c *ActionLaunchContext) write(w *jsonobj.Writer) {
	w.Text("description", c.Description)
	writeInt(w, "attempt", int64(c.Attempt), 1, math.MaxUint32)
	writeSet(w, c.Ranks)
	writeExtra(w, c.Extra, "description", "attempt", "ranks")
}

func (c *ActionFailContext) decode(o *jsonobj.Reader, m *scratch) {
	*c = ActionFailContext{Kind: c.Kind}
	for o.Next() {
		switch string(o.Key()) {
		case "description":
			c.Description = m.text(o.Value())
		case "ranks":
			if c.Ranks = m.set(o.Value()); c.Ranks.IsEmpty() {
				o.Value().Fail(errEmpty)
			}
		case "cause":
			c.Cause = m.text(o.Value())
		case "status":
			c.Status = status(o)
		case "note":
			c.Note = m.text(o.Value())
		case "drain":
			c.Drain = o.Bool()
		default:
			c.Extra = m.other(o, c.Extra)
		}
	}
	o.Require("description", "ranks", "cause", "status")
}

func (c *ActionFailContext) write(w *jsonobj.Writer) {
	w.Text("description", c.Description)
	if c.Ranks.IsEmpty() {
		w.Fail("ranks", errEmpty)
	}
	writeSet(w, c.Ranks)
	w.Text("cause", c.Cause)
	w.Int("status", int64(c.Status))
	if c.Note != "" {
		w.Text("note", c.Note)
	}
	if c.Drain {
		w.Bool("drain", true)
	}
	writeExtra(w, c.Extra, "description", "ranks", "cause", "status", "note", "drain")
}

func (c *ActionReleaseContext) decode(o *jsonobj.Reader, m *scratch) {
	*c = ActionReleaseContext{Kind: c.Kind, Resources: c.Resources[:0]}
	for o.Next() {
		switch string(o.Key()) {
		case "description":
			c.Description = m.text(o.Value())
		case "ranks":
			c.Ranks = m.set(o.Value())
		case "status":
			c.Status = status(o)
		case "resources":
			c.Resources = m.names(o.Value(), c.Resources)
		default:
			c.Extra = m.other(o, c.Extra)
		}
	}
	o.Require("description", "ranks", "status")
}

func (c *ActionReleaseContext) write(w *jsonobj.Writer) {
	w.Text("description", c.Description)
	writeSet(w, c.Ranks)
	w.Int("status", int64(c.Status))
	writeNames(w, c.Resources)
	writeExtra(w, c.Extra, "description", "ranks", "status", "resources")
}

func (c *ActionFinishContext) decode(o *jsonobj.Reader, m *scratch) {
	*c = ActionFinishContext{Kind: c.Kind}
	for o.Next() {
		switch string(o.Key()) {
		case "description":
			c.Description = m.text(o.Value())
		case "status":
			c.Status = status(o)
		default:
			c.Extra = m.other(o, c.Extra)
		}
	}
	o.Require("description", "status")
}

func (c *ActionFinishContext) write(w *jsonobj.Writer) {
	w.Text("description", c.Description)
	w.Int("status", int64(c.Status))
	writeExtra(w, c.Extra, "description", "status")
}

func (c *DrainedContext) decode(o *jsonobj.Reader, m *scratch) {
	*c = DrainedContext{}
	for o.Next() {
		if string(o.Key()) == "ranks" {
			c.Ranks = m.set(o.Value())
		} else {
			c.Extra = m.other(o, c.Extra)
		}
	}
	o.Require("ranks")
}

func (c *DrainedContext) write(w *jsonobj.Writer) {
	writeSet(w, c.Ranks)
	writeExtra(w, c.Extra, "ranks")
}

// failedRanks reads what an exception says of failed ranks.
func (m *scratch) failedRanks(ranks, nodelist, action jsonobj.Value) *FailedRanks {
	if m.failed == nil {
		m.failed = new(FailedRanks)
	}
	f := m.failed
	*f = FailedRanks{Ranks: m.set(ranks), Nodelist: m.text(nodelist)}
	if f.Ranks.IsEmpty() {
		ranks.Fail(errEmpty)
	}
	switch string(action.TextBytes()) {
	case "keep":
		f.Action = FailedKeep
	case "drop":
		f.Action = FailedDrop
	default:
		action.Fail(errAction)
	}
	return f
}

func (f *FailedRanks) write(w *jsonobj.Writer) {
	if f.Ranks.IsEmpty() {
		w.Fail("ranks", errEmpty)
	}
	writeSet(w, f.Ranks)
	if f.Nodelist != "" {
		w.Text("nodelist", f.Nodelist)
	}
	if f.Action != FailedKeep && f.Action != FailedDrop {
		w.Fail("action", errAction)
		return
	}
	w.Text("action", f.Action.String())
}

// seconds reads a duration in seconds, not negative: exactly, where it has at
// most nine decimals and no exponent, else rounded to the nanosecond. What is
// not zero does not become zero.
func seconds(v jsonobj.Value) time.Duration {
	const most = float64(math.MaxInt64) / 1e9
	f := v.Float(0, most)
	if d, ok := exactSeconds(v.Raw()); ok {
		return d
	}
	switch d := math.Round(f * 1e9); {
	case d >= math.MaxInt64:
		return math.MaxInt64
	case d < 1 && f > 0:
		return 1
	default:
		return time.Duration(d)
	}
}

// exactSeconds reads digits and up to nine decimals, of a number that is in
// range.
func exactSeconds(raw []byte) (time.Duration, bool) {
	n, decimals := uint64(0), -1
	for _, c := range raw {
		switch {
		case c == '.' && decimals < 0:
			decimals = 0
			continue
		case c < '0' || c > '9' || n > math.MaxInt64/10:
			return 0, false
		case decimals >= 0:
			decimals++
		}
		n = n*10 + uint64(c-'0')
	}
	for decimals = max(decimals, 0); decimals < 9; decimals++ {
		if n > math.MaxInt64/10 {
			return 0, false
		}
		n *= 10
	}
	return time.Duration(n), decimals == 9 && n <= math.MaxInt64
}

// writeSeconds appends a duration as a real number of seconds, exactly, and
// nothing for 0.
func writeSeconds(w *jsonobj.Writer, key string, d time.Duration) {
	if d == 0 {
		return
	}
	if d < 0 {
		w.Fail(key, jsonobj.ErrRange)
		return
	}
	w.Key(key)
	w.Out = append(strconv.AppendInt(w.Out, int64(d/time.Second), 10), '.')
	start := len(w.Out)
	w.Out = strconv.AppendInt(w.Out, int64(d%time.Second+time.Second), 10)
	w.Out = append(w.Out[:start], w.Out[start+1:]...) // the 1 that made nine digits of it
	for len(w.Out) > start+1 && w.Out[len(w.Out)-1] == '0' {
		w.Out = w.Out[:len(w.Out)-1]
	}
}

// writeSet appends the key ranks.
func writeSet(w *jsonobj.Writer, s *idset.Set) {
	w.Key("ranks")
	w.Out = append(w.Out, '"')
	w.Out, _ = s.AppendText(w.Out)
	w.Out = append(w.Out, '"')
}

// writeNames appends the key resources, and nothing if there are none.
func writeNames(w *jsonobj.Writer, list []string) {
	if len(list) == 0 {
		return
	}
	if err := checkNames(list); err != nil {
		w.Fail("resources", err)
	}
	w.Texts("resources", list)
}

// writeInt appends an integer that must be from lo to hi.
func writeInt(w *jsonobj.Writer, key string, n, lo, hi int64) {
	if n < lo || n > hi {
		w.Fail(key, jsonobj.ErrRange)
	}
	w.Int(key, n)
}

// writeExtra appends the members of extra, none of which may have a key that the
// event has itself.
func writeExtra(w *jsonobj.Writer, extra json.RawMessage, own ...string) {
	if len(extra) == 0 {
		return
	}
	for c := jsonscan.Object(extra); c.Next(); {
		for _, key := range own {
			if string(c.Key()) == key {
				w.Fail(key, errExtra)
			}
		}
	}
	w.Keep(extra)
}
