package run

import (
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
)

// ReportKind has the values of package perilog, which documents them. So has Ack below.
type ReportKind uint8

// The kinds of reports.
const (
	ReportStarted ReportKind = 1 + iota
	ReportExited
	ReportLaunchFailed
	ReportUnreachable
	ReportOutput
)

// A Report is what happened where the command runs.
type Report struct {
	Kind    ReportKind
	Attempt uint32 // the attempt of the launch
	Rank    uint32
	Status  int32  // a wait status, as wait(2) gives it
	Detail  string // in words, for administrators only; may be empty
	Line    []byte // of ReportOutput; not retained
}

// Ack says what became of a report.
type Ack uint8

// The answers.
const (
	AckApplied Ack = 1 + iota
	AckRepeated
	AckEnded
	AckStale
	AckUnknown
	AckIgnored
)

// Report applies a report. Reports may come in any order, twice, and about anything: one
// that makes no sense changes nothing. A report about a process that was lost in a restart
// reattaches it, so it is AckApplied, whatever it says.
//
// Report ignores the wait status of a process that was stopped or continued. An exit after
// SIGTERM counts as timed out or canceled: the command did not do the whole work.
func (r *Run) Report(now eventlog.Timestamp, rep Report) Ack {
	r.advance(now)
	p := r.process(rep.Rank)
	switch {
	case p == nil || p.stage == stageIdle:
		return AckUnknown
	case rep.Attempt != p.attempt:
		return AckStale
	case p.stage == stageEnded:
		return AckEnded
	case rep.Kind < ReportStarted || rep.Kind > ReportOutput, rep.Kind == ReportExited && stopped(normal(rep.Status)):
		return AckIgnored
	}
	if p.stage == stageLost {
		r.Reattach(r.now, idset.Of(rep.Rank))
		r.applyReport(rep, p)
		return AckApplied
	}
	return r.applyReport(rep, p)
}

func (r *Run) applyReport(rep Report, p *slot) Ack {
	rep.Status = normal(rep.Status)
	l := r.launchOf(p)
	switch rep.Kind {
	case ReportStarted:
		if p.started {
			return AckRepeated
		}
		p.started = true
	case ReportOutput:
		return r.output(rep.Rank, p, rep.Line)
	case ReportExited:
		cause, status := exited(rep.Status)
		r.processEnded(rep.Rank, p, l.cause(cause), status, rep.Detail)
	case ReportLaunchFailed:
		r.processEnded(rep.Rank, p, l.cause(CauseLaunchFailed), orStatus(rep.Status, statusFailed), rep.Detail)
	case ReportUnreachable:
		r.orphan(CauseUnreachable, statusUnreachable)
		r.processEnded(rep.Rank, p, CauseUnreachable, statusUnreachable, rep.Detail)
	}
	return AckApplied
}

// exited returns what an exit with a wait status means.
func exited(status int32) (Cause, int32) {
	switch {
	case status == 0:
		return CauseOK, 0
	case signalOf(status) != 0:
		return CauseSignaled, status
	}
	return CauseFailed, status
}

// cause returns the cause if the run itself asked for the end, or else c.
func (l *launch) cause(c Cause) Cause {
	switch l.phase {
	case phaseCanceling:
		return CauseCanceled
	case phaseTimingOut:
		return CauseTimedOut
	}
	return c
}

// processEnded ends a process that runs: its rank, or all ranks of a single command.
func (r *Run) processEnded(rank uint32, p *slot, cause Cause, status int32, detail string) {
	if cause != CauseOK {
		status = orStatus(status, statusTerminated)
		r.detail(rank, cause, status, detail)
	}
	r.stopped(p)
	if r.spec.PerRank {
		r.rankEnded(rank, p, cause, status)
	} else {
		r.eachOpen(r.spec.Ranks, func(rank uint32, s *slot) { r.rankEnded(rank, s, cause, status) })
		if p.cause != 0 { // CauseControl, which stands also where no rank is left
			cause, status = p.cause, orStatus(status, statusFailed)
		}
		p.cause, p.status = cause, status
	}
	r.finish()
}

// stopped notes that a process neither runs nor is lost any more.
func (r *Run) stopped(p *slot) {
	switch p.stage {
	case stageRunning:
		r.launchOf(p).alive--
	case stageLost:
		r.launchOf(p).lost--
	}
	r.enter(p, stageEnded)
	r.forget()
}

