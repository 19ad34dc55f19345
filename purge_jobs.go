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

// A purger removes inactive jobs, one batch at a time: by the limits of the
// configuration, and as it is asked to.
type purger struct {
	plan  *purge.Plan        // claimed, and being removed from the store
	left  map[jobid.ID]bool  // its jobs of which the store has said nothing
	bad   map[jobid.ID]error // those that it could not remove
	own   bool               // the plan is for the first of asked
	asked fifo[Purge]        // requests, the first of which is being carried out
	gone  int                // how many jobs went for it
	byID  *PurgeIDs          // the request by id that is being carried out
	again bool               // the limits have more to purge
	at    eventlog.Timestamp // when a job is older than the limit; 0: never
	seen  eventlog.Timestamp // when the index was told the time
	blind eventlog.Timestamp // the clock has jumped: until when nothing is done

	stuck   []jobid.ID         // invalid jobs that the store could not remove
	stuckAt eventlog.Timestamp // when they are tried again
}

const (
	maxPurges = 1024 // requests that may wait for the store

	// In seconds.
	purgeEvery   = 1         // how long the limits are not looked at after they were
	observeEvery = 24 * 3600 // or else the index takes a long rest for a clock that jumped
	jumpedFor    = 3600      // until a clock that jumped is looked at again
	retryEvery   = 60        // until the store is asked again to remove an invalid job
)

