package loop_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/loop"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/perilog/exec"
)

// executed is a site with one node, whose Loop drives a Scheduler and an Executor.
func executed(t testing.TB, now time.Time, d *disk, cfg joblife.Config, x *exec.Executor, commands func([]exec.Command), more ...func(*loop.Config)) *site {
	return scheduled(t, now, d, onMachine(t, 1), cfg, append(more, func(c *loop.Config) { c.Executor, c.Commands = x, commands })...)
}

// restarted is executed after a restart, where node 0 says that it runs nothing; did is what it is told then.
func restarted(t testing.TB, d *disk, cfg joblife.Config) (s *site, did texts) {
	x := new(exec.Executor)
	s = executed(t, start, d, cfg, x, did.add)
	require.NoError(t, s.l.Advance(start))
	_, err := x.Hello(0, nil)
	require.NoError(t, err)
	require.NoError(t, s.l.Advance(start))
	return s, did
}

// hears has a node say something, and waits until the Loop has heard it.
func (s *site) hears(f func(x *exec.Executor) error) {
	s.t.Helper()
	require.NoError(s.t, s.l.Hear(f))
}

func shellOf(id jobid.ID, state exec.TaskState) exec.TaskStatus {
	return exec.TaskStatus{Task: exec.Task{Job: id}, State: state}
}

// texts collects commands.
type texts []string

func (l *texts) add(list []exec.Command) {
	for _, c := range list {
		*l = append(*l, fmt.Sprintf("%v %v on %v", c.Kind, c.Task, c.Ranks))
	}
}

// A node that obeys at once runs jobs, with all their actions, on a virtual clock.
func TestALoopDrivesAnExecutor(t *testing.T) {
	cfg, action := plain(), []perilog.ActionConfig{{Command: []string{"x"}, PerRank: true}}
	cfg.Actions = perilog.Config{Prologs: action, Epilogs: action, Housekeeping: &perilog.HousekeepingConfig{Command: []string{"x"}}}
	var results []string
	for range 3 { // I7
		d, x, did := new(disk), new(exec.Executor), texts(nil)
		var session exec.Session
		s := executed(t, start, d, cfg, x, func(list []exec.Command) {
			did.add(list)
			for _, c := range list {
				if c.Kind == exec.CommandStart {
					require.NoError(t, x.Update(session, exec.TaskStatus{Task: c.Task, State: exec.TaskReleased}))
				}
			}
		})
		require.NoError(t, s.l.Advance(start))
		var err error
		session, err = x.Hello(0, nil)
		require.NoError(t, err)
		s.put(wholeNodes(t, 1, 1), wholeNodes(t, 2, 1))
		require.NoError(t, s.l.Advance(start))
		require.Empty(t, s.refused)
		require.Equal(t, jobstate.StateInactive, s.state(2))
		require.Zero(t, s.m.Stats().Housekeeping)
		require.Len(t, did, 2*8, "each task is started and forgotten")
		require.Equal(t, texts{"start ƒ2 prolog job-manager.prolog 1 on 0", "start ƒ2 on 0", "start ƒ2 epilog job-manager.epilog 1 on 0"}, did[:3])
		results = append(results, d.text(t)+fmt.Sprint(did))
	}
	require.Equal(t, results[0], results[1])
	require.Equal(t, results[0], results[2])
}

