package perilog

import (
	"slices"
	"unicode/utf8"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/rset"
)

// HousekeepingEffects is what housekeeping wants done. The fields are in the
// order in which to do it.
type HousekeepingEffects struct {
	// Log is to be appended to the log of this housekeeping. It must be durable
	// BEFORE anything else is done. If it can not be made so, nothing else may
	// be done, and the value is of no use any more: only a replay is.
	Log []byte
	// Requests are to be done AFTER Log is durable, in their order: launches,
	// signals and drains. Each can be repeated without harm. A drain is to be
	// confirmed by Drained.
	Requests []Request
	// Free are the fragments to give back to the scheduler AFTER Log is
	// durable, in their order. What of it is lost in a crash a scheduler learns
	// by Hello.
	Free []rset.Fragment
}

// IsEmpty reports whether there is nothing to do.
func (e HousekeepingEffects) IsEmpty() bool {
	return len(e.Log) == 0 && len(e.Requests) == 0 && len(e.Free) == 0
}

// Take returns what is to be done and forgets it. The slices are valid until the
// next call of Take.
func (h *Housekeeping) Take() HousekeepingEffects {
	out := &h.out[h.turn]
	h.turn = 1 - h.turn
	next := &h.out[h.turn]
	clear(next.Requests[:cap(next.Requests)])
	clear(next.Free[:cap(next.Free)])
	next.Log, next.Requests, next.Free = next.Log[:0], next.Requests[:0], next.Free[:0]
	return *out
}

// Start starts the work on spec.Ranks, or on all that wait if that is nil, but
// for those of spec.Offline: nothing is started on a node that is not there,
// and it is not said to have failed; its rank goes on waiting, to be started
// when the node is back. Start returns the ranks that were started, perhaps
// none.
//
// A rank ends by a report, or by the timeout of the spec. Without a timeout, a
// runner that goes away without a word on some ranks leaves them started: they
// are to be reported as unreachable then.
//
// Ranks may come in several calls, as when each epilog ends. The work can be
// repeated on ranks that are unresolved, held or draining.
//
// The work runs on each rank by itself, whatever Kind and PerRank say. Of the
// other fields, Command, Timeout, KillTimeout and Kill have a meaning here. The
// error is a *SpecError, or a *HousekeepingRanksError that names ranks on which
// the work can not be started, and then nothing has changed.
func (h *Housekeeping) Start(now eventlog.Timestamp, spec Spec) (*idset.Set, error) {
	h.advance(now)
	if spec.Ranks == nil {
		spec.Ranks = &h.waiting
	}
	if !h.waiting.ContainsAll(spec.Ranks) { // else there is no need to look further
		able := h.open()
		able.SubtractWith(&h.started)
		able.UnionWith(&h.unresolved)
		if err := h.refuse("start", spec.Ranks, able); err != nil {
			return nil, err
		}
	}
	ranks := idset.Difference(spec.Ranks, spec.Offline)
	run, err := h.newRun(spec, ranks)
	switch {
	case err != nil:
		return nil, err
	case run == nil:
		return ranks, nil
	}
	h.must(hkEntry{event: hkLaunch, ranks: ranks})
	h.resolve(run, ranks)
	if err := run.Start(h.now); err != nil {
		panic("perilog: housekeeping can not start a run: " + err.Error())
	}
	h.collect(run)
	return ranks, nil
}

// Reattach takes up the work on ranks that are unresolved, all of them if
// spec.Ranks is nil, where it is known to go on: nothing is launched, reports
// count again, and timeouts count from when the work was launched. The spec is
// completed as in Start, Offline is not looked at. The error is as that of
// Start.
func (h *Housekeeping) Reattach(now eventlog.Timestamp, spec Spec) error {
	h.advance(now)
	if spec.Ranks == nil {
		spec.Ranks = h.unresolved.Clone()
	}
	if err := h.refuse("reattach", spec.Ranks, &h.unresolved); err != nil {
		return err
	}
	// A copy, as the ranks that a launch was of are not changed by this.
	for _, l := range slices.Clone(h.launches) {
		part := idset.Intersect(l.ranks, spec.Ranks)
		run, err := h.newRun(spec, part)
		if err != nil {
			return err // of the first one, for all specs are alike
		}
		if run == nil {
			continue
		}
		h.resolve(run, part)
		if err := run.Reattach(l.at, h.now); err != nil {
			panic("perilog: housekeeping can not reattach a run: " + err.Error())
		}
	}
	return nil
}

