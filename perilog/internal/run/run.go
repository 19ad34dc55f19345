package run

import (
	"iter"
	"math"
	"sort"
	"time"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
)

// A Spec says what a [Run] follows.
type Spec struct {
	Title string // begins notes and reasons, such as "prolog" or "epilog scrub"

	// Ranks are those that the action holds. A single command may hold none.
	Ranks *idset.Set

	// PerRank says that the command runs on each rank. Otherwise one command
	// runs on Leader, which need not be one of Ranks. It ends for all ranks at
	// once, except those that a control line released before.
	PerRank bool
	Leader  uint32

	Timeout     time.Duration // from the launch; 0: none
	KillTimeout time.Duration // from SIGTERM to giving up; greater than 0
	Kill        bool          // send SIGKILL when the run gives up

	// IgnoreControl takes control lines that are not understood for plain output.
	IgnoreControl bool

	// Hosts returns the names of ranks, for notes; "" where they are not known.
	Hosts func(*idset.Set) string
}

// A phase is how far a launch is.
type phase uint8

const (
	phaseRunning   phase = iota // the timeout runs
	phaseCanceling              // SIGTERM was sent, as the run was canceled: the kill timeout runs
	phaseTimingOut              // SIGTERM was sent at the timeout: the kill timeout runs
)

// launch is what was launched by one attempt.
type launch struct {
	attempt  uint32
	at       eventlog.Timestamp
	deadline eventlog.Timestamp // 0: none, or none before Signaled
	phase    phase
	alive    int // processes that run, as far as is known
	lost     int // processes that no report has named since the restart
}

// A Run follows one action on the ranks that it holds. It must not be copied,
// and one goroutine at a time may use it.
type Run struct {
	spec Spec
	now  eventlog.Timestamp

	spans []span
	slots []slot              // of the ranks, in their order
	lead  slot                // the process of a single command
	open  int                 // ranks that have not ended
	count [stageEnded + 1]int // processes by stage
	last  uint32              // the latest attempt

	// launches are in the order of their attempts and so of their deadlines.
	// The first one has a process that runs or is lost.
	launches []launch

	// The ranks that no control line has named as failed since the last launch, and as
	// released.
	unreported, unreleased *idset.Set

	canceled bool // the run was canceled
	orphaned bool // a command was given up or lost, whatever cause its rank has

	start, end eventlog.Timestamp

	failures []Failure // what failed and was not taken
	ended    []RankEnd // what ended and was not taken
	signals  []Signal  // what is to be sent and was not taken
	notes    []note    // the first of them
	details  details
}

// span is a range of consecutive ranks: the slot of rank first+i is base+i.
type span struct {
	first, last uint32
	base        int32
}

// A stage is how far the action is on a rank.
type stage uint8

const (
	stageIdle    stage = iota // not launched
	stageRunning              // launched
	stageLost                 // launched before a restart: what became of it is not known
	stageEnded
)

// slot is what is known of one rank, or of the process of a single command.
type slot struct {
	attempt uint32 // of the last launch; 0: none
	status  int32
	stage   stage
	cause   Cause // how it ended, or CauseReported or CauseControl while it runs
	started bool  // a report said so
	drained bool  // a drain was asked for
}

// A Signal is to be sent to processes.
type Signal struct {
	Attempt uint32
	Ranks   *idset.Set // not empty; the leader of a single command
	Signal  int        // 15, SIGTERM, or 9, SIGKILL
}

// A RankEnd is a rank on which the action has ended, with its wait status.
type RankEnd struct {
	Rank   uint32
	Status int32
	Forced bool // an operator ended it
}

// New returns a run that has launched nothing. It retains spec.Ranks, which must not
// change.
func New(spec Spec) *Run {
	r := &Run{spec: spec, unreported: spec.Ranks, unreleased: spec.Ranks}
	base := int32(0)
	for first, last := range spec.Ranks.Ranges() {
		r.spans = append(r.spans, span{first: first, last: last, base: base})
		base += int32(last - first + 1)
	}
	r.slots = make([]slot, base)
	r.open = int(base)
	if r.count[stageIdle] = 1; spec.PerRank {
		r.count[stageIdle] = r.open
	}
	return r
}

// Spec returns what the run follows. The caller must not change it.
func (r *Run) Spec() *Spec { return &r.spec }

func (r *Run) index(rank uint32) (int32, bool) {
	n := sort.Search(len(r.spans), func(i int) bool { return r.spans[i].last >= rank })
	if n == len(r.spans) || rank < r.spans[n].first {
		return 0, false
	}
	return r.spans[n].base + int32(rank-r.spans[n].first), true
}

