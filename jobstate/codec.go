package jobstate

import (
	"encoding/json"
	"math"
	"strings"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/internal/jsonobj"
)

// status reads a status of wait(2).
func status(o *jsonobj.Reader) int32 { return int32(o.Int(math.MinInt32, math.MaxInt32)) }

// userID reads a user id. The reference wrote ids above 2^31-1 as the negative
// numbers that they are in 32 bits.
func userID(o *jsonobj.Reader) uint32 { return uint32(o.Int(math.MinInt32, math.MaxUint32)) }

// unknownUser is what flux-core wrote before 0.41 into an exception that no user raised.
const unknownUser = "-1"

func (c *SubmitContext) decode(o *jsonobj.Reader) {
	*c = SubmitContext{}
	for o.Next() {
		switch string(o.Key()) {
		case "userid":
			c.UserID = userID(o)
		case "urgency":
			c.Urgency = uint8(o.Int(0, UrgencyExpedite))
		case "flags":
			c.Flags = Flags(o.Int(0, math.MaxUint32))
		case "version":
			c.Version = int(min(o.Int(1, math.MaxInt64), math.MaxInt32))
		default:
			c.Extra = o.Keep(c.Extra)
		}
	}
	o.Require("userid", "urgency", "flags")
}

func (c *SubmitContext) write(w *jsonobj.Writer) {
	w.Int("userid", int64(c.UserID))
	writeInt(w, "urgency", int64(c.Urgency), 0, UrgencyExpedite)
	w.Int("flags", int64(c.Flags))
	if c.Version != 0 {
		writeInt(w, "version", int64(c.Version), 1, math.MaxInt32)
	}
	writeExtra(w, c.Extra, "userid", "urgency", "flags", "version")
}

func (c *DependencyAddContext) decode(o *jsonobj.Reader, m *scratch) {
	c.Description, c.Extra = described(o, m)
}

func (c *DependencyAddContext) write(w *jsonobj.Writer) {
	w.Text("description", c.Description)
	writeExtra(w, c.Extra, "description")
}

func (c *DependencyRemoveContext) decode(o *jsonobj.Reader, m *scratch) {
	c.Description, c.Extra = described(o, m)
}

func (c *DependencyRemoveContext) write(w *jsonobj.Writer) {
	w.Text("description", c.Description)
	writeExtra(w, c.Extra, "description")
}

func described(o *jsonobj.Reader, m *scratch) (description string, extra json.RawMessage) {
	for find(o, "description", &extra) {
		description = m.text(o.Value())
	}
	return description, extra
}

func (c *PriorityContext) decode(o *jsonobj.Reader) {
	*c = PriorityContext{}
	for find(o, "priority", &c.Extra) {
		c.Priority = uint32(min(o.Int(0, math.MaxInt64), MaxPriority))
	}
}

func (c *PriorityContext) write(w *jsonobj.Writer) {
	w.Int("priority", int64(c.Priority))
	writeExtra(w, c.Extra, "priority")
}

func (c *UrgencyContext) decode(o *jsonobj.Reader) {
	*c = UrgencyContext{}
	for o.Next() {
		switch string(o.Key()) {
		case "urgency":
			c.Urgency = uint8(o.Int(0, UrgencyExpedite))
		case "userid":
			c.UserID = userID(o)
		default:
			c.Extra = o.Keep(c.Extra)
		}
	}
	o.Require("urgency", "userid")
}

func (c *UrgencyContext) write(w *jsonobj.Writer) {
	w.Int("userid", int64(c.UserID))
	writeInt(w, "urgency", int64(c.Urgency), 0, UrgencyExpedite)
	writeExtra(w, c.Extra, "userid", "urgency")
}

func (c *ReleaseContext) decode(o *jsonobj.Reader, m *scratch) {
	*c = ReleaseContext{}
	for o.Next() {
		switch string(o.Key()) {
		case "ranks":
			if v := o.Value(); string(v.TextBytes()) == "all" {
				c.Ranks.All = true
			} else {
				c.Ranks.Set = m.set(v)
			}
		case "final":
			c.Final = o.Bool()
		default:
			c.Extra = o.Keep(c.Extra)
		}
	}
	o.Require("ranks", "final")
}

func (c *ReleaseContext) write(w *jsonobj.Writer) {
	if c.Ranks.All {
		w.Text("ranks", "all")
	} else {
		writeSet(w, c.Ranks.Set)
	}
	w.Bool("final", c.Final)
	writeExtra(w, c.Extra, "ranks", "final")
}

func (c *FinishContext) decode(o *jsonobj.Reader) {
	*c = FinishContext{}
	for find(o, "status", &c.Extra) {
		c.Status = status(o)
	}
}

func (c *FinishContext) write(w *jsonobj.Writer) {
	w.Int("status", int64(c.Status))
	writeExtra(w, c.Extra, "status")
}