// The store takes a second. Nodes wait for it once, until the Executor knows what ran.
func TestNodesDoNotWaitForTheStore(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context) {
		d, did := &disk{takes: time.Second}, make(chan string, 9)
		send := func(list []exec.Command) {
			var l texts
			l.add(list)
			for _, text := range l {
				did <- text
			}
		}
		s := executed(t, time.Now(), d, plain(), new(exec.Executor), send)
		stop := s.run(ctx)
		var node exec.Session
		hello := func(tasks ...exec.TaskStatus) func(x *exec.Executor) error {
			return func(x *exec.Executor) (err error) {
				node, err = x.Hello(0, tasks)
				return err
			}
		}
		s.hears(hello())
		began := time.Now()
		s.put(wholeNodes(t, 1, 1), submit(2))
		require.Equal(t, "start ƒ2 on 0", <-did)
		require.Equal(t, 2*time.Second, time.Since(began), "the alloc is stored after the submit")
		s.put(submit(3)) // the store is busy
		s.hears(func(x *exec.Executor) error {
			return x.Update(node, shellOf(1, exec.TaskRunning))
		})
		s.put(submit(4), joblife.Raise{ID: 1, Type: "cancel"})
		require.Equal(t, "signal ƒ2 on 0", <-did)
		require.Equal(t, "signal ƒ2 on 0", <-did, "SIGKILL, with no other input")
		require.GreaterOrEqual(t, time.Since(began), 7*time.Second)
		_ = stop()

		// The next life gets what runs before a node says so: nothing is killed.
		d.records = d.records[:slices.IndexFunc(d.records, func(r joblife.Record) bool {
			return string(r.Data) != "" && r.Kind == joblife.RecordEvent && named(r, jobstate.EventException)
		})]
		d.busy = false
		s = executed(t, time.Now(), d, plain(), new(exec.Executor), send)
		s.put(submit(9)) // which is stored with the hello
		heard := make(chan error)
		go func() { heard <- s.l.Hear(hello(shellOf(1, exec.TaskRunning))) }()
		synctest.Wait()
		stop = s.run(ctx)
		began = time.Now()
		require.NoError(t, <-heard)
		require.Equal(t, time.Second, time.Since(began))
		require.NoError(t, s.l.View(ctx, func(*joblife.Manager) {}))
		require.Empty(t, did)
		require.Equal(t, jobstate.StateRun, s.state(1))
		require.ErrorIs(t, stop(), context.Canceled)
	})
}

func named(r joblife.Record, name string) bool {
	e, err := eventlog.Parse(r.Data)
	return err == nil && e.Name == name
}

// At the end the Executor gets what is durable. Time kills no job any more, since the next life
// knows better whether it expires, and what nodes say is for the next life.
func TestTheEndOfALoopWithAnExecutor(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context) {
		did, x := texts(nil), new(exec.Executor)
		d := &disk{takes: time.Second}
		s := executed(t, time.Now(), d, plain(), x, did.add)
		stop := s.run(ctx)
		var node exec.Session
		s.hears(func(x *exec.Executor) (err error) {
			node, err = x.Hello(0, nil)
			return err
		})
		s.put(wholeNodes(t, 1, 1))
		time.Sleep(4 * time.Second)
		synctest.Wait()
		require.Equal(t, texts{"start ƒ2 on 0"}, did)
		s.hears(func(x *exec.Executor) error { return x.Update(node, shellOf(1, exec.TaskRunning)) })
		time.Sleep(4 * time.Second)
		s.put(joblife.SetExpiration{ID: 1, Expiration: eventlog.FromTime(time.Now().Add(1500 * time.Millisecond))})
		time.Sleep(1250 * time.Millisecond) // it is stored
		synctest.Wait()
		at, ok := x.Deadline()
		require.True(t, ok)
		s.put(submit(2)) // the store is busy when it expires
		time.Sleep(200 * time.Millisecond)
		go func() { _ = stop() }()
		synctest.Wait()
		require.ErrorIs(t, s.l.Hear(func(*exec.Executor) error { t.Error("it is called after the end"); return nil }), loop.ErrEnded)
		require.ErrorIs(t, stop(), context.Canceled)
		require.True(t, time.Now().After(at.Time()))
		time.Sleep(time.Minute)
		require.Len(t, did, 1)

		d, x, did = &disk{takes: time.Second}, new(exec.Executor), nil
		s = executed(t, time.Now(), d, plain(), x, func(list []exec.Command) {
			did.add(list)
			require.NoError(t, x.Update(node, shellOf(1, exec.TaskRunning)))
		})
		stop = s.run(ctx)
		s.hears(func(x *exec.Executor) (err error) {
			node, err = x.Hello(0, nil)
			return err
		})
		s.put(wholeNodes(t, 1, 1))
		time.Sleep(1500 * time.Millisecond)
		s.put(submit(2)) // is stored after the alloc
		synctest.Wait()
		_ = stop()
		require.Equal(t, texts{"start ƒ2 on 0"}, did, "which was stored")
		require.False(t, slices.ContainsFunc(d.records, func(r joblife.Record) bool { return r.Kind == joblife.RecordEvent && named(r, jobstate.EventStart) }))
	})
}

