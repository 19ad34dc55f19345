package lines

import (
	"time"

	"github.com/joblife/joblife/eventlog"
)

// A Clock has the time of the day, or goes on with the times of the input. Only clocks read
// the time of the day.
type Clock struct {
	input bool
	t     eventlog.Timestamp
}

// NewClock returns the clock that [Options] ask for.
func (o *Options) NewClock() *Clock { return &Clock{o.Now > 0, o.Now} }

// Now returns the time. That of the day steps back if somebody sets it back.
func (c *Clock) Now() eventlog.Timestamp {
	if c.input {
		return c.t
	}
	return eventlog.FromTime(time.Now())
}

// Time returns the time for what waits. That of the day has its monotonic reading, so a time
// that is added to it comes when so much has passed, whatever somebody sets the clock to.
func (c *Clock) Time() time.Time {
	if c.input {
		return c.t.Time()
	}
	return time.Now()
}

// Advance goes on to the time of a line of input, and reports whether such times count.
func (c *Clock) Advance(t eventlog.Timestamp) bool {
	c.t = max(c.t, t)
	return c.input
}

// At returns what fires at a time: nil with the times of the input, since none passes
// without input.
func (c *Clock) At(t time.Time) <-chan time.Time {
	if c.input {
		return nil
	}
	return time.After(time.Until(t))
}
