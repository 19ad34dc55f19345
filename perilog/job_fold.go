package perilog

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/perilog/internal/run"
)

// maxFrame is how many bytes a line of a log has at most beside name and context.
const maxFrame = 256

// Apply accepts an event from the embedder, such as alloc, start, finish, release or an
// exception. The Job itself posts the events of its own actions, and drained, free and
// clean.
//
// An accepted event is in Post of the next Take, before the events that follow from
// it. Do not append it to the log yourself. An event that package jobstate ignores is
// in Post too, unless it repeats the entry before it exactly.
//
// Apply refuses what [jobstate.Job.Apply] refuses, and eventlog.AppendEntry. It returns
// ErrOrder for a start before every prolog has succeeded or of a job that cannot start any
// more, and for a free or clean while something is held; ErrR for an alloc before the job
// has an R; ErrOwn for an event of an action that the Job runs, and for a launch. After an
// error nothing has changed, and the event must not be logged. Apply keeps no reference to
// e.
//
// No order of events frees a rank early (I3): before an event that ends a hold on
// ranks, the Job logs the starts of the epilogs that must run there.
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
		return 0, err
	}
	j.logEpilogsFirst(ev.Context())
	outcome, err := j.fold(ev)
	if err != nil || outcome == jobstate.IgnoredDuplicate {
		return outcome, err
	}
	j.advance(e.Timestamp)
	j.open()
	n := len(j.text)
	j.text = append(j.text, e.Context...)
	if e.Context != nil {
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
			return fmt.Errorf("%w: alloc needs SetR first", ErrR)
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
		if !j.mayFree() {
			return fmt.Errorf("%w: free in %s while the job waits for %s", ErrOrder, s.State(), s.Waiting())
		}
	case jobstate.EventClean:
		if s.State() == jobstate.StateCleanup && !j.mayClean() {
			return fmt.Errorf("%w: clean while the job waits for %s", ErrOrder, s.Waiting())
		}
	case jobstate.EventDrained:
		return fmt.Errorf("%w: use Drained", ErrOwn)
	}
	key, ok := ev.Action()
	switch a := j.action(key); {
	case !ok:
	case a != nil && (a.stage != stageFinished || isStart(ev.Context())), isLaunch(ev.Context()):
		return fmt.Errorf("%w: %v", ErrOwn, key)
	case key.Kind == jobstate.ActionProlog && isStart(ev.Context()) && j.start() == startPending:
		return fmt.Errorf("%w: %v starts while the executor is starting the job", ErrOrder, key)
	case j.mayBeStarting() && !isStart(ev.Context()):
		return fmt.Errorf("%w: %v ends while the executor may be starting the job: its response must come first", ErrOrder, key)
	}
	return nil
}

// mayBeStarting reports whether a job that is ending may still be starting: the
// executor was asked, and nothing in the log holds the ranks for it.
func (j *Job) mayBeStarting() bool { return j.holds.ending() && j.start() == startPending }

func isStart(c jobstate.Context) bool {
	_, ok := c.(*jobstate.ActionStartContext)
	return ok
}

// endsHold reports whether an event may end the last hold on ranks of a job that is
// ending and whose nodes were prepared or used. The starts of the epilogs must be in the
// log before it: else nothing may hold the ranks that the executor has released. Epilogs
// are not due earlier, and ranks that it released in RUN the job holds until its finish.
func (j *Job) endsHold(c jobstate.Context) bool {
	switch c.(type) {
	case *jobstate.FinishContext:
		return j.holds.allocated() && j.holds.onlyJob()
	case *jobstate.ReleaseContext, *jobstate.ActionReleaseContext, *jobstate.ActionFinishContext, *jobstate.DrainedContext:
		return j.holds.job.State() == jobstate.StateCleanup && j.holds.allocated() && j.holds.used()
	}
	return false
}

// isLaunch reports whether an event says how this library launched an action.
func isLaunch(c jobstate.Context) bool {
	if start, ok := c.(*jobstate.ActionStartContext); ok {
		return start.Owned() || start.Attempt > 0
	}
	_, ok := c.(*jobstate.ActionLaunchContext)
	return ok
}

// logEpilogsFirst posts the starts of epilogs before an event that may end a hold, so that
// no rank is free in between.
func (j *Job) logEpilogsFirst(c jobstate.Context) {
	if j.endsHold(c) {
		j.startAll(jobstate.ActionEpilog)
	}
}

