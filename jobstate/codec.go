package jobstate

import (
	"encoding/json"
	"math"
	"slices"
	"time"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/jsonobj"
)

// codec reads or writes a context. The members method of a context names each key once,
// in the order in which it is written, and a pass over it does what the mode says. The
// Reader of what is read stands beside the codec: as a part of it, it would escape.
type codec struct {
	mode mode
	m    *scratch        // of what is read
	w    *jsonobj.Writer // of what is written

	more    bool // the Reader is at a member
	used    bool // which was read
	first   bool // this is the first pass
	found   bool // this pass has read a member
	missing int  // how many required keys were not found
	open    bool // something waits until all is read
}

type mode uint8

const (
	reading    mode = 1 + iota // members that come in the order of the keys; another pass reads the others
	ending                     // all is read: names a key that is missing, and what no key alone shows
	writing                    // writes all members but the unknown ones
	forbidding                 // refuses an unknown member that has one of the keys
)

// read reads an object. Most have the order that members has, and take one pass.
func (x *codec) read(o *jsonobj.Reader, c Context, text []byte) {
	x.mode = reading
	x.next(o)
	for x.first = true; x.first || x.more; x.first = false {
		x.found = false
		x.members(o, c, text)
	}
	if x.missing > 0 || x.open {
		x.mode = ending
		x.members(o, c, text)
	}
}

func (x *codec) next(o *jsonobj.Reader) { x.more, x.used = o.Next(), false }

// fresh empties a context that is about to be read.
func fresh[T any](x *codec, c *T) *T {
	if x.first {
		*c = *new(T)
	}
	return c
}

// write writes the members of a context and returns the name of its event.
func (x *codec) write(c Context) (event string) {
	x.mode = writing
	event, extra := x.members(nil, c, nil)
	if len(extra) > 0 {
		x.mode = forbidding
		d := jsonobj.NewDoc(extra)
		for o := d.Object(); o.Next(); {
			x.members(&o, c, nil)
		}
		x.w.Keep(extra)
	}
	return event
}

// at says what to do with the member of a key: reading if it comes next, writing, or
// nothing. It does all else that the mode asks for.
func (x *codec) at(o *jsonobj.Reader, key string, need presence) mode {
	if x.mode == writing {
		return writing
	}
	return x.find(o, key, need)
}

// find is at where there is an object.
func (x *codec) find(o *jsonobj.Reader, key string, need presence) mode {
	switch x.mode {
	case reading:
		if x.first && need == required {
			x.missing++
		}
		if x.used {
			x.next(o)
		}
		if x.more && string(o.Key()) == key {
			x.used, x.found = true, true
			if need == required {
				x.missing--
			}
			return reading
		}
	case ending:
		if need == required {
			o.Require(key)
		}
	case forbidding:
		if string(o.Key()) == key {
			x.w.Fail(key, errExtra)
		}
	}
	return 0
}

// rest reads a member without a key of its own, and returns those that there are. It is
// the last of members.
func (x *codec) rest(o *jsonobj.Reader, extra *json.RawMessage) json.RawMessage {
	if x.mode == reading && x.used {
		x.next(o) // so that the last pass ends with the last member
	}
	if x.mode == reading && x.more && !x.found {
		*extra = o.Keep(*extra)
		x.next(o)
	}
	return *extra
}

// refuse notes what no key alone shows.
func (x *codec) refuse(o *jsonobj.Reader, err error) {
	switch x.mode {
	case reading:
		x.open = true // another member may mend it
	case ending:
		o.Value().Fail(err)
	case writing:
		x.w.Fail("", err)
	}
}

// presence says whether a member may be missing.
type presence uint8

const (
	optional presence = iota // written if it is not zero
	written                  // always written, and may be missing
	required
)

func (x *codec) text(o *jsonobj.Reader, key string, need presence, p *string) {
	switch x.at(o, key, need) {
	case reading:
		*p = x.m.text(o.Value())
	case writing:
		if need != optional || *p != "" {
			x.w.Text(key, *p)
		}
	}
}

func (x *codec) flag(o *jsonobj.Reader, key string, need presence, p *bool) {
	switch x.at(o, key, need) {
	case reading:
		*p = o.Bool()
	case writing:
		if need != optional || *p {
			x.w.Bool(key, *p)
		}
	}
}

func integer[T int32 | uint8 | uint32 | Flags](o *jsonobj.Reader, x *codec, key string, need presence, p *T, lo, hi int64) {
	switch x.at(o, key, need) {
	case reading:
		*p = T(o.Int(lo, hi))
	case writing:
		if need != optional || *p != 0 {
			x.w.IntIn(key, int64(*p), lo, hi)
		}
	}
}

// maybe is an integer that may be missing, or 0.
func maybe[T int32 | uint32](o *jsonobj.Reader, x *codec, key string, p *Optional[T], lo, hi int64) {
	switch x.at(o, key, optional) {
	case reading:
		*p = Some(T(o.Int(lo, hi)))
	case writing:
		if p.Set {
			x.w.IntIn(key, int64(p.Value), lo, hi)
		}
	}
}

// clamped is an integer that reads as the highest value if it is above that.
func clamped[T int | uint32](o *jsonobj.Reader, x *codec, key string, need presence, p *T, lo, hi int64) {
	switch x.at(o, key, need) {
	case reading:
		*p = T(min(o.Int(lo, math.MaxInt64), hi))
	case writing:
		if need != optional || *p != 0 {
			x.w.IntIn(key, int64(*p), lo, hi)
		}
	}
}

// status is a status of wait(2).
func (x *codec) status(o *jsonobj.Reader, p *int32) {
	integer(o, x, "status", required, p, math.MinInt32, math.MaxInt32)
}

// userID is a user id. The reference wrote ids above 2^31-1 as the negative
// numbers that they are in 32 bits.
func (x *codec) userID(o *jsonobj.Reader, p *uint32) {
	switch x.at(o, "userid", required) {
	case reading:
		*p = userID(o)
	case writing:
		x.w.Int("userid", int64(*p))
	}
}

func userID(o *jsonobj.Reader) uint32 { return uint32(o.Int(math.MinInt32, math.MaxUint32)) }

// action is the key of an action: its kind is in the name of the event.
func (x *codec) action(o *jsonobj.Reader, p *ActionKey) {
	if x.mode == reading {
		p.Kind = x.m.action
	}
	x.text(o, "description", required, &p.Description)
}

// ranks is a set, of at least so many.
func (x *codec) ranks(o *jsonobj.Reader, p **idset.Set, least int) {
	switch x.at(o, "ranks", required) {
	case reading:
		if *p = x.m.set(o.Value()); (*p).Len() < least {
			o.Value().Fail(errEmpty)
		}
	case writing:
		if (*p).Len() < least {
			x.w.Fail("ranks", errEmpty)
		}
		writeSet(x.w, *p)
	}
}

// resources are names, each once and none empty.
func (x *codec) resources(o *jsonobj.Reader, p *[]string) {
	switch x.at(o, "resources", optional) {
	case reading:
		if *p = x.m.list(o.Value()); !distinct(*p) {
			o.Value().Fail(errNames)
		}
	case writing:
		if len(*p) == 0 {
			return
		}
		if !distinct(*p) {
			x.w.Fail("resources", errNames)
		}
		x.w.Texts("resources", *p)
	}
}

// fewNames is up to how many names are compared each with each.
const fewNames = 8

func distinct(list []string) bool {
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
	switch x.at(o, key, optional) {
	case reading:
		*p = seconds(o.Value())
	case writing:
		writeSeconds(x.w, key, *p)
	}
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
