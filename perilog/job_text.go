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
