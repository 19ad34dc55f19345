package joblife

import (
	"cmp"
	"fmt"
	"iter"
	"slices"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
)

// holder returns what a scheduler has to know of a job, and false if it holds nothing
// of the scheduler's.
func (j *job) holder() (alloc.Holder, bool) {
	if j.r == nil {
		return alloc.Holder{}, false
	}
	free := j.nodes.Freed()
	known := j.job().HasResources() || j.state == jobstate.StateInactive // or else it was revoked
	if !known || free.Len() == j.r.Len() {
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
	list := slices.Clone(m.booked)
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
	p, _ := s.Priority()
	submit, _ := s.Entered(jobstate.StateNew)
	return alloc.Holder{
		JobInfo: alloc.JobInfo{ID: s.ID(), Priority: p, UserID: s.UserID(), Submit: submit},
		R:       r, Bypass: s.HasFlag(flagBypass),
	}
}

// held returns what a holder has not freed.
func held(h alloc.Holder) *rset.R {
	r, err := h.R.Without(h.Free)
	if err != nil {
		return h.R
	}
	return r
}

// doubleBooked returns why jobs cannot go on: others hold what they hold. The ranks of
// many jobs are compared as ranges.
func doubleBooked(list []alloc.Holder) map[jobid.ID]error {
	var seen, shared idset.Set
	for _, h := range list {
		ranks := h.R.Ranks()
		ranks.SubtractWith(h.Free)
		if seen.Intersects(ranks) {
			shared.UnionWith(idset.Intersect(&seen, ranks))
		}
		seen.UnionWith(ranks)
	}
	if shared.IsEmpty() {
		return nil
	}
	var parts []part
	for _, h := range list {
		for e := range held(h).Entries() {
			for first, last := range idset.Intersect(e.Ranks, &shared).Ranges() {
				parts = append(parts, part{h.ID, first, last, e.Children})
			}
		}
	}
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(a.first, b.first) })
	faults := make(map[jobid.ID]error)
	fault := func(id, other jobid.ID, rank uint32) {
		if faults[id] == nil {
			faults[id] = fmt.Errorf("%w: %v holds resources of rank %d that %v holds too", ErrInvalid, id, rank, other)
		}
	}
	var open []part // that reach the rank at hand
	for _, p := range parts {
		open = slices.DeleteFunc(open, func(o part) bool { return o.last < p.first })
		for _, o := range open {
			if (faults[o.job] == nil || faults[p.job] == nil) && o.job != p.job && o.overlaps(p) {
				fault(o.job, p.job, p.first)
				fault(p.job, o.job, p.first)
			}
		}
		open = append(open, p)
	}
	return faults
}

// A part is what a job holds of a range of ranks.
type part struct {
	job         jobid.ID
	first, last uint32
	children    map[string]*idset.Set
}

// overlaps reports whether two parts of one rank share resources. One without children is
// the whole rank.
func (p part) overlaps(o part) bool {
	for kind, ids := range p.children {
		if ids.Intersects(o.children[kind]) {
			return true
		}
	}
	return len(p.children) == 0 || len(o.children) == 0
}

// separate quarantines jobs of which the records say that they hold the same resources:
// when one of them ended, the other's would be free. It returns the others.
func (m *Manager) separate(live []*job, jobs map[jobid.ID]*stored, out *Recovered) []*job {
	var list []alloc.Holder
	for _, j := range live {
		if h, ok := j.holder(); ok && !h.Bypass {
			list = append(list, h)
		}
	}
	faults := doubleBooked(list)
	live = slices.DeleteFunc(live, func(j *job) bool {
		err := faults[j.id]
		if err != nil {
			m.move(j, 0)
			jobs[j.id].rec = nil
			m.quarantine(j.id, jobs[j.id], err, out)
		}
		return err != nil
	})
	var claims []alloc.Holder
	list = slices.DeleteFunc(list, func(h alloc.Holder) bool {
		if faults[h.ID] != nil {
			claims = append(claims, h)
		}
		return faults[h.ID] != nil
	})
	for _, q := range out.Quarantined {
		if h, ok := jobs[q.Job].claim(q.Job); ok && faults[q.Job] == nil {
			claims = append(claims, h)
		}
	}
	m.book(claims, list)
	slices.SortFunc(m.quarantined, func(a, b quarantined) int { return cmp.Compare(a.id, b.id) })
	slices.SortFunc(out.Quarantined, func(a, b Quarantined) int { return cmp.Compare(a.Job, b.Job) })
	for i := range out.Quarantined {
		q := &out.Quarantined[i]
		if n := slices.IndexFunc(m.booked, func(h alloc.Holder) bool { return h.ID == q.Job }); n >= 0 {
			q.R = m.booked[n].R
		}
	}
	return live
}

// claim returns what a job may hold whose records cannot be read, as far as they can.
func (s *stored) claim(id jobid.ID) (alloc.Holder, bool) {
	r, err := rset.Parse(s.r)
	j, _ := jobstate.Replay(id, s.log) // up to the fault
	over := j.Closed() || j.WasAllocated() && !j.HasResources()
	if err != nil || r.IsEmpty() || over || j.HasFlag(flagBypass) {
		return alloc.Holder{}, false
	}
	return holderOf(j, r.WithoutLocal()), true
}

// book keeps what quarantined jobs claim, for schedulers: what no other job holds of it.
func (m *Manager) book(claims, others []alloc.Holder) {
	var seen idset.Set
	for _, h := range others {
		seen.UnionWith(h.R.Ranks())
	}
	slices.SortFunc(claims, func(a, b alloc.Holder) int { return cmp.Compare(a.ID, b.ID) })
	for _, h := range claims {
		r := held(h)
		if r.Ranks().Intersects(&seen) {
			for _, o := range others {
				r = without(r, held(o))
			}
		}
		if r.IsEmpty() {
			continue
		}
		h.R, h.Free = r, nil
		seen.UnionWith(r.Ranks())
		others = append(others, h)
		m.booked = append(m.booked, h)
	}
}

// without returns a without the resources of b, and without its ranks if they have other
// hosts there.
func without(a, b *rset.R) *rset.R {
	if !a.Ranks().Intersects(b.Ranks()) {
		return a
	}
	if rest, _, err := rset.Subtract(a, b); err == nil {
		return rest
	}
	rest, _ := a.Restrict(idset.Difference(a.Ranks(), b.Ranks())) // which a has
	return rest
}
