package perilog

import (
	"slices"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset"
)

// Holds knows what holds which ranks of one job, by the events of its log.
//
//   - The job holds its ranks from alloc until CLEANUP begins.
//   - The executor holds ranks from start until it releases them, and all named resources
//     until its final release.
//   - A prolog or epilog holds the ranks and named resources that its start names, until a
//     partial release or its finish. Two live starts of one kind and description are two
//     holds; the older one ends first.
//   - A drain holds the ranks that failed, until it is confirmed.
//
// A rank leaves when the last hold on it ends, and so does a named resource that an action
// held. Before CLEANUP only dropped ranks leave; those that the executor released leave at
// finish. At free, when nothing is held, the others leave. The event clean ends every hold.
// What has left never comes back: a later action does not hold it.
//
// The zero Holds is not valid, and a Holds must not be copied.
type Holds struct {
	job         *jobstate.Job
	scratch     *Scratch
	*allocation // that of scratch until it gets its own
	*failures   // that of scratch until a rank fails
}

// An allocation is what depends on the job's resources.
type allocation struct {
	all   idset.Set // the ranks of R
	named []named   // in the order of their names

	revoked   bool // an exception of type scheduler-restart took the allocation: it is not to be freed
	prepared  bool // a prolog was started before CLEANUP
	over      bool // the job was freed and nothing held anything since: all has left
	allocTime eventlog.Timestamp
	startTime eventlog.Timestamp
	executor  idset.Set       // what it holds
	actions   []*activeAction // in the order of their starts
	left      idset.Set
	fresh     idset.Set // of a Job: ranks that have left and were not freed; if housekeeping follows, where it has not begun
}

// failures are what is known of ranks that failed.
type failures struct {
	draining idset.Set // what drains hold
	drained  idset.Set // what drains held that are confirmed
	failed   idset.Set // ranks that failed, as events name them
	dropped  idset.Set // those of them that the job gave up

	// Of a Job:
	due       []Drain   // asked for by the log
	asked     idset.Set // ranks whose drain was asked for and is not confirmed
	confirmed idset.Set // ranks whose drain is confirmed, which the log does not have yet
}

// unshare replaces a part that Jobs share by a new one, before its first change.
func unshare[T any](part **T, shared *T) {
	if *part == shared {
		*part = new(T)
	}
}

// named is a resource without a rank.
type named struct {
	name  string
	acted bool // an action held it
	left  bool
	ended bool // scratch: the current event ends a hold on it
}

// activeAction is one start of a prolog or epilog that has not ended.
type activeAction struct {
	jobstate.ActionKey
	since eventlog.Timestamp
	ranks idset.Set // what it holds still
	names []int     // indices in Holds.named, ascending
}

// NewHolds returns the holds of a job before its first event. r is what the job was allocated;
// nil is the empty R. named lists the job's resources that have no rank; duplicates count once.
// NewHolds retains neither.
func NewHolds(id jobid.ID, r *rset.R, named ...string) *Holds {
	h := new(Holds)
	h.init(id, nil)
	h.setR(r)
	h.setNames(named)
	return h
}

// EndedHolds returns the holds of an inactive job whose log is not at hand, such as one of a
// [jobstate.Summary]: none. It does not know what has left. It retains j.
func EndedHolds(j *jobstate.Job) *Holds {
	h := new(Holds)
	h.init(j.ID(), nil)
	h.job = j
	return h
}

func (h *Holds) init(id jobid.ID, s *Scratch) {
	if s == nil {
		s = new(Scratch)
	}
	h.job, h.scratch, h.allocation, h.failures = jobstate.NewJob(id), s, &s.noAllocation, &s.noFailures
}

func (h *Holds) setR(r *rset.R) {
	unshare(&h.allocation, &h.scratch.noAllocation)
	for p := range r.Parts() {
		h.all.InsertRange(p.First, p.Last)
	}
}

func (h *Holds) setNames(names []string) {
	names = slices.Clone(names)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		h.named = append(h.named, named{name: name})
	}
}

// Apply folds one entry of the job's log, as [jobstate.Job.Apply] does, and returns its errors;
// then nothing has changed. It ignores ranks and resources that are not the job's or have left. It
// keeps no reference to e. A release costs the ranges that it names and the active actions.
func (h *Holds) Apply(e eventlog.Entry) (jobstate.Outcome, error) {
	if err := h.scratch.event.Decode(e); err != nil {
		return 0, err
	}
	return h.apply(&h.scratch.event)
}

