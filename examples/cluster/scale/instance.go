package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/loop"
	"github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/pool"
	"github.com/joblife/joblife/rset/sched"
)

// An instance is a manager, which may be down, its log, and its nodes, which go on meanwhile.
type instance struct {
	w            *world
	cfg          joblife.Config
	m            *joblife.Manager
	l            *loop.Loop        // nil: the manager is down
	log          *joblife.Follower // of what is durable
	doomed       bool              // the next submission ends the manager
	dies, stores bool              // at the next commit, which is stored, or not
	nodes        []jobid.ID        // what runs on each: they are the witness
	tasks        map[jobid.ID]*task
	unclaimed    []jobid.ID // jobs in NEW
	used, others []float64  // node-seconds of each user: here, and elsewhere as was last heard
}

// A task is a job that has started. There may be several of a submission.
type task struct {
	*job
	ranks *idset.Set
	since time.Time
	over  bool
}

var errDown = errors.New("the manager is down")

func newInstance(w *world, number int) *instance {
	in := &instance{
		w: w, log: new(joblife.Follower), nodes: make([]jobid.ID, w.Nodes), tasks: make(map[jobid.ID]*task),
		used: make([]float64, w.Users), others: make([]float64, w.Users),
	}
	hooks := joblife.Hooks{Name: "scale"}
	if w.Share != "" {
		hooks.Priority = func(e *joblife.HookEvent) (uint32, bool) { return in.priority(e.Job), false }
	}
	if w.Repeat == "claim" {
		hooks.Validate = func(e *joblife.HookEvent) error {
			in.unclaimed = append(in.unclaimed, e.Job.ID())
			return joblife.ErrLater
		}
	}
	in.cfg = joblife.Config{Epoch: epoch, Generator: uint16(number), Hooks: []joblife.Hooks{hooks}}
	in.begin()
	return in
}

// begin makes a manager of the log, as a standby does.
func (in *instance) begin() {
	next := new(joblife.Follower)
	for r := range in.log.Snapshot() {
		check(next.Add(r))
	}
	var err error
	in.m, _, err = in.log.Restore(in.w.now, in.cfg)
	check(err)
	in.log = next
	nodes, err := rset.Parse(fmt.Appendf(nil, `{"version":1,"execution":{"R_lite":[{"rank":"0-%d","children":{"core":"0"}}]}}`, in.w.Nodes-1))
	check(err)
	s := sched.New(sched.Config{Policy: sched.EASY{Depth: 100}})
	check(s.Acquire(pool.Acquire{Resources: nodes, Change: pool.Change{Up: nodes.Ranks()}}))
	in.l, err = loop.New(in.m, loop.Config{
		Store: in, Scheduler: s, Effects: in.do, Refused: func(i joblife.Input, err error) { panic(fmt.Sprintf("%T: %v", i, err)) },
	})
	check(err)
	in.put(joblife.ExecHello{})
}

// put has inputs dispatched, and all done that follows. While the manager is down, users send
// them again, and nodes say it when they are asked.
func (in *instance) put(inputs ...joblife.Input) {
	if in.l == nil {
		return
	}
	check(in.l.Put(inputs...))
	err, jobs := in.l.Advance(in.w.now), in.unclaimed
	in.unclaimed = nil
	if errors.Is(err, errDown) {
		in.w.inputs += in.l.Stats().Inputs
		in.l, in.dies = nil, false
		in.w.after(in.w.Down, in.begin)
		return
	}
	check(err)
	for _, id := range jobs {
		in.w.claim(in, id)
	}
}

// Append is the log of the instance.
func (in *instance) Append(records []joblife.Record) error {
	for _, r := range records {
		if !in.dies || in.stores {
			check(in.log.Add(r))
		}
	}
	if in.dies {
		return errDown
	}
	return nil
}

// Unlink has nothing to remove.
func (*instance) Unlink(context.Context, []jobid.ID) (map[jobid.ID]error, error) { return nil, nil }

// do does what a Ready wants done.
func (in *instance) do(_ *joblife.Manager, rd *joblife.Ready) {
	for _, f := range rd.Faults {
		panic(f)
	}
	for _, a := range rd.Answers {
		if in.w.Repeat != "claim" { // which has the answer
			in.w.answer(in.w.jobs[a.Tag-1], a.Job)
		}
	}
	for _, msg := range rd.Exec {
		if s, ok := msg.(exec.Start); ok {
			in.start(s)
		}
	}
	for _, e := range rd.Journal {
		if e.Entry.Name == jobstate.EventClean {
			in.tasks[e.Job].ends++
		}
	}
}

// submission returns what the world knows of a job.
func (in *instance) submission(id jobid.ID) *job {
	v, _ := in.m.Job(id)
	n, err := strconv.Atoi(v.Jobspec().Name())
	check(err)
	return in.w.jobs[n]
}

// start starts a job on its nodes, or says again what became of it.
func (in *instance) start(s exec.Start) {
	t := in.tasks[s.ID]
	if t == nil {
		t = &task{job: in.submission(s.ID), ranks: s.R.Ranks(), since: in.w.now}
		in.tasks[s.ID] = t
		for rank := range t.ranks.All() {
			if other := in.nodes[rank]; other != 0 {
				panic(fmt.Sprintf("a node has jobs %v and %v", other, s.ID))
			}
			in.nodes[rank] = s.ID
		}
		if t.runs++; t.runs == 1 {
			t.began = in.w.now
		}
		in.used[t.user] += float64(t.nodes) * t.limit.Seconds() // so that the next jobs know it
		in.w.after(t.run, func() { in.end(s.ID) })
	}
	check(in.l.Put(joblife.ExecResponse{ID: s.ID, Type: exec.ResponseStart}))
	if t.over {
		check(in.l.Put(over(s.ID)...))
	}
}

// end ends a job on its nodes.
func (in *instance) end(id jobid.ID) {
	t := in.tasks[id]
	t.over = true
	in.used[t.user] += float64(t.nodes) * (t.run - t.limit).Seconds()
	in.w.got[t.user] += float64(t.nodes) * max(0, min(t.run, in.w.end.Sub(t.since))).Seconds()
	for rank := range t.ranks.All() {
		in.nodes[rank] = 0
	}
	in.put(over(id)...)
}

func over(id jobid.ID) []joblife.Input {
	return []joblife.Input{
		joblife.ExecResponse{ID: id, Type: exec.ResponseFinish}, joblife.ExecResponse{ID: id, Type: exec.ResponseRelease, Final: true},
	}
}

// priority is less for users who used more.
func (in *instance) priority(v joblife.View) uint32 {
	user := v.UserID() - firstUser
	return uint32(1e9 - min(9e8, in.used[user]+in.others[user]))
}
