package main

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/joblifetest"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
	"github.com/joblife/joblife/rset/pool"
)

// inProcess is the scheduler as joblifetest.RunScheduler drives it.
type inProcess struct {
	scheduler
	now      time.Time
	messages []alloc.Message
	inputs   []joblife.Input
}

func newInProcess(nodes *rset.R) joblifetest.Scheduler {
	p := &inProcess{scheduler: scheduler{inventory: nodes}}
	p.scheduler.now = func() time.Time { return p.now }
	p.put = func(in ...joblife.Input) { p.inputs = append(p.inputs, in...) }
	return p
}

func (p *inProcess) Hello(a alloc.Announcement) error {
	p.messages, p.inputs = nil, nil
	p.send(&a, nil)
	return nil
}

func (p *inProcess) Update(pool.Change) error { return nil } // all are up

func (p *inProcess) Take(m alloc.Message) error {
	p.messages = append(p.messages, m)
	return nil
}

func (p *inProcess) Decide(now eventlog.Timestamp) (responses []alloc.Response) {
	p.now = now.Time()
	p.send(nil, p.messages)
	p.messages = nil
	for _, in := range p.inputs {
		responses = append(responses, alloc.Response(in.(joblife.SchedResponse)))
	}
	p.inputs = nil
	return responses
}

// The world finds nothing wrong with the scheduler, which knows no priorities.
func TestTheWorldIsContent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		joblifetest.RunScheduler(t, newInProcess, joblifetest.SchedulerConfig{AnyOrder: true, AlwaysUp: true})
	})
}
