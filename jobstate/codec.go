package jobstate

import (
	"encoding/json"
	"math"
	"unicode/utf8"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/internal/jsonscan"
)

func (c *SubmitContext) decode(raw json.RawMessage) (err error) {
	var v SubmitContext
	f := readFields(EventSubmit, raw)
	for f.next() {
		switch string(f.cur.Key()) {
		case "userid":
			v.UserID = uint32(f.int(0, 0, math.MaxUint32))
		case "urgency":
			v.Urgency = uint8(f.int(1, 0, UrgencyExpedite))
		case "flags":
			v.Flags = Flags(f.int(2, 0, math.MaxUint32))
		case "version":
			v.Version = int(min(f.int(3, 1, math.MaxInt64), math.MaxInt32))
		default:
			f.other()
		}
	}
	if v.Extra, err = f.end("userid", "urgency", "flags"); err == nil {
		*c = v
	}
	return err
}

// AppendJSON appends the context as one JSON object.
func (c *SubmitContext) AppendJSON(dst []byte) ([]byte, error) {
	o := writeObject(dst)
	o.int("userid", int64(c.UserID))
	o.int("urgency", int64(c.Urgency))
	o.int("flags", int64(c.Flags))
	if c.Version != 0 {
		o.int("version", int64(c.Version))
	}
	return o.end(c.Extra, new(SubmitContext))
}

// described reads the context of an event that has a description, and a
// status where status is not nil.
func described(event string, raw json.RawMessage, description *string, status *int32, extra *json.RawMessage) error {
	var desc string
	var st int32
	f := readFields(event, raw)
	for f.next() {
		switch key := f.cur.Key(); {
		case string(key) == "description":
			desc = f.text(0)
		case string(key) == "status" && status != nil:
			st = int32(f.int(1, math.MinInt32, math.MaxInt32))
		default:
			f.other()
		}
	}
	var x json.RawMessage
	var err error
	if status != nil {
		x, err = f.end("description", "status")
	} else {
		x, err = f.end("description")
	}
	if err != nil {
		return err
	}
	*description, *extra = desc, x
	if status != nil {
		*status = st
	}
	return nil
}

func (c *DependencyAddContext) decode(raw json.RawMessage) error {
	return described(EventDependencyAdd, raw, &c.Description, nil, &c.Extra)
}

// AppendJSON appends the context as one JSON object.
func (c *DependencyAddContext) AppendJSON(dst []byte) ([]byte, error) {
	o := writeObject(dst)
	o.text("description", c.Description)
	return o.end(c.Extra, new(DependencyAddContext))
}

func (c *DependencyRemoveContext) decode(raw json.RawMessage) error {
	return described(EventDependencyRemove, raw, &c.Description, nil, &c.Extra)
}

// AppendJSON appends the context as one JSON object.
func (c *DependencyRemoveContext) AppendJSON(dst []byte) ([]byte, error) {
	o := writeObject(dst)
	o.text("description", c.Description)
	return o.end(c.Extra, new(DependencyRemoveContext))
}

func (c *ActionStartContext) decode(raw json.RawMessage) error {
	return described(c.EventName(), raw, &c.Description, nil, &c.Extra)
}

// AppendJSON appends the context as one JSON object.
func (c *ActionStartContext) AppendJSON(dst []byte) ([]byte, error) {
	if c.EventName() == "" {
		return dst, &ContextError{Event: c.Kind.String(), Offset: -1, Err: errRange}
	}
	o := writeObject(dst)
	o.text("description", c.Description)
	return o.end(c.Extra, &ActionStartContext{Kind: c.Kind})
}

func (c *ActionFinishContext) decode(raw json.RawMessage) error {
	return described(c.EventName(), raw, &c.Description, &c.Status, &c.Extra)
}

// AppendJSON appends the context as one JSON object.
func (c *ActionFinishContext) AppendJSON(dst []byte) ([]byte, error) {
	if c.EventName() == "" {
		return dst, &ContextError{Event: c.Kind.String(), Offset: -1, Err: errRange}
	}
	o := writeObject(dst)
	o.text("description", c.Description)
	o.int("status", int64(c.Status))
	return o.end(c.Extra, &ActionFinishContext{Kind: c.Kind})
}

func (c *PriorityContext) decode(raw json.RawMessage) (err error) {
	var v PriorityContext
	f := readFields(EventPriority, raw)
	for f.next() {
		switch string(f.cur.Key()) {
		case "priority":
			v.Priority = uint32(f.int(0, 0, MaxPriority))
		default:
			f.other()
		}
	}
	if v.Extra, err = f.end("priority"); err == nil {
		*c = v
	}
	return err
}

