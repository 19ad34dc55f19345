package main

import (
	"fmt"
	"iter"
	"slices"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/examples/internal/lines"
	"github.com/joblife/joblife/examples/internal/service"
	"github.com/joblife/joblife/jobstate/jobid"
)

// start reads the store. What is made of it may come later.
func (p *process) start() {
	p.started = true
	p.store.load(func(records iter.Seq2[joblife.Record, error]) {
		p.about(nil, 0, func() { p.restore(records, nil) }) // though a line had what it waited for
	})
}

// restore makes the service of the records, without the jobs that are gone. First it puts
// aside what the operator says of the jobs that cannot be read: until each is moved, it
// holds what it held. The others stay in the store, and each restart has to tell
// schedulers what they hold.
func (p *process) restore(records iter.Seq2[joblife.Record, error], gone []jobid.ID) {
	cfg := p.o.config
	cfg.Lookup, cfg.Reads, cfg.Send = p.store.lookup, p.reads, p.dispatch
	p.store.serve(&cfg)
	s, recovered, err := service.Restore(p.now(), cfg, without(gone, records))
	if err != nil {
		p.fail(fmt.Errorf("-store: %w", err))
		return
	}
	for _, q := range recovered.Quarantined {
		if slices.Contains(p.o.aside, q.Job) && !slices.Contains(gone, q.Job) {
			p.putAside(q, func() { p.restore(records, append(gone, q.Job)) })
			return
		}
	}
	for _, id := range p.o.aside {
		if !slices.Contains(gone, id) {
			p.warnf("-put-aside: job %v is not damaged, or not there: nothing is moved", id)
		}
	}
	p.begin(s, recovered)
}

// putAside puts a job aside, and goes on.
func (p *process) putAside(q joblife.Quarantined, then func()) {
	p.store.putAside(q.Job, func(err error) {
		p.about(nil, 0, func() {
			if err != nil {
				p.fail(fmt.Errorf("-store: put job %v aside: %w", q.Job, err))
				return
			}
			p.printf(service.LevelError, "job %v not replayed: %s; it is put aside", q.Job, lines.Why(q.Err))
			then()
		})
	})
}

// begin takes the requests that came before the service.
func (p *process) begin(s *service.Service, recovered joblife.Recovered) {
	for _, q := range recovered.Quarantined {
		p.printf(service.LevelError, "job %v not replayed: %s; it stays until -put-aside %[1]v", q.Job, lines.Why(q.Err))
		if q.R != nil {
			p.printf(service.LevelError, "job %v keeps %v: look after its nodes first", q.Job, q.R)
		} else {
			p.printf(service.LevelError, "what job %v holds is not known: look after its nodes before a scheduler comes", q.Job)
		}
	}
	p.service, p.last = s, p.now().Round(0)
	close(p.opened)
	if p.kvs != nil {
		p.kvs.watch()
	}
	if n := len(recovered.Jobs); n > 0 {
		p.printf(service.LevelInfo, "%s from before, %d running", lines.Count(n, "job"), len(recovered.Running))
	}
	for _, c := range p.clients {
		p.welcomed(c)
	}
	list := p.early
	p.early, p.room = nil, busyRoom()
	p.do(func() {
		for _, e := range list {
			p.about(e.client, e.line, func() { p.serve(e.message, 0, nil) })
		}
	})
}

// welcomed tells a client that requests are served, if that is so and asked for.
func (p *process) welcomed(c *client) {
	if p.o.ready && p.service != nil {
		p.write(c, output{Topic: topicReady})
	}
}

// without leaves jobs out of records: they are unlinked, so that their ids do not come back.
func without(gone []jobid.ID, records iter.Seq2[joblife.Record, error]) iter.Seq2[joblife.Record, error] {
	return func(yield func(joblife.Record, error) bool) {
		for r, err := range records {
			if !slices.Contains(gone, r.Job) && !yield(r, err) {
				return
			}
		}
		for _, id := range gone {
			if !yield(joblife.Record{Job: id, Kind: joblife.RecordUnlinked}, nil) {
				return
			}
		}
	}
}