// process returns the process that runs on a rank, nil if none is to run there.
func (r *Run) process(rank uint32) *slot {
	if !r.spec.PerRank && rank == r.spec.Leader {
		return &r.lead
	}
	if i, ok := r.index(rank); ok && r.spec.PerRank {
		return &r.slots[i]
	}
	return nil
}

// ranks returns a new set of the ranks whose slots match.
func (r *Run) ranks(match func(*slot) bool) *idset.Set {
	set := new(idset.Set)
	for _, span := range r.spans {
		for rank := span.first; rank <= span.last; rank++ {
			from := rank
			for rank <= span.last && match(&r.slots[span.base+int32(rank-span.first)]) {
				rank++
			}
			if from < rank {
				set.InsertRange(from, rank-1)
			}
		}
	}
	return set
}

// where returns a new set of the ranks whose processes match: for a single command, its
// leader or nothing.
func (r *Run) where(match func(*slot) bool) *idset.Set {
	switch {
	case r.spec.PerRank:
		return r.ranks(match)
	case match(&r.lead):
		return idset.Of(r.spec.Leader)
	}
	return new(idset.Set)
}

func (r *Run) at(s stage) *idset.Set { return r.where(func(p *slot) bool { return p.stage == s }) }

// Idle returns a new set of the ranks on which nothing was launched yet: the
// leader of a single command.
func (r *Run) Idle() *idset.Set { return r.at(stageIdle) }

// Running returns a new set of the ranks on which the command may be running.
func (r *Run) Running() *idset.Set { return r.at(stageRunning) }

// Lost returns a new set of the ranks on which the command ran before a restart, and
// which no report has named since.
func (r *Run) Lost() *idset.Set { return r.at(stageLost) }

// LostBy yields the attempts of which processes are lost, with the ranks of Lost.
func (r *Run) LostBy() iter.Seq2[uint32, *idset.Set] {
	return func(yield func(uint32, *idset.Set) bool) {
		for _, l := range r.launches {
			lost := func(p *slot) bool { return p.stage == stageLost && p.attempt == l.attempt }
			if l.lost > 0 && !yield(l.attempt, r.where(lost)) {
				return
			}
		}
	}
}

// Open returns a new set of the ranks on which the action has not ended.
func (r *Run) Open() *idset.Set { return r.ranks(func(s *slot) bool { return s.stage != stageEnded }) }

// Failed returns a new set of the ranks on which the action failed.
func (r *Run) Failed() *idset.Set {
	return r.ranks(func(s *slot) bool { return s.stage == stageEnded && s.status != 0 })
}

// Ends returns every rank on which the action has ended, in their order.
func (r *Run) Ends() []RankEnd {
	var ends []RankEnd
	r.each(r.spec.Ranks, func(rank uint32, s *slot) {
		if s.stage == stageEnded {
			ends = append(ends, RankEnd{rank, s.status, s.cause == CauseForced})
		}
	})
	return ends
}

// HasIdle reports whether Idle is not empty.
func (r *Run) HasIdle() bool { return r.count[stageIdle] > 0 }

// HasLost reports whether Lost is not empty.
func (r *Run) HasLost() bool { return r.count[stageLost] > 0 }

// Alive reports whether a process may be running.
func (r *Run) Alive() bool { return r.count[stageRunning] > 0 }

func (r *Run) enter(p *slot, s stage) {
	r.count[p.stage]--
	r.count[s]++
	p.stage = s
}

// Done reports whether the action has ended on every rank, and no process runs.
func (r *Run) Done() bool {
	return r.open == 0 && (r.spec.PerRank || r.lead.stage == stageEnded)
}

// LastAttempt returns the number of the latest launch, 0 before the first.
func (r *Run) LastAttempt() uint32 { return r.last }

// Canceled reports whether the run was canceled.
func (r *Run) Canceled() bool { return r.canceled }

// Start returns when the first launch was, 0 before that.
func (r *Run) Start() eventlog.Timestamp { return r.start }

// maxSkip is the largest step from one attempt to the next, so that no log uses up
// the numbers.
const maxSkip = 1 << 10

