package jobstate

import (
	"math"
	"slices"
	"strings"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/jsonobj"
	"github.com/joblife/joblife/jobstate/fsd"
)

// members reads or writes the members of a context, and returns the name of its event. What
// is read may alias text, the object that is read.
func (x *codec) members(o *jsonobj.Reader, c Context, text []byte) (event string) {
	switch c := c.(type) { // a method of the interface would have the caller allocate c
	case *SubmitContext:
		x.userID(o, &fresh(x, c).UserID)
		integer(o, x, "urgency", required, &c.Urgency, 0, UrgencyExpedite)
		integer(o, x, "flags", required, &c.Flags, 0, math.MaxUint32)
		integer(o, x, "version", optional, &c.Version, 1, math.MaxInt32)
		return x.rest(o, EventSubmit, &c.Extra)
	case *DependencyAddContext:
		x.text(o, "description", required, &fresh(x, c).Description)
		return x.rest(o, EventDependencyAdd, &c.Extra)
	case *DependencyRemoveContext:
		x.text(o, "description", required, &fresh(x, c).Description)
		return x.rest(o, EventDependencyRemove, &c.Extra)
	case *SetFlagsContext:
		if v := x.find(o, "flags", required); x.w == nil {
			fresh(x, c).Flags = x.m.list(v)
		} else {
			x.w.Texts("flags", c.Flags)
		}
		return x.rest(o, EventSetFlags, &c.Extra)
	case *JobspecUpdateContext:
		return fresh(x, c).members(o, x, text)
	case *ResourceUpdateContext:
		if v := x.find(o, "expiration", required); x.w == nil {
			fresh(x, c).Expiration = eventlog.Timestamp(v.Float(0, math.MaxFloat64))
		} else { // as flux-core does, as a real number
			x.w.FloatIn("expiration", float64(c.Expiration), 0)
		}
		return x.rest(o, EventResourceUpdate, &c.Extra)
	case *PriorityContext:
		if v := x.find(o, "priority", required); x.w == nil {
			fresh(x, c).Priority = uint32(min(v.Int(0, math.MaxInt64), MaxPriority))
		} else {
			x.w.Int("priority", int64(c.Priority))
		}
		return x.rest(o, EventPriority, &c.Extra)
	case *UrgencyContext:
		x.userID(o, &fresh(x, c).UserID)
		integer(o, x, "urgency", required, &c.Urgency, 0, UrgencyExpedite)
		return x.rest(o, EventUrgency, &c.Extra)
	case *AllocContext:
		fresh(x, c)
		if v := x.find(o, "annotations", optional); v.IsObject() {
			c.Annotations = part(text, v)
		} else if x.w != nil && c.Annotations != nil {
			x.w.Object("annotations", c.Annotations)
		}
		return x.rest(o, EventAlloc, &c.Extra)
	case *ActionStartContext:
		return fresh(x, c).members(o, x)
	case *ActionLaunchContext:
		x.perilog(o, &fresh(x, c).ActionKey)
		integer(o, x, "attempt", required, &c.Attempt, 1, math.MaxUint32)
		x.ranks(o, &c.Ranks, 0)
		c.ActionMode.members(o, x)
		return x.rest(o, c.Kind.event(eventPerilogLaunch, eventPerilogLaunch, eventHousekeepingLaunch), &c.Extra)
	case *ActionFailContext:
		x.perilog(o, &fresh(x, c).ActionKey)
		x.ranks(o, &c.Ranks, 1)
		x.text(o, "cause", required, &c.Cause)
		x.status(o, &c.Status)
		x.text(o, "note", optional, &c.Note)
		x.flag(o, "drain", optional, &c.Drain)
		return x.rest(o, c.Kind.event(eventPerilogFail, eventPerilogFail, eventHousekeepingFail), &c.Extra)
	case *ActionReleaseContext:
		x.perilog(o, &fresh(x, c).ActionKey)
		x.ranks(o, &c.Ranks, 0)
		x.status(o, &c.Status)
		x.resources(o, &c.Resources)
		return x.rest(o, c.Kind.event(eventPerilogRelease, eventPerilogRelease, eventHousekeepingRelease), &c.Extra)
	case *ActionFinishContext:
		x.action(o, &fresh(x, c).ActionKey)
		x.status(o, &c.Status)
		return x.rest(o, c.Kind.event(EventPrologFinish, EventEpilogFinish, eventHousekeepingFinish), &c.Extra)
	case *ReleaseContext:
		fresh(x, c)
		switch v := x.find(o, "ranks", required); {
		case x.w == nil && string(v.TextBytes()) == "all":
			c.Ranks.All = true
		case x.w == nil:
			c.Ranks.Set = x.m.set(v)
		case c.Ranks.All:
			x.w.Text("ranks", "all")
		default:
			writeSet(x.w, c.Ranks.Set)
		}
		x.flag(o, "final", required, &c.Final)
		return x.rest(o, EventRelease, &c.Extra)
	case *FinishContext:
		x.status(o, &fresh(x, c).Status)
		return x.rest(o, EventFinish, &c.Extra)
	case *ExceptionContext:
		return fresh(x, c).members(o, x)
	case *DrainedContext:
		x.ranks(o, &fresh(x, c).Ranks, 0)
		return x.rest(o, EventDrained, &c.Extra)
	case *MemoContext: // the object as it is
		if fresh(x, c); x.w == nil {
			c.Values = text
		} else if jsonobj.KindOf(c.Values) != jsonobj.KindObject {
			x.w.Fail("", jsonobj.ErrKind)
		} else {
			x.w.Keep(c.Values)
		}
		return EventMemo
	}
	return ""
}

