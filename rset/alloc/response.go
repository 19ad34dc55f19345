package alloc

import (
	"encoding/json"

	"github.com/joblife/joblife/internal/guard"
	"github.com/joblife/joblife/internal/jsonobj"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset"
)

// A ResponseType says what a [Response] is. All types but ResponseAnnotate end the request.
type ResponseType uint8

// The types of responses, as on the wire.
const (
	ResponseSuccess  ResponseType = iota // resources are allocated
	ResponseAnnotate                     // the job has new annotations and still waits
	ResponseDeny                         // the job can never run
	ResponseCancel                       // the request is canceled
)

// String returns the name in RFC 27, or "ResponseType(200)" for an unknown type.
func (t ResponseType) String() string {
	if t == ResponseSuccess {
		return "SUCCESS"
	}
	return guard.Name("ResponseType", t, "ANNOTATE", "DENY", "CANCEL")
}

// A Response is the scheduler's response to a [Request]. Send it with the errnum 0, also to deny
// a request: an errnum in place of it says that the scheduler has failed.
type Response struct {
	ID          jobid.ID
	Type        ResponseType
	R           *rset.R         // not empty for ResponseSuccess, else nil
	Annotations json.RawMessage // an object, not checked further, for ResponseAnnotate; optional for ResponseSuccess; else empty
	Note        string          // why, optional for ResponseDeny, else empty
}

// keys says which keys beside id and type a type of response has.
func (t ResponseType) keys() (r, annotations, note bool) {
	return t == ResponseSuccess, t == ResponseSuccess || t == ResponseAnnotate, t == ResponseDeny
}

func (m Response) name() string { return "alloc response" }

func (m *Response) read(o *jsonobj.Reader) {
	for o.Next() { // so that Find has all keys
	}
	o.Require("id", "type")
	m.ID, m.Type = readID(o.Find("id")), ResponseType(o.Find("type").Int(0, int64(ResponseCancel)))
	optional := func(key string, has bool) jsonobj.Value {
		v := o.Find(key)
		if !v.Absent() && !has {
			v.Fail(errType)
		}
		return v
	}
	hasR, hasAnnotations, hasNote := m.Type.keys()
	m.Note = optional("note", hasNote).Text()
	m.Annotations = readObject(optional("annotations", hasAnnotations))
	m.R = readR(optional("R", hasR), true)
	if hasR {
		o.Require("R")
	}
	if m.Type == ResponseAnnotate {
		o.Require("annotations")
	}
}

func (m Response) check() error {
	hasR, hasAnnotations, hasNote := m.Type.keys()
	key, err := "", error(nil)
	switch {
	case m.Type > ResponseCancel:
		key, err = "type", jsonobj.ErrRange
	case m.Note != "" && !hasNote:
		key, err = "note", errType
	case len(m.Annotations) > 0 && !hasAnnotations:
		key, err = "annotations", errType
	case len(m.Annotations) == 0 && m.Type == ResponseAnnotate:
		key, err = "annotations", jsonobj.ErrMissing
	case m.R != nil && !hasR:
		key, err = "R", errType
	case m.R == nil && hasR:
		key, err = "R", jsonobj.ErrMissing
	case hasR && m.R.IsEmpty():
		key, err = "R", errResource
	default:
		return nil
	}
	return &jsonobj.Fault{Path: key, Offset: jsonobj.NoOffset, Err: err}
}

func (m Response) append(dst []byte) ([]byte, error) {
	w := jsonobj.WritePayload(dst)
	if err := m.check(); err != nil {
		w.Fail("", err)
	}
	writeID(&w, m.ID)
	w.Int("type", int64(m.Type))
	if m.Note != "" {
		w.Text("note", m.Note)
	}
	if len(m.Annotations) > 0 {
		w.Object("annotations", m.Annotations)
	}
	if m.R != nil {
		w.Append("R", m.R.AppendJSON)
	}
	return protocol().EndPayload(&w, m.name())
}
