package perilog

import (
	"fmt"

	"github.com/joblife/joblife/idset"
)

// String returns the state in one line: the holds, the progress of each action, and
// what was freed.
func (j *Job) String() string {
	dst := j.holds.appendText(nil)
	for _, a := range j.actions {
		names := [...]string{"idle", "active", "finished"}
		dst = fmt.Appendf(dst, "; %v: %s", a.Key, names[a.stage])
		dst = a.appendRun(dst)
	}
	if h := j.holds.hk; h != nil {
		dst = fmt.Appendf(dst, "; housekeeping: final %t", h.final)
		dst = h.appendRun(dst)
		dst = appendSet(dst, "given", &h.given)
		dst = appendSet(dst, "draining", &h.draining)
		dst = appendSet(dst, "ready", &h.ready)
	}
	if j.holds.r != nil {
		l := j.holds.ledger
		if l == nil {
			if l = j.newLedger(); j.holds.final {
				_, _ = l.FreeRest() // which nothing was freed of
			}
		}
		dst = append(append(dst, "; "...), l.String()...)
	}
	if j.stopping {
		dst = append(dst, "; stopping"...)
	}
	return string(dst)
}

// appendRun appends where the action is to run, runs, was lost and has not ended.
func (a *action) appendRun(dst []byte) []byte {
	if a.run == nil {
		return dst
	}
	for _, s := range []struct {
		word string
		set  *idset.Set
	}{{"idle", a.run.Idle()}, {"running", a.run.Running()}, {"lost", a.run.Lost()}, {"open", a.run.Open()}} {
		if !s.set.IsEmpty() {
			dst, _ = s.set.AppendText(append(append(append(dst, ' '), s.word...), ' '))
		}
	}
	return fmt.Appendf(dst, " attempt %d", a.run.LastAttempt())
}

// check returns an error if an invariant is broken, which only a fault of this
// package can do.
func (j *Job) check() error {
	if err := j.holds.check(); err != nil {
		return err
	}
	for _, a := range j.actions {
		held := j.holds.hold(a.Key) != nil
		if j.holds.job.Closed() {
			continue // an instance may have lost it, and nothing ends it
		}
		if (a.stage == stageActive) != held || (a.run != nil) != held {
			return fmt.Errorf("perilog: %v is at stage %d, and held is %t", a.Key, a.stage, held)
		}
		if held && !idset.Union(&j.holds.hold(a.Key).ranks, a.run.Open()).Equal(&j.holds.hold(a.Key).ranks) {
			return fmt.Errorf("perilog: I3: %v goes on on ranks that it does not hold", a.Key)
		}
	}
	freed := j.freed()
	if l := j.holds.ledger; l != nil {
		if err := l.Check(); err != nil {
			return err
		}
		if l.IsFinal() != j.holds.final {
			return fmt.Errorf("perilog: I2: the ledger is final: %t, and the job says %t", l.IsFinal(), j.holds.final)
		}
	}
	if !j.holds.left.ContainsAll(freed) {
		return fmt.Errorf("perilog: I3: ranks %q were freed and have not left", idset.Difference(freed, &j.holds.left))
	}
	if h := j.holds.hk; h != nil {
		if busy := idset.Intersect(h.run.Open(), freed); !busy.IsEmpty() {
			return fmt.Errorf("perilog: I3: ranks %q were freed before their housekeeping", busy)
		}
		if !h.freed.Equal(freed) && !j.holds.revoked {
			return fmt.Errorf("perilog: I1: housekeeping freed %q, the ledger %q", &h.freed, freed)
		}
	}
	if j.holds.final && !j.holds.over {
		return fmt.Errorf("perilog: I2: the final fragment went out, and the job is held: %v", &j.holds)
	}
	return nil
}