// members refuses to write no updates: only the reference does.
func (c *JobspecUpdateContext) members(o *jsonobj.Reader, x *codec, text []byte) (event string) {
	if x.w == nil {
		for all := o.Value().Object(); all.Next(); {
			path := string(all.Key())
			if !updatePath(path) {
				all.Value().Fail(errPath)
			}
			c.Updates = append(c.Updates, Update{Path: path, Value: part(text, all.Value())})
		}
		return EventJobspecUpdate
	}
	if len(c.Updates) == 0 {
		x.w.Fail("", errEmpty)
	}
	paths := make([]string, len(c.Updates))
	for i, u := range c.Updates {
		if !updatePath(u.Path) {
			x.w.Fail(u.Path, errPath)
		}
		x.w.Raw(u.Path, u.Value)
		paths[i] = u.Path
	}
	slices.Sort(paths)
	for i, path := range paths {
		if i > 0 && paths[i-1] == path {
			x.w.Fail(path, errTwice)
		}
	}
	return EventJobspecUpdate
}

// updatePath reports whether a jobspec-update may have the path: a key of RFC 14, or one below it.
func updatePath(path string) bool {
	top, _, _ := strings.Cut(path, ".")
	return (top == "attributes" || top == "resources" || top == "tasks") && !strings.Contains(path, "..") && !strings.HasSuffix(path, ".")
}

// members has a note that only a writer must have: old logs lack it.
func (c *ExceptionContext) members(o *jsonobj.Reader, x *codec) (event string) {
	x.text(o, "type", required, &c.Type)
	integer(o, x, "severity", required, &c.Severity, 0, MaxSeverity)
	x.text(o, "note", written, &c.Note)
	if v := x.find(o, "userid", optional); !v.Absent() {
		if id := userID(v); string(v.Raw()) != "-1" { // flux-core before 0.41: no user raised it
			c.UserID = Some(id)
		}
	} else if x.w != nil && c.UserID.Set {
		x.w.Int("userid", int64(c.UserID.Value))
	}
	maybe(o, x, "wait_status", &c.WaitStatus, math.MinInt32, math.MaxInt32)
	switch {
	case x.w == nil:
		if c.Severity > 0 && !o.Find("ranks").Absent() && !o.Find("action").Absent() {
			if x.m.failed == nil {
				x.m.failed = new(FailedRanks)
			}
			c.Failed = x.m.failed
			fresh(x, c.Failed).members(o, x)
		}
	case c.Failed != nil:
		if c.Severity == 0 {
			x.w.Fail("severity", errFatal)
		}
		c.Failed.members(o, x)
	case len(c.Extra) > 0 && c.Severity > 0 && hasKey(c.Extra, "ranks") && hasKey(c.Extra, "action"):
		x.w.Fail("ranks", errExtra) // they would be read as failed ranks
	}
	return x.rest(o, EventException, &c.Extra)
}

