package joblife

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/google/btree"

	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
	"github.com/joblife/joblife/rset/children"
)

// allocations knows which job holds which resources of the scheduler: jobs with an allocation,
// jobs whose housekeeping goes on, and quarantined ones. No two hold the same, except while
// Restore looks for those that do.
type allocations struct {
	tree  *btree.BTreeG[stretch] // by their first ranks; disjoint
	found []stretch              // scratch of within
}

// A stretch is a range of ranks on which the same jobs hold the same. A search compares many.
type stretch struct {
	first, last uint32
	held        *share
}

// A share is what a job holds of a rank. Stretches have shares in common, which never change.
type share struct {
	job  jobid.ID
	what *children.Set
	next *share // of another job; mostly nil
}

func newAllocations() allocations {
	return allocations{tree: btree.NewG(16, func(a, b stretch) bool { return a.first < b.first })}
}

// within returns the stretches that have some of a range of ranks, in order, until the next call.
func (b *allocations) within(first, last uint32) []stretch {
	b.found = b.found[:0]
	b.tree.DescendLessOrEqual(stretch{first: last}, func(s stretch) bool {
		if s.last < first {
			return false
		}
		b.found = append(b.found, s)
		return s.first > first
	})
	slices.Reverse(b.found)
	return b.found
}

// without returns the shares without that of a job, and whether there was one.
func (h *share) without(id jobid.ID) (*share, bool) {
	switch {
	case h == nil:
		return nil, false
	case h.job == id:
		return h.next, true
	}
	rest, ok := h.next.without(id)
	if !ok {
		return h, false
	}
	return &share{h.job, h.what, rest}, true
}

// add adds resources of a job, whoever holds some of them.
func (b *allocations) add(id jobid.ID, r *rset.R) {
	var mine *share
	for p := range r.Parts() {
		if mine == nil || mine.what != p.What {
			mine = &share{job: id, what: p.What}
		}
		at := p.First
		for _, s := range b.within(p.First, p.Last) {
			if at < s.first {
				b.tree.ReplaceOrInsert(stretch{at, s.first - 1, mine})
			}
			at = s.last + 1
			b.replace(s, p.First, p.Last, &share{id, p.What, s.held})
		}
		if at <= p.Last {
			b.tree.ReplaceOrInsert(stretch{at, p.Last, mine})
		}
	}
}

// remove removes the share of a job from the ranks of r, where it has one.
func (b *allocations) remove(id jobid.ID, r *rset.R) {
	for p := range r.Parts() {
		for _, s := range b.within(p.First, p.Last) {
			if rest, ok := s.held.without(id); ok {
				b.replace(s, p.First, p.Last, rest)
			}
		}
	}
}

// replace puts other shares in the place of those that s has of a range of ranks.
func (b *allocations) replace(s stretch, first, last uint32, held *share) {
	first, last = max(first, s.first), min(last, s.last)
	if s.first < first {
		b.tree.ReplaceOrInsert(stretch{s.first, first - 1, s.held})
	}
	if held != nil {
		b.tree.ReplaceOrInsert(stretch{first, last, held})
	} else if s.first == first {
		b.tree.Delete(s)
	}
	if last < s.last {
		b.tree.ReplaceOrInsert(stretch{last + 1, s.last, s.held})
	}
}

// others yields what other jobs hold of some resources, part by part.
func (b *allocations) others(id jobid.ID, r *rset.R) iter.Seq2[jobid.ID, children.Part] {
	return func(yield func(jobid.ID, children.Part) bool) {
		for p := range r.Parts() {
			for _, s := range b.within(p.First, p.Last) {
				for h := s.held; h != nil; h = h.next {
					if h.job == id || !h.what.Intersects(p.What) {
						continue
					}
					if !yield(h.job, children.Part{First: max(p.First, s.first), Last: min(p.Last, s.last), What: h.what.Intersect(p.What)}) {
						return
					}
				}
			}
		}
	}
}

// conflict returns an error if another job holds some of r. It stops at the second: there may be
// thousands in damaged records.
func (b *allocations) conflict(id jobid.ID, r *rset.R) error {
	var first jobid.ID
	var both []children.Part
	more := ""
	for other, part := range b.others(id, r) {
		if both != nil && other != first {
			more = "; others hold some of it too"
			break
		}
		first, both = other, append(both, part)
	}
	if both == nil {
		return nil
	}
	return fmt.Errorf("%w: %v and %v both have %v%s", ErrConflict, id, first, (*rset.R)(nil).Cut(both, 0, 0, 0), more)
}

// rest returns the resources without what other jobs hold of them.
func (b *allocations) rest(id jobid.ID, r *rset.R) *rset.R {
	parts := make(map[jobid.ID][]children.Part)
	for other, part := range b.others(id, r) {
		parts[other] = append(parts[other], part)
	}
	for _, other := range slices.Sorted(maps.Keys(parts)) {
		r, _, _ = rset.Subtract(r, (*rset.R)(nil).Cut(parts[other], 0, 0, 0)) // fails only on hosts, and there are none
	}
	return r
}

type quarantine struct {
	jobs     map[jobid.ID][]Record // nil: the records are too large
	bytes    int                   // of their records
	holdings []alloc.HelloResponse // what they hold of the scheduler's resources, as far as it is known
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
	q.jobs = put(q.jobs, id, records)
	return kept
}

func (q *quarantine) has(id jobid.ID) bool {
	_, ok := q.jobs[id]
	return ok
}

// holding returns what a scheduler has to know of a job, and false if it holds nothing of one.
func (j *job) holding() (h alloc.HelloResponse, ok bool) {
	if j.r == nil || j.job().HasFlag(flagBypass) {
		return h, false
	}
	free := j.life.Freed()
	if free.Len() == j.r.Len() {
		return h, false
	}
	h = alloc.HelloResponse{JobInfo: infoOf(j.job()), R: j.expiring(j.r)}
	if !free.IsEmpty() {
		h.Free = free
	}
	return h, true
}

// allHoldings returns what a scheduler has to know of all jobs, by id.
func (q *quarantine) allHoldings(t *jobTable) []alloc.HelloResponse {
	list := slices.Clone(q.holdings)
	for _, j := range t.sorted(jobstate.StateRunning | jobstate.StateInactive) {
		if h, ok := j.holding(); ok {
			list = append(list, h)
		}
	}
	slices.SortFunc(list, func(a, b alloc.HelloResponse) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// heldOf returns what a job has not freed.
func heldOf(h alloc.HelloResponse) *rset.R {
	r, err := h.R.Without(h.Free)
	if err != nil {
		return h.R
	}
	return r
}
