package main

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/joblifetest"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
)

// inProcess is the scheduler as joblifetest.RunScheduler drives it.
type inProcess struct{ *scheduler }

func (p inProcess) Hello(a alloc.Announcement) error {
	p.inputs.inputs = nil
	p.send(&a, nil)
	return nil
}

func (p inProcess) Take(m alloc.Message) error {
	p.send(nil, []alloc.Message{m})
	return nil
}

func (p inProcess) Decide(eventlog.Timestamp) (responses []alloc.Response) {
	for in, ok := p.inputs.take(); ok; in, ok = p.inputs.take() {
		responses = append(responses, alloc.Response(in.(joblife.SchedResponse)))
	}
	return responses
}

// The world finds nothing wrong with the scheduler.
func TestTheWorldIsContent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		joblifetest.RunScheduler(t, func(nodes *rset.R) joblifetest.Scheduler {
			return inProcess{&scheduler{inputs: &inbox{more: make(chan struct{}, 1)}, inventory: nodes}}
		})
	})
}
