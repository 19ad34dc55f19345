package perilog

import (
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate/fsd"
)

// Deadline returns the time at which Tick is to be called next: that of the
// timeout, or of the kill timeout once the run was told to stop. It returns
// false if there is none, because the run is not running, or has no timeout and
// so is as long as its command.
func (r *Run) Deadline() (eventlog.Timestamp, bool) {
	return r.deadline, r.deadline != 0
}

// Remaining returns the time from now until the deadline: 0 if it has passed,
// infinite if there is none.
func (r *Run) Remaining(now eventlog.Timestamp) fsd.Duration {
	if r.deadline == 0 {
		return fsd.Infinity()
	}
	return fsd.Duration(max(0, r.deadline-r.latest(now)))
}

// Tick tells the run that time has passed, and reports whether a timer was due.
// Nothing else makes timers fire: a report that comes before the Tick counts.
// At the timeout, SIGTERM is asked for and the kill timeout begins, at now. At
// its end what is still running is given up: those ranks end.
func (r *Run) Tick(now eventlog.Timestamp) bool {
	r.advance(now)
	due := false
	for r.deadline != 0 && r.deadline <= r.now {
		due = true
		if r.state == RunRunning {
			r.terminate(RunTimingOut)
			continue
		}
		r.giveUp()
	}
	return due
}

// terminate sends SIGTERM to what is running and arms the kill timeout.
func (r *Run) terminate(state RunState) {
	r.state = state
	r.deadline = after(r.now, r.spec.KillTimeout)
	r.request(Request{Kind: RequestSignal, Ranks: r.Active(), Signal: sigterm})
}

// giveUp ends what is deaf to SIGTERM.
func (r *Run) giveUp() {
	cause := CauseTimedOut
	if r.state == RunCanceling {
		cause = CauseCanceledTimedOut
	}
	active := r.Active()
	if r.spec.Kill {
		r.request(Request{Kind: RequestSignal, Ranks: active, Signal: sigkill})
	}
	r.give(active, cause, statusTerminated, "deaf to SIGTERM")
}

// give ends the processes on the given ranks, all of which are running.
func (r *Run) give(ranks *idset.Set, cause Cause, status int32, detail string) {
	if cause != CauseAbandoned {
		r.orphan(cause)
	}
	for rank := range ranks.All() {
		p, i := r.process(rank)
		r.ended(p, i, Report{Rank: rank, Detail: detail}, cause, status)
	}
	r.finishIfDone()
}

// Active returns a new set of the ranks on which the command may be running. It
// costs by ranks.
func (r *Run) Active() *idset.Set {
	if !r.spec.PerRank {
		if r.lead.launched {
			return idset.Of(r.spec.Leader)
		}
		return new(idset.Set)
	}
	return r.ranks(func(s *slot) bool { return s.launched })
}

// ranks returns a new set of the ranks whose slots match.
func (r *Run) ranks(match func(*slot) bool) *idset.Set {
	set := new(idset.Set)
	for _, span := range r.spans {
		from, in := uint32(0), false
		for rank := span.first; ; rank++ {
			ok := match(&r.slots[span.base+int32(rank-span.first)])
			switch {
			case ok && !in:
				from, in = rank, true
			case !ok && in:
				set.InsertRange(from, rank-1)
				in = false
			}
			if rank == span.last {
				break
			}
		}
		if in {
			set.InsertRange(from, span.last)
		}
	}
	return set
}

// Exception tells the run that an exception was raised on the job. A fatal one,
// of severity 0, cancels the run if its policy says so, as Cancel does; others
// are ignored.
func (r *Run) Exception(now eventlog.Timestamp, severity uint8) Answer {
	r.advance(now)
	if severity != 0 {
		return AnswerIgnored
	}
	r.fatal = true
	if r.spec.Cancel != CancelOnException {
		return AnswerIgnored
	}
	return r.cancel()
}

// Cancel cancels the run: SIGTERM is asked for, once, and the kill timeout
// begins. What ends by then was canceled, and is not drained for it; what does
// not is "canceled then timed out", and is. A run that is being stopped already
// goes on as it is.
func (r *Run) Cancel(now eventlog.Timestamp) Answer {
	r.advance(now)
	return r.cancel()
}

func (r *Run) cancel() Answer {
	switch r.state {
	case RunReady:
		return AnswerEarly
	case RunCanceling:
		return AnswerRepeated
	case RunTimingOut:
		return AnswerIgnored
	case RunDone:
		return AnswerEnded
	}
	r.canceled = true
	r.terminate(RunCanceling)
	return AnswerApplied
}

// ForceFinish ends those of the given ranks where the command may be running,
// or all of them if ranks is nil, on behalf of who, a name for the records.
// Nothing is signalled and nothing drained. Where the spec has one command for
// all ranks, any of them stands for it.
func (r *Run) ForceFinish(now eventlog.Timestamp, ranks *idset.Set, who string) Answer {
	r.advance(now)
	switch r.state {
	case RunReady:
		return AnswerEarly
	case RunDone:
		return AnswerEnded
	}
	active := r.Active()
	switch {
	case ranks == nil:
	case r.spec.PerRank:
		if !r.spec.Ranks.Intersects(ranks) {
			return AnswerStranger
		}
		active.IntersectWith(ranks)
	case !r.spec.Ranks.Intersects(ranks) && !ranks.Contains(r.spec.Leader):
		return AnswerStranger
	}
	if active.IsEmpty() {
		return AnswerEnded
	}
	r.give(active, CauseAbandoned, statusFailed, "by "+who)
	return AnswerApplied
}
