package main

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"pgregory.net/rapid"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/joblifetest"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
	"github.com/joblife/joblife/rset/pool"
)

// inProcess is this scheduler without lines, as joblifetest.RunScheduler drives it.
type inProcess struct {
	*scheduler
	options options
	nodes   *rset.R
	out     []alloc.Response
}

func (p *inProcess) Hello(a alloc.Announcement) error {
	p.scheduler, p.out = &newSession(p.options, io.Discard, io.Discard).scheduler, nil
	p.answer = func(r alloc.Response) { p.out = append(p.out, r) }
	err := p.acquire(pool.Acquire{Resources: p.nodes, Change: pool.Change{Up: p.nodes.Ranks()}})
	for _, h := range a.Responses {
		err = errors.Join(err, p.adopt(h))
	}
	return errors.Join(err, p.adopted())
}

func (p *inProcess) Update(c pool.Change) error { return p.acquire(pool.Acquire{Change: c}) }

func (p *inProcess) Take(m alloc.Message) error {
	switch m := m.(type) {
	case alloc.Request:
		return p.request(m)
	case alloc.Cancel:
		p.cancel(m)
	case alloc.Prioritize:
		p.prioritize(m)
	case alloc.Free:
		return p.free(m)
	case alloc.Expiration:
		return p.expire(m)
	}
	return p.pool.Check()
}

func (p *inProcess) Decide(now eventlog.Timestamp) []alloc.Response {
	p.now = max(p.now, now)
	out := p.out
	p.out = nil
	return out
}

// The world finds nothing wrong with any policy.
func TestTheWorldIsContent(t *testing.T) {
	for _, o := range []options{{policy: "fifo", period: 1}, {policy: "easy", depth: defaultDepth}, {policy: "easy", depth: 1, fit: pool.FitWorst}} {
		o.Now = 1 // time comes from Decide
		t.Run(fmt.Sprint(o.policy, o.depth), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				joblifetest.RunScheduler(t, func(nodes *rset.R) joblifetest.Scheduler { return &inProcess{options: o, nodes: nodes} }, joblifetest.SchedulerConfig{})
			})
		})
	}
}
