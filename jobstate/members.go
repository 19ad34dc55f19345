package jobstate

import (
	"encoding/json"
	"math"
	"strings"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/jsonobj"
	"github.com/joblife/joblife/jobstate/fsd"
)

// members passes over the members of a context, and returns the name of its event and the
// unknown members. What is read may alias text, the object that is read.
func (x *codec) members(o *jsonobj.Reader, c Context, text []byte) (event string, extra json.RawMessage) {
	switch c := c.(type) { // a method of the interface would have the caller allocate c
	case *SubmitContext:
		return fresh(x, c).members(o, x)
	case *DependencyAddContext:
		x.text(o, "description", required, &fresh(x, c).Description)
		return EventDependencyAdd, x.rest(o, &c.Extra)
	case *DependencyRemoveContext:
		x.text(o, "description", required, &fresh(x, c).Description)
		return EventDependencyRemove, x.rest(o, &c.Extra)
	case *SetFlagsContext:
		return fresh(x, c).members(o, x)
	case *JobspecUpdateContext:
		return fresh(x, c).members(o, x, text)
	case *ResourceUpdateContext:
		return fresh(x, c).members(o, x)
	case *PriorityContext:
		clamped(o, x, "priority", required, &fresh(x, c).Priority, 0, MaxPriority)
		return EventPriority, x.rest(o, &c.Extra)
	case *UrgencyContext:
		x.userID(o, &fresh(x, c).UserID)
		integer(o, x, "urgency", required, &c.Urgency, 0, UrgencyExpedite)
		return EventUrgency, x.rest(o, &c.Extra)
	case *AllocContext:
		return fresh(x, c).members(o, x, text)
	case *ActionStartContext:
		return fresh(x, c).members(o, x)
	case *ActionLaunchContext:
		return fresh(x, c).members(o, x)
	case *ActionFailContext:
		return fresh(x, c).members(o, x)
	case *ActionReleaseContext:
		return fresh(x, c).members(o, x)
	case *ActionFinishContext:
		x.action(o, &fresh(x, c).ActionKey)
		x.status(o, &c.Status)
		return c.Kind.event(EventPrologFinish, EventEpilogFinish, eventHousekeepingFinish), x.rest(o, &c.Extra)
	case *ReleaseContext:
		return fresh(x, c).members(o, x)
	case *FinishContext:
		x.status(o, &fresh(x, c).Status)
		return EventFinish, x.rest(o, &c.Extra)
	case *ExceptionContext:
		return fresh(x, c).members(o, x)
	case *DrainedContext:
		x.ranks(o, &fresh(x, c).Ranks, 0)
		return EventDrained, x.rest(o, &c.Extra)
	case *MemoContext:
		return fresh(x, c).members(o, x, text)
	}
	return "", nil
}

func (c *SubmitContext) members(o *jsonobj.Reader, x *codec) (event string, extra json.RawMessage) {
	x.userID(o, &c.UserID)
	integer(o, x, "urgency", required, &c.Urgency, 0, UrgencyExpedite)
	integer(o, x, "flags", required, &c.Flags, 0, math.MaxUint32)
	clamped(o, x, "version", optional, &c.Version, 1, math.MaxInt32)
	return EventSubmit, x.rest(o, &c.Extra)
}

func (c *SetFlagsContext) members(o *jsonobj.Reader, x *codec) (event string, extra json.RawMessage) {
	switch x.at(o, "flags", required) {
	case reading:
		c.Flags = x.m.list(o.Value())
	case writing:
		x.w.Texts("flags", c.Flags)
	}
	return EventSetFlags, x.rest(o, &c.Extra)
}

// members refuses to write no updates: only the reference does.
func (c *JobspecUpdateContext) members(o *jsonobj.Reader, x *codec, text []byte) (event string, extra json.RawMessage) {
	switch x.mode {
	case reading:
		if !x.more {
			return EventJobspecUpdate, nil
		}
		path := string(o.Key())
		if !updatePath(path) {
			o.Value().Fail(errPath)
		}
		c.Updates = append(c.Updates, Update{Path: path, Value: part(text, o.Value())})
		x.next(o)
	case writing:
		if len(c.Updates) == 0 {
			x.w.Fail("", errEmpty)
		}
		for i, u := range c.Updates {
			if !updatePath(u.Path) {
				x.w.Fail(u.Path, errPath)
			}
			for _, before := range c.Updates[:i] {
				if before.Path == u.Path {
					x.w.Fail(u.Path, errExtra)
				}
			}
			x.w.Raw(u.Path, u.Value)
		}
	}
	return EventJobspecUpdate, nil
}

