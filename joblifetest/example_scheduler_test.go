package joblifetest_test

import (
	"fmt"

	"pgregory.net/rapid"

	"github.com/joblife/joblife/joblifetest"
	"github.com/joblife/joblife/rset/sched"
)

// backfill is a policy to test: the first job that has to wait has a reservation.
type backfill struct{}

func (backfill) Schedule(p *sched.Pass) {
	reserved := false
	for j := range p.Jobs() {
		if !p.Start(j.ID) && !reserved {
			_, reserved = p.Reserve(j.ID)
		}
	}
}

// checkPolicy is one random run of a policy. A test has 100 of them:
//
//	func TestPolicy(t *testing.T) { rapid.Check(t, checkPolicy) }
func checkPolicy(t *rapid.T) {
	joblifetest.RunScheduler(t, joblifetest.NewScheduler(sched.Config{Policy: backfill{}}), joblifetest.SchedulerConfig{})
}

// A scheduler passes if it survives random workloads, canceled jobs and lost sessions.
func ExampleRunScheduler() {
	run := rapid.Custom(func(t *rapid.T) string { checkPolicy(t); return "the world is content" })
	fmt.Println(run.Example(1))
	// Output: the world is content
}
