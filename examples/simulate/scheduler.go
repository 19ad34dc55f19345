package main

import (
	"cmp"
	"errors"
	"fmt"
	"math"
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
	known     map[string]wish // by jobspec
	waiting   []*request      // in the order of priority, then of ids
	planned   []*request      // those that the last passes looked at, and that have to wait
	down      *idset.Set      // nodes
	idle      int64           // how many nodes are up and have no job
	ends      []ending        // of the jobs that have nodes, in order
	head      reservation     // of the first of planned, with easy
	fresh     bool            // jobs came after the last pass
	freed     bool            // nodes did
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
	looked   bool // it has to wait, as long as no node is freed
	started  bool
	wish
}

// A wish is what a job asks for: whole nodes.
type wish struct {
	nodes int64
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
	s := &scheduler{policy: policy, pool: p, known: make(map[string]wish), down: down.Clone()}
	return s, s.nodes(idset.Difference(nodes.Ranks(), down), nil)
}

// hello takes the jobs that have resources.
func (s *scheduler) hello(a alloc.Announcement) error {
	for _, h := range a.Responses {
		if err := s.pool.Adopt(h.ID, h.R, h.Free); err != nil {
			return err
		}
	}
	return s.nodes(nil, nil)
}

// nodes takes nodes that are up, and down.
func (s *scheduler) nodes(up, down *idset.Set) error {
	err := s.pool.Update(pool.Change{Up: up, Down: down})
	s.freed = true
	s.down.SubtractWith(up)
	s.down.UnionWith(down)
	s.idle = s.up(s.pool.Available())
	s.ends = s.ends[:0]
	for h := range s.pool.Holders() {
		s.holds(h.ID, h.Expiration, s.up(h.Held))
	}
	return err
}

// up returns how many nodes of an R are up.
func (s *scheduler) up(r *rset.R) int64 {
	if s.down.IsEmpty() {
		return int64(r.Len())
	}
	return int64(idset.Difference(r.Ranks(), s.down).Len())
}

// dispatch does what a message of the manager says.
func (s *scheduler) dispatch(msg alloc.Message) error {
	switch msg := msg.(type) {
	case alloc.Request:
		w, err := s.understand(msg.Jobspec)
		if err != nil {
			return err
		}
		r := &request{id: msg.ID, priority: msg.Priority, wish: w}
		i, _ := slices.BinarySearchFunc(s.waiting, r, compareRequests)
		s.waiting = slices.Insert(s.waiting, i, r)
		s.fresh = true
	case alloc.Cancel:
		s.pool.Unplan(msg.ID)
		s.freed = true
		s.waiting = slices.DeleteFunc(s.waiting, func(r *request) bool { return r.id == msg.ID })
		s.responses = append(s.responses, alloc.Response{ID: msg.ID, Type: alloc.ResponseCancel})
	case alloc.Free:
		s.freed = true
		freed, err := s.pool.Free(msg.ID, msg.R, msg.Final)
		if err != nil {
			return err
		}
		n := s.up(freed.Returned)
		s.idle += n
		s.holds(msg.ID, msg.R.Expiration(), -n)
	case alloc.ReadyResponse:
	default:
		return fmt.Errorf("the scheduler does not know %T", msg)
	}
	return nil
}

// understand returns what a job asks for. Many ask for the same.
func (s *scheduler) understand(text []byte) (wish, error) {
	if w, ok := s.known[string(text)]; ok {
		return w, nil
	}
	spec, err := jobspec.Parse(text)
	if err != nil {
		return wish{}, err
	}
	q, err := pool.NewRequest(spec)
	if err != nil {
		return wish{}, err
	}
	w := wish{Request: q}
	w.nodes, _ = spec.Counts().Nodes.Value()
	s.known[string(text)] = w
	return w, nil
}

// decide returns responses.
func (s *scheduler) decide(now time.Time) ([]alloc.Response, error) {
	if s.freed || s.fresh {
		if err := s.schedule(eventlog.FromTime(now)); err != nil {
			return nil, err
		}
	}
	out := s.responses
	s.responses = nil
	return out, nil
}

// How many jobs a pass looks at, and to how many conservative gives plans. Those behind
// them wait for their turn.
const (
	depth     = 100
	planDepth = 30
)

// schedule starts jobs, in order until one has to wait: the head. With fifo the others
// wait too. With easy the head gets a reservation, and others start if they do not delay
// it. With conservative every job that waits gets a plan. Both are made only as far as a
// job behind them might start.
func (s *scheduler) schedule(now eventlog.Timestamp) error {
	if s.freed {
		for _, r := range s.planned {
			s.pool.Unplan(r.id)
			r.looked = false
		}
		s.planned, s.head = s.planned[:0], reservation{}
	}
	most := depth
	if s.policy == conservative {
		most = planDepth
	}
	look := s.waiting[:min(most, len(s.waiting))]
	var least [depth + 1]int64 // nodes that a job from here on needs
	least[len(look)] = math.MaxInt64
	for i, r := range slices.Backward(look) {
		least[i] = min(r.nodes, least[i+1])
	}
	started := false
	for i, r := range look {
		if least[i] > s.idle || i > 0 && s.policy == fifo && !look[i-1].started {
			break
		}
		if r.looked {
			continue // nothing has changed for it
		}
		if r.nodes <= s.idle && s.head.admits(r.wish, now, s.idle) {
			given, err := s.pool.Alloc(r.id, r.Request, now)
			if err == nil {
				s.head.started(r.wish, now)
				s.idle -= r.nodes
				s.holds(r.id, given.Expiration(), r.nodes)
				s.responses = append(s.responses, alloc.Response{ID: r.id, Type: alloc.ResponseSuccess, R: given})
				r.started, started = true, true
				continue
			}
			if !errors.Is(err, pool.ErrBusy) {
				return err
			}
		}
		r.looked = true
		s.planned = append(s.planned, r)
		switch {
		case s.policy == conservative:
			// A job that has to wait for what does not end delays none.
			if _, err := s.pool.Plan(r.id, r.Request, now); err != nil && !errors.Is(err, pool.ErrBusy) {
				return err
			}
		case s.policy == easy && len(s.planned) == 1:
			s.head = s.reserve(r.nodes, now)
		}
	}
	s.freed, s.fresh = false, false
	if started { // close the gaps among those looked at: many more may wait
		k := len(look)
		for _, r := range slices.Backward(look) {
			if !r.started {
				k--
				look[k] = r
			}
		}
		clear(look[:k])
		s.waiting = s.waiting[k:]
	}
	return nil
}
