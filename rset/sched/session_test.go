package sched_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/bomb"
	"github.com/joblife/joblife/internal/race"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
	"github.com/joblife/joblife/rset/pool"
	"github.com/joblife/joblife/rset/sched"
)

// ask returns a request for whole nodes for a minute.
func ask(t require.TestingT, id jobid.ID, nodes int64) alloc.Request {
	return alloc.Request{JobInfo: alloc.JobInfo{ID: id, Priority: 16}, Jobspec: specOf(t, jobspec.Job{Nodes: nodes, Exclusive: true, Duration: time.Minute})}
}

// holder returns a job of a hello that has nodes.
func holder(t require.TestingT, id jobid.ID, nodes *rset.R, ranks ...uint32) alloc.HelloResponse {
	r, err := nodes.Restrict(idset.Of(ranks...))
	require.NoError(t, err)
	return alloc.HelloResponse{JobInfo: alloc.JobInfo{ID: id, Priority: 16}, R: r}
}

// starts decides, and returns which jobs start.
func starts(t *testing.T, s *sched.Scheduler, now eventlog.Timestamp) (ids []jobid.ID) {
	t.Helper()
	for _, r := range s.Decide(now) {
		if r.Type == alloc.ResponseSuccess {
			ids = append(ids, r.ID)
		}
	}
	require.NoError(t, s.Check())
	return ids
}

// Words from outside are cut between characters, so that what has them can be written.
func TestADenialCanBeWritten(t *testing.T) {
	s := begun(t, sched.Config{}, machine(t, 1, 1))
	long := strings.Repeat("é", 32)
	for nested := range 16 {
		c := strings.Repeat(`{"or":[`, nested) + `{"` + long + `":[]}` + strings.Repeat("]}", nested)
		require.NoError(t, s.Handle(alloc.Request{JobInfo: alloc.JobInfo{ID: 1}, Jobspec: specOf(t, jobspec.Job{}, c)}))
		list := s.Decide(1)
		require.Len(t, list, 1)
		_, err := alloc.Append(nil, list[0])
		require.NoError(t, err, "%q", list[0].Note)
	}
	require.NoError(t, s.Handle(ask(t, 2, 1)))
	require.Equal(t, []jobid.ID{2}, starts(t, s, 1))
	for _, rank := range []uint32{0, 10} {
		r, err := rset.New(rset.Config{Entries: []rset.Entry{{Ranks: idset.Of(rank), Children: map[string]*idset.Set{"\n" + long: idset.Of(0)}}}})
		require.NoError(t, err)
		text := s.Handle(alloc.Free{ID: 2, R: r, Final: true}).Error()
		require.True(t, utf8.ValidString(text) && !strings.Contains(text, "\n"), "%q", text)
	}
}

// What cannot be is refused, and leaves all as it was.
func TestALieChangesNothing(t *testing.T) {
	nodes := machine(t, 4, 2)
	part := func(ranks ...uint32) *rset.R { return holder(t, 1, nodes, ranks...).R }
	beyond := holder(t, 1, machine(t, 9, 2), 0, 8).R
	for name, c := range map[string]struct {
		m   alloc.Message
		err error
	}{
		"a request of a job that waits":        {ask(t, 2, 4), sched.ErrExists},
		"a request of a job that runs":         {ask(t, 1, 1), sched.ErrExists},
		"a request beyond the limit":           {ask(t, 9, 1), sched.ErrLimit},
		"a free of a job that waits":           {alloc.Free{ID: 2, R: part(0), Final: true}, pool.ErrNotFound},
		"a free of an unknown job":             {alloc.Free{ID: 9, Final: true}, pool.ErrNotFound},
		"a free of what another holds":         {alloc.Free{ID: 1, R: part(3), Final: true}, errAny},
		"a free of what does not exist":        {alloc.Free{ID: 1, R: beyond}, errAny},
		"an expiration of an unknown job":      {alloc.Expiration{ID: 9, Expiration: 5}, pool.ErrNotFound},
		"an expiration that is no time":        {alloc.Expiration{ID: 1, Expiration: eventlog.Timestamp(math.NaN())}, errAny},
		"an expiration before time began":      {alloc.Expiration{ID: 1, Expiration: -1}, errAny},
		"an expiration of a job that waits":    {alloc.Expiration{ID: 2, Expiration: 5}, pool.ErrNotFound},
		"a cancel of an unknown job":           {alloc.Cancel{ID: 9}, nil},
		"a cancel of a job that runs":          {alloc.Cancel{ID: 1}, nil},
		"a priority of an unknown job":         {alloc.Prioritize{Jobs: []alloc.Priority{{ID: 9, Priority: 1}}}, nil},
		"a priority of a job that runs":        {alloc.Prioritize{Jobs: []alloc.Priority{{ID: 1, Priority: 1}}}, nil},
		"a ready response":                     {alloc.ReadyResponse{}, nil},
		"a feasible job":                       {alloc.Feasibility{Jobspec: ask(t, 1, 4).Jobspec}, nil},
		"an infeasible job":                    {alloc.Feasibility{Jobspec: ask(t, 1, 5).Jobspec}, pool.ErrInfeasible},
		"a job that is no jobspec":             {alloc.Feasibility{Jobspec: []byte("{}")}, errAny},
		"a message of a scheduler: hello":      {alloc.Hello{}, errAny},
		"a message of a scheduler: ready":      {alloc.Ready{}, errAny},
		"a message of a scheduler: a response": {alloc.Response{ID: 2, Type: alloc.ResponseCancel}, errAny},
		"nothing":                              {nil, errAny},
	} {
		t.Run(name, func(t *testing.T) {
			for _, policy := range []sched.Policy{sched.FIFO{}, sched.EASY{}, sched.Conservative{}} {
				s := begun(t, sched.Config{Policy: policy, MaxJobs: 3}, nodes)
				for _, m := range []alloc.Message{ask(t, 1, 3), ask(t, 2, 4), ask(t, 3, 2)} {
					require.NoError(t, s.Handle(m))
				}
				require.Equal(t, []jobid.ID{1}, starts(t, s, 1000))
				err := s.Handle(c.m)
				if c.err == errAny {
					require.Error(t, err)
				} else {
					require.ErrorIs(t, err, c.err)
				}
				require.Empty(t, s.Decide(1001))
				require.Equal(t, 2, s.Len())
				require.NoError(t, s.Handle(alloc.Free{ID: 1, R: s.Held(1), Final: true}))
				require.Equal(t, []jobid.ID{2}, starts(t, s, 1002), "all is as it was")
			}
		})
	}
}

