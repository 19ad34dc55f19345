package jobstate

import (
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/guard"
	"github.com/joblife/joblife/internal/jsonobj"
)

// judge names what is wrong with an event in the state before it.
func (v *validator) judge(k kind, decoded bool) {
	j := v.job
	state := j.State()
	switch {
	case k == kSubmit && j.Submitted():
		v.add(LevelError, "appears twice")
		return
	case k == kValidate && state == StateDepend && j.version == 0:
		// Some writers had validate before they had version.
	case !state.In(table[k].proper):
		v.add(LevelError, "is out of order: the job is in %v", state)
		return
	}
	v.judgeOrder(k)
	if decoded {
		v.judgeContext(k)
	}
}

// judgeOrder names what does not depend on the context.
func (v *validator) judgeOrder(k kind) {
	j := v.job
	switch k {
	case kDepend:
		if names := j.Dependencies(); len(names) > 0 {
			v.add(LevelError, "dependencies are not satisfied: %d, the first is %q", len(names), guard.Clip(names[0]))
		}
	case kAlloc:
		if j.wasAllocated {
			v.add(LevelError, "appears twice")
		}
	case kStart:
		v.judgeStart()
	case kFinish:
		switch {
		case j.Finished():
			v.add(LevelError, "appears twice")
		case !j.Started():
			v.add(LevelNote, "the job did not start")
		}
	case kFree:
		v.judgeFree()
	case kClean:
		v.judgeClean()
	case kPrologStart:
		if j.Started() {
			v.add(LevelError, "the job has started: a prolog can no longer hold it")
		}
	}
}

// judgeContext names what is wrong with a context that could be decoded.
func (v *validator) judgeContext(k kind) {
	raw := v.ev.entry.Context
	switch k {
	case kStart, kFree, kClean:
		if !isEmpty(raw) {
			v.add(LevelError, "its context must be empty")
		}
	case kValidate, kInvalidate, kDepend, kFluxRestart:
		if !isEmpty(raw) {
			v.add(LevelNote, "has a context, which RFC 21 does not define")
		}
	case kResourceUpdate:
		if !jsonobj.IsInteger(peek(raw, "expiration")) {
			v.add(LevelNote, "expiration is a real number")
		}
	case kSubmit:
		if v.ev.submit.Version == 0 {
			v.add(LevelNote, "has no version: the log follows the rules before version 1")
		}
	case kJobspecUpdate:
		if len(v.ev.jobspecUpdate.Updates) == 0 {
			v.add(LevelError, "sets nothing")
		}
	case kPriority:
		if n, _ := jsonobj.Int64(peek(raw, "priority")); n > MaxPriority {
			v.add(LevelError, "priority is above %d", uint32(MaxPriority))
		}
	case kDependencyAdd:
		description := v.ev.dependencyAdd.Description
		if d := v.job.dependency(description); d != nil && !d.satisfied {
			v.add(LevelNote, "dependency %q was added before", guard.Clip(description))
		}
	case kDependencyRemove:
		description := v.ev.dependencyRem.Description
		if d := v.job.dependency(description); d == nil {
			v.add(LevelError, "dependency %q was never added", guard.Clip(description))
		} else if d.satisfied {
			v.add(LevelError, "dependency %q was removed before", guard.Clip(description))
		}
	case kException:
		if v.ev.exception.Severity == 0 && v.job.State() == StateNew {
			v.add(LevelError, "is fatal, and the job is in NEW")
		}
		if !hasKey(raw, "note") {
			v.add(LevelError, "%v: note: %v", errContext, jsonobj.ErrMissing)
		}
		if f := v.ev.exception.Failed; f != nil {
			v.failed.UnionWith(f.Ranks)
		}
	case kRelease:
		v.judgeRelease()
		v.over = v.over || v.ev.release.Final && v.job.State() == StateCleanup
	case kDrained:
		if ranks := v.ev.drained.Ranks; !v.failed.ContainsAll(ranks) {
			v.add(LevelError, "ranks did not fail: %s", clipRanks(idset.Difference(ranks, &v.failed)))
		}
	case kPrologStart, kEpilogStart:
		v.judgeActionStart(&v.ev.start)
	case kPerilogLaunch:
		c := &v.ev.launch
		last, ok := v.attempts[c.ActionKey]
		if v.judgeActive(LevelError, c.ActionKey) && ok && c.Attempt <= last {
			v.add(LevelError, "attempt %d does not grow: the last one was %d", c.Attempt, last)
		}
		v.attempts[c.ActionKey] = max(last, c.Attempt)
	case kPerilogFail:
		v.judgeActive(LevelError, v.ev.fail.ActionKey)
		v.failed.UnionWith(v.ev.fail.Ranks)
	case kPerilogRelease:
		v.judgeActive(LevelError, v.ev.actionRelease.ActionKey)
	case kPrologFinish, kEpilogFinish: // flux-core takes it
		v.judgeActive(LevelNote, v.ev.actionFinish.ActionKey)
	}
}