// mayFree reports whether the event free may be posted.
func (j *Job) mayFree() bool { return j.holds.job.MayFree() && j.maySweep() }

// mayClean reports whether the event clean may be posted.
func (j *Job) mayClean() bool { return j.holds.job.MayClean() && j.maySweep() }

// maySweep reports whether nothing prevents free and clean that package jobstate does not
// know of.
func (j *Job) maySweep() bool {
	return j.start() != startPending && j.holds.draining.IsEmpty() &&
		!(j.epilogsDue(j.start()) && slices.ContainsFunc(j.actions, func(a *action) bool { return a.Kind == jobstate.ActionEpilog && j.isDue(a) }))
}

// record adds an entry, which it keeps, to what is to be logged.
func (j *Job) record(l Log, e eventlog.Entry, c jobstate.Context) {
	j.open()
	r := Record{Log: l, Entry: e, State: j.holds.job.State()}
	if c, ok := c.(*jobstate.ExceptionContext); ok {
		x := *c
		if f := c.Failed; f != nil {
			x.Failed = &jobstate.FailedRanks{Ranks: f.Ranks.Clone(), Nodelist: f.Nodelist, Action: f.Action}
		}
		r.Exception = &x
	}
	j.effects.Post = append(j.effects.Post, r)
}

// post logs an event of this package's making in the job's log.
func (j *Job) post(c jobstate.Context) {
	j.logEpilogsFirst(c)
	j.postTo(LogJob, c)
}

// postTo logs an event of this package's making. What is folded is what was read
// back, so that a replay of the log folds the same.
func (j *Job) postTo(log Log, c jobstate.Context) {
	j.open()
	e, text, err := jobstate.EncodeEntry(j.text, j.now, c)
	if err != nil {
		panic("perilog: an event that cannot be written: " + err.Error())
	}
	j.text = text
	j.postEntry(log, e)
}

// postAction logs an event of an action, in the log that has it.
func (j *Job) postAction(a *action, c jobstate.Context) {
	if a.Kind == jobstate.ActionHousekeeping {
		j.postTo(LogHousekeeping, c)
	} else {
		j.post(c)
	}
}

// postEntry folds and logs an entry.
func (j *Job) postEntry(log Log, e eventlog.Entry) {
	ev := &j.holds.scratch.own
	if err := ev.Decode(e); err != nil {
		panic("perilog: an event that cannot be read: " + err.Error())
	}
	if log == LogHousekeeping {
		j.foldHousekeeping(ev)
	} else if outcome, err := j.fold(ev); err != nil || outcome == jobstate.IgnoredDuplicate {
		if err != nil {
			panic("perilog: an event that is not legal: " + err.Error())
		}
		return
	}
	j.record(log, e, ev.Context())
}

// fold takes in an event of the job's log, live and in a replay alike.
func (j *Job) fold(ev *jobstate.Event) (jobstate.Outcome, error) {
	s := j.holds.job
	startable, state, had := s.MayStart(), s.State(), s.WasAllocated()
	next := j.phaseAfter(ev.Context())
	outcome, err := j.holds.apply(ev)
	if err != nil || outcome != jobstate.Applied {
		return outcome, err
	}
	j.startable = j.startable || startable && j.holds.ending()
	if j.phase = next; ev.Entry().Name == jobstate.EventAlloc && (!had || s.State() != state) {
		j.phase = phaseOpening
	}
	if j.r == nil && namesRanks(ev) {
		e := ev.Entry()
		e.Context = bytes.Clone(e.Context)
		j.ownNodes()
		j.early = append(j.early, e)
		if _, ok := ev.Action(); ok {
			j.configure(nil) // what is held is foreign until its ranks are known
		}
		return outcome, nil
	}
	j.change(ev)
	return outcome, nil
}

// namesRanks reports whether an event may concern ranks before the job has any.
func namesRanks(ev *jobstate.Event) bool {
	switch c := ev.Context().(type) {
	case *jobstate.ExceptionContext:
		return c.Failed != nil || c.Severity == 0
	case *jobstate.DrainedContext:
		return true
	}
	_, ok := ev.Action()
	return ok
}

