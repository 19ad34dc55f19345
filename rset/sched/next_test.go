package sched_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
	"github.com/joblife/joblife/rset/pool"
	"github.com/joblife/joblife/rset/sched"
)

// A hello ends a session, and the next one has the inventory and the jobs of the hello.
func TestTheNextSessionHasTheInventoryAndTheJobsOfTheHello(t *testing.T) {
	nodes := machine(t, 4, 2)
	nodes, err := rset.Parse(append(nodes.AppendJSON(nil)[:len(nodes.AppendJSON(nil))-1], `,"scheduling":{"graph":1}}`...))
	require.NoError(t, err)
	s := begun(t, sched.Config{Policy: sched.EASY{}}, nodes)
	require.NoError(t, s.Handle(ask(t, 1, 1)))
	require.Equal(t, []jobid.ID{1}, starts(t, s, 1000))
	require.NoError(t, s.Handle(ask(t, 2, 4)))
	require.NoError(t, s.Handle(ask(t, 3, 1)))
	require.NoError(t, s.Acquire(pool.Acquire{Change: pool.Change{Down: idset.Of(2), Shrink: idset.Of(3)}}), "job 2 has no hope now")

	require.NoError(t, s.Hello(alloc.Announcement{Responses: []alloc.HelloResponse{holder(t, 5, nodes, 0)}}))
	require.True(t, s.Ready())
	require.Empty(t, s.Decide(1), "job 2 has not asked in this session")
	require.Equal(t, 0, s.Len(), "job 3 asks again, if it still waits")
	require.Equal(t, "1", s.Pool().Available().Ranks().String())
	require.Equal(t, "0-2", s.Pool().Inventory().Ranks().String())
	require.NoError(t, s.Handle(ask(t, 6, 1)))
	list := s.Decide(1) // before the time of the last session
	require.Len(t, list, 1)
	require.GreaterOrEqual(t, float64(list[0].R.Start()), 1000.0, "time does not step back")
	require.Equal(t, json.RawMessage(`{"graph":1}`), list[0].R.Scheduling())
	require.NoError(t, s.Check())
}

func TestAHelloThatIsWrongStartsNothing(t *testing.T) {
	require.ErrorIs(t, sched.New(sched.Config{}).Hello(alloc.Announcement{}), sched.ErrNotReady, "there is no inventory")
	s := begun(t, sched.Config{}, machine(t, 2, 1))
	err := s.Hello(alloc.Announcement{Responses: []alloc.HelloResponse{{JobInfo: alloc.JobInfo{ID: 1}}}})
	require.ErrorIs(t, err, sched.ErrNoR)
	require.ErrorIs(t, err, sched.ErrNotReady)
	require.False(t, s.Ready())
	require.ErrorIs(t, s.Handle(ask(t, 2, 1)), sched.ErrNotReady)
	require.Empty(t, s.Decide(1000))
	require.NoError(t, s.Hello(alloc.Announcement{}))
	require.NoError(t, s.Handle(ask(t, 2, 1)))
	require.Equal(t, []jobid.ID{2}, starts(t, s, 1000))
}

// What is wrong with many jobs is one list, whose text takes time in proportion.
func TestAHelloJoinsItsErrorsOnce(t *testing.T) {
	s := begun(t, sched.Config{}, machine(t, 2, 1))
	lies := alloc.Announcement{Responses: make([]alloc.HelloResponse, 1000)}
	err := s.Hello(lies)
	require.Equal(t, 1001, len(err.(interface{ Unwrap() []error }).Unwrap()), "the text of nested ones takes the square of the time")
}