var errAny = errors.New("any")

func TestAnInventoryComesFirstAndOnce(t *testing.T) {
	nodes := machine(t, 2, 2)
	s := sched.New(sched.Config{})
	require.Nil(t, s.Pool())
	for _, m := range []alloc.Message{
		holder(t, 1, nodes, 0), alloc.Free{ID: 1}, alloc.Expiration{ID: 1}, alloc.Feasibility{Jobspec: []byte("{}")}, ask(t, 1, 1),
	} {
		require.ErrorIs(t, s.Handle(m), sched.ErrNotReady)
	}
	require.ErrorIs(t, s.Acquire(pool.Acquire{}), sched.ErrNotReady)
	require.ErrorIs(t, s.Drain(idset.Of(0)), sched.ErrNotReady)
	_, err := s.EndHello()
	require.ErrorIs(t, err, sched.ErrNotReady)
	require.Empty(t, s.Decide(1))
	require.Error(t, s.Acquire(pool.Acquire{Resources: nodes, Change: pool.Change{Up: idset.Of(7)}}))
	require.Nil(t, s.Pool(), "what is refused changes nothing")

	require.NoError(t, s.Acquire(pool.Acquire{Resources: nodes, Change: pool.Change{Up: idset.Of(0)}}))
	require.ErrorIs(t, s.Acquire(pool.Acquire{Resources: nodes}), sched.ErrExists)
	require.False(t, s.Ready())
	_, err = s.EndHello()
	require.NoError(t, err)
	require.NoError(t, s.Handle(ask(t, 1, 2)))
	require.Empty(t, starts(t, s, 1))
	require.NoError(t, s.Acquire(pool.Acquire{Change: pool.Change{Up: idset.Of(1)}}))
	require.NoError(t, s.Drain(idset.Of(0, 7)))
	require.Empty(t, starts(t, s, 1), "a drained node starts nothing, and there is no node 7")
	require.Equal(t, "0", s.Pool().Down().Ranks().String())
	require.NoError(t, s.Acquire(pool.Acquire{Change: pool.Change{Up: idset.Of(0)}}))
	require.Equal(t, []jobid.ID{1}, starts(t, s, 1))
}

// If it is not known what a job has, it could be given to another.
func TestNothingStartsBeforeAllIsKnown(t *testing.T) {
	nodes := machine(t, 2, 2)
	for name, spoil := range map[string]func(s *sched.Scheduler) error{
		"no R":                   func(s *sched.Scheduler) error { return s.Handle(alloc.HelloResponse{JobInfo: alloc.JobInfo{ID: 5}}) },
		"too many":               func(s *sched.Scheduler) error { return s.Handle(holder(t, 5, nodes, 0)) },
		"other resources before": func(s *sched.Scheduler) error { return s.Handle(holder(t, 1, nodes, 1)) },
		"a line that is none":    func(s *sched.Scheduler) error { s.Missed(alloc.Line{Topic: alloc.TopicHello}); return errAny },
	} {
		t.Run(name, func(t *testing.T) {
			s := sched.New(sched.Config{MaxJobs: 1})
			require.NoError(t, s.Acquire(pool.Acquire{Resources: nodes, Change: pool.Change{Up: nodes.Ranks()}}))
			require.NoError(t, s.Handle(holder(t, 1, nodes, 0)))
			require.NoError(t, s.Handle(holder(t, 1, nodes, 0)), "again, at the limit")
			require.Error(t, spoil(s))
			_, err := s.EndHello()
			require.ErrorIs(t, err, sched.ErrNotReady)
			require.False(t, s.Ready())
			require.NoError(t, s.Handle(alloc.Free{ID: 1, Final: true}))
			require.Empty(t, starts(t, s, 10))
			require.ErrorIs(t, s.Handle(ask(t, 3, 1)), sched.ErrNotReady)
			_, err = s.EndHello()
			require.NoError(t, err, "another hello, of no jobs")
			require.NoError(t, s.Handle(ask(t, 2, 2)))
			require.Equal(t, []jobid.ID{2}, starts(t, s, 10))
		})
	}
	// A line that cannot be read matters in a hello only. There it may be a job.
	fresh := sched.New(sched.Config{})
	require.NoError(t, fresh.Acquire(pool.Acquire{Resources: nodes}))
	for range 2 {
		fresh.Missed(alloc.Line{})
		require.NoError(t, fresh.Handle(holder(t, 1, nodes, 0)))
		_, err := fresh.EndHello()
		require.ErrorIs(t, err, sched.ErrNotReady)
	}
	s := begun(t, sched.Config{}, nodes)
	s.Missed(alloc.Line{})
	s.Missed(alloc.Line{Topic: alloc.TopicFree})
	require.True(t, s.Ready())
}

