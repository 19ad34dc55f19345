package main

import (
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
	"github.com/joblife/joblife/rset/pool"
	"github.com/joblife/joblife/rset/sched"
)

// policies are the policies, by name. Conservative looks at the first 30 jobs: a plan for
// each of thousands would take hours.
var policies = map[string]sched.Policy{"fifo": sched.FIFO{}, "easy": sched.EASY{}, "conservative": sched.Conservative{Depth: 30}}

const policyNames = "fifo, easy, conservative"

// A scheduler gives nodes to jobs.
type scheduler struct{ *sched.Scheduler }

func newScheduler(policy string, nodes *rset.R, down *idset.Set) (scheduler, error) {
	s := scheduler{sched.New(sched.Config{Policy: policies[policy]})}
	return s, s.Acquire(pool.Acquire{Resources: nodes, Change: pool.Change{Up: idset.Difference(nodes.Ranks(), down)}})
}

// hello takes the jobs that have resources.
func (s scheduler) hello(a alloc.Announcement) error {
	for _, h := range a.Responses {
		if err := s.Handle(h); err != nil {
			return err
		}
	}
	_, err := s.EndHello()
	return err
}

// nodes takes nodes that are up, and down.
func (s scheduler) nodes(up, down *idset.Set) error {
	return s.Acquire(pool.Acquire{Change: pool.Change{Up: up, Down: down}})
}
