package main

import (
	"time"

	"github.com/joblife/joblife/eventlog"
)

// A clock gives the time. Only clocks read the time of day.
type clock interface {
	now() eventlog.Timestamp
	submitted(t eventlog.Timestamp) // a job submitted at t asks for resources
	ticks(period eventlog.Timestamp) <-chan time.Time
	after(d time.Duration) <-chan time.Time
}

// wallClock is the time of day.
type wallClock struct{}

func (wallClock) now() eventlog.Timestamp      { return eventlog.FromTime(time.Now()) }
func (wallClock) submitted(eventlog.Timestamp) {}

func (wallClock) ticks(period eventlog.Timestamp) <-chan time.Time {
	return time.Tick(time.Duration(float64(period) * float64(time.Second)))
}

func (wallClock) after(d time.Duration) <-chan time.Time { return time.After(d) }

// inputClock goes on with the times of the input.
type inputClock struct{ t eventlog.Timestamp }

func (c *inputClock) now() eventlog.Timestamp { return c.t }
func (c *inputClock) submitted(t eventlog.Timestamp) {
	c.t = max(c.t, t)
}

// Without input no time passes.
func (c *inputClock) ticks(eventlog.Timestamp) <-chan time.Time { return nil }
func (c *inputClock) after(time.Duration) <-chan time.Time      { return nil }
