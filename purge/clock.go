package purge

import (
	"time"

	"github.com/joblife/joblife/eventlog"
)

// Observe tells the index what time it is, and makes that the latest time known.
// A caller whose heart beats does so with every beat, so that the index can tell a
// clock that jumped from a quiet night.
//
// The error is a *ClockError: now is no time, is before the latest time known
// (of a job or an earlier call), or more than Config.MaxJump after the latest one
// that was no jump itself.
func (x *Index) Observe(now eventlog.Timestamp) error {
	if err := x.checkClock(now); err != nil {
		return err
	}
	x.setClock(now)
	return nil
}

// AcceptClock makes now the latest time known, be it before or far after what
// was. Somebody who knows says so once, after the clock was set or the machine
// was off for long; the next step is an error again. Plans by age or count that
// were made before lose their jobs when they are claimed. The error is a
// *ClockError if now is no time.
func (x *Index) AcceptClock(now eventlog.Timestamp) error {
	if !isTime(now) {
		return &ClockError{Now: now, Last: x.newest}
	}
	x.setClock(now)
	x.epoch++
	x.gen++
	return nil
}

// checkClock returns a *ClockError unless now can be the time.
func (x *Index) checkClock(now eventlog.Timestamp) error {
	switch {
	case !isTime(now) || now < x.newest:
		return &ClockError{Now: now, Last: x.newest}
	case x.clock > 0 && x.jumps(now):
		// Without any time known, whatever now is must be believed.
		return &ClockError{Now: now, Last: x.clock}
	}
	return nil
}

// jumps reports whether t is too far after what is believed.
func (x *Index) jumps(t eventlog.Timestamp) bool {
	jump := x.cfg.MaxJump
	if jump == 0 {
		jump = DefaultMaxJump
	}
	return seconds(t, x.clock) > jump.Seconds()
}

// setClock makes t the latest time that is believed and known.
func (x *Index) setClock(t eventlog.Timestamp) { x.clock, x.newest = t, t }

// seconds returns how long after "since" now is.
func seconds(now, since eventlog.Timestamp) float64 { return float64(now) - float64(since) }

// older reports whether what became inactive at t is older than d.
func older(now, t eventlog.Timestamp, d time.Duration) bool { return seconds(now, t) > d.Seconds() }
