package main

import (
	"encoding/json"

	"github.com/joblife/joblife/eventlog"
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

// answer tells what there is, what jobs hold and what is down; or which jobs hold what, with a
// line for each and an errnum after the last.
func (s *session) answer(topic string) error {
	p := s.Pool()
	switch {
	case p == nil:
		return errNoInventory
	case topic == topicStatus:
		return s.reply(topic, status{p.Inventory(), p.Allocated(), p.Down()})
	}
	for h := range p.Allocations() {
		if err := s.reply(topic, holding{h.ID, h.Since, h.Expiration, h.Held, h.Gone}); err != nil {
			return err
		}
	}
	return s.to.reply(alloc.Line{Topic: topic, Errnum: alloc.NoData})
}

// reply answers with a payload.
func (s *session) reply(topic string, payload any) error {
	b, err := json.Marshal(payload)
	if err != nil {
		return err
	}
	return s.to.reply(alloc.Line{Topic: topic, Payload: b})
}
