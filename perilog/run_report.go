package perilog

import (
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
)

// Report applies a report, as Job.Report does. It ignores the wait status of a process that was
// stopped or continued. An exit after SIGTERM counts as timed out or canceled: the command did
// not do the whole work.
func (r *run) Report(now eventlog.Timestamp, rep Report) Ack {
	r.now = max(r.now, now)
	p := r.process(rep.Rank)
	switch {
	case p == nil || p.stage == slotIdle:
		return AckUnknown
	case rep.Attempt != p.attempt:
		return AckStale
	case p.stage == slotEnded:
		return AckEnded
	case rep.Kind < ReportStarted || rep.Kind > ReportOutput, rep.Kind == ReportExited && stopped(normal(rep.Status)):
		return AckIgnored
	}
	lost := p.stage == slotLost
	if lost {
		r.Reattach(r.now, idset.Of(rep.Rank)) // which is news, whatever the report says
	}
	rep.Status = normal(rep.Status)
	l := r.launchOf(p.attempt)
	switch rep.Kind {
	case ReportStarted:
		if p.started && !lost {
			return AckRepeated
		}
		p.started = true
	case ReportOutput:
		if answer := r.output(rep.Rank, p, rep.Line); !lost {
			return answer
		}
	case ReportExited:
		r.processEnded(rep.Rank, p, l.cause(exited(rep.Status)), rep.Status, rep.Detail)
	case ReportLaunchFailed:
		r.processEnded(rep.Rank, p, l.cause(causeLaunchFailed), orStatus(rep.Status, statusFailed), rep.Detail)
	case ReportUnreachable:
		r.orphan(causeUnreachable, statusUnreachable)
		r.processEnded(rep.Rank, p, causeUnreachable, statusUnreachable, rep.Detail)
	}
	return AckApplied
}

// exited returns what an exit with a wait status means.
func exited(status int32) endCause {
	switch {
	case status == 0:
		return causeOK
	case signalOf(status) != 0:
		return causeSignaled
	}
	return causeFailed
}

// cause returns the cause if the run itself asked for the end, or else c.
func (l *launch) cause(c endCause) endCause {
	switch l.phase {
	case launchCanceling:
		return causeCanceled
	case launchTimingOut:
		return causeTimedOut
	}
	return c
}

// processEnded ends a process that runs: its rank, or all ranks of a single command.
func (r *run) processEnded(rank uint32, p *slot, cause endCause, status int32, detail string) {
	if cause != causeOK {
		status = orStatus(status, statusTerminated)
		r.detail(rank, cause, status, detail)
	}
	r.stopped(p)
	if r.spec.PerRank {
		r.rankEnded(rank, p, cause, status)
	} else {
		r.eachOpen(r.spec.Ranks, func(rank uint32, s *slot) { r.rankEnded(rank, s, cause, status) })
		if p.cause != 0 { // causeControl, which stands also where no rank is left
			cause, status = p.cause, orStatus(status, statusFailed)
		}
		p.cause, p.status = cause, status
	}
}

// stopped notes that a process neither runs nor is lost any more.
func (r *run) stopped(p *slot) {
	switch p.stage {
	case slotRunning:
		r.launchOf(p.attempt).alive--
	case slotLost:
		r.launchOf(p.attempt).lost--
	}
	r.enter(p, slotEnded)
	r.end = r.now
	r.forget()
}

// orphan notes that a command may still run, and drains the leader of a single command if it is held.
func (r *run) orphan(cause endCause, status int32) {
	if r.orphaned = true; r.spec.PerRank {
		return
	}
	if i, ok := r.index(r.spec.Leader.Value); ok && !r.slots[i].drained {
		r.slots[i].drained = true
		r.fail(r.spec.Leader.Value, cause, status, "", true)
	}
}

// rankEnded ends a rank and reports it. What a control line said before stands: the node
// failed even if the command then succeeds there. If it does not, that is a second failure.
func (r *run) rankEnded(rank uint32, s *slot, cause endCause, status int32) {
	reported := s.cause == causeControl || s.cause == causeReported && (cause == causeOK || cause == causeCanceled)
	if reported {
		cause, status = s.cause, orStatus(status, statusFailed)
	}
	r.endSlot(s, cause, status)
	r.ended = append(r.ended, rankEnd{Rank: rank, Status: status})
	if cause == causeOK || cause == causeCanceled || reported {
		return
	}
	// The end of a single command says nothing about any node.
	drain := r.spec.PerRank && !s.drained && causes[cause].drains
	s.drained = s.drained || drain
	r.fail(rank, cause, status, "", drain)
}

// endSlot ends a rank without a report.
func (r *run) endSlot(s *slot, cause endCause, status int32) {
	if r.spec.PerRank {
		r.stopped(s)
	}
	s.stage, s.cause, s.status = slotEnded, cause, status
	r.open--
	r.end = r.now
}

// endLead ends a single command without a report.
func (r *run) endLead(cause endCause, status int32) {
	r.stopped(&r.lead)
	r.lead.cause, r.lead.status = cause, status
}

// fail reports that a rank failed, with the ranks before it that failed alike.
func (r *run) fail(rank uint32, cause endCause, status int32, note string, drain bool) {
	r.note(note, rank)
	if n := len(r.failures); n > 0 {
		if last := &r.failures[n-1]; last.Cause == cause.name() && last.Status == status && last.Note == note && last.Drain == drain {
			last.Ranks.Insert(rank)
			return
		}
	}
	r.failures = append(r.failures, jobstate.ActionFailContext{
		ActionKey: r.spec.ActionKey, Ranks: idset.Of(rank), Cause: cause.name(), Status: status, Note: note, Drain: drain,
	})
}