// AppendJSON appends the context as one JSON object.
func (c *PriorityContext) AppendJSON(dst []byte) ([]byte, error) {
	o := writeObject(dst)
	o.int("priority", int64(c.Priority))
	return o.end(c.Extra, new(PriorityContext))
}

func (c *UrgencyContext) decode(raw json.RawMessage) (err error) {
	var v UrgencyContext
	f := readFields(EventUrgency, raw)
	for f.next() {
		switch string(f.cur.Key()) {
		case "urgency":
			v.Urgency = uint8(f.int(0, 0, UrgencyExpedite))
		case "userid":
			v.UserID = uint32(f.int(1, 0, math.MaxUint32))
		default:
			f.other()
		}
	}
	if v.Extra, err = f.end("urgency", "userid"); err == nil {
		*c = v
	}
	return err
}

// AppendJSON appends the context as one JSON object.
func (c *UrgencyContext) AppendJSON(dst []byte) ([]byte, error) {
	o := writeObject(dst)
	o.int("userid", int64(c.UserID))
	o.int("urgency", int64(c.Urgency))
	return o.end(c.Extra, new(UrgencyContext))
}

func (c *ReleaseContext) decode(raw json.RawMessage) (err error) {
	var v ReleaseContext
	f := readFields(EventRelease, raw)
	for f.next() {
		switch string(f.cur.Key()) {
		case "ranks":
			if string(f.cur.Raw()) == `"all"` {
				f.seen |= 1 << 0
				v.Ranks.All = true
			} else if s := f.text(0); f.err == nil {
				if v.Ranks, err = parseRanks(s); err != nil {
					f.fail(err)
				}
			}
		case "final":
			v.Final = f.flag(1)
		default:
			f.other()
		}
	}
	if v.Extra, err = f.end("ranks", "final"); err == nil {
		*c = v
	}
	return err
}

// AppendJSON appends the context as one JSON object.
func (c *ReleaseContext) AppendJSON(dst []byte) ([]byte, error) {
	o := writeObject(dst)
	o.text("ranks", c.Ranks.String())
	o.flag("final", c.Final)
	return o.end(c.Extra, new(ReleaseContext))
}

func (c *FinishContext) decode(raw json.RawMessage) (err error) {
	var v FinishContext
	f := readFields(EventFinish, raw)
	for f.next() {
		switch string(f.cur.Key()) {
		case "status":
			v.Status = int32(f.int(0, math.MinInt32, math.MaxInt32))
		default:
			f.other()
		}
	}
	if v.Extra, err = f.end("status"); err == nil {
		*c = v
	}
	return err
}

// AppendJSON appends the context as one JSON object.
func (c *FinishContext) AppendJSON(dst []byte) ([]byte, error) {
	o := writeObject(dst)
	o.int("status", int64(c.Status))
	return o.end(c.Extra, new(FinishContext))
}

func (c *ExceptionContext) decode(raw json.RawMessage) (err error) {
	var v ExceptionContext
	f := readFields(EventException, raw)
	for f.next() {
		switch string(f.cur.Key()) {
		case "type":
			v.Type = f.text(0)
		case "severity":
			v.Severity = uint8(f.int(1, 0, MaxSeverity))
		case "note":
			v.Note = f.text(2)
		case "userid":
			v.UserID = Some(uint32(f.int(3, 0, math.MaxUint32)))
		case "wait_status":
			v.WaitStatus = Some(int32(f.int(4, math.MinInt32, math.MaxInt32)))
		default:
			f.other()
		}
	}
	// The note is required of a writer only: old logs lack it.
	if v.Extra, err = f.end("type", "severity"); err == nil {
		*c = v
	}
	return err
}

// AppendJSON appends the context as one JSON object. The note is written even
// where it is empty.
func (c *ExceptionContext) AppendJSON(dst []byte) ([]byte, error) {
	o := writeObject(dst)
	o.text("type", c.Type)
	o.int("severity", int64(c.Severity))
	o.text("note", c.Note)
	if c.UserID.Set {
		o.int("userid", int64(c.UserID.Value))
	}
	if c.WaitStatus.Set {
		o.int("wait_status", int64(c.WaitStatus.Value))
	}
	return o.end(c.Extra, new(ExceptionContext))
}

func (c *AllocContext) decode(raw json.RawMessage) (err error) {
	var v AllocContext
	f := readFields(EventAlloc, raw)
	for f.next() {
		switch string(f.cur.Key()) {
		case "annotations":
			if v.Annotations = f.cur.Raw(); !isObject(v.Annotations) {
				f.fail(errType)
			}
		default:
			f.other()
		}
	}
	if v.Extra, err = f.end(); err == nil {
		*c = v
	}
	return err
}

