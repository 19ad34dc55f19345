package perilog

import (
	"fmt"
	"time"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/guard"
	"github.com/joblife/joblife/internal/jsonscan"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/joblife/joblife/perilog/internal/run"
)

// housekeeping is the work on each rank after the job. It is one more action, with
// a log of its own, since clean closes the job's log before the work is over:
//
//	housekeeping-start    with release-after and on-failure, right after alloc
//	housekeeping-launch   ranks that nothing else holds, on which the work began
//	housekeeping-fail     ranks on which it failed
//	drained               ranks whose drain is confirmed
//	housekeeping-release  ranks that may go back
//	release               a fragment went back; final: the last one
//
// A rank comes to housekeeping when it leaves the job's holds, which the job's log
// tells.
type housekeeping struct {
	action
	releaseAfter *fsd.Duration
	onFailure    string

	given    idset.Set          // what has left the job's holds
	waiting  idset.Set          // what of it was not launched
	draining idset.Set          // whose drain is asked for
	drained  idset.Set          // whose drain is confirmed
	ready    idset.Set          // what may go back, and has not
	freed    idset.Set          // what went back
	first    eventlog.Timestamp // when the work ended on the first rank; 0: on none
	final    bool               // everything went back
}

// The keys of housekeeping-start that no other start has.
const (
	keyReleaseAfter = "release-after"
	keyOnFailure    = "on-failure"
)

// startHousekeeping posts the start of housekeeping where the job is to have it:
// when it has its resources, so that no rank leaves it before.
func (j *Job) startHousekeeping() {
	c := j.cfg.Housekeeping
	if c == nil || j.hk != nil || j.bypass() {
		return
	}
	s := &jobstate.ActionStartContext{
		Kind: jobstate.ActionHousekeeping, Description: Housekeeping().Description, Ranks: jobstate.Ranks{All: true},
		PerRank: true, Timeout: duration(c.Timeout), KillTimeout: duration(c.KillTimeout),
	}
	if s.KillTimeout == 0 {
		s.KillTimeout = DefaultKillTimeout
	}
	extra := []byte("{")
	if c.ReleaseAfter != nil {
		extra = append(extra, `"`+keyReleaseAfter+`":`...)
		extra = append(jsonscan.AppendString(extra, c.ReleaseAfter.String()), ',')
	}
	extra = append(extra, `"`+keyOnFailure+`":`...)
	onFailure := c.OnFailure
	if onFailure == "" {
		onFailure = onFailureDrain
	}
	s.Extra = append(jsonscan.AppendString(extra, onFailure), '}')
	j.post(s)
}

// foldHousekeeping takes in an event of the log of housekeeping, live and in a
// replay alike. Other events are data.
func (j *Job) foldHousekeeping(ev *jobstate.Event) {
	h, t := j.hk, ev.Entry().Timestamp
	if c, ok := ev.Context().(*jobstate.ActionStartContext); ok && h == nil && c.Kind == jobstate.ActionHousekeeping {
		j.hk = j.newHousekeeping(c, ev.Entry())
		return
	}
	if h == nil || h.final {
		return
	}
	switch c := ev.Context().(type) {
	case *jobstate.ActionLaunchContext:
		h.ready.SubtractWith(c.Ranks)
		h.waiting.SubtractWith(c.Ranks)
		h.run.Launch(t, c.Attempt, idset.Difference(c.Ranks, &h.freed))
	case *jobstate.ActionFailContext:
		j.foldFail(&h.action, t, c)
		if c.Drain {
			h.draining.UnionWith(idset.Difference(c.Ranks, &h.freed))
			h.draining.SubtractWith(&h.drained)
		}
		h.ended(t)
	case *jobstate.DrainedContext:
		h.drained.UnionWith(idset.Intersect(&h.draining, c.Ranks))
		h.draining.SubtractWith(c.Ranks)
		j.asked.SubtractWith(c.Ranks)
	case *jobstate.ActionReleaseContext:
		h.run.Released(t, c.Ranks, c.Status)
		h.waiting.SubtractWith(c.Ranks) // where an operator ended what was never launched
		h.draining.SubtractWith(c.Ranks)
		h.ready.UnionWith(idset.Difference(c.Ranks, &h.freed))
		h.ended(t)
	case *jobstate.ReleaseContext:
		h.freed.UnionWith(c.Ranks.Set)
		h.ready.SubtractWith(c.Ranks.Set)
		h.final = c.Final
	}
}

// ended notes when the work ended on the first rank.
func (h *housekeeping) ended(t eventlog.Timestamp) {
	if h.first == 0 {
		h.first = t
	}
}