// clipRanks is guard.Clip of the text of a set, of which it writes no more than that.
func clipRanks(set *idset.Set) string {
	var head idset.Set
	n := 0
	for first, last := range set.Ranges() {
		if n++; n > guard.MaxQuoted { // a range has two bytes or more
			break
		}
		head.InsertRange(first, last)
	}
	return guard.Clip(head.String())
}

func (v *validator) judgeActionStart(c *ActionStartContext) {
	last := c.Attempt
	if v.job.active(c.ActionKey) != nil {
		last = max(last, v.attempts[c.ActionKey])
	}
	v.attempts[c.ActionKey] = last
	if c.Kind != ActionEpilog || !v.over && !v.freed {
		return
	}
	level := LevelNote // RFC 21 has it hold the free, which is still to come
	if v.freed || c.Given() {
		level = LevelError
	}
	v.add(level, "starts after the final release: its ranks may be in use by others")
}

// judgeActive names an action that is not active and reports whether it is.
func (v *validator) judgeActive(l Level, key ActionKey) bool {
	if v.job.active(key) == nil {
		v.add(l, "no %v %q is active", key.Kind, guard.Clip(key.Description))
		return false
	}
	return true
}

func isEmpty(raw []byte) bool {
	if len(raw) == 0 {
		return true
	}
	d := jsonobj.NewDoc(raw)
	o := d.Object()
	return !o.Next()
}

func (v *validator) judgeStart() {
	j := v.job
	if !j.allocated {
		v.add(LevelError, "the job has no resources")
	}
	if j.Started() {
		v.add(LevelError, "appears twice")
	}
	if j.actions == nil {
		return
	}
	for key, a := range j.actions.all() {
		switch {
		case key.Kind != ActionProlog:
		case a.live > 0:
			v.add(LevelError, "prolog %q has not finished", guard.Clip(key.Description))
		case a.failed:
			v.add(LevelError, "prolog %q has failed", guard.Clip(key.Description))
		}
	}
}

func (v *validator) judgeRelease() {
	c := &v.ev.release
	switch {
	case !v.job.wasAllocated:
		v.add(LevelError, "the job has no resources")
	case v.job.finalRelease:
		v.add(LevelError, "comes after the final release")
	case v.freed:
		v.add(LevelError, "the resources are already free")
	case v.releasedAll:
		v.add(LevelError, "comes after the release of all ranks")
	}
	if c.Ranks.All {
		v.releasedAll = true
		return
	}
	if v.released.Intersects(c.Ranks.Set) {
		v.add(LevelError, "releases ranks a second time: %s", clipRanks(idset.Intersect(&v.released, c.Ranks.Set)))
	}
	v.released.UnionWith(c.Ranks.Set)
}

func (v *validator) judgeFree() {
	j := v.job
	switch {
	case !j.wasAllocated:
		v.add(LevelError, "the job has no resources")
	case !j.allocated:
		v.add(LevelError, "the resources are already free")
	case j.Started() && !j.finalRelease:
		v.add(LevelError, "no final release came before it")
	}
	v.freed = true
	v.judgeIdle("the resources are freed early: ")
}

// judgeIdle names the prologs and epilogs that are active.
func (v *validator) judgeIdle(so string) {
	for a := range v.job.Actions() {
		v.add(LevelError, "%s%v %q has not finished", so, a.Kind, guard.Clip(a.Description))
	}
}

func (v *validator) judgeClean() {
	j := v.job
	switch {
	case j.allocated:
		v.add(LevelError, "the job still holds resources")
	case j.Started() && !j.finalRelease && !v.freed:
		v.add(LevelError, "no final release came before it")
	case j.Started() && !j.Finished():
		v.add(LevelNote, "the job started and did not finish")
	}
	v.judgeIdle("")
}
