package alloc

import (
	"encoding/json"
	"errors"
	"math"
	"strconv"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/internal/jsonobj"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset"
)

// JobInfo is what both the manager and the scheduler know about a job.
type JobInfo struct {
	ID       jobid.ID           // at most 2^63-1 in messages
	Priority uint32             // 0: a Queue does not ask for resources until this changes; to a scheduler it is the least
	UserID   uint32             // the owner
	Submit   eventlog.Timestamp // the time of submission, as a joblife.Manager always gives it; 0: another did not, and it is not sent
}

// Hello asks which jobs hold resources. It begins a session. The responses are a stream of
// [HelloResponse], which ends with the errnum [NoData]. Early schedulers sent no payload.
type Hello struct {
	PartialOK bool // the scheduler understands HelloResponse.Free
}

func (m Hello) name() string { return "hello request" }

func (m *Hello) read(o *jsonobj.Reader) { m.PartialOK = o.Value().Member("partial-ok").Bool() }

func (m Hello) append(dst []byte) ([]byte, error) {
	w := jsonobj.WritePayload(dst)
	w.Bool("partial-ok", m.PartialOK)
	return protocol().EndPayload(&w, m.name())
}

// Ready says that the scheduler accepts requests. Parse refuses the mode "single" of
// early drafts, as flux-core does.
type Ready struct {
	Limit int // the number of requests that may be outstanding, at most 2^31-1; 0: any number
}

func (m Ready) name() string { return "ready request" }

func (m *Ready) read(o *jsonobj.Reader) {
	mode := o.Need("mode")
	switch mode.Text() {
	case "unlimited":
	case "limited":
		m.Limit = int(o.Need("limit").Int(1, math.MaxInt32))
	default:
		mode.Fail(errors.New(`must be "unlimited" or "limited"`))
	}
}

func (m Ready) check() error {
	if m.Limit < 0 || m.Limit > math.MaxInt32 {
		return &jsonobj.Fault{Path: "limit", Offset: jsonobj.NoOffset, Err: jsonobj.ErrRange}
	}
	return nil
}

func (m Ready) append(dst []byte) ([]byte, error) {
	w := jsonobj.WritePayload(dst)
	if err := m.check(); err != nil {
		w.Fail("", err)
	}
	if m.Limit == 0 {
		w.Text("mode", "unlimited")
	} else {
		w.Text("mode", "limited")
		w.Int("limit", int64(m.Limit))
	}
	return protocol().EndPayload(&w, m.name())
}

// ReadyResponse responds to a [Ready].
type ReadyResponse struct {
	Count uint32 // the number of jobs that wait for a request
}

func (m ReadyResponse) name() string { return "ready response" }

func (m *ReadyResponse) read(o *jsonobj.Reader) { m.Count = readUint32(o.Need("count")) }

func (m ReadyResponse) append(dst []byte) ([]byte, error) {
	w := jsonobj.WritePayload(dst)
	w.Int("count", int64(m.Count))
	return protocol().EndPayload(&w, m.name())
}

// A Request asks the scheduler for resources for a job.
type Request struct {
	JobInfo
	Jobspec json.RawMessage // RFC 14, an object; only checked to be one
}

func (m Request) name() string { return "alloc request" }

func (m *Request) read(o *jsonobj.Reader) {
	m.JobInfo, m.Jobspec = readJob(o), readObject(o.Need("jobspec"))
}

func (m Request) append(dst []byte) ([]byte, error) {
	w := jsonobj.WritePayload(dst)
	writeJob(&w, m.JobInfo)
	w.Object("jobspec", m.Jobspec)
	return protocol().EndPayload(&w, m.name())
}

// Cancel takes back the request for a job. It has no response of its own: the scheduler
// responds to the request, with ResponseCancel or with what it had decided before.
type Cancel struct {
	ID jobid.ID
}

func (m Cancel) name() string { return "cancel request" }

func (m *Cancel) read(o *jsonobj.Reader) { m.ID = readID(o.Need("id")) }

func (m Cancel) append(dst []byte) ([]byte, error) {
	w := jsonobj.WritePayload(dst)
	writeID(&w, m.ID)
	return protocol().EndPayload(&w, m.name())
}