// members are those of an exception that names failed ranks. In others the keys are unknown.
func (f *FailedRanks) members(o *jsonobj.Reader, x *codec) {
	x.ranks(o, &f.Ranks, 1)
	x.text(o, "nodelist", optional, &f.Nodelist)
	v := x.find(o, "action", required)
	if string(v.TextBytes()) == "keep" {
		f.Action = FailedKeep
	} else if string(v.TextBytes()) == "drop" {
		f.Action = FailedDrop
	}
	if f.Action != FailedKeep && f.Action != FailedDrop {
		x.fail(v, "action", errAction)
	} else if x.w != nil {
		x.w.Text("action", f.Action.String())
	}
}

func (a *ActionMode) members(o *jsonobj.Reader, x *codec) {
	if v := x.find(o, "per-rank", optional); !v.Absent() {
		if a.PerRank = v.Bool(); !a.PerRank {
			v.Fail(errFalse)
		}
	} else if x.w != nil && a.PerRank {
		x.w.Bool("per-rank", true)
	}
	maybe(o, x, "leader", &a.Leader, 0, idset.MaxID)
	x.seconds(o, "timeout", &a.Timeout)
	x.seconds(o, "kill-timeout", &a.KillTimeout)
	if a.PerRank && a.Leader.Set {
		x.fail(o.Value(), "", errHow)
	}
}

func (c *ActionStartContext) members(o *jsonobj.Reader, x *codec) (event string) {
	x.action(o, &c.ActionKey)
	if v := x.find(o, "ranks", optional); !v.Absent() {
		c.Ranks.Set = x.m.set(v)
	} else if x.w == nil {
		c.Ranks.All = true
	} else if !c.Ranks.All {
		writeSet(x.w, c.Ranks.Set)
	}
	x.resources(o, &c.Resources)
	c.ActionMode.members(o, x)
	integer(o, x, "attempt", optional, &c.Attempt, 1, math.MaxUint32)
	if c.Attempt > 0 && !c.Given() {
		x.fail(o.Value(), "", errAttempt)
	}
	if c.Kind == ActionHousekeeping {
		c.housekeeping(o, x)
	} else if c.ReleaseAfter.Set || c.OnFailure != "" {
		x.fail(o.Value(), "", errHousekeeping)
	}
	return x.rest(o, c.Kind.event(EventPrologStart, EventEpilogStart, eventHousekeepingStart), &c.Extra)
}

// housekeeping is what housekeeping alone has.
func (c *ActionStartContext) housekeeping(o *jsonobj.Reader, x *codec) {
	after := &c.ReleaseAfter
	if v := x.find(o, "release-after", optional); !v.Absent() {
		*after = Some(jsonobj.Parse(v, fsd.Parse))
	} else if x.w != nil && after.Set {
		if after.Value < 0 {
			x.w.Fail("release-after", jsonobj.ErrRange)
		}
		x.w.Text("release-after", after.Value.String())
	}
	v := x.text(o, "on-failure", optional, (*string)(&c.OnFailure))
	switch c.OnFailure {
	case OnFailureDrain, OnFailureHold, OnFailureRelease:
	default:
		if c.OnFailure != "" || !v.Absent() {
			x.fail(v, "on-failure", errOnFailure)
		}
	}
}
