package perilog

import (
	"iter"
	"slices"
	"strconv"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/rset"
)

// NoteKind says what Apply did with an event. The zero NoteKind is invalid: it
// comes with an error.
type NoteKind uint8

// The kinds of notes.
const (
	// NoteApplied: the event is part of the state now.
	NoteApplied NoteKind = 1 + iota
	// NoteNone: the event says nothing of holds.
	NoteNone
	// NoteDuplicate: the entry is, to the byte, the one before it.
	NoteDuplicate
	// NoteRepeated: all that the event says was so before, as a release of ranks
	// that had been released.
	NoteRepeated
	// NoteStranger: the event ends an action that is not active, or a hold of
	// an executor that never started.
	NoteStranger
	// NoteStarted: a prolog starts after the job has, and can hold it no more.
	NoteStarted
	// NoteEarly: the executor releases ranks before finish, and HoldsOptions do
	// not have that free them.
	NoteEarly
	// NoteLate: an action starts after some of its ranks or named resources have
	// left, and does not hold those. It is active, and holds the others.
	NoteLate
	// NoteHeld: the job is freed or closed while something holds it. It is still
	// held.
	NoteHeld
)

// String returns what the note says, in words.
func (k NoteKind) String() string {
	switch k {
	case NoteApplied:
		return "applied"
	case NoteNone:
		return "says nothing of holds"
	case NoteDuplicate:
		return "repeats the entry before it"
	case NoteRepeated:
		return "was so before"
	case NoteStranger:
		return "ends what is not active"
	case NoteStarted:
		return "the job has started"
	case NoteEarly:
		return "released before finish"
	case NoteLate:
		return "starts after ranks have left"
	case NoteHeld:
		return "something is still held"
	default:
		return "NoteKind(" + strconv.Itoa(int(k)) + ")"
	}
}

// A Note tells what Apply did with an event. The sets are the caller's.
type Note struct {
	Kind    NoteKind
	Unknown *idset.Set // the ranks named that are not the job's; nil: none
	Past    *idset.Set // the job's ranks named on which there was nothing to end, or that had left; nil: none
	Names   []string   // the same of named resources
}

// HolderKind says what holds ranks. The zero HolderKind is invalid.
type HolderKind uint8

// The kinds of holders.
const (
	HolderJob HolderKind = 1 + iota
	HolderExecutor
	HolderProlog
	HolderEpilog
)

// String returns "job", "executor", "prolog" or "epilog"; another value prints
// as HolderKind(n).
func (k HolderKind) String() string {
	switch k {
	case HolderJob:
		return "job"
	case HolderExecutor:
		return "executor"
	case HolderProlog:
		return "prolog"
	case HolderEpilog:
		return "epilog"
	default:
		return "HolderKind(" + strconv.Itoa(int(k)) + ")"
	}
}

// A Holder is one that holds something of the job. It may hold no ranks and no
// named resources and still stand against freeing the job, as an action does
// that has ended on all its ranks and was not finished.
type Holder struct {
	Kind        HolderKind
	Description string             // of an action
	Since       eventlog.Timestamp // the event that began the hold
	Ranks       *idset.Set         // what it still holds; a copy, not nil
	Named       []string           // in order; a copy
}

// Holders yields who holds something: the job, the executor, then the actions in
// the order of their starts. Before alloc nobody holds ranks, though actions may
// be active. It costs a copy of what each holds. Holds must not change
// meanwhile.
func (h *Holds) Holders() iter.Seq[Holder] {
	return func(yield func(Holder) bool) { h.visit(nil, yield) }
}

// HoldersOf yields those of the Holders that hold a rank.
func (h *Holds) HoldersOf(rank uint32) iter.Seq[Holder] {
	holds := func(ranks *idset.Set) bool { return ranks.Contains(rank) }
	return func(yield func(Holder) bool) { h.visit(holds, yield) }
}

// visit yields the holders whose ranks match; nil matches all.
func (h *Holds) visit(match func(*idset.Set) bool, yield func(Holder) bool) {
	show := func(x Holder, ranks *idset.Set, names []string) bool {
		if !h.wasAllocated {
			ranks, names = nil, nil
		}
		if match != nil && !match(ranks) {
			return true
		}
		x.Ranks, x.Named = ranks.Clone(), names
		return yield(x)
	}
	if h.wasAllocated && !h.cleanup && !show(Holder{Kind: HolderJob, Since: h.allocTime}, h.jobRanks(), h.namesNotLeft()) {
		return
	}
	if h.executing() && !show(Holder{Kind: HolderExecutor, Since: h.startTime}, &h.executor, h.namesNotLeft()) {
		return
	}
	for _, a := range h.actions {
		var names []string
		for _, i := range a.names {
			names = append(names, h.named[i].name)
		}
		x := Holder{Kind: HolderProlog, Description: a.description, Since: a.since}
		if a.kind == jobstate.ActionEpilog {
			x.Kind = HolderEpilog
		}
		if !show(x, &a.ranks, names) {
			return
		}
	}
}

// jobRanks returns what the job itself holds before CLEANUP.
func (h *Holds) jobRanks() *idset.Set {
	s := idset.Difference(&h.all, &h.dropped)
	s.SubtractWith(&h.earlyReleased)
	return s
}

