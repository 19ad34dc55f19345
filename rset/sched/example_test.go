package sched_test

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
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

// schedule serves a manager that speaks JSON lines, first come, first served.
func schedule(in io.Reader, out io.Writer, now func() eventlog.Timestamp) error {
	s := sched.New(sched.Config{Annotate: true, MaxJobs: 1 << 16})
	b, failed := alloc.AppendMessage(nil, alloc.TopicHello, alloc.Hello{PartialOK: true})
	add := func(line []byte, err error) { b, failed = line, cmp.Or(failed, err) }
	lines := bufio.NewScanner(in)
	for lines.Buffer(nil, 16<<20); ; {
		_, err := out.Write(b)
		if failed = cmp.Or(failed, err); failed != nil || !lines.Scan() {
			return cmp.Or(failed, lines.Err())
		}
		b = b[:0]
		l, m, err := alloc.ParseFromManager(lines.Bytes())
		switch {
		case err != nil:
			s.Missed(l)
		case l.Topic == alloc.TopicHello && l.Errnum == alloc.NoData:
			var ready alloc.Ready
			if ready, err = s.EndHello(); err == nil {
				add(alloc.AppendMessage(b, alloc.TopicReady, ready))
			}
		case l.Errnum != 0:
			return fmt.Errorf("%s failed: %s", l.Topic, l.Errstr)
		case l.Topic == pool.TopicAcquire:
			var a pool.Acquire
			if a, err = pool.ParseAcquire(l.Payload); err == nil {
				err = s.Acquire(a)
			}
		default:
			err = s.Handle(m)
		}
		if err != nil { // EINVAL
			add(alloc.Line{Topic: cmp.Or(l.Topic, "sched.error"), Errnum: 22, Errstr: sched.Reason(err)}.AppendText(b))
		} else if l.Topic == alloc.TopicExpiration || l.Topic == alloc.TopicFeasibility {
			add(alloc.Line{Topic: l.Topic}.AppendText(b))
		}
		for _, r := range s.Decide(now()) {
			add(alloc.AppendMessage(b, alloc.TopicAlloc, r))
		}
	}
}

func Example() {
	const node, spec = `{"version":1,"execution":{"R_lite":[{"rank":"0","children":{"core":"0-1"}}]}}`,
		`{"version":1,"resources":[{"type":"slot","count":1,"label":"a","with":[{"type":"core","count":2}]}],"tasks":[{"command":["a"],"slot":"a","count":{"per_slot":1}}],"attributes":{"system":{"duration":60}}}`
	manager := strings.NewReader(`{"topic":"resource.acquire","payload":{"resources":` + node + `,"up":"0"}}
{"topic":"job-manager.sched-hello","errnum":61}
{"topic":"sched.alloc","payload":{"id":25165824,"priority":16,"userid":1,"jobspec":` + spec + `}}
{"topic":"sched.alloc","payload":{"id":50331648,"priority":16,"userid":1,"jobspec":` + spec + `}}
{"topic":"sched.free","payload":{"id":50331648,"R":` + node + `,"final":true}}
{"topic":"sched.free","payload":{"id":25165824,"R":` + node + `,"final":true}}
`)
	if err := schedule(manager, os.Stdout, func() eventlog.Timestamp { return 1.7e9 }); err != nil {
		fmt.Println(err)
	}
	// Output:
	// {"topic":"job-manager.sched-hello","payload":{"partial-ok":true}}
	// {"topic":"job-manager.sched-ready","payload":{"mode":"unlimited"}}
	// {"topic":"sched.alloc","payload":{"id":25165824,"type":0,"annotations":{"sched":{"resource_summary":"rank0/core[0-1]"}},"R":{"version":1,"execution":{"R_lite":[{"rank":"0","children":{"core":"0-1"}}],"starttime":1700000000.0,"expiration":1700000060.0,"nslots":1}}}}
	// {"topic":"sched.free","errnum":22,"errstr":"job has no resources: ƒ5Sxr3"}
	// {"topic":"sched.alloc","payload":{"id":50331648,"type":0,"annotations":{"sched":{"resource_summary":"rank0/core[0-1]"}},"R":{"version":1,"execution":{"R_lite":[{"rank":"0","children":{"core":"0-1"}}],"starttime":1700000000.0,"expiration":1700000060.0,"nslots":1}}}}
}

