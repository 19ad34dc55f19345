package pool

import (
	"fmt"
	"slices"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset"
)

// Earliest returns when Plan would let a job start, and plans nothing.
func (p *Pool) Earliest(q *Request, now eventlog.Timestamp) (eventlog.Timestamp, error) {
	s, err := p.search(q)
	if err != nil {
		return 0, err
	}
	f := forecast{search: s}
	return f.earliest(now)
}

// Lacks reports whether the pool knows, without a look at nodes, that a job cannot have
// resources until a time.
func (p *Pool) Lacks(q *Request, to eventlog.Timestamp) bool {
	s, err := p.search(q)
	s.to = to
	return err == nil && s.lacks()
}

func (p *Pool) each(f func(sp *span)) {
	p.spans.Ascend(func(it rankItem) bool {
		f(it.sp)
		return true
	})
}

// Check returns an error if the indexes are not what the spans, the holders and the plans
// make them, or equal neighbours are not one span. What a pool answers shows the rest.
func (p *Pool) Check() error {
	again := &Pool{spans: newRankTree(), fit: newFitTree(p.cfg.Fit)}
	ends := 0
	var err error
	var before *span
	p.each(func(sp *span) {
		if again.insert(sp); before != nil && before.last+1 == sp.first && before.state.equal(&sp.state) {
			err = fmt.Errorf("ranks %d and %d are in one state and two spans", before.last, sp.first)
		}
		if sp.clash != sp.overlaps() {
			err = fmt.Errorf("clash of rank %d is %v", sp.first, sp.clash)
		}
		before = sp
	})
	p.holders.Ascend(func(it jobItem[*holder]) bool {
		if it.of.end() < never {
			ends++
		}
		held := int64(0)
		p.each(func(sp *span) {
			if sp.heldBy(it.id) != nil {
				held += int64(sp.last-sp.first) + 1
			}
		})
		if h := it.of; h.returned >= 0 && held != int64(h.r.Len())-h.returned {
			err = fmt.Errorf("job %v has %d of %v after it gave back %d nodes", it.id, held, h.r, h.returned)
		}
		return true
	})
	p.planned.Ascend(func(it jobItem[*plan]) bool {
		if it.of.end < never {
			ends++
		}
		return true
	})
	got := []int{p.fit.Len(), p.ends.Len(), p.starts.Len()}
	want := []int{again.fit.Len(), ends, p.planned.Len()}
	if !slices.Equal(got, want) || p.tally != again.tally {
		err = fmt.Errorf("%v spans fit, ends, starts, and %v, not %v and %v", got, p.tally, want, again.tally)
	}
	return err
}

// Claim is what a planned job is to have of a rank.
type Claim struct {
	Job        jobid.ID
	Rank       uint32
	Slots      int64
	Start, End eventlog.Timestamp
}

// Claims returns what planned jobs are to have, by rank.
func (p *Pool) Claims() (out []Claim) {
	p.each(func(sp *span) {
		for rank := sp.first; rank <= sp.last; rank++ {
			for _, c := range sp.claims {
				out = append(out, Claim{c.plan.id, rank, c.slots, c.plan.start, c.plan.end})
			}
		}
	})
	return out
}

// Conflicts returns how many other jobs hold some of what a job has, and what the first of
// them by id holds too.
func (p *Pool) Conflicts(id jobid.ID) (n int, first jobid.ID, both *rset.R) {
	h, _ := p.holder(id)
	return p.conflicts(h)
}

// Known returns how many constraints are known, and requests.
func (p *Pool) Known() (constraints, requests int) {
	return len(p.known.allowed), len(p.known.feasible)
}

// Limits of what is known.
const (
	MaxKnown       = maxKnown
	MaxKnownRanges = maxKnownRanges
)
