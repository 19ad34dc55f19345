package joblife

import (
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
	asked fifo[Purge] // requests, the first of which is being carried out
	own   bool        // the batch is for the first of asked
	gone  int         // how many jobs went for it
	byID  *PurgeIDs   // the request by id that the batch is for

	rest              eventlog.Timestamp // until when the age of jobs is not looked at
	clockSuspectUntil eventlog.Timestamp // the clock has jumped: until then the limits purge nothing

	stuck   []jobid.ID         // invalid jobs that the store could not remove
	stuckAt eventlog.Timestamp // when they are tried again
}

const (
	maxPurges = 1024 // requests that may wait for the store

	// In seconds.
	purgeEvery = 1    // how long the age of jobs is not looked at after it was
	jumpedFor  = 3600 // until a clock that jumped is looked at again
	retryEvery = 60   // until the store is asked again to remove an invalid job
)

func (m *machine) purgeConfig() purge.Config {
	return purge.Config{
		TombstoneCount: m.cfg.TombstoneCount, TombstoneAge: m.cfg.TombstoneAge,
		Active: func(id jobid.ID) (jobstate.State, bool) {
			if j := m.jobs[id]; j != nil && j.state != jobstate.StateInactive {
				return j.state, true
			}
			return 0, false
		},
	}
}

func (AcceptClock) dispatch(m *machine) error {
	if err := m.index.AcceptClock(m.now); err != nil {
		return err
	}
	m.purger.rest, m.purger.clockSuspectUntil = 0, 0
	return nil
}

// due returns when there is something to do next; it may be infinite.
func (p *purger) due(x *purge.Index, now eventlog.Timestamp, l purge.Limits) eventlog.Timestamp {
	at := eventlog.Timestamp(math.Inf(1))
	if len(p.stuck) > 0 {
		at = p.stuckAt
	}
	switch _, busy := x.Claimed(); {
	case busy || !limited(l):
		return at
	case p.clockSuspectUntil > now:
		return min(at, p.clockSuspectUntil)
	}
	look := x.Due(l)
	if !math.IsInf(float64(look), -1) { // what is too many does not wait
		look = max(look, p.rest)
	}
	return min(at, look)
}

// limited reports whether limits purge anything.
func limited(l purge.Limits) bool { return l.MaxAge.Set || l.MaxCount.Set }

// purgeByLimits begins with a batch if one is due.
func (m *machine) purgeByLimits() {
	p := &m.purger
	if len(p.stuck) > 0 && m.now >= p.stuckAt {
		m.out.Unlink = append(m.out.Unlink, p.stuck...)
		p.stuck = nil
	}
	if p.clockSuspectUntil > m.now {
		return
	}
	p.clockSuspectUntil = 0
	err := m.index.Observe(m.now)
	if !limited(m.cfg.Limits) {
		return
	}
	if err != nil {
		p.clockSuspectUntil = m.now + jumpedFor
		m.fault("", 0, err)
		return
	}
	if p.due(m.index, m.now, m.cfg.Limits) > m.now {
		return
	}
	plan, err := m.index.Claim(m.now, m.cfg.Limits)
	if err != nil {
		m.fault("", 0, err)
	}
	if p.rest = 0; !plan.More {
		p.rest = m.now + purgeEvery
	}
	m.remove(plan)
}

// remove has the store remove the jobs of a plan that was claimed.
func (m *machine) remove(plan purge.Plan) {
	if len(plan.Jobs) == 0 {
		return
	}
	m.raiseFloor(plan.Watermark)
	for _, t := range plan.Tombstones {
		m.record(Record{Job: t.ID, Kind: RecordTombstone, Data: textOf(t)})
	}
	m.out.Unlink = append(m.out.Unlink, plan.IDs()...)
}

// raiseFloor records that ids up to id do not come back. It comes BEFORE a job is unlinked.
func (m *machine) raiseFloor(id jobid.ID) {
	if id > m.idFloor {
		m.idFloor = id
		m.record(Record{Kind: RecordWatermark, Data: purge.AppendWatermark(nil, id)})
	}
}

