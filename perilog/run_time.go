package perilog

import (
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
)

// Deadline returns when to call Tick next: at a timeout or a kill timeout; false for never.
func (r *run) Deadline() (eventlog.Timestamp, bool) {
	var first eventlog.Timestamp
	for i := range r.launches {
		l := &r.launches[i]
		if l.alive == 0 {
			continue
		}
		if l.deadline != 0 && (first == 0 || l.deadline < first) {
			first = l.deadline
		}
		if l.phase == launchRunning {
			break // later launches have later timeouts
		}
	}
	return first, first != 0
}

// Tick makes timers fire: a report that comes before it counts. At the timeout the run sends
// SIGTERM, and the kill timeout begins at Signaled. When that ends, the run gives up what still
// runs: those ranks end, and are drained.
func (r *run) Tick(now eventlog.Timestamp) {
	r.now = max(r.now, now)
	for i := 0; i < len(r.launches); {
		l := &r.launches[i]
		switch {
		case l.alive == 0 || l.deadline == 0 || l.deadline > r.now:
			if l.alive > 0 && l.phase == launchRunning {
				return // later launches have later timeouts
			}
			i++
		case l.phase == launchRunning:
			r.terminate(l, launchTimingOut)
		default:
			r.giveUp(*l)
			i = 0 // launches were dropped
		}
	}
}

// terminate sends SIGTERM to what one launch runs.
func (r *run) terminate(l *launch, p launchPhase) {
	l.phase, l.deadline = p, 0
	r.signal(l.attempt, r.Of(l.attempt, slotRunning), sigterm)
}

// Signaled begins the kill timeout of an attempt: its SIGTERM was handed out.
func (r *run) Signaled(now eventlog.Timestamp, attempt uint32) {
	r.now = max(r.now, now)
	if l := r.launchOf(attempt); l != nil && l.phase != launchRunning {
		l.deadline = r.after(r.now, r.spec.KillTimeout)
	}
}

// signal asks for a signal, or adds its ranks to the last one. It keeps ranks.
func (r *run) signal(attempt uint32, ranks *idset.Set, sig int) {
	if n := len(r.signals); n > 0 && r.signals[n-1].Signal == sig && r.signals[n-1].Attempt == attempt {
		r.signals[n-1].Ranks.UnionWith(ranks)
		return
	}
	r.signals = append(r.signals, Signal{Action: r.spec.ActionKey, Attempt: attempt, Ranks: ranks, Signal: sig})
}

// giveUp ends what does not obey SIGTERM.
func (r *run) giveUp(l launch) {
	cause := causeTimedOut
	if l.phase == launchCanceling {
		cause = causeCanceledTimedOut
	}
	ranks := r.Of(l.attempt, slotRunning)
	if r.spec.Kill {
		r.signal(l.attempt, ranks.Clone(), sigkill)
	}
	r.orphan(cause, statusTerminated)
	r.processes(ranks, func(rank uint32, p *slot) {
		r.processEnded(rank, p, cause, statusTerminated, "did not obey SIGTERM")
	})
}

// Cancel sends SIGTERM, once. What ends within the kill timeout was canceled, and is not drained
// for it. What is launched later is canceled at once, and a timeout that has passed goes on.
func (r *run) Cancel(now eventlog.Timestamp) {
	r.now = max(r.now, now)
	if r.canceled || r.Done() {
		return
	}
	r.canceled = true
	for i := range r.launches {
		if l := &r.launches[i]; l.alive > 0 && l.phase == launchRunning {
			r.terminate(l, launchCanceling)
		}
	}
}
