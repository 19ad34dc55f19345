package perilog

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/guard"
	"github.com/joblife/joblife/jobstate"
)

// maxFrame is how many bytes a line of a log has at most beside name and context.
const maxFrame = 256

// Apply accepts an event from the embedder, such as alloc, start, finish, release or an
// exception. The Job posts drained, free, clean and the events of its actions itself. Before an
// event that ends a hold on ranks, it logs the starts of the epilogs that must run there.
//
// An accepted event is in Post of the next Take, before what follows from it. An event that
// package jobstate ignores is in Post too, unless it repeats the entry before it exactly.
//
// Apply refuses what [jobstate.Job.Apply] and eventlog.AppendEntry refuse. It returns ErrOrder
// for a start before every prolog has succeeded or of a job that cannot start any more, and for a
// free or clean while something is held. It refuses an alloc before the job has an R, an event
// of an action that the Job runs, a launch, and a description of more than 4 KiB. Apply keeps no
// reference to e.
func (j *Job) Apply(now eventlog.Timestamp, e eventlog.Entry) (jobstate.Outcome, error) {
	if j.advance(now); j.stopped() {
		return 0, ErrStopped
	}
	if err := j.holds.scratch.event.Decode(e); err != nil {
		return 0, err
	}
	return j.ApplyEvent(now, &j.holds.scratch.event)
}

// ApplyEvent is Apply of an event that the caller has decoded. It keeps no reference to ev.
func (j *Job) ApplyEvent(now eventlog.Timestamp, ev *jobstate.Event) (jobstate.Outcome, error) {
	if j.advance(now); j.stopped() {
		return 0, ErrStopped
	}
	e := ev.Entry()
	if 6*len(e.Name)+len(e.Context) > eventlog.DefaultMaxLine-maxFrame { // a byte of a name may need six
		if _, err := eventlog.AppendEntry(nil, e); err != nil {
			return 0, err
		}
	}
	if err := j.admit(ev); err != nil {
		return 0, fmt.Errorf("%w (job %v)", err, j.holds.job.ID())
	}
	j.logEpilogsFirst(ev.Context())
	if at := j.stamp(e.Timestamp); at != e.Timestamp {
		if e.Timestamp = at; ev.Decode(e) != nil {
			panic("perilog: an event that cannot be read twice")
		}
	}
	outcome, err := j.fold(ev)
	if err != nil || outcome == jobstate.IgnoredDuplicate {
		return outcome, err
	}
	j.open()
	n, context := len(j.text), e.Context
	j.text = append(j.text, context...)
	e.Context = nil
	if e = e.Clone(); context != nil { // of the line, if that is unusual
		e.Context = j.text[n:len(j.text):len(j.text)]
	}
	j.record(LogJob, e, ev.Context())
	j.begin()
	return outcome, nil
}

// admit returns an error for an event that the embedder must not pass now.
func (j *Job) admit(ev *jobstate.Event) error {
	s := j.holds.job
	switch name := ev.Entry().Name; name {
	case jobstate.EventAlloc:
		if j.r == nil {
			return fmt.Errorf("%w: alloc needs SetR first", errR)
		}
		if s.WasAllocated() {
			return fmt.Errorf("%w: alloc a second time", jobstate.ErrTransition)
		}
	case jobstate.EventStart:
		switch j.start() {
		case startNever:
			return fmt.Errorf("%w: the job cannot start any more", ErrOrder)
		case startOpen:
			return j.prologsDone()
		} // else the executor was asked, whatever failed since
	case jobstate.EventFree:
		if !s.MayFree() || !j.maySweep() {
			return fmt.Errorf("%w: free in %s while the job waits for %s", ErrOrder, s.State(), s.Waiting())
		}
	case jobstate.EventClean:
		if s.State() == jobstate.StateCleanup && !(s.MayClean() && j.maySweep()) {
			return fmt.Errorf("%w: clean while the job waits for %s", ErrOrder, s.Waiting())
		}
	case jobstate.EventDrained:
		return fmt.Errorf("%w: use Drained", errPosted)
	}
	key, ok := ev.Action()
	does := traitsOf(ev.Context())
	switch a := j.action(key); {
	case !ok:
	case does.has(startsAction) && len(key.Description) > maxForeign:
		return fmt.Errorf("%w: %s has a description of %d bytes, at most %d are taken", eventlog.ErrLimit, key.Kind, len(key.Description), maxForeign)
	case a != nil && (a.stage != stageActive || !a.foreign) && (a.stage != stageFinished || does.has(startsAction)), does.has(saysMode):
		return fmt.Errorf("%w: %v", errPosted, key)
	case key.Kind == jobstate.ActionProlog && does.has(startsAction) && j.start() == startPending:
		return fmt.Errorf("%w: %v starts while the executor is starting the job", ErrOrder, key)
	case j.mayBeStarting() && !does.has(startsAction):
		return fmt.Errorf("%w: %v ends while the executor may be starting the job: its response must come first", ErrOrder, key)
	}
	return nil
}

