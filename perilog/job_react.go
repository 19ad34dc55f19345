package perilog

import (
	"fmt"
	"slices"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
)

// An executor says whether it was asked to start the job, until the log has its answer.
type executor uint8

const (
	executorIdle    executor = iota // it was not asked
	executorAsked                   // it was asked
	executorUnknown                 // it may have been asked before a restart
)

// A start says whether the job has started, and whether it still may.
type start uint8

const (
	startOpen    start = iota // the executor was not asked, and may be
	startPending              // it was asked, or may have been, and the log does not have its answer
	startDone                 // the job has started
	startNever                // it did not, and cannot any more
)

func (j *Job) start() start { return j.startIf(j.executor != executorIdle) }

// loggedStart returns the start by the log alone, which lacks the request and NotStarted.
func (j *Job) loggedStart() start { return j.startIf(j.startable || j.holds.job.MayStart()) }

func (j *Job) startIf(asked bool) start {
	h := &j.holds
	switch {
	case h.job.Started():
		return startDone
	case h.job.Released(): // the executor gave up
		return startNever
	case asked && h.allocated():
		return startPending
	case h.ending():
		return startNever
	case h.job.State() == jobstate.StateRun && !slices.ContainsFunc(h.actions, isProlog) && (h.allFailed() || !h.job.MayStart()):
		return startNever
	}
	return startOpen
}

func isProlog(a *activeAction) bool { return a.Kind == jobstate.ActionProlog }

// mayStart reports whether to ask the executor.
func (j *Job) mayStart() bool {
	return !j.stopping && j.executor != executorAsked && j.holds.job.MayStart() && j.start() != startNever && j.prologsDone() == nil
}

// prologsDone returns what is missing: the success of a configured prolog, or a rank to start on.
func (j *Job) prologsDone() error {
	h := &j.holds
	if h.allFailed() {
		return fmt.Errorf("%w: every rank has failed", ErrOrder)
	}
	if i := slices.IndexFunc(h.actions, isProlog); i >= 0 {
		return fmt.Errorf("%w: %v has not ended", ErrOrder, h.actions[i].ActionKey)
	}
	for _, a := range j.actions {
		if a.Kind == jobstate.ActionProlog && !(a.stage == stageFinished && a.success) && (a.stage != stageIdle || j.isDue(a)) {
			return fmt.Errorf("%w: %v has not succeeded", ErrOrder, a.ActionKey)
		}
	}
	return nil
}

// mayLaunch reports whether an action of a kind may be launched now.
func (j *Job) mayLaunch(k jobstate.ActionKind) bool {
	switch {
	case j.stopping:
		return false
	case k == jobstate.ActionProlog:
		return j.holds.job.State() == jobstate.StateRun && j.start() == startOpen
	case k == jobstate.ActionEpilog:
		return j.isOver(j.start()) && !slices.ContainsFunc(j.holds.actions, isProlog)
	}
	return true
}

// isOver reports whether a job with that start is ending, and does not run on its nodes.
func (j *Job) isOver(s start) bool {
	job := j.holds.job
	return job.State() == jobstate.StateCleanup && (s == startNever || s == startDone && (job.Finished() || job.Released()))
}

func (j *Job) epilogsDue(s start) bool {
	return j.isOver(s) && j.holds.allocated() && j.holds.used()
}

// A phase says by the log which actions have begun: what is added to those later is not due.
type phase uint8

const (
	phaseWaiting  phase = iota // nothing was allocated
	phaseOpening               // after alloc, starts alone are in the log: housekeeping begins
	phaseOpen                  // no prolog has begun, and none is due once the executor was asked
	phasePrepared              // prologs have begun
	phaseClosed                // epilogs have begun
)

// phaseAfter returns the phase after an event, of which the state before it is known.
func (j *Job) phaseAfter(c jobstate.Context) phase {
	switch does := traitsOf(c); {
	case does.has(startsAction) && does.has(saysMode):
		return j.phase
	case j.endsHold(c), j.epilogsDue(j.loggedStart()):
		return phaseClosed
	case j.phase != phaseOpening && j.phase != phaseOpen:
		return j.phase
	case slices.ContainsFunc(j.actions, func(a *action) bool { return a.Kind == jobstate.ActionProlog && a.stage != stageIdle }):
		return phasePrepared
	}
	return phaseOpen
}