// A hello tells all, so nothing is left of the one before: a job may have ended since, or have
// freed some, and requests come again.
func TestAnotherHelloTellsAll(t *testing.T) {
	nodes := machine(t, 3, 2)
	s := sched.New(sched.Config{})
	require.NoError(t, s.Acquire(pool.Acquire{Resources: nodes, Change: pool.Change{Up: idset.Of(0, 1)}}))
	h := holder(t, 2, nodes, 0, 1)
	for _, first := range []alloc.HelloResponse{h, holder(t, 1, nodes, 2)} {
		require.NoError(t, s.Handle(first))
		require.Error(t, s.Handle(alloc.HelloResponse{JobInfo: alloc.JobInfo{ID: 3}}), "there is no R")
		_, err := s.EndHello()
		require.ErrorIs(t, err, sched.ErrNotReady)
	}
	require.NoError(t, s.Acquire(pool.Acquire{Change: pool.Change{Up: idset.Of(2)}}))
	for _, more := range []int64{2, 1} {
		h.Free = idset.Of(1)
		require.NoError(t, s.Handle(h))
		_, err := s.EndHello()
		require.NoError(t, err)
		require.NoError(t, s.Check())
		require.NoError(t, s.Handle(ask(t, 4, 3)))
		require.NoError(t, s.Handle(ask(t, 3, more)))
		require.Equal(t, 2, s.Len())
	}
	require.NoError(t, s.Handle(alloc.Cancel{ID: 4}))
	require.Equal(t, []jobid.ID{3}, starts(t, s, 10))
	require.NoError(t, s.Handle(alloc.Free{ID: 2, Final: true}))
	_, err := s.EndHello()
	require.NoError(t, err, "a hello of no jobs")
	require.NoError(t, s.Handle(ask(t, 4, 3)))
	require.Equal(t, []jobid.ID{4}, starts(t, s, 10))
}

// Two jobs that hold the same are told. It is free when both have freed it.
func TestAHelloThatOverlapsFreesNothingEarly(t *testing.T) {
	nodes := machine(t, 2, 2)
	s := sched.New(sched.Config{Policy: sched.EASY{}})
	require.NoError(t, s.Acquire(pool.Acquire{Resources: nodes, Change: pool.Change{Up: nodes.Ranks()}}))
	require.NoError(t, s.Handle(holder(t, 1, nodes, 0)))
	require.NoError(t, s.Handle(holder(t, 1, nodes, 0)), "what is said again is no lie")
	require.ErrorContains(t, s.Handle(holder(t, 2, nodes, 0)), "held twice")
	_, err := s.EndHello()
	require.NoError(t, err)
	require.NoError(t, s.Handle(ask(t, 3, 2)))
	require.Empty(t, starts(t, s, 1))
	require.NoError(t, s.Handle(alloc.Free{ID: 1, Final: true}))
	require.Empty(t, starts(t, s, 2))
	require.NoError(t, s.Handle(alloc.Free{ID: 2, Final: true}))
	require.Equal(t, []jobid.ID{3}, starts(t, s, 3))
}

// A job keeps what leaves, and frees it.
func TestResourcesGoAwayWhileAllocated(t *testing.T) {
	nodes := machine(t, 3, 2)
	for _, policy := range []sched.Policy{sched.FIFO{}, sched.EASY{}, sched.Conservative{}} {
		s := begun(t, sched.Config{Policy: policy}, nodes)
		require.NoError(t, s.Handle(ask(t, 1, 2)))
		require.NoError(t, s.Handle(ask(t, 2, 3)))
		require.NoError(t, s.Handle(ask(t, 3, 2)))
		require.Equal(t, []jobid.ID{1}, starts(t, s, 1000))
		r := s.Held(1)
		last, _ := r.Ranks().Max()
		require.NoError(t, s.Acquire(pool.Acquire{Change: pool.Change{Shrink: idset.Of(last)}}))
		out := s.Decide(1001)
		require.Equal(t, alloc.Response{ID: 2, Type: alloc.ResponseDeny, Note: "unsatisfiable request for 3 whole nodes of 1 slot of 1 core: room for 2"}, out[0])
		require.NoError(t, s.Check())
		require.NoError(t, s.Handle(alloc.Free{ID: 1, R: r, Final: true}))
		require.Equal(t, []jobid.ID{3}, starts(t, s, 1002))
	}
}

// A job that waits for a property is denied when the last node loses it.
func TestAPropertyGoesAwayWhileAJobWaits(t *testing.T) {
	s := begun(t, sched.Config{}, machine(t, 1, 1))
	all := map[string]*idset.Set{"p": idset.Of(0)}
	require.NoError(t, s.Acquire(pool.Acquire{Change: pool.Change{AddProperties: all}}))
	require.NoError(t, s.Handle(ask(t, 1, 1)))
	q := ask(t, 2, 1)
	q.Jobspec = specOf(t, jobspec.Job{Nodes: 1, Exclusive: true}, `{"properties":["p"]}`)
	require.NoError(t, s.Handle(q))
	require.Equal(t, []jobid.ID{1}, starts(t, s, 1000))
	require.NoError(t, s.Acquire(pool.Acquire{Change: pool.Change{RemoveProperties: all}}))
	out := s.Decide(1001)
	require.Len(t, out, 1)
	require.Equal(t, []any{jobid.ID(2), alloc.ResponseDeny}, []any{out[0].ID, out[0].Type})
	require.NoError(t, s.Handle(ask(t, 3, 1)))
	q.ID = 4
	q.Jobspec = specOf(t, jobspec.Job{Nodes: 1, Exclusive: true}, `{"properties":["^p"]}`)
	require.NoError(t, s.Handle(q))
	require.NoError(t, s.Acquire(pool.Acquire{Change: pool.Change{AddProperties: all}}))
	require.Equal(t, jobid.ID(4), s.Decide(1002)[0].ID, "nor may the last node get what a job cannot have")
	require.Equal(t, 1, s.Len())
}

