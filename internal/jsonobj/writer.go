package jsonobj

import (
	"encoding/json"
	"math"
	"strconv"
)

// Writer appends one object, member by member. The first fault stays, and End returns it.
type Writer struct {
	// Out is what was there and the object so far. Other values may be appended after Key.
	Out []byte

	start int
	depth int // how many levels a value may have
	fault *Fault
}

// Write returns a Writer of an object behind what dst holds. The object is
// of at most depth levels, which bounds the values of Raw; 0 is DefaultDepth.
func Write(dst []byte, depth int) Writer {
	return Writer{Out: append(dst, '{'), start: len(dst), depth: levels(depth) - 1}
}

// Fail notes that the value of a key cannot be written, unless there is a fault.
func (w *Writer) Fail(key string, err error) {
	if w.fault == nil {
		w.fault = newFault(nil, NoOffset, key, err)
	}
}

// Key appends a key and its colon; the value comes next.
func (w *Writer) Key(key string) {
	if w.Out[len(w.Out)-1] != '{' {
		w.Out = append(w.Out, ',')
	}
	w.text(key, key)
	w.Out = append(w.Out, ':')
}

// Int appends an integer.
func (w *Writer) Int(key string, n int64) {
	w.Key(key)
	w.Out = strconv.AppendInt(w.Out, n, 10)
}

// IntIn appends an integer that must be from lo to hi.
func (w *Writer) IntIn(key string, n, lo, hi int64) {
	if n < lo || n > hi {
		w.Fail(key, ErrRange)
	}
	w.Int(key, n)
}

// FloatIn appends a real number, as Flux prints it. It must be at least lo, and finite.
func (w *Writer) FloatIn(key string, f, lo float64) {
	if f < lo {
		w.Fail(key, ErrRange)
	}
	if math.IsInf(f, 0) || math.IsNaN(f) {
		w.Fail(key, errFinite)
		return
	}
	w.Key(key)
	w.Out = AppendFloat(w.Out, f+0)
}

// Bool appends true or false.
func (w *Writer) Bool(key string, b bool) {
	w.Key(key)
	w.Out = strconv.AppendBool(w.Out, b)
}

// Text appends a string, which must be valid UTF-8.
func (w *Writer) Text(key, s string) {
	w.Key(key)
	w.text(key, s)
}

func (w *Writer) text(key, s string) {
	var valid bool
	if w.Out, valid = appendString(w.Out, s); !valid {
		w.Fail(key, ErrUTF8)
	}
}

// Texts appends an array of strings.
func (w *Writer) Texts(key string, list []string) {
	w.Key(key)
	w.Out = append(w.Out, '[')
	for i, s := range list {
		if i > 0 {
			w.Out = append(w.Out, ',')
		}
		w.text(key, s)
	}
	w.Out = append(w.Out, ']')
}

// Raw appends a value that is JSON text, without its white space.
func (w *Writer) Raw(key string, value []byte) {
	if err := Check(value, w.depth); err != nil {
		w.Fail(key, err)
		return
	}
	w.Key(key)
	w.Out = AppendCompact(w.Out, value)
}

// Open begins an object in the object, as the value of a key. Close ends it.
func (w *Writer) Open(key string) {
	w.Key(key)
	w.Out = append(w.Out, '{')
	w.depth--
}

// Close ends the object that Open began last.
func (w *Writer) Close() {
	w.Out = append(w.Out, '}')
	w.depth++
}

// Keep appends the members of an object, as [Reader.Keep] makes it. An empty text has none.
func (w *Writer) Keep(kept json.RawMessage) {
	if len(kept) == 0 {
		return
	}
	d := NewDoc(kept)
	d.Depth = w.depth + 1
	for o := d.Object(); o.Next(); {
		w.Key(string(o.Key()))
		w.Out = AppendCompact(w.Out, o.Value().Raw())
	}
	if d.fault != nil {
		w.Fail("", d.fault)
	}
}

// End closes the object and returns it behind what was there before, or that and the fault.
func (w *Writer) End() ([]byte, error) {
	if w.fault != nil {
		return w.Out[:w.start], w.fault
	}
	w.Out = append(w.Out, '}')
	return w.Out, nil
}