// An outcome ends the batch when it is whole.
func (in Unlinked) dispatch(m *machine) error {
	invalid := slices.AppendSeq(slices.Clone(in.IDs), maps.Keys(in.Failed))
	invalid = slices.DeleteFunc(invalid, func(id jobid.ID) bool { return m.invalid[id] == nil })
	slices.Sort(invalid)
	for _, id := range slices.Compact(invalid) {
		m.unlinkedInvalid(id, in.Failed[id])
	}
	plan, failed, done := m.index.Unlinked(in.IDs, in.Failed)
	if !done {
		return nil
	}
	for _, id := range plan.Expired {
		m.record(Record{Job: id, Kind: RecordTombstone})
	}
	for _, c := range plan.Jobs {
		if err := failed[c.ID]; err != nil {
			m.fault("", c.ID, err)
			continue
		}
		m.record(Record{Job: c.ID, Kind: RecordUnlinked})
		for i := range m.cfg.Hooks {
			if h := &m.cfg.Hooks[i]; h.Removed != nil {
				m.callEvent(h, &Event{Job: View{rec: c.Record}, m: m, hook: h}, h.Removed)
			}
		}
	}
	p, n := &m.purger, len(plan.Jobs)-len(failed)
	switch {
	case p.byID != nil:
		var errs []error
		for _, id := range slices.Sorted(maps.Keys(failed)) {
			errs = append(errs, failed[id])
		}
		m.answer(Answer{Tag: p.byID.Tag, Count: n, Err: errors.Join(errs...)})
		p.byID = nil
	case p.own:
		p.gone += n
		p.own = false
	}
	m.nextPurge()
	return nil
}

func (m *machine) unlinkedInvalid(id jobid.ID, err error) {
	p := &m.purger
	if err == nil {
		delete(m.invalid, id)
		p.stuck = slices.DeleteFunc(p.stuck, func(s jobid.ID) bool { return s == id })
		m.record(Record{Job: id, Kind: RecordUnlinked})
		return
	}
	m.fault("", id, err)
	if !slices.Contains(p.stuck, id) {
		p.stuck, p.stuckAt = append(p.stuck, id), m.now+retryEvery
	}
}

// nextPurge goes on with the first request, unless the store is at work.
func (m *machine) nextPurge() {
	p := &m.purger
	for p.asked.len() > 0 {
		if _, busy := m.index.Claimed(); busy {
			return
		}
		in := p.asked.first()
		plan, err := m.index.Claim(m.now, in.Limits)
		if p.own = len(plan.Jobs) > 0; p.own {
			m.remove(plan)
			return
		}
		m.answer(Answer{Tag: in.Tag, Count: p.gone, Err: err})
		p.asked.pop()
		p.gone = 0
	}
}

// passTime passes the time to the index. It is for a Manager without limits, which nothing
// wakes to do so: after a long rest no clock has jumped.
func (m *machine) passTime() error {
	if m.index.Observe(m.now) == nil {
		return nil
	}
	return m.index.AcceptClock(m.now)
}

func (in Purge) dispatch(m *machine) error {
	if err := owner(in.By); err != nil {
		return err
	}
	if !in.Force || in.Limits.Batch == purge.NoBatch { // else the store would be busy for long
		in.Limits.Batch = 0
	}
	if err := in.Limits.Check(); err != nil {
		return err
	}
	if in.Force && m.purger.asked.len() >= maxPurges {
		return fmt.Errorf("%w: %d purges are asked for already", ErrLimit, maxPurges)
	}
	if !limited(m.cfg.Limits) {
		if err := m.passTime(); err != nil {
			return err
		}
	}
	limits := in.Limits
	if !in.Force {
		limits.Batch = purge.NoBatch
	}
	plan, err := m.index.Plan(m.now, limits)
	if err != nil {
		return err
	}
	if !in.Force {
		m.answer(Answer{Tag: in.Tag, Count: len(plan.Jobs)})
		return nil
	}
	m.purger.asked.push(in)
	m.nextPurge()
	return nil
}

func (in PurgeIDs) dispatch(m *machine) error {
	if err := owner(in.By); err != nil {
		return err
	}
	plan, err := m.index.PlanIDs(in.IDs...)
	if err != nil {
		return err
	}
	if !in.Force || len(plan.Jobs) == 0 {
		m.answer(Answer{Tag: in.Tag, Count: len(plan.Jobs)})
		return nil
	}
	if _, busy := m.index.Claimed(); busy {
		return fmt.Errorf("%w: other jobs are being purged, ask again later", ErrLimit)
	}
	if plan, err = m.index.ClaimIDs(m.now, in.IDs...); err != nil {
		return err
	}
	m.purger.byID = &in
	m.remove(plan)
	return nil
}
