package eventlog

import (
	"bytes"
	"encoding/json"
)

// Entry is one event of a log. The zero Entry is not valid: AppendEntry refuses
// it.
//
// An Entry that was read remembers, beside its fields, what it takes to write
// it again as it was: that its timestamp had no fraction, the order of its
// keys where that is not the usual one, and keys that RFC 18 does not know.
// Setting a field and writing the Entry writes the field as set, and keeps the
// rest. An Entry that is to be free of that is built anew from the fields.
type Entry struct {
	// Timestamp is when the event was created; finite and greater than zero.
	Timestamp Timestamp
	// Name is the name of the event, not empty. It is a string of its own:
	// it aliases nothing.
	Name string
	// Context is the data of the event, one JSON object, or empty if there
	// is none. It holds the bytes that were read, white space and all, and
	// aliases the input; see Clone.
	Context json.RawMessage

	// integer is the timestamp as read, if it was read as an integer.
	integer int64
	// line is the object as read, if its keys are not timestamp, name and
	// perhaps context, in this order. It aliases the input.
	line []byte
}

// Clone returns a copy of e that shares no memory with the input: for keeping
// an Entry longer than its input is, or than a Decoder lets it be valid. It
// costs one allocation for a Context, and one for an unusual line.
func (e Entry) Clone() Entry {
	e.Context = bytes.Clone(e.Context)
	e.line = bytes.Clone(e.line)
	return e
}
