package perilog_test

import (
	"fmt"
	"time"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/rset"
)

// A job on three nodes: each node goes back to the scheduler when its epilog ends,
// and the one that hangs holds nothing but itself.
func Example() {
	r, err := rset.Parse([]byte(`{"version":1,"execution":{"R_lite":[{"rank":"0-2","children":{"core":"0-3"}}]}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	config := perilog.Config{Epilogs: []perilog.ActionConfig{{Command: []string{"scrub"}, PerRank: true, Timeout: fsd.Duration(10 * time.Minute)}}}
	job, err := perilog.NewJob(&config, perilog.Spec{ID: 1, R: r})
	if err != nil {
		fmt.Println(err)
		return
	}
	var log []byte // what is durable

	// act does what the job wants done: the log first.
	act := func() {
		todo := job.Take()
		for _, record := range todo.Post {
			if log, err = eventlog.AppendEntry(log, record.Entry); err != nil {
				fmt.Println(err)
			}
		}
		for _, l := range todo.Launch {
			fmt.Println("launch", l.Command, "on ranks", l.Ranks, "attempt", l.Attempt)
		}
		if f := todo.Free; !f.IsEmpty() {
			fmt.Println("free", f.R, "final", f.Final)
		}
	}
	event := func(t eventlog.Timestamp, name, context string) {
		if _, err := job.Apply(t, eventlog.Entry{Timestamp: t, Name: name, Context: []byte(context)}); err != nil {
			fmt.Println(err) // refused, and nothing has changed
		}
		act()
	}
	exited := func(t eventlog.Timestamp, rank uint32) {
		epilog := perilog.Key{Kind: jobstate.ActionEpilog, Description: "job-manager.epilog"}
		job.Report(t, perilog.Report{Action: epilog, Attempt: 1, Kind: perilog.ReportExited, Rank: rank})
		act()
	}

	event(1, "submit", `{"userid":5588,"urgency":16,"flags":0,"version":1}`)
	event(2, "validate", "")
	event(3, "depend", "")
	event(4, "priority", `{"priority":16}`)
	event(5, "alloc", "")
	event(6, "start", "")
	event(20, "finish", `{"status":0}`)
	event(21, "release", `{"ranks":"all","final":true}`)
	exited(30, 2)
	exited(35, 0)
	deadline, _ := job.Deadline()
	fmt.Println("rank 1 has until", deadline)
	exited(400, 1)
	fmt.Println(job.State().State())

	// Output:
	// launch [scrub] on ranks 0-2 attempt 1
	// free rank2/core[0-3] final false
	// free rank0/core[0-3] final false
	// rank 1 has until 620.0
	// free rank1/core[0-3] final true
	// INACTIVE
}
