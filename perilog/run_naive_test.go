package perilog

import (
	"fmt"
	"maps"
	"slices"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
)

// naiveRun is a run in the simplest words: maps, one entry for each process and
// rank, and every question answered by looking at all of them.
type naiveRun struct {
	spec     runSpec
	now      eventlog.Timestamp
	canceled bool
	last     uint32
	procs    map[uint32]*naiveProc // by rank; of a single command, its leader alone
	ranks    map[uint32]*naiveRank
	launches map[uint32]*naiveLaunch // by attempt

	signals []string       // since the last look
	ends    map[uint32]int // how often a rank ended since it was launched last
	drains  map[uint32]int // how often its drain was asked for, ever
}

type naiveProc struct {
	stage   slotStage
	attempt uint32
	started bool
	cause   endCause // of a single command
	status  int32
}

type naiveRank struct {
	ended   bool
	told    endCause // causeReported or causeControl
	cause   endCause
	status  int32
	drained bool
}

type naiveLaunch struct {
	at, deadline eventlog.Timestamp
	phase        launchPhase
}

func newNaiveRun(spec runSpec) *naiveRun {
	n := &naiveRun{
		spec: spec, procs: map[uint32]*naiveProc{}, ranks: map[uint32]*naiveRank{},
		launches: map[uint32]*naiveLaunch{}, ends: map[uint32]int{}, drains: map[uint32]int{},
	}
	for rank := range spec.Ranks.All() {
		n.ranks[rank] = &naiveRank{}
		if spec.PerRank {
			n.procs[rank] = &naiveProc{}
		}
	}
	if !spec.PerRank {
		n.procs[spec.Leader.Value] = &naiveProc{}
	}
	return n
}

func (n *naiveRun) advance(now eventlog.Timestamp) {
	if now > n.now {
		n.now = now
	}
}

// in returns the ranks of processes in a stage.
func (n *naiveRun) in(s slotStage) *idset.Set {
	out := new(idset.Set)
	for rank, p := range n.procs {
		if p.stage == s {
			out.Insert(rank)
		}
	}
	return out
}

func (n *naiveRun) rankSet(match func(*naiveRank) bool) *idset.Set {
	out := new(idset.Set)
	for rank, r := range n.ranks {
		if match(r) {
			out.Insert(rank)
		}
	}
	return out
}

func (n *naiveRun) open() *idset.Set {
	return n.rankSet(func(r *naiveRank) bool { return !r.ended })
}

func (n *naiveRun) done() bool {
	lead := n.procs[n.spec.Leader.Value]
	return n.open().IsEmpty() && (n.spec.PerRank || lead.stage == slotEnded)
}

// running returns the ranks where processes of an attempt run, in order.
func (n *naiveRun) running(attempt uint32) []uint32 {
	var out []uint32
	for rank, p := range n.procs {
		if p.stage == slotRunning && p.attempt == attempt {
			out = append(out, rank)
		}
	}
	slices.Sort(out)
	return out
}

func (n *naiveRun) deadline() eventlog.Timestamp {
	first := eventlog.Timestamp(0)
	for attempt, l := range n.launches {
		if len(n.running(attempt)) > 0 && l.deadline != 0 && (first == 0 || l.deadline < first) {
			first = l.deadline
		}
	}
	return first
}

func (n *naiveRun) signal(sig int, attempt uint32, ranks ...uint32) {
	for _, rank := range ranks {
		n.signals = append(n.signals, fmt.Sprintf("%d to %d of %d", sig, rank, attempt))
	}
}

func (n *naiveRun) after(t eventlog.Timestamp, seconds float64) eventlog.Timestamp {
	if seconds == 0 {
		return 0
	}
	return t + eventlog.Timestamp(seconds)
}

func (n *naiveRun) stop(attempt uint32, p launchPhase) {
	l := n.launches[attempt]
	l.phase, l.deadline = p, 0
	n.signal(sigterm, attempt, n.running(attempt)...)
}

func (n *naiveRun) launch(now eventlog.Timestamp, attempt uint32, ranks *idset.Set) {
	n.advance(now)
	if attempt <= n.last || attempt > n.last+1024 {
		attempt = n.last + 1
	}
	if !n.spec.PerRank {
		ranks = idset.Of(n.spec.Leader.Value)
	}
	some := false
	for rank, p := range n.procs {
		r := n.ranks[rank]
		if !ranks.Contains(rank) || p.stage == slotEnded && (!n.spec.PerRank || r.status == 0) {
			continue
		}
		some = true
		p.stage, p.attempt, p.started = slotRunning, attempt, false
		if !n.spec.PerRank {
			continue
		}
		told := r.told
		if r.ended {
			told = 0
		}
		*r = naiveRank{told: told, drained: r.drained}
		delete(n.ends, rank)
	}
	if !some {
		return
	}
	n.last = attempt
	n.launches[attempt] = &naiveLaunch{at: n.now, deadline: n.after(n.now, n.spec.Timeout.Seconds())}
	if n.canceled {
		n.stop(attempt, launchCanceling)
	}
}

