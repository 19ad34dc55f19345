package alloc

import (
	"encoding/json"
	"math"
	"strconv"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/internal/jsonscan"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset"
)

// A Job is what the manager and the scheduler both know of a job.
type Job struct {
	ID       jobid.ID           // at most 2^63-1 in messages, the largest integer of Flux's JSON library
	Priority uint32             // 0: held
	UserID   uint32             // its owner
	Submit   eventlog.Timestamp // when it was submitted; 0: not known
}

// Hello is how a scheduler begins: it asks which jobs hold resources. The
// answers are a stream of HelloJobs, which the failure NoData ends.
type Hello struct {
	PartialOK bool // the scheduler understands HelloJob.Free
}

// UnmarshalJSON makes m what a payload says, all of which is optional: an empty
// b is the zero Hello, as early schedulers sent. The error is a *MessageError
// or a *LimitError, and then m is as it was.
func (m *Hello) UnmarshalJSON(b []byte) error {
	if len(b) == 0 {
		*m = Hello{}
		return nil
	}
	p := parse("hello request", b, payloadDepth, "partial-ok")
	read := Hello{PartialOK: p.boolean("partial-ok")}
	return keep(m, read, p.err)
}

// keep sets *m unless there is an error, and returns that.
func keep[T any](m *T, read T, err error) error {
	if err == nil {
		*m = read
	}
	return err
}

// AppendJSON appends the payload. The error is always nil.
func (m Hello) AppendJSON(dst []byte) ([]byte, error) {
	w := open("hello request", dst)
	w.boolean("partial-ok", m.PartialOK)
	return w.close()
}

// MarshalJSON returns what AppendJSON appends.
func (m Hello) MarshalJSON() ([]byte, error) { return m.AppendJSON(nil) }

// Ready is how a scheduler says that requests may come.
type Ready struct {
	Limit int // how many requests may be unanswered at any time, at most 2^31-1; 0: any number
}

// UnmarshalJSON makes m what a payload says: a mode, "unlimited" or "limited",
// and with the latter a limit greater than 0. The mode "single" of early drafts
// is refused, as flux-core does. The error is a *MessageError or a *LimitError,
// and then m is as it was.
func (m *Ready) UnmarshalJSON(b []byte) error {
	p := parse("ready request", b, payloadDepth, "mode", "limit")
	var read Ready
	if v, ok := p.required("mode"); ok {
		switch mode := p.text("mode", v); {
		case mode == "limited":
			if v, ok := p.required("limit"); ok {
				read.Limit = int(p.number("limit", v, 1, math.MaxInt32))
			}
		case mode != "unlimited":
			p.fail("mode", v.offset, errMode)
		}
	}
	return keep(m, read, p.err)
}

// check returns what AppendJSON and Queue.Ready refuse.
func (m Ready) check() error {
	if m.Limit < 0 || m.Limit > math.MaxInt32 {
		return &MessageError{Message: "ready request", Key: "limit", Offset: -1, Err: errRange}
	}
	return nil
}

// AppendJSON appends the payload. The error is a *MessageError: the limit is
// negative or too large.
func (m Ready) AppendJSON(dst []byte) ([]byte, error) {
	w := open("ready request", dst)
	w.err = m.check()
	if m.Limit == 0 {
		w.text("mode", "unlimited")
	} else {
		w.text("mode", "limited")
		w.number("limit", uint64(m.Limit))
	}
	return w.close()
}

// MarshalJSON returns what AppendJSON appends.
func (m Ready) MarshalJSON() ([]byte, error) { return m.AppendJSON(nil) }

// ReadyAnswer answers a Ready.
type ReadyAnswer struct {
	Count uint32 // how many jobs wait to be asked for
}

// UnmarshalJSON makes m what a payload says. The error is a *MessageError or a
// *LimitError, and then m is as it was.
func (m *ReadyAnswer) UnmarshalJSON(b []byte) error {
	p := parse("ready answer", b, payloadDepth, "count")
	read := ReadyAnswer{Count: p.uint32("count")}
	return keep(m, read, p.err)
}

// AppendJSON appends the payload. The error is always nil.
func (m ReadyAnswer) AppendJSON(dst []byte) ([]byte, error) {
	w := open("ready answer", dst)
	w.number("count", uint64(m.Count))
	return w.close()
}

// MarshalJSON returns what AppendJSON appends.
func (m ReadyAnswer) MarshalJSON() ([]byte, error) { return m.AppendJSON(nil) }

