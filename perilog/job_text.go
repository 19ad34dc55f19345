package perilog

import (
	"fmt"

	"github.com/joblife/joblife/idset"
)

// AppendText appends the state in one line and returns the extended slice: the
// holds, and after that each action with its run, what it has ended on that is
// not in the log yet, and whose drain is awaited. Jobs of one spec in the same
// state have the same text. The error is always nil.
func (j *Job) AppendText(dst []byte) ([]byte, error) {
	dst, _ = j.holds.AppendText(dst)
	for _, a := range j.actions {
		dst = append(append(append(append(dst, "; "...), a.key.String()...), ": "...), a.stage.String()...)
		if a.lost {
			dst = append(dst, " lost"...)
		}
		if a.forced.set {
			dst = append(append(dst, " forced by "...), a.forced.who...)
		}
		if a.run != nil {
			dst = append(dst, " ["...)
			dst, _ = a.run.AppendText(dst)
			dst = append(dst, ']')
		}
		for _, s := range []struct {
			word string
			set  *idset.Set
		}{{"unclaimed", &a.unclaimed}, {"ended", &a.ended}, {"draining", &a.draining}} {
			if !s.set.IsEmpty() {
				dst, _ = s.set.AppendText(append(append(append(dst, ' '), s.word...), ' '))
			}
		}
	}
	if j.stopping {
		dst = append(dst, "; stopping"...)
	}
	return dst, nil
}

// String returns the text that AppendText appends.
func (j *Job) String() string {
	text, _ := j.AppendText(nil)
	return string(text)
}

// Check returns an error if an invariant is broken, which only a fault of this
// package can do: those of [Holds.Check], and that an action runs, or waits for
// somebody, only while it is active in the log. It costs by ranges.
func (j *Job) Check() error {
	if err := j.holds.Check(); err != nil {
		return err
	}
	for _, a := range j.actions {
		held := j.hold(a.key) != nil
		switch {
		case (a.stage == stageActive || a.stage == stageFinishing) && !held, held && a.stage < stageActive:
			return fmt.Errorf("perilog: %v is %v, and held is %v", a.key, a.stage, held)
		case a.lost && (a.stage != stageActive || a.run != nil):
			return fmt.Errorf("perilog: %v is lost and %v", a.key, a.stage)
		case a.stage < stageActive && a.run != nil:
			return fmt.Errorf("perilog: I4: %v runs, and its start is not in the log", a.key)
		case a.stage == stageFinished && !(a.unclaimed.IsEmpty() && a.ended.IsEmpty() && a.draining.IsEmpty()):
			return fmt.Errorf("perilog: %v is finished and waits", a.key)
		}
	}
	return nil
}
