package joblife

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/purge"
)

// A purger has the store remove inactive jobs, one batch of the index at a time: by the
// limits of the configuration, and as it is asked to.
type purger struct {
	*core
	limits  purge.Limits // of the configuration
	idFloor jobid.ID     // ids up to it do not come back: all that are not known any more, as is recorded

	asked  fifo[Purge] // requests, the first of which is being carried out
	asking bool        // the batch is for the first of asked
	left   int         // how many jobs may go for it yet: all that there were, or there may be no end of it
	gone   int         // how many jobs went for it
	byID   *PurgeIDs   // the request by id that the batch is for

	rest              eventlog.Timestamp // until when the age of jobs is not looked at
	clockSuspectUntil eventlog.Timestamp // the clock has jumped: until then the limits purge nothing

	stuck   map[jobid.ID]bool  // invalid jobs that the store could not remove
	stuckAt eventlog.Timestamp // when they are tried again
}

const (
	maxPurges = 1024 // requests that may wait for the store

	// In seconds.
	purgeEvery = 1    // how long the age of jobs is not looked at after it was
	jumpedFor  = 3600 // until a clock that jumped is looked at again
	retryEvery = 60   // until the store is asked again to remove an invalid job
)

func (p *purger) config(c *Config) purge.Config {
	return purge.Config{
		TombstoneCount: c.TombstoneCount, TombstoneAge: c.TombstoneAge,
		Active: func(id jobid.ID) (jobstate.State, bool) {
			if j := p.jobs[id]; j != nil && j.state != jobstate.StateInactive {
				return j.state, true
			}
			return 0, false
		},
	}
}

// due returns when byLimits has something to do; it may be infinite.
func (p *purger) due() eventlog.Timestamp {
	at := eventlog.Timestamp(math.Inf(1))
	if len(p.stuck) > 0 {
		at = p.stuckAt
	}
	switch _, busy := p.index.Claimed(); {
	case busy || !limited(p.limits):
		return at
	case p.clockSuspectUntil > p.now:
		return min(at, p.clockSuspectUntil)
	}
	look := p.index.Due(p.limits)
	if !math.IsInf(float64(look), -1) { // what is too many does not wait
		look = max(look, p.rest)
	}
	return min(at, look)
}

func limited(l purge.Limits) bool { return l.MaxAge.Set || l.MaxCount.Set }

func (p *purger) byLimits() {
	if len(p.stuck) > 0 && p.now >= p.stuckAt {
		p.out.Unlink = append(p.out.Unlink, slices.Sorted(maps.Keys(p.stuck))...)
		p.stuck = nil
	}
	if p.clockSuspectUntil > p.now {
		return
	}
	err := p.index.Observe(p.now)
	if !limited(p.limits) {
		return
	}
	if err != nil {
		p.clockSuspectUntil = p.now + jumpedFor
		p.fault("", 0, err)
		return
	}
	if p.due() > p.now {
		return
	}
	plan, err := p.index.Claim(p.now, p.limits)
	if err != nil {
		p.fault("", 0, err)
	}
	if p.rest = 0; !plan.More {
		p.rest = p.now + purgeEvery
	}
	p.remove(plan)
}

func (p *purger) remove(plan purge.Plan) {
	if len(plan.Jobs) == 0 {
		return
	}
	p.raiseFloor(plan.Watermark)
	for _, t := range plan.Tombstones {
		p.record(Record{Job: t.ID, Kind: RecordTombstone, Data: textOf(t)})
	}
	p.out.Unlink = append(p.out.Unlink, plan.IDs()...)
}

// raiseFloor records that ids up to id do not come back. It comes BEFORE a job is unlinked.
func (p *purger) raiseFloor(id jobid.ID) {
	if id > p.idFloor {
		p.idFloor = id
		p.record(Record{Kind: RecordWatermark, Data: purge.AppendWatermark(nil, id)})
	}
}

