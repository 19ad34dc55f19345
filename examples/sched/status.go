package main

import (
	"encoding/json"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/examples/internal/errno"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
)

// What people ask the scheduler.
const (
	topicStatus  = "sched.resource-status" // as in flux-core
	topicHolders = "sched.holders"
)

// status is the answer to sched.resource-status.
type status struct {
	All       *rset.R `json:"all"`
	Allocated *rset.R `json:"allocated"`
	Down      *rset.R `json:"down"`
}

// holding is the answer to sched.holders for one job.
type holding struct {
	ID         jobid.ID           `json:"id"`
	Start      eventlog.Timestamp `json:"starttime"`
	Expiration eventlog.Timestamp `json:"expiration"` // 0: never
	R          *rset.R            `json:"R"`          // that it still holds
	Gone       *rset.R            `json:"gone"`       // that it holds and that left the inventory
}

var errNoInventory = &refusal{errno.Again, "there is no inventory yet"}

// onStatus tells what there is, what jobs hold, and what is down.
func (s *session) onStatus() error {
	p := s.Pool()
	if p == nil {
		return errNoInventory
	}
	return s.reply(topicStatus, status{p.Inventory(), p.Allocated(), p.Down()})
}

// onHolders tells which jobs hold what: a line each, and an errnum after the last.
func (s *session) onHolders() error {
	p := s.Pool()
	if p == nil {
		return errNoInventory
	}
	for h := range p.Allocations() {
		if err := s.reply(topicHolders, holding{h.ID, h.Since, h.Expiration, h.Held, h.Gone}); err != nil {
			return err
		}
	}
	s.write(alloc.Line{Topic: topicHolders, Errnum: alloc.NoData}.AppendText(nil))
	return nil
}

// reply writes a payload. The error says that a line cannot hold it.
func (s *session) reply(topic string, payload any) error {
	b, err := json.Marshal(payload)
	if err != nil {
		return err
	}
	if b, err = (alloc.Line{Topic: topic, Payload: b}).AppendText(nil); err != nil {
		return err
	}
	s.write(b, nil)
	return nil
}