// begin posts the starts of the actions whose phase begins.
func (j *Job) begin() {
	if j.phase == phaseOpening {
		j.startHousekeeping()
	}
	if j.holds.job.State() == jobstate.StateRun && j.start() == startOpen {
		j.startAll(jobstate.ActionProlog)
	}
	if j.epilogsDue(j.start()) {
		j.startAll(jobstate.ActionEpilog)
	}
}

// isDue reports whether a prolog or epilog is to start when its phase, which has not begun, does.
func (j *Job) isDue(a *action) bool {
	begun := j.phase == phaseClosed || j.phase == phasePrepared && a.Kind == jobstate.ActionProlog
	if a.stage != stageIdle || begun || j.phase == phaseWaiting {
		return false
	}
	return !a.config.PerRank || j.r == nil || !j.ranksOf(a).IsEmpty()
}

// ranksOf returns the ranks that an action must hold: see ActionConfig.Ranks.
func (j *Job) ranksOf(a *action) *idset.Set {
	ranks := idset.Difference(&j.holds.all, &j.holds.dropped)
	ranks.SubtractWith(&j.holds.left)
	if a.config.Ranks != nil {
		leader := !a.config.PerRank && ranks.Contains(a.config.Leader)
		ranks.IntersectWith(a.config.Ranks)
		if leader {
			ranks.Insert(a.config.Leader)
		}
	}
	return ranks
}

// mayBeStarting reports whether a job that is ending may still be starting: no hold shows that.
func (j *Job) mayBeStarting() bool { return j.holds.ending() && j.start() == startPending }

// endsHold reports whether an event may end the last hold on ranks of a job that is ending and whose
// nodes were prepared or used. The starts of the epilogs must be in the log before it: else nothing
// may hold the ranks that the executor has released. Those that it released in RUN the job holds.
func (j *Job) endsHold(c jobstate.Context) bool {
	if !traitsOf(c).has(endsHold) || !j.holds.allocated() {
		return false
	}
	if _, ok := c.(*jobstate.FinishContext); ok {
		return j.holds.onlyJob()
	}
	return j.holds.job.State() == jobstate.StateCleanup && j.holds.used()
}

// maySweep reports whether nothing that package jobstate does not know prevents free and clean.
func (j *Job) maySweep() bool {
	return j.start() != startPending && j.holds.draining.IsEmpty() &&
		!(j.epilogsDue(j.start()) && slices.ContainsFunc(j.actions, func(a *action) bool { return a.Kind == jobstate.ActionEpilog && j.isDue(a) }))
}

// severityNonFatal is that of an exception that changes nothing, as flux-core has it for epilogs.
const severityNonFatal = 2

// maxNodelist bounds the hosts that an exception names, in bytes.
const maxNodelist = 64 << 10

// Take returns what the embedder has to do after all inputs since the last Take, and forgets it.
// Its Post lacks what Decide has returned. The timeout of a launch counts from its time in the
// log, the kill timeout of a signal from Take. Take allocates only for fragments, failures and
// new launches.
func (j *Job) Take(now eventlog.Timestamp) Effects {
	if j.advance(now); !j.stopped() {
		j.prepare()
	}
	for _, s := range j.effects.Signal {
		j.Signaled(now, s)
	}
	returned := j.decided
	out := j.close()
	out.Post = out.Post[returned:]
	if out.Free.R == nil {
		out.Free.R = &j.holds.scratch.none
	}
	return out
}

// Signaled tells the Job that a signal of an earlier Take goes out only now: its kill timeout
// counts from now. It looks at ranks of the signal until one runs, and allocates nothing.
func (j *Job) Signaled(now eventlog.Timestamp, s Signal) {
	j.advance(now)
	if a := j.find(s.Action); a != nil && a.run != nil && a.run.runs(s.Attempt, s.Ranks) { // else all were ended by force
		a.run.Signaled(j.now, s.Attempt)
	}
}

// prepare decides what follows, and what goes out with it.
func (j *Job) prepare() {
	j.react()
	if j.mayStart() {
		j.open()
		j.executor, j.effects.Start = executorAsked, true
	}
	j.effects.Launch = slices.DeleteFunc(j.effects.Launch, j.isMoot)
	j.askDrains()
	j.free()
}

// isMoot removes from a launch the ranks that an operator ended, and reports whether none is left.
func (j *Job) isMoot(l Launch) bool {
	a := j.action(l.Action)
	if a == nil || a.run == nil {
		return true
	}
	l.Ranks.IntersectWith(a.run.Of(l.Attempt, slotRunning))
	if l.Serves != nil {
		l.Serves.IntersectWith(a.run.Open())
	}
	return l.Ranks.IsEmpty()
}

