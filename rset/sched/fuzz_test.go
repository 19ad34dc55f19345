package sched_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
	"github.com/joblife/joblife/rset/pool"
	"github.com/joblife/joblife/rset/sched"
)

// script is bytes that messages are made of.
type script []byte

func (s *script) next(n int) int {
	if len(*s) == 0 {
		return 0
	}
	b := int((*s)[0])
	*s = (*s)[1:]
	return b % n
}

// resources returns some of a few nodes, one of which there is not.
func (s *script) resources(t *testing.T) *rset.R {
	if s.next(4) == 0 {
		return nil
	}
	first := uint32(s.next(5))
	r, err := rset.New(rset.Config{Expiration: eventlog.Timestamp(s.next(3) * s.next(100)), Entries: []rset.Entry{{
		Ranks:    idset.Range(first, first+uint32(s.next(5-int(first)))),
		Children: map[string]*idset.Set{"core": []*idset.Set{idset.Of(0), idset.Of(1), idset.Range(0, 1)}[s.next(3)]},
	}}})
	require.NoError(t, err)
	return r
}

// message returns a message about one of eight jobs, true or not.
func (s *script) message(t *testing.T) alloc.Message {
	id := jobid.ID(s.next(8))
	switch s.next(10) {
	default:
		j := jobspec.Job{Slots: int64(1 + s.next(8)), Duration: time.Duration(s.next(3)*s.next(50)) * time.Second}
		if s.next(4) > 0 {
			j = jobspec.Job{Nodes: int64(1 + s.next(5)), Exclusive: s.next(4) > 0, Duration: j.Duration}
		}
		return alloc.Request{JobInfo: alloc.JobInfo{ID: id, Priority: uint32(s.next(3))}, Jobspec: specOf(t, j)}
	case 4:
		return alloc.Cancel{ID: id}
	case 5:
		return alloc.Prioritize{Jobs: []alloc.Priority{{ID: id, Priority: uint32(s.next(3))}, {ID: jobid.ID(s.next(9)), Priority: 1}}}
	case 6, 7:
		return alloc.Free{ID: id, R: s.resources(t), Final: s.next(2) == 0}
	case 8:
		return alloc.Expiration{ID: id, Expiration: eventlog.Timestamp(s.next(200))}
	case 9:
		return alloc.HelloResponse{JobInfo: alloc.JobInfo{ID: id}, R: s.resources(t), Free: []*idset.Set{nil, nil, idset.Of(1)}[s.next(3)]}
	}
}

// Whatever a manager says in whatever order, the scheduler keeps its rules. The same calls
// have the same results.
func FuzzScheduler(f *testing.F) {
	f.Add(uint8(0), []byte{1, 0, 5, 1, 1, 3, 0, 40, 2, 0, 1, 1, 0, 1, 0, 1, 5, 0, 0, 7})
	f.Add(uint8(1), []byte{1, 0, 5, 1, 1, 2, 0, 40, 2, 0, 1, 1, 1, 4, 0, 9, 3, 0, 0, 1, 0, 2, 20, 1, 5, 2, 10, 1, 2, 1, 9, 1, 13})
	f.Add(uint8(2), []byte{0, 11, 1, 3, 2, 12, 1, 50, 3, 0, 5, 1, 1, 3, 0, 40, 3, 9, 5, 3, 4, 0, 1, 2, 0})
	for i := range uint64(48) {
		rng, text := rand.New(rand.NewPCG(i, 1)), make([]byte, 600)
		for k := range text {
			text[k] = byte(rng.Uint32())
		}
		f.Add(uint8(i), text)
	}
	f.Fuzz(func(t *testing.T, policy uint8, text []byte) {
		require.Equal(t, replay(t, policy, text), replay(t, policy, text))
	})
}

// replay returns what a scheduler says.
func replay(t *testing.T, policy uint8, text []byte) string {
	cfg := sched.Config{MaxJobs: 6, Annotate: true, Forecast: 10 * time.Second, Policy: []sched.Policy{
		sched.FIFO{}, sched.EASY{}, sched.Conservative{}, sched.EASY{Depth: 2}, sched.Conservative{Depth: 3}, plainly{},
	}[policy%6]}
	said := ""
	cfg.Logf = func(format string, args ...any) { said += fmt.Sprintf(format+"\n", args...) }
	s := begun(t, cfg, machine(t, 4, 2))
	now := eventlog.Timestamp(1)
	for rest := script(text); len(rest) > 0; {
		var err error
		switch rest.next(8) {
		case 0:
			_, err = s.EndHello()
		case 1:
			ranks := idset.Of(uint32(rest.next(5)))
			some := []pool.Change{{Up: ranks}, {Down: ranks}, {Shrink: ranks}, {Grow: machine(t, 5, 1+rest.next(2))}}[rest.next(4)]
			if some.Grow != nil {
				some.Grow, err = some.Grow.Restrict(ranks)
				require.NoError(t, err)
			}
			err = s.Acquire(pool.Acquire{Change: some})
		case 2:
			s.Missed(alloc.Line{Topic: []string{"", alloc.TopicHello, alloc.TopicFree}[rest.next(3)]})
		default:
			err = s.Handle(rest.message(t))
		}
		require.NoError(t, s.Check())
		now += eventlog.Timestamp(rest.next(20))
		if rest.next(3) > 0 {
			said += fmt.Sprintln(err, s.Len(), s.Ready())
			for _, r := range s.Decide(now) {
				b, fail := alloc.Append(nil, r)
				require.NoError(t, fail)
				said += string(b) + "\n"
				require.True(t, s.Ready() || r.Type > alloc.ResponseAnnotate, "it says what it cannot know")
			}
			require.NoError(t, s.Check())
		}
	}
	return said
}