// What could start only when all expires has no earliest time, and delays none.
func TestTheInventoryExpires(t *testing.T) {
	nodes, err := machine(t, 2, 1).WithTimes(0, 1030)
	require.NoError(t, err)
	s := begun(t, sched.Config{Policy: sched.EASY{}}, nodes)
	for id, n := range []int64{1, 2, 1} {
		require.NoError(t, s.Handle(ask(t, jobid.ID(id+1), n)))
	}
	require.Equal(t, []jobid.ID{1, 3}, starts(t, s, 1000))
	require.NoError(t, s.Handle(alloc.Free{ID: 1, Final: true}))
	require.NoError(t, s.Handle(alloc.Free{ID: 3, Final: true}))
	require.Empty(t, starts(t, s, 1030))
	forever := eventlog.Timestamp(0)
	require.NoError(t, s.Acquire(pool.Acquire{Change: pool.Change{Expiration: &forever}}))
	require.Equal(t, []jobid.ID{2}, starts(t, s, 1040))
}

// A job past its expiration is taken to end now, so the head may need less of what is idle
// as time passes, though nothing is freed.
func TestAReservationThatIsOverIsMadeAnew(t *testing.T) {
	for _, policy := range []sched.Policy{sched.EASY{}, sched.Conservative{}} {
		s := begun(t, sched.Config{Policy: policy}, machine(t, 5, 1))
		take := func(id jobid.ID, nodes int64, takes time.Duration) {
			q := ask(t, id, nodes)
			q.Jobspec = specOf(t, jobspec.Job{Nodes: nodes, Exclusive: true, Duration: takes})
			require.NoError(t, s.Handle(q))
		}
		take(1, 1, 10*time.Second)
		take(2, 1, 20*time.Second)
		take(3, 1, 30*time.Second)
		take(4, 3, time.Hour)
		require.Equal(t, []jobid.ID{1, 2, 3}, starts(t, s, 1000), "4 is to start at 1010, on two nodes that are idle and that of 1")
		take(5, 1, time.Hour)
		take(6, 1, time.Hour)
		require.Empty(t, starts(t, s, 1005), "6 is to start at 1030")
		take(7, 1, 2*time.Hour)
		require.Equal(t, []jobid.ID{5}, starts(t, s, 1025), "1 and 2 should have ended")
	}
}

// A head that needs what is down delays none, and only the first four look for one that can
// start.
func TestFourHeadsAreAsked(t *testing.T) {
	for hopeless, want := range map[jobid.ID][]jobid.ID{3: nil, 4: {9}} {
		s := begun(t, sched.Config{Policy: sched.EASY{}}, machine(t, 4, 1))
		take := func(id jobid.ID, nodes int64, takes time.Duration, ranks string) {
			q := ask(t, id, nodes)
			q.Jobspec = specOf(t, jobspec.Job{Nodes: nodes, Exclusive: true, Duration: takes}, `{"ranks":["`+ranks+`"]}`)
			require.NoError(t, s.Handle(q))
		}
		require.NoError(t, s.Drain(idset.Of(3)))
		take(1, 1, time.Minute, "0")
		require.Equal(t, []jobid.ID{1}, starts(t, s, 1000))
		for id := range hopeless {
			take(2+id, 1, time.Minute, "3")
		}
		take(8, 2, time.Minute, "0-1") // it can start when 1 ends
		take(9, 2, time.Hour, "1-2")
		require.Equal(t, want, starts(t, s, 1000), "after %d", hopeless)
	}
}

// What a message is made of may be used again.
func TestAMessageIsNotKept(t *testing.T) {
	s := begun(t, sched.Config{}, machine(t, 2, 1))
	for id := jobid.ID(1); id <= 2; id++ {
		q := ask(t, id, 1)
		require.NoError(t, s.Handle(q))
		clear(q.Jobspec)
	}
	p := alloc.Prioritize{Jobs: []alloc.Priority{{ID: 2, Priority: 20}}}
	require.NoError(t, s.Handle(p))
	clear(p.Jobs)
	require.Equal(t, []jobid.ID{2, 1}, starts(t, s, 1))
}

// The time does not go back, and what is no time is none.
func TestTheTimeOfADecision(t *testing.T) {
	nodes := machine(t, 1, 1)
	for _, now := range []eventlog.Timestamp{5, -1, eventlog.Timestamp(math.NaN()), eventlog.Timestamp(math.Inf(1)), 1000} {
		s := begun(t, sched.Config{}, nodes)
		s.Decide(1000)
		require.NoError(t, s.Handle(ask(t, 1, 1)))
		out := s.Decide(now)
		require.Len(t, out, 1)
		require.Equal(t, eventlog.Timestamp(1000), out[0].R.Start())
	}
}

