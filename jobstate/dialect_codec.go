package jobstate

import (
	"math"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/jsonobj"
)

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
