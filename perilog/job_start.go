package perilog

import (
	"slices"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
)

// An executor says whether the executor was asked to start the job, until the log
// has its answer.
type executor uint8

const (
	executorIdle    executor = iota // it was not asked
	executorAsked                   // it was asked
	executorUnknown                 // an earlier life of the job may have asked it
)

// A start says whether the job has started, and whether it may still. All that depends
// on it asks here.
type start uint8

const (
	startOpen    start = iota // the executor was not asked, and may be
	startPending              // it was asked, or may have been, and the log does not have its answer
	startDone                 // the job has started
	startNever                // it did not, and cannot any more
)

// start returns how far the start is.
func (j *Job) start() start { return j.startIf(j.executor != executorIdle) }

// loggedStart returns how far the start may be as far as the log tells, which does not
// have the question to the executor, nor what NotStarted says.
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

// mayStart reports whether to ask the executor: the job is in RUN, every prolog that
// was due has succeeded on a rank that is left, and no other prolog is active.
func (j *Job) mayStart() bool {
	return !j.stopping && j.executor != executorAsked && j.holds.job.MayStart() && j.start() != startNever && j.prologsDone() == nil
}

// isOver reports whether a job whose start is that far is ending, and does not run on
// its nodes.
func (j *Job) isOver(s start) bool {
	job := j.holds.job
	return job.State() == jobstate.StateCleanup && (s == startNever || s == startDone && (job.Finished() || job.Released()))
}

// epilogsDue reports whether epilogs are due where the start is that far: the job is
// over, has resources, and its nodes were prepared or used.
func (j *Job) epilogsDue(s start) bool {
	return j.isOver(s) && j.holds.allocated() && j.holds.used()
}

// A phase says which actions have begun, as the log tells. What a configuration has
// later is not due any more.
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
	if start, ok := c.(*jobstate.ActionStartContext); ok && start.Owned() {
		return j.phase
	}
	switch {
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

// isDue reports whether a prolog or epilog is to start when its phase begins: that did
// not begin yet, and the action has something to run on for this job.
func (j *Job) isDue(a *action) bool {
	begun := j.phase == phaseClosed || j.phase == phasePrepared && a.Kind == jobstate.ActionProlog
	if a.stage != stageIdle || begun || j.phase == phaseWaiting {
		return false
	}
	return !a.config.PerRank || j.r == nil || !j.ranksOf(a).IsEmpty()
}

// ranksOf returns the ranks that an action has to hold: those that the configuration
// names, and the leader of a single command, if it is a rank of the job.
func (j *Job) ranksOf(a *action) *idset.Set {
	ranks := idset.Difference(j.holds.all, &j.holds.dropped)
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
