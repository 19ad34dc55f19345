package loop_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/loop"
	"github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
	"github.com/joblife/joblife/rset/pool"
	"github.com/joblife/joblife/rset/sched"
)

// A memory is a Store that ends with the process.
type memory []byte

func (s *memory) Append(records []joblife.Record) (err error) {
	*s, err = joblife.AppendRecords(*s, records)
	return err
}

func (*memory) Unlink(context.Context, []jobid.ID) (map[jobid.ID]error, error) { return nil, nil }

// A resource manager of one node. In a real one scheduler, executor and nodes are other
// processes, and the goroutines that read what they say call Put.
func Example() {
	ctx, stop := context.WithCancelCause(context.Background())
	node, _ := rset.Parse([]byte(`{"version":1,"execution":{"R_lite":[{"rank":"0","children":{"core":"0-3"}}]}}`))
	m, _ := joblife.New(joblife.Config{Epoch: time.Unix(1_700_000_000, 0)})
	var l *loop.Loop
	put := func(inputs ...joblife.Input) {
		if err := l.Put(inputs...); err != nil {
			stop(err)
		}
	}
	l, err := loop.New(m, loop.Config{
		Store: new(memory),
		Effects: func(_ *joblife.Manager, rd *joblife.Ready) {
			for _, msg := range rd.Sched {
				if msg, ok := msg.(alloc.Request); ok {
					put(joblife.SchedResponse{ID: msg.ID, R: node})
				}
			}
			for _, msg := range rd.Exec {
				if msg, ok := msg.(exec.Start); ok {
					put(
						joblife.ExecResponse{ID: msg.ID, Type: exec.ResponseStart},
						joblife.ExecResponse{ID: msg.ID, Type: exec.ResponseFinish, Status: 3 << 8},
						joblife.ExecResponse{ID: msg.ID, Type: exec.ResponseRelease, Final: true})
				}
			}
		},
		Refused: func(in joblife.Input, err error) { fmt.Printf("%T: %v\n", in, err) },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ended := make(chan error)
	go func() { ended <- l.Run(ctx) }()
	put(joblife.SchedHello{}, joblife.SchedReady{}, joblife.ExecHello{})

	spec, _ := jobspec.New(jobspec.Job{Command: []string{"false"}})
	job, err := l.Call(ctx, joblife.Submit{Spec: spec, Urgency: jobstate.UrgencyDefault})
	fmt.Println("submitted:", err)
	_, err = l.Call(ctx, joblife.Wait{ID: job.Job, States: jobstate.StateInactive})
	fmt.Println("over:", err)
	_, err = l.Call(ctx, joblife.Raise{ID: job.Job, Type: "cancel"})
	fmt.Println("canceled:", err != nil)
	err = l.View(ctx, func(m *joblife.Manager) {
		v, _ := m.Job(job.Job)
		result, _ := v.Result()
		fmt.Println(v.State(), result)
	})
	fmt.Println("seen:", err)
	stop(nil)
	fmt.Println("ended:", <-ended)
	s := l.Stats()
	fmt.Println("refused:", s.Refused, "waiting:", s.Waiting)
	// Output:
	// submitted: <nil>
	// over: <nil>
	// canceled: true
	// INACTIVE FAILED
	// seen: <nil>
	// ended: context canceled
	// refused: 1 waiting: 0
}

// A simulator, in which a hook ends each job when its time is over. The Manager's
// deadlines are the clock.
func ExampleLoop_Advance() {
	now := time.Unix(1_700_000_000, 0).UTC()
	node, _ := rset.Parse([]byte(`{"version":1,"execution":{"R_lite":[{"rank":"0","children":{"core":"0-3"}}]}}`))
	m, _ := joblife.New(joblife.Config{Volatile: true, Hooks: []joblife.Hooks{{Event: func(e *joblife.HookEvent) {
		if e.Entry.Name == jobstate.EventStart {
			end := e.Entry.Timestamp + 3600
			e.PostAt(end, joblife.ExecResponse{ID: e.Job.ID(), Type: exec.ResponseFinish})
			e.PostAt(end, joblife.ExecResponse{ID: e.Job.ID(), Type: exec.ResponseRelease, Final: true})
		}
	}}}})
	s := sched.New(sched.Config{})
	_ = s.Acquire(pool.Acquire{Resources: node, Change: pool.Change{Up: node.Ranks()}})
	var l *loop.Loop
	l, _ = loop.New(m, loop.Config{
		Scheduler: s,
		Effects: func(_ *joblife.Manager, rd *joblife.Ready) {
			for _, msg := range rd.Exec {
				_ = l.Put(joblife.ExecResponse{ID: msg.(exec.Start).ID, Type: exec.ResponseStart})
			}
		},
		Refused: func(in joblife.Input, err error) { fmt.Printf("%T: %v\n", in, err) },
	})
	_ = l.Put(joblife.ExecHello{})
	spec, _ := jobspec.New(jobspec.Job{Nodes: 1, Exclusive: true, Command: []string{"app"}})
	for id := range jobid.ID(3) {
		_ = l.Put(joblife.Submit{ID: 1 + id, Spec: spec, Urgency: jobstate.UrgencyDefault})
	}
	for ok := true; ok; now, ok = m.Deadline() {
		if err := l.Advance(now); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(now.UTC().Format(time.TimeOnly), m.Stats().States[jobstate.StateInactive], "jobs are over")
	}
	// Output:
	// 22:13:20 0 jobs are over
	// 23:13:20 1 jobs are over
	// 00:13:20 2 jobs are over
	// 01:13:20 3 jobs are over
}

// A resource manager of two nodes. In a real one each node is a connection, whose goroutine calls
// Hear with what it reads.
func ExampleLoop_Hear() {
	nodes, _ := rset.Parse([]byte(`{"version":1,"execution":{"R_lite":[{"rank":"0-1","children":{"core":"0-3"}}]}}`))
	s := sched.New(sched.Config{})
	_ = s.Acquire(pool.Acquire{Resources: nodes, Change: pool.Change{Up: nodes.Ranks()}})
	store := new(memory)
	m, left, _ := joblife.Restore(time.Now(), joblife.Config{Epoch: time.Unix(1_700_000_000, 0)}, joblife.ReadRecords(bytes.NewReader(*store)))
	commands := make(chan exec.Command, 16)
	l, err := loop.New(m, loop.Config{
		Store:     store,
		Scheduler: s,
		Executor:  new(exec.Executor),
		Commands: func(list []exec.Command) {
			for _, c := range list {
				commands <- c
			}
		},
		Recovered: left,
		Effects:   func(*joblife.Manager, *joblife.Ready) {},
		Refused:   func(in joblife.Input, err error) { fmt.Printf("%T: %v\n", in, err) },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	ended := make(chan error)
	go func() { ended <- l.Run(ctx) }()

	var sessions [2]exec.Session
	err = l.Hear(func(x *exec.Executor) (err error) {
		for rank := range sessions {
			if sessions[rank], err = x.Hello(uint32(rank), nil); err != nil { // it runs nothing
				return err
			}
		}
		return nil
	})
	fmt.Println("connected:", err)
	spec, _ := jobspec.New(jobspec.Job{Nodes: 2, Command: []string{"app"}})
	job, err := l.Call(ctx, joblife.Submit{Spec: spec, Urgency: jobstate.UrgencyDefault})
	if err != nil {
		fmt.Println(err)
		return
	}
	c := <-commands
	fmt.Println(c.Kind, "the job on", c.Ranks)
	err = l.Hear(func(x *exec.Executor) (err error) {
		for rank := range c.Ranks.All() {
			err = errors.Join(err, x.Update(sessions[rank], exec.TaskStatus{Task: c.Task, State: exec.TaskReleased, Status: 3 << 8}))
		}
		return err
	})
	fmt.Println("ended:", err)
	_, err = l.Call(ctx, joblife.Wait{ID: job.Job, States: jobstate.StateInactive})
	fmt.Println("over:", err)
	c = <-commands
	fmt.Println(c.Kind, "it on", c.Ranks)
	stop()
	fmt.Println(<-ended)
	// Output:
	// connected: <nil>
	// start the job on 0-1
	// ended: <nil>
	// over: <nil>
	// forget it on 0-1
	// context canceled
}
