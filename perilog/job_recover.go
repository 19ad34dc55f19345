package perilog

import (
	"slices"
	"strconv"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
)

// RecoverJob returns the actions of a job that has a log, as after a restart.
// What was active is lost: whether its processes still run is not known here.
// Unresolved lists it, and each is to be resolved by Reattach, Rerun,
// ForceFinish or a process that checks in; until then it holds what it held.
// What the configuration asks for and the log has not is started by the next
// Take, such as prologs of a job that was just allocated.
//
// The error is that of [NewJob], an *EventError, or one of package eventlog
// for a line that is malformed or torn; with the latter two the job as told up
// to there is returned.
func RecoverJob(now eventlog.Timestamp, c Config, s JobSpec, log []byte) (*Job, error) {
	j, err := NewJob(c, s)
	if err != nil {
		return nil, err
	}
	j.advance(now)
	for e, err := range eventlog.Entries(log) {
		if err == nil {
			_, err = j.Apply(now, e)
		}
		if err != nil {
			j.lose()
			return j, err
		}
	}
	j.lose()
	return j, nil
}

// lose marks what is active as lost.
func (j *Job) lose() {
	for _, a := range j.actions {
		a.lost = a.stage == stageActive
	}
}

// Why says why an action needs somebody to resolve it. The zero Why is invalid.
type Why uint8

// The reasons.
const (
	WhyLost      Why = 1 + iota // it was active at a restart
	WhyUnclaimed                // it was taken up again, but no process has checked in from the ranks
	WhyForeign                  // it is not configured here, or started twice: who started it has to finish it
	WhyUndrained                // it ended on the ranks, whose drain is not confirmed
)

// String returns "lost", "unclaimed", "foreign" or "undrained"; another value
// prints as Why(n).
func (w Why) String() string {
	switch w {
	case WhyLost:
		return "lost"
	case WhyUnclaimed:
		return "unclaimed"
	case WhyForeign:
		return "foreign"
	case WhyUndrained:
		return "undrained"
	default:
		return "Why(" + strconv.Itoa(int(w)) + ")"
	}
}

// Unresolved is an action that somebody has to resolve.
type Unresolved struct {
	Action Key
	Why    Why
	Ranks  *idset.Set         // those concerned; a copy, not nil
	Since  eventlog.Timestamp // when the action started
}

// Unresolved returns what holds the job without a run or a timer that will end
// it, in the order of the log, one reason after the other. An action that runs
// and has no timeout is not among them: it is as long as its command.
func (j *Job) Unresolved() []Unresolved {
	var list []Unresolved
	for i, h := range j.holds.actions {
		key := Key{h.kind, h.description}
		again := slices.ContainsFunc(j.holds.actions[:i], func(o *activeAction) bool {
			return o.kind == h.kind && o.description == h.description
		})
		a := j.action(key)
		add := func(why Why, ranks *idset.Set) {
			list = append(list, Unresolved{Action: key, Why: why, Ranks: ranks.Clone(), Since: h.since})
		}
		switch {
		case a == nil || again || a.stage == stageFinished:
			add(WhyForeign, &h.ranks)
			continue
		case a.lost:
			add(WhyLost, &h.ranks)
		}
		if !a.unclaimed.IsEmpty() {
			add(WhyUnclaimed, &a.unclaimed)
		}
		if waiting := idset.Intersect(&a.ended, &a.draining); !waiting.IsEmpty() {
			add(WhyUndrained, waiting)
		}
	}
	return list
}

// Reattach takes a lost action up again that is known to go on: reports count,
// and its timeouts count from when it started. The ranks are those on which it
// has not ended. The error is an *ActionError.
func (j *Job) Reattach(now eventlog.Timestamp, key Key) error {
	a, err := j.lostAction(key)
	if err != nil {
		return err
	}
	j.advance(now)
	a.lost = false
	if !j.attach(a) {
		return nil // it has ended on all ranks, and Take finishes it
	}
	if err := a.run.Reattach(j.hold(key).since, j.now); err != nil {
		panic("perilog: a run that was never started can not be taken up: " + err.Error())
	}
	if j.holds.cleanup {
		a.run.Exception(j.now, 0)
	}
	return nil
}

// Rerun runs a lost action again, on the ranks where it has not ended: the next
// Take launches it; an epilog waits for prologs, and for a job that goes on. Only
// so, or by a success that is checked in, a job starts whose prolog was lost. A
// failure on other ranks that the log tells of stands, tolerated or not. The
// error is an *ActionError; a prolog of a job that is ending can not be run
// again.
func (j *Job) Rerun(now eventlog.Timestamp, key Key) error {
	a, err := j.lostAction(key)
	if err != nil {
		return err
	}
	if key.Kind == jobstate.ActionProlog && j.holds.cleanup {
		return actionError(key, "can not be run again for a job that is ending")
	}
	j.advance(now)
	a.lost = false
	return nil
}

// lostAction returns the action of that name if it is lost.
func (j *Job) lostAction(key Key) (*action, error) {
	a := j.action(key)
	switch {
	case a == nil:
		return nil, actionError(key, "is not configured here: who started it has to finish it")
	case !a.lost:
		return nil, actionError(key, "is not lost")
	case j.stopped():
		return nil, actionError(key, "belongs to a job that was shut down")
	}
	return a, nil
}
