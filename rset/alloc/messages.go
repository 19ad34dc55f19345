package alloc

import (
	"encoding/json"
	"math"
	"strconv"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/internal/jsonobj"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset"
)

// JobInfo is what manager and scheduler both know of a job.
type JobInfo struct {
	ID       jobid.ID           // at most 2^63-1 in messages
	Priority uint32             // 0: no resources until that changes
	UserID   uint32             // the owner
	Submit   eventlog.Timestamp // submit time; 0: not known
}

// Hello asks which jobs hold resources. It begins a session. The responses are a
// stream of [HelloResponse], which the failure [NoData] ends.
type Hello struct {
	PartialOK bool // the scheduler understands HelloResponse.Free
}

// UnmarshalJSON replaces m with the payload, all of which is optional. An empty b
// is the zero Hello, as early schedulers sent. The error is ErrMessage or ErrLimit,
// and then m is as it was.
func (m *Hello) UnmarshalJSON(b []byte) error {
	if len(b) == 0 {
		*m = Hello{}
		return nil
	}
	return decode(m, "hello request", b, payloadDepth, func(o *jsonobj.Reader, m *Hello) {
		for o.Next() {
			if string(o.Key()) == "partial-ok" {
				m.PartialOK = o.Bool()
			}
		}
	})
}

func (m Hello) appendJSON(dst []byte) ([]byte, error) {
	w := write("hello request", dst, payloadDepth)
	w.Bool("partial-ok", m.PartialOK)
	return w.end()
}

// MarshalJSON returns the payload. The error is always nil.
func (m Hello) MarshalJSON() ([]byte, error) { return m.appendJSON(nil) }

// Ready tells that requests may come.
type Ready struct {
	Limit int // how many requests may be outstanding, at most 2^31-1; 0: any number
}

// UnmarshalJSON replaces m with the payload: the mode "unlimited", or "limited"
// with a limit of 1 or more. The mode "single" of early drafts is refused, as in
// flux-core. The error is ErrMessage or ErrLimit, and then m is as it was.
func (m *Ready) UnmarshalJSON(b []byte) error {
	return decode(m, "ready request", b, payloadDepth, func(o *jsonobj.Reader, m *Ready) {
		var mode, limit jsonobj.Value
		for o.Next() {
			switch string(o.Key()) {
			case "mode":
				mode = o.Value()
			case "limit":
				limit = o.Value()
			}
		}
		o.Require("mode")
		switch mode.Text() {
		case "unlimited":
		case "limited":
			o.Require("limit")
			m.Limit = int(limit.Int(1, math.MaxInt32))
		default:
			mode.Fail(errMode)
		}
	})
}

// check returns what MarshalJSON and Queue.Ready refuse.
func (m Ready) check() error {
	if m.Limit < 0 || m.Limit > math.MaxInt32 {
		return &jsonobj.Fault{Path: "limit", Offset: jsonobj.NoOffset, Err: jsonobj.ErrRange}
	}
	return nil
}

func (m Ready) appendJSON(dst []byte) ([]byte, error) {
	w := write("ready request", dst, payloadDepth)
	if err := m.check(); err != nil {
		w.Fail("", err)
	}
	if m.Limit == 0 {
		w.Text("mode", "unlimited")
	} else {
		w.Text("mode", "limited")
		w.Int("limit", int64(m.Limit))
	}
	return w.end()
}

// MarshalJSON returns the payload. The error is ErrMessage if the limit is out of
// range.
func (m Ready) MarshalJSON() ([]byte, error) { return m.appendJSON(nil) }

// ReadyResponse responds to a [Ready].
type ReadyResponse struct {
	Count uint32 // how many jobs wait for a request
}

