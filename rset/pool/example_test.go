package pool_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/pool"
)

const nodesOfExample = `{"version":1,"execution":{"R_lite":[{"rank":"0-3","children":{"core":"0-7","gpu":"0-1"}}],
	"starttime":0,"expiration":0,"nodelist":["n[0-3]"],"properties":{"batch":"1-3"}}}`

// exampleRequest returns a request for nodes with 4 cores each, for a minute.
func exampleRequest(nodes int) *pool.Request {
	spec, err := jobspec.Parse(fmt.Appendf(nil, `{"version":1,
		"resources":[{"type":"node","count":%d,"with":[{"type":"slot","count":1,"label":"task","with":[{"type":"core","count":4}]}]}],
		"tasks":[{"command":["app"],"slot":"task","count":{"per_slot":1}}],
		"attributes":{"system":{"duration":60,"constraints":{"properties":["batch"]}}}}`, nodes))
	if err != nil {
		panic(err)
	}
	q, err := pool.NewRequest(spec)
	if err != nil {
		panic(err)
	}
	return q
}

func examplePool() *pool.Pool {
	inventory, err := rset.Parse([]byte(nodesOfExample))
	if err != nil {
		panic(err)
	}
	p, err := pool.New(inventory, pool.Config{MaxProperties: 100})
	if err != nil {
		panic(err)
	}
	if err := p.Update(pool.Change{Up: inventory.Ranks()}); err != nil {
		panic(err)
	}
	return p
}

// A job gets resources, another one has to wait, and gets them as the first one
// frees its nodes one by one.
func Example() {
	p := examplePool()
	first, err := p.Alloc(1, exampleRequest(3), 1000)
	fmt.Println(first, first.Nodelist(), first.Expiration(), err)
	fmt.Println(p.Feasible(exampleRequest(4)))

	// The nodes have room for two more such jobs, one beside the other.
	_, err = p.Alloc(2, exampleRequest(3), 1010)
	fmt.Println(err)
	_, err = p.Alloc(3, exampleRequest(2), 1020)
	fmt.Println(err)
	at, err := p.Plan(3, exampleRequest(2), 1020)
	fmt.Println(at, err)

	node, err := first.Restrict(idset.Of(2, 3))
	fmt.Println(node, err)
	_, err = p.Free(1, node, false)
	fmt.Println(err)
	second, err := p.Alloc(3, exampleRequest(2), 1030)
	fmt.Println(second, err)
	// Output:
	// rank[1-3]/core[0-3] n[1-3] 1060.0 <nil>
	// pool: infeasible: request for 4 nodes of 1 slot of 4 cores, constrained: room for 3
	// <nil>
	// pool: resources are busy
	// 1060.0 <nil>
	// rank[2-3]/core[0-3] <nil>
	// <nil>
	// rank[2-3]/core[0-3] <nil>
}

// EASY backfill: the first job that must wait is planned, and jobs behind it start if they
// end by then or take nothing that is planned.
func ExamplePool_Plan() {
	p := examplePool()
	try := func(id jobid.ID, j jobspec.Job) {
		j.Command = []string{"app"}
		spec, err := jobspec.New(j)
		if err != nil {
			panic(err)
		}
		q, err := pool.NewRequest(spec)
		if err != nil {
			panic(err)
		}
		r, err := p.Alloc(id, q, 1000)
		if !errors.Is(err, pool.ErrBusy) {
			fmt.Println(uint64(id), r, err)
		} else if id == 2 {
			at, err := p.Plan(id, q, 1000)
			fmt.Println(uint64(id), "starts at", at, err)
		} else {
			fmt.Println(uint64(id), "waits")
		}
	}
	try(1, jobspec.Job{Nodes: 3, Cores: 8, Duration: time.Minute})
	try(2, jobspec.Job{Nodes: 4, Cores: 6, Duration: time.Hour})
	try(3, jobspec.Job{Cores: 4, Duration: time.Hour})   // would delay job 2
	try(4, jobspec.Job{Cores: 4, Duration: time.Minute}) // ends before
	try(5, jobspec.Job{Cores: 2, Duration: time.Hour})   // job 2 leaves two cores
	// Output:
	// 1 rank[0-2]/core[0-7] <nil>
	// 2 starts at 1060.0 <nil>
	// 3 waits
	// 4 rank3/core[0-3] <nil>
	// 5 rank3/core[4-5] <nil>
}

// After a restart the scheduler learns of the jobs that are there.
func ExamplePool_Adopt() {
	p := examplePool()
	r, _ := p.Inventory().Restrict(idset.Of(1, 2))
	const first, second jobid.ID = 6731191091817518, 6731191091817519
	fmt.Println(p.Adopt(first, r, idset.Of(1)))
	for h := range p.Allocations() {
		fmt.Println(h.ID, h.R, "holds", h.Held)
	}
	// Another job that holds the same is adopted too, and reported.
	err := p.Adopt(second, r, nil)
	fmt.Println(err)
	fmt.Println(p.Allocated())
	fmt.Println(p.Available())
	fmt.Println(p.Check())
	// Output:
	// <nil>
	// ƒuZZybuNNy rank[1-2]/core[0-7],gpu[0-1] holds rank2/core[0-7],gpu[0-1]
	// pool: resources are held twice: jobs ƒuZZybuNNz and ƒuZZybuNNy both hold rank2/core[0-7],gpu[0-1]
	// rank[1-2]/core[0-7],gpu[0-1]
	// rank[0,3]/core[0-7],gpu[0-1]
	// <nil>
}

func ExamplePool_Update() {
	p := examplePool()
	fmt.Println(p.Update(pool.Change{Down: idset.Of(0), Shrink: idset.Of(3), AddProperties: map[string]*idset.Set{"debug": idset.Of(1)}}))
	fmt.Println(p.Update(pool.Change{Up: idset.Of(2, 3)}))
	fmt.Println(p.Available())
	fmt.Println(p.Down())

	// Node 3 comes back with more cores, and the time of the instance ends.
	node, _ := rset.Parse([]byte(`{"version":1,"execution":{"R_lite":[{"rank":"3","children":{"core":"0-15"}}],"nodelist":["n3"]}}`))
	end := eventlog.Timestamp(2000)
	fmt.Println(p.Update(pool.Change{Grow: node, Up: idset.Of(3), Expiration: &end}))
	fmt.Println(p.Available())
	_, err := p.Alloc(1, exampleRequest(1), 2000)
	fmt.Println(errors.Is(err, pool.ErrExpired), err)
	// Output:
	// <nil>
	// pool: invalid argument: up: ranks 3 are not in the inventory
	// rank[1-2]/core[0-7],gpu[0-1]
	// rank0/core[0-7],gpu[0-1]
	// <nil>
	// rank[1-2]/core[0-7],gpu[0-1] rank3/core[0-15]
	// true pool: the pool has expired at 2000.0
}

// What would be if the job ended.
func ExamplePool_Clone() {
	p := examplePool()
	_, err := p.Alloc(1, exampleRequest(3), 1000)
	fmt.Println(err)
	then := p.Clone()
	rest, err := then.Free(1, nil, true)
	fmt.Println(rest, err)
	fmt.Println(p.Available())
	fmt.Println(then.Available())
	// Output:
	// <nil>
	// rank[1-3]/core[0-3] <nil>
	// rank0/core[0-7],gpu[0-1] rank[1-3]/core[4-7],gpu[0-1]
	// rank[0-3]/core[0-7],gpu[0-1]
}
