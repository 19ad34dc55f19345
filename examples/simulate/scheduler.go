package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
	"github.com/joblife/joblife/rset/pool"
)

// A scheduler gives nodes to jobs.
type scheduler struct {
	policy    string
	pool      *pool.Pool
	waiting   []*request // in the order of priority, then of ids
	responses []alloc.Response
	changed   bool
}

// A request is a job that waits.
type request struct {
	id       jobid.ID
	priority uint32
	*pool.Request
}

func compareRequests(a, b *request) int {
	return cmp.Or(-cmp.Compare(a.priority, b.priority), cmp.Compare(a.id, b.id))
}

func newScheduler(policy string, nodes *rset.R, down *idset.Set) (*scheduler, error) {
	p, err := pool.New(nodes, pool.Config{})
	if err != nil {
		return nil, err
	}
	return &scheduler{policy: policy, pool: p}, p.Update(pool.Change{Up: idset.Difference(nodes.Ranks(), down)})
}

// hello takes the jobs that have resources.
func (s *scheduler) hello(a alloc.Announcement) error {
	for _, h := range a.Responses {
		if err := s.pool.Adopt(h.ID, h.R, h.Free); err != nil {
			return err
		}
	}
	return nil
}

// nodes takes nodes that are up, and down.
func (s *scheduler) nodes(up, down *idset.Set) error {
	s.changed = true
	return s.pool.Update(pool.Change{Up: up, Down: down})
}

// take takes a message of the manager.
func (s *scheduler) take(msg alloc.Message) error {
	s.changed = true
	switch msg := msg.(type) {
	case alloc.Request:
		spec, err := jobspec.Parse(msg.Jobspec)
		if err != nil {
			return err
		}
		q, err := pool.NewRequest(spec)
		if err != nil {
			return err
		}
		r := &request{msg.ID, msg.Priority, q}
		i, _ := slices.BinarySearchFunc(s.waiting, r, compareRequests)
		s.waiting = slices.Insert(s.waiting, i, r)
	case alloc.Cancel:
		s.waiting = slices.DeleteFunc(s.waiting, func(r *request) bool { return r.id == msg.ID })
		s.responses = append(s.responses, alloc.Response{ID: msg.ID, Type: alloc.ResponseCancel})
	case alloc.Free:
		_, err := s.pool.Free(msg.ID, msg.R, msg.Final)
		return err
	case alloc.ReadyResponse:
	default:
		return fmt.Errorf("the scheduler does not know %T", msg)
	}
	return nil
}

// decide returns responses.
func (s *scheduler) decide(now time.Time) ([]alloc.Response, error) {
	out := s.responses
	s.responses = nil
	if !s.changed {
		return out, nil
	}
	s.changed = false
	t := eventlog.FromTime(now)
	for len(s.waiting) > 0 {
		r, err := s.pool.Alloc(s.waiting[0].id, s.waiting[0].Request, t)
		if errors.Is(err, pool.ErrBusy) {
			break
		}
		if err != nil {
			return nil, err
		}
		out = append(out, alloc.Response{ID: s.waiting[0].id, Type: alloc.ResponseSuccess, R: r})
		s.waiting = s.waiting[1:]
	}
	return out, nil
}