func (h *Holds) namesNotLeft() []string {
	var names []string
	for _, n := range h.named {
		if !n.left {
			names = append(names, n.name)
		}
	}
	return names
}

// Held returns a new set of the ranks that somebody holds. It costs by the
// ranges of all holders. Ranks that are neither held nor ready wait for the
// end of the job: see Holds.
func (h *Holds) Held() *idset.Set {
	held := new(idset.Set)
	if !h.wasAllocated {
		return held
	}
	if !h.cleanup {
		held.UnionWith(h.jobRanks())
	}
	held.UnionWith(&h.executor)
	for _, a := range h.actions {
		held.UnionWith(&a.ranks)
	}
	return held
}

// Ready returns a new set of those of the ranks that have left; nil means all.
// It never shrinks.
func (h *Holds) Ready(ranks *idset.Set) *idset.Set {
	if ranks == nil {
		return h.left.Clone()
	}
	return idset.Intersect(&h.left, ranks)
}

// ReadyNamed returns the named resources that have left, in order.
func (h *Holds) ReadyNamed() []string {
	var names []string
	for _, n := range h.named {
		if n.left {
			names = append(names, n.name)
		}
	}
	return names
}

// Released returns what [rset.Rebuild] makes the job's ledger of after a restart:
// what has left, and that the final fragment was given out if the log has the
// event free and nothing is held. What the crash kept from a scheduler it
// learns by hello.
func (h *Holds) Released() rset.Released {
	given := h.wasAllocated && !h.allocated && !h.revoked && h.Idle()
	return rset.Released{Ranks: h.Ready(nil), Named: h.ReadyNamed(), Final: given}
}

// Feed frees from the ledger whatever has left and the ledger still holds, and
// returns it as one fragment: empty if there is nothing to tell. When everything
// has left, it frees all that the ledger holds, also what Holds does not know
// of. So one fragment of a ledger is final, the last; that is the one after
// which nothing is held, whether the job was freed already or still runs with
// all its ranks dropped. After a revocation there is nothing to free.
//
// It may be called after every event, or after some, or with a ledger that was
// rebuilt. Feeding one ledger again and again costs by what has left meanwhile;
// another one costs by all. Holds keeps a reference to l.
func (h *Holds) Feed(l *rset.Ledger) rset.Fragment {
	f := rset.Fragment{R: new(rset.R)}
	if h.revoked {
		return f
	}
	if h.over {
		if rest, err := l.FreeRest(); err == nil {
			f = rest
		} // else the final fragment was given out before
		h.fed = l
		h.fresh.SubtractWith(&h.fresh)
		return f
	}
	for _, n := range h.named {
		if !n.left {
			continue
		}
		if part, err := l.FreeNamed(n.name); err == nil { // else it is free already
			f.Named = append(f.Named, n.name)
			f.Final = part.Final
		}
	}
	ranks := &h.fresh
	if h.fed != l {
		ranks = &h.left
	}
	if !ranks.IsEmpty() {
		part, err := l.Free(ranks)
		if err != nil { // some are free already, as in a ledger that was rebuilt
			part, _ = l.FreeHeld(ranks)
		}
		f.R, f.Gone, f.Final = part.R, part.Gone, part.Final || f.Final
	}
	h.fed = l
	h.fresh.SubtractWith(&h.fresh)
	return f
}

// Idle reports whether the job is in CLEANUP and nothing holds anything.
func (h *Holds) Idle() bool { return h.cleanup && !h.executing() && len(h.actions) == 0 }

// MayStart reports whether nothing stands against starting the job: it is
// allocated and not ending, has not started, no prolog is active and none has
// failed.
func (h *Holds) MayStart() bool {
	if !h.allocated || h.cleanup || h.started || h.prologFailed {
		return false
	}
	return !slices.ContainsFunc(h.actions, func(a *activeAction) bool { return a.kind == jobstate.ActionProlog })
}

// MayFree reports whether nothing stands against the event free: the job is
// allocated, not closed, and nothing holds anything. It differs from jobstate.Job.MayFree
// where an epilog-finish with ranks has ended an epilog on some ranks alone.
func (h *Holds) MayFree() bool { return h.allocated && !h.closed && h.Idle() }

// MayClean reports whether nothing stands against the event clean, which has not
// come: the job is ending, has nothing to free, and nothing holds anything.
func (h *Holds) MayClean() bool { return !h.allocated && !h.closed && h.Idle() }

// Revoked reports whether an exception of type scheduler-restart took the
// allocation: the scheduler knows nothing of it, and nothing is to be freed.
func (h *Holds) Revoked() bool { return h.revoked }

// Failed returns a new set of the job's ranks that exceptions named as failed,
// kept and dropped.
func (h *Holds) Failed() *idset.Set { return h.failed.Clone() }

// Dropped returns a new set of the failed ranks that the job gave up: they are no
// part of its effective R.
func (h *Holds) Dropped() *idset.Set { return h.dropped.Clone() }

// DataOut returns when a memo said that the user's data is safe, and false if
// none did, or a later one took it back.
func (h *Holds) DataOut() (eventlog.Timestamp, bool) { return h.dataOut, h.dataOut != 0 }
