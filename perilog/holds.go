package perilog

import (
	"crypto/sha256"
	"math"
	"slices"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/rset"
)

// HoldsOptions are what Holds is told beside the R of the job. The zero value
// is the default.
type HoldsOptions struct {
	// Named are resources without a rank that the job has, as a rabbit's file
	// system. One given twice counts once.
	Named []string
	// EarlyRelease lets go the ranks that the executor releases before the job
	// finishes. Otherwise such a release changes nothing, and the job holds its
	// ranks to its end.
	EarlyRelease bool
}

// Holds tells who holds what of the R of one job: the job itself, the executor,
// prologs and epilogs. It is a fold over the events of the job's log, so that
// the same log gives the same holds, live and after a restart.
//
//   - The job holds its ranks from alloc until CLEANUP begins, with finish or
//     with an exception of severity 0.
//   - The executor holds ranks from start until it releases them. A final
//     release lets go of all. It holds all named resources until then.
//   - A prolog or epilog holds the ranks and named resources that its start
//     names until an event ends it on them. Two live starts of one kind and
//     description are two holds; the older one ends first.
//
// A rank leaves when an event ends a hold on it, no other hold names it, and
// the job holds it no more. A named resource leaves so when an action that held
// it ends, the job is in CLEANUP and the executor has released all. What nobody
// but the job ever held leaves with the end of the last hold, or with the event
// free where there was none: entering CLEANUP alone frees nothing, because an
// epilog may start next. What has left never comes back: an action that starts
// later does not hold it. Whoever wants to take ranks over from another hold has
// to start before that ends.
//
// The zero Holds is that of a job without resources. One goroutine at a time
// may use a Holds, and it must not be copied.
type Holds struct {
	all   idset.Set // the ranks of R
	named []named   // in the order of their names
	early bool      // HoldsOptions.EarlyRelease

	allocated     bool // as jobstate.Job.HasResources
	wasAllocated  bool
	revoked       bool // by scheduler-restart: not ours to free
	started       bool
	finished      bool
	cleanup       bool
	finalRelease  bool
	prologFailed  bool
	closed        bool // by clean
	allocTime     eventlog.Timestamp
	startTime     eventlog.Timestamp
	dataOut       eventlog.Timestamp // 0: not said
	executor      idset.Set          // what it holds
	earlyReleased idset.Set          // what the executor released before finish
	failed        idset.Set          // named by exceptions
	dropped       idset.Set          // those of them that the job gave up
	actions       []*activeAction    // in the order of their starts
	left          idset.Set
	over          bool // everything has left

	fed   *rset.Ledger // the ledger of the last Feed
	fresh idset.Set    // what has left since then

	last  entryMark
	scan  scanner
	ended idset.Set // scratch: ranks on which the current event ends a hold
	both  idset.Set // scratch of take
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
	kind        jobstate.ActionKind
	description string
	since       eventlog.Timestamp
	ranks       idset.Set // what it holds still
	names       []int     // indices in Holds.named, ascending
}

// NewHolds returns the holds of a job before its first event. r is the R that
// the job was allocated, nil for none: a manager that learns R with alloc makes
// a new Holds then and folds the log so far again. NewHolds retains nothing.
func NewHolds(r *rset.R, o HoldsOptions) *Holds {
	h := &Holds{early: o.EarlyRelease}
	h.all.UnionWith(r.Ranks())
	names := slices.Clone(o.Named)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		h.named = append(h.named, named{name: name})
	}
	return h
}

// entryMark tells an entry from others. The zero mark is none's.
type entryMark struct {
	time   eventlog.Timestamp
	size   int
	digest [64]byte // the context, where it fits, else its SHA-256
	event  event
}

func markOf(ev event, e eventlog.Entry) entryMark {
	m := entryMark{time: e.Timestamp, size: len(e.Context), event: ev}
	if len(e.Context) <= len(m.digest) {
		copy(m.digest[:], e.Context)
	} else {
		sum := sha256.Sum256(e.Context)
		copy(m.digest[:], sum[:])
	}
	return m
}

// event is the number of an event that concerns holds; 0 is any other.
type event uint8