// updatePath reports whether a jobspec-update may have the path: a key of RFC 14, or one below it.
func updatePath(path string) bool {
	top, rest, more := strings.Cut(path, ".")
	switch {
	case top != "attributes" && top != "resources" && top != "tasks":
		return false
	case !more:
		return true
	default:
		return rest != "" && rest[0] != '.' && rest[len(rest)-1] != '.' && !strings.Contains(rest, "..")
	}
}

// members writes the expiration as flux-core does, as a real number.
func (c *ResourceUpdateContext) members(o *jsonobj.Reader, x *codec) (event string, extra json.RawMessage) {
	switch x.at(o, "expiration", required) {
	case reading:
		c.Expiration = eventlog.Timestamp(o.Float(0, math.MaxFloat64))
	case writing:
		x.w.FloatIn("expiration", float64(c.Expiration), 0)
	}
	return EventResourceUpdate, x.rest(o, &c.Extra)
}

func (c *AllocContext) members(o *jsonobj.Reader, x *codec, text []byte) (event string, extra json.RawMessage) {
	switch x.at(o, "annotations", optional) {
	case reading:
		if v := o.Value(); v.IsObject() {
			c.Annotations = part(text, v)
		}
	case writing:
		if c.Annotations != nil {
			x.w.Object("annotations", c.Annotations)
		}
	}
	return EventAlloc, x.rest(o, &c.Extra)
}

func (c *ReleaseContext) members(o *jsonobj.Reader, x *codec) (event string, extra json.RawMessage) {
	switch x.at(o, "ranks", required) {
	case reading:
		if v := o.Value(); string(v.TextBytes()) == "all" {
			c.Ranks.All = true
		} else {
			c.Ranks.Set = x.m.set(v)
		}
	case writing:
		if c.Ranks.All {
			x.w.Text("ranks", "all")
		} else {
			writeSet(x.w, c.Ranks.Set)
		}
	}
	x.flag(o, "final", required, &c.Final)
	return EventRelease, x.rest(o, &c.Extra)
}

// unknownUser is what flux-core wrote before 0.41 into an exception that no user raised.
const unknownUser = "-1"

// members has a note that only a writer must have: old logs lack it.
func (c *ExceptionContext) members(o *jsonobj.Reader, x *codec) (event string, extra json.RawMessage) {
	x.text(o, "type", required, &c.Type)
	integer(o, x, "severity", required, &c.Severity, 0, MaxSeverity)
	x.text(o, "note", written, &c.Note)
	switch x.at(o, "userid", optional) {
	case reading:
		if id := userID(o); string(o.Value().Raw()) != unknownUser {
			c.UserID = Some(id)
		}
	case writing:
		if c.UserID.Set {
			x.w.Int("userid", int64(c.UserID.Value))
		}
	}
	maybe(o, x, "wait_status", &c.WaitStatus, math.MinInt32, math.MaxInt32)
	c.failedRanks(o, x)
	return EventException, x.rest(o, &c.Extra)
}

// failedRanks has keys that are unknown unless the exception names failed ranks.
func (c *ExceptionContext) failedRanks(o *jsonobj.Reader, x *codec) {
	f := c.Failed
	if x.mode == reading || x.mode == forbidding && f != nil {
		for _, key := range []string{"ranks", "nodelist", "action"} {
			x.open = x.at(o, key, optional) == reading || x.open
		}
	}
	switch {
	case x.mode == ending:
		var ranks, nodelist, action jsonobj.Value
		for all := o.Value().Object(); all.Next(); {
			switch string(all.Key()) {
			case "ranks":
				ranks = all.Value()
			case "nodelist":
				nodelist = all.Value()
			case "action":
				action = all.Value()
			}
		}
		if c.Severity > 0 && !ranks.Absent() && !action.Absent() {
			c.Failed = x.m.failedRanks(ranks, nodelist, action)
			return
		}
		c.Extra = member("ranks", ranks, c.Extra)
		c.Extra = member("nodelist", nodelist, c.Extra)
		c.Extra = member("action", action, c.Extra)
	case x.mode == writing && f != nil:
		if c.Severity == 0 {
			x.w.Fail("severity", errFatal)
		}
		f.write(x.w)
	case x.mode == writing && c.Severity > 0 && hasKey(c.Extra, "ranks") && hasKey(c.Extra, "action"):
		x.w.Fail("ranks", errExtra)
	}
}

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

// members takes the object as it is.
func (c *MemoContext) members(o *jsonobj.Reader, x *codec, text []byte) (event string, extra json.RawMessage) {
	switch x.mode {
	case reading:
		x.more, c.Values = false, text
	case writing:
		if jsonobj.KindOf(c.Values) != jsonobj.KindObject {
			x.w.Fail("", jsonobj.ErrKind)
			return EventMemo, nil
		}
		x.w.Keep(c.Values)
	}
	return EventMemo, nil
}

