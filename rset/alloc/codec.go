package alloc

import (
	"encoding/json"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/jsonscan"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset"
)

// MaxBytes is how long a line and a payload may be.
const MaxBytes = 64 << 20

// How deep values may be nested: a line is an object as deep as the JSON
// library of Flux allows, a payload is in it, and a value is in a payload.
const (
	payloadDepth = jsonscan.DefaultDepth - 1
	valueDepth   = payloadDepth - 1
)

// A value is a JSON value and where it is. A value that is absent has no bytes.
type value struct {
	raw    []byte
	offset int
}

// maxKeys is the largest number of keys that a message has.
const maxKeys = 6

// A payload is an object of which some keys mean something. The first thing
// found wrong stays, and what is read after it is zero.
type payload struct {
	message string
	offset  int // of the object
	keys    []string
	values  [maxKeys]value
	err     error
}

// parse reads an object and keeps the values of the keys given. It aliases b.
func parse(message string, b []byte, depth int, keys ...string) payload {
	p := payload{message: message, keys: keys}
	if len(b) > MaxBytes {
		p.err = &LimitError{What: "bytes", Got: len(b), Limit: MaxBytes}
		return p
	}
	for p.offset < len(b) && (b[p.offset] == ' ' || b[p.offset] == '\t' || b[p.offset] == '\n' || b[p.offset] == '\r') {
		p.offset++
	}
	c := jsonscan.Limits{Depth: depth}.Object(b)
	for c.Next() {
		for i, key := range keys {
			if key == string(c.Key()) {
				p.values[i] = value{c.Raw(), c.Offset()}
			}
		}
	}
	if se, ok := c.Err().(*jsonscan.SyntaxError); ok {
		p.fail("", se.Offset, se.Err)
	}
	return p
}

// fail notes what is wrong, unless something was before.
func (p *payload) fail(key string, offset int, err error) {
	if p.err == nil {
		p.err = &MessageError{Message: p.message, Key: key, Offset: offset, Err: err}
	}
}

// optional returns the value of a key, and false if it is absent.
func (p *payload) optional(key string) (value, bool) {
	for i, k := range p.keys {
		if k == key {
			return p.values[i], p.err == nil && p.values[i].raw != nil
		}
	}
	return value{}, false
}

// required returns the value of a key, and false if it is absent, an error.
func (p *payload) required(key string) (value, bool) {
	v, ok := p.optional(key)
	if !ok {
		p.fail(key, p.offset, errMissing)
	}
	return v, ok
}

// number reads an integer from least to most.
func (p *payload) number(key string, v value, least, most uint64) uint64 {
	n, ok := jsonscan.Uint64(v.raw)
	switch {
	case !jsonscan.IsInteger(v.raw):
		p.fail(key, v.offset, errKind)
	case !ok || n < least || n > most:
		p.fail(key, v.offset, errRange)
	default:
		return n
	}
	return 0
}

// id reads a required job id.
func (p *payload) id() jobid.ID {
	v, ok := p.required("id")
	if !ok {
		return 0
	}
	return jobid.ID(p.number("id", v, 0, math.MaxInt64))
}

// uint32 reads a required number of 32 bits.
func (p *payload) uint32(key string) uint32 {
	v, ok := p.required(key)
	if !ok {
		return 0
	}
	return uint32(p.number(key, v, 0, math.MaxUint32))
}

// job reads what all jobs have. The time may be absent, or 0, which is the same.
func (p *payload) job() (j Job) {
	j.ID = p.id()
	j.Priority = p.uint32("priority")
	j.UserID = p.uint32("userid")
	if v, ok := p.optional("t_submit"); ok {
		j.Submit = p.time("t_submit", v)
	}
	return j
}

// time reads a time of 0 or later.
func (p *payload) time(key string, v value) eventlog.Timestamp {
	f, ok := jsonscan.Float64(v.raw)
	switch {
	case jsonscan.KindOf(v.raw) != jsonscan.KindNumber:
		p.fail(key, v.offset, errKind)
	case !ok || f < 0:
		p.fail(key, v.offset, errRange)
	default:
		return eventlog.Timestamp(f + 0) // not -0
	}
	return 0
}

// boolean reads an optional boolean.
func (p *payload) boolean(key string) bool {
	v, ok := p.optional(key)
	if !ok {
		return false
	}
	b, ok := jsonscan.Bool(v.raw)
	if !ok {
		p.fail(key, v.offset, errKind)
	}
	return b
}

// text reads a string.
func (p *payload) text(key string, v value) string {
	s, ok := jsonscan.String(v.raw)
	if !ok {
		p.fail(key, v.offset, errKind)
	}
	return s
}