// refold folds the events that named ranks before R came once more. So what services
// started then holds those ranks, as it does in a replay. This process does not know what
// runs there.
func (j *Job) refold() {
	h := &j.holds
	early := j.early
	if early == nil {
		return
	}
	j.early, j.drains = nil, &h.scratch.noDrains
	h.actions, h.failures = nil, &h.scratch.noFailures
	j.configure(nil)
	for _, e := range early {
		if err := h.scratch.own.Decode(e); err != nil {
			panic("perilog: an event that was read cannot be read: " + err.Error())
		}
		h.change(&h.scratch.own)
		j.change(&h.scratch.own)
	}
	for _, a := range j.actions {
		if a.run != nil {
			a.run.Lose()
		}
	}
}

// change takes in what an event of the job's log changes beside the holds.
func (j *Job) change(ev *jobstate.Event) {
	t := ev.Entry().Timestamp
	switch c := ev.Context().(type) {
	case *jobstate.ActionStartContext:
		j.foldStart(c, t)
	case *jobstate.ActionLaunchContext:
		j.foldLaunch(c, t)
	case *jobstate.ActionFailContext:
		j.foldFail(j.active(c.ActionKey), t, c)
	case *jobstate.ActionReleaseContext:
		if a := j.active(c.ActionKey); a != nil {
			a.run.Released(t, c.Ranks, c.Status)
		}
	case *jobstate.ActionFinishContext:
		if a := j.active(c.ActionKey); a != nil {
			j.foldFinish(a, t, c.Status)
		}
	case *jobstate.DrainedContext:
		j.asked.SubtractWith(c.Ranks)
	case *jobstate.ExceptionContext:
		j.foldException(c, t)
	}
}

// active returns the action of a key if it runs, or nil.
func (j *Job) active(key Key) *action {
	if a := j.action(key); a != nil && a.stage == stageActive {
		return a
	}
	return nil
}

// adopt adds an action that the log has and the configuration does not. It returns nil
// if this library does not run the action, or has adopted too many.
func (j *Job) adopt(key Key, how *jobstate.ActionMode) *action {
	if !how.Owned() || j.adopted == maxAdopted {
		return nil
	}
	a := &action{Key: key}
	j.actions = append(j.actions, a)
	j.adopted++
	return a
}

// foldStart begins an action. One that the configuration does not have runs as
// its start says, if this library wrote that; otherwise it is foreign.
func (j *Job) foldStart(c *jobstate.ActionStartContext, t eventlog.Timestamp) {
	key := c.ActionKey
	a := j.action(key)
	if a == nil {
		a = j.adopt(key, &c.ActionMode)
	}
	if a == nil || a.stage == stageActive { // a foreign start of the same name
		return
	}
	a.stage, a.began, a.foreign = stageActive, t, !c.Owned()
	ranks := j.holds.hold(key).ranks.Clone()
	a.run = j.newRun(a, &c.ActionMode, ranks)
	switch {
	case c.Attempt > 0:
		j.launched(a)
		a.run.Launch(t, c.Attempt, ranks)
	case !c.Owned():
		a.run.Launch(t, a.attempts+1, ranks) // another writer did
	}
}

// foldLaunch folds a launch. If another writer started the action, the launch says how it
// runs from now on, whatever the configuration says.
func (j *Job) foldLaunch(c *jobstate.ActionLaunchContext, t eventlog.Timestamp) {
	key := c.ActionKey
	a := j.find(key)
	if a == nil {
		if a = j.adopt(key, &c.ActionMode); a != nil {
			a.stage, a.began, a.foreign = stageActive, j.holds.hold(key).since, true
		}
	}
	if a == nil || a.stage != stageActive {
		return
	}
	if a.foreign && c.Owned() {
		last := a.attempts + 1
		if a.run != nil {
			last = a.run.LastAttempt()
		}
		ranks := j.holds.hold(key).ranks.Clone()
		a.foreign, a.run = false, j.newRun(a, &c.ActionMode, ranks)
		a.run.Launch(t, last, ranks) // what the other writer launched
		a.run.Lose()
	}
	j.launched(a)
	a.run.Launch(t, c.Attempt, c.Ranks)
}

// launched notes the launch of an action. After that of an epilog the job cannot be
// starting any more.
func (j *Job) launched(a *action) {
	j.startable = j.startable && a.Kind != jobstate.ActionEpilog
}

// mode returns how the action runs.
func (a *action) mode() jobstate.ActionMode {
	spec := a.run.Spec()
	m := jobstate.ActionMode{PerRank: spec.PerRank, Timeout: spec.Timeout, KillTimeout: spec.KillTimeout}
	if !spec.PerRank {
		m.Leader = jobstate.Some(spec.Leader)
	}
	return m
}

