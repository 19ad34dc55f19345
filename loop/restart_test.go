package loop_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/loop"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/perilog/exec"
)

var perRank = []perilog.ActionConfig{{Command: []string{"x"}, PerRank: true}}

func epilogOf(id jobid.ID, state exec.TaskState) exec.TaskStatus {
	key := jobstate.ActionKey{Kind: jobstate.ActionEpilog, Description: "job-manager.epilog"}
	return exec.TaskStatus{Task: exec.Task{Job: id, Action: key, Attempt: 1}, State: state}
}

// begins has a node say hello, and the Loop heed it.
func (s *site) begins(x *exec.Executor, rank uint32, has ...exec.TaskStatus) exec.Session {
	session, err := x.Hello(rank, has)
	require.NoError(s.t, err)
	require.NoError(s.t, s.l.Advance(start))
	return session
}

// says has a node say something, and the Loop heed it.
func (s *site) says(x *exec.Executor, session exec.Session, st exec.TaskStatus) {
	require.NoError(s.t, x.Update(session, st))
	require.NoError(s.t, s.l.Advance(start))
}

// puts puts inputs, and has the Loop heed them.
func (s *site) puts(list ...joblife.Input) {
	s.put(list...)
	require.NoError(s.t, s.l.Advance(start))
}

// A prolog that a restart has lost is ended if its job ends, also when a Shutdown was refused.
func TestARefusedShutdownChangesNothing(t *testing.T) {
	cfg, d := plain(), new(disk)
	cfg.Actions.Prologs = perRank
	s := executed(t, start, d, cfg, new(exec.Executor), ignore)
	s.puts(wholeNodes(t, 1, 1))
	s.puts(joblife.Raise{ID: 1, Type: "cancel"})
	x := new(exec.Executor)
	s = executed(t, start, d, cfg, x, ignore)
	s.puts(joblife.Shutdown{Deadline: -1})
	require.Len(t, s.refused, 1)
	s.begins(x, 0)
	require.Equal(t, jobstate.StateInactive, s.state(1))
}

// In a Shutdown that a hook has begun, an epilog that a restart has lost does not count as failed:
// its rank is held for the next life (I3).
func TestInAShutdownOfAHookALostEpilogWaits(t *testing.T) {
	cfg, d := plain(), new(disk)
	cfg.Actions.Epilogs = perRank
	cfg.Hooks = []joblife.Hooks{{Event: func(e *joblife.HookEvent) {
		if e.Entry.Name == "memo" {
			e.Post(joblife.Shutdown{})
		}
	}}}
	on := func(x *exec.Executor) *site {
		return scheduled(t, start, d, onMachine(t, 2), cfg, func(c *loop.Config) { c.Executor, c.Commands = x, ignore })
	}
	x := new(exec.Executor)
	s := on(x)
	s.puts(wholeNodes(t, 1, 1), wholeNodes(t, 2, 1))
	rank := make(map[jobid.ID]uint32)
	for h := range s.m.Holders() {
		rank[h.Job], _ = h.Ranks.Max()
	}
	one, two := s.begins(x, rank[1]), s.begins(x, rank[2])
	s.says(x, two, shellOf(2, exec.TaskRunning))
	require.NoError(t, x.Update(one, shellOf(1, exec.TaskReleased)))
	x.Close(one) // the start of its epilog does not arrive
	require.NoError(t, s.l.Advance(start))

	x = new(exec.Executor)
	s = on(x)
	s.begins(x, rank[2], shellOf(2, exec.TaskReleased)) // the epilog of job 2 runs
	s.puts(joblife.Memo{ID: 2, Values: []byte(`{"n":1}`)})
	s.begins(x, rank[1], shellOf(1, exec.TaskReleased))
	held := false
	for h := range s.m.Holders() {
		held = held || h.Job == 1
	}
	require.True(t, held, "its epilog ran nowhere")
}

