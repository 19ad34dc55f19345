package jsonobj

import (
	"encoding/json"
	"math"

	"github.com/joblife/joblife/internal/jsonscan"
)

// Doc is a JSON text that is read, and the first fault in it. NewDoc makes one,
// which must not be copied once it was used.
type Doc struct {
	text   []byte
	limits jsonscan.Limits
	fault  *Fault
	tape   jsonscan.Tape
}

// maxText is how many bytes a text has at most: what a Tape can tell.
const maxText = math.MaxUint32

// NewDoc returns the Doc of a text, white space around it allowed. Nothing is
// checked yet.
func NewDoc(text []byte, l jsonscan.Limits) Doc { return Doc{text: text, limits: l} }

// Root checks the text and returns the value that it is, of any kind. An absent Value
// comes with the fault.
func (d *Doc) Root() Value {
	if uint64(len(d.text)) > maxText {
		d.Fail(errText)
	}
	if d.fault != nil {
		return Value{}
	}
	span, err := d.tape.Check(d.text, d.limits)
	if err != nil {
		d.Fail(err)
		return Value{}
	}
	return Value{d, span}
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
	self Value
	walk jsonscan.Walk
}

// Next advances to the next member or element and reports whether there is one.
// It is false at the end and once the Doc has a fault.
func (r *Reader) Next() bool {
	d := r.self.doc
	return d != nil && d.fault == nil && r.walk.Next(d.text, &d.tape)
}

// Value returns the member or element that Next came to. Before the first Next
// and after the last it is the object or array itself.
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
	d := r.self.doc
	if d == nil || d.fault != nil {
		return
	}
	if i := r.walk.Missing(d.text, &d.tape, r.self.span, keys); i >= 0 {
		r.self.FailKey(keys[i], ErrMissing)
	}
}