// unlinked ends the batch when its outcome is whole. It calls removed with each job that is gone.
func (p *purger) unlinked(in Unlinked, removed func(jobstate.Summary)) {
	invalid := slices.AppendSeq(slices.Clone(in.IDs), maps.Keys(in.Failed))
	invalid = slices.DeleteFunc(invalid, func(id jobid.ID) bool { return p.invalid[id] == nil })
	slices.Sort(invalid)
	for _, id := range slices.Compact(invalid) {
		p.unlinkedInvalid(id, in.Failed[id])
	}
	plan, failed, done := p.index.Unlinked(in.IDs, in.Failed)
	if !done {
		return
	}
	for _, id := range plan.Expired {
		p.record(Record{Job: id, Kind: RecordTombstone})
	}
	for _, t := range plan.Tombstones {
		if failed[t.ID] != nil { // the job stays, and may go without one later
			p.record(Record{Job: t.ID, Kind: RecordTombstone})
		}
	}
	for _, c := range plan.Jobs {
		if err := failed[c.ID]; err != nil {
			p.fault("", c.ID, err)
			continue
		}
		p.record(Record{Job: c.ID, Kind: RecordUnlinked})
		removed(c.Summary)
	}
	switch n := len(plan.Jobs) - len(failed); {
	case p.byID != nil:
		var errs []error
		for _, id := range slices.Sorted(maps.Keys(failed)) {
			errs = append(errs, failed[id])
		}
		p.answer(Answer{Tag: p.byID.Tag, Count: n, Err: errors.Join(errs...)})
		p.byID = nil
	case p.asking:
		p.gone += n
		p.asking = false
	}
	p.next()
}

// unlinkInvalid has the store remove a job that was invalidated.
func (p *purger) unlinkInvalid(j *job) {
	p.invalid[j.id] = j
	p.leave(j)
	p.raiseFloor(j.id)
	p.out.Unlink = append(p.out.Unlink, j.id)
}

func (p *purger) unlinkedInvalid(id jobid.ID, err error) {
	if err == nil {
		delete(p.invalid, id)
		delete(p.stuck, id)
		p.record(Record{Job: id, Kind: RecordUnlinked})
		return
	}
	p.fault("", id, err)
	if len(p.stuck) == 0 {
		p.stuckAt = p.now + retryEvery
	}
	p.stuck = put(p.stuck, id, true)
}

// next goes on with the first request, unless the store is at work.
func (p *purger) next() {
	for p.asked.len() > 0 {
		if _, busy := p.index.Claimed(); busy {
			return
		}
		in, plan, err := p.asked.first(), purge.Plan{}, error(nil)
		if p.left > 0 {
			in.Limits.Batch = min(cmp.Or(in.Limits.Batch, purge.DefaultBatch), p.left)
			plan, err = p.index.Claim(p.now, in.Limits)
		}
		if p.asking = len(plan.Jobs) > 0; p.asking {
			p.left -= len(plan.Jobs)
			p.remove(plan)
			return
		}
		p.answer(Answer{Tag: in.Tag, Count: p.gone, Err: err})
		p.asked.pop()
		p.gone, p.left = 0, p.index.Len()
	}
}

// passTime is for a Manager without limits, which nothing wakes: after a rest no clock has jumped.
func (p *purger) passTime() error {
	if p.index.Observe(p.now) == nil {
		return nil
	}
	return p.index.AcceptClock(p.now)
}

// ask carries out a request, or counts what it would purge.
func (p *purger) ask(in Purge) error {
	if !in.Force || in.Limits.Batch == purge.NoBatch { // else the store would be busy for long
		in.Limits.Batch = 0
	}
	if err := cmp.Or(owner(in.By), in.Limits.Check()); err != nil {
		return err
	}
	if in.Force && p.asked.len() >= maxPurges {
		return fmt.Errorf("%w: %d purges are asked for already", ErrLimit, maxPurges)
	}
	if !limited(p.limits) {
		if err := p.passTime(); err != nil {
			return err
		}
	}
	limits := in.Limits
	if !in.Force {
		limits.Batch = purge.NoBatch
	}
	plan, err := p.index.Plan(p.now, limits)
	if err != nil {
		return err
	}
	if !in.Force {
		p.answer(Answer{Tag: in.Tag, Count: len(plan.Jobs)})
		return nil
	}
	if p.asked.push(in); p.asked.len() == 1 {
		p.left = p.index.Len()
	}
	p.next()
	return nil
}

func (p *purger) askIDs(in PurgeIDs) error {
	plan, err := p.index.PlanIDs(in.IDs...)
	if err = cmp.Or(owner(in.By), err); err != nil {
		return err
	}
	if !in.Force || len(plan.Jobs) == 0 {
		p.answer(Answer{Tag: in.Tag, Count: len(plan.Jobs)})
		return nil
	}
	if _, busy := p.index.Claimed(); busy {
		return fmt.Errorf("%w: other jobs are being purged, ask again later", ErrLimit)
	}
	if plan, err = p.index.ClaimIDs(p.now, in.IDs...); err != nil {
		return err
	}
	p.byID = &in
	p.remove(plan)
	return nil
}
