package joblife

import (
	"cmp"
	"iter"
	"slices"

	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
)

// quarantine has the jobs that cannot be read.
type quarantine struct {
	jobs   []quarantined  // by id
	bytes  int            // of their records
	claims []alloc.Holder // what they hold, as far as it is known
}

// quarantined is a job that cannot be read.
type quarantined struct {
	id      jobid.ID
	records []Record // nil: they are too large
}

// maxQuarantine is how many bytes of their records are kept for snapshots.
const maxQuarantine = 64 << 20

// add adds a job, and reports whether its records are kept.
func (q *quarantine) add(id jobid.ID, records []Record) bool {
	size := 0
	for _, r := range records {
		size += len(r.Data)
	}
	kept := q.bytes+size <= maxQuarantine
	if kept {
		q.bytes += size
	} else {
		records = nil
	}
	q.jobs = append(q.jobs, quarantined{id, records})
	return kept
}

func (q *quarantine) has(id jobid.ID) bool {
	return slices.ContainsFunc(q.jobs, func(q quarantined) bool { return q.id == id })
}

// holder returns what a scheduler has to know of a job, and false if it holds nothing.
func (j *job) holder() (alloc.Holder, bool) {
	if j.r == nil {
		return alloc.Holder{}, false
	}
	free := j.nodes.Freed()
	if free.Len() == j.r.Len() {
		return alloc.Holder{}, false
	}
	h := holderOf(j.job(), j.expiring(j.r))
	if !free.IsEmpty() {
		h.Free = free
	}
	return h, true
}

// holders returns what a scheduler has to know, by id.
func (m *Manager) holders() []alloc.Holder {
	list := slices.Clone(m.quarantine.claims)
	for _, j := range m.sorted(jobstate.StateRunning | jobstate.StateInactive) {
		if h, ok := j.holder(); ok {
			list = append(list, h)
		}
	}
	slices.SortFunc(list, func(a, b alloc.Holder) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// Allocated yields what each job holds of the scheduler's resources, by id: its R without
// the ranks that were freed. Inactive jobs whose housekeeping goes on are among them, and
// quarantined ones of which R is known. The Manager must not change meanwhile.
func (m *Manager) Allocated() iter.Seq2[jobid.ID, *rset.R] {
	return func(yield func(jobid.ID, *rset.R) bool) {
		for _, h := range m.holders() {
			if !h.Bypass && !yield(h.ID, held(h)) {
				return
			}
		}
	}
}

func holderOf(s *jobstate.Job, r *rset.R) alloc.Holder {
	return alloc.Holder{JobInfo: infoOf(s), R: r, Bypass: s.HasFlag(flagBypass)}
}

func infoOf(s *jobstate.Job) alloc.JobInfo {
	p, _ := s.Priority()
	submit, _ := s.Entered(jobstate.StateNew)
	return alloc.JobInfo{ID: s.ID(), Priority: p, UserID: s.UserID(), Submit: submit}
}

// held returns what a holder has not freed.
func held(h alloc.Holder) *rset.R {
	r, err := h.R.Without(h.Free)
	if err != nil {
		return h.R
	}
	return r
}

// separate books what jobs hold by their records, and returns those jobs. It quarantines
// jobs that hold the same resources: when one of them ended, those of the other would be
// free.
func (m *Manager) separate(live []*job, jobs map[jobid.ID]*stored, out *Recovered) []*job {
	for _, j := range live {
		if h, ok := j.holder(); ok {
			j.unreturned = h.Bypass
			m.bookings.add(j.id, held(h))
		}
	}
	var claims []alloc.Holder
	for _, q := range out.Quarantined {
		if h, ok := jobs[q.Job].claim(q.Job); ok {
			claims = append(claims, h)
		}
	}
	faults := make(map[jobid.ID]error)
	for _, j := range live {
		if h, ok := j.holder(); ok {
			if faults[j.id] = m.bookings.conflict(j.id, held(h)); faults[j.id] != nil {
				claims = append(claims, h)
			}
		}
	}
	live = slices.DeleteFunc(live, func(j *job) bool {
		err := faults[j.id]
		if err != nil {
			m.bookings.removeR(j.id, j.r)
			m.move(j, 0)
			jobs[j.id].rec = nil
			m.setAside(j.id, jobs[j.id], err, out)
		}
		return err != nil
	})
	m.book(claims)
	slices.SortFunc(m.quarantine.jobs, func(a, b quarantined) int { return cmp.Compare(a.id, b.id) })
	slices.SortFunc(out.Quarantined, func(a, b Quarantined) int { return cmp.Compare(a.Job, b.Job) })
	for i := range out.Quarantined {
		q := &out.Quarantined[i]
		if n := slices.IndexFunc(m.quarantine.claims, func(h alloc.Holder) bool { return h.ID == q.Job && !h.Bypass }); n >= 0 {
			q.R = m.quarantine.claims[n].R
		}
	}
	return live
}

// claim returns what a job with damaged records may hold, as far as they can be read.
func (s *stored) claim(id jobid.ID) (alloc.Holder, bool) {
	r, err := rset.Parse(s.r)
	j, _ := jobstate.Replay(id, s.log) // up to the fault
	over := j.Closed() || j.WasAllocated() && !j.HasResources()
	if err != nil || r.IsEmpty() || over {
		return alloc.Holder{}, false
	}
	return holderOf(j, r.WithoutLocal()), true
}

// book keeps what quarantined jobs claim, without what other jobs hold.
func (m *Manager) book(claims []alloc.Holder) {
	slices.SortFunc(claims, func(a, b alloc.Holder) int { return cmp.Compare(a.ID, b.ID) })
	for _, h := range claims {
		if h.R, h.Free = m.bookings.rest(h.ID, held(h)), nil; !h.R.IsEmpty() {
			m.bookings.add(h.ID, h.R)
			m.quarantine.claims = append(m.quarantine.claims, h)
		}
	}
}