// Decide posts the next events that follow from the inputs, and returns what was posted
// since the last Decide or Take, inputs included; nothing when nothing follows any more.
// Free and clean come last, so that an embedder can delay them by inputs. Others call only
// Take, which decides everything at once. The slice is valid until the next input.
func (j *Job) Decide(now eventlog.Timestamp) []LogEntry {
	if j.advance(now); len(j.effects.Post) == j.decided && !j.stopped() {
		j.follow()
	}
	fresh := j.effects.Post[j.decided:]
	j.decided = len(j.effects.Post)
	return fresh
}

// react posts events until nothing follows any more.
func (j *Job) react() {
	for j.follow() {
	}
}

// follow posts the next events, free and clean last, and reports whether there were any.
func (j *Job) follow() bool {
	n := len(j.effects.Post)
	j.confirmDrains()
	j.endUnstarted()
	j.begin()
	for _, a := range j.actions {
		if a.stage == stageActive && !j.holds.job.Closed() {
			j.progress(a)
		}
	}
	if j.hk != nil {
		j.progressHousekeeping()
	}
	if len(j.effects.Post) > n {
		return true
	}
	if j.holds.job.MayFree() && j.maySweep() {
		j.postEntry(LogJob, eventlog.Entry{Timestamp: j.stamp(j.now), Name: jobstate.EventFree})
	}
	if j.holds.job.MayClean() && j.maySweep() {
		j.postEntry(LogJob, eventlog.Entry{Timestamp: j.stamp(j.now), Name: jobstate.EventClean})
	}
	return len(j.effects.Post) > n
}

// endUnstarted ends a job in RUN that cannot start any more, or has dropped every rank.
func (j *Job) endUnstarted() {
	h := &j.holds
	if h.job.State() != jobstate.StateRun || j.start() != startNever && !h.dropped.ContainsAll(&h.all) {
		return
	}
	note := "a prolog has failed"
	if h.allFailed() { // and so are those that were dropped
		note = "every rank of the job has failed"
	} else if h.job.Released() {
		note = "the executor released the job before its start"
	}
	j.post(&jobstate.ExceptionContext{Type: "exec", Severity: 0, Note: note, UserID: jobstate.Some(j.owner)})
}

// startAll posts the start of each action of a kind that is due.
func (j *Job) startAll(k jobstate.ActionKind) {
	for _, a := range j.actions {
		if a.Kind == k && j.isDue(a) {
			j.startAction(a)
		}
	}
}

// startAction posts the start of an action, which has the first launch if that is on all ranks.
func (j *Job) startAction(a *action) {
	c := &jobstate.ActionStartContext{ActionKey: a.ActionKey, Resources: a.config.Resources, ActionMode: a.mode()}
	ranks := j.ranksOf(a)
	if c.Ranks.All = a.config.Ranks == nil; !c.Ranks.All {
		c.Ranks.Set = ranks
	}
	where := ranks
	if !a.config.PerRank {
		where = idset.Of(a.config.Leader)
	}
	if j.mayLaunch(a.Kind) && !where.Intersects(j.offline) {
		c.Attempt = 1
	}
	j.post(c)
	if c.Attempt == 1 {
		j.requestLaunch(a, 1, a.run.At(slotRunning))
	}
}

// launch launches an action on idle ranks that are online. It ends on the others, or waits there.
func (j *Job) launch(a *action, idle *idset.Set) {
	if off := idset.Intersect(idle, j.offline); !off.IsEmpty() {
		idle.SubtractWith(off)
		switch {
		case a.Kind == jobstate.ActionProlog:
			a.run.EndIdle(j.now, off, causeOffline, false)
		case !a.single() && !a.config.WaitOffline:
			a.run.EndIdle(j.now, off, causeOffline, true)
		default:
			a.run.waits = j.offline
		}
	}
	if !idle.IsEmpty() {
		j.relaunch(a, idle)
	}
}

func (j *Job) relaunch(a *action, ranks *idset.Set) {
	attempt := a.run.last + 1
	c := &jobstate.ActionLaunchContext{ActionKey: a.ActionKey, Attempt: attempt, Ranks: ranks}
	if a.foreign {
		c.ActionMode = a.run.spec.ActionMode
	}
	j.postAction(a, c)
	j.requestLaunch(a, attempt, ranks)
}

func (j *Job) requestLaunch(a *action, attempt uint32, ranks *idset.Set) {
	l := Launch{Action: a.ActionKey, Attempt: attempt, Ranks: ranks, Command: a.config.Command, Timeout: a.run.spec.Timeout}
	if a.single() {
		l.Serves = a.run.Open()
	}
	j.open()
	j.effects.Launch = append(j.effects.Launch, l)
}

