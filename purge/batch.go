package purge

import (
	"cmp"
	"errors"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/internal/guard"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
)

// A batch is a plan that the store is carrying out.
type batch struct {
	Plan
	now    eventlog.Timestamp // when it was claimed, as far as the clock is believed
	left   int                // of how many jobs the store has said nothing
	failed map[jobid.ID]error // the jobs that it could not remove; nil if there are none
}

// Claim plans a batch as Plan does, and reserves its jobs, which cannot be pinned until
// Unlinked has all of their outcomes. Call it BEFORE the store removes them. If no job is due,
// nothing is claimed. The index keeps the slices of the plan: do not change them. Claim takes
// O(log n) for each job.
//
// It returns an error if limits make no sense or another batch is claimed; or of category
// ErrClock.
func (x *Index) Claim(now eventlog.Timestamp, l Limits) (Plan, error) {
	if err := cmp.Or(l.Check(), x.checkClock(now)); err != nil {
		return Plan{}, err
	}
	return x.claim(x.plan(now, l), now)
}

// ClaimIDs is Claim for the jobs of PlanIDs, and returns the errors of both. With the time
// it only says which tombstones expire, and when a job that fails is tried again.
func (x *Index) ClaimIDs(now eventlog.Timestamp, ids ...jobid.ID) (Plan, error) {
	p, err := x.PlanIDs(ids...)
	if err == nil && !guard.IsTime(now) {
		err = clockError(now, x.clock)
	}
	if err != nil {
		return Plan{}, err
	}
	if x.clock > 0 {
		now = min(now, x.clock) // nothing has checked it
	}
	return x.claim(p, now)
}

var errBusy = errors.New("purge: the store is removing another batch")

// claim reserves the jobs of a plan, and says what becomes of their records.
func (x *Index) claim(p Plan, now eventlog.Timestamp) (Plan, error) {
	if x.batch != nil {
		return Plan{}, errBusy
	}
	if len(p.Jobs) == 0 {
		return p, nil
	}
	b := &batch{Plan: p, now: now, left: len(p.Jobs)}
	for _, c := range b.Jobs {
		b.Watermark = max(b.Watermark, c.ID)
		at := x.jobs.byID[c.ID]
		x.withdraw(at)
		x.jobs.move(at, whereLeaving)
	}
	x.addTombstones(b)
	x.batch = b
	return b.Plan, nil
}

// addTombstones says which tombstones come with the batch and which end. If the limits
// were lowered, the rest ends with later batches.
func (x *Index) addTombstones(b *batch) {
	count := defaultTombstones
	if x.cfg.TombstoneCount.Set {
		count = x.cfg.TombstoneCount.Value
	}
	last := b.Jobs[max(0, len(b.Jobs)-count):]
	b.Tombstones = make([]jobstate.Summary, len(last))
	for i, c := range last {
		b.Tombstones[i] = c.Summary
	}
	over, most := x.ended.len()+len(last)-count, len(b.Jobs)+MaxBatch
	if n := min(over, most); n > 0 {
		b.Expired = make([]jobid.ID, 0, n)
	}
	age := x.cfg.TombstoneAge
	x.ended.each(func(at slot) bool {
		r := x.jobs.record(at)
		if len(b.Expired) == most || over <= 0 && !(age.Set && older(b.now, r.Inactive, age.Value)) {
			return false
		}
		b.Expired = append(b.Expired, r.ID)
		over--
		return true
	})
}

func (x *Index) leaving() int {
	if x.batch == nil {
		return 0
	}
	return len(x.batch.Jobs)
}

// Claimed returns the plan that is claimed, and false if none is.
func (x *Index) Claimed() (Plan, bool) {
	if x.batch == nil {
		return Plan{}, false
	}
	return x.batch.Plan, true
}

// Unlinked passes which jobs of the batch the store has removed, and which it could not
// remove and why. It may come in parts; repetitions and other ids change nothing.
//
// When every job has an outcome, done is true, and those that are gone have left the index.
// Unlinked returns the plan as Claim did, and the jobs that stay: plans by limits leave
// those out for a minute, then for twice as long each time, at most for an hour. See
// [Index.Observe] and Stats.Stuck.
//
// Unlinked takes O(log n) for each job.
func (x *Index) Unlinked(ids []jobid.ID, failed map[jobid.ID]error) (p Plan, stay map[jobid.ID]error, done bool) {
	b := x.batch
	if b == nil {
		return Plan{}, nil, false
	}
	for _, id := range ids {
		x.note(id, failed[id])
	}
	for id, cause := range failed {
		x.note(id, cause)
	}
	if b.left > 0 {
		return Plan{}, nil, false
	}
	x.batch = nil
	for _, id := range b.Expired {
		at := x.jobs.byID[id]
		x.ended.remove(at)
		x.buried.add(x.jobs.record(at).Result, -1)
		x.jobs.drop(at)
	}
	for i, c := range b.Jobs {
		if b.failed[c.ID] != nil {
			x.putOff(c.ID, b.now)
			continue
		}
		at := x.jobs.byID[c.ID]
		delete(x.retries, c.ID)
		x.resident.add(c.Result, -1)
		x.purged.add(c.Result, 1)
		if i < len(b.Jobs)-len(b.Tombstones) {
			x.jobs.drop(at)
			continue
		}
		x.jobs.move(at, wherePurged)
		x.ended.add(&x.jobs, at)
		x.buried.add(c.Result, 1)
	}
	x.jobs.shrink(&x.ended, &x.free, &x.pinned)
	return b.Plan, b.failed, true
}

// note notes the outcome of a job, if it is in the batch. The first one counts.
func (x *Index) note(id jobid.ID, cause error) {
	at, ok := x.jobs.job(id)
	if !ok || x.jobs.where(at) != whereLeaving {
		return
	}
	x.jobs.move(at, whereAnswered)
	b := x.batch
	b.left--
	if cause != nil {
		if b.failed == nil {
			b.failed = make(map[jobid.ID]error)
		}
		b.failed[id] = cause
	}
}

// abort gives up the batch, if there is one. Its jobs can be planned again at once.
func (x *Index) abort() {
	if x.batch == nil {
		return
	}
	for _, c := range x.batch.Jobs {
		x.setFree(c.ID)
	}
	x.batch = nil
}
