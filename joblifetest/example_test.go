package joblifetest_test

import (
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/joblifetest"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
	"github.com/joblife/joblife/rset/pool"
)

// fifo is a scheduler that serves jobs in the order of their requests, on a pool.
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

func (s *fifo) Take(msg alloc.Message) (err error) {
	switch msg := msg.(type) {
	case alloc.Request:
		s.queue = append(s.queue, msg)
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

func TestFIFO(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { joblifetest.RunScheduler(t, newFIFO) })
}

// A scheduler passes if it survives random workloads, canceled jobs and lost sessions.
func ExampleRunScheduler() {
	test := func(t *testing.T) { // TestFIFO in a file of tests
		rapid.Check(t, func(t *rapid.T) { joblifetest.RunScheduler(t, newFIFO) })
	}
	_ = test
	// Output:
}

// The world sees that two jobs share a core.
func ExampleWorld() {
	node, _ := rset.New(rset.Config{Entries: []rset.Entry{{Ranks: idset.Of(0), Children: map[string]*idset.Set{"core": idset.Of(0)}}}})
	w := joblifetest.NewWorld(perilog.Config{})
	w.Allocated(jobid.ID(1), node)
	w.Allocated(jobid.ID(2), node)
	fmt.Println(w.Err())
	// Output: joblifetest: job ƒ3: double booking: core 0 of rank 0 is held by ƒ2
}

// Any generated log is valid.
func ExampleLogs() {
	log := joblifetest.Logs().Example(1)
	fmt.Println(len(jobstate.Validate(log)))
	// Output: 0
}
