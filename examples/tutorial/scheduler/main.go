package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
	"github.com/joblife/joblife/rset/pool"
	"github.com/joblife/joblife/rset/sched"
)

// shortest starts short jobs first.
type shortest struct{}

func (shortest) Schedule(p *sched.Pass) {
	for _, job := range slices.SortedStableFunc(p.Jobs(), shorter) {
		p.Start(job.ID) // if it fits
	}
}

func shorter(a, b sched.Job) int { return cmp.Compare(a.Request.Duration(), b.Request.Duration()) }

func main() {
	s := sched.New(sched.Config{Policy: shortest{}})
	cores := map[string]*idset.Set{"core": idset.Range(0, 7)}
	nodes, err := rset.New(rset.Config{Entries: []rset.Entry{{Ranks: idset.Range(0, 3), Children: cores}}})
	check(err)
	check(s.Acquire(pool.Acquire{Resources: nodes, Change: pool.Change{Up: nodes.Ranks()}}))
	check(s.Hello(alloc.Announcement{})) // no job has nodes yet

	for i, n := range []int64{4, 2, 1, 2} {
		job, err := jobspec.New(jobspec.Job{Nodes: n, Exclusive: true, Duration: time.Duration(4-i) * time.Hour, Command: []string{"app"}})
		check(err)
		text, err := job.MarshalJSON()
		check(err)
		check(s.Handle(alloc.Request{JobInfo: alloc.JobInfo{ID: jobid.ID(1 + i), Priority: 16}, Jobspec: text}))
	}

	var running []alloc.Response // by the time of their end
	for now := eventlog.Timestamp(0); ; {
		for _, r := range s.Decide(now) {
			fmt.Printf("%v h: job %d starts on %v\n", now/3600, r.ID, r.R)
			running = append(running, r)
		}
		if len(running) == 0 {
			return
		}
		slices.SortFunc(running, func(a, b alloc.Response) int { return cmp.Compare(a.R.Expiration(), b.R.Expiration()) })
		ended := running[0]
		running, now = running[1:], ended.R.Expiration()
		check(s.Handle(alloc.Free{ID: ended.ID, R: ended.R, Final: true}))
	}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