// Whatever was said in the session before, the next one is that of a new Scheduler that
// was told of the same inventory and the same jobs.
func TestTheNextSessionIsAsTheFirst(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rest := script(rapid.SliceOfN(rapid.Byte(), 50, 600).Draw(rt, "script"))
		said := ""
		cfg := sched.Config{
			MaxJobs: 6, Limit: rest.next(3), Annotate: true, Forecast: 10 * time.Second,
			Fit:    []pool.Fit{pool.FitBest, pool.FitWorst}[rest.next(2)],
			Logf:   func(format string, args ...any) { said += fmt.Sprintf(format+"\n", args...) },
			Policy: policies[rest.next(6)].Policy,
		}
		nodes := machine(t, 4, 2)
		s, fresh := begun(t, cfg, nodes), sched.New(cfg)
		require.NoError(t, fresh.Acquire(pool.Acquire{Resources: nodes, Change: pool.Change{Up: nodes.Ranks()}}))
		now := eventlog.Timestamp(1)
		acquire := func() {
			c := rest.change(t)
			require.Equal(t, s.Acquire(pool.Acquire{Change: c}) == nil, fresh.Acquire(pool.Acquire{Change: c}) == nil)
		}
		for range rest.next(60) {
			switch rest.next(8) {
			case 0:
				_, _ = s.EndHello()
			case 1:
				acquire()
			default:
				_ = s.Handle(rest.message(t))
			}
			now += eventlog.Timestamp(rest.next(20))
			s.Decide(now)
		}

		var hello alloc.Announcement
		for range rest.next(4) {
			hello.Responses = append(hello.Responses, alloc.HelloResponse{JobInfo: alloc.JobInfo{ID: jobid.ID(rest.next(8))}, R: rest.resources(t)})
		}
		err := s.Hello(hello)
		var errs []error
		for _, h := range hello.Responses {
			errs = append(errs, fresh.Handle(h))
		}
		_, fault := fresh.EndHello()
		require.Equal(t, fmt.Sprint(errors.Join(errors.Join(errs...), fault)), fmt.Sprint(err))
		both := []*sched.Scheduler{s, fresh}
		require.Equal(t, fresh.Pool().Inventory().String(), s.Pool().Inventory().String())
		require.Equal(t, fresh.Pool().Inventory().Expiration(), s.Pool().Inventory().Expiration())
		for len(rest) > 0 {
			var m alloc.Message
			var c pool.Change
			kind := rest.next(8)
			switch kind {
			case 0:
			case 1:
				c = rest.change(t)
			default:
				m = rest.message(t)
			}
			now += eventlog.Timestamp(rest.next(20))
			var texts [2]string
			for i, s := range both {
				said, err = "", nil
				switch kind {
				case 0:
					_, err = s.EndHello()
				case 1:
					err = s.Acquire(pool.Acquire{Change: c})
				default:
					err = s.Handle(m)
				}
				at, due := s.Deadline()
				texts[i] = fmt.Sprintln(err, s.Len(), s.Ready(), at, due)
				for _, r := range s.Decide(now) {
					b, fail := alloc.Append(nil, r)
					require.NoError(t, fail)
					texts[i] += string(b) + "\n"
				}
				texts[i] += said
				require.NoError(t, s.Check())
			}
			require.Equal(rt, texts[1], texts[0])
		}
	})
}

// change returns a change of the inventory, possible or not.
func (s *script) change(t *testing.T) pool.Change {
	ranks := idset.Of(uint32(s.next(5)))
	until := eventlog.Timestamp(s.next(5) * 100)
	c := []pool.Change{
		{Up: ranks}, {Down: ranks}, {Shrink: ranks}, {Expiration: &until},
		{AddProperties: map[string]*idset.Set{"p": ranks}}, {RemoveProperties: map[string]*idset.Set{"p": ranks}},
	}[s.next(6)]
	if s.next(6) == 0 {
		grow, err := machine(t, 5, 1+s.next(2)).Restrict(ranks)
		require.NoError(t, err)
		c = pool.Change{Grow: grow}
	}
	return c
}

// Who goes through the queue may change it: no job comes twice because it moves to the front.
func TestPrioritiesChangeOnTheWayThroughTheQueue(t *testing.T) {
	s := begun(t, sched.Config{}, machine(t, 1, 1))
	for id := jobid.ID(1); id <= 3; id++ {
		require.NoError(t, s.Handle(ask(t, id, 1)))
	}
	var seen []jobid.ID
	for j := range s.Jobs() {
		seen = append(seen, j.ID)
		require.Less(t, len(seen), 4)
		require.NoError(t, s.Handle(alloc.Prioritize{Jobs: []alloc.Priority{{ID: j.ID, Priority: 16 + uint32(j.ID)}}}))
	}
	require.Equal(t, []jobid.ID{1, 2, 3}, seen)
}