// A Request asks the scheduler for resources for a job.
type Request struct {
	Job
	Jobspec json.RawMessage // RFC 14, an object
}

// UnmarshalJSON makes m what a payload says; t_submit is optional. The jobspec
// is copied without white space and not looked into. The error is a
// *MessageError or a *LimitError, and then m is as it was.
func (m *Request) UnmarshalJSON(b []byte) error {
	p := parse("alloc request", b, payloadDepth, "id", "priority", "userid", "t_submit", "jobspec")
	read := Request{Job: p.job()}
	if v, ok := p.required("jobspec"); ok {
		read.Jobspec = p.object("jobspec", v)
	}
	return keep(m, read, p.err)
}

// AppendJSON appends the payload, without t_submit if it is 0. The error is a
// *MessageError or a *LimitError: the id is too large, the time negative or not
// finite, the jobspec no object.
func (m Request) AppendJSON(dst []byte) ([]byte, error) {
	w := open("alloc request", dst)
	w.job(m.Job)
	w.object("jobspec", m.Jobspec, valueDepth)
	return w.close()
}

// MarshalJSON returns what AppendJSON appends.
func (m Request) MarshalJSON() ([]byte, error) { return m.AppendJSON(nil) }

// Cancel takes back the request for a job. The scheduler answers the request,
// not this: with AnswerCancel, or what it had decided before.
type Cancel struct {
	ID jobid.ID
}

// UnmarshalJSON makes m what a payload says. The error is a *MessageError or a
// *LimitError, and then m is as it was.
func (m *Cancel) UnmarshalJSON(b []byte) error {
	p := parse("cancel request", b, payloadDepth, "id")
	read := Cancel{ID: p.id()}
	return keep(m, read, p.err)
}

// AppendJSON appends the payload. The error is a *MessageError: the id is too
// large.
func (m Cancel) AppendJSON(dst []byte) ([]byte, error) {
	w := open("cancel request", dst)
	w.id(m.ID)
	return w.close()
}

// MarshalJSON returns what AppendJSON appends.
func (m Cancel) MarshalJSON() ([]byte, error) { return m.AppendJSON(nil) }

// A Priority is that of a job.
type Priority struct {
	ID       jobid.ID
	Priority uint32
}

// Prioritize tells new priorities of jobs that are asked for. The scheduler
// ignores jobs it does not know.
type Prioritize struct {
	Jobs []Priority
}

// UnmarshalJSON makes m what a payload says. A job may be in it more than once.
// The error is a *MessageError or a *LimitError, and then m is as it was.
func (m *Prioritize) UnmarshalJSON(b []byte) error {
	p := parse("prioritize request", b, payloadDepth, "jobs")
	v, ok := p.required("jobs")
	if !ok {
		return p.err
	}
	if jsonscan.KindOf(v.raw) != jsonscan.KindArray {
		p.fail("jobs", v.offset, errKind)
		return p.err
	}
	var read Prioritize
	c := jsonscan.Array(v.raw)
	for i := 0; p.err == nil && c.Next(); i++ {
		read.Jobs = append(read.Jobs, p.pair(i, value{c.Raw(), v.offset + c.Offset()}))
	}
	return keep(m, read, p.err)
}

// pair reads one element of jobs.
func (p *payload) pair(i int, v value) (out Priority) {
	key := func(part string) string { return "jobs[" + strconv.Itoa(i) + "]" + part }
	if jsonscan.KindOf(v.raw) != jsonscan.KindArray {
		p.fail(key(""), v.offset, errKind)
		return out
	}
	var parts [2]value
	n := 0
	c := jsonscan.Array(v.raw)
	for ; c.Next(); n++ {
		if n < len(parts) {
			parts[n] = value{c.Raw(), v.offset + c.Offset()}
		}
	}
	if n != len(parts) {
		p.fail(key(""), v.offset, errPair)
		return out
	}
	id, ok := jsonscan.Uint64(parts[0].raw)
	if priority, fits := jsonscan.Uint64(parts[1].raw); ok && fits && id <= math.MaxInt64 && priority <= math.MaxUint32 {
		return Priority{ID: jobid.ID(id), Priority: uint32(priority)}
	}
	p.number(key("[0]"), parts[0], 0, math.MaxInt64)
	p.number(key("[1]"), parts[1], 0, math.MaxUint32)
	return out
}

