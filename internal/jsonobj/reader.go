package jsonobj

import (
	"encoding/json"
	"errors"

	"github.com/joblife/joblife/internal/jsonscan"
)

// Doc is a JSON text that is read, and the first fault in it. NewDoc makes one,
// which must not be copied once it was used.
type Doc struct {
	text   []byte
	limits jsonscan.Limits
	fault  *Fault
}

// NewDoc returns the Doc of a text, white space around it allowed. Nothing is
// checked yet.
func NewDoc(text []byte, l jsonscan.Limits) Doc { return Doc{text: text, limits: l} }

// Object returns a Reader of the text, which must be an object. All of it is
// checked when the Reader has come to its end.
func (d *Doc) Object() Reader {
	return Reader{cur: d.limits.Object(d.text), self: Value{d, d.text, 0}}
}

// Array is Object for a text that must be an array.
func (d *Doc) Array() Reader {
	return Reader{cur: d.limits.Array(d.text), self: Value{d, d.text, 0}, array: true}
}

// Root returns the value that the text is, of any kind. The text is checked; an
// absent Value comes with the fault.
func (d *Doc) Root() Value {
	if err := jsonscan.Check(d.text, d.limits); err != nil {
		d.Fail(err)
		return Value{}
	}
	from, to := 0, len(d.text)
	for jsonscan.IsSpace(d.text[from]) {
		from++
	}
	for jsonscan.IsSpace(d.text[to-1]) {
		to--
	}
	return Value{d, d.text[from:to:to], from}
}

// Fail notes what is wrong with the text as a whole, unless there is a fault.
func (d *Doc) Fail(err error) { Value{d, d.text, 0}.Fail(err) }

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
	cur   jsonscan.Cursor
	self  Value
	array bool
}

// Next advances to the next member or element and reports whether there is one.
// It is false at the end and once the Doc has a fault.
func (r *Reader) Next() bool {
	if r.self.doc == nil || r.self.doc.fault != nil {
		return false
	}
	if r.cur.Next() {
		return true
	}
	if err := r.cur.Err(); err != nil {
		r.end(err.(*jsonscan.SyntaxError))
	}
	return false
}

// end notes the error of the Cursor.
func (r *Reader) end(err *jsonscan.SyntaxError) {
	// A copy: were err itself kept, the Doc would escape with the Cursor.
	v, cause := r.self, error(&jsonscan.SyntaxError{Offset: err.Offset, Err: err.Err})
	if errors.Is(cause, jsonscan.ErrKind) {
		v.offset += err.Offset
		if cause = errObject; r.array {
			cause = errArray
		}
	}
	v.Fail(cause)
}

// Value returns the member or element that Next came to. Before the first Next
// and after the last it is the object or array itself.
func (r *Reader) Value() Value {
	if raw := r.cur.Raw(); len(raw) > 0 {
		return Value{r.self.doc, raw, r.self.offset + r.cur.Offset()}
	}
	return r.self
}

// Int reads the value that Next came to as [Value.Int] does.
func (r *Reader) Int(lo, hi int64) int64 {
	if n, ok := jsonscan.Int64(r.cur.Raw()); ok && lo <= n && n <= hi {
		return n
	}
	return r.Value().Int(lo, hi)
}

// Float reads the value that Next came to as [Value.Float] does.
func (r *Reader) Float(lo, hi float64) float64 { return r.Value().Float(lo, hi) }

// Bool reads the value that Next came to as [Value.Bool] does.
func (r *Reader) Bool() bool { return r.Value().Bool() }

// Text reads the value that Next came to as [Value.Text] does.
func (r *Reader) Text() string {
	if s, ok := jsonscan.String(r.cur.Raw()); ok {
		return s
	}
	return r.Value().Text()
}

// Key returns the key of the member that Next came to. It is valid until the
// next call of Next.
func (r *Reader) Key() []byte { return r.cur.Key() }

// Keep adds the member that Next came to, without white space, to an object of
// kept members, which is nil at first, and returns that.
func (r *Reader) Keep(kept json.RawMessage) json.RawMessage {
	if len(kept) == 0 {
		kept = append(kept, '{')
	} else {
		kept[len(kept)-1] = ','
	}
	kept = append(jsonscan.AppendString(kept, string(r.Key())), ':')
	return append(jsonscan.AppendCompact(kept, r.cur.Raw()), '}')
}

// Require notes a fault for the first of the keys that the object lacks. It
// belongs after the last Next.
func (r *Reader) Require(keys ...string) {
	if r.self.doc == nil || r.self.doc.fault != nil {
		return
	}
	if i := r.cur.Missing(keys); i >= 0 {
		r.self.FailKey(keys[i], ErrMissing)
	}
}
