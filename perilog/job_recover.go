package perilog

import (
	"fmt"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/guard"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/rset"
)

// RecoverJob folds the logs of a job after a restart. hkLog is the log of its
// housekeeping, and may be empty.
//
// An action that was launched and has not ended is lost: its processes may still
// run. The action keeps its holds until its process reports again, or
// [Job.Reattach], [Job.Rerun] or [Job.ForceFinish] resolves it. [Job.Unresolved]
// lists such actions. The next Take asks again for each drain that is not
// confirmed. It signals again each action that was being stopped; the kill
// timeout starts anew. It starts the configured actions whose phase has not begun: see
// [Job.SetConfig]. An action in the log keeps the timeouts and ranks that its start
// recorded, whatever the configuration says now.
//
// RecoverJob accepts events that Apply would have refused as too early: what was
// freed in the log is freed. It returns the errors of NewJob. Any other error names
// the line and wraps an error of package eventlog or jobstate. For a torn last line
// the error wraps [eventlog.ErrTorn], and the Job has the entries before that line;
// the caller may only read it.
func RecoverJob(now eventlog.Timestamp, c *Config, s Spec, log, hkLog []byte) (*Job, error) {
	j, err := NewJob(c, s)
	if err != nil {
		return nil, err
	}
	j.advance(now)
	err = j.replay(log, func(ev *jobstate.Event) error {
		_, err := j.fold(ev)
		if j.holds.job.WasAllocated() && j.r == nil {
			return fmt.Errorf("%w: alloc, and the spec has no R", ErrR)
		}
		return err
	})
	if err != nil {
		return j, err
	}
	err = j.replay(hkLog, func(ev *jobstate.Event) error {
		j.foldHousekeeping(ev)
		return nil
	})
	if err != nil {
		return j, fmt.Errorf("perilog: housekeeping: %w", err)
	}
	return j, j.takeUp()
}

// replay folds each event of a log.
func (j *Job) replay(log []byte, fold func(*jobstate.Event) error) error {
	return j.holds.job.ReplayWith(&j.holds.scratch.event, log, func(ev *jobstate.Event) error {
		err := fold(ev)
		if err == nil {
			j.advance(ev.Entry().Timestamp)
		}
		return err
	})
}

// takeUp continues the job after a restart, from what the logs say.
func (j *Job) takeUp() error {
	for _, a := range j.actions {
		if a.run != nil {
			a.run.Lose()
		}
	}
	h := &j.holds
	if j.loggedStart() == startPending {
		j.executor = executorUnknown
	}
	if j.hk != nil {
		j.hk.run.Lose()
		j.hk.waiting.UnionWith(idset.Intersect(j.hk.run.Idle(), &h.left))
		if !h.left.ContainsAll(&j.hk.freed) && !h.revoked {
			return fmt.Errorf("%w: housekeeping freed ranks %q, which the job's log still holds", ErrOrder, idset.Difference(&j.hk.freed, &h.left))
		}
		if busy := idset.Intersect(&j.hk.freed, j.hk.run.Open()); !busy.IsEmpty() {
			return fmt.Errorf("%w: housekeeping freed ranks %q before it ended there", ErrOrder, busy)
		}
		j.readyEnds(j.hk.run.Ends()) // a crash came before the log had them
	}
	if j.r != nil {
		done := h.Released()
		if j.hk != nil {
			done = rset.Released{Ranks: &j.hk.freed, Final: j.hk.final}
			if done.Final {
				done.Named = h.allNames()
			}
		}
		if j.final = done.Final; done.Final || len(done.Named) > 0 || !done.Ranks.IsEmpty() {
			ledger, err := rset.Rebuild(j.r, done, h.allNames()...)
			if err != nil {
				return fmt.Errorf("%w: %w", ErrR, err)
			}
			j.ledger = ledger
		}
	}
	h.fresh.SubtractWith(&h.fresh)
	j.begin()
	return nil
}

// A Reason says why an action is unresolved. The zero Reason is invalid.
type Reason uint8

// The reasons.
const (
	ReasonLost    Reason = 1 + iota // it was launched before a restart, and no report came since
	ReasonForeign                   // another writer started it and must finish it
	ReasonHeld                      // housekeeping failed on the ranks, and OnFailure is "hold"
	ReasonStart                     // the executor may be starting the job: apply its response, or call NotStarted
	ReasonRemoved                   // housekeeping must run on the ranks, but is no longer in the configuration
)

// String returns "lost", "foreign", "held", "start" or "removed"; another value prints as
// Reason(n).
func (r Reason) String() string {
	return guard.Name("Reason", r, "lost", "foreign", "held", "start", "removed")
}

// An Unresolved is an action that does not end by itself.
type Unresolved struct {
	Action  Key // zero for ReasonStart
	Reason  Reason
	Ranks   *idset.Set         // the ranks where it is unresolved; a copy, not nil
	Since   eventlog.Timestamp // when the action started
	Attempt uint32             // of ReasonLost: what a Report of these ranks names; else 0
}