// Its expiration stops a job, and a timeout an action; an exception that is not fatal does not. A deadline that is between two
// nanoseconds is met.
func TestALoopStopsTasks(t *testing.T) {
	cfg, did, x := plain(), texts(nil), new(exec.Executor)
	start := time.Unix(1000, 0) // the fractions of a float64 are small there
	cfg.Epoch = time.Unix(0, 0)
	cfg.Actions.Epilogs = []perilog.ActionConfig{{Command: []string{"x"}, PerRank: true, Timeout: fsd.Duration(time.Second)}}
	s := executed(t, start, new(disk), cfg, x, did.add)
	require.NoError(t, s.l.Advance(start))
	node, err := x.Hello(0, nil)
	require.NoError(t, err)
	s.put(wholeNodes(t, 1, 1), joblife.Raise{ID: 1, Type: "x", Severity: 1})
	require.NoError(t, s.l.Advance(start))
	s.put(joblife.Raise{ID: 1, Type: "x", Severity: 1})
	require.NoError(t, s.l.Advance(start))
	require.Equal(t, texts{"start ƒ2 on 0"}, did)
	s.put(joblife.SetExpiration{ID: 1, Expiration: 1005.0000000004})
	require.NoError(t, s.l.Advance(start))
	at, ok := x.Deadline()
	require.True(t, ok)
	require.Less(t, eventlog.FromTime(at.Time()), at)
	require.NoError(t, s.l.Advance(at.Time()))
	require.Equal(t, "signal ƒ2 on 0", did[1])
	s.put(joblife.Raise{ID: 1, Type: "cancel"})
	at, ok = x.Deadline()
	require.True(t, ok)
	require.NoError(t, s.l.Advance(at.Time()))
	require.Equal(t, "signal ƒ2 on 0", did[2], "SIGKILL")
	require.NoError(t, x.Update(node, shellOf(1, exec.TaskReleased)))
	require.NoError(t, s.l.Advance(at.Time()))
	require.Equal(t, "start ƒ2 epilog job-manager.epilog 1 on 0", did[3])
	require.NoError(t, s.l.Advance(at.Time().Add(time.Second)))
	require.Equal(t, "signal ƒ2 epilog job-manager.epilog 1 on 0", did[4])
}

// An action that is lost and that no node has runs again, or it has failed.
func TestALostActionRunsAgainOrHasFailed(t *testing.T) {
	for _, ending := range []bool{false, true} {
		cfg, d := plain(), new(disk)
		cfg.Actions.Prologs = []perilog.ActionConfig{{Command: []string{"x"}, PerRank: true}}
		s := executed(t, start, d, cfg, new(exec.Executor), func([]exec.Command) { t.Error("there is no node") })
		s.put(wholeNodes(t, 1, 1))
		require.NoError(t, s.l.Advance(start))
		require.Equal(t, 1, s.m.Stats().Actions)
		if ending {
			s.put(joblife.Raise{ID: 1, Type: "cancel"})
			require.NoError(t, s.l.Advance(start))
		}

		s, did := restarted(t, d, cfg)
		if !ending {
			require.Equal(t, texts{"start ƒ2 prolog job-manager.prolog 2 on 0"}, did)
			require.Empty(t, s.refused)
			continue
		}
		require.Empty(t, did)
		require.Len(t, s.refused, 1, "the Rerun")
		require.Equal(t, jobstate.StateInactive, s.state(1))
	}
}