// object returns a compact copy of an object.
func (p *payload) object(key string, v value) json.RawMessage {
	if jsonscan.KindOf(v.raw) != jsonscan.KindObject {
		p.fail(key, v.offset, errKind)
		return nil
	}
	return jsonscan.AppendCompact(make([]byte, 0, len(v.raw)), v.raw)
}

// resources reads an R.
func (p *payload) resources(key string, v value, nonEmpty bool) *rset.R {
	r, err := rset.Parse(v.raw)
	if pe, ok := err.(*rset.ParseError); ok {
		if pe.Field != "R" { // which stands for the whole
			key += "." + pe.Field
		}
		p.fail(key, v.offset+pe.Offset, err)
	} else if err != nil {
		p.fail(key, v.offset, err)
	} else if nonEmpty && r.IsEmpty() {
		p.fail(key, v.offset, errResource)
	}
	return r
}

// ranks reads a set of ranks.
func (p *payload) ranks(key string, v value) *idset.Set {
	s := p.text(key, v)
	if p.err != nil {
		return nil
	}
	set, err := idset.ParseLimit(s, rset.MaxRank)
	if err != nil {
		p.fail(key, v.offset, err)
	}
	return set
}

// A writer appends an object key by key. The first thing that can not be
// written stays.
type writer struct {
	dst     []byte
	start   int
	message string
	err     error
}

// open begins an object at the end of dst.
func open(message string, dst []byte) writer {
	return writer{dst: append(dst, '{'), start: len(dst), message: message}
}

// close ends the object and returns it behind what was there before, or what
// was there before and the error.
func (w *writer) close() ([]byte, error) {
	w.dst = append(w.dst, '}')
	if n := len(w.dst) - w.start; w.err == nil && n > MaxBytes {
		w.err = &LimitError{What: "bytes", Got: n, Limit: MaxBytes}
	}
	if w.err != nil {
		return w.dst[:w.start], w.err
	}
	return w.dst, nil
}

// fail notes what is wrong, unless something was before.
func (w *writer) fail(key string, err error) {
	if w.err == nil {
		w.err = &MessageError{Message: w.message, Key: key, Offset: -1, Err: err}
	}
}

// key appends a key, which needs no escapes.
func (w *writer) key(key string) {
	if len(w.dst) > w.start+1 {
		w.dst = append(w.dst, ',')
	}
	w.dst = append(w.dst, '"')
	w.dst = append(w.dst, key...)
	w.dst = append(w.dst, '"', ':')
}

func (w *writer) number(key string, n uint64) {
	w.key(key)
	w.dst = strconv.AppendUint(w.dst, n, 10)
}

func (w *writer) id(id jobid.ID) {
	if id > math.MaxInt64 {
		w.fail("id", errRange)
	}
	w.number("id", uint64(id))
}

func (w *writer) boolean(key string, b bool) {
	w.key(key)
	w.dst = strconv.AppendBool(w.dst, b)
}

func (w *writer) text(key, s string) {
	if !utf8.ValidString(s) {
		w.fail(key, errUTF8)
	}
	w.key(key)
	w.dst = jsonscan.AppendString(w.dst, s)
}

func (w *writer) time(key string, t eventlog.Timestamp) {
	if !(t >= 0) || math.IsInf(float64(t), 0) {
		w.fail(key, errRange)
		return
	}
	w.key(key)
	w.dst = jsonscan.AppendFloat(w.dst, float64(t)+0) // not -0
}

// job appends what all jobs have.
func (w *writer) job(j Job) {
	w.id(j.ID)
	w.number("priority", uint64(j.Priority))
	w.number("userid", uint64(j.UserID))
	if j.Submit != 0 {
		w.time("t_submit", j.Submit)
	}
}

// object appends an object without white space.
func (w *writer) object(key string, raw json.RawMessage, depth int) {
	if w.err == nil && len(raw) > MaxBytes {
		w.err = &LimitError{What: "bytes", Got: len(raw), Limit: MaxBytes}
	}
	if w.err != nil {
		return
	}
	if err := jsonscan.Check(raw, jsonscan.Limits{Depth: depth}); err != nil {
		w.fail(key, err)
		return
	}
	if jsonscan.KindOf(raw) != jsonscan.KindObject {
		w.fail(key, errKind)
	}
	w.key(key)
	w.dst = jsonscan.AppendCompact(w.dst, raw)
}

// resources appends an R. What it keeps of others' making may be nested deeper
// than a payload allows.
func (w *writer) resources(key string, r *rset.R) {
	w.key(key)
	start := len(w.dst)
	w.dst = r.AppendJSON(w.dst)
	if err := jsonscan.Check(w.dst[start:], jsonscan.Limits{Depth: valueDepth}); err != nil {
		w.fail(key, err)
	}
}