func (h *Holds) apply(ev *jobstate.Event) (jobstate.Outcome, error) {
	held := h.job.HasResources()
	outcome, err := h.job.ApplyEvent(ev)
	if err != nil || outcome != jobstate.Applied {
		return outcome, err
	}
	if traitsOf(ev.Context()).has(namesRanks) {
		unshare(&h.allocation, &h.scratch.noAllocation)
	}
	if h.allocation != &h.scratch.noAllocation {
		if _, ok := ev.Context().(*jobstate.ExceptionContext); ok || h.job.HasResources() {
			h.revoked = !h.job.HasResources() && (h.revoked || held)
		}
		h.change(ev)
	}
	return outcome, nil
}

// traits are what is asked of an event before it is folded.
type traits uint8

const (
	namesRanks   traits = 1 << iota // it may concern ranks before the job has any
	endsHold                        // it may end a hold on ranks
	startsAction                    // of whomever
	saysMode                        // of an action that this library runs
)

func traitsOf(c jobstate.Context) traits {
	switch c := c.(type) {
	case *jobstate.ActionStartContext:
		if c.Given() {
			return namesRanks | startsAction | saysMode
		}
		return namesRanks | startsAction
	case *jobstate.ActionLaunchContext:
		return namesRanks | saysMode
	case *jobstate.ActionFailContext:
		return namesRanks
	case *jobstate.ActionReleaseContext, *jobstate.ActionFinishContext, *jobstate.DrainedContext:
		return namesRanks | endsHold
	case *jobstate.ReleaseContext, *jobstate.FinishContext:
		return endsHold
	case *jobstate.ExceptionContext:
		if c.Failed != nil || c.Severity == 0 {
			return namesRanks
		}
	}
	return 0
}

func (t traits) has(some traits) bool { return t&some != 0 }

// change folds an event that the job has applied.
func (h *Holds) change(ev *jobstate.Event) {
	e := ev.Entry()
	switch c := ev.Context().(type) {
	case *jobstate.AllocContext:
		if h.allocTime == 0 {
			h.allocTime = e.Timestamp
		}
	case *jobstate.ReleaseContext:
		h.release(c)
	case *jobstate.FinishContext:
		h.endJob()
	case *jobstate.ExceptionContext:
		if c.Failed != nil {
			h.fail(c.Failed)
		}
	case *jobstate.ActionStartContext:
		h.actionStart(c, e.Timestamp)
	case *jobstate.ActionFailContext:
		if c.Status != 0 || c.Drain { // else an operator ended it as good
			h.failRanks(c.Ranks, c.Drain)
		}
	case *jobstate.ActionReleaseContext:
		h.actionRelease(c)
	case *jobstate.ActionFinishContext:
		h.actionFinish(c.ActionKey)
	case *jobstate.DrainedContext:
		unshare(&h.failures, &h.scratch.noFailures)
		h.drained.UnionWith(idset.Intersect(&h.draining, c.Ranks))
		h.endHold(&h.draining, c.Ranks)
	case nil:
		switch e.Name {
		case jobstate.EventStart:
			h.start(e.Timestamp)
		case jobstate.EventClean: // there are holds if an instance lost an epilog
			h.actions = nil
			h.executor.SubtractWith(&h.executor)
			h.draining.SubtractWith(&h.draining)
		}
	}
	h.leaveUnheld()
}

func (h *Holds) start(t eventlog.Timestamp) {
	if h.startTime != 0 {
		return
	}
	h.startTime = t
	if !h.job.Released() {
		h.executor.UnionWith(&h.all)
		h.executor.SubtractWith(&h.left)
		h.executor.SubtractWith(&h.dropped)
	}
}

func (h *Holds) release(c *jobstate.ReleaseContext) {
	switch {
	case c.Final:
		h.executor.SubtractWith(&h.executor)
		h.endJob()
		for i := range h.named {
			h.named[i].ended = true
		}
	case c.Ranks.All:
		h.endHold(&h.executor, &h.all)
	default:
		h.endHold(&h.executor, c.Ranks.Set)
	}
}