// An action that had begun, and was not launched, has failed if no configuration has it any more.
func TestAnActionThatWasRemovedHasFailed(t *testing.T) {
	cfg, d := plain(), new(disk)
	cfg.Actions.Prologs = []perilog.ActionConfig{{Command: []string{"x"}, PerRank: true}}
	cfg.Actions.Epilogs = cfg.Actions.Prologs
	s := executed(t, start, d, cfg, new(exec.Executor), ignore)
	s.put(wholeNodes(t, 1, 1))
	require.NoError(t, s.l.Advance(start))
	s.put(joblife.Raise{ID: 1, Type: "cancel"})
	require.NoError(t, s.l.Advance(start))

	cfg.Actions.Epilogs = nil
	s, did := restarted(t, d, cfg)
	require.Empty(t, did)
	require.Equal(t, jobstate.StateInactive, s.state(1))
}

// While a Shutdown goes on, nothing starts: the next life runs what is lost.
func TestALostActionSurvivesAShutdown(t *testing.T) {
	cfg, d := plain(), new(disk)
	cfg.Actions.Prologs = []perilog.ActionConfig{{Command: []string{"x"}, PerRank: true}}
	s := executed(t, start, d, cfg, new(exec.Executor), ignore)
	s.put(wholeNodes(t, 1, 1))
	require.NoError(t, s.l.Advance(start))
	for life := range 2 {
		x, did := new(exec.Executor), texts(nil)
		s = executed(t, start, d, cfg, x, did.add)
		require.NoError(t, s.l.Advance(start))
		_, err := x.Hello(0, nil)
		require.NoError(t, err)
		if life == 0 {
			s.put(joblife.Shutdown{})
		}
		require.NoError(t, s.l.Advance(start))
		require.Len(t, did, life)
		require.Len(t, s.refused, 1-life, "the Rerun")
	}
}

// The Executor leaves the tasks of a job alone that could not be read.
func TestAQuarantinedJobIsNotKilled(t *testing.T) {
	d := new(disk)
	s := executed(t, start, d, plain(), new(exec.Executor), ignore)
	s.put(wholeNodes(t, 1, 1))
	require.NoError(t, s.l.Advance(start))
	for i, r := range d.records {
		if r.Kind == joblife.RecordEvent && named(r, jobstate.EventAlloc) {
			d.records[i].Data = []byte("damaged\n")
		}
	}
	did, x := texts(nil), new(exec.Executor)
	s = executed(t, start, d, plain(), x, did.add)
	require.Equal(t, 1, s.m.Stats().Quarantined)
	require.NoError(t, s.l.Advance(start))
	_, err := x.Hello(0, []exec.TaskStatus{shellOf(1, exec.TaskRunning), shellOf(2, exec.TaskRunning)})
	require.NoError(t, err)
	require.NoError(t, s.l.Advance(start))
	require.Equal(t, texts{"signal ƒ3 on 0"}, did)
}

func ignore([]exec.Command) {}

