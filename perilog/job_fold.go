package perilog

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset"
)

// maxRanksText bounds the text of any set of a job's ranks, in bytes, so that it
// fits in an entry of a log: more than 150 000 nodes of consecutive ranks.
const maxRanksText = 768 << 10

// SetR sets what the job was allocated: R, and named resources, which have no rank. Call it
// before the event alloc. It is an error if R is empty or too large, or was set before.
func (j *Job) SetR(r *rset.R, named ...string) error {
	switch {
	case j.r != nil:
		return fmt.Errorf("%w: R was set before", errR)
	case r.IsEmpty():
		return fmt.Errorf("%w: an allocation has at least one rank", errR)
	}
	j.unshareNodes()
	h, size := &j.holds, 0
	h.setR(r)
	for first, last := range h.all.Ranges() {
		// No part of a range has a longer text than every second id of it.
		size += int(last-first+2) / 2 * 9
	}
	if size > maxRanksText {
		h.all.SubtractWith(&h.all)
		return fmt.Errorf("%w: its ranks do not fit in a line of the log", errR)
	}
	h.setNames(named)
	j.r = r
	j.refold()
	return nil
}

// RecoverJob folds the logs of a job after a restart. hkLog is that of its housekeeping,
// and may be empty.
//
// An action that was launched and has not ended is lost: its processes may still run. It keeps
// its holds until it is resolved: see [Job.Unresolved]. The next Take asks again for each drain
// that is not confirmed, signals again what was being stopped, whose kill timeout starts anew,
// and starts the configured actions whose phase has not begun: see [Job.SetConfig]. An action
// keeps the timeouts and ranks that its start recorded.
//
// RecoverJob accepts events that Apply would have refused as too early: what was freed in the
// log is freed. It returns the errors of NewJob, or one of package eventlog or jobstate that
// names the line. After [eventlog.ErrTorn] the Job has the entries before
// that line, and the caller may only read it.
func RecoverJob(now eventlog.Timestamp, c *Config, s JobConfig, log, hkLog []byte) (*Job, error) {
	j, err := NewJob(c, s)
	if err != nil {
		return nil, err
	}
	if err = j.replay(log, j.foldLogged); err != nil {
		return j, err
	}
	j.advance(now)
	err = j.replay(hkLog, func(ev *jobstate.Event) error {
		j.foldHousekeeping(ev)
		return nil
	})
	if err != nil {
		return j, fmt.Errorf("perilog: housekeeping: %w", err)
	}
	return j, j.resume()
}

// Replay folds whole lines of the log of a job into a Job that NewJob made with the zero
// Config. It is for a standby, which reads a log as it grows and calls Resume when it takes
// over. What an action does depends on the configuration, so an event of one is an error:
// [RecoverJob] has to fold that log. After an error nobody may use the Job.
func (j *Job) Replay(log []byte) error {
	return j.replay(log, func(ev *jobstate.Event) error {
		if key, ok := ev.Action(); ok {
			return fmt.Errorf("%w: %v", ErrAction, key)
		}
		return j.foldLogged(ev)
	})
}

// Resume makes a Job of what Replay folded that is as RecoverJob makes it, without a log of
// housekeeping. Of s it takes Owner, Offline and Distinct. The errors are those of RecoverJob.
func (j *Job) Resume(now eventlog.Timestamp, c *Config, s JobConfig) error {
	if err := j.holds.scratch.checkConfig(c); err != nil {
		return err
	}
	j.cfg, j.owner, j.distinct = c, s.Owner, s.Distinct
	j.setOffline(s.Offline)
	j.configure(nil)
	j.advance(now)
	return j.resume()
}

func (j *Job) foldLogged(ev *jobstate.Event) error {
	_, err := j.fold(ev)
	if j.holds.job.WasAllocated() && j.r == nil {
		return fmt.Errorf("%w: alloc, and the spec has no R", errR)
	}
	return err
}

func (j *Job) replay(log []byte, fold func(*jobstate.Event) error) error {
	return j.holds.job.ReplayWith(&j.holds.scratch.event, log, func(ev *jobstate.Event) error {
		err := fold(ev)
		if err == nil {
			j.advance(ev.Entry().Timestamp)
		}
		return err
	})
}