// Nodes forget all of a job whose housekeeping is over, whether or not there is a log.
func TestNodesForgetHousekeeping(t *testing.T) {
	for _, volatile := range []bool{false, true} {
		cfg := plain()
		cfg.Volatile = volatile
		cfg.Actions.Housekeeping = &perilog.HousekeepingConfig{Command: []string{"x"}}
		x, did, s := new(exec.Executor), texts(nil), &site{t: t}
		var err error
		s.m, err = joblife.New(cfg)
		require.NoError(t, err)
		s.l, err = loop.New(s.m, loop.Config{
			Store: new(disk), Scheduler: onMachine(t, 1), Executor: x, Commands: did.add,
			Effects: func(*joblife.Manager, *joblife.Ready) {}, Refused: func(_ joblife.Input, err error) { t.Error(err) },
		})
		require.NoError(t, err)
		require.NoError(t, s.l.Advance(start))
		node := s.begins(x, 0)
		s.puts(wholeNodes(t, 1, 1))
		s.says(x, node, shellOf(1, exec.TaskReleased))
		s.says(x, node, exec.TaskStatus{Task: exec.Task{Job: 1, Action: perilog.Housekeeping(), Attempt: 1}, State: exec.TaskReleased})
		require.Contains(t, did, "forget ƒ2 housekeeping housekeeping 1 on 0")
	}
}

// Housekeeping that was given up, and still runs after a restart, ends before it runs again (I3).
func TestHousekeepingThatFailedEndsBeforeItRunsAgain(t *testing.T) {
	cfg, d := plain(), new(disk)
	cfg.Actions.Housekeeping = &perilog.HousekeepingConfig{Command: []string{"x"}, Timeout: fsd.Duration(time.Second), OnFailure: jobstate.OnFailureHold}
	attempt := func(n uint32, state exec.TaskState) exec.TaskStatus {
		return exec.TaskStatus{Task: exec.Task{Job: 1, Action: perilog.Housekeeping(), Attempt: n}, State: state}
	}
	x := new(exec.Executor)
	s := executed(t, start, d, cfg, x, ignore)
	node := s.begins(x, 0)
	s.puts(wholeNodes(t, 1, 1))
	s.says(x, node, shellOf(1, exec.TaskReleased))
	s.says(x, node, attempt(1, exec.TaskRunning))
	for i := range 4 { // no signal ends it
		require.NoError(t, s.l.Advance(start.Add(time.Duration(i)*time.Minute)))
	}

	for _, vanishes := range []bool{false, true} {
		did, now := texts(nil), start.Add(time.Hour)
		x = new(exec.Executor)
		s = executed(t, now, &disk{records: slices.Clone(d.records)}, cfg, x, did.add)
		heed := func() { require.NoError(t, s.l.Advance(now)) }
		heed()
		node, err := x.Hello(0, []exec.TaskStatus{shellOf(1, exec.TaskReleased), attempt(1, exec.TaskRunning)})
		require.NoError(t, err)
		heed()
		s.put(joblife.Rerun{Action: joblife.Action{Job: 1, Key: perilog.Housekeeping(), Ranks: idset.Of(0)}})
		heed()
		require.Equal(t, texts{"forget ƒ2 on 0", "signal ƒ2 housekeeping housekeeping 1 on 0", "signal ƒ2 housekeeping housekeeping 1 on 0"}, did)
		if did = nil; vanishes {
			_, err = x.Hello(0, nil)
		} else {
			err = x.Update(node, attempt(1, exec.TaskReleased))
		}
		require.NoError(t, err)
		heed()
		require.Equal(t, texts{"forget ƒ2 housekeeping housekeeping 1 on 0", "start ƒ2 housekeeping housekeeping 2 on 0"}, did)
		require.Empty(t, s.refused)
	}
}

// An operator ends a lost epilog of a node that is gone. If the node comes back with it, it is
// stopped.
func TestAnEpilogThatWasForcedIsStopped(t *testing.T) {
	cfg, d := plain(), new(disk)
	cfg.Actions.Epilogs = perRank
	x := new(exec.Executor)
	s := executed(t, start, d, cfg, x, ignore)
	node := s.begins(x, 0)
	s.puts(wholeNodes(t, 1, 1))
	s.says(x, node, shellOf(1, exec.TaskReleased))

	did := texts(nil)
	x = new(exec.Executor)
	s = executed(t, start, d, cfg, x, did.add)
	s.puts(joblife.ForceFinish{Action: joblife.Action{Job: 1, Key: epilogOf(1, exec.TaskRunning).Task.Action}, Status: 1, Operator: "me"})
	require.Equal(t, jobstate.StateInactive, s.state(1))
	node = s.begins(x, 0, shellOf(1, exec.TaskReleased), epilogOf(1, exec.TaskRunning))
	require.Contains(t, did, "signal ƒ2 epilog job-manager.epilog 1 on 0")
	s.says(x, node, epilogOf(1, exec.TaskReleased))
	require.Equal(t, "forget ƒ2 epilog job-manager.epilog 1 on 0", did[len(did)-1])
}

