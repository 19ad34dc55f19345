package loop

import "time"

// A Clock is the system's.
type Clock struct{ systemClock }

// Next returns the time at which the clock reads t, so long after it was read last.
func (c *Clock) Next(t time.Time, elapsed time.Duration) time.Time { return c.next(t, elapsed) }

// SetClock has Run read another clock.
func (l *Loop) SetClock(read func() time.Time) { l.system.read = read }

// Calls returns how many calls wait for an answer of the Manager.
func (l *Loop) Calls() int { return len(l.calls) }

// Hailed reports whether functions of Hear are called.
func (l *Loop) Hailed() bool {
	select {
	case <-l.hailed:
		return true
	default:
		return false
	}
}
