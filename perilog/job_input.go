package perilog

import (
	"strings"
	"unicode/utf8"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
)

// MaxWho is how many bytes the name may have of who ends an action by force.
const MaxWho = 64

// Report tells what happened on a rank where an action runs. The answer is that
// of [Run.Report]; AnswerStranger where the action is not configured,
// AnswerEarly where it is not launched, and AnswerEnded where it is finished or
// the job was shut down. An action that was lost in a restart takes CheckIn.
func (j *Job) Report(now eventlog.Timestamp, key Key, rep Report) Answer {
	j.advance(now)
	a := j.action(key)
	switch {
	case a == nil:
		return AnswerStranger
	case a.stage >= stageFinishing || j.stopped():
		return AnswerEnded
	case a.run == nil:
		return AnswerEarly
	}
	return a.run.Report(j.now, rep)
}

// CheckIn is Report by a process that survived a restart, and may repeat itself
// until it is acknowledged. If the action was lost, the first one to check in
// takes it up again, as Reattach does; ranks that have not checked in stay
// unresolved until they do. acked tells that the log says that the action has
// ended on the rank, so that nothing has to be repeated: what is only known to
// the Job would be lost with it.
func (j *Job) CheckIn(now eventlog.Timestamp, key Key, rep Report) (answer Answer, acked bool) {
	a, hold := j.action(key), j.hold(key)
	switch {
	case a == nil:
		return AnswerStranger, false
	case hold == nil, a.stage == stageFinished: // its start is not in the log, or its finish is
		return j.Report(now, key, rep), a.stage == stageFinished
	case a.config.PerRank && !hold.ranks.Contains(rep.Rank):
		return j.Report(now, key, rep), j.spec.R.HasRank(rep.Rank)
	}
	if a.lost && j.Reattach(now, key) == nil {
		a.unclaimed.UnionWith(&hold.ranks)
	}
	if a.config.PerRank {
		a.unclaimed.Remove(rep.Rank)
	} else {
		a.unclaimed = idset.Set{}
	}
	return j.Report(now, key, rep), false
}

// Drained confirms that ranks are drained for which that was asked: what an
// action ended on there may be let go. It returns those for which it was not
// asked, or was confirmed before.
func (j *Job) Drained(now eventlog.Timestamp, ranks *idset.Set) *idset.Set {
	j.advance(now)
	rest := ranks.Clone()
	for _, a := range j.actions {
		asked := idset.Intersect(&a.draining, ranks)
		a.draining.SubtractWith(asked)
		rest.SubtractWith(asked)
	}
	return rest
}

// Offline tells which ranks are offline now: an action that is launched from now
// on leaves them out. Where one runs already, Report tells what became of it.
// It copies ranks; nil is none.
func (j *Job) Offline(ranks *idset.Set) { j.spec.Offline = ranks.Clone() }

// Tick tells that time has passed, and reports whether a timer was due.
func (j *Job) Tick(now eventlog.Timestamp) bool {
	j.advance(now)
	due := false
	for _, a := range j.actions {
		if a.run != nil && a.run.Tick(j.now) {
			due = true
		}
	}
	return due
}

// ForceFinish ends an active action on behalf of who, a name for the log, with
// a wait status: one that runs, one that was lost, or somebody else's that is
// not configured here, or was started once more. Nothing is signalled. The finish in the log says who. A
// prolog can not be ended so with status 0, as it did not succeed; with another
// a fatal exception ends the job, unless it is ending already.
//
// The error is an *ActionError, and then nothing has changed.
func (j *Job) ForceFinish(now eventlog.Timestamp, key Key, status int32, who string) error {
	a := j.action(key)
	foreign := a == nil || a.stage == stageFinished
	switch {
	case !validWho(who):
		return actionError(key, needsWho)
	case key.Kind == jobstate.ActionProlog && status == 0:
		return actionError(key, "did not end in success: run it again, or end it with a status other than 0")
	case status < 0:
		return actionError(key, "can not end with a negative status")
	case j.hold(key) == nil || !foreign && a.stage != stageActive:
		return actionError(key, "is not active")
	case j.stopped():
		return actionError(key, "belongs to a job that was shut down")
	}
	j.advance(now)
	if foreign {
		e, err := jobstate.NewEntry(j.now, &jobstate.ActionFinishContext{
			Kind: key.Kind, Description: key.Description, Status: status, Extra: forcedBy(who),
		})
		if err == nil {
			_, err = eventlog.AppendEntry(nil, e)
		}
		if err != nil {
			return actionError(key, "has a description that leaves no room for more in a line of the log")
		}
		j.raiseForced(key, status, who)
		j.add(e, nil)
		return nil
	}
	if a.run != nil {
		a.run.ForceFinish(j.now, nil, who)
	}
	a.lost, a.forced = false, forced{set: true, status: status, who: who}
	return nil
}

// ForceRanks ends an action that runs on some of its ranks, on behalf of who, as
// where one node of many hangs in an epilog: the others go on, and what the
// action ended on is let go and logged with the name at once. A prolog that was
// ended so on a rank fails, unless that is tolerated. The error is an
// *ActionError, also if the action does not run on one of the ranks, or runs
// one command for all; then nothing has changed.
func (j *Job) ForceRanks(now eventlog.Timestamp, key Key, ranks *idset.Set, who string) error {
	a := j.action(key)
	switch {
	case !validWho(who):
		return actionError(key, needsWho)
	case a == nil || a.run == nil || a.stage != stageActive || j.stopped():
		return actionError(key, "does not run")
	case !a.config.PerRank:
		return actionError(key, "is one command for all ranks, and ends for all")
	case ranks.IsEmpty() || !a.run.Active().ContainsAll(ranks):
		return actionError(key, "does not run on all of the ranks")
	}
	j.advance(now)
	j.collect(a)
	a.run.ForceFinish(j.now, ranks, who)
	j.collect(a)
	j.releaseRanks(a, ranks.Clone(), forcedBy(who))
	return nil
}

const needsWho = "is ended by force only by somebody with a name, of one line and at most 64 bytes"

func validWho(who string) bool {
	return who != "" && len(who) <= MaxWho && utf8.ValidString(who) && !strings.ContainsAny(who, "\n\x00")
}

// Shutdown lets nothing be launched any more. What runs may end, and is logged,
// until the deadline; 0 is none. From then on nothing that happens is taken in
// and Take returns nothing more: what has not ended is in the log as active, and
// [RecoverJob] finds it. A second call changes the deadline.
func (j *Job) Shutdown(now, deadline eventlog.Timestamp) {
	j.advance(now)
	j.stopping, j.stopAt = true, deadline
}

// stopped reports whether the deadline of a shutdown has passed.
func (j *Job) stopped() bool { return j.stopping && j.stopAt != 0 && j.now >= j.stopAt }

// Running reports whether an action runs, or has ended and is not finished in
// the log: a shutdown is complete when none does.
func (j *Job) Running() bool {
	for _, a := range j.actions {
		if a.run != nil && a.stage < stageFinished && a.run.State() != RunReady {
			return true
		}
	}
	return len(j.effects.Post) > 0
}
