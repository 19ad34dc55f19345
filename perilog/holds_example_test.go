package perilog_test

import (
	"fmt"
	"strings"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/rset"
)

const exampleR = `{"version":1,"execution":{"R_lite":[{"rank":"0-3","children":{"core":"0-7"}}],"starttime":0,"expiration":0,"nodelist":["node[0-3]"]}}`

// Each rank goes back when its epilog has ended on it; the last fragment is
// final.
func ExampleHolds() {
	r, err := rset.Parse([]byte(exampleR))
	if err != nil {
		fmt.Println(err)
		return
	}
	holds, ledger := perilog.NewHolds(r, perilog.HoldsOptions{}), rset.NewLedger(r)
	log := `{"timestamp":1.0,"name":"alloc"}
{"timestamp":2.0,"name":"start"}
{"timestamp":3.0,"name":"finish","context":{"status":0}}
{"timestamp":3.5,"name":"epilog-start","context":{"description":"job-manager.epilog"}}
{"timestamp":4.0,"name":"release","context":{"ranks":"all","final":true}}
{"timestamp":5.0,"name":"epilog-release","context":{"description":"job-manager.epilog","ranks":"0,2-3","status":0}}
{"timestamp":9.0,"name":"epilog-finish","context":{"description":"job-manager.epilog","status":0}}
`
	for e, err := range eventlog.Entries([]byte(log)) {
		if err != nil {
			fmt.Println(err)
			return
		}
		if _, err := holds.Apply(e); err != nil {
			fmt.Println(err)
			return
		}
		if f := holds.Feed(ledger); !f.IsEmpty() {
			fmt.Printf("%v %s: %v, final %t\n", e.Timestamp, e.Name, f.R, f.Final)
		}
	}
	// Output:
	// 5.0 epilog-release: rank[0,2-3]/core[0-7], final false
	// 9.0 epilog-finish: rank1/core[0-7], final true
}

// What holds a rank, and since when, is what an administrator wants to know of a
// job that does not end.
func ExampleHolds_HoldersOf() {
	r, _ := rset.Parse([]byte(exampleR))
	holds := perilog.NewHolds(r, perilog.HoldsOptions{Named: []string{"rabbit0"}})
	for _, line := range strings.Split(`{"timestamp":1.0,"name":"alloc"}
{"timestamp":2.0,"name":"exception","context":{"type":"cancel","severity":0,"note":""}}
{"timestamp":2.5,"name":"epilog-start","context":{"description":"dws","ranks":"0","resources":["rabbit0"]}}`, "\n") {
		e, err := eventlog.Parse([]byte(line))
		if err == nil {
			_, err = holds.Apply(e)
		}
		if err != nil {
			fmt.Println(err)
			return
		}
	}
	for x := range holds.HoldersOf(0) {
		fmt.Printf("%v %q since %v: ranks %v, %q\n", x.Kind, x.Description, x.Since, x.Ranks, x.Named)
	}
	// Output:
	// epilog "dws" since 2.5: ranks 0, ["rabbit0"]
}

// The end of an epilog on one rank, as it stands in a log.
func ExampleActionRelease_Entry() {
	done := perilog.ActionRelease{Kind: jobstate.ActionEpilog, Description: "job-manager.epilog", Ranks: idset.Of(7)}
	e, err := done.Entry(1795226021.5)
	if err != nil {
		fmt.Println(err)
		return
	}
	line, err := eventlog.AppendEntry(nil, e)
	fmt.Printf("%s%v\n", line, err)
	// Output:
	// {"timestamp":1795226021.5,"name":"epilog-release","context":{"description":"job-manager.epilog","ranks":"7","status":0}}
	// <nil>
}

// A node failed in the prolog, the job goes on without it.
func ExampleParseFailedRanks() {
	e, err := eventlog.Parse([]byte(`{"timestamp":1.0,"name":"exception","context":{"type":"prolog","severity":1,"note":"","ranks":"3","nodelist":"node3","action":"drop"}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	failed, ok, err := perilog.ParseFailedRanks(e)
	fmt.Println(failed.Ranks, failed.Nodelist, failed.Action, ok, err)
	// Output:
	// 3 node3 drop true <nil>
}
