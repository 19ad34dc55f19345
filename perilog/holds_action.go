package perilog

import (
	"slices"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
)

// MaxActions is how many prologs and epilogs of a job may be active at once.
// Every end of one costs by those that are, and each may hold all ranks.
const MaxActions = 1 << 10

func (h *Holds) actionStart(kind jobstate.ActionKind, e eventlog.Entry) (Note, error) {
	s := &h.scan
	if err := s.scan(e.Name, e.Context, sayStart); err != nil {
		return Note{}, err
	}
	if kind == jobstate.ActionProlog && h.started {
		return Note{Kind: NoteStarted}, nil // the reducer does not count it either
	}
	if len(h.actions) == MaxActions {
		return Note{}, ErrActions
	}
	note := Note{Kind: NoteApplied}
	if s.saw(sayRanks) {
		note.Unknown = beyond(&s.ranks, &h.all)
		s.ranks.IntersectWith(&h.all)
	} else {
		s.ranks.UnionWith(&h.all)
		s.ranks.SubtractWith(&h.dropped)
	}
	a := &activeAction{kind: kind, description: string(s.description), since: e.Timestamp}
	if s.ranks.Intersects(&h.left) {
		note.Kind, note.Past = NoteLate, idset.Intersect(&s.ranks, &h.left)
		s.ranks.SubtractWith(&h.left)
	}
	a.ranks.UnionWith(&s.ranks)
	for _, name := range s.names {
		i := h.nameIndex(name)
		if i < 0 || h.named[i].left {
			note.Names = append(note.Names, name)
			if i >= 0 {
				note.Kind = NoteLate
			}
			continue
		}
		h.named[i].acted = true
		a.names = append(a.names, i)
	}
	slices.Sort(a.names)
	h.actions = append(h.actions, a)
	return note, nil
}

// actionRelease ends actions of the description on ranks and names: the oldest
// one first that holds them.
func (h *Holds) actionRelease(kind jobstate.ActionKind) Note {
	s := &h.scan
	note := Note{Kind: NoteStranger}
	nameEnded := false
	// A line has room for many names, of which the job knows few.
	known := slices.DeleteFunc(slices.Clone(s.names), func(name string) bool { return h.nameIndex(name) < 0 })
	for _, a := range h.actions {
		if !a.is(kind, s.description) {
			continue
		}
		note.Kind = NoteApplied
		h.take(&a.ranks)
		known = slices.DeleteFunc(known, func(name string) bool {
			i, ok := slices.BinarySearch(a.names, h.nameIndex(name))
			if ok {
				h.named[a.names[i]].ended, nameEnded = true, true
				a.names = slices.Delete(a.names, i, i+1)
			}
			return ok
		})
	}
	if note.Kind == NoteStranger {
		return note
	}
	if !nameEnded && h.ended.IsEmpty() {
		note.Kind = NoteRepeated
	}
	note.Names = slices.DeleteFunc(s.names, func(name string) bool {
		i := h.nameIndex(name)
		return i >= 0 && h.named[i].ended
	})
	h.blame(&note)
	h.settle()
	return note
}

// actionFinish ends the oldest action of the description. An epilog-finish with
// ranks, as first proposed upstream, ends it on those; it is over when it holds
// nothing more.
func (h *Holds) actionFinish(ev event, e eventlog.Entry) (Note, error) {
	s, want := &h.scan, sayEnd
	if ev == evEpilogFinish {
		want = sayFinish
	}
	if err := s.scan(e.Name, e.Context, want); err != nil {
		return Note{}, err
	}
	kind, failed := ev.actionKind(), s.status != 0
	note := Note{Kind: NoteApplied}
	partial := s.saw(sayRanks | sayResources)
	if partial {
		note = h.actionRelease(kind)
	}
	i := slices.IndexFunc(h.actions, func(a *activeAction) bool {
		return a.is(kind, s.description) && (!partial || a.ranks.IsEmpty() && len(a.names) == 0)
	})
	switch {
	case i >= 0:
		a := h.actions[i]
		h.actions = slices.Delete(h.actions, i, i+1)
		h.prologFailed = h.prologFailed || failed && kind == jobstate.ActionProlog
		h.ended.UnionWith(&a.ranks)
		for _, i := range a.names {
			h.named[i].ended = true
		}
		h.settleLast()
		note.Kind = NoteApplied
	case !partial:
		note.Kind = NoteStranger
	}
	return note, nil
}

