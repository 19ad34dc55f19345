package perilog

import (
	"cmp"
	"slices"
	"time"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/guard"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/joblife/joblife/rset"
)

// housekeeping is one more action, with a log of its own, since clean closes that of the job:
//
//	housekeeping-start    with release-after and on-failure, right after alloc
//	housekeeping-launch   ranks that nothing else holds, on which the work began
//	housekeeping-fail     ranks on which it failed
//	drained               ranks whose drain is confirmed
//	housekeeping-release  ranks that may go back
//	release               a fragment went back; final: the last one
//
// A rank comes to housekeeping when it leaves the job's holds, by the job's log.
type housekeeping struct {
	action
	releaseAfter jobstate.Optional[fsd.Duration]
	onFailure    jobstate.OnFailure

	draining idset.Set          // whose drain is asked for
	drained  idset.Set          // whose drain is confirmed
	ready    idset.Set          // what may go back, and has not
	freed    idset.Set          // what went back
	first    eventlog.Timestamp // when the work ended on the first rank; 0: on none
}

// housekeepingAction returns the action of housekeeping before its start.
func (j *Job) housekeepingAction() action {
	a := action{ActionKey: Housekeeping()}
	if c := j.cfg.Housekeeping; c != nil {
		a.config = c.action()
	}
	return a
}

// startHousekeeping comes before anything can leave the job.
func (j *Job) startHousekeeping() {
	c := j.cfg.Housekeeping
	if c == nil || j.hk != nil || j.bypass() {
		return
	}
	a := j.housekeepingAction()
	s := &jobstate.ActionStartContext{
		ActionKey: a.ActionKey, Ranks: jobstate.Ranks{All: true},
		OnFailure: cmp.Or(c.OnFailure, jobstate.OnFailureDrain), ActionMode: a.mode(),
	}
	if c.ReleaseAfter != nil {
		s.ReleaseAfter = jobstate.Some(*c.ReleaseAfter)
	}
	j.postTo(LogHousekeeping, s)
}

// foldHousekeeping folds an event of the log of housekeeping, live and in a replay alike.
func (j *Job) foldHousekeeping(ev *jobstate.Event) {
	h, t := j.hk, ev.Entry().Timestamp
	if c, ok := ev.Context().(*jobstate.ActionStartContext); ok && h == nil && c.Kind == jobstate.ActionHousekeeping {
		h = &housekeeping{action: j.housekeepingAction(), releaseAfter: c.ReleaseAfter, onFailure: cmp.Or(c.OnFailure, jobstate.OnFailureDrain)}
		h.stage, h.began = stageActive, t
		h.run = j.newRun(&h.action, &c.ActionMode, j.holds.all.Clone())
		j.unshareNodes()
		j.hk = h
		return
	}
	if h == nil || j.final {
		return
	}
	switch c := ev.Context().(type) {
	case *jobstate.ActionLaunchContext:
		h.ready.SubtractWith(c.Ranks)
		j.holds.fresh.SubtractWith(c.Ranks)
		h.run.Launch(t, c.Attempt, idset.Difference(c.Ranks, &h.freed))
	case *jobstate.ActionFailContext:
		j.foldFail(&h.action, t, c)
		if c.Drain {
			h.draining.UnionWith(idset.Difference(c.Ranks, &h.freed))
			h.draining.SubtractWith(&h.drained)
		}
		h.first = cmp.Or(h.first, t)
	case *jobstate.DrainedContext:
		h.drained.UnionWith(idset.Intersect(&h.draining, c.Ranks))
		h.draining.SubtractWith(c.Ranks)
		j.holds.asked.SubtractWith(c.Ranks)
	case *jobstate.ActionReleaseContext:
		h.run.Released(t, c.Ranks, c.Status)
		j.holds.fresh.SubtractWith(c.Ranks) // an operator may have ended what was never launched
		h.draining.SubtractWith(c.Ranks)
		h.ready.UnionWith(idset.Difference(c.Ranks, &h.freed))
		h.first = cmp.Or(h.first, t)
	case *jobstate.ReleaseContext:
		h.freed.UnionWith(c.Ranks.Set)
		h.ready.SubtractWith(c.Ranks.Set)
		j.final = c.Final
	}
}

// progressHousekeeping launches the work on ranks that have left, and posts what follows from it.
func (j *Job) progressHousekeeping() {
	h := j.hk
	if j.final || j.holds.revoked {
		return
	}
	if fresh := &j.holds.fresh; !fresh.IsEmpty() && j.mayLaunch(h.Kind) && h.config != nil {
		if ranks := idset.Difference(fresh, j.offline); !ranks.IsEmpty() {
			j.relaunch(&h.action, ranks)
		}
	}
	j.takeRun(&h.action, func(c *jobstate.ActionFailContext) bool {
		return h.onFailure == jobstate.OnFailureDrain && c.Cause != causeForced.name()
	})
	j.readyEnds(h.run.TakeEnds())
}

