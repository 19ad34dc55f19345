package perilog

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/perilog/internal/run"
)

// Report tells the Job what happened to an action on a rank. Reports may come in any
// order and more than once. A report that does not apply changes nothing, and the
// answer says why. Send the answer after the Post of the next Take is durable.
//
// A report about a lost action reattaches the action on that rank. So a process that
// survived a restart of the manager repeats its last report until the answer is
// [AnswerEnded], [AnswerStale] or [AnswerUnknown].
//
// A report allocates only if it is a failure.
func (j *Job) Report(now eventlog.Timestamp, rep Report) Answer {
	if j.advance(now); j.stopped() {
		return AnswerRepeated
	}
	a := j.find(rep.Action)
	switch {
	case a == nil || a.stage == stageIdle:
		return AnswerUnknown
	case a.stage == stageFinished || j.action(rep.Action) == nil:
		return AnswerEnded
	}
	answer := Answer(a.run.Report(j.now, run.Report{
		Kind: run.ReportKind(rep.Kind), Attempt: rep.Attempt, Rank: rep.Rank, Status: rep.Status, Detail: rep.Detail, Line: rep.Line,
	}))
	if answer == AnswerEnded && !j.logged(a, rep.Rank) {
		return AnswerRepeated
	}
	return answer
}

// logged reports whether the log says that an action that is active has ended on a
// rank.
func (j *Job) logged(a *action, rank uint32) bool {
	if a.Kind == jobstate.ActionHousekeeping {
		return j.hk.ready.Contains(rank) || j.hk.freed.Contains(rank)
	}
	h := j.holds.hold(a.Key)
	return h == nil || a.Kind == jobstate.ActionEpilog && !a.single() && !h.ranks.Contains(rank)
}

// Drained confirms that ranks are drained. It ignores ranks for which the Job did
// not ask for a drain or already has the confirmation. nil is the empty set.
func (j *Job) Drained(now eventlog.Timestamp, ranks *idset.Set) {
	if j.enter(now); j.stopped() {
		return
	}
	j.confirmed.UnionWith(idset.Intersect(ranks, &j.holds.draining))
	j.confirmDrains()
	if j.hk != nil {
		j.drainedHousekeeping(ranks)
	}
}

// confirmDrains posts which drains are confirmed, unless the job may be starting on
// the ranks.
func (j *Job) confirmDrains() {
	if j.confirmed.IsEmpty() || j.mayBeStarting() || j.holds.job.Closed() {
		return
	}
	j.post(&jobstate.DrainedContext{Ranks: &j.confirmed})
	j.confirmed.SubtractWith(&j.confirmed)
}

// enter sets the time, and decides what follows from reports that came before.
func (j *Job) enter(now eventlog.Timestamp) {
	if j.advance(now); !j.stopped() {
		j.react()
	}
}

// Offline replaces the set of offline ranks, which is that of Spec at first. The Job
// decides no launch there. It does not affect an action that was launched there, even if
// the launch was not taken yet: that needs a Report. Offline copies ranks; nil is the
// empty set.
func (j *Job) Offline(now eventlog.Timestamp, ranks *idset.Set) {
	j.advance(now)
	j.setOffline(ranks)
}

func (j *Job) setOffline(ranks *idset.Set) {
	if j.offline != nil || !ranks.IsEmpty() {
		j.ownNodes()
		j.offline = ranks.Clone()
	}
}

// Tick tells the Job the time. Timeouts expire, and the timer of housekeeping
// frees ranks.
func (j *Job) Tick(now eventlog.Timestamp) {
	if j.advance(now); j.stopped() {
		return
	}
	j.timed(func(r *run.Run) { r.Tick(j.now) })
}

// maxOperator is how many bytes the name of an operator may have.
const maxOperator = 64

// ForceFinish ends an action on ranks with a wait status, and logs the name of the
// operator. On these ranks the action may be running, lost, or waiting for the node;
// housekeeping may also have failed there. nil means all such ranks, even those where it
// runs: to end only what [Job.Unresolved] lists, pass its Ranks. The action continues on
// the other ranks. If a single command is lost, the rank of its leader, as Unresolved lists
// it, means all ranks. ForceFinish sends no signal and drains nothing.
//
// status is at least 0; for a prolog at least 1, since its ranks count as reported
// failures. operator is one line of 1 to 64 bytes. A foreign action ends only as a
// whole. The error wraps ErrAction, and then nothing has changed.
func (j *Job) ForceFinish(now eventlog.Timestamp, key Key, ranks *idset.Set, status int32, operator string) error {
	j.enter(now)
	a := j.action(key)
	switch {
	case operator == "" || len(operator) > maxOperator || !utf8.ValidString(operator) || strings.ContainsAny(operator, "\n\x00"):
		return actionError(key, "needs the name of an operator: one line of 1 to 64 bytes")
	case status < 0 || key.Kind == jobstate.ActionProlog && status == 0:
		return actionError(key, "needs a status of at least 0, and for a prolog of at least 1")
	case j.stopped():
		return ErrStopped
	case a == nil || a.stage != stageActive:
		return j.finishForeign(key, ranks, status, operator)
	}
	able := a.run.Open()
	if a.Kind == jobstate.ActionHousekeeping {
		able = idset.Difference(j.given(), &j.hk.ready)
		able.SubtractWith(&j.hk.freed)
	}
	if ranks == nil || a.single() && a.run.HasLost() && ranks.Equal(a.run.Lost()) { // as Unresolved lists it: the leader
		ranks = able
	} else if !able.ContainsAll(ranks) || ranks.IsEmpty() {
		return actionError(key, "has ended, or does not run, on ranks "+idset.Difference(ranks, able).String())
	}
	if a.single() && ranks.Contains(a.run.Spec().Leader) && !ranks.Equal(able) {
		return actionError(key, "runs on rank "+strconv.Itoa(int(a.run.Spec().Leader))+" for other ranks too: end it on all ranks, or not on this one")
	}
	ended := idset.Difference(ranks, a.run.Open())
	a.run.Force(j.now, ranks, status, operator)
	if !ended.IsEmpty() { // housekeeping that failed there
		j.postFailure(a, &run.Failure{Ranks: ended, Cause: run.CauseForced, Status: status, Note: "by " + operator}, false)
		j.readyHousekeeping(ended, status)
	}
	return nil
}

// finishForeign posts the finish of a foreign action.
func (j *Job) finishForeign(key Key, ranks *idset.Set, status int32, operator string) error {
	switch {
	case j.holds.job.Closed():
		return actionError(key, "cannot be finished: the job's log is closed")
	case j.holds.hold(key) == nil:
		return actionError(key, "is not active")
	case ranks != nil:
		return actionError(key, "is foreign, and can end only on all ranks")
	case j.holds.job.State() == jobstate.StateNew:
		return actionError(key, "cannot be finished before the job is validated")
	case j.mayBeStarting():
		return actionError(key, "cannot be finished while the executor may be starting the job: its response must come first")
	}
	note := key.String() + " was finished by force by " + operator
	if key.Kind == jobstate.ActionProlog && !j.holds.ending() {
		j.startAll(jobstate.ActionEpilog)
		j.raise(&action{Key: key}, 0, note, nil)
	} else {
		j.raise(&action{Key: key}, severityNonFatal, note, nil)
	}
	j.post(&jobstate.ActionFinishContext{ActionKey: key, Status: status})
	return nil
}

func actionError(key Key, reason string) error {
	return fmt.Errorf("%w: %v %s", ErrAction, key, reason)
}
