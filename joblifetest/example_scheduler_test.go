package joblifetest_test

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/joblifetest"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
	"github.com/joblife/joblife/rset/pool"
)

// fifo is a scheduler that serves jobs in the order of their priorities, on a pool.
type fifo struct {
	nodes *rset.R
	pool  *pool.Pool
	queue []alloc.Request
	out   []alloc.Response
}

func (s *fifo) Hello(a alloc.Announcement) (err error) {
	s.queue, s.out = nil, nil
	if s.pool, err = pool.New(s.nodes, pool.Config{}); err != nil {
		return err
	}
	err = s.pool.Update(pool.Change{Up: s.nodes.Ranks()})
	for _, h := range a.Responses {
		err = errors.Join(err, s.pool.Adopt(h.ID, h.R, h.Free))
	}
	return err
}

func (s *fifo) Update(c pool.Change) error { return s.pool.Update(c) }

func (s *fifo) Take(msg alloc.Message) (err error) {
	switch msg := msg.(type) {
	case alloc.Request:
		s.queue = append(s.queue, msg)
	case alloc.Prioritize:
		for i := range s.queue {
			for _, p := range msg.Jobs {
				if s.queue[i].ID == p.ID {
					s.queue[i].Priority = p.Priority
				}
			}
		}
	case alloc.Free:
		_, err = s.pool.Free(msg.ID, msg.R, msg.Final)
	case alloc.Cancel:
		for i := range s.queue {
			if s.queue[i].ID == msg.ID {
				s.queue = append(s.queue[:i], s.queue[i+1:]...)
				s.out = append(s.out, alloc.Response{ID: msg.ID, Type: alloc.ResponseCancel})
				break
			}
		}
	}
	slices.SortFunc(s.queue, func(a, b alloc.Request) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.ID, b.ID))
	})
	return err
}

func (s *fifo) Decide(now eventlog.Timestamp) []alloc.Response {
	out := s.out
	for s.out = nil; len(s.queue) > 0; s.queue = s.queue[1:] {
		id := s.queue[0].ID
		spec, err := jobspec.Parse(s.queue[0].Jobspec)
		if err != nil {
			return out
		}
		q, _ := pool.NewRequest(spec)
		r, err := s.pool.Alloc(id, q, now)
		if errors.Is(err, pool.ErrBusy) {
			return out
		}
		resp := alloc.Response{ID: id, Type: alloc.ResponseSuccess, R: r}
		if err != nil {
			resp = alloc.Response{ID: id, Type: alloc.ResponseDeny, Note: err.Error()}
		}
		out = append(out, resp)
	}
	return out
}

func newFIFO(nodes *rset.R) joblifetest.Scheduler { return &fifo{nodes: nodes} }

// checkFIFO is one random run of a scheduler. A test has 100 of them:
//
//	func TestFIFO(t *testing.T) { rapid.Check(t, checkFIFO) }
func checkFIFO(t *rapid.T) { joblifetest.RunScheduler(t, newFIFO, joblifetest.SchedulerConfig{}) }

// A scheduler passes if it survives random workloads, canceled jobs and lost sessions.
func ExampleRunScheduler() {
	run := rapid.Custom(func(t *rapid.T) string { checkFIFO(t); return "the world is content" })
	fmt.Println(run.Example(1))
	// Output: the world is content
}
