package exec

import (
	"math"
	"slices"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/guard"
	"github.com/joblife/joblife/internal/jsonobj"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset"
)

// A ResponseType says what a [Response] is. The zero ResponseType is invalid.
type ResponseType uint8

// The types of responses. A final release is the last one of a job.
const (
	ResponseStart      ResponseType = 1 + iota // the job shells have started
	ResponseReattached                         // the service has found the running job; responds to Start.Reattach
	ResponseRelease                            // the service no longer uses these ranks
	ResponseException                          // the service raises an exception on the job; it can come at any time
	ResponseFinish                             // the job shells have ended
)

var typeNames = [...]string{"", "start", "reattached", "release", "exception", "finish"}

// String returns the name on the wire; another value prints as ResponseType(n).
func (t ResponseType) String() string { return guard.Name("ResponseType", t, typeNames[1:]...) }

func (t ResponseType) valid() bool { return t > 0 && int(t) < len(typeNames) }

// An Exception is an exception that the service raises on a job (RFC 21).
type Exception struct {
	Type     string // such as "exec"
	Severity uint8  // at most 7; 0 is fatal
	Note     string // optional
}

// A Response is one of the service's responses to a [Start].
type Response struct {
	ID   jobid.ID
	Type ResponseType

	Ranks     *idset.Set // of ResponseRelease: nil means all ranks; else nil
	Final     bool       // of ResponseRelease: this is the job's last response
	Exception Exception  // of ResponseException, else zero
	Status    int32      // of ResponseFinish: the largest wait status, as wait(2) gives it; else 0
}

func (m Response) name() string { return "start response" }

func (m *Response) read(o *jsonobj.Reader) {
	m.ID = readID(o.Need("id"))
	kind := o.Need("type")
	m.Type = ResponseType(max(0, slices.Index(typeNames[:], kind.Text())))
	if m.Type == 0 {
		kind.Fail(errType)
	}
	data := o.Need("data").Object()
	switch m.Type {
	case ResponseRelease:
		if v := data.Need("ranks"); string(v.TextBytes()) != "all" {
			m.Ranks = jsonobj.Parse(v, func(s string) (*idset.Set, error) { return idset.ParseLimit(s, rset.MaxRank) })
		}
		m.Final = data.Need("final").Bool()
	case ResponseException:
		m.Exception = Exception{
			Type: data.Need("type").Text(), Severity: uint8(data.Need("severity").Int(0, jobstate.MaxSeverity)),
			Note: data.Value().Member("note").Text(),
		}
	case ResponseFinish:
		m.Status = int32(data.Need("status").Int(math.MinInt32, math.MaxInt32))
	}
}

func (m Response) write(w *jsonobj.Writer) {
	if !m.Type.valid() {
		w.Fail("type", errType)
	}
	writeID(w, m.ID)
	w.Text("type", m.Type.String())
	w.Open("data")
	switch m.Type {
	case ResponseRelease:
		ranks := "all"
		if m.Ranks != nil {
			ranks = m.Ranks.String()
		}
		if most, ok := m.Ranks.Max(); ok && most > rset.MaxRank {
			w.Fail("ranks", jsonobj.ErrRange)
		}
		w.Text("ranks", ranks)
		w.Bool("final", m.Final)
	case ResponseException:
		w.IntIn("severity", int64(m.Exception.Severity), 0, jobstate.MaxSeverity)
		w.Text("type", m.Exception.Type)
		if m.Exception.Note != "" {
			w.Text("note", m.Exception.Note)
		}
	case ResponseFinish:
		w.Int("status", int64(m.Status))
	}
	w.Close()
	switch {
	case m.Type != ResponseRelease && (m.Ranks != nil || m.Final):
		w.Fail("ranks", errOther)
	case m.Type != ResponseException && m.Exception != Exception{}:
		w.Fail("severity", errOther)
	case m.Type != ResponseFinish && m.Status != 0:
		w.Fail("status", errOther)
	}
}