// Report passes what happened to an action on a rank. Reports may come in any order and more
// than once; one that does not apply changes nothing, and the Ack says why. Send the Ack after
// the Post of the next Take is durable. A report about a lost action reattaches it on that rank.
// Report allocates only for a failure.
func (j *Job) Report(now eventlog.Timestamp, rep Report) Ack {
	if j.advance(now); j.stopped() {
		return AckRepeated
	}
	a := j.find(rep.Action)
	switch {
	case a == nil || a.stage == stageIdle:
		return AckUnknown
	case a.stage == stageFinished || j.action(rep.Action) == nil:
		return AckEnded
	}
	answer := a.run.Report(j.now, rep)
	if answer == AckEnded && !j.logged(a, rep.Rank) {
		return AckRepeated
	}
	return answer
}

// logged reports whether the log says that an active action has ended on a rank.
func (j *Job) logged(a *action, rank uint32) bool {
	if a.Kind == jobstate.ActionHousekeeping {
		return j.hk.ready.Contains(rank) || j.hk.freed.Contains(rank)
	}
	h := j.holds.hold(a.ActionKey)
	return h == nil || a.Kind == jobstate.ActionEpilog && !a.single() && !h.ranks.Contains(rank)
}

// Drained confirms that ranks are drained. It ignores those that wait for no drain; nil is none.
func (j *Job) Drained(now eventlog.Timestamp, ranks *idset.Set) {
	if j.enter(now); j.stopped() {
		return
	}
	j.holds.confirmed.UnionWith(idset.Intersect(ranks, &j.holds.draining))
	j.confirmDrains()
	if j.hk == nil {
		return
	}
	if part := idset.Intersect(ranks, &j.hk.draining); !part.IsEmpty() {
		j.postTo(LogHousekeeping, &jobstate.DrainedContext{Ranks: part})
		j.readyEnds(j.hk.run.Ends(part))
	}
}

// enter sets the time, and decides what follows from reports that came before.
func (j *Job) enter(now eventlog.Timestamp) {
	if j.advance(now); !j.stopped() {
		j.react()
	}
}

// Offline replaces the set of offline ranks, which is that of JobConfig at first. The Job decides
// no launch there. An action that was launched there, even if the launch was not taken yet, goes
// on: that needs a Report. Offline copies ranks; nil is the empty set.
func (j *Job) Offline(now eventlog.Timestamp, ranks *idset.Set) {
	j.advance(now)
	j.setOffline(ranks)
}

// Tick tells the Job the time. Timeouts expire, and the timer of housekeeping frees ranks.
func (j *Job) Tick(now eventlog.Timestamp) {
	if j.advance(now); j.stopped() {
		return
	}
	j.timed(func(r *run) { r.Tick(j.now) })
}

// maxOperator is how many bytes the name of an operator may have.
const maxOperator = 64

// ForceFinish ends an action on ranks with a wait status, and logs the name of the operator. There
// the action may be running, lost, or waiting for the node; housekeeping may also have failed. nil
// means all such ranks: to end only what [Job.Unresolved] lists, pass its Ranks. If a single
// command is lost or removed, the rank of its leader means all ranks. ForceFinish drains nothing. What
// may run there gets SIGTERM, or does not start when its node comes back.
//
// status is at least 0; for a prolog at least 1, since its ranks count as reported failures.
// operator is one line of 1 to 64 bytes. A foreign action ends only as a whole. The error wraps
// ErrAction.
func (j *Job) ForceFinish(now eventlog.Timestamp, key jobstate.ActionKey, ranks *idset.Set, status int32, operator string) error {
	j.enter(now)
	a := j.action(key)
	switch {
	case operator == "" || len(operator) > maxOperator || !utf8.ValidString(operator) || strings.ContainsAny(operator, "\n\x00"):
		return j.actionError(key, "needs the name of an operator: one line of 1 to 64 bytes")
	case status < 0 || key.Kind == jobstate.ActionProlog && status == 0:
		return j.actionError(key, "needs a status of at least 0, and for a prolog of at least 1")
	case j.stopped():
		return ErrStopped
	case a == nil || a.stage != stageActive:
		return j.finishForeign(key, ranks, status, operator)
	}
	status = normal(status) // as a replay has it
	able := a.run.Open()
	if a.Kind == jobstate.ActionHousekeeping {
		able = idset.Difference(&j.holds.left, &j.hk.ready)
		able.SubtractWith(&j.hk.freed)
	}
	if ranks == nil || a.single() && a.unresolved() && ranks.Equal(idset.Of(a.run.spec.Leader.Value)) { // as Unresolved lists it
		ranks = able
	} else if !able.ContainsAll(ranks) || ranks.IsEmpty() {
		return j.actionError(key, "has ended, or does not run, on ranks "+idset.Difference(ranks, able).String())
	}
	if a.single() && ranks.Contains(a.run.spec.Leader.Value) && !ranks.Equal(able) {
		return j.actionError(key, "runs on rank "+strconv.Itoa(int(a.run.spec.Leader.Value))+" for other ranks too: end it on all ranks, or not on this one")
	}
	ended := idset.Difference(ranks, a.run.Open())
	a.run.Force(j.now, ranks, status, operator)
	if !ended.IsEmpty() { // housekeeping that failed there
		j.postAction(a, &jobstate.ActionFailContext{ActionKey: key, Ranks: ended, Cause: causeForced.name(), Status: status, Note: "by " + operator})
		j.readyHousekeeping(ended, status)
	}
	return nil
}