// newRun returns a run of the spec on ranks, nil if there are none.
func (h *Housekeeping) newRun(spec Spec, ranks *idset.Set) (*Run, error) {
	none := ranks.IsEmpty()
	if none {
		ranks = idset.Of(0) // so that the rest of the spec is looked at
	}
	spec.Kind, spec.PerRank, spec.Ranks, spec.Offline = RunHousekeeping, true, ranks, nil
	run, err := NewRun(spec)
	if none {
		run = nil
	}
	return run, err
}

// resolve makes a run the one that ranks belong to.
func (h *Housekeeping) resolve(run *Run, ranks *idset.Set) {
	h.unresolved.SubtractWith(ranks)
	h.runs = append(h.runs, run)
	if h.main == nil {
		h.main = run
		return
	}
	if h.later == nil {
		h.later = make(map[uint32]*Run)
	}
	for rank := range ranks.All() {
		h.later[rank] = run
	}
}

// Report tells what happened on a rank, as Run.Report does. A rank that is
// waiting or unresolved is answered with AnswerEarly, one that is not the job's
// with AnswerStranger. It costs as Run.Report does, plus what the ledger takes
// for what goes back.
func (h *Housekeeping) Report(now eventlog.Timestamp, rep Report) Answer {
	h.advance(now)
	if !h.started.Contains(rep.Rank) || h.unresolved.Contains(rep.Rank) {
		return h.stranger(rep.Rank)
	}
	run := h.run(rep.Rank)
	answer := run.Report(h.now, rep)
	h.collect(run)
	return answer
}

// run returns the run that a rank belongs to that was started.
func (h *Housekeeping) run(rank uint32) *Run {
	if run, ok := h.later[rank]; ok {
		return run
	}
	return h.main
}

// stranger returns the answer to a report on a rank where nothing is running.
func (h *Housekeeping) stranger(rank uint32) Answer {
	switch {
	case !h.ledger.Allocation().HasRank(rank):
		return AnswerStranger
	case h.waiting.Contains(rank) || h.unresolved.Contains(rank):
		return AnswerEarly
	}
	return AnswerEnded
}

// Drained confirms that ranks are drained for which that was asked: they are
// ready. It returns those for which it was not asked, or was confirmed before.
func (h *Housekeeping) Drained(now eventlog.Timestamp, ranks *idset.Set) *idset.Set {
	h.advance(now)
	part := idset.Intersect(ranks, &h.draining)
	if !part.IsEmpty() {
		h.must(hkEntry{event: hkDrained, ranks: part})
		h.settle()
	}
	return idset.Difference(ranks, part)
}

// ForceFinish declares ranks ready on behalf of a user, whose name is logged,
// whatever their state: waiting, started, held or draining. Where the work is
// not known to have ended it was abandoned: nothing is signalled, and what goes
// on there does so beside the next job. Ranks that wait because an epilog of the
// job still holds them are not to be named. It returns the ranks that were ready or
// had gone back before, or are not the job's. The error is a *HousekeepingError
// if the name is empty, too long or not UTF-8, and then nothing has changed.
func (h *Housekeeping) ForceFinish(now eventlog.Timestamp, ranks *idset.Set, user string) (*idset.Set, error) {
	if user == "" || len(user) > maxUser || !utf8.ValidString(user) {
		return nil, &HousekeepingError{Field: "user", Reason: "is not a name of 1 to 256 bytes"}
	}
	h.advance(now)
	part := idset.Intersect(ranks, h.open())
	if !part.IsEmpty() {
		h.must(hkEntry{event: hkForce, ranks: part, user: user})
		h.drop(part, user)
	}
	return idset.Difference(ranks, part), nil
}

// Shrink says that ranks are gone from the instance for good. There is nothing
// to clean on them, nothing to drain, and their fragments tell that they are
// gone. Ranks that have gone back, or are not the job's, are ignored.
func (h *Housekeeping) Shrink(now eventlog.Timestamp, ranks *idset.Set) {
	h.advance(now)
	part := idset.Intersect(ranks, h.ledger.Held())
	part.SubtractWith(&h.gone)
	if !part.IsEmpty() {
		h.must(hkEntry{event: hkShrink, ranks: part})
		h.drop(part, "shrink")
	}
}

// drop ends the runs of ranks that are ready by the log.
func (h *Housekeeping) drop(ranks *idset.Set, who string) {
	h.unresolved.SubtractWith(ranks)
	for _, run := range h.runs {
		run.ForceFinish(h.now, ranks, who)
	}
	h.collect(h.runs...)
}

