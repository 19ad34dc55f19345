package purge

import (
	"slices"

	"github.com/joblife/joblife/jobstate/jobid"
)

// A claim is a plan whose jobs are leaving.
type claim struct {
	jobs      []Candidate
	bare      int // how many of the jobs, the oldest, get no tombstone
	expired   []jobid.ID
	watermark jobid.ID // durable if the claim is committed
}

// claimed returns the claim of a plan, or a *StaleError.
func (x *Index) claimed(p Plan) (claim, error) {
	c, ok := x.claims[p.claim]
	if !ok {
		return claim{}, &StaleError{Reason: "is not claimed, or was committed or aborted before"}
	}
	if !slices.Equal(c.jobs, p.Jobs) {
		return claim{}, &StaleError{Reason: "is not what was claimed"}
	}
	return c, nil
}

// Claim keeps the jobs of a plan from everybody else, until Commit or Abort: they
// can not be pinned, and no other plan removes them. It is called BEFORE the store
// is told to remove them.
//
// The plan that it returns is the one to carry out. It has the jobs of p that
// would still be planned now: those that are gone, pinned or leaving are not in
// it, nor are those that now are within the limits, or that others go before. So
// it may have no jobs, and then need not be committed. More tells whether it is
// worth to plan again.
//
// The error is a *StaleError: p was claimed before. Claim costs O(log n) per job.
func (x *Index) Claim(p Plan) (Plan, error) {
	if p.claim != 0 {
		return Plan{}, &StaleError{Reason: "was claimed before"}
	}
	x.trim(&p)
	x.setWatermark(&p)
	x.bury(&p)
	if len(p.Jobs) == 0 {
		return p, nil
	}
	x.lastClaim++
	p.claim = x.lastClaim
	c := claim{
		jobs: slices.Clone(p.Jobs), bare: len(p.Jobs) - len(p.Tombstones),
		expired: slices.Clone(p.Expired), watermark: p.Watermark,
	}
	for _, j := range c.jobs {
		at, _ := x.jobs.byID.get(j.ID)
		x.free.remove(at)
		x.jobs.move(at, whereLeaving)
	}
	if x.claims == nil {
		x.claims = make(map[uint64]claim)
	}
	x.claims[p.claim] = c
	x.leaving += len(c.jobs)
	x.gen++
	return p, nil
}

// trim leaves those jobs in the plan that would still be planned now.
func (x *Index) trim(p *Plan) {
	if p.gen == x.gen && !slices.ContainsFunc(p.Jobs, x.changed) && ascend(p.Jobs) {
		return
	}
	if !p.byID && p.epoch != x.epoch { // the time that it was planned for was wrong
		p.Jobs, p.More = nil, true
		return
	}
	p.gen = x.gen
	var now Plan // what would be planned now, unless it is by id
	if !p.byID {
		now = x.plan(p.Now, p.limits, len(p.Jobs))
	}
	next, kept := 0, make([]Candidate, 0, len(p.Jobs))
	for _, c := range p.Jobs {
		switch {
		case x.changed(c) || len(kept) > 0 && !less(kept[len(kept)-1].Job, c.Job):
		case p.byID:
			kept = append(kept, c)
		default:
			for next < len(now.Jobs) && less(now.Jobs[next].Job, c.Job) {
				next++
			}
			if next < len(now.Jobs) && now.Jobs[next].Job == c.Job {
				kept = append(kept, now.Jobs[next])
			}
		}
	}
	p.More = !p.byID && (now.More || len(kept) < len(now.Jobs))
	p.Jobs = kept
}

// ascend reports whether jobs are in their order, each once.
func ascend(jobs []Candidate) bool {
	for i := range jobs {
		if i > 0 && !less(jobs[i-1].Job, jobs[i].Job) {
			return false
		}
	}
	return true
}

// changed reports whether a job of a plan is gone, pinned, leaving or another one.
func (x *Index) changed(c Candidate) bool {
	at, ok := x.jobs.byID.get(c.ID)
	return !ok || x.jobs.where(at) != whereFree || x.jobs.job(at) != c.Job
}

