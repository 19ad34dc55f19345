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
	jobs := slices.Collect(p.Jobs())
	for reserved := false; len(jobs) > 0 && !reserved; jobs = jobs[1:] {
		if !p.Start(jobs[0].ID) {
			_, reserved = p.Reserve(jobs[0].ID)
		}
	}
	slices.SortStableFunc(jobs, shorter)
	for _, job := range jobs {
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
