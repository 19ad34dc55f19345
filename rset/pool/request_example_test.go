package pool_test

import (
	"errors"
	"fmt"

	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/rset/pool"
)

func ExampleNewRequest() {
	request := func(resources, constraints string) (*pool.Request, error) {
		spec, err := jobspec.Parse(fmt.Appendf(nil, `{"version":1,"resources":[%s],
			"tasks":[{"command":["app"],"slot":"task","count":{"per_slot":1}}],
			"attributes":{"system":{"duration":3600,"constraints":%s}}}`, resources, constraints))
		if err != nil {
			return nil, err
		}
		return pool.NewRequest(spec)
	}
	q, err := request(`{"type":"node","count":4,"with":[{"type":"slot","count":2,"label":"task","with":[
		{"type":"core","count":4},{"type":"gpu","count":1}]}]}`, `{"properties":["ssd","^slowgpu"]}`)
	fmt.Println(q, q.Duration(), err)

	_, err = request(`{"type":"slot","count":2,"label":"task","with":[{"type":"core","count":1},
		{"type":"memory","count":4,"unit":"GB"}]}`, `{}`)
	fmt.Println(err)
	_, err = request(`{"type":"slot","count":2,"label":"task","with":[{"type":"core","count":1}]}`,
		`{"and":[{"hostlist":["n[0-3"]}]}`)
	fmt.Println(errors.Is(err, pool.ErrRequest))
	fmt.Println(err)
	// Output:
	// 4 nodes of 2 slots of 4 cores, 1 gpu, constrained 1h0m0s <nil>
	// pool: invalid request: resources[0].with[1].unit: units are not supported
	// true
	// pool: invalid request: attributes.system.constraints.and[0].hostlist[0]: offset 21: hostlist: syntax error: offset 5: bracket is not closed in "n[0-3"
}

func ExampleParseAcquire() {
	first, err := pool.ParseAcquire([]byte(`{"resources":{"version":1,"execution":{
		"R_lite":[{"rank":"0-3","children":{"core":"0-7"}}],"starttime":0,"expiration":0}},"up":"0-1"}`))
	if err != nil {
		panic(err)
	}
	p, err := pool.New(first.Resources, pool.Config{})
	if err != nil {
		panic(err)
	}
	fmt.Println(p.Update(first.Change), p.Available())

	next, err := pool.ParseAcquire([]byte(`{"up":"2","down":"1"}`))
	fmt.Println(err, p.Update(next.Change), p.Available())

	_, err = pool.ParseAcquire([]byte(`{"up":"2-","down":"1"}`))
	fmt.Println(err)
	// Output:
	// <nil> rank[0-1]/core[0-7]
	// <nil> <nil> rank[0,2]/core[0-7]
	// pool: invalid response to resource.acquire: up: offset 6: idset: syntax error: offset 2: empty element in "2-"
}
