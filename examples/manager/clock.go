package main

import (
	"time"

	"github.com/joblife/joblife/eventlog"
)

// A clock gives the time. Only clocks read the time of day.
type clock interface {
	now() time.Time
	// told takes the time of a line of input, and reports whether it counts.
	told(eventlog.Timestamp) bool
	// at returns what fires at a time, nil for never.
	at(time.Time) <-chan time.Time
}

// wallClock is the time of day.
type wallClock struct{ timer *time.Timer }

func (*wallClock) now() time.Time               { return time.Now() }
func (*wallClock) told(eventlog.Timestamp) bool { return false }

func (c *wallClock) at(t time.Time) <-chan time.Time {
	if c.timer == nil {
		c.timer = time.NewTimer(time.Until(t))
	} else {
		c.timer.Reset(time.Until(t))
	}
	return c.timer.C
}

// inputClock goes on with the times of the input.
type inputClock struct{ t eventlog.Timestamp }

func (c *inputClock) now() time.Time { return c.t.Time() }

func (c *inputClock) told(t eventlog.Timestamp) bool {
	c.t = max(c.t, t)
	return true
}

// Without input no time passes.
func (*inputClock) at(time.Time) <-chan time.Time { return nil }