// is reports whether the action is one of that kind and description.
func (a *activeAction) is(kind jobstate.ActionKind, description []byte) bool {
	return a.kind == kind && a.description == string(description)
}

// blame notes which ranks of the scanned ones are not the job's, and which had
// ended before: take has removed those that had not.
func (h *Holds) blame(note *Note) {
	if h.scan.ranks.IsEmpty() || h.scan.all {
		return
	}
	note.Unknown = beyond(&h.scan.ranks, &h.all)
	if past := idset.Intersect(&h.scan.ranks, &h.all); !past.IsEmpty() {
		note.Past = past
	}
}

// settleLast is settle after the end of a whole hold, which may have been the
// last of all.
func (h *Holds) settleLast() {
	if h.Idle() {
		h.leaveAll()
	}
	h.settle()
}

// settle lets leave what nothing holds any more of the ranks in h.ended and of
// the named resources so marked, on which the current event has ended a hold.
// It empties h.ended and removes the marks.
func (h *Holds) settle() {
	h.settleNames()
	if h.wasAllocated && !h.ended.IsEmpty() {
		if !h.cleanup {
			h.unlessGivenUp()
		}
		exclude(&h.ended, &h.executor)
		for _, a := range h.actions {
			exclude(&h.ended, &a.ranks)
		}
		h.leave(&h.ended)
	}
	h.ended.SubtractWith(&h.ended)
}

// unlessGivenUp removes from h.ended what the job itself holds before CLEANUP:
// all but what was released early or dropped.
func (h *Holds) unlessGivenUp() {
	if h.earlyReleased.IsEmpty() && h.dropped.IsEmpty() {
		h.ended.SubtractWith(&h.ended)
		return
	}
	kept := idset.Difference(&h.ended, &h.earlyReleased)
	kept.SubtractWith(&h.dropped)
	h.ended.SubtractWith(kept)
}

// settleNames is settle of named resources: an action held what leaves, and
// none does.
func (h *Holds) settleNames() {
	for i := range h.named {
		n := &h.named[i]
		if n.ended && n.acted && h.wasAllocated && h.cleanup && !h.executing() &&
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

// leaveAll lets everything leave. Nothing holds anything.
func (h *Holds) leaveAll() {
	if !h.wasAllocated || h.over {
		return
	}
	h.over = true
	h.leave(idset.Difference(&h.all, &h.left))
	for i := range h.named {
		h.named[i].left = true
	}
}

// leave adds ranks to those that have left.
func (h *Holds) leave(ranks *idset.Set) {
	for first, last := range ranks.Ranges() {
		if first == last { // which moves less than a range does
			h.left.Insert(first)
			h.fresh.Insert(first)
			continue
		}
		h.left.InsertRange(first, last)
		h.fresh.InsertRange(first, last)
	}
}

// executing reports whether the executor has not let go of everything.
func (h *Holds) executing() bool { return h.started && !h.finalRelease }

// nameIndex returns the place of a named resource, or -1.
func (h *Holds) nameIndex(name string) int {
	i, ok := slices.BinarySearchFunc(h.named, name, func(n named, name string) int {
		switch {
		case n.name < name:
			return -1
		case n.name > name:
			return 1
		}
		return 0
	})
	if !ok {
		return -1
	}
	return i
}

// few is up to how many ids a set is looked through one by one: sets that events
// name are small, those that they are compared with may be large.
const few = 32

// take moves from a hold to h.ended the ranks that the scanned context names, and
// leaves in h.scan.ranks those that the hold did not have.
func (h *Holds) take(hold *idset.Set) {
	want := &h.scan.ranks
	if want.Len() > few {
		h.both.UnionWith(want)
		h.both.IntersectWith(hold)
		hold.SubtractWith(&h.both)
		want.SubtractWith(&h.both)
		h.ended.UnionWith(&h.both)
		h.both.SubtractWith(&h.both)
		return
	}
	for id := range want.All() {
		if hold.Remove(id) {
			h.ended.Insert(id)
			want.Remove(id)
		}
	}
}

// exclude removes from set what is in other.
func exclude(set, other *idset.Set) {
	if set.Len() > few {
		set.SubtractWith(other)
		return
	}
	for id := range set.All() {
		if other.Contains(id) {
			set.Remove(id)
		}
	}
}

// beyond returns what is in set and not in all, nil if nothing is.
func beyond(set, all *idset.Set) *idset.Set {
	if all.ContainsAll(set) {
		return nil
	}
	return idset.Difference(set, all)
}
