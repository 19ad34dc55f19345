package jobstate

import (
	"encoding/json"
	"math"
	"slices"
	"time"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/jsonobj"
)

// codec reads or writes a context: members names each key once, in the order in which it is
// written. The Reader of what is read stands beside the codec: as a part of it, it would escape.
type codec struct {
	m *scratch        // of what is read
	w *jsonobj.Writer // of what is written; nil: it reads

	keys   [10]string // that were named; housekeeping-start has so many
	named  int
	unread int // how many members were not read
}

// fresh empties a context that is about to be read.
func fresh[T any](x *codec, c *T) *T {
	if x.w == nil {
		*c = *new(T)
	}
	return c
}

// find names a key and returns its value, which is absent in a context that is written.
func (x *codec) find(o *jsonobj.Reader, key string, need presence) (v jsonobj.Value) {
	x.keys[x.named] = key
	x.named++
	if x.w != nil {
		return // absent
	}
	if v = o.Find(key); !v.Absent() {
		x.unread--
	} else if need == required {
		o.Require(key)
	}
	return v
}

func (x *codec) names(key []byte) bool {
	return slices.ContainsFunc(x.keys[:x.named], func(k string) bool { return k == string(key) })
}

// rest reads or writes the members without a key of their own, and returns the name of the event.
func (x *codec) rest(o *jsonobj.Reader, event string, extra *json.RawMessage) string {
	switch {
	case x.w == nil && x.unread > 0:
		for all := o.Value().Object(); all.Next(); {
			if !x.names(all.Key()) {
				*extra = all.Keep(*extra)
			}
		}
	case x.w != nil && len(*extra) > 0:
		d := jsonobj.NewDoc(*extra)
		for all := d.Object(); all.Next(); {
			if x.names(all.Key()) {
				x.w.Fail(string(all.Key()), errExtra)
			}
		}
		x.w.Keep(*extra)
	}
	return event
}

// fail notes what is wrong with the value of a key; "" is the whole context.
func (x *codec) fail(v jsonobj.Value, key string, err error) {
	if x.w == nil {
		v.Fail(err)
	} else {
		x.w.Fail(key, err)
	}
}

// presence says whether a member may be missing.
type presence uint8

const (
	optional presence = iota // written if it is not zero
	written                  // always written, and may be missing
	required
)

func (x *codec) text(o *jsonobj.Reader, key string, need presence, p *string) jsonobj.Value {
	v := x.find(o, key, need)
	if !v.Absent() {
		*p = x.m.text(v)
	} else if x.w != nil && (need != optional || *p != "") {
		x.w.Text(key, *p)
	}
	return v
}

func (x *codec) flag(o *jsonobj.Reader, key string, need presence, p *bool) {
	if v := x.find(o, key, need); !v.Absent() {
		*p = v.Bool()
	} else if x.w != nil && (need != optional || *p) {
		x.w.Bool(key, *p)
	}
}

func integer[T int | int32 | uint8 | uint32 | Flags](o *jsonobj.Reader, x *codec, key string, need presence, p *T, lo, hi int64) {
	if v := x.find(o, key, need); !v.Absent() {
		*p = T(v.Int(lo, hi))
	} else if x.w != nil && (need != optional || *p != 0) {
		x.w.IntIn(key, int64(*p), lo, hi)
	}
}

// maybe is an integer that may be missing, or 0.
func maybe[T int32 | uint32](o *jsonobj.Reader, x *codec, key string, p *Optional[T], lo, hi int64) {
	if v := x.find(o, key, optional); !v.Absent() {
		*p = Some(T(v.Int(lo, hi)))
	} else if x.w != nil && p.Set {
		x.w.IntIn(key, int64(p.Value), lo, hi)
	}
}

// status is a status of wait(2).
func (x *codec) status(o *jsonobj.Reader, p *int32) {
	integer(o, x, "status", required, p, math.MinInt32, math.MaxInt32)
}

// userID is a user id. The reference wrote ids above 2^31-1 as negative numbers of 32 bits.
func (x *codec) userID(o *jsonobj.Reader, p *uint32) {
	if v := x.find(o, "userid", required); x.w == nil {
		*p = userID(v)
	} else {
		x.w.Int("userid", int64(*p))
	}
}

func userID(v jsonobj.Value) uint32 { return uint32(v.Int(math.MinInt32, math.MaxUint32)) }

// action is the key of an action: its kind is in the name of the event.
func (x *codec) action(o *jsonobj.Reader, p *ActionKey) {
	if x.w == nil {
		p.Kind = x.m.action
	}
	x.text(o, "description", required, &p.Description)
}

// perilog is action in an event of prologs and epilogs: a key has the kind, or an old name.
func (x *codec) perilog(o *jsonobj.Reader, p *ActionKey) {
	x.action(o, p)
	if p.Kind == ActionHousekeeping {
		return
	}
	need := required
	if p.Kind != 0 {
		need = optional
	}
	if v := x.find(o, "kind", need); x.w != nil {
		x.w.Text("kind", p.Kind.String())
	} else if kind := string(v.TextBytes()); kind == "prolog" {
		p.Kind = ActionProlog
	} else if kind == "epilog" {
		p.Kind = ActionEpilog
	} else if !v.Absent() {
		v.Fail(errPerilog)
	}
}

// ranks is a set, of at least so many.
func (x *codec) ranks(o *jsonobj.Reader, p **idset.Set, least int) {
	v := x.find(o, "ranks", required)
	if x.w == nil {
		*p = x.m.set(v)
	}
	if (*p).Len() < least {
		x.fail(v, "ranks", errEmpty)
	}
	if x.w != nil {
		writeSet(x.w, *p)
	}
}

// resources are names, each once and none empty.
func (x *codec) resources(o *jsonobj.Reader, p *[]string) {
	v := x.find(o, "resources", optional)
	if !v.Absent() {
		*p = x.m.list(v)
	}
	if !distinct(*p) {
		x.fail(v, "resources", errNames)
	}
	if x.w != nil && len(*p) > 0 {
		x.w.Texts("resources", *p)
	}
}

func distinct(list []string) bool {
	const fewNames = 8 // are compared each with each
	for i, name := range list {
		if name == "" || len(list) <= fewNames && slices.Contains(list[:i], name) {
			return false
		}
	}
	if len(list) <= fewNames {
		return true
	}
	sorted := slices.Clone(list)
	slices.Sort(sorted)
	return len(slices.Compact(sorted)) == len(list)
}

func (x *codec) seconds(o *jsonobj.Reader, key string, p *time.Duration) {
	if v := x.find(o, key, optional); !v.Absent() {
		*p = seconds(v)
	} else if x.w != nil {
		writeSeconds(x.w, key, *p)
	}
}

func hasKey(object json.RawMessage, key string) bool { return len(peek(object, key)) > 0 }

// peek returns the value of a key, empty if there is none.
func peek(object json.RawMessage, key string) []byte {
	d := jsonobj.NewDoc(object)
	return part(object, d.Root().Member(key))
}

// part returns the bytes of a value of text, an object. v.Raw would make the Doc of v escape.
func part(text []byte, v jsonobj.Value) json.RawMessage {
	from, to := v.Offset(), v.Offset()+len(v.Raw())
	return text[from:to:to]
}
