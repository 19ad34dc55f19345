package loop_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/loop"
	"github.com/joblife/joblife/perilog"
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

// execute is a hook: it ends a job when it has run as long as its jobspec says, and actions after
// ten seconds on each node, but an epilog on rank 3 after half an hour.
func execute(e *joblife.HookEvent) {
	job, id := e.Job.Job(), e.Job.ID()
	if e.Entry.Name != "" && !strings.HasSuffix(e.Entry.Name, "start") { // "" after a crash
		return
	}
	if began, ok := job.Entered(jobstate.StateRun); ok && job.Started() && !job.Finished() {
		end := eventlog.FromTime(began.Time().Add(e.Job.Jobspec().Duration()))
		e.PostAt(end, joblife.ExecResponse{ID: id, Type: exec.ResponseFinish})
		e.PostAt(end, joblife.ExecResponse{ID: id, Type: exec.ResponseRelease, Final: true})
	}
	for a := range job.Actions() {
		for rank := range e.Job.R().Ranks().All() {
			end := a.Since + 10
			if rank == 3 && a.Kind == jobstate.ActionEpilog {
				end += 1790
			}
			e.PostAt(end, joblife.Report{Job: id, Report: perilog.Report{Action: a.ActionKey, Attempt: 1, Rank: rank, Kind: perilog.ReportExited}})
		}
	}
}

// simulate starts a cluster of four nodes, perhaps after a crash: jobs go on meanwhile.
func simulate(now time.Time, store *memory) (*joblife.Manager, *loop.Loop) {
	action := []perilog.ActionConfig{{Command: []string{"scrub"}, PerRank: true}}
	config := joblife.Config{Epoch: time.Unix(1_690_000_000, 0), Hooks: []joblife.Hooks{{Restored: execute, Event: execute}}}
	config.Actions = perilog.Config{Prologs: action, Epilogs: action}
	m, _, _ := joblife.Restore(now, config, joblife.ReadRecords(bytes.NewReader(*store)))
	nodes, _ := rset.Parse([]byte(`{"version":1,"execution":{"R_lite":[{"rank":"0-3","children":{"core":"0-7"}}]}}`))
	s := sched.New(sched.Config{})
	_ = s.Acquire(pool.Acquire{Resources: nodes, Change: pool.Change{Up: nodes.Ranks()}})
	var l *loop.Loop
	l, _ = loop.New(m, loop.Config{
		Store:     store,
		Scheduler: s,
		Effects: func(_ *joblife.Manager, rd *joblife.Ready) {
			for _, msg := range rd.Sched {
				if f, ok := msg.(alloc.Free); ok {
					fmt.Println(l.Now().UTC().Format(time.TimeOnly), f.ID, "frees", f.R.Ranks())
				}
			}
			for _, msg := range rd.Exec {
				_ = l.Put(joblife.ExecResponse{ID: msg.(exec.Start).ID, Type: exec.ResponseStart})
			}
		},
		Refused: func(in joblife.Input, err error) { fmt.Printf("%T: %v\n", in, err) },
	})
	_ = l.Put(joblife.ExecHello{})
	return m, l
}

// A simulator, in which a hook ends jobs, prologs and epilogs. The Manager's deadlines are the
// clock, and the manager crashes before each of them.
func ExampleLoop_Advance() {
	store, now := new(memory), time.Unix(1_700_000_000, 0)
	m, l := simulate(now, store)
	for i, nodes := range []int64{2, 3, 1, 4} {
		spec, _ := jobspec.New(jobspec.Job{Nodes: nodes, Exclusive: true, Duration: time.Duration(i+1) * time.Hour, Command: []string{"app"}})
		_ = l.Put(joblife.Submit{Spec: spec, Urgency: jobstate.UrgencyDefault})
	}
	for ok := true; ok; now, ok = m.Deadline() {
		if err := l.Advance(now); err != nil {
			fmt.Println(err)
			return
		}
		if at, ok := m.Deadline(); ok {
			m, l = simulate(at, store) // after a crash
		}
	}
	fmt.Println("over:", m.Stats().States[jobstate.StateInactive])
	// Output:
	// 23:13:30 ƒPb5K9oRrm5 frees 0-1
	// 01:13:40 ƒPb5K9oRrm6 frees 0-2
	// 02:43:30 ƒPb5K9oRrm7 frees 3
	// 06:43:40 ƒPb5K9oRrm8 frees 0-2
	// 07:13:30 ƒPb5K9oRrm8 frees 3
	// over: 4
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