// A job that was extended in time goes on, also while the store takes its time.
func TestAnExtensionCountsBeforeItIsDurable(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context) {
		did, x, d := texts(nil), new(exec.Executor), new(disk)
		s := executed(t, time.Now(), d, plain(), x, did.add)
		stop := s.run(ctx)
		extend := func(by time.Duration) {
			_, err := s.l.Call(ctx, joblife.SetExpiration{ID: 1, Expiration: eventlog.FromTime(time.Now().Add(by))})
			require.NoError(t, err)
		}
		var node exec.Session
		s.hears(func(x *exec.Executor) (err error) { node, err = x.Hello(0, nil); return err })
		s.put(wholeNodes(t, 1, 1))
		time.Sleep(time.Second)
		s.hears(func(x *exec.Executor) error { return x.Update(node, shellOf(1, exec.TaskRunning)) })
		extend(10 * time.Second)
		time.Sleep(9 * time.Second)
		s.hears(func(*exec.Executor) error { d.takes = 2 * time.Second; return nil })
		extend(time.Hour)
		time.Sleep(time.Hour - 3*time.Second) // two of which the store took
		s.hears(func(*exec.Executor) error { require.Equal(t, texts{"start ƒ2 on 0"}, did); return nil })
		_, err := s.l.Call(ctx, joblife.SetExpiration{ID: 1}) // never
		require.NoError(t, err)
		time.Sleep(time.Hour)
		s.hears(func(*exec.Executor) error { require.Len(t, did, 1); return nil })
		extend(time.Minute)
		time.Sleep(time.Hour)
		_ = stop()
		require.Equal(t, "signal ƒ2 on 0", did[1])
	})
}

// After a restart, nodes that lack an epilog and say so at once are one input, one launch and one
// command. Where it is over on one of them, the others get it one by one.
func TestNodesThatLackAnActionShareALaunch(t *testing.T) {
	const n = 400
	cfg, d := plain(), new(disk)
	cfg.Actions.Epilogs = perRank
	on := func(x *exec.Executor, d *disk, commands func([]exec.Command)) *site {
		s := scheduled(t, start, d, onMachine(t, n), cfg, func(c *loop.Config) { c.Executor, c.Commands = x, commands })
		require.NoError(t, s.l.Advance(start))
		return s
	}
	x := new(exec.Executor)
	s := on(x, d, ignore)
	s.puts(wholeNodes(t, 1, n))
	for rank := range uint32(n) {
		node, err := x.Hello(rank, nil)
		require.NoError(t, err)
		require.NoError(t, x.Update(node, shellOf(1, exec.TaskReleased)))
	}
	require.NoError(t, s.l.Advance(start))

	for _, ended := range []*idset.Set{nil, idset.Of(7)} {
		did, x := texts(nil), new(exec.Executor)
		s := on(x, &disk{records: slices.Clone(d.records)}, did.add)
		for rank := range uint32(n) {
			_, err := x.Hello(rank, []exec.TaskStatus{shellOf(1, exec.TaskReleased)})
			require.NoError(t, err)
		}
		if ended == nil {
			require.NoError(t, s.l.Advance(start))
			require.Equal(t, texts{"start ƒ2 epilog job-manager.epilog 2 on 0-399"}, did[n:], "after the shells are forgotten")
			continue
		}
		s.puts(joblife.ForceFinish{Action: joblife.Action{Job: 1, Key: epilogOf(1, exec.TaskRunning).Task.Action, Ranks: ended}, Operator: "me"})
		require.Len(t, did[n:], n-1)
		require.Len(t, s.refused, 1)
	}
}

// An action that somebody finished by force, since its node is gone, does not start there later:
// its job is closed, and another one may have the node.
func TestAnActionThatWasFinishedByForceStartsNoMore(t *testing.T) {
	cfg, did, x := plain(), texts(nil), new(exec.Executor)
	cfg.Actions.Prologs = perRank
	s := executed(t, start, new(disk), cfg, x, did.add)
	s.puts(wholeNodes(t, 1, 1))
	key := jobstate.ActionKey{Kind: jobstate.ActionProlog, Description: "job-manager.prolog"}
	s.puts(joblife.ForceFinish{Action: joblife.Action{Job: 1, Key: key, Ranks: idset.Of(0)}, Status: 256, Operator: "root"})
	require.Equal(t, jobstate.StateInactive, s.state(1))
	s.begins(x, 0)
	require.Equal(t, texts{"forget ƒ2 prolog job-manager.prolog 1 on 0"}, did)
}