// AppendJSON appends the payload. The error is a *MessageError: an id is too
// large, or a *LimitError.
func (m Prioritize) AppendJSON(dst []byte) ([]byte, error) {
	w := open("prioritize request", dst)
	w.key("jobs")
	w.dst = append(w.dst, '[')
	for i, j := range m.Jobs {
		if i > 0 {
			w.dst = append(w.dst, ',')
		}
		if j.ID > math.MaxInt64 {
			w.fail("jobs["+strconv.Itoa(i)+"][0]", errRange)
		}
		w.dst = strconv.AppendUint(append(w.dst, '['), uint64(j.ID), 10)
		w.dst = strconv.AppendUint(append(w.dst, ','), uint64(j.Priority), 10)
		w.dst = append(w.dst, ']')
	}
	w.dst = append(w.dst, ']')
	return w.close()
}

// MarshalJSON returns what AppendJSON appends.
func (m Prioritize) MarshalJSON() ([]byte, error) { return m.AppendJSON(nil) }

// Expiration tells that the resources of a running job expire at another time.
// The answer has no payload, or an errnum if the scheduler refuses; as it has
// no id, answers come in the order of the requests.
type Expiration struct {
	ID         jobid.ID
	Expiration eventlog.Timestamp // 0: never
}

// UnmarshalJSON makes m what a payload says. The error is a *MessageError or a
// *LimitError, and then m is as it was.
func (m *Expiration) UnmarshalJSON(b []byte) error {
	p := parse("expiration request", b, payloadDepth, "id", "expiration")
	read := Expiration{ID: p.id()}
	if v, ok := p.required("expiration"); ok {
		read.Expiration = p.time("expiration", v)
	}
	return keep(m, read, p.err)
}

// AppendJSON appends the payload. The error is a *MessageError: the id is too
// large, or the time negative or not finite.
func (m Expiration) AppendJSON(dst []byte) ([]byte, error) {
	w := open("expiration request", dst)
	w.id(m.ID)
	w.time("expiration", m.Expiration)
	return w.close()
}

// MarshalJSON returns what AppendJSON appends.
func (m Expiration) MarshalJSON() ([]byte, error) { return m.AppendJSON(nil) }

// Free gives back resources of a job to the scheduler: a fragment of its
// allocation, which is all of them if it is the only one.
type Free struct {
	ID    jobid.ID
	R     *rset.R // may be empty in the final one; nil is empty
	Final bool    // the job holds nothing any more
}

// UnmarshalJSON makes m what a payload says; final is optional, and false if it
// is absent. The error is a *MessageError or a *LimitError, and then m is as it
// was.
func (m *Free) UnmarshalJSON(b []byte) error {
	p := parse("free request", b, payloadDepth, "id", "R", "final")
	read := Free{ID: p.id()}
	if v, ok := p.required("R"); ok {
		read.R = p.resources("R", v, false)
	}
	read.Final = p.boolean("final")
	return keep(m, read, p.err)
}

// AppendJSON appends the payload. The error is a *MessageError: the id is too
// large, or R nested too deep; or a *LimitError.
func (m Free) AppendJSON(dst []byte) ([]byte, error) {
	w := open("free request", dst)
	w.id(m.ID)
	w.resources("R", m.R)
	w.boolean("final", m.Final)
	return w.close()
}

// MarshalJSON returns what AppendJSON appends.
func (m Free) MarshalJSON() ([]byte, error) { return m.AppendJSON(nil) }

// Feasibility asks whether a job could ever run. The answer has no payload if
// it could, else an errnum and an errstr; as it has no id, answers come in the
// order of the requests.
type Feasibility struct {
	Jobspec json.RawMessage // RFC 14, an object
}

// UnmarshalJSON makes m what a payload says. The jobspec is copied without
// white space and not looked into. The error is a *MessageError or a
// *LimitError, and then m is as it was.
func (m *Feasibility) UnmarshalJSON(b []byte) error {
	p := parse("feasibility request", b, payloadDepth, "jobspec")
	var read Feasibility
	if v, ok := p.required("jobspec"); ok {
		read.Jobspec = p.object("jobspec", v)
	}
	return keep(m, read, p.err)
}

// AppendJSON appends the payload. The error is a *MessageError or a
// *LimitError: the jobspec is no object.
func (m Feasibility) AppendJSON(dst []byte) ([]byte, error) {
	w := open("feasibility request", dst)
	w.object("jobspec", m.Jobspec, valueDepth)
	return w.close()
}

// MarshalJSON returns what AppendJSON appends.
func (m Feasibility) MarshalJSON() ([]byte, error) { return m.AppendJSON(nil) }
