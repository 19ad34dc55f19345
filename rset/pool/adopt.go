package pool

import (
	"errors"
	"fmt"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/guard"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset"
)

// Adopt adds a job that has resources already, as in the responses to a hello of RFC 27. r is
// its allocation, of which it has freed some ranks; nil means none. It holds the rest. Do not
// adopt a job whose resources did not come from the scheduler. A second Adopt with the same
// arguments, or with the expiration that SetExpiration set, changes nothing and returns the same.
//
// Some errors, alone or joined, are only reports. The job then holds its resources anyway, since
// its processes may be running there, and [Pool.Allocation] has it:
//
//   - Other jobs hold some of them too. These are free when the last job has freed them. The
//     error names the first of these jobs, by id, and counts up to 100.
//   - Some are not in the inventory, but in [Allocation].Gone: see [Pool.Update].
//   - r does not have all freed ranks. The others are ignored.
//   - Ranks are on other hosts than in the inventory.
//
// After any other error nothing has changed: the job has other resources (ErrExists), r is
// empty, or Config.MaxJobs jobs have resources.
//
// It takes logarithmic time for each range of r. For n jobs that hold parts of one node, all
// Adopts take n² steps, of nanoseconds.
func (p *Pool) Adopt(id jobid.ID, r *rset.R, freed *idset.Set) error {
	if r.IsEmpty() {
		return invalid("allocation: no resources")
	}
	ranks := r.Ranks()
	var unknown error
	if !ranks.ContainsAll(freed) {
		unknown = ranksError("freed", idset.Difference(freed, ranks), "are not in the allocation")
	}
	ranks.SubtractWith(freed)
	held := must(r.Restrict(ranks))
	h, again := p.holder(id)
	if again && !(h.isOf(r) && rset.SameResources(held, p.all(h))) {
		return jobError(id, ErrExists)
	}
	if !again {
		if err := p.room(p.holders.Len()); err != nil {
			return err
		}
		h = &holder{id: id, r: r, since: r.Start(), expiration: r.Expiration()}
		gone := p.hold(id, h.end(), held)
		p.Unplan(id)
		if p.setHolder(h); !gone.IsEmpty() || held.Len() < r.Len() {
			h = p.setGone(h, gone)
		}
	}
	var conflict, missing error
	if n, other, both := p.conflicts(h); n > 0 {
		more := ""
		switch {
		case n > maxConflicts:
			more = fmt.Sprintf(", more than %d conflicts in all", maxConflicts)
		case n > 1:
			more = fmt.Sprintf(", %d conflicts in all", n)
		}
		conflict = fmt.Errorf("%w: jobs %s and %s both hold %s%s", errConflict, id, other, guard.Plain(both.String()), more)
	}
	if !h.gone.IsEmpty() {
		missing = fmt.Errorf("%w: job %s: %s", errMissing, id, guard.Plain(h.gone.String()))
	}
	both := must(p.inventory.Restrict(idset.Intersect(held.Ranks(), p.ranks)))
	_, hosts := rset.Intersect(both, held)
	if hosts != nil {
		hosts = fmt.Errorf("pool: job %s: %w", id, hosts)
	}
	return errors.Join(conflict, missing, unknown, hosts)
}

// hold gives a job what the inventory has of r, and returns the rest, without hosts.
func (p *Pool) hold(id jobid.ID, end eventlog.Timestamp, r *rset.R) *rset.R {
	var gone parts
	for pt := range r.Parts() {
		p.within(pt.First, pt.Last, func(first, last uint32, sp *span) {
			if sp == nil {
				gone = gone.add(first, last, pt.What)
			} else {
				gone = gone.add(first, last, pt.What.Subtract(sp.all))
			}
		})
		p.edit(pt.First, pt.Last, func(_, _ uint32, s *state) {
			if have := pt.What.Intersect(s.all); have != nil {
				s.take(&[1]owner{{id, end, have}}, s.free.Subtract(have))
			}
		})
	}
	return gone.r()
}

// all returns what a job holds, in the inventory or gone.
func (p *Pool) all(h *holder) *rset.R { return must(rset.UnionDisjoint(p.held(h), h.gone)) }

const maxConflicts = 100 // that are counted

// conflicts returns how many other jobs hold some of what a job holds, and what the first of
// them by id holds too, without hosts. More than maxConflicts may be any number. It takes a step
// for each span of the job, and for each job on these up to that many, if the pool has conflicts.
func (p *Pool) conflicts(h *holder) (n int, first jobid.ID, both *rset.R) {
	if p.clashes == 0 {
		return 0, 0, nil
	}
	others := make(map[jobid.ID]struct{})
	var overlap parts // with the first so far
	for pt := range h.r.Parts() {
		for _, sp := range p.touching(nil, pt.First, pt.Last) {
			mine := sp.heldBy(h.id)
			for _, o := range sp.owners {
				if len(others) > maxConflicts && o.job > first {
					break // so are those behind it
				}
				common := o.what.Intersect(mine)
				if o.job == h.id || common == nil {
					continue
				}
				if len(others) == 0 || o.job < first {
					first, overlap = o.job, overlap[:0]
				}
				others[o.job] = struct{}{}
				if o.job == first {
					overlap = overlap.add(max(pt.First, sp.first), min(pt.Last, sp.last), common)
				}
			}
		}
	}
	return len(others), first, overlap.r()
}
