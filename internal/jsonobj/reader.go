package jsonobj

import (
	"encoding/json"
	"errors"
	"math"

	"github.com/joblife/joblife/internal/jsonscan"
)

// Doc is a JSON text that is read, and the first fault in it. NewDoc makes one,
// which must not be copied once it was used. One Reader of the text itself may be
// in use at a time.
type Doc struct {
	text   []byte
	limits jsonscan.Limits
	fault  *Fault
	cur    jsonscan.Cursor // of the text itself, what Next has not come to is not checked
	tape   jsonscan.Tape   // of what was checked
}

// maxText is how many bytes a text has at most: what a Tape can tell.
const maxText = math.MaxUint32

// NewDoc returns the Doc of a text, white space around it allowed. Nothing is
// checked yet.
func NewDoc(text []byte, l jsonscan.Limits) Doc { return Doc{text: text, limits: l} }

// Object returns a Reader of the text, which must be an object. All of it is
// checked when the Reader has come to its end.
func (d *Doc) Object() Reader {
	d.cur.Reset(d.text, d.limits, false)
	return Reader{self: d.whole(), root: true}
}

// Array is Object for a text that must be an array.
func (d *Doc) Array() Reader {
	d.cur.Reset(d.text, d.limits, true)
	return Reader{self: d.whole(), root: true, array: true}
}

// whole returns a Value to fail: the text, of which nothing is checked, so that it
// reads as absent.
func (d *Doc) whole() Value {
	v := Value{doc: d}
	if uint64(len(d.text)) > maxText {
		v.Fail(errText)
	}
	return v
}

// Root returns the value that the text is, of any kind. The text is checked; an
// absent Value comes with the fault.
func (d *Doc) Root() Value {
	whole := d.whole()
	if d.fault != nil {
		return Value{}
	}
	span, err := d.tape.Check(d.text, d.limits)
	if err != nil {
		whole.Fail(err)
		return Value{}
	}
	return Value{d, span}
}

// Fail notes what is wrong with the text as a whole, unless there is a fault.
func (d *Doc) Fail(err error) { d.whole().Fail(err) }

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

// Reader walks the members of an object or the elements of an array. It must not
// be copied once Next was called.
type Reader struct {
	self  Value
	walk  jsonscan.Walk
	root  bool // it is the text itself, which the Cursor of the Doc scans
	array bool
}

// Next advances to the next member or element and reports whether there is one.
// It is false at the end and once the Doc has a fault.
func (r *Reader) Next() bool {
	d := r.self.doc
	switch {
	case d == nil || d.fault != nil:
		return false
	case !r.root:
		return r.walk.Next(d.text, &d.tape)
	case d.cur.NextOn(&r.walk, &d.tape):
		return true
	}
	if err := d.cur.Err(); err != nil {
		r.end(err.(*jsonscan.SyntaxError))
	}
	return false
}

// end notes the error of the Cursor.
func (r *Reader) end(err *jsonscan.SyntaxError) {
	if !errors.Is(err, jsonscan.ErrKind) {
		r.self.Fail(err)
		return
	}
	r.self.span.From += err.Offset
	if r.array {
		r.self.Fail(errArray)
	} else {
		r.self.Fail(errObject)
	}
}

// Value returns the member or element that Next came to. Before the first Next
// and after the last it is the object or array itself; the text itself is absent
// then, for it is not checked.
func (r *Reader) Value() Value {
	if span := r.walk.Value(); span.To != 0 {
		return Value{r.self.doc, span}
	}
	return r.self
}

// Int reads the value that Next came to as [Value.Int] does.
func (r *Reader) Int(lo, hi int64) int64 { return r.Value().Int(lo, hi) }

// Float reads the value that Next came to as [Value.Float] does.
func (r *Reader) Float(lo, hi float64) float64 { return r.Value().Float(lo, hi) }

// Bool reads the value that Next came to as [Value.Bool] does.
func (r *Reader) Bool() bool { return r.Value().Bool() }

// Text reads the value that Next came to as [Value.Text] does.
func (r *Reader) Text() string { return r.Value().Text() }

// Key returns the key of the member that Next came to. It is valid until the
// next call of Next.
func (r *Reader) Key() []byte { return r.walk.Key(r.self.doc.text) }

// Keep adds the member that Next came to, without white space, to an object of
// kept members, which is nil at first, and returns that.
func (r *Reader) Keep(kept json.RawMessage) json.RawMessage {
	if len(kept) == 0 {
		kept = append(kept, '{')
	} else {
		kept[len(kept)-1] = ','
	}
	kept = append(jsonscan.AppendString(kept, string(r.Key())), ':')
	return append(jsonscan.AppendCompact(kept, r.Value().Raw()), '}')
}

// Require notes a fault for the first of the keys that the object lacks. It
// belongs after the last Next.
func (r *Reader) Require(keys ...string) {
	if r.self.doc == nil || r.self.doc.fault != nil {
		return
	}
	if i := r.missing(keys); i >= 0 {
		r.self.FailKey(keys[i], ErrMissing)
	}
}

// missing returns the index of the first of some keys that the object lacks, -1 if
// it has all.
func (r *Reader) missing(keys []string) int {
	d := r.self.doc
	if r.root {
		return d.cur.Missing(keys)
	}
	return r.walk.Missing(d.text, &d.tape, r.self.span, keys)
}