// progress posts what follows from the failures and ends of a prolog or an epilog.
func (j *Job) progress(a *action) {
	switch {
	case !a.run.Has(slotIdle), a.run.waits != nil && a.run.waits == j.offline: // nothing has come back
	case j.mayLaunch(a.Kind):
		if a.config == nil {
			break // there is no command, and Unresolved lists it
		}
		j.launch(a, a.run.At(slotIdle))
	case a.Kind == jobstate.ActionProlog && j.holds.ending():
		a.run.EndIdle(j.now, a.run.At(slotIdle), causeCanceled, false)
	}
	j.takeRun(a, func(c *jobstate.ActionFailContext) bool { return c.Drain })
	if !a.run.Done() {
		j.release(a)
		return
	}
	if a.Kind == jobstate.ActionEpilog && j.cfg.WholeJob && !j.holds.draining.IsEmpty() {
		return // drained ranks go back with the others
	}
	a.run.TakeEnds()
	j.finish(a)
}

// takeRun posts the failures of an action, and hands out its signals.
func (j *Job) takeRun(a *action, drains func(*jobstate.ActionFailContext) bool) {
	failures, signals := a.run.Take()
	for i := range failures {
		c := &failures[i]
		c.Drain = drains(c)
		j.postAction(a, c)
	}
	if len(signals) > 0 {
		j.open()
		j.effects.Signal = append(j.effects.Signal, signals...)
	}
}

// release posts that an epilog has ended on ranks while others go on.
func (j *Job) release(a *action) {
	if a.Kind != jobstate.ActionEpilog || j.cfg.WholeJob {
		return
	}
	ends := a.run.TakeEnds()
	if len(ends) == 0 {
		return
	}
	c := &jobstate.ActionReleaseContext{ActionKey: a.ActionKey, Ranks: new(idset.Set)}
	for _, e := range ends {
		c.Ranks.Insert(e.Rank)
		c.Status = max(c.Status, e.Status)
	}
	j.post(c)
}

// finish posts the finish of an action that has ended on every rank, after an exception if it
// failed. A fatal one comes after the starts of the epilogs, so that no rank is freed in between.
func (j *Job) finish(a *action) {
	o := a.run.Outcome()
	status, prolog, ending := o.Status, a.Kind == jobstate.ActionProlog, j.holds.ending()
	tolerated := status != 0 && prolog && !a.run.canceled && !ending && j.tolerates(&o)
	switch {
	case status == 0 || prolog && ending:
	case !prolog:
		j.raise(a.Kind, severityNonFatal, o.Note, nil)
	case tolerated:
		status = 0
		j.raise(a.Kind, severityNonFatal, o.Note, j.failedRanks(o.Failed))
	default:
		j.startAll(jobstate.ActionEpilog)
		j.raise(a.Kind, 0, o.Note, nil)
	}
	o.Tolerated = tolerated
	j.open()
	j.effects.Results = append(j.effects.Results, o.ActionResult)
	j.post(&jobstate.ActionFinishContext{ActionKey: a.ActionKey, Status: status})
}

// tolerates reports whether the job may go on without the ranks that failed in its prologs. If it
// keeps such ranks, it must not start beside a prolog that may still run there (I11).
func (j *Job) tolerates(o *outcome) bool {
	t := &j.cfg.Tolerate
	return (o.reported || t.AnyFailure) && (t.Drop || !o.mayRun) && !o.Failed.IsEmpty() &&
		t.allows(idset.Union(&j.holds.failed, o.Failed), j.holds.all.Len())
}

// failedRanks returns what an exception says about ranks that are tolerated.
func (j *Job) failedRanks(ranks *idset.Set) *jobstate.FailedRanks {
	f := &jobstate.FailedRanks{Ranks: ranks, Nodelist: j.hosts(ranks), Action: jobstate.FailedKeep}
	if j.cfg.Tolerate.Drop {
		f.Action = jobstate.FailedDrop
	}
	if len(f.Nodelist) > maxNodelist {
		f.Nodelist = ""
	}
	return f
}

func (j *Job) raise(k jobstate.ActionKind, severity uint8, note string, f *jobstate.FailedRanks) {
	j.post(&jobstate.ExceptionContext{
		Type: k.String(), Severity: severity, Note: note, UserID: jobstate.Some(j.owner), Failed: f,
	})
}
