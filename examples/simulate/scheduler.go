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
	fresh     []*request // of these, what the last pass did not know
	head      *request   // the first that has to wait; nil: none
	freed     bool       // resources changed after the last pass
	responses []alloc.Response
}

// The policies.
const (
	fifo         = "fifo"
	easy         = "easy"
	conservative = "conservative"
)

// A request is a job that waits.
type request struct {
	id       jobid.ID
	priority uint32
	started  bool
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
	s.freed = true
	return s.pool.Update(pool.Change{Up: up, Down: down})
}

// take takes a message of the manager.
func (s *scheduler) take(msg alloc.Message) error {
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
		r := &request{id: msg.ID, priority: msg.Priority, Request: q}
		i, _ := slices.BinarySearchFunc(s.waiting, r, compareRequests)
		s.waiting = slices.Insert(s.waiting, i, r)
		s.fresh = append(s.fresh, r)
	case alloc.Cancel:
		s.pool.Unplan(msg.ID)
		s.freed = true
		s.waiting = slices.DeleteFunc(s.waiting, func(r *request) bool { return r.id == msg.ID })
		s.responses = append(s.responses, alloc.Response{ID: msg.ID, Type: alloc.ResponseCancel})
	case alloc.Free:
		s.freed = true
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
	if s.freed || len(s.fresh) > 0 {
		if err := s.schedule(eventlog.FromTime(now)); err != nil {
			return nil, err
		}
	}
	out := s.responses
	s.responses = nil
	return out, nil
}

// depth is how many jobs a pass looks at.
const depth = 100

// schedule starts jobs, in order until one has to wait: the head. With fifo the others
// wait too. With easy the head gets a plan, and others start if they do not delay it.
// With conservative every job that waits gets a plan.
func (s *scheduler) schedule(now eventlog.Timestamp) error {
	look := s.waiting
	if !s.freed && s.head != nil && s.waiting[0] == s.head {
		look = s.fresh // nothing has changed for the others
	} else if s.head != nil {
		s.pool.Unplan(s.head.id)
		s.head = nil
	}
	s.freed, s.fresh = false, nil
	started := false
	for _, r := range look[:min(depth, len(look))] {
		if s.head != nil && s.policy == fifo {
			break
		}
		given, err := s.pool.Alloc(r.id, r.Request, now)
		if err == nil {
			s.responses = append(s.responses, alloc.Response{ID: r.id, Type: alloc.ResponseSuccess, R: given})
			r.started, started = true, true
			continue
		}
		if !errors.Is(err, pool.ErrBusy) {
			return err
		}
		if s.policy == conservative || s.policy == easy && s.head == nil {
			// Without an end of what is in its way, a job gets no plan and delays none.
			if _, err := s.pool.Plan(r.id, r.Request, now); err != nil && !errors.Is(err, pool.ErrBusy) {
				return err
			}
		}
		if s.head == nil {
			s.head = r
		}
	}
	if started {
		s.waiting = slices.DeleteFunc(s.waiting, func(r *request) bool { return r.started })
	}
	return nil
}
