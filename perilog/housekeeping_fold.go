package perilog

import (
	"errors"
	"fmt"
	"slices"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/rset"
)

// ReplayHousekeeping returns the housekeeping that a log tells of, as it was
// after the last complete entry. What was started and has not ended is
// unresolved; drains that were not confirmed are asked for again.
//
// With an error it returns what the log tells up to there, nil if that is less
// than all that the start of a log says. The error is a *HousekeepingLogError,
// or one of package eventlog: ErrTorn for an entry that was not written to its
// end, which can be cut off at the offset that the *eventlog.SyntaxError tells,
// for nothing that follows from it was given out.
//
// It retains nothing of log.
func ReplayHousekeeping(log []byte, o HousekeepingOptions) (*Housekeeping, error) {
	h := &Housekeeping{options: o}
	line := 0
	var failed error
	for e, err := range eventlog.Entries(log) {
		line++
		if err != nil {
			failed = fmt.Errorf("perilog: housekeeping: %w", err)
			break
		}
		if err := h.replay(e); err != nil {
			failed = &HousekeepingLogError{Line: line, Event: clip(e.Name), Err: err}
			var at *keyError
			if errors.As(err, &at) {
				failed = &HousekeepingLogError{Line: line, Event: clip(e.Name), Key: at.key, Err: at.err}
			}
			break
		}
	}
	if h.ledger == nil {
		if failed == nil {
			failed = &HousekeepingLogError{Line: line, Err: errHKStart}
		}
		return nil, failed
	}
	h.unresolved.UnionWith(&h.started)
	h.askDrain(&h.draining)
	return h, failed
}

func (h *Housekeeping) replay(e eventlog.Entry) error {
	entry, err := decodeHK(e)
	if err != nil {
		return err
	}
	if _, err := h.fold(&entry); err != nil {
		return err
	}
	h.now = max(h.now, e.Timestamp)
	return nil
}

// record folds an entry and appends it to the log. After an error nothing has
// changed. Only a start can fail: as too long for a line.
func (h *Housekeeping) record(e hkEntry) error {
	h.context = e.appendContext(h.context[:0])
	out := &h.out[h.turn]
	log, err := eventlog.AppendEntry(out.Log, eventlog.Entry{Timestamp: e.at, Name: e.event.String(), Context: h.context})
	if err != nil {
		return err
	}
	fragment, err := h.fold(&e)
	if err != nil {
		return err
	}
	out.Log = log
	if e.event == hkRelease {
		out.Free = append(out.Free, fragment)
	}
	return nil
}

// must is record, at the present time, of what can not fail.
func (h *Housekeeping) must(e hkEntry) {
	e.at = h.now
	if err := h.record(e); err != nil {
		panic("perilog: housekeeping can not log " + e.event.String() + ": " + err.Error())
	}
}

// fold is the one place where the state changes that the log tells, live and in
// replay. After an error nothing has changed.
func (h *Housekeeping) fold(e *hkEntry) (rset.Fragment, error) {
	var none rset.Fragment
	switch {
	case e.event == hkNote:
		return none, nil
	case (e.event == hkStart) != (h.since == 0),
		(e.event == hkPart) != (h.parts > 0) && e.event != hkStart,
		h.ledger != nil && h.ledger.IsFinal():
		return none, errHKOrder
	}
	switch e.event {
	case hkStart:
		return none, h.foldStart(e)
	case hkPart:
		return none, h.foldPart(e)
	case hkRelease:
		return h.foldRelease(e)
	case hkShrink:
		return none, h.foldShrink(e)
	}
	return none, h.foldRanks(e)
}

func (h *Housekeeping) foldStart(e *hkEntry) error {
	s := e.start
	if s.parts == 0 {
		if err := h.begin(s.r, &s.job); err != nil {
			return &keyError{key: "R", err: err}
		}
	}
	h.job, h.since, h.parts = s.job, e.at, s.parts
	h.job.R = nil // the ledger has it, but for parts to come
	return nil
}

func (h *Housekeeping) foldPart(e *hkEntry) error {
	if len(h.text)+len(e.text) > rset.MaxBytes {
		return &keyError{key: "R", err: errHKTooLong}
	}
	text := append(h.text, e.text...)
	if h.parts == 1 {
		if err := h.begin(text, &h.job); err != nil {
			return &keyError{key: "R", err: err}
		}
		text = nil
	}
	h.text = text
	h.parts--
	return nil
}

// begin makes all ranks of an R wait.
func (h *Housekeeping) begin(text []byte, j *HousekeepingJob) error {
	r, err := rset.Parse(text)
	if err != nil {
		return err
	}
	if r.Len() > MaxHousekeepingRanks {
		return errHKTooLong
	}
	ledger, err := rset.Rebuild(r, rset.Released{Ranks: j.Free}, j.Named...)
	if err != nil {
		return err
	}
	h.ledger = ledger
	h.waiting.UnionWith(ledger.Held())
	h.before.UnionWith(j.Free)
	return nil
}

