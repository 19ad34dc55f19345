package joblifetest

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
	"github.com/joblife/joblife/rset/sched"
)

// talkative annotates each job that waits in each Decide.
type talkative struct {
	Scheduler
	waits map[jobid.ID]bool
	calls int
}

func (c *talkative) Hello(a alloc.Announcement) error {
	c.waits = make(map[jobid.ID]bool)
	return c.Scheduler.Hello(a)
}

func (c *talkative) Handle(m alloc.Message) error {
	if r, ok := m.(alloc.Request); ok {
		c.waits[r.ID] = true
	}
	return c.Scheduler.Handle(m)
}

func (c *talkative) Decide(now eventlog.Timestamp) []alloc.Response {
	if c.calls++; c.calls > 10_000 {
		panic("there is no end")
	}
	list := c.Scheduler.Decide(now)
	for _, r := range list {
		c.waits[r.ID] = c.waits[r.ID] && r.Type == alloc.ResponseAnnotate
	}
	for _, id := range slices.Sorted(maps.Keys(c.waits)) {
		if c.waits[id] {
			list = append(list, alloc.Response{ID: id, Type: alloc.ResponseAnnotate, Annotations: []byte(`{"sched":{"waits":true}}`)})
		}
	}
	return list
}

func TestASchedulerMayAnnotateAtEachDecide(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		RunScheduler(t, func(nodes *rset.R) Scheduler { return &talkative{Scheduler: NewScheduler(sched.Config{})(nodes)} }, SchedulerConfig{})
	})
}

// slow is told the time only by Decide, and decides when it is told something.
type slow struct {
	Scheduler
	now eventlog.Timestamp
	out []alloc.Response
}

func (s *slow) Handle(m alloc.Message) error {
	err := s.Scheduler.Handle(m)
	s.out = append(s.out, s.Scheduler.Decide(s.now)...)
	return err
}

func (s *slow) Decide(now eventlog.Timestamp) []alloc.Response {
	out := append(s.out, s.Scheduler.Decide(now)...)
	s.now, s.out = now, nil
	return out
}

func TestASchedulerLearnsTheTimeBeforeWhatHappensThen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		RunScheduler(t, func(nodes *rset.R) Scheduler { return &slow{Scheduler: NewScheduler(sched.Config{})(nodes)} }, SchedulerConfig{})
	})
}
