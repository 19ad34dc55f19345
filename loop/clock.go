package loop

import "time"

// A systemClock is the system's clock, which steps back when somebody sets it back. Then
// its time goes on, so that what waits does not wait longer.
type systemClock struct {
	read     func() time.Time
	last, at time.Time
}

func (c *systemClock) now() time.Time {
	now := c.read()
	elapsed := max(0, now.Sub(c.last)) // by the monotonic clock
	c.last = now
	return c.next(now.Round(0), elapsed)
}

// next returns the time at which the clock reads t, so long after it was read last.
func (c *systemClock) next(t time.Time, elapsed time.Duration) time.Time {
	if at := c.at.Add(elapsed); !c.at.IsZero() && at.After(t) {
		t = at
	}
	c.at = t
	return t
}