// UnmarshalJSON replaces m with the payload. The error is ErrMessage or ErrLimit,
// and then m is as it was.
func (m *ReadyResponse) UnmarshalJSON(b []byte) error {
	return decode(m, "ready response", b, payloadDepth, func(o *jsonobj.Reader, m *ReadyResponse) {
		for o.Next() {
			if string(o.Key()) == "count" {
				m.Count = readUint32(o.Value())
			}
		}
		o.Require("count")
	})
}

func (m ReadyResponse) appendJSON(dst []byte) ([]byte, error) {
	w := write("ready response", dst, payloadDepth)
	w.Int("count", int64(m.Count))
	return w.end()
}

// MarshalJSON returns the payload. The error is always nil.
func (m ReadyResponse) MarshalJSON() ([]byte, error) { return m.appendJSON(nil) }

// A Request asks the scheduler for resources for a job.
type Request struct {
	JobInfo
	Jobspec json.RawMessage // RFC 14, an object
}

// UnmarshalJSON replaces m with the payload; t_submit is optional. The jobspec is
// copied without white space and not checked further. The error is ErrMessage or
// ErrLimit, and then m is as it was.
func (m *Request) UnmarshalJSON(b []byte) error {
	return decode(m, "alloc request", b, payloadDepth, func(o *jsonobj.Reader, m *Request) {
		for o.Next() {
			if m.JobInfo.read(o); string(o.Key()) == "jobspec" {
				m.Jobspec = readObject(o.Value())
			}
		}
		o.Require("id", "priority", "userid", "jobspec")
	})
}

func (m Request) appendJSON(dst []byte) ([]byte, error) {
	w := write("alloc request", dst, payloadDepth)
	w.job(m.JobInfo)
	w.object("jobspec", m.Jobspec)
	return w.end()
}

// MarshalJSON returns the payload, without t_submit if that is 0. The error is
// ErrMessage or ErrLimit.
func (m Request) MarshalJSON() ([]byte, error) { return m.appendJSON(nil) }

// Cancel takes back the request for a job. The scheduler responds to the request,
// not to the Cancel: with ResponseCancel, or with what it had decided before.
type Cancel struct {
	ID jobid.ID
}

// UnmarshalJSON replaces m with the payload. The error is ErrMessage or ErrLimit,
// and then m is as it was.
func (m *Cancel) UnmarshalJSON(b []byte) error {
	return decode(m, "cancel request", b, payloadDepth, func(o *jsonobj.Reader, m *Cancel) {
		for o.Next() {
			if string(o.Key()) == "id" {
				m.ID = readID(o.Value())
			}
		}
		o.Require("id")
	})
}

func (m Cancel) appendJSON(dst []byte) ([]byte, error) {
	w := write("cancel request", dst, payloadDepth)
	w.id(m.ID)
	return w.end()
}

// MarshalJSON returns the payload. The error is ErrMessage if the id is too large.
func (m Cancel) MarshalJSON() ([]byte, error) { return m.appendJSON(nil) }

// A Priority is the priority of a job.
type Priority struct {
	ID       jobid.ID
	Priority uint32
}

// Prioritize tells new priorities of jobs with a request. The scheduler ignores
// jobs that it does not know.
type Prioritize struct {
	Jobs []Priority
}

// UnmarshalJSON replaces m with the payload. A job may occur more than once. The
// error is ErrMessage or ErrLimit, and then m is as it was.
func (m *Prioritize) UnmarshalJSON(b []byte) error {
	return decode(m, "prioritize request", b, payloadDepth, func(o *jsonobj.Reader, m *Prioritize) {
		for o.Next() {
			if string(o.Key()) != "jobs" {
				continue
			}
			for a := o.Value().Array(); a.Next(); {
				m.Jobs = append(m.Jobs, readPriority(a.Value()))
			}
		}
		o.Require("jobs")
	})
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
		v.Fail(errPair)
	}
	return Priority{ID: readID(parts[0]), Priority: readUint32(parts[1])}
}

func (m Prioritize) appendJSON(dst []byte) ([]byte, error) {
	w := write("prioritize request", dst, payloadDepth)
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
	return w.end()
}

