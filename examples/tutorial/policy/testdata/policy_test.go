package policy

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/joblife/joblife/joblifetest"
	"github.com/joblife/joblife/rset/sched"
)

type shortest struct{}

func (shortest) Schedule(p *sched.Pass) {
	for _, job := range slices.SortedStableFunc(p.Jobs(), shorter) {
		p.Start(job.ID)
	}
}

func shorter(a, b sched.Job) int { return cmp.Compare(a.Request.Duration(), b.Request.Duration()) }

func TestShortest(t *testing.T) {
	scheduler := joblifetest.NewScheduler(sched.Config{Policy: shortest{}})
	rapid.Check(t, func(t *rapid.T) {
		joblifetest.RunScheduler(t, scheduler, joblifetest.SchedulerConfig{})
	})
}
