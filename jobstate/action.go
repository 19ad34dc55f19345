package jobstate

import "github.com/joblife/joblife/eventlog"

// actions are the prologs and epilogs of a job that are active or have failed.
type actions struct {
	ordered[ActionKey, action]
	active        [ActionEpilog + 1]int // the sums of live over the actions, by kind
	failedPrologs int
}

// action is one prolog or epilog of a job.
type action struct {
	failed bool // a finish had another status than 0; it stays
	live   int  // starts without a finish
	since  eventlog.Timestamp
}

func (j *Job) live(k ActionKind) int {
	if j.actions == nil {
		return 0
	}
	return j.actions.active[k]
}

func (j *Job) failedPrologs() int {
	if j.actions == nil {
		return 0
	}
	return j.actions.failedPrologs
}

// active returns the action of a key if it is active, else nil.
func (j *Job) active(key ActionKey) *action {
	if j.actions == nil {
		return nil
	}
	if a := j.actions.get(key); a != nil && a.live > 0 {
		return a
	}
	return nil
}

func (j *Job) foldActionStart(t eventlog.Timestamp, c *ActionStartContext) Outcome {
	if c.Kind == ActionProlog && j.Started() {
		return ignoredStarted
	}
	if j.actions == nil {
		j.actions = new(actions)
	}
	a := j.actions.get(c.ActionKey)
	if a == nil {
		a = j.actions.put(c.ActionKey, action{})
	}
	if a.live == 0 {
		a.since = t
	}
	a.live++
	j.actions.active[c.Kind]++
	return Applied
}

func (j *Job) foldActionFinish(c *ActionFinishContext) Outcome {
	a := j.active(c.ActionKey)
	if a == nil {
		return ignoredAction
	}
	j.endAction(c.ActionKey, a, c.Status != 0)
	return Applied
}

// endAction counts a finish of a, which is live.
func (j *Job) endAction(key ActionKey, a *action, failed bool) {
	a.live--
	j.actions.active[key.Kind]--
	if key.Kind == ActionProlog && failed && !a.failed {
		j.actions.failedPrologs++
	}
	a.failed = a.failed || failed
	if a.live == 0 && !a.failed {
		j.actions.del(key) // only failures are remembered
	}
	if j.actions.live == 0 {
		j.actions = nil
	}
}
