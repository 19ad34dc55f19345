package perilog

import (
	"sort"
	"time"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
)

// A runSpec says what a run follows.
type runSpec struct {
	jobstate.ActionKey
	Ranks *idset.Set // that the action holds; a single command may hold none

	// Leader need not be one of Ranks. KillTimeout is greater than 0.
	jobstate.ActionMode

	Kill, IgnoreControl bool // as in ActionConfig

	// Hosts returns the names of ranks, for notes; "" where they are not known.
	Hosts func(*idset.Set) string
}

// A launchPhase is how far a launch is.
type launchPhase uint8

const (
	launchRunning   launchPhase = iota // the timeout runs
	launchCanceling                    // SIGTERM was sent, as the run was canceled: the kill timeout runs
	launchTimingOut                    // SIGTERM was sent at the timeout: the kill timeout runs
)

// launch is what was launched by one attempt.
type launch struct {
	attempt  uint32
	at       eventlog.Timestamp
	deadline eventlog.Timestamp // 0: none, or none before Signaled
	phase    launchPhase
	alive    int // processes that run, as far as is known
	lost     int // processes that no report has named since the restart
}

// A run follows one action on the ranks that it holds: launches, reports, timeouts, cancellation,
// and one outcome of all. Its Job asks for what follows: the ranks that failed, the ranks that
// ended, and the signals to send. The methods in capitals are for the Job.
//
// Each rank ends exactly once, whatever is reported, in whatever order, twice, late or never. A
// run with a timeout ends at the latest when that and the kill timeout have passed.
type run struct {
	spec runSpec
	now  eventlog.Timestamp // which never goes back

	spans []span
	slots []slot             // of the ranks, in their order
	lead  slot               // the process of a single command
	open  int                // ranks that have not ended
	count [slotEnded + 1]int // processes by stage
	last  uint32             // the latest attempt
	waits *idset.Set         // the offline set, of which the ranks wait that are idle; nil: not known

	launches []launch // by attempt, and so by deadline; the first has a process that runs or is lost

	unreported *idset.Set // the ranks that no control line has named as failed since the last launch
	unreleased *idset.Set // the ranks that no control line has named as released

	canceled bool // the run was canceled
	orphaned bool // a command was given up or lost, whatever cause its rank has

	start, end eventlog.Timestamp // of the first launch, and of the last end

	failures []jobstate.ActionFailContext // what failed and was not taken
	ended    []rankEnd                    // what ended and was not taken
	signals  []Signal                     // what is to be sent and was not taken
	notes    []note                       // the first of them
	details  []byte                       // what reports said, for administrators
	dropped  int                          // how many reports found no room there
}

// span is a range of consecutive ranks: the slot of rank first+i is base+i.
type span struct {
	first, last uint32
	base        int32
}

// A slotStage is how far the action is on a rank.
type slotStage uint8

const (
	slotIdle    slotStage = iota // not launched
	slotRunning                  // launched: it may run
	slotLost                     // launched before a restart, and no report came since
	slotEnded
)

// slot is what is known of one rank, or of the process of a single command.
type slot struct {
	attempt uint32 // of the last launch; 0: none
	status  int32
	stage   slotStage
	cause   endCause // how it ended, or causeReported or causeControl while it runs
	started bool     // a report said so
	drained bool     // a drain was asked for
}

// A rankEnd is a rank on which the action has ended, with its wait status.
type rankEnd struct {
	Rank   uint32
	Status int32
	Forced bool // an operator ended it
}

// makeRun returns a run that has launched nothing. It retains spec.Ranks, which must not change.
func makeRun(spec runSpec) *run {
	r := &run{spec: spec, unreported: spec.Ranks, unreleased: spec.Ranks}
	base := int32(0)
	for first, last := range spec.Ranks.Ranges() {
		r.spans = append(r.spans, span{first: first, last: last, base: base})
		base += int32(last - first + 1)
	}
	r.slots = make([]slot, base)
	r.open = int(base)
	if r.count[slotIdle] = 1; spec.PerRank {
		r.count[slotIdle] = r.open
	}
	return r
}