func (n *naiveRun) lose() {
	for _, p := range n.procs {
		if p.stage == slotRunning {
			p.stage = slotLost
		}
	}
	for _, l := range n.launches {
		l.phase, l.deadline = launchRunning, n.after(l.at, n.spec.Timeout.Seconds())
	}
}

func (n *naiveRun) reattach(now eventlog.Timestamp, ranks *idset.Set) {
	n.advance(now)
	for rank, p := range n.procs {
		if !ranks.Contains(rank) {
			continue
		}
		p.stage = slotRunning
		l := n.launches[p.attempt]
		if n.canceled && l.phase == launchRunning {
			l.phase = launchCanceling
		}
		if l.phase != launchRunning {
			l.deadline = 0
			n.signal(sigterm, p.attempt, rank)
		}
	}
}

func (n *naiveRun) signaled(now eventlog.Timestamp, attempt uint32) {
	n.advance(now)
	if l := n.launches[attempt]; l.phase != launchRunning {
		l.deadline = n.after(n.now, n.spec.KillTimeout.Seconds())
	}
}

func (n *naiveRun) cancel(now eventlog.Timestamp) {
	n.advance(now)
	if n.canceled || n.done() {
		return
	}
	n.canceled = true
	for attempt, l := range n.launches {
		if l.phase == launchRunning && len(n.running(attempt)) > 0 {
			n.stop(attempt, launchCanceling)
		}
	}
}

func (n *naiveRun) tick(now eventlog.Timestamp) {
	n.advance(now)
	for _, attempt := range slices.Sorted(maps.Keys(n.launches)) {
		l := n.launches[attempt]
		due := func() bool { return len(n.running(attempt)) > 0 && l.deadline != 0 && l.deadline <= n.now }
		if due() && l.phase == launchRunning {
			n.stop(attempt, launchTimingOut)
		}
		if !due() {
			continue
		}
		cause := map[launchPhase]endCause{launchCanceling: causeCanceledTimedOut, launchTimingOut: causeTimedOut}[l.phase]
		ranks := n.running(attempt)
		if n.spec.Kill {
			n.signal(sigkill, attempt, ranks...)
		}
		n.orphan()
		for _, rank := range ranks {
			n.endProc(rank, cause, sigterm)
		}
	}
}

// orphan drains the leader's node of a single command.
func (n *naiveRun) orphan() {
	if !n.spec.PerRank {
		n.drain(n.spec.Leader.Value)
	}
}

func (n *naiveRun) drain(rank uint32) {
	if r := n.ranks[rank]; r != nil && !r.drained {
		r.drained = true
		n.drains[rank]++
	}
}

func (n *naiveRun) endProc(rank uint32, cause endCause, status int32) {
	p := n.procs[rank]
	p.stage = slotEnded
	if cause != causeOK {
		status = orStatus(status, sigterm)
	}
	if n.spec.PerRank {
		n.endRank(rank, cause, status)
		return
	}
	for rank := range n.ranks {
		n.endRank(rank, cause, status)
	}
	if p.cause != 0 {
		cause, status = p.cause, orStatus(status, statusFailed)
	}
	p.cause, p.status = cause, status
}

func (n *naiveRun) endRank(rank uint32, cause endCause, status int32) {
	r := n.ranks[rank]
	if r.ended {
		return
	}
	if r.told == causeControl || r.told == causeReported && (cause == causeOK || cause == causeCanceled) {
		cause, status = r.told, orStatus(status, statusFailed)
	}
	r.ended, r.cause, r.status = true, cause, status
	n.ends[rank]++
	if n.spec.PerRank && r.told == 0 && !slices.Contains([]endCause{causeOK, causeCanceled}, cause) {
		n.drain(rank)
	}
}