func (m *Manager) purgeConfig() purge.Config {
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

func (in Purge) dispatch(m *Manager) error    { return m.purger.purge(m, in) }
func (in PurgeIDs) dispatch(m *Manager) error { return m.purger.purgeIDs(m, in) }
func (in Unlinked) dispatch(m *Manager) error { return m.purger.unlinked(m, in) }

func (AcceptClock) dispatch(m *Manager) error {
	m.purger.again, m.purger.blind, m.purger.seen = true, 0, m.now
	return m.index.AcceptClock(m.now)
}

// due returns when there is something to do next; it may be infinite.
func (p *purger) due(m *Manager) eventlog.Timestamp {
	at := eventlog.Timestamp(math.Inf(1))
	if len(p.stuck) > 0 {
		at = p.stuckAt
	}
	switch {
	case p.plan != nil || !m.limited():
		return at
	case p.blind > m.now:
		return min(at, p.blind)
	case p.again:
		return min(at, m.now)
	case p.at != 0:
		at = min(at, p.at)
	}
	return min(at, p.seen+observeEvery)
}

func (m *Manager) limited() bool { return m.cfg.Limits.MaxAge.Set || m.cfg.Limits.MaxCount.Set }

// added has the limits looked at after a job became inactive.
func (p *purger) added(m *Manager, rec purge.Record) {
	if l := m.cfg.Limits.MaxCount; l.Set && m.index.Len() > l.Value {
		p.again = true
	}
	if p.at == 0 {
		p.at = p.ages(m, rec)
	}
}

// ages returns when a job is older than the limit; 0 is never.
func (p *purger) ages(m *Manager, rec purge.Record) eventlog.Timestamp {
	if !m.cfg.Limits.MaxAge.Set {
		return 0
	}
	// Strictly older, so a millisecond later.
	return rec.Inactive + eventlog.Timestamp(m.cfg.Limits.MaxAge.Value.Seconds()) + 0.001
}

func (p *purger) tick(m *Manager) {
	if len(p.stuck) > 0 && m.now >= p.stuckAt {
		m.out.Unlink = append(m.out.Unlink, p.stuck...)
		p.stuck = nil
	}
	if p.blind > m.now {
		return
	}
	err := m.index.Observe(m.now)
	if p.seen, p.blind = m.now, 0; !m.limited() {
		p.again, p.at = false, 0
		return
	}
	if err != nil {
		p.blind = m.now + jumpedFor
		m.fault("", 0, err)
		return
	}
	if p.plan != nil || !p.again && (p.at == 0 || m.now < p.at) {
		return
	}
	p.again, p.at = false, 0
	plan, err := m.index.Plan(m.now, m.cfg.Limits)
	if err != nil {
		m.fault("", 0, err)
		return
	}
	p.again = plan.More
	if !plan.More {
		left := 0
		for rec := range m.index.All() {
			if left++; left > len(plan.Jobs) {
				p.at = max(p.ages(m, rec), m.now+purgeEvery) // what is older is pinned or stuck
				break
			}
		}
	}
	if len(plan.Jobs) == 0 {
		return
	}
	if err := p.carry(m, plan); err != nil {
		m.fault("", 0, err)
	}
}

// carry claims a plan and has the store remove its jobs.
func (p *purger) carry(m *Manager, plan purge.Plan) error {
	plan, err := m.index.Claim(plan)
	if err != nil {
		return err
	}
	if len(plan.Jobs) == 0 {
		return nil
	}
	m.raiseFloor(slices.Max(plan.IDs()))
	for _, t := range plan.Tombstones {
		m.record(Record{Job: t.ID, Kind: RecordTombstone, Data: textOf(t)})
	}
	m.out.Unlink = append(m.out.Unlink, plan.IDs()...)
	p.plan, p.own = &plan, false
	p.left, p.bad = make(map[jobid.ID]bool), make(map[jobid.ID]error)
	for _, c := range plan.Jobs {
		p.left[c.ID] = true
	}
	return nil
}

// raiseFloor records that ids up to id do not come back. It comes BEFORE a job is unlinked.
// It is no greater than that needs, unlike [purge.Plan.Watermark]: ids of other generators
// may be lower than those that are known, and still on their way here.
func (m *Manager) raiseFloor(id jobid.ID) {
	if id > m.floor {
		m.floor = id
		m.record(Record{Kind: RecordWatermark, Data: purge.AppendWatermark(nil, id)})
	}
}

// unlinked commits what the store has removed.
func (p *purger) unlinked(m *Manager, in Unlinked) error {
	told := slices.AppendSeq(slices.Clone(in.IDs), maps.Keys(in.Failed))
	slices.Sort(told)
	told = slices.Compact(told)
	for _, id := range told {
		if m.invalid[id] != nil {
			p.unlinkedInvalid(m, id, in.Failed[id])
		}
		if p.left[id] {
			delete(p.left, id)
			if err := in.Failed[id]; err != nil {
				p.bad[id] = err
			}
		}
	}
	if p.plan == nil || len(p.left) > 0 {
		return nil
	}
	plan := *p.plan
	failed := slices.Sorted(maps.Keys(p.bad))
	if err := m.index.Commit(plan, failed...); err != nil {
		panic("joblife: a plan that was claimed: " + err.Error())
	}
	p.plan = nil
	for _, id := range plan.Expired {
		m.record(Record{Job: id, Kind: RecordTombstone})
	}
	n := 0
	for _, c := range plan.Jobs {
		if err := p.bad[c.ID]; err != nil {
			m.fault("", c.ID, err)
			continue
		}
		n++
		m.record(Record{Job: c.ID, Kind: RecordUnlinked})
		for i := range m.cfg.Hooks {
			if h := &m.cfg.Hooks[i]; h.Removed != nil {
				m.callEvent(h, &Event{Job: View{m: m, rec: c.Record}, m: m, hook: h}, h.Removed)
			}
		}
	}
	switch {
	case p.byID != nil:
		var errs []error
		for _, id := range failed {
			errs = append(errs, p.bad[id])
		}
		m.answer(Answer{Tag: p.byID.Tag, Count: n, Err: errors.Join(errs...)})
		p.byID = nil
	case p.own:
		p.gone += n
	}
	return p.next(m)
}

func (p *purger) unlinkedInvalid(m *Manager, id jobid.ID, err error) {
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

// next goes on with the first request.
func (p *purger) next(m *Manager) error {
	for p.plan == nil && p.asked.len() > 0 {
		in := p.asked.first()
		plan, err := m.index.Plan(m.now, in.Limits)
		if err == nil && len(plan.Jobs) > 0 {
			err = p.carry(m, plan)
			p.own = p.plan != nil
		}
		if p.plan == nil {
			m.answer(Answer{Tag: in.Tag, Count: p.gone, Err: err})
			p.asked.pop()
			p.gone = 0
		}
	}
	return nil
}

func (p *purger) purge(m *Manager, in Purge) error {
	if err := owner(in.By); err != nil {
		return err
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
	if in.Limits.Batch == purge.NoBatch { // which would keep the store busy for long
		in.Limits.Batch = 0
	}
	if p.asked.len() >= maxPurges {
		return fmt.Errorf("%w: %d purges are asked for already", ErrLimit, maxPurges)
	}
	p.asked.push(in)
	return p.next(m)
}

func (p *purger) purgeIDs(m *Manager, in PurgeIDs) error {
	if err := owner(in.By); err != nil {
		return err
	}
	plan, err := m.index.PlanIDs(m.now, in.IDs...)
	switch {
	case err != nil:
		return err
	case !in.Force || len(plan.Jobs) == 0:
		m.answer(Answer{Tag: in.Tag, Count: len(plan.Jobs)})
		return nil
	case p.plan != nil:
		return fmt.Errorf("%w: other jobs are being purged, ask again later", ErrLimit)
	}
	if err := p.carry(m, plan); err != nil {
		return err
	}
	p.byID = &in
	return nil
}
