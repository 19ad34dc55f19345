package exec

import (
	"errors"
	"math"

	"github.com/joblife/joblife/internal/jsonobj"
	"github.com/joblife/joblife/jobstate/jobid"
)

// The categories of errors: what is not a message of RFC 32, and a text of more than 64 MiB.
var (
	errMessage = errors.New("exec: invalid message")
	errLimit   = errors.New("exec: limit exceeded")
)

// What is wrong with a value, beside what package jsonobj says.
var (
	errService  = errors.New("must have 1 to 245 bytes")
	errType     = errors.New(`must be "start", "reattached", "release", "exception" or "finish"`)
	errOther    = errors.New("does not belong to this type of response")
	errResource = errors.New("names no resource")
)

func protocol() *jsonobj.Protocol {
	return &jsonobj.Protocol{Invalid: errMessage, Limit: errLimit}
}

// A Message is a payload: Hello, Start, Response or Expiration. Package encoding/json cannot write it.
type Message interface {
	name() string
	write(w *jsonobj.Writer)
}

// Append appends the payload of a message. It refuses what Parse refuses, and then returns dst.
func Append(dst []byte, m Message) ([]byte, error) {
	w := jsonobj.WritePayload(dst)
	m.write(&w)
	return protocol().EndPayload(&w, m.name())
}

// Parse parses the payload of a message M, as in Parse[Response](text). It retains nothing of the
// payload. It ignores keys that RFC 32 does not have, and refuses duplicate ones, and missing ones
// unless the type calls them optional. The error names the message, the key, and the offset in
// bytes from 0; then the message is zero.
func Parse[M Hello | Start | Response | Expiration](payload []byte) (M, error) {
	name := func() string { return any(*new(M)).(Message).name() }
	return jsonobj.ParsePayload(protocol(), name, payload, func(m *M, o *jsonobj.Reader) {
		any(m).(interface{ read(o *jsonobj.Reader) }).read(o)
	})
}

func readID(v jsonobj.Value) jobid.ID { return jobid.ID(v.Int(0, math.MaxInt64)) }

// writeID refuses an id above 2^63-1, which is negative as an int64.
func writeID(w *jsonobj.Writer, id jobid.ID) { w.IntIn("id", int64(id), 0, math.MaxInt64) }