// A Priority is that of a job.
type Priority struct {
	ID       jobid.ID
	Priority uint32
}

// Prioritize gives the scheduler new priorities of jobs that have a request; it ignores others.
// A job may occur more than once.
type Prioritize struct {
	Jobs []Priority
}

func (m Prioritize) name() string { return "prioritize request" }

func (m *Prioritize) read(o *jsonobj.Reader) {
	for a := o.Need("jobs").Array(); a.Next(); {
		m.Jobs = append(m.Jobs, readPriority(a.Value()))
	}
}

// readPriority reads an array of an id and a priority.
func readPriority(v jsonobj.Value) Priority {
	var parts [2]jsonobj.Value
	n := 0
	for a := v.Array(); a.Next(); n++ {
		if n < len(parts) {
			parts[n] = a.Value()
		}
	}
	if n != len(parts) {
		v.Fail(errors.New("must be an id and a priority"))
	}
	return Priority{ID: readID(parts[0]), Priority: readUint32(parts[1])}
}

func (m Prioritize) append(dst []byte) ([]byte, error) {
	w := jsonobj.WritePayload(dst)
	w.Key("jobs")
	w.Out = append(w.Out, '[')
	for i, j := range m.Jobs {
		if i > 0 {
			w.Out = append(w.Out, ',')
		}
		if j.ID > math.MaxInt64 {
			path := "jobs[" + strconv.Itoa(i) + "][0]"
			w.Fail("", &jsonobj.Fault{Path: path, Offset: jsonobj.NoOffset, Err: jsonobj.ErrRange})
		}
		w.Out = strconv.AppendUint(append(w.Out, '['), uint64(j.ID), 10)
		w.Out = strconv.AppendUint(append(w.Out, ','), uint64(j.Priority), 10)
		w.Out = append(w.Out, ']')
	}
	w.Out = append(w.Out, ']')
	return protocol().EndPayload(&w, m.name())
}

// Expiration requests a new expiration for a job that has resources. The response has no payload,
// or an errnum if the scheduler refuses. Responses have no id, but the order of the requests.
type Expiration struct {
	ID         jobid.ID
	Expiration eventlog.Timestamp // 0: never
}

func (m Expiration) name() string { return "expiration request" }

func (m *Expiration) read(o *jsonobj.Reader) {
	m.ID, m.Expiration = readID(o.Need("id")), readTime(o.Need("expiration"))
}

func (m Expiration) append(dst []byte) ([]byte, error) {
	w := jsonobj.WritePayload(dst)
	writeID(&w, m.ID)
	w.FloatIn("expiration", float64(m.Expiration), 0)
	return protocol().EndPayload(&w, m.name())
}

// Free returns resources of a job to the scheduler: a fragment of its allocation.
type Free struct {
	ID    jobid.ID
	R     *rset.R // nil or empty only if Final is set
	Final bool    // the job holds nothing after it; optional
}

func (m Free) name() string { return "free request" }

func (m *Free) read(o *jsonobj.Reader) {
	m.ID, m.R, m.Final = readID(o.Need("id")), readR(o.Need("R"), false), o.Value().Member("final").Bool()
}

func (m Free) append(dst []byte) ([]byte, error) {
	w := jsonobj.WritePayload(dst)
	writeID(&w, m.ID)
	w.Append("R", m.R.AppendJSON)
	w.Bool("final", m.Final)
	return protocol().EndPayload(&w, m.name())
}

// Feasibility asks whether a job could ever run. The response has no payload if it could, else an
// errnum and an errstr. Responses have no id, but the order of the requests.
type Feasibility struct {
	Jobspec json.RawMessage // RFC 14, an object; only checked to be one
}

func (m Feasibility) name() string { return "feasibility request" }

func (m *Feasibility) read(o *jsonobj.Reader) { m.Jobspec = readObject(o.Need("jobspec")) }

func (m Feasibility) append(dst []byte) ([]byte, error) {
	w := jsonobj.WritePayload(dst)
	w.Object("jobspec", m.Jobspec)
	return protocol().EndPayload(&w, m.name())
}