// resume continues the job after a restart, from what the logs say.
func (j *Job) resume() error {
	h := &j.holds
	j.eachRun(func(a *action) {
		a.run.Lose()
		if hold := h.hold(a.ActionKey); hold != nil && a.Kind == jobstate.ActionEpilog && !a.foreign {
			ranks := hold.ranks.Clone()
			if a.single() {
				ranks.Remove(a.run.spec.Leader.Value) // where it may still run
			}
			a.run.ended = a.run.Ends(ranks) // a crash may have come before the log had that it released them
		}
	})
	if j.loggedStart() == startPending {
		j.executor = executorUnknown
	}
	if j.hk != nil {
		if !h.left.ContainsAll(&j.hk.freed) && !h.revoked {
			return fmt.Errorf("%w: housekeeping freed ranks %q, which the job's log still holds", ErrOrder, idset.Difference(&j.hk.freed, &h.left))
		}
		if busy := idset.Intersect(&j.hk.freed, j.hk.run.Open()); !busy.IsEmpty() {
			return fmt.Errorf("%w: housekeeping freed ranks %q before it ended there", ErrOrder, busy)
		}
		j.readyEnds(j.hk.run.Ends(j.hk.run.spec.Ranks)) // likewise
	}
	if j.r != nil {
		done := h.Released()
		if j.hk != nil {
			done = rset.Released{Ranks: &j.hk.freed, Final: j.final}
			if done.Final {
				done.Named = h.allNames()
			}
		}
		if j.final = done.Final; done.Final || len(done.Named) > 0 || !done.Ranks.IsEmpty() {
			ledger, err := rset.Rebuild(j.r, done, h.allNames()...)
			if err != nil {
				return fmt.Errorf("%w: %w", errR, err)
			}
			j.ledger = ledger
		}
	}
	h.fresh.SubtractWith(&h.fresh)
	if j.hk != nil {
		h.fresh.UnionWith(idset.Intersect(j.hk.run.At(slotIdle), &h.left))
	}
	j.begin()
	return nil
}

func (j *Job) record(l LogKind, e eventlog.Entry, c jobstate.Context) {
	j.advance(e.Timestamp)
	j.open()
	r := LogEntry{Log: l, Entry: e, State: j.holds.job.State()}
	if c, ok := c.(*jobstate.ExceptionContext); ok {
		x := *c
		if f := c.Failed; f != nil {
			x.Failed = &jobstate.FailedRanks{Ranks: f.Ranks.Clone(), Nodelist: f.Nodelist, Action: f.Action}
		}
		r.Exception = &x
	}
	j.effects.Post = append(j.effects.Post, r)
}

// logEpilogsFirst posts the starts of epilogs if an event may end a hold: see endsHold.
func (j *Job) logEpilogsFirst(c jobstate.Context) {
	if j.endsHold(c) {
		j.startAll(jobstate.ActionEpilog)
	}
}

// post logs an event of this package's making in the job's log.
func (j *Job) post(c jobstate.Context) {
	j.logEpilogsFirst(c)
	j.postTo(LogJob, c)
}

