package eventlog

import (
	"bytes"
	"encoding/json"
)

// Entry is one event of a log. The zero Entry is not valid: [AppendEntry] refuses it.
//
// An Entry that was read also remembers what AppendEntry needs to write the same
// bytes: a timestamp without a fraction, an unusual order of keys, and keys that RFC
// 18 does not name. A field that the caller sets is written as set.
type Entry struct {
	// Timestamp is when the event was created; finite and greater than zero.
	Timestamp Timestamp
	// Name is the name of the event, not empty. It does not alias the input.
	Name string
	// Context is the data of the event, one JSON object, or empty. It is the
	// bytes that were read, white space included, and aliases the input.
	Context json.RawMessage

	// integer is the timestamp as read, if it was read as an integer.
	integer int64
	// line is the object as read, if its keys are not the usual ones in their order.
	line []byte
}

// Clone returns a copy of e that shares no memory with the input. It allocates once for a
// Context, and once for an unusual line.
func (e Entry) Clone() Entry {
	e.Context = bytes.Clone(e.Context)
	e.line = bytes.Clone(e.line)
	return e
}
