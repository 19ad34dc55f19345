package sched_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
	"github.com/joblife/joblife/rset/pool"
	"github.com/joblife/joblife/rset/sched"
)

// A session that has ended says nothing more, and the next one has the inventory and the jobs
// of the hello.
func TestTheNextSessionHasTheInventoryAndTheJobsOfTheHello(t *testing.T) {
	nodes := machine(t, 4, 2)
	nodes, err := rset.Parse(append(nodes.AppendJSON(nil)[:len(nodes.AppendJSON(nil))-1], `,"scheduling":{"graph":1}}`...))
	require.NoError(t, err)
	s := begun(t, sched.Config{Policy: sched.EASY{}}, nodes)
	require.NoError(t, s.Handle(ask(t, 1, 1)))
	require.Equal(t, []jobid.ID{1}, starts(t, s, 1000))
	require.NoError(t, s.Handle(ask(t, 2, 4)))
	require.NoError(t, s.Handle(ask(t, 3, 1)))

	require.True(t, s.End())
	require.False(t, s.End(), "it has ended")
	require.False(t, s.Ready())
	require.NoError(t, s.Handle(ask(t, 4, 1)), "a message that was on its way")
	require.NoError(t, s.Handle(alloc.Free{ID: 9, Final: true}), "one that would be wrong")
	require.NoError(t, s.Acquire(pool.Acquire{Change: pool.Change{Down: idset.Of(2), Shrink: idset.Of(3)}}), "job 2 has no hope now")
	require.Empty(t, s.Decide(1001))

	next, err := s.Next(alloc.Announcement{Responses: []alloc.HelloResponse{holder(t, 5, nodes, 0)}})
	require.NoError(t, err)
	require.True(t, next.Ready())
	require.Equal(t, 0, next.Len(), "job 3 asks again, if it still waits")
	require.Equal(t, "1", next.Pool().Available().Ranks().String())
	require.Equal(t, "0-2", next.Pool().Inventory().Ranks().String())
	require.NoError(t, next.Handle(ask(t, 6, 1)))
	list := next.Decide(1) // before the time of the last session
	require.Len(t, list, 1)
	require.GreaterOrEqual(t, float64(list[0].R.Start()), 1000.0, "time does not step back")
	require.Equal(t, json.RawMessage(`{"graph":1}`), list[0].R.Scheduling())
	require.NoError(t, next.Check())
}

func TestAHelloThatIsWrongStartsNothing(t *testing.T) {
	_, err := sched.New(sched.Config{}).Next(alloc.Announcement{})
	require.ErrorIs(t, err, sched.ErrNotReady, "there is no inventory")
	s, err := begun(t, sched.Config{}, machine(t, 2, 1)).Next(alloc.Announcement{Responses: []alloc.HelloResponse{{JobInfo: alloc.JobInfo{ID: 1}}}})
	require.ErrorIs(t, err, sched.ErrNoR)
	require.ErrorIs(t, err, sched.ErrNotReady)
	require.False(t, s.Ready())
	require.ErrorIs(t, s.Handle(ask(t, 2, 1)), sched.ErrNotReady)
	require.Empty(t, s.Decide(1000))
	s, err = s.Next(alloc.Announcement{})
	require.NoError(t, err)
	require.NoError(t, s.Handle(ask(t, 2, 1)))
	require.Equal(t, []jobid.ID{2}, starts(t, s, 1000))
}

// A hello that was on its way when the session ended does not begin it again.
func TestASessionThatHasEndedIsNotReady(t *testing.T) {
	s := begun(t, sched.Config{}, machine(t, 2, 1))
	s.End()
	_, err := s.EndHello()
	require.ErrorIs(t, err, sched.ErrNotReady)
	require.ErrorContains(t, err, "the session is over: ")
	require.False(t, s.Ready())
}
