package joblife_test

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
	"github.com/joblife/joblife/rset/pool"
	"github.com/joblife/joblife/rset/sched"
)

// A simulator is a cluster with a FIFO scheduler, prologs and epilogs. The Manager's deadlines are
// its clock.
type simulator struct {
	m     *joblife.Manager
	now   time.Time
	store []byte // records, as lines
	sched *sched.Scheduler
}

// start starts a simulator, perhaps after a crash: jobs go on meanwhile.
func start(now time.Time, store []byte) *simulator {
	action := []perilog.ActionConfig{{Command: []string{"scrub"}, PerRank: true}}
	config := joblife.Config{Epoch: time.Unix(1_690_000_000, 0), Hooks: []joblife.Hooks{{Restored: execute, Event: execute}}}
	config.Actions = perilog.Config{Prologs: action, Epilogs: action}
	m, _, err := joblife.Restore(now, config, joblife.ReadRecords(bytes.NewReader(store)))
	check(err)
	nodes := try(rset.Parse([]byte(`{"version":1,"execution":{"R_lite":[{"rank":"0-3","children":{"core":"0-7"}}]}}`)))
	s := &simulator{m: m, now: now, store: store, sched: sched.New(sched.Config{})}
	check(s.sched.Acquire(pool.Acquire{Resources: nodes, Change: pool.Change{Up: nodes.Ranks()}}))
	s.step(joblife.SchedHello{PartialOK: true}, joblife.SchedReady{}, joblife.ExecHello{})
	return s
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

// step passes inputs to the manager, then what scheduler and executor respond.
func (s *simulator) step(inputs ...joblife.Input) {
	for ; len(inputs) > 0; inputs = inputs[1:] {
		check(s.m.Step(s.now, inputs[0]))
		for rd := new(joblife.Ready); s.m.Ready(rd); check(s.m.Done(rd.Seq)) {
			s.store = try(joblife.AppendRecords(s.store, rd.Append))
			if rd.Hello != nil {
				check(s.sched.Hello(*rd.Hello))
			}
			for _, msg := range rd.Sched {
				if f, ok := msg.(alloc.Free); ok {
					fmt.Println(s.now.UTC().Format(time.TimeOnly), f.ID, "frees", f.R.Ranks())
				}
				check(s.sched.Handle(msg))
			}
			for _, r := range s.sched.Decide(eventlog.FromTime(s.now)) {
				inputs = append(inputs, joblife.SchedResponse(r))
			}
			for _, msg := range rd.Exec {
				inputs = append(inputs, joblife.ExecResponse{ID: msg.(exec.Start).ID, Type: exec.ResponseStart})
			}
		}
	}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func try[T any](v T, err error) T {
	check(err)
	return v
}

func Example_simulator() {
	s := start(time.Unix(1_700_000_000, 0), nil)
	for i, nodes := range []int64{2, 3, 1, 4} {
		job := jobspec.Job{Nodes: nodes, Exclusive: true, Duration: time.Duration(i+1) * time.Hour, Command: []string{"app"}}
		s.step(joblife.Submit{Spec: try(jobspec.New(job)), Urgency: jobstate.UrgencyDefault})
	}
	for at, ok := s.m.Deadline(); ok; at, ok = s.m.Deadline() {
		s = start(at, s.store) // after a crash
		s.step(joblife.Tick{})
	}
	fmt.Println("over:", s.m.Stats().States[jobstate.StateInactive], "at", s.now.UTC())
	// Output:
	// 23:13:30 ƒPb5K9oRrm5 frees 0-1
	// 01:13:40 ƒPb5K9oRrm6 frees 0-2
	// 02:43:30 ƒPb5K9oRrm7 frees 3
	// 06:43:40 ƒPb5K9oRrm8 frees 0-2
	// 07:13:30 ƒPb5K9oRrm8 frees 3
	// over: 4 at 2023-11-15 07:13:30 +0000 UTC
}
