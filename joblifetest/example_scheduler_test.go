package joblifetest_test

import (
	"errors"
	"fmt"

	"pgregory.net/rapid"

	"github.com/joblife/joblife/joblifetest"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
	"github.com/joblife/joblife/rset/pool"
	"github.com/joblife/joblife/rset/sched"
)

// tested is a scheduler with a policy that is to be tested: each session has its own
// Scheduler, whose Handle and Decide are what RunScheduler wants.
type tested struct {
	*sched.Scheduler
	nodes *rset.R
}

func (s *tested) Hello(a alloc.Announcement) error {
	s.Scheduler = sched.New(sched.Config{Policy: sched.EASY{}})
	err := s.Acquire(pool.Acquire{Resources: s.nodes, Change: pool.Change{Up: s.nodes.Ranks()}})
	for _, h := range a.Responses {
		err = errors.Join(err, s.Handle(h))
	}
	_, fault := s.EndHello()
	return errors.Join(err, fault)
}

func (s *tested) Update(c pool.Change) error { return s.Acquire(pool.Acquire{Change: c}) }

func newTested(nodes *rset.R) joblifetest.Scheduler { return &tested{nodes: nodes} }

// checkScheduler is one random run of a scheduler. A test has 100 of them:
//
//	func TestScheduler(t *testing.T) { rapid.Check(t, checkScheduler) }
func checkScheduler(t *rapid.T) {
	joblifetest.RunScheduler(t, newTested, joblifetest.SchedulerConfig{})
}

// A scheduler passes if it survives random workloads, canceled jobs and lost sessions.
func ExampleRunScheduler() {
	run := rapid.Custom(func(t *rapid.T) string { checkScheduler(t); return "the world is content" })
	fmt.Println(run.Example(1))
	// Output: the world is content
}