// AppendJSON appends the context as one JSON object.
func (c *AllocContext) AppendJSON(dst []byte) ([]byte, error) {
	o := writeObject(dst)
	if c.Annotations != nil {
		if err := checkValue(c.Annotations); err != nil {
			return dst, &ContextError{Event: EventAlloc, Key: "annotations", Offset: -1, Err: err}
		}
		o.raw("annotations", c.Annotations)
	}
	return o.end(c.Extra, new(AllocContext))
}

func (c *ResourceUpdateContext) decode(raw json.RawMessage) (err error) {
	var v ResourceUpdateContext
	f := readFields(EventResourceUpdate, raw)
	for f.next() {
		switch string(f.cur.Key()) {
		case "expiration":
			f.seen |= 1 << 0
			n, ok := jsonscan.Float64(f.cur.Raw())
			switch {
			case !ok:
				f.fail(errType)
			case n < 0:
				f.fail(errRange)
			}
			v.Expiration = eventlog.Timestamp(n)
		default:
			f.other()
		}
	}
	if v.Extra, err = f.end("expiration"); err == nil {
		*c = v
	}
	return err
}

// AppendJSON appends the context as one JSON object. The expiration is written
// as the reference writes it, as a real.
func (c *ResourceUpdateContext) AppendJSON(dst []byte) ([]byte, error) {
	e := float64(c.Expiration)
	if !(e >= 0) || math.IsInf(e, 0) {
		return dst, &ContextError{Event: EventResourceUpdate, Key: "expiration", Offset: -1, Err: errRange}
	}
	o := writeObject(dst)
	o.key("expiration")
	o.out = jsonscan.AppendFloat(o.out, e)
	return o.end(c.Extra, new(ResourceUpdateContext))
}

func (c *SetFlagsContext) decode(raw json.RawMessage) (err error) {
	var v SetFlagsContext
	f := readFields(EventSetFlags, raw)
	for f.next() {
		switch string(f.cur.Key()) {
		case "flags":
			f.seen |= 1 << 0
			v.Flags = f.texts()
		default:
			f.other()
		}
	}
	if v.Extra, err = f.end("flags"); err == nil {
		*c = v
	}
	return err
}

// AppendJSON appends the context as one JSON object.
func (c *SetFlagsContext) AppendJSON(dst []byte) ([]byte, error) {
	o := writeObject(dst)
	o.texts("flags", c.Flags)
	return o.end(c.Extra, new(SetFlagsContext))
}

func (c *JobspecUpdateContext) decode(raw json.RawMessage) (err error) {
	var v JobspecUpdateContext
	f := readFields(EventJobspecUpdate, raw)
	for f.next() {
		path := string(f.cur.Key())
		if !updatePath(path) {
			f.fail(errPath)
			continue
		}
		v.Updates = append(v.Updates, Update{Path: path, Value: jsonscan.AppendCompact(nil, f.cur.Raw())})
	}
	if _, err = f.end(); err != nil {
		return err
	}
	if len(v.Updates) == 0 {
		return &ContextError{Event: EventJobspecUpdate, Offset: 0, Err: errEmpty}
	}
	*c = v
	return nil
}

// AppendJSON appends the context as one JSON object, in the order of Updates.
func (c *JobspecUpdateContext) AppendJSON(dst []byte) ([]byte, error) {
	o := writeObject(dst)
	for _, u := range c.Updates {
		err := checkValue(u.Value)
		if !utf8.ValidString(u.Path) {
			err = errUTF8
		}
		if err != nil {
			return dst, &ContextError{Event: EventJobspecUpdate, Key: clip(u.Path), Offset: -1, Err: err}
		}
		o.raw(u.Path, u.Value)
	}
	return o.end(nil, new(JobspecUpdateContext))
}

func (c *MemoContext) decode(raw json.RawMessage) error {
	if len(raw) == 0 {
		return &ContextError{Event: EventMemo, Offset: -1, Err: errMissing}
	}
	if !isObject(raw) {
		return &ContextError{Event: EventMemo, Offset: 0, Err: errType}
	}
	if err := checkValue(raw); err != nil {
		return &ContextError{Event: EventMemo, Offset: 0, Err: err}
	}
	c.Values = raw
	return nil
}

// AppendJSON appends the context as one JSON object.
func (c *MemoContext) AppendJSON(dst []byte) ([]byte, error) {
	if err := new(MemoContext).decode(c.Values); err != nil {
		return dst, err
	}
	return jsonscan.AppendCompact(dst, c.Values), nil
}
