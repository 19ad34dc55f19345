package perilog

import (
	"encoding/json"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/jsonscan"
	"github.com/joblife/joblife/jobstate"
)

// keyForcedBy is the key of a finish that tells who ended an action by force.
const keyForcedBy = "forced-by"

// statusCanceled is the status of a prolog that was canceled before it ran, as
// of one that SIGTERM ended.
const statusCanceled = sigterm

// Apply takes in an event of the job's log, which must be in the log by now.
// The Note and the error are those of [Holds.Apply]; after an error nothing has
// changed. A NoteLate for the start of an epilog means that ranks were released
// early, or that the embedder logged something else before what Take told it to
// post.
func (j *Job) Apply(now eventlog.Timestamp, e eventlog.Entry) (Note, error) {
	active := len(j.holds.actions)
	note, err := j.holds.Apply(e)
	if err != nil {
		return note, err
	}
	j.advance(now)
	j.advance(e.Timestamp)
	if note.Kind != NoteDuplicate {
		j.learn(e, note, len(j.holds.actions) < active)
	}
	return note, nil
}

// learn tells the actions what was logged; ended tells that it ended one.
func (j *Job) learn(e eventlog.Entry, note Note, ended bool) {
	switch e.Name {
	case jobstate.EventPrologStart, jobstate.EventEpilogStart:
		if note.Kind == NoteStarted {
			return // it holds nothing, and the job runs without it
		}
		held := j.holds.actions[len(j.holds.actions)-1]
		if a := j.action(Key{held.kind, held.description}); a != nil && a.stage <= stageStarting {
			a.stage, a.began = stageActive, e.Timestamp
		}
	case jobstate.EventPrologFinish, jobstate.EventEpilogFinish:
		if ended {
			j.settleStage(Key{eventOf(e.Name).actionKind(), string(j.holds.scan.description)}, e.Timestamp)
		}
	case EventPrologRelease, EventEpilogRelease:
		if a := j.action(Key{eventOf(e.Name).actionKind(), string(j.holds.scan.description)}); a != nil {
			a.worst = max(a.worst, j.holds.scan.status)
		}
	case jobstate.EventException:
		c, err := jobstate.ParseContext(e)
		if err != nil || c.(*jobstate.ExceptionContext).Severity != 0 {
			return
		}
		for _, a := range j.actions {
			if a.stage == stageActive && a.run != nil {
				a.run.Exception(j.now, 0)
			}
		}
	}
}

// settleStage ends an action of which the log has ended a start. One whose run
// goes on was finished by somebody else, who took it over. Where there is one
// more start, that was somebody else's: of an action whose finish was posted it
// is the one that is left, of another one it was the one that has ended.
func (j *Job) settleStage(key Key, now eventlog.Timestamp) {
	a := j.action(key)
	if a == nil || a.stage == stageFinished || a.stage == stageActive && j.hold(key) != nil {
		return
	}
	if a.run != nil {
		a.run.ForceFinish(j.now, nil, "the log")
	}
	a.stage, a.lost, a.finished = stageFinished, false, now
	a.unclaimed, a.ended, a.draining = idset.Set{}, idset.Set{}, idset.Set{}
}

// hold returns what an action holds: the oldest of its starts that are active.
func (j *Job) hold(key Key) *activeAction {
	for _, h := range j.holds.actions {
		if h.kind == key.Kind && h.description == key.Description {
			return h
		}
	}
	return nil
}

// react decides what follows from the log and the runs.
func (j *Job) react() {
	if j.holds.allocated && !j.holds.cleanup && !j.holds.started && !j.stopping {
		j.start(jobstate.ActionProlog)
	}
	if j.epilogsDue() {
		j.start(jobstate.ActionEpilog)
	}
	for _, a := range j.actions {
		if a.stage == stageActive && a.run == nil && !a.lost && !a.forced.set && !j.stopping {
			j.launch(a)
		}
		if a.stage == stageActive {
			j.progress(a)
		}
	}
}