// orphan notes that a command may still run after it was given up or lost. It drains the
// leader of a single command, if the action holds that node.
func (r *Run) orphan(cause Cause, status int32) {
	if r.orphaned = true; r.spec.PerRank {
		return
	}
	if i, ok := r.index(r.spec.Leader); ok && !r.slots[i].drained {
		r.slots[i].drained = true
		r.fail(Failure{Cause: cause, Status: status, Drain: true}, r.spec.Leader)
	}
}

// rankEnded ends a rank and reports it. What a control line said before stands: the node
// failed even if the command then succeeds there. If it does not, that is a second failure.
func (r *Run) rankEnded(rank uint32, s *slot, cause Cause, status int32) {
	reported := s.cause == CauseControl || s.cause == CauseReported && (cause == CauseOK || cause == CauseCanceled)
	if reported {
		cause, status = s.cause, orStatus(status, statusFailed)
	}
	r.endSlot(s, cause, status)
	r.ended = append(r.ended, RankEnd{Rank: rank, Status: status})
	if cause == CauseOK || cause == CauseCanceled || reported {
		return
	}
	// The end of a single command says nothing about any node.
	drain := r.spec.PerRank && !s.drained && causes[cause].drains
	s.drained = s.drained || drain
	r.fail(Failure{Cause: cause, Status: status, Drain: drain}, rank)
}

// endSlot ends a rank without a report.
func (r *Run) endSlot(s *slot, cause Cause, status int32) {
	if r.spec.PerRank {
		r.stopped(s)
	}
	s.stage, s.cause, s.status = stageEnded, cause, status
	r.open--
}

// endLead ends a single command without a report.
func (r *Run) endLead(cause Cause, status int32) {
	r.stopped(&r.lead)
	r.lead.cause, r.lead.status = cause, status
}

// fail reports that a rank failed, with the ranks before it that failed alike.
func (r *Run) fail(f Failure, rank uint32) {
	r.note(f.Note, rank)
	if n := len(r.failures); n > 0 {
		if last := &r.failures[n-1]; last.Cause == f.Cause && last.Status == f.Status && last.Note == f.Note && last.Drain == f.Drain {
			last.Ranks.Insert(rank)
			return
		}
	}
	f.Ranks = idset.Of(rank)
	r.failures = append(r.failures, f)
}

func (r *Run) finish() {
	if r.Done() && r.end == 0 {
		r.end = r.now
	}
}

// output obeys a control line, which costs what it changes.
func (r *Run) output(rank uint32, p *slot, line []byte) Ack {
	c, ok, err := ParseControl(line)
	switch {
	case !ok, err != nil && r.spec.IgnoreControl:
		return AckIgnored
	case err != nil:
		return r.misunderstood(rank, p, err)
	}
	if c.Self {
		c.Failed = idset.Of(rank)
	}
	changed := false
	r.eachOpen(firstNamed(&r.unreported, c.Failed), func(rank uint32, s *slot) { changed = r.reported(rank, s, c.Note) || changed })
	if !r.spec.PerRank {
		r.eachOpen(firstNamed(&r.unreleased, c.Released), func(rank uint32, s *slot) {
			if rank != r.spec.Leader { // which ends with the command
				r.rankEnded(rank, s, CauseOK, 0)
				changed = true
			}
		})
	}
	r.finish()
	if !changed {
		return AckIgnored
	}
	return AckApplied
}

// firstNamed returns the ranks that a line names and no line before it, which are no longer
// left then.
func firstNamed(left **idset.Set, named *idset.Set) *idset.Set {
	fresh := idset.Intersect(named, *left)
	if !fresh.IsEmpty() {
		*left = idset.Difference(*left, fresh)
	}
	return fresh
}

// misunderstood fails the action there, and a single command on all ranks that have not ended.
func (r *Run) misunderstood(rank uint32, p *slot, err error) Ack {
	if p.cause == CauseControl {
		return AckRepeated
	}
	r.detail(rank, CauseControl, 0, err.Error())
	failed := func(rank uint32, s *slot) {
		if s.cause == CauseControl {
			return
		}
		drain := r.spec.PerRank && !s.drained
		s.cause, s.drained = CauseControl, s.drained || drain
		r.fail(Failure{Cause: CauseControl, Status: statusFailed, Note: err.Error(), Drain: drain}, rank)
	}
	if !r.spec.PerRank {
		p.cause = CauseControl
		r.eachOpen(r.spec.Ranks, failed)
	} else {
		failed(rank, p)
	}
	return AckApplied
}