// unresolved reports whether Unresolved lists a prolog or an epilog.
func (a *action) unresolved() bool {
	return a.run.Has(slotLost) || a.config == nil && a.run.Has(slotIdle)
}

// finishForeign posts the finish of a foreign action.
func (j *Job) finishForeign(key jobstate.ActionKey, ranks *idset.Set, status int32, operator string) error {
	switch {
	case j.holds.job.Closed():
		return j.actionError(key, "cannot be finished: the job's log is closed")
	case j.holds.hold(key) == nil:
		return j.actionError(key, "is not active")
	case ranks != nil:
		return j.actionError(key, "is foreign, and can end only on all ranks")
	case j.holds.job.State() == jobstate.StateNew:
		return j.actionError(key, "cannot be finished before the job is validated")
	case j.mayBeStarting():
		return j.actionError(key, "cannot be finished while the executor may be starting the job: its response must come first")
	}
	severity := uint8(severityNonFatal)
	if key.Kind == jobstate.ActionProlog && !j.holds.ending() {
		severity = 0
		j.startAll(jobstate.ActionEpilog)
	}
	j.raise(key.Kind, severity, clip(key.String(), maxRunNote)+" was finished by force by "+operator, nil)
	j.post(&jobstate.ActionFinishContext{ActionKey: key, Status: status})
	return nil
}

func (j *Job) actionError(key jobstate.ActionKey, reason string) error {
	return fmt.Errorf("%w: job %v: %v %s", ErrAction, j.holds.job.ID(), key, reason)
}

// A Reason says why an action is unresolved. The zero Reason is invalid.
type Reason uint8

// The reasons.
const (
	ReasonLost    Reason = 1 + iota // it was launched before a restart, and no report came since
	ReasonForeign                   // another writer started it and must finish it
	ReasonHeld                      // housekeeping failed on the ranks, and OnFailure is "hold"
	ReasonStart                     // the executor may be starting the job: apply its response, or call NotStarted
	ReasonRemoved                   // the action must run on the ranks, but is no longer in the configuration
)

// String returns a word such as "lost"; another value prints as Reason(n).
func (r Reason) String() string {
	return guard.Name("Reason", r, "lost", "foreign", "held", "start", "removed")
}

// An Unresolved is an action that does not end by itself.
type Unresolved struct {
	Action  jobstate.ActionKey // zero for ReasonStart
	Reason  Reason
	Ranks   *idset.Set         // the ranks where it is unresolved; a copy, not nil
	Since   eventlog.Timestamp // when the action started
	Attempt uint32             // of ReasonLost: what a Report of these ranks names; else 0
}