// postTo is post in one of the logs. It folds what it reads back, as a replay does.
func (j *Job) postTo(log LogKind, c jobstate.Context) {
	j.open()
	e, text, err := jobstate.EncodeEntry(j.text, j.stamp(j.now), c)
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
func (j *Job) postEntry(log LogKind, e eventlog.Entry) {
	ev := &j.holds.scratch.posted
	if err := ev.Decode(e); err != nil {
		panic("perilog: an event that cannot be read: " + err.Error())
	}
	if log == LogHousekeeping {
		j.foldHousekeeping(ev)
	} else if outcome, err := j.fold(ev); err != nil {
		panic("perilog: an event that is not legal: " + err.Error())
	} else if outcome == jobstate.IgnoredDuplicate {
		return
	}
	j.record(log, e, ev.Context())
}

// fold folds an event of the job's log, live and in a replay alike.
func (j *Job) fold(ev *jobstate.Event) (jobstate.Outcome, error) {
	s := j.holds.job
	startable, state, had := s.MayStart(), s.State(), s.WasAllocated()
	next := j.phaseAfter(ev.Context())
	if traitsOf(ev.Context()).has(namesRanks) {
		j.unshareNodes()
	}
	outcome, err := j.holds.apply(ev)
	if err != nil || outcome != jobstate.Applied {
		return outcome, err
	}
	j.startable = j.startable || startable && j.holds.ending()
	if j.phase = next; ev.Entry().Name == jobstate.EventAlloc && (!had || s.State() != state) {
		j.phase = phaseOpening
	}
	if j.r == nil && traitsOf(ev.Context()).has(namesRanks) {
		j.early = append(j.early, ev.Entry().Clone())
		if _, ok := ev.Action(); ok {
			j.configure(nil) // the ranks of what was started are not known yet, so it is foreign
		}
		return outcome, nil
	}
	j.change(ev)
	return outcome, nil
}

// refold folds the events that named ranks before R came once more, as a replay does.
func (j *Job) refold() {
	h := &j.holds
	early := j.early
	if early == nil {
		return
	}
	j.early, h.actions, h.failures = nil, nil, &h.scratch.noFailures
	j.configure(nil)
	for _, e := range early {
		if err := h.scratch.posted.Decode(e); err != nil {
			panic("perilog: an event that was read cannot be read: " + err.Error())
		}
		h.change(&h.scratch.posted)
		j.change(&h.scratch.posted)
	}
	j.eachRun(func(a *action) { a.run.Lose() })
}

// change folds what an event of the job's log changes beside the holds.
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
		j.holds.asked.SubtractWith(c.Ranks)
	case *jobstate.ExceptionContext:
		j.foldException(c, t)
	}
}

// active returns the action of a key if it runs, or nil.
func (j *Job) active(key jobstate.ActionKey) *action {
	if a := j.action(key); a != nil && a.stage == stageActive {
		return a
	}
	return nil
}

// adopt adds an action of the log that is not among the others; nil: another writer runs it, or too many were.
func (j *Job) adopt(key jobstate.ActionKey, how *jobstate.ActionMode) *action {
	if !how.Given() || j.adopted == maxAdopted || len(key.Description) > maxForeign {
		return nil
	}
	a := &action{ActionKey: key}
	list := j.cfg.actions(key.Kind)
	if i := slices.IndexFunc(list, func(c ActionConfig) bool { return c.key(key.Kind) == key }); i >= 0 {
		a.config = &list[i] // another writer had it first, on no rank
	}
	j.actions = append(j.actions, a)
	j.adopted++
	return a
}

// foldStart begins an action. One that is not configured is foreign, unless its start says how it
// runs.
func (j *Job) foldStart(c *jobstate.ActionStartContext, t eventlog.Timestamp) {
	key := c.ActionKey
	a := j.action(key)
	if a == nil {
		a = j.adopt(key, &c.ActionMode)
	}
	if a == nil || a.stage == stageActive { // a foreign start of the same name
		return
	}
	ranks := j.holds.hold(key).ranks.Clone()
	if !c.Given() && ranks.IsEmpty() && a.config != nil && a.config.PerRank { // no rank could end it
		j.actions = slices.DeleteFunc(j.actions, func(b *action) bool { return b == a })
		return
	}
	a.stage, a.began, a.foreign = stageActive, t, !c.Given()
	a.run = j.newRun(a, &c.ActionMode, ranks)
	switch {
	case c.Attempt > 0:
		j.startable = j.startable && a.Kind != jobstate.ActionEpilog // which comes after the job
		a.run.Launch(t, c.Attempt, ranks)
	case !c.Given():
		a.run.Launch(t, a.attempts+1, ranks) // by another writer
	}
}

// foldLaunch folds a launch. That of a foreign action says how it runs from now on.
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
	if a.foreign && c.Given() {
		last := a.attempts + 1
		if a.run != nil {
			last = a.run.last
		}
		ranks := j.holds.hold(key).ranks.Clone()
		a.foreign, a.run = false, j.newRun(a, &c.ActionMode, ranks)
		a.run.Launch(t, last, ranks) // what the other writer launched
		a.run.Lose()
	}
	j.startable = j.startable && a.Kind != jobstate.ActionEpilog
	a.run.Launch(t, c.Attempt, c.Ranks)
}