// endJob ends the hold of the job itself on the ranks that have not left, once it started.
func (h *Holds) endJob() {
	if h.job.Started() {
		h.scratch.ended.UnionWith(&h.all)
		h.scratch.ended.SubtractWith(&h.left)
	}
}

// onlyJob reports whether nothing but the job itself holds some of its ranks.
func (h *Holds) onlyJob() bool {
	h.endJob()
	h.excludeHeld()
	only := !h.scratch.ended.IsEmpty()
	h.scratch.ended.SubtractWith(&h.scratch.ended)
	return only
}

// fail notes that ranks failed while the job goes on. Only a drain holds dropped ones.
func (h *Holds) fail(f *jobstate.FailedRanks) {
	drop := f.Action == jobstate.FailedDrop
	h.failRanks(f.Ranks, drop)
	if !drop {
		return
	}
	ranks := idset.Intersect(f.Ranks, &h.all)
	h.dropped.UnionWith(ranks)
	ranks.SubtractWith(&h.left)
	h.executor.SubtractWith(ranks)
	h.scratch.ended.UnionWith(ranks)
}

// failRanks notes that ranks failed, and whether a drain holds them.
func (h *Holds) failRanks(ranks *idset.Set, drain bool) {
	unshare(&h.failures, &h.scratch.noFailures)
	ranks = idset.Intersect(ranks, &h.all)
	h.failed.UnionWith(ranks)
	if drain {
		ranks.SubtractWith(&h.left)
		ranks.SubtractWith(&h.drained)
		h.draining.UnionWith(ranks)
	}
}

func (h *Holds) actionStart(c *jobstate.ActionStartContext, t eventlog.Timestamp) {
	a := &activeAction{ActionKey: c.ActionKey, since: t}
	if c.Ranks.All {
		a.ranks.UnionWith(&h.all)
		a.ranks.SubtractWith(&h.dropped)
	} else {
		a.ranks.UnionWith(c.Ranks.Set)
		a.ranks.IntersectWith(&h.all)
	}
	a.ranks.SubtractWith(&h.left)
	for _, name := range c.Resources {
		if i := h.nameIndex(name); i >= 0 && !h.named[i].left {
			h.named[i].acted = true
			a.names = append(a.names, i)
		}
	}
	slices.Sort(a.names)
	h.actions = append(h.actions, a)
	h.prepared = h.prepared || c.Kind == jobstate.ActionProlog && !h.ending()
}

// actionRelease ends an action on ranks and names. Of one key, the oldest that holds a rank ends there.
func (h *Holds) actionRelease(c *jobstate.ActionReleaseContext) {
	h.scratch.want.UnionWith(c.Ranks)
	names := c.Resources
	for _, a := range h.actions {
		if a.ActionKey != c.ActionKey {
			continue
		}
		h.endWanted(&a.ranks)
		names = slices.DeleteFunc(slices.Clone(names), func(name string) bool {
			i, ok := slices.BinarySearch(a.names, h.nameIndex(name))
			if ok {
				h.named[a.names[i]].ended = true
				a.names = slices.Delete(a.names, i, i+1)
			}
			return ok
		})
	}
	h.scratch.want.SubtractWith(&h.scratch.want)
}

// actionFinish ends the oldest action of a key.
func (h *Holds) actionFinish(key jobstate.ActionKey) {
	i := slices.IndexFunc(h.actions, func(a *activeAction) bool { return a.ActionKey == key })
	a := h.actions[i] // jobstate ignores a finish of what is not active
	h.actions = slices.Delete(h.actions, i, i+1)
	h.scratch.ended.UnionWith(&a.ranks)
	for _, i := range a.names {
		h.named[i].ended = true
	}
}

// hold returns the oldest active start of an action, nil if it has none.
func (h *Holds) hold(key jobstate.ActionKey) *activeAction {
	for _, a := range h.actions {
		if a.ActionKey == key {
			return a
		}
	}
	return nil
}