// What is wrong comes where it is looked for.
func TestFaultsOfAnExecutor(t *testing.T) {
	effects := loop.Config{Effects: func(*joblife.Manager, *joblife.Ready) {}, Refused: func(joblife.Input, error) {}}
	newLoop := func(c loop.Config) (*loop.Loop, error) {
		m, err := joblife.New(plain())
		require.NoError(t, err)
		c.Effects, c.Refused = effects.Effects, effects.Refused
		return loop.New(m, c)
	}
	_, err := newLoop(loop.Config{Executor: new(exec.Executor)})
	require.ErrorContains(t, err, "it needs both")
	_, err = newLoop(loop.Config{Commands: ignore})
	require.ErrorContains(t, err, "it needs both")
	_, err = newLoop(loop.Config{Executor: new(exec.Executor), Commands: ignore, Recovered: joblife.Recovered{
		Unresolved: []joblife.Unresolved{{Job: 7, Unresolved: perilog.Unresolved{Reason: perilog.ReasonLost, Action: jobstate.ActionKey{Kind: jobstate.ActionEpilog}, Attempt: 1}}},
	}})
	require.ErrorContains(t, err, "loop: job ƒ8: exec: ")
	l, err := newLoop(loop.Config{})
	require.NoError(t, err)
	require.Panics(t, func() { _ = l.Hear(func(*exec.Executor) error { return nil }) })

	bubble(t, func(t *testing.T, ctx context.Context) {
		// The error of a node is its own.
		s := executed(t, time.Now(), new(disk), plain(), new(exec.Executor), func([]exec.Command) { panic("commands") }, func(c *loop.Config) { c.MaxInputs = 1 })
		ended := make(chan string)
		go func() { ended <- panics(func() { _ = s.l.Run(ctx) }) }()
		s.hears(func(x *exec.Executor) error {
			require.NoError(t, s.l.Put(joblife.Tick{}), "in the Loop's goroutine it may put")
			require.ErrorIs(t, x.Update(exec.Session{}, shellOf(1, exec.TaskRunning)), exec.ErrSession)
			return nil
		})
		synctest.Wait() // the tick had the only room
		require.ErrorIs(t, s.l.Hear(func(x *exec.Executor) error { return x.Update(exec.Session{}, shellOf(1, exec.TaskRunning)) }), exec.ErrSession)

		// When there is no room, a node hears so, and is not heard.
		held, free := make(chan bool), make(chan bool)
		go func() {
			_ = s.l.Hear(func(*exec.Executor) error { held <- true; <-free; return nil })
		}()
		<-held
		require.NoError(t, s.l.Put(joblife.Tick{}))
		require.ErrorIs(t, s.l.Hear(func(*exec.Executor) error { t.Error("it is called"); return nil }), loop.ErrFull)
		close(free)
		synctest.Wait()

		// A panic ends the Loop.
		_ = s.l.Hear(func(x *exec.Executor) error {
			_, err := x.Hello(0, []exec.TaskStatus{shellOf(1, exec.TaskRunning)})
			return err
		})
		require.Equal(t, "commands", <-ended)
		require.ErrorIs(t, s.l.Hear(func(*exec.Executor) error { return nil }), loop.ErrEnded)
		s = executed(t, time.Now(), new(disk), plain(), new(exec.Executor), ignore)
		go func() { ended <- panics(func() { _ = s.l.Run(ctx) }) }()
		require.ErrorIs(t, s.l.Hear(func(*exec.Executor) error { panic(errBroken) }), loop.ErrEnded)
		require.Equal(t, errBroken.Error(), <-ended)
	})

	// The session of the Executor is the Loop's.
	s := executed(t, start, new(disk), plain(), new(exec.Executor), ignore)
	for _, in := range []joblife.Input{joblife.ExecHello{}, joblife.ExecLost{}, joblife.Tagged{In: joblife.ExecHello{}}} {
		require.ErrorIs(t, s.l.Put(in), joblife.ErrInvalid)
	}

	// An error of the Executor is among the Faults.
	d := &disk{apart: func(rd *joblife.Ready, done func(map[jobid.ID]error, error)) {
		rd.Exec, rd.Launch = []exec.Message{exec.Hello{}}, []joblife.Launch{{Job: 1}}
		done(nil, nil)
	}}
	s = executed(t, start, d, plain(), new(exec.Executor), ignore, func(c *loop.Config) {
		c.Effects = func(_ *joblife.Manager, rd *joblife.Ready) {
			require.Len(t, rd.Faults, 2)
			require.ErrorContains(t, rd.Faults[0], "exec.Hello is not for an executor")
			require.ErrorContains(t, rd.Faults[1], "exec: ")
			panic("done")
		}
	})
	s.put(submit(1))
	require.Equal(t, "done", panics(func() { _ = s.l.Advance(start) }))
}