func (c *ExceptionContext) decode(o *jsonobj.Reader, m *scratch) {
	*c = ExceptionContext{}
	// These three are unknown keys unless the exception names failed ranks.
	var ranks, nodelist, action jsonobj.Value
	for o.Next() {
		switch string(o.Key()) {
		case "type":
			c.Type = m.text(o.Value())
		case "severity":
			c.Severity = uint8(o.Int(0, MaxSeverity))
		case "note":
			c.Note = m.text(o.Value())
		case "userid":
			if id := userID(o); string(o.Value().Raw()) != unknownUser {
				c.UserID = Some(id)
			}
		case "wait_status":
			c.WaitStatus = Some(status(o))
		case "ranks":
			ranks = o.Value()
		case "nodelist":
			nodelist = o.Value()
		case "action":
			action = o.Value()
		default:
			c.Extra = o.Keep(c.Extra)
		}
	}
	// The note is required of a writer only: old logs lack it.
	o.Require("type", "severity")
	if c.Severity > 0 && !ranks.Absent() && !action.Absent() {
		c.Failed = m.failedRanks(ranks, nodelist, action)
		return
	}
	c.Extra = member("ranks", ranks, c.Extra)
	c.Extra = member("nodelist", nodelist, c.Extra)
	c.Extra = member("action", action, c.Extra)
}

// write appends the note even if it is empty.
func (c *ExceptionContext) write(w *jsonobj.Writer) {
	w.Text("type", c.Type)
	writeInt(w, "severity", int64(c.Severity), 0, MaxSeverity)
	w.Text("note", c.Note)
	if c.UserID.Set {
		w.Int("userid", int64(c.UserID.Value))
	}
	if c.WaitStatus.Set {
		w.Int("wait_status", int64(c.WaitStatus.Value))
	}
	if c.Failed != nil {
		if c.Severity == 0 {
			w.Fail("severity", errFatal)
		}
		c.Failed.write(w)
		writeExtra(w, c.Extra, "type", "severity", "note", "userid", "wait_status", "ranks", "nodelist", "action")
		return
	}
	if c.Severity > 0 && hasKey(c.Extra, "ranks") && hasKey(c.Extra, "action") {
		w.Fail("ranks", errExtra)
	}
	writeExtra(w, c.Extra, "type", "severity", "note", "userid", "wait_status")
}

func hasKey(object json.RawMessage, key string) bool { return peek(object, key) != nil }

func peek(object json.RawMessage, key string) []byte {
	d := jsonobj.NewDoc(object)
	v := d.Root().Member(key)
	if v.Absent() {
		return nil
	}
	return part(object, v)
}

// part returns the bytes of a value of text, an object. v.Raw would make the Doc of v escape.
func part(text []byte, v jsonobj.Value) json.RawMessage {
	from, to := v.Offset(), v.Offset()+len(v.Raw())
	return text[from:to:to]
}

func (c *AllocContext) decode(o *jsonobj.Reader, text []byte) {
	*c = AllocContext{}
	for o.Next() {
		if string(o.Key()) != "annotations" {
			c.Extra = o.Keep(c.Extra)
		} else if v := o.Value(); v.IsObject() {
			c.Annotations = part(text, v)
		}
	}
}

func (c *AllocContext) write(w *jsonobj.Writer) {
	if c.Annotations != nil {
		if jsonobj.KindOf(c.Annotations) != jsonobj.KindObject {
			w.Fail("annotations", jsonobj.ErrKind)
			return
		}
		w.Raw("annotations", c.Annotations)
	}
	writeExtra(w, c.Extra, "annotations")
}

func (c *ResourceUpdateContext) decode(o *jsonobj.Reader) {
	*c = ResourceUpdateContext{}
	for find(o, "expiration", &c.Extra) {
		c.Expiration = eventlog.Timestamp(o.Float(0, math.MaxFloat64))
	}
}

// write appends the expiration as flux-core does, as a real number.
func (c *ResourceUpdateContext) write(w *jsonobj.Writer) {
	if c.Expiration < 0 {
		w.Fail("expiration", jsonobj.ErrRange)
	}
	w.Float("expiration", float64(c.Expiration))
	writeExtra(w, c.Extra, "expiration")
}

func (c *SetFlagsContext) decode(o *jsonobj.Reader, m *scratch) {
	*c = SetFlagsContext{Flags: c.Flags[:0]}
	for find(o, "flags", &c.Extra) {
		c.Flags = m.list(o.Value(), c.Flags)
	}
}

func (c *SetFlagsContext) write(w *jsonobj.Writer) {
	w.Texts("flags", c.Flags)
	writeExtra(w, c.Extra, "flags")
}

func (c *JobspecUpdateContext) decode(o *jsonobj.Reader, text []byte) {
	c.Updates = c.Updates[:0]
	for o.Next() {
		path := string(o.Key())
		if !updatePath(path) {
			o.Value().Fail(errPath)
		}
		c.Updates = append(c.Updates, Update{Path: path, Value: part(text, o.Value())})
	}
}

// write appends the updates in their order, and refuses to write none: only the reference does.
func (c *JobspecUpdateContext) write(w *jsonobj.Writer) {
	if len(c.Updates) == 0 {
		w.Fail("", errEmpty)
	}
	for i, u := range c.Updates {
		if !updatePath(u.Path) {
			w.Fail(u.Path, errPath)
		}
		for _, before := range c.Updates[:i] {
			if before.Path == u.Path {
				w.Fail(u.Path, errExtra)
			}
		}
		w.Raw(u.Path, u.Value)
	}
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

func (c *MemoContext) write(w *jsonobj.Writer) {
	if jsonobj.KindOf(c.Values) != jsonobj.KindObject {
		w.Fail("", jsonobj.ErrKind)
		return
	}
	w.Keep(c.Values)
}
