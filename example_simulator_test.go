package joblife_test

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
	"github.com/joblife/joblife/rset/pool"
)

// A cluster on a virtual clock, whose jobs run as long as their jobspecs say. Its
// scheduler is FIFO. A crash takes the manager and the scheduler; the jobs go on.
type simulator struct {
	m     *joblife.Manager
	now   time.Time
	store []joblife.Record // what is durable
	pool  *pool.Pool
	queue []alloc.Request
	ends  map[jobid.ID]time.Time // of the jobs that run
}

func (s *simulator) connect() {
	nodes, err := rset.Parse([]byte(`{"version":1,"execution":{"R_lite":[{"rank":"0-3","children":{"core":"0-7"}}]}}`))
	check(err)
	s.pool, _ = pool.New(nodes, pool.Config{})
	s.pool.Update(pool.Change{Up: nodes.Ranks()})
	s.queue = nil
	s.step(joblife.SchedHello{PartialOK: true})
	s.step(joblife.SchedReady{})
	s.step(joblife.ExecHello{})
}

func (s *simulator) step(in joblife.Input) {
	check(s.m.Step(s.now, in))
	for rd := new(joblife.Ready); s.m.Ready(rd); {
		for _, r := range rd.Append {
			s.store = append(s.store, joblife.Record{Job: r.Job, Kind: r.Kind, Data: slices.Clone(r.Data)})
		}
		if rd.Hello != nil {
			for _, h := range rd.Hello.Responses {
				check(s.pool.Adopt(h.ID, h.R, h.Free))
			}
		}
		var next []joblife.Input
		for _, msg := range rd.Sched {
			switch msg := msg.(type) {
			case alloc.Request:
				s.queue = append(s.queue, msg)
			case alloc.Free:
				_, err := s.pool.Free(msg.ID, msg.R, msg.Final)
				check(err)
			}
		}
		for _, msg := range rd.Exec {
			start, kind := msg.(exec.Start), exec.ResponseReattached
			if _, runs := s.ends[start.ID]; !runs {
				spec, _ := jobspec.Parse(start.Jobspec)
				s.ends[start.ID], kind = s.now.Add(spec.Duration()), exec.ResponseStart
			}
			next = append(next, joblife.ExecResponse{ID: start.ID, Type: kind})
		}
		check(s.m.Done(rd.Seq))
		for len(s.queue) > 0 {
			id := s.queue[0].ID
			spec, _ := jobspec.Parse(s.queue[0].Jobspec)
			request, err := pool.NewRequest(spec)
			check(err)
			r, err := s.pool.Alloc(id, request, eventlog.FromTime(s.now))
			if err != nil {
				break // not enough nodes
			}
			s.queue = s.queue[1:]
			next = append(next, joblife.SchedResponse{ID: id, R: r})
		}
		for _, in := range next {
			check(s.m.Step(s.now, in))
		}
	}
}

// end ends the job that ends next.
func (s *simulator) end() {
	id := slices.MinFunc(slices.Sorted(maps.Keys(s.ends)), func(a, b jobid.ID) int { return s.ends[a].Compare(s.ends[b]) })
	s.now = s.ends[id]
	delete(s.ends, id)
	s.step(joblife.ExecResponse{ID: id, Type: exec.ResponseFinish})
	s.step(joblife.ExecResponse{ID: id, Type: exec.ResponseRelease, Final: true})
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func Example_simulator() {
	start := time.Unix(1_700_000_000, 0)
	s := &simulator{now: start, ends: make(map[jobid.ID]time.Time)}
	s.m, _ = joblife.New(joblife.Config{})
	s.connect()
	for i, nodes := range []int64{2, 3, 1, 4} {
		spec, _ := jobspec.New(jobspec.Job{Nodes: nodes, Exclusive: true, Duration: time.Duration(i+1) * time.Hour, Command: []string{"app"}})
		text, _ := spec.MarshalJSON()
		s.step(joblife.Submit{ID: jobid.ID(i + 1), Jobspec: text, Urgency: jobstate.UrgencyDefault})
	}
	s.end()
	m, left, err := joblife.Restore(s.now, joblife.Config{}, all(s.store)) // after a crash
	check(err)
	fmt.Println("active:", left.Jobs, "running:", left.Running)
	s.m = m
	for s.connect(); len(s.ends) > 0; s.end() {
	}
	for v := range m.Jobs(jobstate.StateInactive) {
		result, _ := v.Result()
		fmt.Print(v.ID(), " ", result, ", ")
	}
	fmt.Println(s.now.Sub(start))
	// Output:
	// active: [ƒ3 ƒ4 ƒ5] running: [ƒ3 ƒ4]
	// ƒ2 COMPLETED, ƒ3 COMPLETED, ƒ4 COMPLETED, ƒ5 COMPLETED, 8h0m0s
}
