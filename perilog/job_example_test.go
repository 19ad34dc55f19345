package perilog_test

import (
	"fmt"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/rset"
)

// A job on three nodes: each node goes back to the scheduler when its epilog
// ends, and the one that hangs holds nothing but itself.
func ExampleJob() {
	r, err := rset.Parse([]byte(`{"version":1,"execution":{"R_lite":[{"rank":"0-2","children":{"core":"0-3"}}]}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	config := perilog.Config{Epilogs: []perilog.ActionConfig{{Kind: perilog.RunEpilog, PerRank: true, Timeout: 600, KillTimeout: 60}}}
	job, err := perilog.NewJob(config, perilog.JobSpec{RunJob: perilog.RunJob{Job: 1, R: r}})
	if err != nil {
		fmt.Println(err)
		return
	}
	ledger := rset.NewLedger(r)

	// do stores what the job posts, gives it back, and acts.
	do := func(now eventlog.Timestamp, events ...eventlog.Entry) {
		for len(events) > 0 {
			for _, e := range events { // they are in the log by now
				if _, err := job.Apply(now, e); err != nil {
					fmt.Println(err)
				}
			}
			effects := job.Take()
			for _, q := range effects.Requests {
				fmt.Println(now, q.Kind, q.Action, "on", q.Ranks)
			}
			events = effects.Post
			if f := job.Feed(ledger); !f.IsEmpty() {
				fmt.Println(now, "free", f.R, "final", f.Final)
			}
		}
	}
	epilog := perilog.Key{Kind: jobstate.ActionEpilog, Description: "job-manager.epilog"}
	exited := func(now eventlog.Timestamp, rank uint32) {
		job.Report(now, epilog, perilog.Report{Kind: perilog.ReportExited, Rank: rank})
		do(now, job.Take().Post...)
	}

	do(10, eventlog.Entry{Timestamp: 10, Name: "alloc"})
	do(11, eventlog.Entry{Timestamp: 11, Name: "start"})
	do(20, eventlog.Entry{Timestamp: 20, Name: "finish", Context: []byte(`{"status":0}`)})
	do(21, eventlog.Entry{Timestamp: 21, Name: "release", Context: []byte(`{"ranks":"all","final":true}`)})
	exited(30, 2)
	exited(35, 0)
	deadline, _ := job.Deadline()
	fmt.Println("rank 1 has until", deadline)
	exited(400, 1)

	// Output:
	// 20.0 launch epilog job-manager.epilog on 0-2
	// 30.0 free rank2/core[0-3] final false
	// 35.0 free rank0/core[0-3] final false
	// rank 1 has until 620.0
	// 400.0 free rank1/core[0-3] final true
}