// Tick tells that time has passed, and reports whether a timer was due.
func (h *Housekeeping) Tick(now eventlog.Timestamp) bool {
	h.advance(now)
	due := h.isDue()
	for _, run := range h.runs {
		due = run.Tick(h.now) || due
	}
	h.collect(h.runs...)
	return due
}

// Deadline returns the time at which Tick is to be called next, or false if
// there is none. It costs by the runs that are not done.
func (h *Housekeeping) Deadline() (eventlog.Timestamp, bool) {
	if h.isDue() {
		return h.now, true // what a crash kept from going back
	}
	next := eventlog.Timestamp(0)
	if at, ok := h.releaseAt(); ok && !h.ready.IsEmpty() {
		next = at
	}
	for _, run := range h.runs {
		if at, ok := run.Deadline(); ok && (next == 0 || at < next) {
			next = at
		}
	}
	return next, next != 0
}

// collect takes over what the runs given ask for and what ended in them, and
// gives back what may go back: in one fragment, whatever ended together.
func (h *Housekeeping) collect(runs ...*Run) {
	done := false
	for _, run := range runs {
		for _, q := range run.Requests() {
			// What is to be drained the decision says, and the job is no more,
			// so that nothing can be raised on it.
			if q.Kind == RequestLaunch || q.Kind == RequestSignal {
				h.request(q)
			}
		}
		h.ended = run.AppendEnded(h.ended[:0])
		h.endAll(h.ended)
		done = done || run.Done()
	}
	if done {
		h.runs = slices.DeleteFunc(h.runs, (*Run).Done)
	}
	h.settle()
}

// endAll asks what is to become of each rank and logs it, neighbours that ended
// alike in one entry.
func (h *Housekeeping) endAll(ended []RankEnd) {
	next := hkEntry{event: hkEnd, ranks: &h.some}
	for _, r := range ended {
		// What was finished by force, or is gone, is ready already.
		if !h.started.Contains(r.Rank) {
			continue
		}
		decision := h.options.decide(r.Rank, r.End)
		if r.End != next.end || decision != next.decision {
			h.logEnd(&next)
			next.end, next.decision = r.End, decision
		}
		h.some.Insert(r.Rank)
	}
	h.logEnd(&next)
}

func (h *Housekeeping) logEnd(e *hkEntry) {
	if e.ranks.IsEmpty() {
		return
	}
	h.must(*e)
	if e.decision == DecisionDrain {
		h.askDrain(e.ranks)
	}
	h.some = idset.Set{}
}

// askDrain asks for ranks to be drained, each with the reason that it has.
func (h *Housekeeping) askDrain(ranks *idset.Set) {
	for cause := range h.ends {
		if part := idset.Intersect(ranks, &h.ends[cause]); !part.IsEmpty() {
			reason := "housekeeping " + Cause(cause).String() + " for job " + h.job.Job.String()
			h.request(Request{Kind: RequestDrain, Ranks: part, Reason: reason, Mode: drainMode})
		}
	}
}

func (h *Housekeeping) request(q Request) {
	out := &h.out[h.turn]
	out.Requests = append(out.Requests, q)
}

// settle gives back what may go back.
func (h *Housekeeping) settle() {
	if h.isDue() {
		h.must(hkEntry{event: hkRelease, ranks: h.ready.Clone(), final: h.isLast()})
	}
}

// isDue reports whether something may go back now: all that is left, or what is
// ready, where ReleaseAfter allows.
func (h *Housekeeping) isDue() bool {
	if h.ledger == nil || h.ledger.IsFinal() {
		return false
	}
	at, ok := h.releaseAt()
	return h.isLast() || ok && at <= h.now && !h.ready.IsEmpty()
}

// releaseAt returns the time from which on ranks go back that are ready while
// others are not, or false if they never do or the work has ended on none.
func (h *Housekeeping) releaseAt() (eventlog.Timestamp, bool) {
	if h.job.ReleaseAfter == nil || h.first == 0 {
		return 0, false
	}
	at := h.first + eventlog.Timestamp(*h.job.ReleaseAfter)
	return at, isTime(at) // infinite is never
}

// refuse returns the error that names those of ranks that are not among able.
func (h *Housekeeping) refuse(what string, ranks, able *idset.Set) error {
	if rest := idset.Difference(ranks, able); !rest.IsEmpty() {
		return &HousekeepingRanksError{Op: what, Ranks: rest}
	}
	return nil
}

// advance makes now the latest time, unless it is before that or no time.
func (h *Housekeeping) advance(now eventlog.Timestamp) {
	if now > h.now && isTime(now) {
		h.now = now
	}
}
