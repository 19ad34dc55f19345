package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/joblifetest"
	"github.com/joblife/joblife/jobstate/jobspec"
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

// The world finds nothing wrong with the scheduler.
func TestTheWorldIsContent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		joblifetest.RunScheduler(t, newInProcess, joblifetest.SchedulerConfig{AlwaysUp: true})
	})
}

// Once a response is refused, what comes before the next Hello is of the session before.
func TestASessionBeginsOnceWithHello(t *testing.T) {
	all, err := inventory()
	require.NoError(t, err)
	spec, err := jobspec.New(jobspec.Job{Command: []string{"true"}})
	require.NoError(t, err)
	text, err := spec.MarshalJSON()
	require.NoError(t, err)
	var said []joblife.Input
	s := &scheduler{inventory: all, now: time.Now, put: func(in ...joblife.Input) { said = append(said, in...) }}
	s.send(&alloc.Announcement{}, nil)
	s.heed(joblife.SchedResponse{ID: 1}, joblife.ErrConflict)
	s.heed(joblife.SchedResponse{ID: 2}, joblife.ErrConflict)
	require.Len(t, said, 2, "hello and ready")
	stale := []alloc.Message{alloc.Request{JobInfo: alloc.JobInfo{ID: 3}, Jobspec: text}}
	s.send(nil, stale)
	require.Len(t, said, 2)
	s.send(&alloc.Announcement{}, stale)
	require.Len(t, said, 3)
}
