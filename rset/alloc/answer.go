package alloc

import (
	"encoding/json"
	"fmt"

	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset"
)

// An AnswerType is what a scheduler says to a request, as on the wire. All but
// AnswerAnnotate end the request.
type AnswerType uint8

// The types of answers.
const (
	AnswerSuccess  AnswerType = iota // resources are allocated
	AnswerAnnotate                   // something to tell of the job, which still waits
	AnswerDeny                       // the job can never run
	AnswerCancel                     // the request is taken back
)

// String returns the name in RFC 27, or "AnswerType(200)" if there is none.
func (t AnswerType) String() string {
	switch t {
	case AnswerSuccess:
		return "SUCCESS"
	case AnswerAnnotate:
		return "ANNOTATE"
	case AnswerDeny:
		return "DENY"
	case AnswerCancel:
		return "CANCEL"
	}
	return fmt.Sprintf("AnswerType(%d)", uint8(t))
}

// An Answer is what the scheduler says to the Request for a job.
type Answer struct {
	ID          jobid.ID
	Type        AnswerType
	R           *rset.R         // of AnswerSuccess, not empty; else nil
	Annotations json.RawMessage // an object; of AnswerAnnotate, and perhaps of AnswerSuccess; else empty
	Note        string          // why, of AnswerDeny; may be empty
}

// fields says which keys beside id and type a type of answer has.
func (t AnswerType) fields() (r, annotations, note bool) {
	return t == AnswerSuccess, t == AnswerSuccess || t == AnswerAnnotate, t == AnswerDeny
}

// UnmarshalJSON makes m what a payload says. Of the keys R, annotations and
// note, an answer has those that RFC 27 gives to its type: a SUCCESS has R and
// may have annotations, an ANNOTATE has annotations, a DENY may have a note.
// Annotations are copied without white space and not looked into. The error is
// a *MessageError or a *LimitError, and then m is as it was.
func (m *Answer) UnmarshalJSON(b []byte) error {
	p := parse("alloc answer", b, payloadDepth, "id", "type", "note", "annotations", "R")
	read := Answer{ID: p.id()}
	if v, ok := p.required("type"); ok {
		read.Type = AnswerType(p.number("type", v, 0, uint64(AnswerCancel)))
	}
	hasR, hasAnnotations, hasNote := read.Type.fields()
	belongs := func(key string, has bool) (value, bool) {
		v, ok := p.optional(key)
		if ok && !has {
			p.fail(key, v.offset, errType)
		}
		return v, ok && has
	}
	if v, ok := belongs("note", hasNote); ok {
		read.Note = p.text("note", v)
	}
	if v, ok := belongs("annotations", hasAnnotations); ok {
		read.Annotations = p.object("annotations", v)
	} else if read.Type == AnswerAnnotate {
		p.required("annotations")
	}
	if v, ok := belongs("R", hasR); ok {
		read.R = p.resources("R", v, true)
	} else if hasR {
		p.required("R")
	}
	return keep(m, read, p.err)
}

// check returns what AppendJSON and Queue.Answer refuse: values that are
// missing, or do not belong to the type.
func (m Answer) check() error {
	fail := func(key string, err error) error {
		return &MessageError{Message: "alloc answer", Key: key, Offset: -1, Err: err}
	}
	hasR, hasAnnotations, hasNote := m.Type.fields()
	switch {
	case m.Type > AnswerCancel:
		return fail("type", errRange)
	case m.Note != "" && !hasNote:
		return fail("note", errType)
	case len(m.Annotations) > 0 && !hasAnnotations:
		return fail("annotations", errType)
	case len(m.Annotations) == 0 && m.Type == AnswerAnnotate:
		return fail("annotations", errMissing)
	case m.R != nil && !hasR:
		return fail("R", errType)
	case m.R == nil && hasR:
		return fail("R", errMissing)
	case hasR && m.R.IsEmpty():
		return fail("R", errResource)
	}
	return nil
}

// AppendJSON appends the payload, without a note if that is empty. The error is
// a *MessageError or a *LimitError: something is missing or does not belong to
// the type, the id is too large, the annotations are no object or nested too
// deep, as R may be, the note is not UTF-8.
func (m Answer) AppendJSON(dst []byte) ([]byte, error) {
	w := open("alloc answer", dst)
	w.err = m.check()
	w.id(m.ID)
	w.number("type", uint64(m.Type))
	if m.Note != "" {
		w.text("note", m.Note)
	}
	if len(m.Annotations) > 0 {
		w.object("annotations", m.Annotations, valueDepth)
	}
	if m.R != nil {
		w.resources("R", m.R)
	}
	return w.close()
}

// MarshalJSON returns what AppendJSON appends.
func (m Answer) MarshalJSON() ([]byte, error) { return m.AppendJSON(nil) }