// Unresolved returns the actions that hold ranks and will not end by themselves:
// no known process and no timer ends them. They are in the order of the log; an action
// that was lost in several attempts comes once for each.
// Actions that run without a timeout, drains that are not confirmed, and epilogs
// that wait for an offline node are not in it.
func (j *Job) Unresolved() []Unresolved {
	var list []Unresolved
	lost := func(a *action, since eventlog.Timestamp) {
		for attempt, ranks := range a.run.LostBy() {
			list = append(list, Unresolved{Action: a.Key, Reason: ReasonLost, Ranks: ranks, Since: since, Attempt: attempt})
		}
	}
	seen := make(map[Key]bool)
	for _, h := range j.holds.actions {
		if j.holds.job.Closed() {
			break // an instance lost an epilog and closed the log, so nothing can end it
		}
		a := j.action(h.Key)
		switch {
		case a == nil || a.stage != stageActive || seen[h.Key]:
			list = append(list, Unresolved{Action: h.Key, Reason: ReasonForeign, Ranks: h.ranks.Clone(), Since: h.since})
		default:
			lost(a, h.since)
		}
		seen[h.Key] = true
	}
	if j.start() == startPending && j.executor == executorUnknown {
		list = append(list, Unresolved{Reason: ReasonStart, Ranks: j.holds.Held(), Since: j.holds.allocTime})
	}
	if h := j.hk; h != nil {
		add := func(reason Reason, ranks *idset.Set) {
			if !ranks.IsEmpty() {
				list = append(list, Unresolved{Action: h.Key, Reason: reason, Ranks: ranks, Since: h.began})
			}
		}
		lost(&h.action, h.began)
		add(ReasonHeld, j.failedHousekeeping())
		if h.config == nil {
			add(ReasonRemoved, h.waiting.Clone())
		}
	}
	return list
}

// failedHousekeeping returns the ranks that are held because housekeeping failed there.
func (j *Job) failedHousekeeping() *idset.Set {
	if j.hk.onFailure != jobstate.OnFailureHold {
		return new(idset.Set)
	}
	ranks := j.hk.run.Failed()
	for _, s := range []*idset.Set{&j.hk.ready, &j.hk.freed, &j.hk.draining} {
		ranks.SubtractWith(s)
	}
	return ranks
}

// Reattach marks a lost action as running on ranks where the caller knows that it
// runs; nil means all ranks where it was lost. Its timeout counts from its launch.
// The error wraps ErrAction, and then nothing has changed.
func (j *Job) Reattach(now eventlog.Timestamp, key Key, ranks *idset.Set) error {
	j.enter(now)
	a, ranks, err := j.lost(key, ranks)
	if err != nil {
		return err
	}
	a.run.Reattach(j.now, ranks)
	return nil
}

// Rerun launches a lost action again on ranks; nil means all ranks where it was lost.
// Housekeeping can also run again on ranks where it failed, while they are held or
// being drained. A job whose prolog was lost starts only after a Rerun or a report
// that the prolog succeeded. On ranks that the job dropped, Rerun ends the action.
//
// The error wraps ErrAction, and then nothing has changed. Rerun refuses the prolog
// of a job that is ending, and an action that is no longer in the configuration.
func (j *Job) Rerun(now eventlog.Timestamp, key Key, ranks *idset.Set) error {
	j.enter(now)
	a, ranks, err := j.lostOrFailed(key, ranks)
	switch {
	case err != nil:
		return err
	case !j.mayLaunch(key.Kind):
		return actionError(key, "cannot be run again while the job is in "+j.holds.job.State().String()+" and waits for "+j.holds.job.Waiting().String())
	case a.config == nil:
		return actionError(key, "is not in the configuration")
	}
	if off := idset.Intersect(ranks, &j.holds.dropped); !off.IsEmpty() && key.Kind == jobstate.ActionProlog {
		a.run.Force(j.now, off, 1<<8, "the job, which dropped the node")
		if ranks = idset.Difference(ranks, off); ranks.IsEmpty() {
			return nil
		}
	}
	j.relaunch(a, ranks.Clone())
	return nil
}

// lostOrFailed is lost, for Rerun.
func (j *Job) lostOrFailed(key Key, ranks *idset.Set) (*action, *idset.Set, error) {
	if j.hk != nil && key == j.hk.Key && ranks != nil && j.hk.stage == stageActive {
		able := idset.Union(j.hk.run.Lost(), j.failedHousekeeping())
		able.UnionWith(&j.hk.draining)
		if able.ContainsAll(ranks) && !ranks.IsEmpty() {
			return &j.hk.action, ranks, nil
		}
	}
	return j.lost(key, ranks)
}

// lost returns the action of a key and the ranks, on all of which it must be lost; nil
// means all ranks where it is.
func (j *Job) lost(key Key, ranks *idset.Set) (*action, *idset.Set, error) {
	a := j.action(key)
	switch {
	case j.stopped():
		return nil, nil, ErrStopped
	case a == nil:
		return nil, nil, actionError(key, "is foreign: its writer must finish it")
	case a.stage != stageActive || !a.run.HasLost():
		return nil, nil, actionError(key, "is not lost")
	}
	lost := a.run.Lost()
	if ranks == nil {
		return a, lost, nil
	}
	if ranks.IsEmpty() || !lost.ContainsAll(ranks) {
		return nil, nil, actionError(key, "is not lost on ranks "+idset.Difference(ranks, lost).String())
	}
	return a, ranks, nil
}