// shortest starts short jobs first. The first job of the queue has a reservation, so that
// it does not wait for ever.
type shortest struct{}

func (shortest) Schedule(p *sched.Pass) {
	jobs := slices.Collect(p.Jobs())
	if len(jobs) > 0 && !p.Start(jobs[0].ID) {
		p.Reserve(jobs[0].ID)
	}
	slices.SortStableFunc(jobs, func(a, b sched.Job) int { return cmp.Compare(a.Request.Duration(), b.Request.Duration()) })
	for _, j := range jobs {
		p.Start(j.ID) // if it runs, it stays as it is
	}
}

// A policy of your own: the first job starts, then the shortest.
func ExamplePolicy() {
	s := sched.New(sched.Config{Policy: shortest{}})
	nodes := try(rset.Parse([]byte(`{"version":1,"execution":{"R_lite":[{"rank":"0-3","children":{"core":"0-7"}}]}}`)))
	check(s.Acquire(pool.Acquire{Resources: nodes, Change: pool.Change{Up: nodes.Ranks()}}))
	try(s.EndHello())
	for i, hours := range []int{4, 3, 2, 1} {
		text := try(try(jobspec.New(jobspec.Job{Nodes: 2, Exclusive: true, Duration: time.Duration(hours) * time.Hour, Command: []string{"app"}})).MarshalJSON())
		check(s.Handle(alloc.Request{JobInfo: alloc.JobInfo{ID: jobid.ID(25165824 * (i + 1)), Priority: 16}, Jobspec: text}))
	}
	for _, r := range s.Decide(1.7e9) {
		fmt.Println(r.ID, r.R)
	}
	for j := range s.Jobs() {
		fmt.Println(j.ID, "waits for", j.Request)
	}
	// Output:
	// ƒ3DyvX rank[0-1]/core[0-7]
	// ƒ9tvh5 rank[2-3]/core[0-7]
	// ƒ5Sxr3 waits for 2 whole nodes of 1 slot of 1 core
	// ƒ7fwmZ waits for 2 whole nodes of 1 slot of 1 core
}

// limit starts jobs in the order of the queue, but no user has more nodes than that.
type limit int

func (most limit) Schedule(p *sched.Pass) {
	has := make(map[uint32]*idset.Set) // by user
	for j := range p.Running() {
		a, _ := p.Pool().Allocation(j.ID)
		has[j.UserID] = idset.Union(has[j.UserID], a.Held.Ranks())
	}
	for j := range p.Jobs() {
		r, err := p.Pool().Alloc(j.ID, j.Request, p.Now()) // what Start would give
		if err != nil {
			return // or those behind it delay it
		}
		if nodes := idset.Union(has[j.UserID], r.Ranks()); nodes.Len() <= int(most) && p.Start(j.ID) {
			has[j.UserID] = nodes
		}
	}
}

// A limit of nodes for each user. A job that asks for more waits for ever: refuse it when it
// is submitted.
func ExamplePolicy_limit() {
	s := sched.New(sched.Config{Policy: limit(2)})
	nodes := try(rset.Parse([]byte(`{"version":1,"execution":{"R_lite":[{"rank":"0-3","children":{"core":"0-7"}}]}}`)))
	check(s.Acquire(pool.Acquire{Resources: nodes, Change: pool.Change{Up: nodes.Ranks()}}))
	try(s.EndHello())
	for i, user := range []uint32{1000, 1000, 1000, 1001} {
		text := try(try(jobspec.New(jobspec.Job{Nodes: 1, Exclusive: true, Command: []string{"app"}})).MarshalJSON())
		check(s.Handle(alloc.Request{JobInfo: alloc.JobInfo{ID: jobid.ID(25165824 * (i + 1)), Priority: 16, UserID: user}, Jobspec: text}))
	}
	for _, r := range s.Decide(1.7e9) {
		fmt.Println(r.ID, r.R)
	}
	for j := range s.Jobs() {
		fmt.Println(j.ID, "of user", j.UserID, "waits")
	}
	// Output:
	// ƒ3DyvX rank0/core[0-7]
	// ƒ5Sxr3 rank1/core[0-7]
	// ƒ9tvh5 rank2/core[0-7]
	// ƒ7fwmZ of user 1000 waits
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
