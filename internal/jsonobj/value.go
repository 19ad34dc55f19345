package jsonobj

import (
	"encoding/json"
	"math"
	"strconv"

	"github.com/joblife/joblife/internal/guard"
)

// Value is a JSON value of a Doc. Where its methods fail they return zero and the Doc has
// the fault. An absent Value, such as the zero Value, reads as zero, without a fault.
type Value struct {
	doc  *Doc
	span span // of no bytes: absent
}

// Absent reports whether there is no value.
func (v Value) Absent() bool { return v.span.from == v.span.to }

// Failed reports whether the Doc has a fault.
func (v Value) Failed() bool { return v.doc != nil && v.doc.fault != nil }

// Raw returns the bytes of the value, which alias the text.
func (v Value) Raw() []byte {
	if v.Absent() {
		return nil
	}
	return v.doc.text[v.span.from:v.span.to:v.span.to]
}

// begins reports whether the value begins with a byte. That another one does is a fault.
func (v Value) begins(with byte, cause error) bool {
	if !v.Absent() && v.doc.text[v.span.from] == with {
		return true
	}
	v.Fail(cause) // nothing, if there is no value
	return false
}

// Offset returns where in the text the value is, in bytes from 0.
func (v Value) Offset() int { return int(v.span.from) }

// Kind returns the kind of the value, KindInvalid if it is absent.
func (v Value) Kind() Kind { return KindOf(v.Raw()) }

// Compact returns a copy of the value without white space, nil if it is absent.
func (v Value) Compact() json.RawMessage {
	raw := v.Raw()
	if raw == nil {
		return nil
	}
	return AppendCompact(make([]byte, 0, len(raw)), raw)
}

// Fail notes what is wrong with the value, unless the Doc has a fault. An error
// with a position in the value, a [Fault], is moved to where the value is.
func (v Value) Fail(err error) { v.FailKey("", err) }

// FailKey is Fail for the key of an object, there or not.
func (v Value) FailKey(key string, err error) {
	if v.doc != nil && v.doc.fault == nil {
		v.doc.fault = newFault(v.doc, v.Offset(), key, err)
	}
}

// Int reads an integer from lo to hi.
func (v Value) Int(lo, hi int64) int64 {
	raw := v.Raw()
	n, ok := Int64(raw)
	if ok && lo <= n && n <= hi {
		return n
	}
	switch {
	case raw == nil:
	case ok, IsInteger(raw):
		v.Fail(outside(strconv.FormatInt(lo, 10), strconv.FormatInt(hi, 10)))
	default:
		v.Fail(errInteger)
	}
	return 0
}

// Float reads a number from lo to hi. It never returns the negative zero.
func (v Value) Float(lo, hi float64) float64 {
	f, ok := Float64(v.Raw())
	switch {
	case ok && lo <= f && f <= hi:
		return f + 0
	case v.Absent():
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
	switch string(v.Raw()) {
	case "true":
		return true
	case "false", "": // or absent
	default:
		v.Fail(errBool)
	}
	return false
}

// Text reads a string.
func (v Value) Text() string { return string(v.TextBytes()) }

// TextBytes reads a string. Its content aliases the text unless there are escapes in it.
func (v Value) TextBytes() []byte {
	if !v.begins('"', errString) {
		return nil
	}
	return unescaped(nil, v.doc.text, int(v.span.from))
}

// Parse reads a string by a function, such as idset.Parse, whose error is the cause of the fault.
func Parse[T any](v Value, parse func(string) (T, error)) (result T) {
	s := v.Text()
	if v.Absent() || v.doc.fault != nil {
		return result
	}
	parsed, err := parse(s)
	if err != nil {
		v.Fail(err)
		return result
	}
	return parsed
}

// Object returns a Reader of an object, one without members and a fault if v is none.
func (v Value) Object() Reader {
	if !v.IsObject() {
		return Reader{}
	}
	return v.reader()
}

// Array is Object for an array.
func (v Value) Array() Reader {
	if !v.begins('[', errArray) {
		return Reader{}
	}
	return v.reader()
}

// IsObject reports whether v is an object, which is a fault if it is not.
func (v Value) IsObject() bool { return v.begins('{', errObject) }

// Member returns the value of a key, absent if v is no object or has no such key.
func (v Value) Member(key string) Value {
	if v.Kind() == KindObject {
		for o := v.Object(); o.Next(); {
			if string(o.Key()) == key {
				return o.Value()
			}
		}
	}
	return Value{}
}