const (
	evNone event = iota
	evAlloc
	evStart
	evFinish
	evRelease
	evFree
	evClean
	evException
	evMemo
	evPrologStart
	evPrologRelease
	evPrologFinish
	evEpilogStart
	evEpilogRelease
	evEpilogFinish
)

// eventOf returns the number of the event of that name.
func eventOf(name string) event {
	switch name {
	case jobstate.EventAlloc:
		return evAlloc
	case jobstate.EventStart:
		return evStart
	case jobstate.EventFinish:
		return evFinish
	case jobstate.EventRelease:
		return evRelease
	case jobstate.EventFree:
		return evFree
	case jobstate.EventClean:
		return evClean
	case jobstate.EventException:
		return evException
	case jobstate.EventMemo:
		return evMemo
	case jobstate.EventPrologStart:
		return evPrologStart
	case EventPrologRelease:
		return evPrologRelease
	case jobstate.EventPrologFinish:
		return evPrologFinish
	case jobstate.EventEpilogStart:
		return evEpilogStart
	case EventEpilogRelease:
		return evEpilogRelease
	case jobstate.EventEpilogFinish:
		return evEpilogFinish
	default:
		return evNone
	}
}

// actionKind returns the kind of the action that an event is of.
func (ev event) actionKind() jobstate.ActionKind {
	if ev >= evEpilogStart {
		return jobstate.ActionEpilog
	}
	return jobstate.ActionProlog
}

// Apply folds one entry of the job's log. It takes what a jobstate.Job accepted,
// in the order of the log; whether RFC 21 allows the event is that reducer's to
// say. The Note tells what the event did, and what of it came too late or names
// what the job does not have: that is never an error.
//
// The error is an *EventError: the context of an event that concerns holds is
// malformed, the time is none that an event can have, or MaxActions are active
// and one more starts. Then nothing has changed. An entry that is to the byte the one before it is a duplicate, as it
// is for a jobstate.Job.
//
// Apply keeps no reference to e. A release by the executor and the partial end
// of an action cost by the ranges that they name and by the actions that are
// active, whatever the size of the job, and do not allocate while ranks are few
// ranges and names are none.
func (h *Holds) Apply(e eventlog.Entry) (Note, error) {
	if t := float64(e.Timestamp); !(t > 0) || math.IsInf(t, 0) {
		return Note{}, &EventError{Event: clip(e.Name), Err: eventlog.ErrEntry}
	}
	ev := eventOf(e.Name)
	if ev == evNone {
		h.last = entryMark{}
		return Note{Kind: NoteNone}, nil
	}
	mark := markOf(ev, e)
	if mark == h.last {
		return Note{Kind: NoteDuplicate}, nil
	}
	note, err := h.fold(ev, e)
	if err != nil {
		return Note{}, &EventError{Event: clip(e.Name), Err: err}
	}
	h.last = mark
	return note, nil
}

// fold takes the event in. It decodes before it changes anything.
func (h *Holds) fold(ev event, e eventlog.Entry) (Note, error) {
	switch ev {
	case evAlloc:
		return h.alloc(e)
	case evStart:
		return h.start(e), nil
	case evFinish:
		return h.finish(e)
	case evRelease:
		return h.release(e)
	case evFree, evClean:
		return h.free(ev), nil
	case evException:
		return h.exception(e)
	case evMemo:
		return h.memo(e)
	case evPrologStart, evEpilogStart:
		return h.actionStart(ev.actionKind(), e)
	case evPrologRelease, evEpilogRelease:
		if err := h.scan.scan(e.Name, e.Context, sayRelease); err != nil {
			return Note{}, err
		}
		return h.actionRelease(ev.actionKind()), nil
	default:
		return h.actionFinish(ev, e)
	}
}

func (h *Holds) alloc(e eventlog.Entry) (Note, error) {
	if _, err := jobstate.ParseContext(e); err != nil {
		return Note{}, err
	}
	if h.allocated {
		return Note{Kind: NoteRepeated}, nil
	}
	if !h.wasAllocated {
		h.allocTime = e.Timestamp
	}
	h.allocated, h.wasAllocated, h.revoked = true, true, false
	return Note{Kind: NoteApplied}, nil
}