// output obeys a control line, which costs what it changes.
func (r *run) output(rank uint32, p *slot, line []byte) Ack {
	c, ok, err := parseControl(line)
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
			if rank != r.spec.Leader.Value { // which ends with the command
				r.rankEnded(rank, s, causeOK, 0)
				changed = true
			}
		})
	}
	if !changed {
		return AckIgnored
	}
	return AckApplied
}

// firstNamed returns the ranks that a line names and no line before it.
func firstNamed(left **idset.Set, named *idset.Set) *idset.Set {
	fresh := idset.Intersect(named, *left)
	if !fresh.IsEmpty() {
		*left = idset.Difference(*left, fresh)
	}
	return fresh
}

// misunderstood fails the action there, and a single command on all ranks that have not ended.
func (r *run) misunderstood(rank uint32, p *slot, err error) Ack {
	if p.cause == causeControl {
		return AckRepeated
	}
	r.detail(rank, causeControl, 0, err.Error())
	failed := func(rank uint32, s *slot) {
		if s.cause == causeControl {
			return
		}
		drain := r.spec.PerRank && !s.drained
		s.cause, s.drained = causeControl, s.drained || drain
		r.fail(rank, causeControl, statusFailed, err.Error(), drain)
	}
	if !r.spec.PerRank {
		p.cause = causeControl
		r.eachOpen(r.spec.Ranks, failed)
	} else {
		failed(rank, p)
	}
	return AckApplied
}

// reported notes and drains a node that failed, and reports whether that is new.
func (r *run) reported(rank uint32, s *slot, note string) bool {
	if s.cause == causeReported || s.cause == causeControl && s.drained {
		return false
	}
	note = clip(note, maxNote)
	drain := !s.drained
	s.cause, s.drained = max(s.cause, causeReported), true // a line that is not understood outweighs it
	r.detail(rank, causeReported, 0, note)
	r.fail(rank, causeReported, statusFailed, note, drain)
	return true
}

// EndIdle ends ranks on which nothing was launched: they are offline, or the run was canceled.
func (r *run) EndIdle(now eventlog.Timestamp, ranks *idset.Set, cause endCause, drain bool) {
	r.now = max(r.now, now)
	status := int32(statusUnreachable)
	if cause == causeCanceled {
		status = statusTerminated
	}
	if !r.spec.PerRank {
		r.endLead(cause, status)
		ranks = r.spec.Ranks
	}
	r.eachOpen(ranks, func(rank uint32, s *slot) {
		r.endSlot(s, cause, status)
		r.ended = append(r.ended, rankEnd{Rank: rank, Status: status})
		if cause != causeCanceled {
			r.fail(rank, cause, status, "", drain && !s.drained)
		}
		s.drained = s.drained || drain
	})
}

// Force ends ranks for an operator, with a wait status. It ends a single command if no rank is
// left. What may run gets SIGTERM, or never starts: a node that comes back must not run it for a
// job that has left.
func (r *run) Force(now eventlog.Timestamp, ranks *idset.Set, status int32, who string) {
	r.now = max(r.now, now)
	stop := func(rank uint32, p *slot) {
		if p.stage == slotRunning || p.stage == slotLost {
			r.signal(p.attempt, idset.Of(rank), sigterm)
		}
	}
	r.eachOpen(ranks, func(rank uint32, s *slot) {
		if r.spec.PerRank {
			stop(rank, s)
		}
		r.endSlot(s, causeForced, status)
		r.ended = append(r.ended, rankEnd{Rank: rank, Status: status, Forced: true})
		r.detail(rank, causeForced, status, who)
		r.fail(rank, causeForced, status, "by "+who, false)
	})
	if !r.spec.PerRank && r.open == 0 && r.lead.stage != slotEnded {
		stop(r.spec.Leader.Value, &r.lead)
		r.endLead(causeForced, status)
	}
}

// Fold folds a failure that is in the log, unless the run knows it.
func (r *run) Fold(t eventlog.Timestamp, c *jobstate.ActionFailContext) {
	r.now = max(r.now, t)
	cause, status := causeNamed(c.Cause), normal(c.Status)
	running := cause == causeReported || cause == causeControl
	if cause != causeForced {
		status = orStatus(status, statusFailed)
	}
	r.each(c.Ranks, func(rank uint32, s *slot) {
		s.drained = s.drained || c.Drain
		switch {
		case s.stage == slotEnded, running && s.cause == cause:
			return
		case running:
			s.cause = max(s.cause, cause)
		default:
			r.endSlot(s, cause, status)
		}
		r.note(c.Note, rank)
		r.detail(rank, cause, status, "before a restart")
	})
	if !r.spec.PerRank && !running && r.lead.stage != slotEnded && r.open == 0 {
		r.endLead(cause, status)
	}
}

// Released folds an end on ranks that is in the log, unless the run knows it.
func (r *run) Released(t eventlog.Timestamp, ranks *idset.Set, status int32) {
	r.now = max(r.now, t)
	if status = normal(status); stopped(status) {
		status = statusFailed
	}
	r.eachOpen(ranks, func(_ uint32, s *slot) {
		cause := s.cause
		if cause == 0 {
			cause = exited(status)
		}
		r.endSlot(s, cause, status)
	})
}

// Take returns what failed since the last call, and the signals to send.
func (r *run) Take() (failures []jobstate.ActionFailContext, signals []Signal) {
	failures, signals = r.failures, r.signals
	r.failures, r.signals = nil, nil
	return failures, signals
}

// TakeEnds returns the ranks that ended since the last call, in that order. The slice is valid
// until the next call of a method.
func (r *run) TakeEnds() []rankEnd {
	out := r.ended
	r.ended = r.ended[:0]
	return out
}