// epilogsDue reports whether epilogs have to start now: the job is ending, and
// its nodes were prepared or used. While a prolog is active that is left to its
// end.
func (j *Job) epilogsDue() bool {
	h := j.holds
	if !j.isOver() || h.closed || !h.allocated && !h.revoked {
		return false
	}
	if h.started {
		return true
	}
	return j.prepared() && !j.anyProlog(func(a *action) bool { return a.stage > stageIdle && a.stage < stageFinished })
}

// isOver reports whether the job is ending, and does not run on its nodes.
func (j *Job) isOver() bool {
	h := j.holds
	return h.cleanup && (!h.started || h.finished || h.finalRelease)
}

// prepared reports whether a prolog of the job was started.
func (j *Job) prepared() bool {
	return j.anyProlog(func(a *action) bool { return a.stage >= stageActive })
}

func (j *Job) anyProlog(match func(*action) bool) bool {
	for _, a := range j.actions {
		if a.key.Kind == jobstate.ActionProlog && match(a) {
			return true
		}
	}
	return false
}

// start posts the start of every action of a kind that has none yet.
func (j *Job) start(kind jobstate.ActionKind) {
	for _, a := range j.actions {
		if a.key.Kind == kind && a.stage == stageIdle {
			a.stage = stageStarting
			j.post(&jobstate.ActionStartContext{Kind: kind, Description: a.key.Description})
		}
	}
}

// launch runs an action, where nothing stands against it.
func (j *Job) launch(a *action) {
	if a.key.Kind == jobstate.ActionProlog && j.holds.cleanup {
		j.finish(a, statusCanceled, nil) // it was canceled before it ran
		return
	}
	if a.key.Kind == jobstate.ActionEpilog {
		if !j.isOver() {
			return // it was started for a prolog that was run again, with success
		}
		for _, h := range j.holds.actions {
			if h.kind == jobstate.ActionProlog {
				return
			}
		}
	}
	if !j.attach(a) { // there is nothing left to run on
		j.raiseEarlier(a)
		j.finish(a, a.earlier, nil)
		return
	}
	if err := a.run.Start(j.now); err != nil {
		panic("perilog: a run that was never started can not be: " + err.Error())
	}
}

// attach gives an action a run on the ranks that it holds, not started yet. It
// returns false if it holds none.
func (j *Job) attach(a *action) bool {
	a.earlier = a.worst
	hold := j.hold(a.key)
	if hold == nil || hold.ranks.IsEmpty() {
		return false
	}
	spec := a.config.Spec(j.spec.RunJob)
	spec.Ranks = &hold.ranks
	run, err := NewRun(spec)
	if err != nil {
		panic("perilog: a spec that NewJob checked: " + err.Error())
	}
	a.run = run
	return true
}

// progress takes what a run has to say and posts what follows.
func (j *Job) progress(a *action) {
	if a.run != nil {
		j.collect(a)
	}
	if a.forced.set {
		j.finishByForce(a)
		return
	}
	if a.run == nil {
		return
	}
	if !a.run.Done() {
		j.release(a)
		return
	}
	o := a.run.Outcome()
	if a.key.Kind == jobstate.ActionProlog && (!o.Verdict.OK() || j.holds.cleanup) {
		j.start(jobstate.ActionEpilog)
	}
	if o.Verdict.OK() {
		j.raiseEarlier(a)
	}
	if a.raise != nil {
		a.raise.UserID = jobstate.Some(j.spec.Owner)
		j.post(a.raise)
		a.raise = nil
	}
	if a.ended.Intersects(&a.draining) {
		j.release(a)
		return
	}
	j.finish(a, max(o.Status, a.earlier), nil)
}

// raiseEarlier posts the exception of an action that failed on ranks before a
// restart, of which its run knows nothing, nor whether that was tolerated.
func (j *Job) raiseEarlier(a *action) {
	if a.earlier == 0 || a.raisedEarlier {
		return
	}
	a.raisedEarlier = true
	x := &jobstate.ExceptionContext{
		Type: a.key.Kind.String(), Severity: severityNonFatal,
		Note:   a.key.String() + " failed on some ranks before a restart",
		UserID: jobstate.Some(j.spec.Owner),
	}
	if a.key.Kind == jobstate.ActionProlog {
		j.start(jobstate.ActionEpilog)
		if j.holds.cleanup {
			return // the job is ending without it
		}
		x.Severity = 0
	}
	j.post(x)
}