// Numbers that mean nothing are as documented.
func TestLimitsOfAConfig(t *testing.T) {
	for limit, want := range map[int]int{-1: 0, 0: 0, 7: 7, math.MaxInt: math.MaxInt32} {
		s := sched.New(sched.Config{Limit: limit, MaxJobs: -1})
		require.NoError(t, s.Acquire(pool.Acquire{Resources: machine(t, 1, 1), Change: pool.Change{Up: idset.Of(0)}}))
		r, err := s.EndHello()
		require.NoError(t, err)
		require.Equal(t, want, r.Limit)
		require.NoError(t, s.Handle(ask(t, 1, 1)))
		require.Equal(t, []jobid.ID{1}, starts(t, s, 1))
	}
}

// The responses of a decision are the caller's.
func TestResponsesAreKept(t *testing.T) {
	s := begun(t, sched.Config{}, machine(t, 2, 1))
	require.NoError(t, s.Handle(ask(t, 1, 1)))
	first := s.Decide(1)
	require.NoError(t, s.Handle(ask(t, 2, 1)))
	s.Decide(1)
	require.Equal(t, jobid.ID(1), first[0].ID)
}

// An allocation has the key scheduling of the inventory, and is known by it in a hello.
func TestTheSchedulingOfTheInventory(t *testing.T) {
	nodes, err := rset.Parse([]byte(`{"version":1,"execution":{"R_lite":[{"rank":"0-1","children":{"core":"0"}}]},"scheduling":{"a":1}}`))
	require.NoError(t, err)
	s := begun(t, sched.Config{}, nodes)
	require.NoError(t, s.Handle(ask(t, 1, 1)))
	r := s.Decide(1)[0].R
	require.Equal(t, `{"a":1}`, string(r.Scheduling()))
	require.NoError(t, s.Handle(alloc.HelloResponse{JobInfo: alloc.JobInfo{ID: 1}, R: r}))
	_, err = s.EndHello()
	require.NoError(t, err)
	require.NoError(t, s.Handle(ask(t, 2, 2)))
	require.Empty(t, starts(t, s, 2))
	require.NoError(t, s.Handle(alloc.Free{ID: 1, R: r, Final: true}))
	require.Equal(t, []jobid.ID{2}, starts(t, s, 3))
}

// The key is not copied for each job, and leaves room for what a job has beside it.
func TestALargeSchedulingOfTheInventory(t *testing.T) {
	inventory := func(key int) pool.Acquire {
		r, err := rset.Parse([]byte(`{"version":1,"execution":{"R_lite":[{"rank":"0-15","children":{"core":"0"}}]},"scheduling":"` + strings.Repeat("x", key-2) + `"}`))
		require.NoError(t, err)
		return pool.Acquire{Resources: r, Change: pool.Change{Up: r.Ranks()}}
	}
	const most = rset.MaxBytes / 2
	s := sched.New(sched.Config{})
	require.ErrorIs(t, s.Acquire(inventory(most+1)), sched.ErrLimit)
	require.NoError(t, s.Acquire(inventory(most)))
	_, err := s.EndHello()
	require.NoError(t, err)
	for id := range jobid.ID(16) {
		require.NoError(t, s.Handle(ask(t, id+1, 1)))
	}
	race.Skip(t)
	memory, _ := bomb.Cost(func() { require.Len(t, starts(t, s, 1), 16) })
	require.Less(t, memory, uint64(most))
	_, err = rset.Parse(s.Held(1).AppendJSON(nil))
	require.NoError(t, err)
}

// A pointer to a policy is the policy: it knows what is as it was.
func TestAPolicyMayBeAPointer(t *testing.T) {
	for _, policy := range []sched.Policy{&sched.FIFO{}, &sched.EASY{}, &sched.Conservative{}} {
		s := begun(t, sched.Config{Policy: policy}, machine(t, 2, 1))
		require.True(t, s.Follows())
		require.NoError(t, s.Handle(ask(t, 1, 2)))
		require.Equal(t, []jobid.ID{1}, starts(t, s, 1))
	}
	require.False(t, begun(t, sched.Config{Policy: new(keeps)}, machine(t, 2, 1)).Follows())
}

// A policy decides by its Pass. The Scheduler refuses to be called meanwhile.
func TestAPolicyThatCallsItsScheduler(t *testing.T) {
	var s *sched.Scheduler
	for name, call := range map[string]func(){
		"Acquire": func() { _ = s.Acquire(pool.Acquire{}) }, "Handle": func() { _ = s.Handle(alloc.Cancel{ID: 1}) },
		"EndHello": func() { _, _ = s.EndHello() }, "Decide": func() { s.Decide(1) },
		"Hello": func() { _ = s.Hello(alloc.Announcement{}) }, "Missed": func() { s.Missed(alloc.Line{Topic: alloc.TopicHello}) },
	} {
		s = begun(t, sched.Config{Policy: code(func(*sched.Pass) { call() })}, machine(t, 1, 1))
		require.NoError(t, s.Handle(ask(t, 1, 1)))
		require.PanicsWithValue(t, "sched: a policy called its Scheduler", func() { s.Decide(1) }, name)
	}
}

// A policy has a Pass for as long as it schedules.
func TestAPassThatIsKept(t *testing.T) {
	k := new(keeps)
	s := begun(t, sched.Config{Policy: k}, machine(t, 1, 1))
	require.NoError(t, s.Handle(ask(t, 1, 1)))
	s.Decide(1)
	for _, use := range []func(){
		func() { k.p.Now() }, func() { k.p.Pool() }, func() { k.p.Start(1) }, func() { k.p.Reserve(1) },
		func() {
			for range k.p.Running() {
			}
		},
		func() { sched.FIFO{}.Schedule(k.p) }, func() { sched.EASY{}.Schedule(&sched.Pass{}) },
		func() {
			for range k.p.Jobs() {
			}
		},
	} {
		require.PanicsWithValue(t, "sched: a Pass was used outside of Policy.Schedule", use)
	}
}

