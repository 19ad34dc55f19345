package alloc

import (
	"cmp"
	"slices"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset"
)

// A HelloJob tells a new scheduler of a job that holds resources.
type HelloJob struct {
	Job
	R    *rset.R    // the allocation, not empty; nil: the scheduler looks it up
	Free *idset.Set // the ranks of R that were given back; nil: none
}

// UnmarshalJSON makes m what a payload says; t_submit, R and free are optional.
// Where R is there, it has the ranks of free. The error is a *MessageError or a
// *LimitError, and then m is as it was.
func (m *HelloJob) UnmarshalJSON(b []byte) error {
	p := parse("hello answer", b, payloadDepth, "id", "priority", "userid", "t_submit", "R", "free")
	read := HelloJob{Job: p.job()}
	if v, ok := p.optional("R"); ok {
		read.R = p.resources("R", v, true)
	}
	if v, ok := p.optional("free"); ok {
		read.Free = p.ranks("free", v)
		if p.err == nil && !read.freeFits() {
			p.fail("free", v.offset, errSubset)
		}
		if read.Free.IsEmpty() {
			read.Free = nil
		}
	}
	return keep(m, read, p.err)
}

// freeFits reports whether the free ranks are ranks of R, as far as is known.
func (m HelloJob) freeFits() bool { return m.R == nil || m.R.Ranks().ContainsAll(m.Free) }

// AppendJSON appends the payload, without t_submit if it is 0, R if it is nil,
// and free if there is none. The error is a *MessageError: the id is too large,
// the time negative or not finite, R is empty, nested too deep or does not have
// all ranks of Free; or a *LimitError.
func (m HelloJob) AppendJSON(dst []byte) ([]byte, error) {
	w := open("hello answer", dst)
	w.job(m.Job)
	if m.R != nil {
		if m.R.IsEmpty() {
			w.fail("R", errResource)
		}
		w.resources("R", m.R)
	}
	if !m.Free.IsEmpty() {
		if most, _ := m.Free.Max(); most > rset.MaxRank {
			w.fail("free", errRange)
		}
		if !m.freeFits() {
			w.fail("free", errSubset)
		}
		w.key("free")
		w.dst = append(w.dst, '"')
		w.dst, _ = m.Free.AppendText(w.dst)
		w.dst = append(w.dst, '"')
	}
	return w.close()
}

// MarshalJSON returns what AppendJSON appends.
func (m HelloJob) MarshalJSON() ([]byte, error) { return m.AppendJSON(nil) }

// Held returns what the job holds: R without the ranks of Free. It is empty if
// all were given back and only resources without a rank are still held. The
// error is a *HelloError: R is nil, or does not have all ranks of Free.
func (m HelloJob) Held() (*rset.R, error) {
	if m.R == nil {
		return nil, &HelloError{ID: m.ID, Err: errNoR}
	}
	held, err := m.R.Without(m.Free)
	if err != nil {
		return nil, &HelloError{ID: m.ID, Err: errFree}
	}
	return held, nil
}

// A Holder is a job that holds resources.
type Holder struct {
	Job
	R      *rset.R    // the allocation as it was made
	Free   *idset.Set // the ranks of R that were given back; nil: none
	Bypass bool       // R did not come from the scheduler
}

// An Announcement is what to tell a scheduler that said hello.
type Announcement struct {
	Jobs   []HelloJob    // the answers, in the order of ids; the failure NoData follows them
	Cut    []jobid.ID    // those of Jobs whose R had to be cut, in order
	Failed []*HelloError // the jobs that are not in Jobs though they hold resources, in the order of ids
}

// Announce returns what to tell a scheduler that said hello, each job once. It
// retains R and Free of the holders. It costs n log n for n jobs, and what each
// R costs.
//
// Jobs with Bypass are left out: the scheduler never knew of them. A job that
// gave back some of its ranks is told with its R and Free if the scheduler
// said partial-ok. Otherwise it is told with an R cut to what it holds, as if
// it never had more, and is listed in Cut: a scheduler that takes R from the
// message is right, one that looks R up elsewhere takes the ranks that were
// given back for allocated until the job is done.
//
// A job is in Failed, and all others are told, where it has no R or an empty
// one, where R does not have all ranks of Free, where it is given twice, the
// second time, and where all its ranks were given back and the scheduler did
// not say partial-ok, so that there is no way to tell it.
func Announce(holders []Holder, partialOK bool) Announcement {
	sorted := slices.Clone(holders)
	slices.SortStableFunc(sorted, func(a, b Holder) int { return cmp.Compare(a.ID, b.ID) })
	var out Announcement
	for i, h := range sorted {
		if h.Bypass {
			continue
		}
		fail := func(err error) { out.Failed = append(out.Failed, &HelloError{ID: h.ID, Err: err}) }
		if i > 0 && sorted[i-1].ID == h.ID {
			fail(ErrExists)
			continue
		}
		if h.R.IsEmpty() {
			fail(errNoR)
			continue
		}
		m := HelloJob{Job: h.Job, R: h.R, Free: h.Free}
		if m.Free.IsEmpty() {
			m.Free = nil
		}
		held, err := m.Held()
		switch {
		case err != nil:
			fail(errFree)
			continue
		case m.Free != nil && !partialOK && held.IsEmpty():
			fail(errAllFree)
			continue
		case m.Free != nil && !partialOK:
			m.R, m.Free = held, nil
			out.Cut = append(out.Cut, h.ID)
		}
		out.Jobs = append(out.Jobs, m)
	}
	return out
}
