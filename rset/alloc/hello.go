package alloc

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/jsonobj"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset"
)

// A HelloResponse describes one job that holds resources, for a new scheduler.
type HelloResponse struct {
	JobInfo
	R    *rset.R    // the allocation, not empty; optional: if nil, the scheduler looks it up
	Free *idset.Set // ranks of R that have been freed; optional: nil or empty means none
}

func (m HelloResponse) name() string { return "hello response" }

func (m *HelloResponse) read(o *jsonobj.Reader) {
	free := o.Value().Member("free")
	m.JobInfo, m.R = readJob(o), readR(o.Value().Member("R"), true)
	m.Free = jsonobj.Parse(free, func(s string) (*idset.Set, error) { return idset.ParseLimit(s, rset.MaxRank) })
	if !m.freeFits() {
		free.Fail(errSubset)
	}
	if m.Free.IsEmpty() {
		m.Free = nil
	}
}

// freeFits reports whether the freed ranks are ranks of R. Without R they may be.
func (m HelloResponse) freeFits() bool { return m.R == nil || m.R.Ranks().ContainsAll(m.Free) }

func (m HelloResponse) append(dst []byte) ([]byte, error) {
	w := jsonobj.WritePayload(dst)
	writeJob(&w, m.JobInfo)
	if m.R != nil {
		if m.R.IsEmpty() {
			w.Fail("R", errResource)
		}
		w.Append("R", m.R.AppendJSON)
	}
	if !m.Free.IsEmpty() {
		if most, _ := m.Free.Max(); most > rset.MaxRank {
			w.Fail("free", jsonobj.ErrRange)
		}
		if !m.freeFits() {
			w.Fail("free", errSubset)
		}
		w.Text("free", m.Free.String())
	}
	return protocol().EndPayload(&w, m.name())
}

// An Announcement is the response to a hello.
type Announcement struct {
	Responses []HelloResponse // by id; the failure NoData follows them
	Failed    []HelloFailure  // jobs that hold resources and cannot be announced, by id
}

// A HelloFailure is a job that cannot be announced.
type HelloFailure struct {
	ID  jobid.ID
	Err error // why, with the id; or that another job with this id was announced
}

// Announce returns the response to the hello of a scheduler, with each job once. jobs are all
// that hold resources which the scheduler gave; partialOK is Hello.PartialOK. Announce
// retains R and Free of the jobs. For n jobs it takes n log n steps.
//
// A job that has freed some ranks is announced with R and Free if the scheduler said partial-ok.
// Otherwise its R is cut to what it holds: a scheduler that looks R up elsewhere treats the freed
// ranks as held until the job ends. If it has freed all, no response can express that.
//
// Such a job is in Failed, and so is one whose R is nil or empty or lacks ranks of Free, or whose
// id occurred before.
func Announce(jobs []HelloResponse, partialOK bool) Announcement {
	sorted := slices.Clone(jobs)
	slices.SortStableFunc(sorted, func(a, b HelloResponse) int { return cmp.Compare(a.ID, b.ID) })
	var out Announcement
	for i, h := range sorted {
		m, err := announce(h, partialOK)
		if i > 0 && sorted[i-1].ID == h.ID {
			err = errors.New("duplicate job")
		}
		if err != nil {
			out.Failed = append(out.Failed, HelloFailure{h.ID, fmt.Errorf("alloc: hello: job %v: %w", h.ID, err)})
			continue
		}
		out.Responses = append(out.Responses, m)
	}
	return out
}

func announce(h HelloResponse, partialOK bool) (HelloResponse, error) {
	m := HelloResponse{JobInfo: h.JobInfo, R: h.R}
	if h.R.IsEmpty() {
		return m, errors.New("no R, or an empty one")
	}
	if h.Free.IsEmpty() {
		return m, nil
	}
	held, err := h.R.Without(h.Free)
	switch {
	case err != nil:
		return m, errors.New("the R does not have all freed ranks")
	case partialOK:
		m.Free = h.Free
	case held.IsEmpty():
		return m, errors.New("all ranks are freed, and the scheduler did not say partial-ok")
	default:
		m.R = held
	}
	return m, nil
}
