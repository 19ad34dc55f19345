package exec_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/bomb"
	"github.com/joblife/joblife/internal/race"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/perilog/exec"
)

// After a restart each of many nodes gets an action again, by a launch of its own, which does not
// look at each other one.
func TestManyNodesThatLackAnAction(t *testing.T) {
	requireLinear(t, 500, func(n int) {
		x := new(exec.Executor)
		require.NoError(t, x.Recover(1, perilog.Unresolved{Action: epilog, Reason: perilog.ReasonLost, Ranks: idset.Range(0, uint32(n-1)), Attempt: 1}))
		for rank := range uint32(n) {
			_, err := x.Hello(rank, nil)
			require.NoError(t, err)
			require.Len(t, x.Take(1).Missing, 1)
			require.NoError(t, x.Launch(1, perilog.Launch{Action: epilog, Attempt: 2, Ranks: idset.Of(rank), Command: []string{"x"}}))
			require.Len(t, x.Take(1).Commands, 1)
		}
	})
}

// A hello looks at each of the node's tasks once.
func TestAHelloOfManyTasks(t *testing.T) {
	requireLinear(t, 2000, func(n int) {
		x, r := new(exec.Executor), onRanks(t, "0", 0)
		var list []exec.TaskStatus
		for i := range n {
			require.NoError(t, x.Handle(exec.Start{ID: jobid.ID(i), R: r, Reattach: true, Started: true}))
			list = append(list, exec.TaskStatus{Task: exec.Task{Job: jobid.ID(i)}, State: exec.TaskReleased})
		}
		_, err := x.Hello(0, list)
		require.NoError(t, err)
	})
}

// A signal, and what a node says of a task, look at no other job of the node.
func TestManyJobsOnOneNode(t *testing.T) {
	requireLinear(t, 1000, func(n int) {
		x := new(exec.Executor)
		s, err := x.Hello(0, nil)
		require.NoError(t, err)
		for id := range jobid.ID(n) {
			require.NoError(t, x.Launch(id, perilog.Launch{Action: epilog, Attempt: 1, Ranks: idset.Of(0), Command: []string{"x"}}))
		}
		for id := range jobid.ID(n) {
			x.Signal(id, perilog.Signal{Action: epilog, Attempt: 1, Ranks: idset.Of(0), Signal: 15})
			require.NoError(t, x.Update(s, exec.TaskStatus{Task: exec.Task{Job: id, Action: epilog, Attempt: 1}, State: exec.TaskReleased}))
		}
		require.Len(t, x.Take(1).Reports, n)
	})
}

// A signal to an action that each node got by a launch of its own looks at each launch a few times.
func TestASignalToManyLaunches(t *testing.T) {
	requireLinear(t, 300, func(n int) {
		x := new(exec.Executor)
		for rank := range uint32(n) {
			require.NoError(t, x.Launch(1, perilog.Launch{Action: epilog, Attempt: 1, Ranks: idset.Of(rank), Command: []string{"x"}}))
		}
		x.Signal(1, perilog.Signal{Action: epilog, Attempt: 1, Ranks: idset.Range(0, uint32(n-1)), Signal: 15})
	})
}

// requireLinear has 16 times as much take far less than 16² times as long.
func requireLinear(t *testing.T, n int, work func(n int)) {
	t.Helper()
	race.Skip(t)
	_, few := bomb.Cost(func() { work(n) })
	_, many := bomb.Cost(func() { work(16 * n) })
	require.Less(t, many, 64*max(few, time.Millisecond))
}

// Where an action did not start before its job was closed, it does not start at all, whether the
// node was sent it or not.
func TestAnActionOfAClosedJobDoesNotStart(t *testing.T) {
	for _, sent := range []bool{false, true} {
		b := newBench(t)
		if !sent {
			b.Close(b.sessions[0])
		}
		require.NoError(t, b.Launch(1, perilog.Launch{Action: epilog, Attempt: 1, Ranks: idset.Of(0), Command: []string{"x"}}))
		b.take()
		b.Close(b.sessions[0])
		b.Forget(1, true)
		b.says("")
		b.sessions[0] = b.hello(0)
		b.says("forget ƒ2 epilog e 1 on 0")
	}
}

