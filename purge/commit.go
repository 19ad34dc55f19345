package purge

import (
	"slices"

	"github.com/joblife/joblife/jobstate/jobid"
)

// Claim reserves the jobs of a plan until Commit or Abort: they cannot be pinned, and
// no other plan can claim them. Call it BEFORE the store removes the jobs.
//
// It returns the plan to carry out: the jobs of p that would still be planned now.
// It leaves out jobs that are gone, pinned or leaving, and those that the limits now
// keep. Committing or aborting a plan without jobs does nothing. Plan.More says
// whether to plan again.
//
// The error has category ErrStale: p was claimed before. Claim takes O(log n)
// for each job.
func (x *Index) Claim(p Plan) (Plan, error) {
	if p.claim != 0 {
		return Plan{}, stale("was claimed before")
	}
	x.trim(&p)
	x.setWatermark(&p)
	p.Tombstones, p.Expired, p.ends = nil, nil, nil
	if len(p.Jobs) == 0 {
		return p, nil
	}
	x.addTombstones(&p)
	x.lastClaim++
	p.claim = x.lastClaim
	if len(p.slots) != len(p.Jobs) {
		p.slots = make([]slot, len(p.Jobs))
	} // else no other claim has them: its jobs would be leaving
	for i := range p.Jobs {
		at, _ := x.slotOf(&p, i)
		p.slots[i] = at
		x.take(at)
		x.jobs.move(at, whereLeaving)
	}
	if x.claims == nil {
		x.claims = make(map[uint64]Plan)
	}
	kept := p // its jobs are those of its slots
	kept.Jobs, kept.Tombstones, kept.Expired = nil, nil, slices.Clone(p.Expired)
	x.claims[p.claim] = kept
	x.leaving += len(p.Jobs)
	x.gen++
	return p, nil
}

// trim leaves those jobs in the plan that would still be planned now.
func (x *Index) trim(p *Plan) {
	if p.gen == x.gen && x.unchanged(p) {
		return
	}
	if !p.byID && x.jumps(p.Now) { // the clock was wrong
		p.Jobs, p.More = nil, true
		return
	}
	p.gen = x.gen
	var now Plan // what would be planned now, unless it is by id
	if !p.byID {
		now = x.plan(p.Now, p.limits, len(p.Jobs))
	}
	next, kept := 0, make([]Candidate, 0, len(p.Jobs))
	for i, c := range p.Jobs {
		switch {
		case x.changed(p, i) || len(kept) > 0 && !less(kept[len(kept)-1].Record, c.Record):
		case p.byID:
			kept = append(kept, c)
		default:
			for next < len(now.Jobs) && less(now.Jobs[next].Record, c.Record) {
				next++
			}
			if next < len(now.Jobs) && now.Jobs[next].Record == c.Record {
				kept = append(kept, now.Jobs[next])
			}
		}
	}
	p.More = !p.byID && (now.More || len(kept) < len(now.Jobs))
	p.Jobs, p.slots = kept, nil
}

// unchanged reports whether the jobs of a plan are as they were planned, and in
// their order, each once.
func (x *Index) unchanged(p *Plan) bool {
	for i := range p.Jobs {
		if x.changed(p, i) || i > 0 && !less(p.Jobs[i-1].Record, p.Jobs[i].Record) {
			return false
		}
	}
	return true
}

// changed reports whether a job of a plan is gone, pinned, leaving or another one.
func (x *Index) changed(p *Plan, i int) bool {
	at, ok := x.slotOf(p, i)
	if !ok {
		return true
	}
	where := x.jobs.where(at)
	return where != whereFree && (where != whereWaiting || p.Jobs[i].Reason != ReasonID)
}

// slotOf returns the slot of a job of a plan, and whether the job is resident and as
// it was planned. The slot that the plan has is right if it holds the same record.
func (x *Index) slotOf(p *Plan, i int) (slot, bool) {
	want := p.Jobs[i].Record
	if i < len(p.slots) {
		if at := p.slots[i]; x.jobs.holds(at) && x.jobs.record(at) == want {
			return at, true
		}
	}
	at, ok := x.jobs.job(want.ID)
	return at, ok && x.jobs.record(at) == want
}

