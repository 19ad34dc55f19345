package purge

import (
	"math"
	"time"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/internal/guard"
)

// maxJump is the longest step from one time to the next: a machine that was off over a
// weekend needs no help.
const maxJump = 7 * 24 * time.Hour

// Observe passes the time, so that the index can distinguish a clock that jumped from a
// quiet night. Call it at every tick. Stuck jobs whose wait is over can be planned again.
//
// The error has category ErrClock: now is not a valid time, is before the last one, or is
// more than a week after it.
func (x *Index) Observe(now eventlog.Timestamp) error {
	if err := x.checkClock(now); err != nil {
		return err
	}
	x.clock = now
	x.release(now)
	return nil
}

// AcceptClock sets the time, whatever it was before, when an operator has corrected a
// clock. The error has category ErrClock: now is not a valid time.
func (x *Index) AcceptClock(now eventlog.Timestamp) error {
	if !guard.IsTime(now) {
		return clockError(now, x.clock)
	}
	x.clock = now
	if x.batch != nil { // what the store cannot remove waits from now on
		x.batch.now = min(x.batch.now, now)
	}
	x.release(eventlog.Timestamp(math.Inf(1)))
	return nil
}

// checkClock is the check of Observe. The first time is believed.
func (x *Index) checkClock(now eventlog.Timestamp) error {
	if !guard.IsTime(now) || x.clock > 0 && (now < x.clock || older(now, x.clock, maxJump)) {
		return clockError(now, x.clock)
	}
	return nil
}

// older reports whether what became inactive at t is older than d.
func older(now, t eventlog.Timestamp, d time.Duration) bool {
	return float64(now)-float64(t) > d.Seconds()
}
