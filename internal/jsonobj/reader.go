package jsonobj

import (
	"encoding/json"
	"math"
)

// Doc is a JSON text and the first fault in it. It must not be copied once it was used.
type Doc struct {
	// Depth is how many levels the text may have; 0 is DefaultDepth.
	Depth int

	text  []byte
	fault *Fault
	tape  tape
}

// NewDoc returns the Doc of a text, white space around it allowed. Nothing is checked yet.
func NewDoc(text []byte) Doc { return Doc{text: text} }

// Root checks the text and returns the value that it is, an absent one with the fault.
func (d *Doc) Root() Value {
	if uint64(len(d.text)) > math.MaxUint32 { // more than a tape can tell
		d.Fail(errText)
	}
	if d.fault != nil {
		return Value{}
	}
	d.tape.reset()
	s, f := check(d.text, d.Depth, &d.tape)
	if f != nil {
		d.fault = f
		return Value{}
	}
	return Value{d, s}
}

// Object checks the text, which must be an object, and returns a Reader of it.
func (d *Doc) Object() Reader { return d.Root().Object() }

// Array is Object for a text that must be an array.
func (d *Doc) Array() Reader { return d.Root().Array() }

// Fail notes what is wrong with the text as a whole, unless there is a fault.
func (d *Doc) Fail(err error) { Value{doc: d}.Fail(err) }

// Failed reports whether there is a fault.
func (d *Doc) Failed() bool { return d.fault != nil }

// Fault returns the first fault, nil if there is none.
func (d *Doc) Fault() *Fault { return d.fault }

// Err returns the first fault as an error, nil if there is none.
func (d *Doc) Err() error {
	if d.fault == nil {
		return nil
	}
	return d.fault
}

// Reader walks the members of an object or the elements of an array.
type Reader struct {
	self     Value
	at       uint32 // what Next looks at
	next     uint32 // the place of what begins next
	key      uint32 // the content of the key as it stands
	keyEnd   uint32
	value    span
	isObject bool
	escaped  bool // the key has escapes

	n     uint8     // how many keys there are in first
	found uint8     // one more than the place in it of the key that was found last
	more  bool      // there were others, or with escapes
	first [8]uint32 // the contents of keys, for Require and Find
}

func (v Value) reader() Reader {
	return Reader{self: v, at: v.span.from + 1, next: v.span.place + 1, isObject: v.doc.text[v.span.from] == '{'}
}

// Next advances to the next member or element. It is false at the end, and after a fault.
func (r *Reader) Next() bool {
	d := r.self.doc
	if d == nil || d.fault != nil {
		return false
	}
	b := d.text
	i := skipSpace(b, int(r.at))
	switch b[i] {
	case ',':
		i = skipSpace(b, i+1)
	case ']', '}':
		r.at, r.key, r.keyEnd, r.escaped, r.value = uint32(i), 0, 0, false, span{}
		return false
	}
	if r.isObject {
		r.key = uint32(i + 1)
		i, r.escaped = skipString(b, i)
		r.keyEnd = uint32(i - 1)
		if int(r.n) < len(r.first) && !r.escaped {
			r.first[r.n] = r.key
			r.n++
		} else {
			r.more = true
		}
		i = skipSpace(b, skipSpace(b, i)+1)
	}
	r.value.from = uint32(i)
	if b[i] == '{' || b[i] == '[' {
		e := d.tape.at(r.next)
		r.at, r.value.place = e.end, r.next
		r.next = e.next
	} else {
		r.at = uint32(skipToken(b, i))
	}
	r.value.to = r.at
	return true
}

// Value returns what Next came to; before the first Next and after the last, the whole itself.
func (r *Reader) Value() Value {
	if r.value.to != 0 {
		return Value{r.self.doc, r.value}
	}
	return r.self
}

// Int reads the value that Next came to as [Value.Int] does.
func (r *Reader) Int(lo, hi int64) int64 { return r.Value().Int(lo, hi) }

// Float reads the value that Next came to as [Value.Float] does.
func (r *Reader) Float(lo, hi float64) float64 { return r.Value().Float(lo, hi) }

// Text reads the value that Next came to as [Value.Text] does.
func (r *Reader) Text() string { return r.Value().Text() }

// Key returns the key of the member that Next came to, unescaped. It aliases the
// text, or, where the key has escapes, is a copy. It is empty in an array.
func (r *Reader) Key() []byte {
	b := r.self.doc.text
	if r.escaped {
		return unescaped(nil, b, int(r.key)-1)
	}
	return b[r.key:r.keyEnd:r.keyEnd]
}

// Keep adds the member that Next came to, without white space, to an object of
// kept members, which is nil at first, and returns that.
func (r *Reader) Keep(kept json.RawMessage) json.RawMessage {
	if len(kept) == 0 {
		kept = append(kept, '{')
	} else {
		kept[len(kept)-1] = ','
	}
	kept = append(AppendString(kept, string(r.Key())), ':')
	return append(AppendCompact(kept, r.Value().Raw()), '}')
}

// Need walks the object, wherever Next is, for the value of a key. That it lacks it is a fault.
func (r *Reader) Need(key string) Value {
	v := r.self.Member(key)
	if v.Absent() {
		r.self.FailKey(key, ErrMissing)
	}
	return v
}

// Require notes, after the last Next, a fault for the first of the keys that the object lacks.
func (r *Reader) Require(keys ...string) {
	d := r.self.doc
	if d == nil || d.fault != nil {
		return
	}
	for _, key := range keys {
		if r.noted(key) < 0 && (!r.more || r.self.Member(key).Absent()) {
			r.self.FailKey(key, ErrMissing)
			return
		}
	}
}

// Find returns the value of a key, absent if there is none. It belongs after the last Next,
// and is fast if keys are asked for in the order in which the object has them.
func (r *Reader) Find(key string) Value {
	d := r.self.doc
	if d == nil || d.fault != nil {
		return Value{}
	}
	if i := r.noted(key); i >= 0 {
		i = skipSpace(d.text, skipSpace(d.text, i+len(key)+1)+1)
		if c := d.text[i]; c != '{' && c != '[' {
			return Value{d, span{from: uint32(i), to: uint32(skipToken(d.text, i))}}
		}
	} else if !r.more {
		return Value{}
	}
	return r.self.Member(key)
}

// noted returns where the content of a key begins that is among the first, -1 for another.
// It looks behind the one that it returned last before it looks at the others.
func (r *Reader) noted(key string) int {
	b := r.self.doc.text
	for range r.n {
		if r.found == r.n {
			r.found = 0
		}
		from := int(r.first[r.found])
		r.found++
		if to := from + len(key); to < len(b) && b[to] == '"' && string(b[from:to]) == key {
			return from
		}
	}
	return -1
}
