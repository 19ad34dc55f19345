package jsonobj

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"

	"github.com/joblife/joblife/internal/guard"
	"github.com/joblife/joblife/internal/jsonscan"
)

// Value is a JSON value of a Doc. Its methods read it; where that fails they
// return zero and the Doc has the fault. An absent Value, such as the zero
// Value, reads as zero, without a fault.
type Value struct {
	doc    *Doc
	raw    []byte
	offset int
}

// Absent reports whether there is no value.
func (v Value) Absent() bool { return v.raw == nil }

// Failed reports whether the Doc has a fault.
func (v Value) Failed() bool { return v.doc != nil && v.doc.fault != nil }

// Raw returns the bytes of the value, which alias the text.
func (v Value) Raw() []byte { return v.raw }

// Offset returns where in the text the value is, in bytes from 0.
func (v Value) Offset() int { return v.offset }

// Kind returns the kind of the value, KindInvalid if it is absent.
func (v Value) Kind() jsonscan.Kind { return jsonscan.KindOf(v.raw) }

// Compact returns a copy of the value without white space, nil if it is absent.
func (v Value) Compact() json.RawMessage {
	if v.raw == nil {
		return nil
	}
	return jsonscan.AppendCompact(make([]byte, 0, len(v.raw)), v.raw)
}

// Fail notes what is wrong with the value, unless the Doc has a fault. An error
// with a position in the value, a [Fault] or a jsonscan.SyntaxError, is moved
// to where the value is.
func (v Value) Fail(err error) { v.FailKey("", err) }

// FailKey is Fail for the key of an object, there or not.
func (v Value) FailKey(key string, err error) {
	if v.doc != nil && v.doc.fault == nil {
		v.doc.fault = newFault(v.doc.text, v.offset, name(key), err)
	}
}

// name is Name of a key that may be none.
func name(key string) string {
	if key == "" {
		return ""
	}
	return Name(key)
}

// Int reads an integer from lo to hi.
func (v Value) Int(lo, hi int64) int64 {
	n, ok := jsonscan.Int64(v.raw)
	if ok && lo <= n && n <= hi {
		return n
	}
	switch {
	case v.raw == nil:
	case ok, jsonscan.IsInteger(v.raw):
		v.Fail(outside(strconv.FormatInt(lo, 10), strconv.FormatInt(hi, 10)))
	default:
		v.Fail(errInteger)
	}
	return 0
}

// Float reads a number from lo to hi. It never returns the negative zero.
func (v Value) Float(lo, hi float64) float64 {
	f, ok := jsonscan.Float64(v.raw)
	switch {
	case ok && lo <= f && f <= hi:
		return f + 0
	case v.raw == nil:
	case !ok:
		v.Fail(errNumber)
	case hi == math.MaxFloat64:
		v.Fail(guard.Cause(ErrRange, "must be at least "+strconv.FormatFloat(lo, 'g', -1, 64)))
	default:
		v.Fail(outside(strconv.FormatFloat(lo, 'g', -1, 64), strconv.FormatFloat(hi, 'g', -1, 64)))
	}
	return 0
}

// Bool reads true or false.
func (v Value) Bool() bool {
	b, ok := jsonscan.Bool(v.raw)
	if !ok && v.raw != nil {
		v.Fail(errBool)
	}
	return b
}

// Text reads a string.
func (v Value) Text() string {
	s, ok := jsonscan.String(v.raw)
	if !ok && v.raw != nil {
		v.Fail(errString)
	}
	return s
}

// TextBytes reads a string and returns its content, which aliases the text
// unless there are escapes in it.
func (v Value) TextBytes() []byte {
	if v.raw == nil {
		return nil
	}
	if v.raw[0] != '"' {
		v.Fail(errString)
		return nil
	}
	if bytes.IndexByte(v.raw, '\\') >= 0 {
		b, _ := jsonscan.AppendUnescaped(nil, v.raw)
		return b
	}
	return v.raw[1 : len(v.raw)-1 : len(v.raw)-1]
}

// Texts reads an array of strings, nil if it is empty.
func (v Value) Texts() []string {
	var out []string
	a := v.Array()
	for a.Next() {
		out = append(out, a.Text())
	}
	if v.doc == nil || v.doc.fault != nil {
		return nil
	}
	return out
}

// Parse reads a string by a function, such as idset.Parse. The function's error
// is the cause of the fault, and its result is not used then.
func Parse[T any](v Value, parse func(string) (T, error)) (result T) {
	s := v.Text()
	if v.raw == nil || v.doc.fault != nil {
		return result
	}
	parsed, err := parse(s)
	if err != nil {
		v.Fail(err)
		return result
	}
	return parsed
}

// Object returns a Reader of the members of an object, one without members and
// a fault if v is no object.
func (v Value) Object() Reader {
	if !v.IsObject() {
		return Reader{}
	}
	return Reader{cur: jsonscan.Object(v.raw), self: v}
}

// Array returns a Reader of the elements of an array, one without elements and
// a fault if v is no array.
func (v Value) Array() Reader {
	if v.raw == nil {
		return Reader{}
	}
	if v.raw[0] != '[' {
		v.Fail(errArray)
		return Reader{}
	}
	return Reader{cur: jsonscan.Array(v.raw), self: v, array: true}
}

// IsObject reports whether v is an object, which is a fault if it is not, and
// does not look into it.
func (v Value) IsObject() bool {
	if v.raw != nil && v.raw[0] != '{' {
		v.Fail(errObject)
		return false
	}
	return v.raw != nil
}

// Member returns the value of a key of an object, and an absent one if v is no
// object or has no such key.
func (v Value) Member(key string) Value {
	if v.raw != nil && v.raw[0] == '{' {
		c := jsonscan.Object(v.raw)
		for c.Next() {
			if string(c.Key()) == key {
				return Value{v.doc, c.Raw(), v.offset + c.Offset()}
			}
		}
	}
	return Value{}
}