type keeps struct{ p *sched.Pass }

func (k *keeps) Schedule(p *sched.Pass) {
	k.p = p
	if p.Start(7) {
		panic("an unknown job starts")
	}
	if _, ok := p.Reserve(7); ok {
		panic("an unknown job has a reservation")
	}
}

// EASY looks as far as it is told.
func TestTheDepthOfEASY(t *testing.T) {
	for depth, want := range map[int][]jobid.ID{-1: {1, 5}, 0: {1, 5}, 1: {1}, 2: {1}, 3: {1, 5}} {
		s := begun(t, sched.Config{Policy: sched.EASY{Depth: depth}}, machine(t, 4, 1))
		for id, nodes := range []int64{3, 4, 2, 2, 1} {
			require.NoError(t, s.Handle(ask(t, jobid.ID(id+1), nodes)))
		}
		require.Equal(t, want, starts(t, s, 1000), "depth %d", depth)
	}
	for depth, want := range map[int][]jobid.ID{0: {1, 5}, 3: {1}, 4: {1, 5}} {
		s := begun(t, sched.Config{Policy: sched.Conservative{Depth: depth}}, machine(t, 4, 1))
		for id, nodes := range []int64{3, 4, 2, 2, 1} {
			require.NoError(t, s.Handle(ask(t, jobid.ID(id+1), nodes)))
		}
		require.Equal(t, want, starts(t, s, 1000), "depth %d", depth)
	}
}

// At most eight jobs know their start.
func TestAForecastIsForTheFirst(t *testing.T) {
	s := begun(t, sched.Config{Annotate: true, Forecast: 5 * time.Second, Limit: 3}, machine(t, 1, 1))
	require.NoError(t, s.Handle(ask(t, 1, 1)))
	s.Decide(1000)
	for id := jobid.ID(2); id < 300; id++ {
		require.NoError(t, s.Handle(ask(t, id, 1)))
	}
	require.Empty(t, s.Decide(1001), "the first forecast was made for nobody")
	at, ok := s.Deadline()
	require.True(t, ok)
	require.Equal(t, eventlog.Timestamp(1005), at)
	told := s.Decide(at)
	require.Len(t, told, 8)
	for i, a := range told {
		require.Equal(t, fmt.Sprintf(`{"sched":{"reason_pending":"insufficient resources","t_estimate":%d.0}}`, 1060+60*i), string(a.Annotations))
	}
	_, ok = s.Deadline()
	require.False(t, ok)
	require.NoError(t, s.Handle(ask(t, 300, 1)))
	s.Decide(1011)
	_, ok = s.Deadline()
	require.False(t, ok, "it is behind those that were told")
	q := ask(t, 301, 1)
	q.Priority = 17
	require.NoError(t, s.Handle(q))
	require.Len(t, s.Decide(1012), 9, "one is told that it is no longer known")
}

// told returns the jobs that know their start, after the responses.
func told(t *testing.T, known map[jobid.ID]string, out []alloc.Response) {
	for _, r := range out {
		switch {
		case r.Type != alloc.ResponseAnnotate || strings.Contains(string(r.Annotations), "null"):
			delete(known, r.ID)
		default:
			known[r.ID] = string(r.Annotations)
		}
	}
}

// No more than eight jobs know their start at a time, and what they know is true, also if
// they come one by one.
func TestAnEstimateIsForTheFirst(t *testing.T) {
	s := begun(t, sched.Config{Policy: sched.Conservative{}, Annotate: true}, machine(t, 4, 1))
	known := make(map[jobid.ID]string)
	require.NoError(t, s.Handle(ask(t, 1, 3)))
	told(t, known, s.Decide(1000))
	for id := jobid.ID(2); id < 30; id++ {
		nodes := int64(1)
		if id == 2 {
			nodes = 4
		}
		q := ask(t, id, nodes)
		q.Jobspec = specOf(t, jobspec.Job{Nodes: nodes, Exclusive: true, Duration: time.Hour})
		require.NoError(t, s.Handle(q))
		told(t, known, s.Decide(1000+eventlog.Timestamp(id)))
		require.LessOrEqual(t, len(known), 8)
	}
	require.Len(t, known, 8)
	require.NoError(t, s.Handle(alloc.Expiration{ID: 1, Expiration: 2000}))
	told(t, known, s.Decide(1100))
	require.Len(t, known, 8)
	require.Contains(t, known[2], `"t_estimate":2000.0`)
	require.Contains(t, known[3], `"t_estimate":5600.0`)
	for range 2 {
		require.NoError(t, s.Handle(alloc.Cancel{ID: 29}))
		require.NoError(t, s.Handle(alloc.Expiration{ID: 1, Expiration: 0}))
		told(t, known, s.Decide(1101))
		require.NotContains(t, known, jobid.ID(2), "no time is known")
		require.LessOrEqual(t, len(known), 8)
	}
}

// A policy is a piece of code.
type code func(p *sched.Pass)

func (c code) Schedule(p *sched.Pass) { c(p) }