// single reports whether one command serves all ranks.
func (a *action) single() bool { return !a.run.spec.PerRank }

// newRun returns the run of an action, as its start says, or else the configuration.
func (j *Job) newRun(a *action, how *jobstate.ActionMode, ranks *idset.Set) *run {
	spec := runSpec{ActionKey: a.ActionKey, Ranks: ranks, ActionMode: *how, Hosts: j.hosts}
	if a.config != nil {
		spec.Kill, spec.IgnoreControl = a.config.Kill, a.config.IgnoreControl
		if !how.Given() {
			spec.ActionMode = a.mode()
		}
	}
	spec.KillTimeout = cmp.Or(spec.KillTimeout, defaultKillTimeout)
	return makeRun(spec)
}

// title begins notes and reasons: with the kind, and the description where it tells more.
func title(k jobstate.ActionKey) string {
	if k.Description == standard(k.Kind) || k.Kind == jobstate.ActionHousekeeping {
		return k.Kind.String()
	}
	return k.String()
}

// mode returns how the configuration has the action run, defaults filled in.
func (a *action) mode() jobstate.ActionMode {
	c := a.config
	m := jobstate.ActionMode{
		PerRank: c.PerRank, Timeout: time.Duration(c.Timeout), KillTimeout: cmp.Or(time.Duration(c.KillTimeout), defaultKillTimeout),
	}
	if !c.PerRank {
		m.Leader = jobstate.Some(c.Leader)
	}
	if c.Timeout == fsd.Forever {
		m.Timeout = 0
	} else if c.Timeout == 0 && a.Kind == jobstate.ActionProlog {
		m.Timeout = defaultPrologTimeout
	}
	return m
}

// hosts returns the hosts of ranks, "" if they are not known.
func (j *Job) hosts(ranks *idset.Set) string {
	part, err := j.r.Restrict(idset.Intersect(ranks, &j.holds.all))
	if err != nil || part.IsEmpty() {
		return ""
	}
	return part.Nodelist().String()
}

// foldFail folds a failure and its drain. The action is nil if this library does not run it.
func (j *Job) foldFail(a *action, t eventlog.Timestamp, c *jobstate.ActionFailContext) {
	if a != nil {
		a.run.Fold(t, c)
	}
	if c.Drain {
		unshare(&j.holds.failures, &j.holds.scratch.noFailures)
		j.holds.due = append(j.holds.due, Drain{Ranks: c.Ranks.Clone(), Reason: drainReason(c, j.State().ID())})
	}
}

func drainReason(c *jobstate.ActionFailContext, id jobid.ID) string {
	return title(c.ActionKey) + " " + causes[causeNamed(c.Cause)].drain + " for job " + id.String()
}

// foldFinish ends an action. A second start, which another writer logged, is foreign.
func (j *Job) foldFinish(a *action, t eventlog.Timestamp, status int32) {
	a.finished, a.success = t, status == 0
	a.attempts = a.run.last
	spec := a.run.spec
	a.stage, a.run = stageFinished, nil
	if h := j.holds.hold(a.ActionKey); h != nil {
		spec.Ranks = h.ranks.Clone()
		a.stage, a.run = stageActive, makeRun(spec)
		a.run.Launch(t, a.attempts+1, &h.ranks)
		a.run.Lose()
	}
}

// foldException cancels what a fatal exception cancels, and drains ranks that the job drops.
func (j *Job) foldException(c *jobstate.ExceptionContext, t eventlog.Timestamp) {
	if f := c.Failed; f != nil && f.Action == jobstate.FailedDrop {
		unshare(&j.holds.failures, &j.holds.scratch.noFailures)
		reason := c.Type + " dropped the node for job " + j.State().ID().String()
		j.holds.due = append(j.holds.due, Drain{Ranks: f.Ranks.Clone(), Reason: reason})
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