// Unresolved returns the actions that no known process and no timer ends, in the order of the log;
// an action that was lost in several attempts comes once for each. Actions that run without a
// timeout, drains that are not confirmed, and epilogs that wait for an offline node are not in it.
func (j *Job) Unresolved() []Unresolved {
	var list []Unresolved
	lost := func(a *action, since eventlog.Timestamp) {
		ranks := a.run.Lost()
		for _, l := range a.run.launches {
			if l.lost > 0 {
				list = append(list, Unresolved{Action: a.ActionKey, Reason: ReasonLost, Ranks: ranks[l.attempt], Since: since, Attempt: l.attempt})
			}
		}
	}
	seen := make(map[jobstate.ActionKey]bool)
	for _, h := range j.holds.actions {
		if j.holds.job.Closed() {
			break // an instance lost an epilog and closed the log, so nothing can end it
		}
		if a := j.active(h.ActionKey); a != nil && !seen[h.ActionKey] {
			if lost(a, h.since); a.config == nil && a.run.Has(slotIdle) {
				list = append(list, Unresolved{Action: h.ActionKey, Reason: ReasonRemoved, Ranks: a.run.At(slotIdle), Since: h.since})
			}
		} else {
			list = append(list, Unresolved{Action: h.ActionKey, Reason: ReasonForeign, Ranks: h.ranks.Clone(), Since: h.since})
		}
		seen[h.ActionKey] = true
	}
	if j.start() == startPending && j.executor == executorUnknown {
		list = append(list, Unresolved{Reason: ReasonStart, Ranks: j.holds.Held(), Since: j.holds.allocTime})
	}
	if h := j.hk; h != nil {
		add := func(reason Reason, ranks *idset.Set) {
			if !ranks.IsEmpty() {
				list = append(list, Unresolved{Action: h.ActionKey, Reason: reason, Ranks: ranks, Since: h.began})
			}
		}
		lost(&h.action, h.began)
		add(ReasonHeld, j.failedHousekeeping())
		if h.config == nil {
			add(ReasonRemoved, j.holds.fresh.Clone())
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

// Reattach marks a lost action as running on ranks where the caller knows that it runs; nil means
// all ranks where it was lost. Its timeout counts from its launch. The error wraps ErrAction.
func (j *Job) Reattach(now eventlog.Timestamp, key jobstate.ActionKey, ranks *idset.Set) error {
	j.enter(now)
	a, ranks, err := j.lost(key, ranks)
	if err != nil {
		return err
	}
	a.run.Reattach(j.now, ranks)
	return nil
}

// Rerun launches a lost action again on ranks; nil means all ranks where it was lost. Housekeeping
// can also run again where it failed and has ended, while the ranks are held or being drained. A
// job whose prolog was lost starts only after a Rerun or a report that it succeeded. On dropped
// ranks, Rerun ends the action: on all, if a single command ran there. It refuses the prolog of a job
// that is ending, and an action that is not configured any more. The error wraps ErrAction, or is
// ErrStopped in a shutdown.
func (j *Job) Rerun(now eventlog.Timestamp, key jobstate.ActionKey, ranks *idset.Set) error {
	j.enter(now)
	a, ranks, err := j.lostOrFailed(key, ranks)
	switch {
	case err != nil:
		return err
	case j.stopping:
		return ErrStopped
	case !j.mayLaunch(key.Kind):
		return j.actionError(key, "cannot be run again while the job is in "+j.holds.job.State().String()+" and waits for "+j.holds.job.Waiting())
	case a.config == nil:
		return j.actionError(key, "is not in the configuration")
	}
	if off := idset.Intersect(ranks, &j.holds.dropped); !off.IsEmpty() && key.Kind == jobstate.ActionProlog {
		ranks = idset.Difference(ranks, off)
		if a.single() {
			off = a.run.Open()
		}
		a.run.Force(j.now, off, 1<<8, "the job, which dropped the node")
		if ranks.IsEmpty() {
			return nil
		}
	}
	j.relaunch(a, ranks.Clone())
	return nil
}

// lostOrFailed is lost, for Rerun.
func (j *Job) lostOrFailed(key jobstate.ActionKey, ranks *idset.Set) (*action, *idset.Set, error) {
	if j.hk != nil && key == j.hk.ActionKey && ranks != nil && j.hk.stage == stageActive {
		able := idset.Union(j.hk.run.At(slotLost), j.failedHousekeeping())
		able.UnionWith(idset.Intersect(&j.hk.draining, j.hk.run.Failed())) // a line that names a rank does not end it there
		if able.ContainsAll(ranks) && !ranks.IsEmpty() {
			return &j.hk.action, ranks, nil
		}
	}
	return j.lost(key, ranks)
}

// lost returns the action of a key and the ranks, on all of which it must be lost.
func (j *Job) lost(key jobstate.ActionKey, ranks *idset.Set) (*action, *idset.Set, error) {
	a := j.action(key)
	switch {
	case j.stopped():
		return nil, nil, ErrStopped
	case a == nil:
		return nil, nil, j.actionError(key, "is foreign: its writer must finish it")
	case a.stage != stageActive || !a.run.Has(slotLost):
		return nil, nil, j.actionError(key, "is not lost")
	}
	lost := a.run.At(slotLost)
	if ranks == nil {
		return a, lost, nil
	}
	if ranks.IsEmpty() || !lost.ContainsAll(ranks) {
		return nil, nil, j.actionError(key, "is not lost on ranks "+idset.Difference(ranks, lost).String())
	}
	return a, ranks, nil
}