// A policy sees whose jobs run, those of the hello too.
func TestAPolicyWithALimitForEachUser(t *testing.T) {
	nodes := machine(t, 8, 1)
	s := sched.New(sched.Config{Policy: code(func(p *sched.Pass) {
		runs := make(map[uint32]int)
		for j := range p.Running() {
			runs[j.UserID]++
		}
		for j := range p.Jobs() {
			if runs[j.UserID] < 2 && p.Start(j.ID) {
				runs[j.UserID]++
			}
		}
	})})
	require.NoError(t, s.Acquire(pool.Acquire{Resources: nodes, Change: pool.Change{Up: nodes.Ranks()}}))
	h := holder(t, 9, nodes, 7)
	h.UserID = 1
	require.NoError(t, s.Handle(h))
	_, err := s.EndHello()
	require.NoError(t, err)
	for id, user := range []uint32{1, 1, 2, 2, 2} {
		q := ask(t, jobid.ID(id+1), 1)
		q.UserID = user
		require.NoError(t, s.Handle(q))
	}
	require.Equal(t, []jobid.ID{1, 3, 4}, starts(t, s, 1000))
	require.NoError(t, s.Handle(alloc.Free{ID: 9, Final: true}))
	require.Equal(t, []jobid.ID{2}, starts(t, s, 1001))
}

// A policy that holds back a job that fits is called again at an Acquire, and not by time.
func TestAPolicyWithATimer(t *testing.T) {
	s := begun(t, sched.Config{Policy: code(func(p *sched.Pass) {
		for j := range p.Jobs() {
			if p.Now() >= j.Submit+60 {
				p.Start(j.ID)
			}
		}
	})}, machine(t, 1, 1))
	q := ask(t, 1, 1)
	q.Submit = 1000
	require.NoError(t, s.Handle(q))
	require.Empty(t, starts(t, s, 1000))
	require.Empty(t, starts(t, s, 1060))
	require.NoError(t, s.Acquire(pool.Acquire{}))
	require.Equal(t, []jobid.ID{1}, starts(t, s, 1060))
}

// A job is not before its own reservation, nor before one that is over.
func TestAJobStartsBeforeAReservationOfAnother(t *testing.T) {
	policy := code(func(p *sched.Pass) {
		for id := range jobid.ID(3) {
			p.Reserve(id + 1)
		}
		for id := range jobid.ID(2) {
			require.True(t, p.Start(id+1))
			require.False(t, p.Start(id+1))
		}
	})
	s := begun(t, sched.Config{Policy: policy, Annotate: true}, machine(t, 4, 1))
	for id := jobid.ID(1); id <= 3; id++ {
		require.NoError(t, s.Handle(ask(t, id, 1)))
	}
	behind := map[jobid.ID]string{1: jobid.ID(2).String(), 2: jobid.ID(3).String()}
	for _, r := range s.Decide(1000) {
		if r.Type == alloc.ResponseSuccess {
			require.Contains(t, string(r.Annotations), `"backfill":"`+behind[r.ID]+`"`)
		}
	}
}

// A reservation lasts until the next Schedule, even for the first job.
func TestAReservationEndsWithThePass(t *testing.T) {
	s := begun(t, sched.Config{Policy: code(func(p *sched.Pass) {
		if !p.Start(2) {
			p.Reserve(1)
		}
	})}, machine(t, 1, 1))
	require.NoError(t, s.Handle(alloc.Request{JobInfo: alloc.JobInfo{ID: 1, Priority: 16}, Jobspec: specOf(t, jobspec.Job{Slots: 1, Cores: 1})}))
	require.Empty(t, starts(t, s, 1000))
	require.NoError(t, s.Handle(ask(t, 2, 1)))
	require.Equal(t, []jobid.ID{2}, starts(t, s, 1000))
}

// After a policy has panicked, the next decision makes up for it.
func TestAPolicyThatPanics(t *testing.T) {
	var kept *sched.Pass
	fails := true
	s := begun(t, sched.Config{Policy: code(func(p *sched.Pass) {
		kept = p
		for j := range p.Jobs() {
			p.Start(j.ID)
			if fails {
				panic("oh")
			}
		}
	})}, machine(t, 4, 1))
	for id := jobid.ID(1); id <= 3; id++ {
		require.NoError(t, s.Handle(ask(t, id, 1)))
	}
	require.PanicsWithValue(t, "oh", func() { s.Decide(1) })
	require.Panics(t, func() { kept.Now() }, "the pass is over")
	require.NoError(t, s.Check())
	fails = false
	require.Equal(t, []jobid.ID{1, 2, 3}, starts(t, s, 1))
}

// At the end of time jobs start too.
func TestTheEndOfTime(t *testing.T) {
	for _, now := range []eventlog.Timestamp{1e15, 1e300, math.MaxFloat64} {
		for _, policy := range []sched.Policy{sched.FIFO{}, sched.EASY{}, sched.Conservative{}} {
			s := begun(t, sched.Config{Policy: policy, Annotate: true}, machine(t, 1, 1))
			require.NoError(t, s.Handle(ask(t, 1, 1)))
			require.NoError(t, s.Handle(ask(t, 2, 1)))
			require.Equal(t, []jobid.ID{1}, starts(t, s, now))
			require.NoError(t, s.Handle(alloc.Free{ID: 1, Final: true}))
			require.Equal(t, []jobid.ID{2}, starts(t, s, now))
		}
	}
}

// What another hello tells changes when the head is to start.
func TestAHelloThatPutsOffTheHead(t *testing.T) {
	nodes := machine(t, 4, 1)
	s := begun(t, sched.Config{Policy: sched.EASY{}}, nodes)
	require.NoError(t, s.Handle(ask(t, 1, 1)))
	require.NoError(t, s.Handle(ask(t, 2, 4)))
	require.Equal(t, []jobid.ID{1}, starts(t, s, 1000), "2 is to start at 1060")
	h := holder(t, 9, nodes, 3)
	r, err := h.R.WithTimes(1, 9000)
	require.NoError(t, err)
	h.R = r
	require.NoError(t, s.Handle(h))
	_, err = s.EndHello()
	require.NoError(t, err)
	q := ask(t, 3, 1)
	q.Jobspec = specOf(t, jobspec.Job{Nodes: 1, Exclusive: true, Duration: time.Hour})
	require.NoError(t, s.Handle(q))
	require.Equal(t, []jobid.ID{3}, starts(t, s, 1001), "2 is to start at 9000")
}