// bury says which tombstones there will be when the jobs of the plan are gone.
// Of the old and new ones together the oldest end: those beyond the count, and
// those beyond the age. So the oldest jobs of the plan may not get any.
func (x *Index) bury(p *Plan) {
	if len(p.Jobs) == 0 {
		return
	}
	count, ok := x.cfg.TombstoneCount.Value()
	if !ok {
		count = DefaultTombstones
	}
	over := x.tombs.len() + len(p.Jobs) - count
	age, aged := x.cfg.TombstoneAge.Value()
	now := p.Now
	if p.byID {
		now = min(now, x.clock) // nobody has asked whether p.Now can be the time
	}
	ends := func(j Job) bool { return over > 0 || aged && older(now, j.Inactive, age) }
	most := 2*len(p.Jobs) + MaxBatch
	bare := 0
	if n := min(over, most, x.tombs.len()); n > 0 {
		p.Expired = make([]jobid.ID, 0, n)
	}
	x.ended.each(func(at slot) bool {
		j := x.tombs.job(at)
		for bare < len(p.Jobs) && less(p.Jobs[bare].Job, j) && ends(p.Jobs[bare].Job) {
			bare++
			over--
		}
		if len(p.Expired) == most {
			over = 0 // limits were lowered at a restart: the rest ends with later batches
			return false
		}
		if !ends(j) {
			return false
		}
		p.Expired = append(p.Expired, j.ID)
		over--
		return true
	})
	for bare < len(p.Jobs) && ends(p.Jobs[bare].Job) {
		bare++
		over--
	}
	if bare == len(p.Jobs) {
		return
	}
	p.Tombstones = make([]Job, 0, len(p.Jobs)-bare)
	for _, c := range p.Jobs[bare:] {
		p.Tombstones = append(p.Tombstones, c.Job)
	}
}

// Commit removes the jobs of a plan from the index, after the store has removed
// them, and tells Config.Purged. If the plan said that its Watermark be stored,
// the index takes it that this was done.
//
// Who lets nothing happen to the index between Plan and Commit can do without
// Claim: Commit then refuses a plan of which any job would not be planned now. The
// tombstones that it makes then are the index's alone, as only Claim puts them
// into the plan for the store. An error is a *StaleError, and nothing has changed: a job is
// not as it was planned, or the plan was committed or aborted before. Commit costs
// O(log n) per job.
func (x *Index) Commit(p Plan) error {
	if p.claim == 0 {
		now := p
		x.trim(&now)
		for i, c := range p.Jobs {
			if i >= len(now.Jobs) || now.Jobs[i].Job != c.Job {
				return &StaleError{ID: c.ID, Reason: "would not be purged now"}
			}
		}
		stored := p.Watermark // by the caller; the one now may be greater
		p, _ = x.Claim(now)
		if p.claim == 0 {
			return nil // it has no jobs
		}
		c := x.claims[p.claim]
		c.watermark = stored
		x.claims[p.claim] = c
	}
	c, err := x.claimed(p)
	if err != nil {
		return err
	}
	delete(x.claims, p.claim)
	for _, j := range c.jobs {
		at, _ := x.jobs.byID.get(j.ID)
		x.jobs.drop(at)
		x.resident.add(j.Result, -1)
		x.purged.add(j.Result, 1)
	}
	x.leaving -= len(c.jobs)
	for _, j := range c.jobs[c.bare:] {
		x.ended.add(&x.tombs, x.tombs.put(j.Job, whereFree))
	}
	for _, id := range c.expired {
		if at, ok := x.tombs.byID.get(id); ok { // another batch may have ended it too
			x.ended.remove(at)
			x.tombs.drop(at)
		}
	}
	x.durable = max(x.durable, c.watermark)
	x.gen++
	if x.cfg.Purged != nil {
		x.cfg.Purged(Notice{p.Now, c.jobs})
	}
	return nil
}

// Abort gives the jobs of a claimed plan back, after the store failed. They may be
// planned again at once. The error is a *StaleError: the plan was not claimed, or
// was committed or aborted before. Abort costs O(log n) per job.
func (x *Index) Abort(p Plan) error {
	c, err := x.claimed(p)
	if err != nil {
		return err
	}
	delete(x.claims, p.claim)
	for _, j := range c.jobs {
		at, _ := x.jobs.byID.get(j.ID)
		x.jobs.move(at, whereFree)
		x.free.add(&x.jobs, at)
	}
	x.leaving -= len(c.jobs)
	x.gen++
	return nil
}
