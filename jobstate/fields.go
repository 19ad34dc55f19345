package jobstate

import (
	"encoding/json"
	"strconv"
	"unicode/utf8"

	"github.com/joblife/joblife/internal/jsonscan"
)

// fields reads the members of a context. The first fault ends it.
type fields struct {
	event  string
	absent bool // there is no context: it lacks every key
	cur    jsonscan.Cursor
	seen   uint // the bits of the known keys that were met
	extra  object
	err    error
}

func readFields(event string, raw json.RawMessage) fields {
	f := fields{event: event, absent: len(raw) == 0}
	if !f.absent {
		f.cur = contextLimits().Object(raw)
	}
	return f
}

func (f *fields) next() bool { return !f.absent && f.err == nil && f.cur.Next() }

// fail notes a fault of the current member.
func (f *fields) fail(err error) {
	f.err = &ContextError{Event: f.event, Key: clip(f.cur.Key()), Offset: f.cur.Offset(), Err: err}
}

// int reads an integer between lo and hi.
func (f *fields) int(bit uint, lo, hi int64) int64 {
	f.seen |= 1 << bit
	raw := f.cur.Raw()
	n, ok := jsonscan.Int64(raw)
	switch {
	case !ok && jsonscan.IsInteger(raw), ok && (n < lo || n > hi):
		f.fail(errRange)
		return 0
	case !ok:
		f.fail(errType)
		return 0
	}
	return n
}

// text reads a string.
func (f *fields) text(bit uint) string {
	f.seen |= 1 << bit
	s, ok := jsonscan.String(f.cur.Raw())
	if !ok {
		f.fail(errType)
	}
	return s
}

// texts reads an array of strings.
func (f *fields) texts() []string {
	var out []string
	arr := jsonscan.Array(f.cur.Raw())
	for arr.Next() {
		s, ok := jsonscan.String(arr.Raw())
		if !ok {
			f.fail(errType)
			return nil
		}
		out = append(out, s)
	}
	if arr.Err() != nil {
		f.fail(errType)
	}
	return out
}

// flag reads a boolean.
func (f *fields) flag(bit uint) bool {
	f.seen |= 1 << bit
	switch string(f.cur.Raw()) {
	case "true":
		return true
	case "false":
		return false
	}
	f.fail(errType)
	return false
}

// other keeps a member that RFC 21 does not name.
func (f *fields) other() { f.extra.raw(string(f.cur.Key()), f.cur.Raw()) }

// end returns the first fault: of the JSON, of a member, or that one of the
// required keys, which have the bits from 0 on, is missing. It closes extra.
func (f *fields) end(required ...string) (json.RawMessage, error) {
	if f.err == nil && !f.absent && f.cur.Err() != nil {
		f.err = &ContextError{Event: f.event, Offset: f.cur.Offset(), Err: f.cur.Err()}
	}
	if f.err != nil {
		return nil, f.err
	}
	for bit, key := range required {
		if f.seen&(1<<bit) == 0 {
			return nil, &ContextError{Event: f.event, Key: key, Offset: -1, Err: errMissing}
		}
	}
	if f.extra.out == nil {
		return nil, nil
	}
	return append(f.extra.out, '}'), nil
}

// object writes the members of a context after what dst holds.
type object struct {
	out   []byte
	start int
	bad   string // the key of the first text that is not UTF-8
}

func writeObject(dst []byte) object { return object{out: dst, start: len(dst)} }

func (o *object) key(k string) {
	if len(o.out) == o.start {
		o.out = append(o.out, '{')
	} else {
		o.out = append(o.out, ',')
	}
	o.out = append(jsonscan.AppendString(o.out, k), ':')
}

// raw writes a member whose value is JSON text already.
func (o *object) raw(k string, v []byte) {
	o.key(k)
	o.out = jsonscan.AppendCompact(o.out, v)
}

func (o *object) int(k string, n int64) {
	o.key(k)
	o.out = strconv.AppendInt(o.out, n, 10)
}

func (o *object) text(k, s string) {
	if o.bad == "" && !utf8.ValidString(s) {
		o.bad = k
	}
	o.key(k)
	o.out = jsonscan.AppendString(o.out, s)
}

func (o *object) texts(k string, list []string) {
	o.key(k)
	o.out = append(o.out, '[')
	for i, s := range list {
		if i > 0 {
			o.out = append(o.out, ',')
		}
		if o.bad == "" && !utf8.ValidString(s) {
			o.bad = k
		}
		o.out = jsonscan.AppendString(o.out, s)
	}
	o.out = append(o.out, ']')
}

func (o *object) flag(k string, v bool) {
	o.key(k)
	if v {
		o.out = append(o.out, "true"...)
	} else {
		o.out = append(o.out, "false"...)
	}
}

// end appends the extra members, closes the object and reads it back into
// check: what this package would not read, it does not write. After an error
// it returns the first start bytes, which are the caller's.
func (o *object) end(extra json.RawMessage, check Context) ([]byte, error) {
	if len(extra) > 0 {
		cur := jsonscan.Object(extra)
		for cur.Next() {
			o.raw(string(cur.Key()), cur.Raw())
		}
		if cur.Err() != nil {
			return o.out[:o.start], &ContextError{Event: check.EventName(), Offset: cur.Offset(), Err: cur.Err()}
		}
	}
	if o.bad != "" {
		return o.out[:o.start], &ContextError{Event: check.EventName(), Key: o.bad, Offset: -1, Err: errUTF8}
	}
	if len(o.out) == o.start {
		o.out = append(o.out, '{')
	}
	o.out = append(o.out, '}')
	if err := check.decode(o.out[o.start:]); err != nil {
		return o.out[:o.start], err
	}
	return o.out, nil
}
