package joblifetest_test

import (
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"github.com/joblife/joblife/joblifetest"
	"github.com/joblife/joblife/rset/sched"
)

// lastFirst starts the jobs at the end of the queue first.
type lastFirst struct{}

func (lastFirst) Schedule(p *sched.Pass) {
	for _, j := range slices.Backward(slices.Collect(p.Jobs())) {
		p.Start(j.ID)
	}
}

// oneByOne runs one job at a time.
type oneByOne struct{}

func (oneByOne) Schedule(p *sched.Pass) {
	for range p.Running() {
		return
	}
	for j := range p.Jobs() {
		p.Start(j.ID)
		return
	}
}

// one judges a policy by its own rule: no two jobs run.
type one struct {
	sched.Policy
	t *rapid.T
}

func (o one) Schedule(p *sched.Pass) {
	o.Policy.Schedule(p)
	if running := slices.Collect(p.Running()); len(running) > 1 {
		o.t.Fatalf("%d jobs run: %v", len(running), running)
	}
}

// A policy with an order of its own, and one that holds back jobs that fit, with a judge of its
// rule. What they start is judged as ever.
func ExampleSchedulerConfig() {
	run := rapid.Custom(func(t *rapid.T) string {
		joblifetest.RunScheduler(t, joblifetest.NewScheduler(sched.Config{Policy: lastFirst{}}), joblifetest.SchedulerConfig{AnyOrder: true})
		joblifetest.RunScheduler(t, joblifetest.NewScheduler(sched.Config{Policy: one{oneByOne{}, t}}), joblifetest.SchedulerConfig{MayWait: true})
		return "the world is content"
	})
	fmt.Println(run.Example(1))
	// Output: the world is content
}
