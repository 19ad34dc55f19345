package rset_test

import (
	"fmt"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/hostlist"
)

const fourNodes = `{"version":1,"execution":{"R_lite":[` +
	`{"rank":"0-2","children":{"core":"0-7"}},{"rank":"3","children":{"core":"0-7","gpu":"0-1"}}],` +
	`"starttime":1700000000,"expiration":1700003600,"nodelist":["fluke[0-3]"]}}`

func Example() {
	r, err := rset.Parse([]byte(fourNodes))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r)
	fmt.Println(r.Len(), "nodes,", r.Count("core"), "cores,", r.Count("gpu"), "gpus")

	fragment, _ := r.Restrict(idset.Of(1, 3))
	fmt.Println(string(fragment.AppendJSON(nil)))
	// Output:
	// rank[0-2]/core[0-7] rank3/core[0-7],gpu[0-1]
	// 4 nodes, 32 cores, 2 gpus
	// {"version":1,"execution":{"R_lite":[{"rank":"1","children":{"core":"0-7"}},{"rank":"3","children":{"core":"0-7","gpu":"0-1"}}],"starttime":1700000000.0,"expiration":1700003600.0,"nodelist":["fluke[1,3]"]}}
}

func ExampleSubtract() {
	all, _ := rset.Parse([]byte(fourNodes))
	used, _ := rset.Parse([]byte(`{"version":1,"execution":{"R_lite":[{"rank":"0-1,3","children":{"core":"0-3"}}]}}`))
	free, unknown, err := rset.Subtract(all, used)
	fmt.Println(free, unknown.IsEmpty(), err)
	// Output:
	// rank[0-1]/core[4-7] rank2/core[0-7] rank3/core[4-7],gpu[0-1] true <nil>
}

func ExampleLedger() {
	r, _ := rset.Parse([]byte(fourNodes))
	l := rset.NewLedger(r, "rack0/ssd0")
	show := func(f rset.Fragment, err error) {
		fmt.Printf("%s %q final=%v err=%v\n", f.R.Ranks(), f.Named, f.Final, err)
	}
	show(l.Free(idset.Of(0, 2)))
	show(l.Free(idset.Of(2)))
	show(l.Free(idset.Of(1, 3)))
	fmt.Printf("held %q, final %v\n", l.Held(), l.IsFinal())
	show(l.Free(nil, "rack0/ssd0"))
	// Output:
	// 0,2 [] final=false err=<nil>
	//  [] final=false err=rset: no such resources: ranks freed before 2
	// 1,3 [] final=false err=<nil>
	// held "", final false
	//  ["rack0/ssd0"] final=true err=<nil>
}

// Four nodes of eight cores, for an hour.
func ExampleNew() {
	cores := map[string]*idset.Set{"core": idset.Range(0, 7)}
	r, err := rset.New(rset.Config{
		Entries:    []rset.Entry{{Ranks: idset.Range(0, 3), Children: cores}},
		Hosts:      hostlist.Of("a1", "a2", "a3", "b1"),
		Properties: map[string]*idset.Set{"ssd": idset.Of(2, 3)},
		Start:      1_700_000_000, Expiration: 1_700_003_600, Slots: 8,
	})
	fmt.Println(r, err)
	fmt.Println(string(r.AppendJSON(nil)))
	// Output:
	// rank[0-3]/core[0-7] <nil>
	// {"version":1,"execution":{"R_lite":[{"rank":"0-3","children":{"core":"0-7"}}],"starttime":1700000000.0,"expiration":1700003600.0,"nslots":8,"nodelist":["a[1-3],b1"],"properties":{"ssd":"2-3"}}}
}

// An instance gives its nodes new ranks, by the order of its hosts.
func ExampleR_Rerank() {
	r, _ := rset.Parse([]byte(`{"version":1,"execution":{"R_lite":[{"rank":"3-4","children":{"core":"0"}},{"rank":"5","children":{"core":"0-1"}}],"nodelist":["n[1-3]"]}}`))
	hosts, _ := hostlist.Parse("n3,n1,n2")
	fmt.Println(r.Rerank(hosts))
	_, err := r.Rerank(hostlist.Of("n1", "n2", "n4"))
	fmt.Println(err)
	// Output:
	// rank0/core[0-1] rank[1-2]/core0 <nil>
	// rset: hosts do not match: unknown hosts: ["n4"]
}