// single reports whether one command serves all ranks.
func (a *action) single() bool { return !a.run.Spec().PerRank }

// newRun returns the run of an action that has started. Its start says how it runs, or
// else the configuration does.
func (j *Job) newRun(a *action, how *jobstate.ActionMode, ranks *idset.Set) *run.Run {
	spec := run.Spec{
		Title: title(a.Key), Ranks: ranks,
		PerRank: how.PerRank, Leader: how.Leader.Value, Timeout: how.Timeout, KillTimeout: how.KillTimeout,
		Hosts: j.hosts,
	}
	if a.config != nil {
		spec.Kill, spec.IgnoreControl = a.config.Kill, a.config.IgnoreControl
		if !how.Owned() {
			spec.PerRank, spec.Leader = a.config.PerRank, a.config.Leader
			spec.Timeout, spec.KillTimeout = a.timeouts()
		}
	}
	spec.KillTimeout = cmp.Or(spec.KillTimeout, defaultKillTimeout)
	return run.New(spec)
}

// title returns the words that notes and reasons begin with: the kind, and the
// description where it tells more.
func title(k Key) string {
	if k.Description == "job-manager."+k.Kind.String() || k.Kind == jobstate.ActionHousekeeping {
		return k.Kind.String()
	}
	return k.String()
}

// timeouts returns the configured timeouts, defaults filled in.
func (a *action) timeouts() (timeout, kill time.Duration) {
	timeout = duration(a.config.Timeout)
	if a.config.Timeout == 0 && a.Kind == jobstate.ActionProlog {
		timeout = defaultPrologTimeout
	}
	return timeout, cmp.Or(duration(a.config.KillTimeout), defaultKillTimeout)
}

// hosts returns the hosts of ranks, "" if they are not known.
func (j *Job) hosts(ranks *idset.Set) string {
	part, err := j.r.Restrict(idset.Intersect(ranks, j.holds.all))
	if err != nil || part.IsEmpty() {
		return ""
	}
	return part.Nodelist().String()
}

// foldFail folds the failure of an action on ranks, and their drain. The action is nil if
// this library does not run it.
func (j *Job) foldFail(a *action, t eventlog.Timestamp, c *jobstate.ActionFailContext) {
	cause := run.CauseNamed(c.Cause)
	if a != nil {
		a.run.Fold(t, run.Failure{Ranks: c.Ranks, Cause: cause, Status: c.Status, Note: c.Note, Drain: c.Drain})
	}
	if c.Drain {
		j.ownDrains()
		reason := run.DrainReason(title(c.ActionKey), cause, j.State().ID().String())
		j.due = append(j.due, Drain{Ranks: c.Ranks.Clone(), Reason: reason})
	}
}

// foldFinish ends an action. If the log started it twice, another writer did, and the
// second start is foreign.
func (j *Job) foldFinish(a *action, t eventlog.Timestamp, status int32) {
	a.finished, a.success = t, status == 0
	a.attempts = a.run.LastAttempt()
	spec := *a.run.Spec()
	a.stage, a.run = stageFinished, nil
	if h := j.holds.hold(a.Key); h != nil {
		spec.Ranks = h.ranks.Clone()
		a.stage, a.run = stageActive, run.New(spec)
		a.run.Launch(t, a.attempts+1, &h.ranks)
		a.run.Lose()
	}
}

// foldException cancels the actions that a fatal exception cancels, and drains ranks that
// the job drops.
func (j *Job) foldException(c *jobstate.ExceptionContext, t eventlog.Timestamp) {
	if f := c.Failed; f != nil && f.Action == jobstate.FailedDrop {
		j.ownDrains()
		reason := c.Type + " dropped the node for job " + j.State().ID().String()
		j.due = append(j.due, Drain{Ranks: f.Ranks.Clone(), Reason: reason})
	}
	if c.Severity != 0 {
		return
	}
	for _, a := range j.actions {
		if a.stage == stageActive && a.cancels() {
			a.run.Cancel(t)
		}
	}
}

// cancels reports whether a fatal exception cancels the action.
func (a *action) cancels() bool {
	if a.config != nil && a.config.CancelOnException != nil {
		return *a.config.CancelOnException
	}
	return a.Kind == jobstate.ActionProlog
}