// Jobs that come together start in the order of the queue, not in that of their requests.
func TestNewJobsStartInOrder(t *testing.T) {
	s := begun(t, sched.Config{Policy: sched.EASY{}}, machine(t, 3, 1))
	require.NoError(t, s.Handle(ask(t, 1, 2)))
	require.NoError(t, s.Handle(ask(t, 2, 3)))
	require.Equal(t, []jobid.ID{1}, starts(t, s, 1000))
	for _, id := range []jobid.ID{4, 3} {
		q := ask(t, id, 1)
		q.Jobspec = specOf(t, jobspec.Job{Nodes: 1, Exclusive: true, Duration: 30 * time.Second})
		require.NoError(t, s.Handle(q))
	}
	require.Equal(t, []jobid.ID{3}, starts(t, s, 1001))
}

// What responses do not say is told in words: of a job that only waits for others, no more
// than that it has no earliest time.
func TestWhatIsToldInWords(t *testing.T) {
	nodes, err := machine(t, 2, 1).WithTimes(0, 1030)
	require.NoError(t, err)
	var told []string
	s := sched.New(sched.Config{Policy: sched.EASY{}, Logf: func(format string, args ...any) { told = append(told, fmt.Sprintf(format, args...)) }})
	says := func(now eventlog.Timestamp, err error, want ...string) {
		t.Helper()
		require.NoError(t, err)
		s.Decide(now)
		require.Equal(t, want, told)
		told = nil
	}
	says(1000, s.Acquire(pool.Acquire{Resources: nodes, Change: pool.Change{Up: idset.Of(0)}}), "2 cores; ranks up: 0, down: none, away: none")
	says(1000, s.Handle(holder(t, 1, nodes, 1)), "job 1 (ƒ2) holds rank1/core0")
	_, err = s.EndHello()
	says(1000, err, "ready; 1 job with resources")
	says(1000, s.Handle(ask(t, 2, 1)), "job 2 (ƒ3) wants 1 whole node of 1 slot of 1 core")
	never := "job 3 (ƒ4) has no earliest time: pool: resources are busy"
	says(1000, s.Handle(ask(t, 3, 1)), "job 3 (ƒ4) wants 1 whole node of 1 slot of 1 core", never)
	says(1000, s.Handle(alloc.Cancel{ID: 2}), "cancel of job 2 (ƒ3) ignored: it does not wait")
	says(1000, s.Handle(alloc.Expiration{ID: 1, Expiration: 2000}), "job 1 (ƒ2) expires at 2000.0, where 0 is never", never)
	says(1000, s.Handle(alloc.Free{ID: 1, Final: true}), "job 1 (ƒ2) done; the fragments left out rank1/core0, which is free now", never)
	over := ": pool: the pool has expired at 1030.0"
	waits, noTime := "job 3 (ƒ4) has to wait"+over, "job 3 (ƒ4) has no earliest time"+over
	says(1030, s.Handle(alloc.Free{ID: 2, R: s.Held(2)}), "job 2 (ƒ3) gave back rank0/core0", waits, noTime)
	says(1030, s.Handle(alloc.Free{ID: 2, Final: true}), "job 2 (ƒ3) done", waits, noTime)
	forever := eventlog.Timestamp(0)
	says(1030, s.Acquire(pool.Acquire{Change: pool.Change{Expiration: &forever, Down: idset.Of(0), Shrink: idset.Of(1)}}),
		"1 cores; ranks up: none, down: 0, away: 1", "all expires at 0.0, where 0 is never", never)
}

// A jobspec is parsed once, and what is known of jobspecs is limited.
func TestWhatIsKnownOfJobspecs(t *testing.T) {
	race.Skip(t)
	s := begun(t, sched.Config{}, machine(t, 1, 1))
	long := strings.Repeat(" ", 200_000)
	for i := range 30 {
		var m alloc.Message = alloc.Feasibility{Jobspec: append(ask(t, 1, 1).Jobspec, long[i:]...)}
		require.NoError(t, s.Handle(m))
		require.Equal(t, 1+i%20, s.Known())
		require.Zero(t, testing.AllocsPerRun(1, func() { _ = s.Handle(m) }))
	}
}

// When a job that waits is canceled, the one behind it may start at once.
func TestACancelLetsTheNextJobStart(t *testing.T) {
	for _, policy := range []sched.Policy{sched.FIFO{}, sched.EASY{}, sched.Conservative{}} {
		s := begun(t, sched.Config{Policy: policy}, machine(t, 4, 1))
		require.NoError(t, s.Handle(ask(t, 1, 3)))
		require.NoError(t, s.Handle(ask(t, 2, 4)))
		q := ask(t, 3, 1)
		q.Jobspec = specOf(t, jobspec.Job{Nodes: 1, Exclusive: true, Duration: time.Hour})
		require.NoError(t, s.Handle(q))
		require.Equal(t, []jobid.ID{1}, starts(t, s, 1000), "3 would delay 2")
		require.NoError(t, s.Handle(alloc.Cancel{ID: 2}))
		require.Equal(t, []jobid.ID{3}, starts(t, s, 1001))
	}
}