// Launch says that the command was launched on ranks as the given attempt, at time now. It
// passes over ranks on which the action succeeded. A single command is launched on its
// leader, whatever ranks name. An attempt that is not greater than the last one counts as
// the last one plus 1, and so does one that is far greater, which only a damaged log has.
func (r *Run) Launch(now eventlog.Timestamp, attempt uint32, ranks *idset.Set) {
	r.advance(now)
	if attempt <= r.last || attempt-r.last > maxSkip {
		attempt = r.last + 1
	}
	l := launch{attempt: attempt, at: r.now, deadline: r.after(r.now, r.spec.Timeout)}
	r.processes(ranks, func(_ uint32, s *slot) {
		switch s.stage {
		case stageLost:
			r.launchOf(s).lost--
		case stageEnded:
			if s.status == 0 || !r.spec.PerRank {
				return
			}
			r.open++
			r.end, s.cause = 0, 0
		case stageRunning: // in a replay, which does not know of the restart between
			r.launchOf(s).alive--
		}
		r.enter(s, stageRunning)
		*s = slot{attempt: attempt, stage: stageRunning, cause: s.cause, drained: s.drained} // what control lines said of it stands
		l.alive++
	})
	if l.alive == 0 {
		return
	}
	r.last = attempt
	r.unreported = r.spec.Ranks
	r.launches = append(r.launches, l)
	r.forget()
	if r.start == 0 {
		r.start = r.now
	}
	if r.canceled {
		r.terminate(&r.launches[len(r.launches)-1], phaseCanceling)
	}
}

// processes calls f with the processes that run on ranks: a single command runs
// on its leader, whatever ranks name.
func (r *Run) processes(ranks *idset.Set, f func(rank uint32, p *slot)) {
	if !r.spec.PerRank {
		f(r.spec.Leader, &r.lead)
		return
	}
	r.each(ranks, f)
}

// eachOpen calls f with those of some ranks that have not ended.
func (r *Run) eachOpen(ranks *idset.Set, f func(rank uint32, s *slot)) {
	r.each(ranks, func(rank uint32, s *slot) {
		if s.stage != stageEnded {
			f(rank, s)
		}
	})
}

func (r *Run) each(ranks *idset.Set, f func(rank uint32, s *slot)) {
	for first, last := range ranks.Ranges() {
		n := sort.Search(len(r.spans), func(i int) bool { return r.spans[i].last >= first })
		for ; n < len(r.spans) && r.spans[n].first <= last; n++ {
			span := r.spans[n]
			for rank := max(first, span.first); rank <= min(last, span.last); rank++ {
				f(rank, &r.slots[span.base+int32(rank-span.first)])
			}
		}
	}
}

// launchOf returns the launch of a process that runs or is lost.
func (r *Run) launchOf(s *slot) *launch {
	i := sort.Search(len(r.launches), func(i int) bool { return r.launches[i].attempt >= s.attempt })
	return &r.launches[i]
}

// forget drops the first launches, as long as nothing of them runs or is lost.
func (r *Run) forget() {
	n := 0
	for n < len(r.launches) && r.launches[n].alive == 0 && r.launches[n].lost == 0 {
		n++
	}
	r.launches = r.launches[n:]
}

// Lose says that the manager's process restarted: every running command is lost, and
// what was not taken is forgotten.
func (r *Run) Lose() {
	r.processes(r.spec.Ranks, func(_ uint32, p *slot) {
		if p.stage == stageRunning {
			r.enter(p, stageLost)
		}
	})
	for i := range r.launches {
		l := &r.launches[i]
		l.lost, l.alive = l.lost+l.alive, 0
		l.phase, l.deadline = phaseRunning, r.after(l.at, r.spec.Timeout)
	}
	r.failures, r.signals, r.ended = nil, nil, r.ended[:0]
}

// Reattach marks the command as running on ranks, all of which must be lost. Timeouts
// count from the launch. If the run was canceled, or the launch has timed out, the
// command gets SIGTERM, and the kill timeout of its launch begins again.
func (r *Run) Reattach(now eventlog.Timestamp, ranks *idset.Set) {
	r.advance(now)
	r.processes(ranks, func(rank uint32, s *slot) {
		r.enter(s, stageRunning)
		l := r.launchOf(s)
		l.lost--
		l.alive++
		if r.canceled && l.phase == phaseRunning {
			l.phase = phaseCanceling
		}
		if l.phase != phaseRunning { // it was launched after the others were stopped
			l.deadline = 0
			r.signal(l.attempt, idset.Of(rank), sigterm)
		}
	})
}

// after returns the time that is d after t; 0, for none, if d is 0.
func (r *Run) after(t eventlog.Timestamp, d time.Duration) eventlog.Timestamp {
	if d == 0 {
		return 0
	}
	return t + eventlog.Timestamp(d.Seconds())
}

// advance sets the time, which never goes back. It ignores a value that is no time.
func (r *Run) advance(now eventlog.Timestamp) {
	if now > r.now && !math.IsInf(float64(now), 0) {
		r.now = now
	}
}