// What is no time, or never comes, is no time at which something is due.
func TestTakeAtNoTime(t *testing.T) {
	for _, now := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		b := newBench(t)
		b.start(exec.Start{R: onRanks(t, "0-1", 50)})
		require.NotContains(t, said(b.Take(eventlog.Timestamp(now))), "expired")
		require.Empty(t, b.Expiring(eventlog.Timestamp(now)), "as Take has it")
		require.NoError(t, b.Handle(exec.Expiration{ID: 1, Expiration: eventlog.Timestamp(now)}))
		_, ok := b.Deadline()
		require.False(t, ok, "a Take at that time would not move it on")
		require.NoError(t, b.Handle(exec.Expiration{ID: 1, Expiration: 50}))
		require.Contains(t, said(b.Take(60)), "expired")
		require.NoError(t, b.Handle(exec.Start{ID: 2, R: onRanks(t, "0", 55)}))
		require.Equal(t, []jobid.ID{2}, b.Expiring(eventlog.Timestamp(now)), "60 is the last time")
	}
}

// Housekeeping that failed before a restart, and still runs, ends before a later attempt begins,
// whatever attempt its node calls it. Nobody waits for its status.
func TestWhatFailedBeforeARestart(t *testing.T) {
	b := &bench{t: t, Executor: new(exec.Executor)}
	require.NoError(t, b.Recover(1, perilog.Unresolved{Action: perilog.Housekeeping(), Reason: perilog.ReasonHeld, Ranks: idset.Of(0)}))
	runs := func(n uint32, state exec.TaskState) exec.TaskStatus {
		return exec.TaskStatus{Task: exec.Task{Job: 1, Action: perilog.Housekeeping(), Attempt: n}, State: state}
	}
	launch := func(n uint32) {
		require.NoError(t, b.Launch(1, perilog.Launch{Action: perilog.Housekeeping(), Attempt: n, Ranks: idset.Of(0), Command: []string{"x"}}))
	}
	b.sessions[0] = b.hello(0, runs(9, exec.TaskRunning), runs(8, exec.TaskRunning))
	b.says("signal ƒ2 housekeeping housekeeping 9 on 0 15; signal ƒ2 housekeeping housekeeping 8 on 0 15")
	launch(2)
	b.says("signal ƒ2 housekeeping housekeeping 9 on 0 9") // a later one waits for one alone
	b.update(0, runs(9, exec.TaskReleased))
	b.says("forget ƒ2 housekeeping housekeeping 9 on 0; start ƒ2 housekeeping housekeeping 2 on 0")

	// The node may give its task the number that a later attempt gets.
	b = &bench{t: t, Executor: new(exec.Executor)}
	require.NoError(t, b.Recover(1, perilog.Unresolved{Action: perilog.Housekeeping(), Reason: perilog.ReasonHeld, Ranks: idset.Of(0)}))
	b.sessions[0] = b.hello(0, runs(2, exec.TaskRunning))
	b.says("signal ƒ2 housekeeping housekeeping 2 on 0 15")
	launch(2)
	b.says("signal ƒ2 housekeeping housekeeping 2 on 0 9")
	b.sessions[0] = b.hello(0, runs(2, exec.TaskRunning))
	b.says("signal ƒ2 housekeeping housekeeping 2 on 0 9")
	b.update(0, runs(2, exec.TaskReleased))
	b.says("forget ƒ2 housekeeping housekeeping 2 on 0; start ƒ2 housekeeping housekeeping 2 on 0")

	b = &bench{t: t, Executor: new(exec.Executor)}
	require.NoError(t, b.Recover(1, perilog.Unresolved{Action: perilog.Housekeeping(), Reason: perilog.ReasonHeld, Ranks: idset.Of(0)}))
	b.sessions[0] = b.hello(0, runs(1, exec.TaskRunning))
	b.says("signal ƒ2 housekeeping housekeeping 1 on 0 15")
	b.update(0, runs(1, exec.TaskReleased))
	b.says("")
	b.Forget(1, true)
	b.says("forget ƒ2 housekeeping housekeeping 1 on 0")
	b.sessions[0] = b.hello(0, runs(1, exec.TaskRunning)) // the node lies
	b.says("signal ƒ2 housekeeping housekeeping 1 on 0 15")
	launch(2)
	b.says("start ƒ2 housekeeping housekeeping 2 on 0") // nothing is known of the job any more
}

// A job that is being stopped expires no more.
func TestExpiring(t *testing.T) {
	b := newBench(t)
	b.start(exec.Start{R: onRanks(t, "0-1", 50)})
	b.says("start ƒ2 on 0-1")
	require.Empty(t, b.Expiring(49))
	require.Equal(t, []jobid.ID{1}, b.Expiring(50))
	b.now = 50
	b.says("signal ƒ2 on 0-1 15; exception timeout: resource allocation expired")
	require.Empty(t, b.Expiring(1000))
}