// reported notes that a node failed where the action has not ended, and drains it. It reports
// whether that is new.
func (r *Run) reported(rank uint32, s *slot, note string) bool {
	if s.cause == CauseReported || s.cause == CauseControl && s.drained {
		return false
	}
	note = clip(note, maxNote)
	drain := !s.drained
	s.mark(CauseReported)
	s.drained = true
	r.detail(rank, CauseReported, 0, note)
	r.fail(Failure{Cause: CauseReported, Status: statusFailed, Note: note, Drain: drain}, rank)
	return true
}

// mark notes what a control line said. One that is not understood outweighs the others.
func (s *slot) mark(c Cause) {
	if s.cause != CauseControl {
		s.cause = c
	}
}

// EndIdle ends ranks on which nothing was launched, because their nodes are offline
// or the run was canceled before.
func (r *Run) EndIdle(now eventlog.Timestamp, ranks *idset.Set, cause Cause, drain bool) {
	r.advance(now)
	status := int32(statusUnreachable)
	if cause == CauseCanceled {
		status = statusTerminated
	}
	if !r.spec.PerRank {
		r.endLead(cause, status)
		ranks = r.spec.Ranks
	}
	r.eachOpen(ranks, func(rank uint32, s *slot) {
		r.endSlot(s, cause, status)
		r.ended = append(r.ended, RankEnd{Rank: rank, Status: status})
		if cause != CauseCanceled {
			r.fail(Failure{Cause: cause, Status: status, Drain: drain && !s.drained}, rank)
		}
		s.drained = s.drained || drain
	})
	r.finish()
}

// Force ends ranks for an operator, with a wait status, whatever the command does
// there. It signals and drains nothing. It ends a single command if no rank is left.
func (r *Run) Force(now eventlog.Timestamp, ranks *idset.Set, status int32, who string) {
	r.advance(now)
	r.eachOpen(ranks, func(rank uint32, s *slot) {
		r.endSlot(s, CauseForced, status)
		r.ended = append(r.ended, RankEnd{Rank: rank, Status: status, Forced: true})
		r.detail(rank, CauseForced, status, who)
		r.fail(Failure{Cause: CauseForced, Status: status, Note: "by " + who}, rank)
	})
	if !r.spec.PerRank && r.open == 0 && r.lead.stage != stageEnded {
		r.endLead(CauseForced, status)
	}
	r.finish()
}

// Fold folds a failure that is in the log. It changes nothing if the run knows it.
func (r *Run) Fold(t eventlog.Timestamp, f Failure) {
	r.advance(t)
	running := f.Cause == CauseReported || f.Cause == CauseControl
	if f.Status = normal(f.Status); f.Cause != CauseForced {
		f.Status = orStatus(f.Status, statusFailed)
	}
	r.each(idset.Intersect(f.Ranks, r.spec.Ranks), func(rank uint32, s *slot) {
		s.drained = s.drained || f.Drain
		switch {
		case s.stage == stageEnded, running && s.cause == f.Cause:
			return
		case running:
			s.mark(f.Cause)
		default:
			r.endSlot(s, f.Cause, f.Status)
		}
		r.note(f.Note, rank)
		r.detail(rank, f.Cause, f.Status, "before a restart")
	})
	if !r.spec.PerRank && !running && r.lead.stage != stageEnded && r.open == 0 {
		r.endLead(f.Cause, f.Status)
	}
	r.finish()
}

// Released folds an end on ranks that is in the log. It changes nothing if the run
// knows it.
func (r *Run) Released(t eventlog.Timestamp, ranks *idset.Set, status int32) {
	r.advance(t)
	if status = normal(status); stopped(status) {
		status = statusFailed
	}
	r.eachOpen(idset.Intersect(ranks, r.spec.Ranks), func(_ uint32, s *slot) {
		cause := s.cause
		if cause == 0 {
			cause, _ = exited(status)
		}
		r.endSlot(s, cause, status)
	})
	r.finish()
}

// Take returns what failed since the last call, and the signals to send.
func (r *Run) Take() (failures []Failure, signals []Signal) {
	failures, signals = r.failures, r.signals
	r.failures, r.signals = nil, nil
	return failures, signals
}

// TakeEnds returns the ranks that ended since the last call, in the order of their
// ends. The slice is valid until the next call of a method.
func (r *Run) TakeEnds() []RankEnd {
	out := r.ended
	r.ended = r.ended[:0]
	return out
}