// readyEnds posts that ranks may go back: those of the ends that need nothing else.
func (j *Job) readyEnds(ends []rankEnd) {
	if len(ends) == 0 {
		return
	}
	ready, status := new(idset.Set), int32(0)
	for _, e := range ends {
		if j.hk.mayGoBack(e) {
			ready.Insert(e.Rank)
			status = max(status, e.Status)
		}
	}
	if !ready.IsEmpty() {
		j.readyHousekeeping(ready, status)
	}
}

// mayGoBack reports whether an end lets its rank go back, which the log does not say yet.
func (h *housekeeping) mayGoBack(e rankEnd) bool {
	switch {
	case h.ready.Contains(e.Rank), h.freed.Contains(e.Rank):
		return false
	case e.Forced, h.onFailure == jobstate.OnFailureRelease:
		return true
	case e.Status == 0:
		return !h.draining.Contains(e.Rank)
	}
	return h.drained.Contains(e.Rank) // only OnFailureDrain asks for a drain
}

// readyHousekeeping posts that ranks may go back.
func (j *Job) readyHousekeeping(ranks *idset.Set, status int32) {
	j.postTo(LogHousekeeping, &jobstate.ActionReleaseContext{ActionKey: j.hk.ActionKey, Ranks: ranks, Status: status})
}

// releaseAt returns when ready ranks go back though others are not ready; false for never.
func (h *housekeeping) releaseAt() (eventlog.Timestamp, bool) {
	if !h.releaseAfter.Set || h.releaseAfter.Value == fsd.Forever || h.first == 0 || h.ready.IsEmpty() {
		return 0, false
	}
	at := h.first + eventlog.Timestamp(time.Duration(h.releaseAfter.Value).Seconds())
	return at, guard.IsTime(at)
}

// freeHousekeeping gives back what may go back, in one fragment.
func (j *Job) freeHousekeeping() {
	h := j.hk
	if j.final {
		return
	}
	back := idset.Union(&h.ready, &h.freed)
	last := j.holds.over && back.Equal(&j.holds.all)
	if at, ok := h.releaseAt(); !last && (!ok || at > j.now) {
		return
	}
	ranks := h.ready.Clone()
	j.postTo(LogHousekeeping, &jobstate.ReleaseContext{Ranks: jobstate.Ranks{Set: ranks}, Final: last})
	if last {
		j.giveRest()
	} else {
		j.give(j.ownLedger().FreePart(ranks))
	}
}

// confirmDrains posts drains that are confirmed, unless the job may be starting there.
func (j *Job) confirmDrains() {
	if j.holds.confirmed.IsEmpty() || j.mayBeStarting() || j.holds.job.Closed() {
		return
	}
	j.post(&jobstate.DrainedContext{Ranks: &j.holds.confirmed})
	j.holds.confirmed.SubtractWith(&j.holds.confirmed)
}

// askDrains asks for the drains in the log that were neither asked for nor confirmed.
func (j *Job) askDrains() {
	for _, d := range j.holds.due {
		d.Ranks.SubtractWith(&j.holds.asked)
		waits := idset.Intersect(d.Ranks, &j.holds.draining)
		if j.hk != nil {
			waits.UnionWith(idset.Intersect(d.Ranks, &j.hk.draining))
		}
		if !waits.IsEmpty() {
			j.holds.asked.UnionWith(waits)
			j.open()
			j.effects.Drain = append(j.effects.Drain, Drain{Ranks: waits, Reason: d.Reason})
		}
	}
	j.holds.due = j.holds.due[:0]
}

// free gives back what has left, unless housekeeping comes first.
func (j *Job) free() {
	h := &j.holds
	switch {
	case j.r == nil:
		return
	case j.hk != nil && !h.revoked:
		j.freeHousekeeping()
		return
	case h.revoked, j.final: // the scheduler took it back, or has it
	case h.over:
		j.giveRest()
	default:
		names := slices.DeleteFunc(h.names(true), func(name string) bool { return !j.ownLedger().HoldsNamed(name) })
		if !h.fresh.IsEmpty() || len(names) > 0 {
			j.give(j.ownLedger().FreePart(&h.fresh, names...))
		}
	}
	h.fresh.SubtractWith(&h.fresh)
}

// ownLedger returns the ledger, and makes it before the first part goes back.
func (j *Job) ownLedger() *rset.Ledger {
	if j.ledger == nil {
		j.ledger = rset.NewLedger(j.r, j.holds.allNames()...)
	}
	return j.ledger
}

// giveRest hands out the final fragment. Usually it is all of R, and needs no ledger.
func (j *Job) giveRest() {
	h := &j.holds
	j.final = true
	if j.ledger == nil && len(h.named) == 0 && j.r.Scheduling() == nil {
		j.give(rset.Fragment{R: j.r, Final: true}, nil)
		return
	}
	j.give(j.ownLedger().FreeRest())
}

// give hands out a fragment, unless the resources did not come from the scheduler.
func (j *Job) give(f rset.Fragment, err error) {
	if err != nil {
		panic("perilog: a fragment of what is not held: " + err.Error())
	}
	if !j.bypass() {
		j.open()
		j.effects.Free = f
	}
}

// bypass reports whether the job's resources did not come from the scheduler.
func (j *Job) bypass() bool { return j.holds.job.HasFlag("alloc-bypass") }
