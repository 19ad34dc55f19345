package joblifetest_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/joblifetest"
)

// embedder is the loop around a Manager.
type embedder struct {
	m               *joblife.Manager
	site            *joblifetest.Site
	scheduler, exec int // the connections
}

func newEmbedder(site *joblifetest.Site) (joblifetest.Embedder, error) {
	m, _, err := joblife.Restore(site.Now, site.Config, site.Records())
	return &embedder{m: m, site: site}, err
}

func (e *embedder) Manager() *joblife.Manager { return e.m }

func (e *embedder) Handle(now time.Time, connection int, in joblife.Input) error {
	switch in.(type) {
	case joblife.SchedHello:
		e.scheduler = connection
	case joblife.ExecHello:
		e.exec = connection
	}
	if connection != 0 && connection != e.scheduler && connection != e.exec {
		return nil // it comes too late
	}
	if err := e.m.Step(now, in); err != nil {
		return err
	}
	for rd := new(joblife.Ready); e.m.Ready(rd); {
		if err := e.site.Append(rd.Append); err != nil {
			return err
		}
		if err := e.site.Do(rd); err != nil {
			return err
		}
		if err := e.m.Done(rd.Seq); err != nil {
			return err
		}
	}
	return nil
}

func TestEmbedder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { joblifetest.RunEmbedder(t, newEmbedder) })
}

// An embedder passes if it acts when records are durable, and goes on where a crash left it.
func ExampleRunEmbedder() {
	run := rapid.Custom(func(t *rapid.T) string { // rapid.Check in a test
		joblifetest.RunEmbedder(t, newEmbedder)
		return "nothing is lost"
	})
	fmt.Println(run.Example(1))
	// Output: nothing is lost
}