// foldRanks folds the events that move ranks from one state to another.
func (h *Housekeeping) foldRanks(e *hkEntry) error {
	switch e.event {
	case hkEnd:
		if !h.started.ContainsAll(e.ranks) {
			return errHKState
		}
		move(&h.started, h.decided(e.decision), e.ranks)
		h.end(e, e.end.Cause, e.ranks)
	case hkDrained:
		if !h.draining.ContainsAll(e.ranks) {
			return errHKState
		}
		move(&h.draining, &h.ready, e.ranks)
	case hkLaunch:
		if !h.waiting.ContainsAll(e.ranks) && !h.open().ContainsAll(e.ranks) {
			return errHKState
		}
		h.launch(e)
	case hkForce:
		if !h.open().ContainsAll(e.ranks) {
			return errHKState
		}
		h.abandon(e, CauseAbandoned)
	}
	return nil
}

// foldShrink ends the work on ranks that are no more: there is nothing to clean
// and nothing to drain.
func (h *Housekeeping) foldShrink(e *hkEntry) error {
	if ready := idset.Difference(e.ranks, h.open()); !h.ready.ContainsAll(ready) {
		return errHKState
	}
	h.ledger.Shrink(e.ranks)
	h.gone.UnionWith(e.ranks)
	h.abandon(e, CauseUnreachable)
	return nil
}

func (h *Housekeeping) foldRelease(e *hkEntry) (rset.Fragment, error) {
	switch final := h.isLast() && h.ready.Equal(e.ranks); {
	case !h.ready.ContainsAll(e.ranks):
		return rset.Fragment{}, errHKState
	case final != e.final:
		return rset.Fragment{}, &keyError{key: "final", err: errHKFinal}
	case e.ranks.IsEmpty() && !final:
		return rset.Fragment{}, errHKNoRanks
	case final:
		h.ready = idset.Set{}
		return h.ledger.FreeRest()
	}
	// The set of ranks that the ledger holds is that of the five states.
	fragment, err := h.ledger.Free(e.ranks)
	if err == nil {
		remove(&h.ready, e.ranks)
	}
	return fragment, err
}

// isLast reports whether every rank that has not gone back is ready.
func (h *Housekeeping) isLast() bool {
	return h.waiting.IsEmpty() && h.started.IsEmpty() && h.held.IsEmpty() && h.draining.IsEmpty()
}

// open returns a new set of the ranks that have not gone back and are not ready.
func (h *Housekeeping) open() *idset.Set {
	open := idset.Union(&h.waiting, &h.started)
	open.UnionWith(&h.held)
	open.UnionWith(&h.draining)
	return open
}

// decided returns where a decision puts a rank.
func (h *Housekeeping) decided(d Decision) *idset.Set {
	switch d {
	case DecisionHold:
		return &h.held
	case DecisionDrain:
		return &h.draining
	}
	return &h.ready
}

// end notes how the work on ranks ended, and when it first did on any.
func (h *Housekeeping) end(e *hkEntry, cause Cause, ranks *idset.Set) {
	add(&h.ends[cause], ranks)
	if h.first == 0 {
		h.first = e.at
	}
}

// launch starts the work on ranks, for the first time or again.
func (h *Housekeeping) launch(e *hkEntry) {
	if !h.waiting.ContainsAll(e.ranks) {
		// What was launched again has one launch and no end.
		for i := range h.launches {
			h.launches[i].ranks.SubtractWith(e.ranks)
		}
		h.launches = slices.DeleteFunc(h.launches, func(l hkLaunched) bool { return l.ranks.IsEmpty() })
		for i := range h.ends {
			h.ends[i].SubtractWith(e.ranks)
		}
		h.held.SubtractWith(e.ranks)
		h.draining.SubtractWith(e.ranks)
	}
	remove(&h.waiting, e.ranks)
	add(&h.started, e.ranks)
	h.launches = append(h.launches, hkLaunched{at: e.at, ranks: e.ranks.Clone()})
}

// abandon makes ranks ready, whatever they are. Those on which the work had
// not ended have ended now.
func (h *Housekeeping) abandon(e *hkEntry, cause Cause) {
	pending := idset.Union(&h.waiting, &h.started)
	pending.IntersectWith(e.ranks)
	h.end(e, cause, pending) // where there are none, the first end was before
	for _, from := range []*idset.Set{&h.waiting, &h.started, &h.held, &h.draining} {
		from.SubtractWith(e.ranks)
	}
	add(&h.ready, e.ranks)
}

// move moves ranks that are in one set to another. It costs by ranks moved.
func move(from, to, ranks *idset.Set) {
	remove(from, ranks)
	add(to, ranks)
}

func add(to, ranks *idset.Set) {
	for first, last := range ranks.Ranges() {
		if first == last { // which moves less than a range does
			to.Insert(first)
		} else {
			to.InsertRange(first, last)
		}
	}
}

func remove(from, ranks *idset.Set) {
	for first, last := range ranks.Ranges() {
		if first == last {
			from.Remove(first)
		} else {
			from.RemoveRange(first, last)
		}
	}
}
