package jobstate

import (
	"math"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/jsonobj"
	"github.com/joblife/joblife/jobstate/fsd"
)

// decode reads the member that o is at, if it says how an action runs.
func (a *ActionMode) decode(o *jsonobj.Reader) bool {
	switch string(o.Key()) {
	case "per-rank":
		if a.PerRank = o.Bool(); !a.PerRank {
			o.Value().Fail(errFalse)
		}
	case "leader":
		a.Leader = Some(uint32(o.Int(0, idset.MaxID)))
	case "timeout":
		a.Timeout = seconds(o.Value())
	case "kill-timeout":
		a.KillTimeout = seconds(o.Value())
	default:
		return false
	}
	return true
}

// check returns what no key alone shows.
func (a *ActionMode) check() error {
	if a.PerRank && a.Leader.Set {
		return errHow
	}
	return nil
}

func (a *ActionMode) write(w *jsonobj.Writer) {
	if a.PerRank {
		w.Bool("per-rank", true)
	}
	if a.Leader.Set {
		writeInt(w, "leader", int64(a.Leader.Value), 0, idset.MaxID)
	}
	writeSeconds(w, "timeout", a.Timeout)
	writeSeconds(w, "kill-timeout", a.KillTimeout)
	if err := a.check(); err != nil {
		w.Fail("", err)
	}
}

func (c *ActionStartContext) decode(o *jsonobj.Reader, m *scratch) {
	*c = ActionStartContext{ActionKey: ActionKey{Kind: m.action}, Ranks: Ranks{All: true}, Resources: c.Resources[:0]}
	for o.Next() {
		switch key := string(o.Key()); {
		case key == "description":
			c.Description = m.text(o.Value())
		case key == "ranks":
			c.Ranks = Ranks{Set: m.set(o.Value())}
		case key == "resources":
			c.Resources = m.names(o.Value(), c.Resources)
		case key == "attempt":
			c.Attempt = uint32(o.Int(1, math.MaxUint32))
		case c.ActionMode.decode(o):
		case c.Kind == ActionHousekeeping && key == "release-after":
			c.ReleaseAfter = Some(jsonobj.Parse(o.Value(), fsd.Parse))
		case c.Kind == ActionHousekeeping && key == "on-failure":
			if c.OnFailure = OnFailure(m.text(o.Value())); !c.OnFailure.valid() {
				o.Value().Fail(errOnFailure)
			}
		default:
			c.Extra = o.Keep(c.Extra)
		}
	}
	o.Require("description")
	if err := c.check(); err != nil {
		o.Value().Fail(err)
	}
}

func (f OnFailure) valid() bool {
	return f == OnFailureDrain || f == OnFailureHold || f == OnFailureRelease
}

// check returns what no key alone shows.
func (c *ActionStartContext) check() error {
	if c.Attempt > 0 && !c.Owned() {
		return errAttempt
	}
	return c.ActionMode.check()
}

func (c *ActionStartContext) write(w *jsonobj.Writer) {
	w.Text("description", c.Description)
	if !c.Ranks.All {
		writeSet(w, c.Ranks.Set)
	}
	writeNames(w, c.Resources)
	c.ActionMode.write(w)
	if c.Attempt > 0 {
		w.Int("attempt", int64(c.Attempt))
	}
	if err := c.check(); err != nil {
		w.Fail("", err)
	}
	if c.Kind == ActionHousekeeping {
		c.writeHousekeeping(w)
	} else if c.ReleaseAfter.Set || c.OnFailure != "" {
		w.Fail("", errHousekeeping)
	}
	writeExtra(w, c.Extra, "description", "ranks", "resources", "per-rank", "leader", "timeout", "kill-timeout", "attempt")
}

func (c *ActionStartContext) writeHousekeeping(w *jsonobj.Writer) {
	if c.ReleaseAfter.Set {
		if c.ReleaseAfter.Value < 0 {
			w.Fail("release-after", jsonobj.ErrRange)
		}
		w.Text("release-after", c.ReleaseAfter.Value.String())
	}
	if c.OnFailure != "" {
		if !c.OnFailure.valid() {
			w.Fail("on-failure", errOnFailure)
		}
		w.Text("on-failure", string(c.OnFailure))
	}
	if hasKey(c.Extra, "release-after") || hasKey(c.Extra, "on-failure") {
		w.Fail("", errExtra)
	}
}

func (c *ActionLaunchContext) decode(o *jsonobj.Reader, m *scratch) {
	*c = ActionLaunchContext{ActionKey: ActionKey{Kind: m.action}}
	for o.Next() {
		switch key := string(o.Key()); {
		case key == "description":
			c.Description = m.text(o.Value())
		case key == "attempt":
			c.Attempt = uint32(o.Int(1, math.MaxUint32))
		case key == "ranks":
			c.Ranks = m.set(o.Value())
		case c.ActionMode.decode(o):
		default:
			c.Extra = o.Keep(c.Extra)
		}
	}
	o.Require("description", "attempt", "ranks")
	if err := c.check(); err != nil {
		o.Value().Fail(err)
	}
}

func (c *ActionLaunchContext) write(w *jsonobj.Writer) {
	w.Text("description", c.Description)
	writeInt(w, "attempt", int64(c.Attempt), 1, math.MaxUint32)
	writeSet(w, c.Ranks)
	c.ActionMode.write(w)
	writeExtra(w, c.Extra, "description", "attempt", "ranks", "per-rank", "leader", "timeout", "kill-timeout")
}

func (c *ActionFailContext) decode(o *jsonobj.Reader, m *scratch) {
	*c = ActionFailContext{ActionKey: ActionKey{Kind: m.action}}
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
			c.Extra = o.Keep(c.Extra)
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
	*c = ActionReleaseContext{ActionKey: ActionKey{Kind: m.action}, Resources: c.Resources[:0]}
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
			c.Extra = o.Keep(c.Extra)
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
	*c = ActionFinishContext{ActionKey: ActionKey{Kind: m.action}}
	for o.Next() {
		switch string(o.Key()) {
		case "description":
			c.Description = m.text(o.Value())
		case "status":
			c.Status = status(o)
		default:
			c.Extra = o.Keep(c.Extra)
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
	for find(o, "ranks", &c.Extra) {
		c.Ranks = m.set(o.Value())
	}
}

func (c *DrainedContext) write(w *jsonobj.Writer) {
	writeSet(w, c.Ranks)
	writeExtra(w, c.Extra, "ranks")
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