func (h *Holds) start(e eventlog.Entry) Note {
	if h.started {
		return Note{Kind: NoteRepeated}
	}
	h.started, h.startTime = true, e.Timestamp
	if !h.finalRelease {
		h.executor.UnionWith(&h.all)
		h.executor.SubtractWith(&h.left)
		h.executor.SubtractWith(&h.dropped)
	}
	return Note{Kind: NoteApplied}
}

func (h *Holds) finish(e eventlog.Entry) (Note, error) {
	if _, err := jobstate.ParseContext(e); err != nil {
		return Note{}, err
	}
	if h.finished {
		return Note{Kind: NoteRepeated}, nil
	}
	h.finished, h.cleanup = true, true
	return Note{Kind: NoteApplied}, nil
}

func (h *Holds) release(e eventlog.Entry) (Note, error) {
	s := &h.scan
	if err := s.scan(e.Name, e.Context, sayLetGo); err != nil {
		return Note{}, err
	}
	note := Note{Kind: NoteApplied}
	if s.all {
		s.ranks.UnionWith(&h.all)
	}
	switch {
	case h.finalRelease:
		note.Kind = NoteRepeated
		h.blame(&note)
	case !s.final && !h.started:
		note.Kind = NoteStranger
	case !s.final && !h.finished && !h.early:
		note.Kind = NoteEarly
	case s.final:
		h.finalRelease = true
		h.take(&h.executor)
		h.blame(&note)
		h.ended.UnionWith(&h.executor)
		h.executor.SubtractWith(&h.executor)
		for i := range h.named {
			h.named[i].ended = true
		}
		h.settleLast()
	default:
		h.take(&h.executor)
		if h.ended.IsEmpty() {
			note.Kind = NoteRepeated
		}
		h.blame(&note)
		if !h.finished && h.wasAllocated {
			h.earlyReleased.UnionWith(&h.ended)
		}
		h.settle()
	}
	return note, nil
}

// free takes in free and clean. Whoever holds something still holds it: an
// instance that lost an epilog logs both all the same.
func (h *Holds) free(ev event) Note {
	if ev == evFree && !h.allocated {
		return Note{Kind: NoteRepeated}
	}
	if ev == evFree {
		h.allocated = false
	} else {
		h.closed = true
	}
	if !h.Idle() {
		return Note{Kind: NoteHeld}
	}
	h.leaveAll()
	return Note{Kind: NoteApplied}
}

func (h *Holds) exception(e eventlog.Entry) (Note, error) {
	c, err := jobstate.ParseContext(e)
	if err != nil {
		return Note{}, err
	}
	x := c.(*jobstate.ExceptionContext)
	if x.Severity == 0 {
		h.cleanup = true
		if x.Type == "scheduler-restart" && h.allocated {
			h.allocated, h.revoked = false, true
		}
		return Note{Kind: NoteApplied}, nil
	}
	if x.Failed == nil {
		return Note{Kind: NoteNone}, nil
	}
	s := &h.scan
	if err := s.scan(e.Name, e.Context, sayFailed); err != nil {
		return Note{}, err
	}
	note := Note{Kind: NoteApplied}
	note.Unknown = beyond(&s.ranks, &h.all)
	s.ranks.IntersectWith(&h.all)
	grown := h.failed.UnionWith(&s.ranks)
	if s.action == FailedDrop {
		s.ranks.SubtractWith(&h.dropped)
		grown = h.dropped.UnionWith(&s.ranks) || grown
		h.executor.SubtractWith(&s.ranks)
		h.ended.UnionWith(&s.ranks)
		h.settle()
	}
	if !grown {
		note.Kind = NoteRepeated
	}
	return note, nil
}

// memo looks for the data-out memo. What else a memo says, and of what type, is
// its writer's business.
func (h *Holds) memo(e eventlog.Entry) (Note, error) {
	c, err := jobstate.ParseContext(e)
	if err != nil {
		return Note{}, err
	}
	cur := contextLimits().Object(c.(*jobstate.MemoContext).Values)
	for cur.Next() {
		if string(cur.Key()) != MemoDataOut {
			continue
		}
		if string(cur.Raw()) != "true" {
			h.dataOut = 0
		} else if h.dataOut == 0 {
			h.dataOut = e.Timestamp
		}
		return Note{Kind: NoteApplied}, nil
	}
	return Note{Kind: NoteNone}, nil
}
