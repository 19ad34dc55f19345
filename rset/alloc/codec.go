package alloc

import (
	"encoding/json"
	"math"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/internal/jsonobj"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset"
)

func protocol() *jsonobj.Protocol { return &jsonobj.Protocol{Invalid: ErrMessage, Limit: ErrLimit} }

// A Message is one of the types of [Payload]. [Append] and [Parse] know their form in JSON;
// package encoding/json does not.
type Message interface {
	// name is what errors call the message.
	name() string
	// append appends the payload, or returns dst as it was and an error.
	append(dst []byte) ([]byte, error)
}

// Append appends the payload of a message. It refuses what Parse refuses, with the same
// errors, and then returns dst as it was.
func Append(dst []byte, m Message) ([]byte, error) { return m.append(dst) }

// A Payload is a type of [Message], for [Parse].
type Payload interface {
	Message
	Hello | HelloResponse | Ready | ReadyResponse | Request | Response | Cancel | Prioritize | Expiration | Free | Feasibility
}

// Parse parses the payload of a [Message], as in Parse[Request](line.Payload). It copies what
// it keeps. An empty payload reads as an empty object. The error is ErrMessage or ErrLimit; then
// the message is zero. Parse ignores unknown keys, and refuses duplicate ones, and missing ones
// that the type of the message does not call optional.
func Parse[M Payload](payload []byte) (M, error) {
	name := func() string { return (*new(M)).name() }
	return jsonobj.ParsePayload(protocol(), name, payload, func(m *M, o *jsonobj.Reader) {
		any(m).(interface{ read(o *jsonobj.Reader) }).read(o)
	})
}

func readID(v jsonobj.Value) jobid.ID { return jobid.ID(v.Int(0, math.MaxInt64)) }

func readUint32(v jsonobj.Value) uint32 { return uint32(v.Int(0, math.MaxUint32)) }

func readTime(v jsonobj.Value) eventlog.Timestamp {
	return eventlog.Timestamp(v.Float(0, math.MaxFloat64))
}

// readObject returns a compact copy of an object.
func readObject(v jsonobj.Value) json.RawMessage {
	if !v.IsObject() {
		return nil
	}
	return v.Compact()
}

func readR(v jsonobj.Value, nonEmpty bool) *rset.R {
	if v.Absent() {
		return nil
	}
	r, err := rset.Parse(v.Raw())
	switch {
	case err != nil:
		v.Fail(err)
	case nonEmpty && r.IsEmpty():
		v.Fail(errResource)
	}
	return r
}

func readJob(o *jsonobj.Reader) JobInfo {
	return JobInfo{
		ID: readID(o.Need("id")), Priority: readUint32(o.Need("priority")), UserID: readUint32(o.Need("userid")),
		Submit: readTime(o.Value().Member("t_submit")),
	}
}

// writeID refuses an id above 2^63-1, which is negative as an int64.
func writeID(w *jsonobj.Writer, id jobid.ID) { w.IntIn("id", int64(id), 0, math.MaxInt64) }

func writeJob(w *jsonobj.Writer, j JobInfo) {
	writeID(w, j.ID)
	w.Int("priority", int64(j.Priority))
	w.Int("userid", int64(j.UserID))
	if j.Submit != 0 {
		w.FloatIn("t_submit", float64(j.Submit), 0)
	}
}
