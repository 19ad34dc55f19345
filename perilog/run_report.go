package perilog

import (
	"strconv"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
)

// A ReportKind says what happened on a rank. The zero ReportKind is invalid.
type ReportKind uint8

// The kinds of reports.
const (
	ReportStarted      ReportKind = 1 + iota // the command started
	ReportExited                             // it ended, with the wait status Status
	ReportLaunchFailed                       // it could not be launched; Status tells why, 0 for no status
	ReportUnreachable                        // contact with the node was lost
	ReportOutput                             // it wrote the line Line to its standard output
)

// A Report is what happened on one rank, where the command runs.
type Report struct {
	Kind   ReportKind
	Rank   uint32
	Status int32  // a wait status, as wait(2) gives it
	Detail string // in words, for administrators only; may be empty
	Line   []byte // of ReportOutput; not retained
}

// An Answer says what became of an input of a [Run].
type Answer uint8

// The answers. The zero Answer is invalid. All but AnswerApplied mean that
// nothing has changed.
const (
	AnswerApplied  Answer = 1 + iota // it changed something
	AnswerRepeated                   // it was told before
	AnswerEnded                      // the rank, or the run, had ended already
	AnswerStranger                   // the command does not run on that rank
	AnswerEarly                      // the run has not been started
	AnswerIgnored                    // it is legal and without effect, as output that is no control line
)

// String returns "applied", "repeated", "ended", "stranger", "early" or
// "ignored"; another value prints as Answer(n).
func (a Answer) String() string {
	switch a {
	case AnswerApplied:
		return "applied"
	case AnswerRepeated:
		return "repeated"
	case AnswerEnded:
		return "ended"
	case AnswerStranger:
		return "stranger"
	case AnswerEarly:
		return "early"
	case AnswerIgnored:
		return "ignored"
	}
	return "Answer(" + strconv.Itoa(int(a)) + ")"
}

// Report tells the run what happened on a rank. It retains nothing of rep but
// a part of Detail. Reports may come in any order, twice, and of anything: what
// makes no sense is answered and changes nothing. A wait status of a process
// that was stopped or goes on is ignored, and so is a kind that is none.
//
// An exit after SIGTERM counts as timed out or canceled, whatever its status:
// who was told to stop did not do the whole work.
//
// It costs the logarithm of the ranges of ranks, and does not allocate where
// nothing failed; the report that ends the last rank of a run that failed makes
// the outcome, which costs by ranks.
func (r *Run) Report(now eventlog.Timestamp, rep Report) Answer {
	r.advance(now)
	rep.Status = normal(rep.Status)
	p, i := r.process(rep.Rank)
	switch {
	case p == nil:
		return AnswerStranger
	case r.state == RunReady:
		return AnswerEarly
	case !p.launched:
		return AnswerEnded
	}
	switch rep.Kind {
	case ReportStarted:
		if p.started {
			return AnswerRepeated
		}
		p.started = true
		return AnswerApplied
	case ReportOutput:
		return r.output(rep.Rank, rep.Line)
	case ReportExited:
		if stopped(rep.Status) {
			return AnswerIgnored
		}
		r.exited(p, i, rep)
	case ReportLaunchFailed:
		r.ended(p, i, rep, r.told(CauseLaunchFailed), orStatus(rep.Status, statusFailed))
	case ReportUnreachable:
		r.orphan(CauseUnreachable)
		r.ended(p, i, rep, CauseUnreachable, statusUnreachable)
	default:
		return AnswerIgnored
	}
	r.finishIfDone()
	return AnswerApplied
}

// orStatus returns a wait status, or another one if it is 0.
func orStatus(status, other int32) int32 {
	if status == 0 || stopped(status) {
		return other
	}
	return status
}

// told returns the cause of an end that the run itself asked for, or else the
// one given.
func (r *Run) told(c Cause) Cause {
	switch r.state {
	case RunCanceling:
		return CauseCanceled
	case RunTimingOut:
		return CauseTimedOut
	}
	return c
}

// exited ends the process p by an exit with any status.
func (r *Run) exited(p *slot, i int32, rep Report) {
	cause, status := CauseOK, rep.Status
	switch {
	case status == 0:
	case signal(status) != 0:
		cause = CauseSignalled
	default:
		cause = CauseFailed
	}
	if cause = r.told(cause); cause != CauseOK {
		status = orStatus(status, statusTerminated)
	}
	r.ended(p, i, rep, cause, status)
}

// ended ends the process p: its rank, or all ranks if there is but one process.
func (r *Run) ended(p *slot, i int32, rep Report, cause Cause, status int32) {
	p.launched = false
	r.alive--
	if cause != CauseOK {
		r.detail(rep.Rank, cause, status, rep.Detail)
	}
	if !r.spec.PerRank {
		p.cause = cause
		p.status = status
		r.endAll(cause, status)
		return
	}
	r.endRank(i, rep.Rank, cause, status)
}

// orphan has the node drained of a single command that may still run there. Of
// one that runs on every rank, each is drained as it ends.
func (r *Run) orphan(cause Cause) {
	if r.spec.PerRank {
		return
	}
	if i, ok := r.index(r.spec.Leader); ok {
		r.drain(&r.slots[i], r.spec.Leader, cause)
	}
}

// endAll ends every rank that has not ended.
func (r *Run) endAll(cause Cause, status int32) {
	i := int32(0)
	for rank := range r.spec.Ranks.All() {
		if r.slots[i].cause == 0 {
			r.endRank(i, rank, cause, status)
		}
		i++
	}
}

// endRank ends a rank, which must not have ended, and has it drained if that is
// what its cause asks for. A node that was reported as failed stays so, however
// the command ended.
func (r *Run) endRank(i int32, rank uint32, cause Cause, status int32) {
	s := &r.slots[i]
	if s.reported && cause <= CauseCanceledTimedOut {
		cause, status = CauseReported, orStatus(status, statusFailed)
	}
	s.cause, s.status = cause, status
	s.next = -1
	if r.tail < 0 {
		r.head = i
	} else {
		r.slots[r.tail].next = i
	}
	r.tail = i
	r.open--
	r.worst = max(r.worst, status)
	if cause.OK() {
		return
	}
	r.bad++
	if r.spec.Tolerate.Ranks.Contains(rank) {
		r.spare++
	}
	if r.spec.PerRank {
		r.drain(s, rank, cause)
	}
}

// output looks for a control line that names nodes as failed.
func (r *Run) output(rank uint32, line []byte) Answer {
	c, ok, err := ParseControl(line)
	if !ok || err != nil {
		return AnswerIgnored
	}
	if c.Ranks == nil {
		return r.fail(rank, c.Note)
	}
	answer := AnswerStranger
	for failed := range idset.Intersect(c.Ranks, r.spec.Ranks).All() {
		if a := r.fail(failed, c.Note); answer != AnswerApplied {
			answer = a
		}
	}
	return answer
}

// fail marks a rank as reported by the action itself, and has it drained.
func (r *Run) fail(rank uint32, note string) Answer {
	i, ok := r.index(rank)
	switch {
	case !ok:
		return AnswerStranger
	case r.slots[i].cause != 0:
		return AnswerEnded
	case r.slots[i].reported:
		return AnswerRepeated
	}
	r.slots[i].reported = true
	r.detail(rank, CauseReported, 0, note)
	r.drain(&r.slots[i], rank, CauseReported)
	return AnswerApplied
}