// addTombstones says which tombstones come with the plan and which end: the oldest
// of more than TombstoneCount, and those older than TombstoneAge. If the limits
// were lowered, the rest ends with later plans.
func (x *Index) addTombstones(p *Plan) {
	count := defaultTombstones
	if x.cfg.TombstoneCount.Set {
		count = x.cfg.TombstoneCount.Value
	}
	last := p.Jobs[max(0, len(p.Jobs)-count):]
	p.Tombstones, p.tombs = records(last), len(last)
	over, most := x.ended.len()+len(last)-count, len(p.Jobs)+MaxBatch
	now, age := x.believed(p), x.cfg.TombstoneAge
	if n := min(over, most); n > 0 {
		p.Expired, p.ends = make([]jobid.ID, 0, n), make([]slot, 0, n)
	}
	x.ended.each(&x.jobs, func(at slot) bool {
		r := x.jobs.record(at)
		if len(p.Expired) == most || over <= 0 && !(age.Set && older(now, r.Inactive, age.Value)) {
			return false
		}
		p.Expired, p.ends = append(p.Expired, r.ID), append(p.ends, at)
		over--
		return true
	})
}

// records returns the records of jobs.
func records(jobs []Candidate) []Record {
	out := make([]Record, len(jobs))
	for i, c := range jobs {
		out[i] = c.Record
	}
	return out
}

// unclaim ends a claim, and returns the plan that was claimed. The error has category
// ErrStale.
func (x *Index) unclaim(p Plan) (Plan, error) {
	c, ok := x.claims[p.claim]
	if !ok {
		return Plan{}, stale("is not claimed, or was committed or aborted before")
	}
	same := len(c.slots) == len(p.Jobs)
	for i := 0; same && i < len(p.Jobs); i++ {
		same = x.jobs.record(c.slots[i]) == p.Jobs[i].Record
	}
	if !same {
		return Plan{}, stale("differs from the claimed plan")
	}
	c.Jobs = p.Jobs
	delete(x.claims, c.claim)
	x.leaving -= len(c.Jobs)
	x.gen++
	return c, nil
}

// Commit removes the jobs of a claimed plan from the index, after the store has
// removed them, and calls Config.Purged. If Plan.NeedsWatermark is set, the store
// has made Plan.Watermark durable before Commit.
//
// The jobs in failed are those that the store could not remove. They stay, and
// plans by limits leave them out for a while: first for a minute, then for twice
// as long each time, at most for an hour. See [Index.Observe] and Stats.Stuck.
// Ids that are not in the plan are ignored.
//
// The error has category ErrStale: the plan is not claimed, or is not what Claim
// returned. Commit takes O(log n) for each job. When only an eighth of the jobs is
// left, it also moves those to new memory.
func (x *Index) Commit(p Plan, failed ...jobid.ID) error {
	if len(p.Jobs) == 0 && p.claim == 0 {
		return nil
	}
	c, err := x.unclaim(p)
	if err != nil {
		return err
	}
	now := x.believed(&c)
	for i, id := range c.Expired {
		at := c.ends[i]
		if x.jobs.where(at) == wherePurged && x.jobs.record(at).ID == id { // another plan may have ended it too
			x.ended.remove(at)
			x.buried.add(x.jobs.record(at).Result, -1)
			x.jobs.drop(at)
		}
	}
	for i, j := range c.Jobs {
		at := c.slots[i]
		if slices.Contains(failed, j.ID) {
			x.putOff(at, now)
			continue
		}
		delete(x.retries, j.ID)
		x.resident.add(j.Result, -1)
		x.purged.add(j.Result, 1)
		if i < len(c.Jobs)-c.tombs {
			x.jobs.drop(at)
			continue
		}
		x.jobs.move(at, wherePurged)
		x.ended.add(&x.jobs, at)
		x.buried.add(j.Result, 1)
	}
	x.durable = max(x.durable, c.Watermark)
	if x.leaving == 0 { // claims know slots
		x.jobs.shrink(&x.ended, &x.free, &x.pinned)
	}
	if x.cfg.Purged != nil {
		c.Jobs = slices.Clone(c.Jobs)
		c.Tombstones = records(c.Jobs[len(c.Jobs)-c.tombs:])
		if done := c.without(failed); len(done.Jobs) > 0 {
			x.cfg.Purged(done)
		}
	}
	return nil
}

// Abort ends the claim of a plan after the store failed as a whole. Its jobs may
// be planned again at once. The error has category ErrStale. Abort takes O(log n)
// for each job.
func (x *Index) Abort(p Plan) error {
	if len(p.Jobs) == 0 && p.claim == 0 {
		return nil
	}
	c, err := x.unclaim(p)
	if err != nil {
		return err
	}
	for _, at := range c.slots {
		x.setFree(at)
	}
	return nil
}