func (a *ActionMode) members(o *jsonobj.Reader, x *codec) {
	switch x.at(o, "per-rank", optional) {
	case reading:
		if a.PerRank = o.Bool(); !a.PerRank {
			o.Value().Fail(errFalse)
		}
	case writing:
		if a.PerRank {
			x.w.Bool("per-rank", true)
		}
	}
	maybe(o, x, "leader", &a.Leader, 0, idset.MaxID)
	x.seconds(o, "timeout", &a.Timeout)
	x.seconds(o, "kill-timeout", &a.KillTimeout)
	if a.PerRank && a.Leader.Set {
		x.refuse(o, errHow)
	}
}

func (c *ActionStartContext) members(o *jsonobj.Reader, x *codec) (event string, extra json.RawMessage) {
	if x.first {
		c.Ranks.All = true
	}
	x.action(o, &c.ActionKey)
	switch x.at(o, "ranks", optional) {
	case reading:
		c.Ranks = Ranks{Set: x.m.set(o.Value())}
	case writing:
		if !c.Ranks.All {
			writeSet(x.w, c.Ranks.Set)
		}
	}
	x.resources(o, &c.Resources)
	c.ActionMode.members(o, x)
	integer(o, x, "attempt", optional, &c.Attempt, 1, math.MaxUint32)
	if c.Attempt > 0 && !c.Owned() {
		x.refuse(o, errAttempt)
	}
	if c.Kind == ActionHousekeeping {
		c.housekeeping(o, x)
	} else if c.ReleaseAfter.Set || c.OnFailure != "" {
		x.refuse(o, errHousekeeping)
	}
	return c.Kind.event(EventPrologStart, EventEpilogStart, eventHousekeepingStart), x.rest(o, &c.Extra)
}

// housekeeping is what housekeeping alone has.
func (c *ActionStartContext) housekeeping(o *jsonobj.Reader, x *codec) {
	switch x.at(o, "release-after", optional) {
	case reading:
		c.ReleaseAfter = Some(jsonobj.Parse(o.Value(), fsd.Parse))
	case writing:
		if !c.ReleaseAfter.Set {
			break
		}
		if c.ReleaseAfter.Value < 0 {
			x.w.Fail("release-after", jsonobj.ErrRange)
		}
		x.w.Text("release-after", c.ReleaseAfter.Value.String())
	}
	valid := func() bool {
		return c.OnFailure == OnFailureDrain || c.OnFailure == OnFailureHold || c.OnFailure == OnFailureRelease
	}
	switch x.at(o, "on-failure", optional) {
	case reading:
		if c.OnFailure = OnFailure(x.m.text(o.Value())); !valid() {
			o.Value().Fail(errOnFailure)
		}
	case writing:
		if c.OnFailure == "" {
			break
		}
		if !valid() {
			x.w.Fail("on-failure", errOnFailure)
		}
		x.w.Text("on-failure", string(c.OnFailure))
	}
}

func (c *ActionLaunchContext) members(o *jsonobj.Reader, x *codec) (event string, extra json.RawMessage) {
	x.action(o, &c.ActionKey)
	integer(o, x, "attempt", required, &c.Attempt, 1, math.MaxUint32)
	x.ranks(o, &c.Ranks, 0)
	c.ActionMode.members(o, x)
	return c.Kind.event(eventPrologLaunch, eventEpilogLaunch, eventHousekeepingLaunch), x.rest(o, &c.Extra)
}

func (c *ActionFailContext) members(o *jsonobj.Reader, x *codec) (event string, extra json.RawMessage) {
	x.action(o, &c.ActionKey)
	x.ranks(o, &c.Ranks, 1)
	x.text(o, "cause", required, &c.Cause)
	x.status(o, &c.Status)
	x.text(o, "note", optional, &c.Note)
	x.flag(o, "drain", optional, &c.Drain)
	return c.Kind.event(eventPrologFail, eventEpilogFail, eventHousekeepingFail), x.rest(o, &c.Extra)
}

func (c *ActionReleaseContext) members(o *jsonobj.Reader, x *codec) (event string, extra json.RawMessage) {
	x.action(o, &c.ActionKey)
	x.ranks(o, &c.Ranks, 0)
	x.status(o, &c.Status)
	x.resources(o, &c.Resources)
	return c.Kind.event(eventPrologRelease, eventEpilogRelease, eventHousekeepingRelease), x.rest(o, &c.Extra)
}