func (n *naiveRun) endIdle(now eventlog.Timestamp, ranks *idset.Set, cause endCause, drain bool) {
	n.advance(now)
	status := map[endCause]int32{causeOffline: statusUnreachable, causeCanceled: statusTerminated}[cause]
	for rank, r := range n.ranks {
		if r.ended || n.spec.PerRank && !ranks.Contains(rank) {
			continue
		}
		if n.spec.PerRank {
			n.procs[rank].stage = slotEnded
		}
		r.ended, r.cause, r.status = true, cause, status
		n.ends[rank]++
		if drain {
			n.drain(rank)
		}
	}
	if !n.spec.PerRank {
		p := n.procs[n.spec.Leader.Value]
		p.stage, p.cause, p.status = slotEnded, cause, status
	}
}

func (n *naiveRun) force(now eventlog.Timestamp, ranks *idset.Set, status int32) {
	n.advance(now)
	stop := func(rank uint32) {
		if p := n.procs[rank]; p.stage == slotRunning || p.stage == slotLost {
			n.signal(sigterm, p.attempt, rank)
		}
		n.procs[rank].stage = slotEnded
	}
	for rank, r := range n.ranks {
		if r.ended || !ranks.Contains(rank) {
			continue
		}
		r.ended, r.cause, r.status = true, causeForced, status
		n.ends[rank]++
		if n.spec.PerRank {
			stop(rank)
		}
	}
	if p := n.procs[n.spec.Leader.Value]; !n.spec.PerRank && n.open().IsEmpty() && p.stage != slotEnded {
		stop(n.spec.Leader.Value)
		p.cause, p.status = causeForced, status
	}
}

func (n *naiveRun) report(now eventlog.Timestamp, rep Report, line naiveLine) Ack {
	n.advance(now)
	p := n.procs[rep.Rank]
	switch {
	case p == nil || p.stage == slotIdle:
		return AckUnknown
	case rep.Attempt != p.attempt:
		return AckStale
	case p.stage == slotEnded:
		return AckEnded
	case rep.Kind == 0 || rep.Kind > ReportOutput || rep.Kind == ReportExited && stopped(normal(rep.Status)):
		return AckIgnored
	}
	if p.stage == slotLost {
		n.reattach(n.now, idset.Of(rep.Rank))
		n.take(p, rep, line)
		return AckApplied
	}
	return n.take(p, rep, line)
}

func (n *naiveRun) take(p *naiveProc, rep Report, line naiveLine) Ack {
	told := func(c endCause) endCause {
		return map[launchPhase]endCause{launchRunning: c, launchCanceling: causeCanceled, launchTimingOut: causeTimedOut}[n.launches[p.attempt].phase]
	}
	switch rep.Kind {
	case ReportStarted:
		if p.started {
			return AckRepeated
		}
		p.started = true
	case ReportExited:
		status := normal(rep.Status)
		n.endProc(rep.Rank, told(exited(status)), status)
	case ReportLaunchFailed:
		n.endProc(rep.Rank, told(causeLaunchFailed), orStatus(normal(rep.Status), statusFailed))
	case ReportUnreachable:
		n.orphan()
		n.endProc(rep.Rank, causeUnreachable, statusUnreachable)
	case ReportOutput:
		return n.output(rep.Rank, p, line)
	}
	return AckApplied
}

// naiveLine is a line of output and what it means.
type naiveLine struct {
	text             string
	nonsense         bool
	failed, released []uint32
	self             bool
}

func (n *naiveRun) output(rank uint32, p *naiveProc, line naiveLine) Ack {
	if line.nonsense {
		return n.misunderstood(rank, p)
	}
	answer := AckIgnored
	failed := line.failed
	if line.self {
		failed = []uint32{rank}
	}
	for _, rank := range failed {
		switch r := n.ranks[rank]; {
		case r == nil, r.ended, r.told == causeReported, r.told == causeControl && r.drained:
		default:
			if r.told == 0 {
				r.told = causeReported
			}
			n.drain(rank)
			answer = AckApplied
		}
	}
	if n.spec.PerRank {
		return answer
	}
	for _, rank := range line.released {
		switch r := n.ranks[rank]; {
		case r == nil, r.ended, rank == n.spec.Leader.Value:
		default:
			n.endRank(rank, causeOK, 0)
			answer = AckApplied
		}
	}
	return answer
}

func (n *naiveRun) misunderstood(rank uint32, p *naiveProc) Ack {
	if n.spec.IgnoreControl {
		return AckIgnored
	}
	if n.spec.PerRank {
		if n.ranks[rank].told == causeControl {
			return AckRepeated
		}
		n.ranks[rank].told = causeControl
		n.drain(rank)
		return AckApplied
	}
	if p.cause != 0 {
		return AckRepeated
	}
	p.cause = causeControl
	for _, r := range n.ranks {
		if !r.ended {
			r.told = causeControl
		}
	}
	return AckApplied
}