// MarshalJSON returns the payload. The error is ErrMessage if an id is too large,
// or ErrLimit.
func (m Prioritize) MarshalJSON() ([]byte, error) { return m.appendJSON(nil) }

// Expiration tells a new expiration of a job that has resources. The response has
// no payload, or an errnum if the scheduler refuses. It has no id; responses come
// in the order of the requests.
type Expiration struct {
	ID         jobid.ID
	Expiration eventlog.Timestamp // 0: never
}

// UnmarshalJSON replaces m with the payload. The error is ErrMessage or ErrLimit,
// and then m is as it was.
func (m *Expiration) UnmarshalJSON(b []byte) error {
	return decode(m, "expiration request", b, payloadDepth, func(o *jsonobj.Reader, m *Expiration) {
		for o.Next() {
			switch string(o.Key()) {
			case "id":
				m.ID = readID(o.Value())
			case "expiration":
				m.Expiration = readTime(o.Value())
			}
		}
		o.Require("id", "expiration")
	})
}

func (m Expiration) appendJSON(dst []byte) ([]byte, error) {
	w := write("expiration request", dst, payloadDepth)
	w.id(m.ID)
	w.time("expiration", m.Expiration)
	return w.end()
}

// MarshalJSON returns the payload. The error is ErrMessage if the id is too large,
// or the time negative or not finite.
func (m Expiration) MarshalJSON() ([]byte, error) { return m.appendJSON(nil) }

// Free returns resources of a job to the scheduler: a fragment of its allocation.
type Free struct {
	ID    jobid.ID
	R     *rset.R // nil and empty are valid, for the final one
	Final bool    // the job holds nothing any more
}

// UnmarshalJSON replaces m with the payload. An absent final is false. The error is
// ErrMessage or ErrLimit, and then m is as it was.
func (m *Free) UnmarshalJSON(b []byte) error {
	return decode(m, "free request", b, payloadDepth, func(o *jsonobj.Reader, m *Free) {
		for o.Next() {
			switch string(o.Key()) {
			case "id":
				m.ID = readID(o.Value())
			case "R":
				m.R = readR(o.Value(), false)
			case "final":
				m.Final = o.Bool()
			}
		}
		o.Require("id", "R")
	})
}

func (m Free) appendJSON(dst []byte) ([]byte, error) {
	w := write("free request", dst, payloadDepth)
	w.id(m.ID)
	w.resources("R", m.R)
	w.Bool("final", m.Final)
	return w.end()
}

// MarshalJSON returns the payload. The error is ErrMessage if the id is too large
// or R nested too deep, or ErrLimit.
func (m Free) MarshalJSON() ([]byte, error) { return m.appendJSON(nil) }

// Feasibility asks whether a job could ever run. The response has no payload if it
// could, else an errnum and an errstr. It has no id; responses come in the order of
// the requests.
type Feasibility struct {
	Jobspec json.RawMessage // RFC 14, an object
}

// UnmarshalJSON replaces m with the payload. The jobspec is copied without white
// space and not checked further. The error is ErrMessage or ErrLimit, and then m is
// as it was.
func (m *Feasibility) UnmarshalJSON(b []byte) error {
	return decode(m, "feasibility request", b, payloadDepth, func(o *jsonobj.Reader, m *Feasibility) {
		for o.Next() {
			if string(o.Key()) == "jobspec" {
				m.Jobspec = readObject(o.Value())
			}
		}
		o.Require("jobspec")
	})
}

func (m Feasibility) appendJSON(dst []byte) ([]byte, error) {
	w := write("feasibility request", dst, payloadDepth)
	w.object("jobspec", m.Jobspec)
	return w.end()
}

// MarshalJSON returns the payload. The error is ErrMessage if the jobspec is not an
// object, or ErrLimit.
func (m Feasibility) MarshalJSON() ([]byte, error) { return m.appendJSON(nil) }