// collect takes the requests of a run and the ranks that ended.
func (j *Job) collect(a *action) {
	for _, q := range a.run.Requests() {
		switch q.Kind {
		case RequestRaise:
			a.raise = q.Exception
			continue
		case RequestDrain:
			a.draining.UnionWith(q.Ranks)
		}
		j.effects.Requests = append(j.effects.Requests, ActionRequest{Action: a.key, Request: q})
	}
	j.ends = a.run.AppendEnded(j.ends[:0])
	for _, end := range j.ends {
		a.ended.Insert(end.Rank)
		a.unclaimed.Remove(end.Rank)
	}
}

// release posts that an epilog has ended on ranks while others go on.
func (j *Job) release(a *action) {
	if j.spec.WholeJob || a.key.Kind != jobstate.ActionEpilog || a.ended.IsEmpty() {
		return
	}
	ranks := &a.ended
	if a.ended.Intersects(&a.draining) {
		ranks = idset.Difference(&a.ended, &a.draining)
		if ranks.IsEmpty() {
			return
		}
	}
	j.releaseRanks(a, ranks, nil)
}

// releaseRanks posts that an action has ended on ranks.
func (j *Job) releaseRanks(a *action, ranks *idset.Set, extra json.RawMessage) {
	r := ActionRelease{Kind: a.key.Kind, Description: a.key.Description, Ranks: ranks, Extra: extra}
	for rank := range ranks.All() {
		r.Status = max(r.Status, a.run.EndOf(rank).Status)
	}
	j.add(r.Entry(j.now))
	a.ended.SubtractWith(ranks)
}

// finish posts the finish of an action.
func (j *Job) finish(a *action, status int32, extra json.RawMessage) {
	if a.key.Kind == jobstate.ActionProlog && (status != 0 || j.holds.cleanup) {
		j.start(jobstate.ActionEpilog)
	}
	j.post(&jobstate.ActionFinishContext{
		Kind: a.key.Kind, Description: a.key.Description, Status: status, Extra: extra,
	})
	a.stage = stageFinishing
}

// finishByForce posts the finish that somebody demanded, and an exception where
// the job is to know: that of a prolog ends the job.
func (j *Job) finishByForce(a *action) {
	j.raiseForced(a.key, a.forced.status, a.forced.who)
	a.raise = nil
	j.finish(a, a.forced.status, forcedBy(a.forced.who))
}

// raiseForced posts the exception that goes with an action that ended by force.
func (j *Job) raiseForced(key Key, status int32, who string) {
	if status == 0 {
		return
	}
	x := &jobstate.ExceptionContext{
		Type: key.Kind.String(), Severity: severityNonFatal,
		Note:   key.clip().String() + " was finished by force by " + who,
		UserID: jobstate.Some(j.spec.Owner),
	}
	if key.Kind == jobstate.ActionProlog {
		if j.holds.cleanup {
			return // the job is ending without it
		}
		if j.prepared() {
			j.start(jobstate.ActionEpilog)
		}
		x.Severity = 0
	}
	j.post(x)
}

// forcedBy returns the extra keys of a finish by force.
func forcedBy(who string) json.RawMessage {
	b := jsonscan.AppendString([]byte(`{"`+keyForcedBy+`":`), who)
	return append(b, '}')
}

// post adds an event to what is to be logged.
func (j *Job) post(c jobstate.Context) { j.add(jobstate.NewEntry(j.now, c)) }

// add adds an event of this package's making, which is valid.
func (j *Job) add(e eventlog.Entry, err error) {
	if err != nil {
		panic("perilog: an event that can not be written: " + err.Error())
	}
	j.effects.Post = append(j.effects.Post, e)
}