// newHousekeeping returns the housekeeping that a start tells of.
func (j *Job) newHousekeeping(c *jobstate.ActionStartContext, e eventlog.Entry) *housekeeping {
	h := &housekeeping{action: action{Key: Housekeeping(), stage: stageActive, began: e.Timestamp}, onFailure: onFailureDrain}
	h.run = j.newRun(&h.action, c, j.holds.all.Clone())
	cur := jsonscan.Object(e.Context)
	for cur.Next() {
		text, ok := jsonscan.String(cur.Raw())
		if !ok {
			continue
		}
		switch string(cur.Key()) {
		case keyReleaseAfter:
			if d, err := fsd.Parse(text); err == nil {
				h.releaseAfter = &d
			}
		case keyOnFailure:
			h.onFailure = text
		}
	}
	return h
}

// progressHousekeeping launches the work on ranks that have left the job, and
// posts what follows from what happened to it.
func (j *Job) progressHousekeeping() {
	h := j.hk
	if h.final || j.holds.revoked {
		return
	}
	if !j.holds.fresh.IsEmpty() {
		h.given.UnionWith(&j.holds.fresh)
		h.waiting.UnionWith(&j.holds.fresh)
		j.holds.fresh.SubtractWith(&j.holds.fresh)
	}
	if !h.waiting.IsEmpty() && j.mayLaunch(h.Kind) && j.cfg.Housekeeping != nil {
		if ranks := idset.Difference(&h.waiting, &j.offline); !ranks.IsEmpty() {
			j.relaunch(&h.action, ranks)
		}
	}
	var forced idset.Set
	for _, f := range h.run.TakeFailures() {
		if f.Cause == run.CauseForced {
			forced.UnionWith(f.Ranks)
		}
		j.postHousekeeping(&f, h.onFailure == onFailureDrain && f.Cause != run.CauseForced)
	}
	for _, s := range h.run.TakeSignals() {
		j.effects.Signal = append(j.effects.Signal, Signal{Action: h.Key, Attempt: s.Attempt, Ranks: s.Ranks, Signal: s.Signal})
	}
	var ready idset.Set
	status := int32(0)
	for _, e := range h.run.TakeEnds() {
		if e.Status == 0 && !h.draining.Contains(e.Rank) || forced.Contains(e.Rank) || h.onFailure == onFailureRelease ||
			h.onFailure == onFailureDrain && h.drained.Contains(e.Rank) {
			ready.Insert(e.Rank)
			status = max(status, e.Status)
		}
	}
	if !ready.IsEmpty() {
		j.readyHousekeeping(&ready, status)
	}
}

func (j *Job) postHousekeeping(f *run.Failure, drain bool) {
	j.post(&jobstate.ActionFailContext{
		Kind: j.hk.Kind, Description: j.hk.Description,
		Ranks: f.Ranks, Cause: f.Cause.Name(), Status: f.Status, Note: f.Note, Drain: drain,
	})
}

// readyHousekeeping posts that ranks may go back.
func (j *Job) readyHousekeeping(ranks *idset.Set, status int32) {
	j.post(&jobstate.ActionReleaseContext{Kind: j.hk.Kind, Description: j.hk.Description, Ranks: ranks, Status: status})
}

// drainedHousekeeping posts that drains are confirmed, and that the ranks may go
// back.
func (j *Job) drainedHousekeeping(ranks *idset.Set) {
	part := idset.Intersect(ranks, &j.hk.draining)
	if part.IsEmpty() {
		return
	}
	j.postTo(LogHousekeeping, &jobstate.DrainedContext{Ranks: part})
	if part.SubtractWith(j.hk.run.Open()); !part.IsEmpty() { // the others may go back when the work ends there
		j.readyHousekeeping(part, 0)
	}
}

// releaseAt returns the time from which on ranks go back that are ready while
// others are not; false if they never do, or there are none.
func (h *housekeeping) releaseAt() (eventlog.Timestamp, bool) {
	if h.releaseAfter == nil || *h.releaseAfter == fsd.Forever || h.first == 0 || h.ready.IsEmpty() {
		return 0, false
	}
	at := h.first + eventlog.Timestamp(time.Duration(*h.releaseAfter).Seconds())
	return at, guard.IsTime(at)
}

// freeHousekeeping gives back what may go back, in one fragment.
func (j *Job) freeHousekeeping() {
	h := j.hk
	if h.final {
		return
	}
	back := idset.Union(&h.ready, &h.freed)
	last := j.holds.over && back.Equal(&j.holds.all)
	if at, ok := h.releaseAt(); !last && (!ok || at > j.now) {
		return
	}
	ranks := h.ready.Clone()
	j.postTo(LogHousekeeping, &jobstate.ReleaseContext{Ranks: jobstate.Ranks{Set: ranks}, Final: last})
	if last {
		j.give(j.ledger.FreeRest())
	} else {
		j.give(j.ledger.FreePart(ranks))
	}
}

// replayHousekeeping folds the log of housekeeping after a restart.
func (j *Job) replayHousekeeping(log []byte) error {
	line := 0
	for e, err := range eventlog.Entries(log) {
		line++
		if err == nil {
			err = j.event.Decode(e)
		}
		if err != nil {
			return fmt.Errorf("perilog: housekeeping: line %d: %w", line, err)
		}
		j.advance(e.Timestamp)
		j.foldHousekeeping(&j.event)
	}
	return nil
}
