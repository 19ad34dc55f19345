package exec

import (
	"encoding/json"
	"math"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/internal/jsonobj"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset"
)

// TopicHello is the topic of Hello. The topics of other messages depend on the service.
const TopicHello = "job-manager.exec-hello"

// Busy is the errnum with which flux-core refuses a hello while an earlier service has jobs: EINVAL.
const Busy = 22

// maxService bounds the bytes of a service's name, so that its topics are not too long.
const maxService = 245

// A Hello is the service's first request to the manager. The response has no payload, or the
// errnum [Busy]. After a failure the service ends.
type Hello struct {
	Service string // such as "job-exec"; 1 to 245 bytes
}

// StartTopic returns the topic of [Start] and [Response] for this service.
func (m Hello) StartTopic() string { return m.Service + ".start" }

// ExpirationTopic returns the topic of [Expiration] for this service.
func (m Hello) ExpirationTopic() string { return m.Service + ".expiration" }

func (m Hello) name() string { return "hello request" }

func (m Hello) valid() bool { return m.Service != "" && len(m.Service) <= maxService }

func (m *Hello) read(o *jsonobj.Reader) {
	name := o.Need("service")
	if m.Service = name.Text(); !m.valid() {
		name.Fail(errService)
	}
}

func (m Hello) write(w *jsonobj.Writer) {
	if !m.valid() {
		w.Fail("service", errService)
	}
	w.Text("service", m.Service)
}

// A Start asks the service to start a job.
type Start struct {
	ID       jobid.ID        // at most 2^63-1
	UserID   uint32          // the owner
	Jobspec  json.RawMessage // RFC 14, an object, not checked further
	Reattach bool            // the job was started before a restart and should still be running
	R        *rset.R         // not empty; optional: if nil, the service looks it up

	// Started says that the job is known to have started: with Reattach its shells are lost if
	// they are not found, where else the job is refused. It is not in the text: Parse sets it
	// to Reattach.
	Started bool
}

func (m Start) name() string { return "start request" }

func (m *Start) read(o *jsonobj.Reader) {
	for o.Next() {
		v := o.Value()
		switch string(o.Key()) {
		case "id":
			m.ID = readID(v)
		case "userid":
			m.UserID = uint32(v.Int(0, math.MaxUint32))
		case "jobspec":
			if v.IsObject() {
				m.Jobspec = v.Compact()
			}
		case "reattach":
			m.Reattach = v.Bool()
			m.Started = m.Reattach
		case "R":
			r, err := rset.Parse(v.Raw())
			if err == nil && r.IsEmpty() {
				err = errResource
			}
			if m.R = r; err != nil {
				v.Fail(err)
			}
		}
	}
	o.Require("id", "userid", "jobspec", "reattach")
}

func (m Start) write(w *jsonobj.Writer) {
	writeID(w, m.ID)
	w.Int("userid", int64(m.UserID))
	w.Object("jobspec", m.Jobspec)
	w.Bool("reattach", m.Reattach)
	if m.R == nil {
		return
	}
	if m.R.IsEmpty() {
		w.Fail("R", errResource)
	}
	w.Append("R", m.R.AppendJSON)
}

// An Expiration asks the service to change that of a running job. The response has no payload.
type Expiration struct {
	ID         jobid.ID
	Expiration eventlog.Timestamp // 0: never
}

func (m Expiration) name() string { return "expiration request" }

func (m *Expiration) read(o *jsonobj.Reader) {
	m.ID, m.Expiration = readID(o.Need("id")), eventlog.Timestamp(o.Need("expiration").Float(0, math.MaxFloat64))
}

func (m Expiration) write(w *jsonobj.Writer) {
	writeID(w, m.ID)
	w.FloatIn("expiration", float64(m.Expiration), 0)
}
