package perilog

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
)

// Check returns an error if an invariant is broken, which only a fault of this
// package can do.
func (j *Job) Check() error {
	if err := j.holds.Check(); err != nil {
		return err
	}
	for _, a := range j.actions {
		held := j.holds.hold(a.ActionKey) != nil
		if j.holds.job.Closed() {
			continue // an instance may have lost it, and nothing ends it
		}
		if (a.stage == stageActive) != held || (a.run != nil) != held {
			return fmt.Errorf("perilog: %v is at stage %d, and held is %t", a.ActionKey, a.stage, held)
		}
		if held && !idset.Union(&j.holds.hold(a.ActionKey).ranks, a.run.Open()).Equal(&j.holds.hold(a.ActionKey).ranks) {
			return fmt.Errorf("perilog: I3: %v goes on on ranks that it does not hold", a.ActionKey)
		}
	}
	freed := j.freed()
	if l := j.ledger; l != nil && l.IsFinal() != j.final {
		return fmt.Errorf("perilog: I2: the ledger is final: %t, and the job says %t", l.IsFinal(), j.final)
	}
	if !j.holds.left.ContainsAll(freed) {
		return fmt.Errorf("perilog: I3: ranks %q were freed and have not left", idset.Difference(freed, &j.holds.left))
	}
	if h := j.hk; h != nil {
		if busy := idset.Intersect(h.run.Open(), freed); !busy.IsEmpty() {
			return fmt.Errorf("perilog: I3: ranks %q were freed before their housekeeping", busy)
		}
		if !h.freed.Equal(freed) && !j.holds.revoked {
			return fmt.Errorf("perilog: I1: housekeeping freed %q, the ledger %q", &h.freed, freed)
		}
	}
	if j.final && !j.holds.over {
		return fmt.Errorf("perilog: I2: the final fragment went out, and the job is held: %v", &j.holds)
	}
	return nil
}

// Check returns an error if an invariant is broken: nothing holds what has left, all
// that is held is the job's, what was dropped has failed, and nothing is kept back when
// everything has left.
func (h *Holds) Check() error {
	if err := h.scratch.check(); err != nil {
		return err
	}
	if both := idset.Intersect(&h.left, h.Held()); !both.IsEmpty() {
		return fmt.Errorf("perilog: I3: ranks %q have left and are held", both)
	}
	sets := []*idset.Set{&h.left, &h.fresh, &h.executor, &h.draining, &h.failed, &h.dropped}
	for _, a := range h.actions {
		sets = append(sets, &a.ranks)
	}
	for _, s := range sets {
		if !h.all.ContainsAll(s) {
			return fmt.Errorf("perilog: I1: ranks %q are not the job's", idset.Difference(s, &h.all))
		}
	}
	switch {
	case !h.failed.ContainsAll(&h.dropped):
		return fmt.Errorf("perilog: ranks %q were dropped and have not failed", idset.Difference(&h.dropped, &h.failed))
	case !h.left.ContainsAll(&h.fresh):
		return fmt.Errorf("perilog: ranks %q are to be freed and have not left", idset.Difference(&h.fresh, &h.left))
	case h.executor.Intersects(&h.dropped):
		return fmt.Errorf("perilog: the executor holds ranks %q, which were dropped", idset.Intersect(&h.executor, &h.dropped))
	case !h.executing() && !h.executor.IsEmpty():
		return fmt.Errorf("perilog: the executor holds ranks %q and does not run", &h.executor)
	case !h.scratch.ended.IsEmpty() || !h.scratch.want.IsEmpty():
		return fmt.Errorf("perilog: ranks %q are left over from an event", idset.Union(&h.scratch.ended, &h.scratch.want))
	case h.over && !h.left.Equal(&h.all):
		return fmt.Errorf("perilog: I1: everything has left but ranks %q", idset.Difference(&h.all, &h.left))
	}
	for i, n := range h.named {
		holder := slices.ContainsFunc(h.actions, func(a *activeAction) bool { return a.hasName(i) })
		if holder && (!n.acted || n.left) || n.left && !h.ending() || n.ended || h.over && !n.left {
			return fmt.Errorf("perilog: I3: resource %q is in no state that it can be in", n.name)
		}
	}
	live := 0
	for a := range h.job.Actions() {
		live += a.Active
	}
	if live != len(h.actions) && h.job.State() != jobstate.StateInactive {
		return fmt.Errorf("perilog: %d actions hold ranks, and %d are active", len(h.actions), live)
	}
	return nil
}

// check returns an error if what Jobs without an allocation share was changed.
func (s *Scratch) check() error {
	for _, v := range []any{&s.noNodes, &s.noFailures, &s.noAllocation, &s.noEffects} {
		if !reflect.ValueOf(v).Elem().IsZero() {
			return fmt.Errorf("perilog: a job changed the %T that it shares with others", v)
		}
	}
	return nil
}