// leaveUnheld lets ranks and named resources leave that nothing holds any more. The current
// event has ended a hold on those in h.scratch.ended, and on the names so marked.
func (h *Holds) leaveUnheld() {
	h.leaveUnheldNames()
	ended := &h.scratch.ended
	switch {
	case !h.over && h.isOver():
		h.over = true
		ended.UnionWith(&h.all)
		ended.SubtractWith(&h.left)
		h.leave(ended)
		for i := range h.named {
			h.named[i].left = true
		}
	case h.job.WasAllocated() && !ended.IsEmpty():
		if !h.ending() {
			ended.IntersectWith(&h.dropped)
		}
		h.excludeHeld()
		h.leave(ended)
	}
	ended.SubtractWith(ended)
}

// excludeHeld removes from h.scratch.ended what is still held, except by the job itself.
func (h *Holds) excludeHeld() {
	exclude(&h.scratch.ended, &h.executor)
	exclude(&h.scratch.ended, &h.draining)
	for _, a := range h.actions {
		exclude(&h.scratch.ended, &a.ranks)
	}
}

// leaveUnheldNames lets a named resource leave that an action held, and none holds any more.
func (h *Holds) leaveUnheldNames() {
	for i := range h.named {
		n := &h.named[i]
		if n.ended && n.acted && h.job.WasAllocated() && h.ending() && !h.executing() &&
			!slices.ContainsFunc(h.actions, func(a *activeAction) bool { return a.hasName(i) }) {
			n.left = true
		}
		n.ended = false
	}
}

func (a *activeAction) hasName(i int) bool {
	_, ok := slices.BinarySearch(a.names, i)
	return ok
}

// leave adds ranks to those that have left.
func (h *Holds) leave(ranks *idset.Set) {
	h.left.UnionWith(ranks)
	h.fresh.UnionWith(ranks)
}

// ending reports whether the job is in CLEANUP or past it.
func (h *Holds) ending() bool {
	return h.job.State().In(jobstate.StateCleanup | jobstate.StateInactive)
}

// allocated reports whether the job has resources, or had them until they were revoked.
func (h *Holds) allocated() bool { return h.job.HasResources() || h.revoked }

// used reports whether the nodes were prepared or used: a prolog or the job started.
func (h *Holds) used() bool { return h.job.Started() || h.prepared }

func (h *Holds) allFailed() bool { return !h.failed.IsEmpty() && h.failed.ContainsAll(&h.all) }

// executing reports whether the executor has not released everything.
func (h *Holds) executing() bool {
	return h.job.Started() && !h.job.Released() && h.job.State() != jobstate.StateInactive
}

// isOver reports whether the job was freed and nothing holds anything of it. If an instance that
// lost an epilog freed it, that is when the epilog ends, or the log is closed.
func (h *Holds) isOver() bool {
	if h.job.State() == jobstate.StateInactive {
		return h.job.WasAllocated() && !h.revoked
	}
	return h.job.WasAllocated() && !h.job.HasResources() && !h.revoked && h.ending() &&
		!h.executing() && len(h.actions) == 0 && h.draining.IsEmpty()
}

// nameIndex returns the place of a named resource, or -1.
func (h *Holds) nameIndex(name string) int {
	return slices.IndexFunc(h.named, func(n named) bool { return n.name == name })
}

// few is how many ids of a set, mostly that of an event, are compared one by one with a large set.
const few = 32

// endHold moves from a hold to h.scratch.ended the ranks that an event names.
func (h *Holds) endHold(hold, ranks *idset.Set) {
	h.scratch.want.UnionWith(ranks)
	h.endWanted(hold)
	h.scratch.want.SubtractWith(&h.scratch.want)
}

// endWanted does so for the ranks of h.scratch.want, and leaves there what the hold lacks.
func (h *Holds) endWanted(hold *idset.Set) {
	if h.scratch.want.Len() > few {
		both := idset.Intersect(&h.scratch.want, hold)
		hold.SubtractWith(both)
		h.scratch.want.SubtractWith(both)
		h.scratch.ended.UnionWith(both)
		return
	}
	for id := range h.scratch.want.All() {
		if hold.Remove(id) {
			h.scratch.ended.Insert(id)
			h.scratch.want.Remove(id)
		}
	}
}

func exclude(set, other *idset.Set) {
	if n := set.Len(); n > few || n >= other.Len() {
		set.SubtractWith(other)
		return
	}
	for id := range set.All() {
		if other.Contains(id) {
			set.Remove(id)
		}
	}
}