func (r *run) index(rank uint32) (int32, bool) {
	n := sort.Search(len(r.spans), func(i int) bool { return r.spans[i].last >= rank })
	if n == len(r.spans) || rank < r.spans[n].first {
		return 0, false
	}
	return r.spans[n].base + int32(rank-r.spans[n].first), true
}

// process returns the process that runs on a rank, nil if none is to run there.
func (r *run) process(rank uint32) *slot {
	if !r.spec.PerRank && rank == r.spec.Leader.Value {
		return &r.lead
	}
	if i, ok := r.index(rank); ok && r.spec.PerRank {
		return &r.slots[i]
	}
	return nil
}

// ranks returns a new set of the ranks whose slots match.
func (r *run) ranks(match func(*slot) bool) *idset.Set {
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

// where returns a new set of the ranks whose processes match: for a single command, its leader.
func (r *run) where(match func(*slot) bool) *idset.Set {
	switch {
	case r.spec.PerRank:
		return r.ranks(match)
	case match(&r.lead):
		return idset.Of(r.spec.Leader.Value)
	}
	return new(idset.Set)
}

// At returns a new set of the ranks where the process is at a stage.
func (r *run) At(s slotStage) *idset.Set { return r.where(func(p *slot) bool { return p.stage == s }) }

// Has reports whether At is not empty.
func (r *run) Has(s slotStage) bool { return r.count[s] > 0 }

// Of returns a new set of the ranks where the process of an attempt is at a stage.
func (r *run) Of(attempt uint32, s slotStage) *idset.Set {
	return r.where(func(p *slot) bool { return p.stage == s && p.attempt == attempt })
}

// Lost returns new sets of the ranks where the process is lost, by attempt.
func (r *run) Lost() map[uint32]*idset.Set {
	lost := make(map[uint32]*idset.Set)
	if !r.Has(slotLost) {
		return lost
	}
	r.processes(r.spec.Ranks, func(rank uint32, p *slot) {
		if p.stage != slotLost {
			return
		}
		if lost[p.attempt] == nil {
			lost[p.attempt] = new(idset.Set)
		}
		lost[p.attempt].Insert(rank)
	})
	return lost
}

// Open returns a new set of the ranks on which the action has not ended.
func (r *run) Open() *idset.Set { return r.ranks(func(s *slot) bool { return s.stage != slotEnded }) }

// Failed returns a new set of the ranks on which the action failed.
func (r *run) Failed() *idset.Set {
	return r.ranks(func(s *slot) bool { return s.stage == slotEnded && s.status != 0 })
}

// Ends returns those of some ranks on which the action has ended, in their order.
func (r *run) Ends(ranks *idset.Set) []rankEnd {
	var ends []rankEnd
	r.each(ranks, func(rank uint32, s *slot) {
		if s.stage == slotEnded {
			ends = append(ends, rankEnd{rank, s.status, s.cause == causeForced})
		}
	})
	return ends
}

func (r *run) enter(p *slot, s slotStage) {
	r.count[p.stage]--
	r.count[s]++
	p.stage = s
}

// Done reports whether the action has ended on every rank, and no process runs.
func (r *run) Done() bool {
	return r.open == 0 && (r.spec.PerRank || r.lead.stage == slotEnded)
}

// maxSkip is the largest step from one attempt to the next, so that no log uses up the numbers.
const maxSkip = 1 << 10

// Launch says that the command was launched on ranks as the given attempt. It passes over ranks
// on which the action succeeded. An attempt that is not greater than the last one, or far
// greater, which only a damaged log has, counts as the last one plus 1.
func (r *run) Launch(now eventlog.Timestamp, attempt uint32, ranks *idset.Set) {
	r.now = max(r.now, now)
	if attempt <= r.last || attempt-r.last > maxSkip {
		attempt = r.last + 1
	}
	l := launch{attempt: attempt, at: r.now, deadline: r.after(r.now, r.spec.Timeout)}
	r.processes(ranks, func(_ uint32, s *slot) {
		switch s.stage {
		case slotLost:
			r.launchOf(s.attempt).lost--
		case slotEnded:
			if s.status == 0 || !r.spec.PerRank {
				return
			}
			r.open++
			s.cause = 0
		case slotRunning: // in a replay, which does not know of the restart between
			r.launchOf(s.attempt).alive--
		}
		r.enter(s, slotRunning)
		*s = slot{attempt: attempt, stage: slotRunning, cause: s.cause, drained: s.drained} // what control lines said of it stands
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
		r.terminate(&r.launches[len(r.launches)-1], launchCanceling)
	}
}

// processes calls f with the processes on ranks, or the single command, whatever ranks name.
func (r *run) processes(ranks *idset.Set, f func(rank uint32, p *slot)) {
	if !r.spec.PerRank {
		f(r.spec.Leader.Value, &r.lead)
		return
	}
	r.each(ranks, f)
}

// eachOpen calls f with those of some ranks that have not ended.
func (r *run) eachOpen(ranks *idset.Set, f func(rank uint32, s *slot)) {
	r.each(ranks, func(rank uint32, s *slot) {
		if s.stage != slotEnded {
			f(rank, s)
		}
	})
}

func (r *run) each(ranks *idset.Set, f func(rank uint32, s *slot)) {
	if ranks == r.spec.Ranks { // mostly: nothing is to be searched
		for _, span := range r.spans {
			for rank := span.first; rank <= span.last; rank++ {
				f(rank, &r.slots[span.base+int32(rank-span.first)])
			}
		}
		return
	}
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

// launchOf returns the launch of an attempt, or nil if it is forgotten.
func (r *run) launchOf(attempt uint32) *launch {
	i := sort.Search(len(r.launches), func(i int) bool { return r.launches[i].attempt >= attempt })
	if i == len(r.launches) || r.launches[i].attempt != attempt {
		return nil
	}
	return &r.launches[i]
}

// runs reports whether a process of an attempt runs on one of some ranks.
func (r *run) runs(attempt uint32, ranks *idset.Set) bool {
	for rank := range ranks.All() {
		if p := r.process(rank); p != nil && p.stage == slotRunning && p.attempt == attempt {
			return true
		}
	}
	return false
}

// forget drops the first launches, as long as nothing of them runs or is lost.
func (r *run) forget() {
	n := 0
	for n < len(r.launches) && r.launches[n].alive == 0 && r.launches[n].lost == 0 {
		n++
	}
	r.launches = r.launches[n:]
}

// Lose says that the manager restarted: every running command is lost, and what was not taken.
func (r *run) Lose() {
	r.processes(r.spec.Ranks, func(_ uint32, p *slot) {
		if p.stage == slotRunning {
			r.enter(p, slotLost)
		}
	})
	for i := range r.launches {
		l := &r.launches[i]
		l.lost, l.alive = l.lost+l.alive, 0
		l.phase, l.deadline = launchRunning, r.after(l.at, r.spec.Timeout)
	}
	r.failures, r.signals, r.ended = nil, nil, r.ended[:0]
}

// Reattach marks the command as running on ranks, all of which must be lost. If the run was
// canceled, or the launch has timed out, the command gets SIGTERM, and the kill timeout of its
// launch begins again.
func (r *run) Reattach(now eventlog.Timestamp, ranks *idset.Set) {
	r.now = max(r.now, now)
	r.processes(ranks, func(rank uint32, s *slot) {
		r.enter(s, slotRunning)
		l := r.launchOf(s.attempt)
		l.lost--
		l.alive++
		if r.canceled && l.phase == launchRunning {
			l.phase = launchCanceling
		}
		if l.phase != launchRunning { // it was launched after the others were stopped
			l.deadline = 0
			r.signal(l.attempt, idset.Of(rank), sigterm)
		}
	})
}

// after returns the time that is d after t; 0, for none, if d is 0.
func (r *run) after(t eventlog.Timestamp, d time.Duration) eventlog.Timestamp {
	if d == 0 {
		return 0
	}
	return t + eventlog.Timestamp(d.Seconds())
}
