package perilog_test

import (
	"fmt"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/rset"
)

// A site cleans each node after the epilog, while the job may still hold others.
// Feed is not called: what has left the job's holds is handed to housekeeping,
// whose fragments go to the scheduler. Its log is durable before anything is
// handed over, and what was handed over is what does not wait in it any more, so
// that a restart at any point frees nothing twice or too early.
func Example_epilogThenHousekeeping() {
	r, err := rset.Parse([]byte(`{"version":1,"execution":{"R_lite":[{"rank":"0-2","children":{"core":"0-3"}}]}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	config := perilog.Config{Epilogs: []perilog.ActionConfig{{Kind: perilog.RunEpilog, PerRank: true, Timeout: 600}}}
	spec := perilog.JobSpec{RunJob: perilog.RunJob{Job: 1, R: r}}
	each := fsd.Duration(0)
	var jobLog, hkLog []byte // what is durable

	job, _ := perilog.NewJob(config, spec)
	hk, _ := perilog.NewHousekeeping(1, perilog.HousekeepingJob{Job: 1, R: r, ReleaseAfter: &each}, perilog.HousekeepingOptions{})

	// settle does all that follows from an input.
	settle := func(now eventlog.Timestamp) {
		for e := job.Take(); !e.IsEmpty(); e = job.Take() {
			for _, event := range e.Post {
				jobLog, _ = eventlog.AppendEntry(jobLog, event)
				_, _ = job.Apply(now, event)
			}
			for _, q := range e.Requests {
				fmt.Println(now, q.Kind, q.Action, "on", q.Ranks)
			}
		}
		if ready := job.Holds().Ready(hk.Status(now).Waiting); !ready.IsEmpty() {
			_, _ = hk.Start(now, perilog.Spec{Ranks: ready, Timeout: 600})
		}
		e := hk.Take()
		hkLog = append(hkLog, e.Log...)
		for _, q := range e.Requests {
			fmt.Println(now, q.Kind, "housekeeping on", q.Ranks)
		}
		for _, f := range e.Free {
			fmt.Println(now, "free", f.R.Ranks(), "final", f.Final)
		}
	}
	logged := func(now eventlog.Timestamp, name, context string) {
		e := eventlog.Entry{Timestamp: now, Name: name, Context: []byte(context)}
		jobLog, _ = eventlog.AppendEntry(jobLog, e)
		_, _ = job.Apply(now, e)
		settle(now)
	}
	epilog := perilog.Key{Kind: jobstate.ActionEpilog, Description: "job-manager.epilog"}
	ended := func(rank uint32) perilog.Report { return perilog.Report{Kind: perilog.ReportExited, Rank: rank} }

	logged(2, "alloc", "")
	logged(3, "start", "")
	logged(20, "finish", `{"status":0}`)
	logged(21, "release", `{"ranks":"all","final":true}`)
	job.Report(30, epilog, ended(0))
	settle(30)
	hk.Report(40, ended(0))
	settle(40)
	job.Report(41, epilog, ended(1))
	settle(41)

	fmt.Println("a restart")
	job, _ = perilog.RecoverJob(50, config, spec, jobLog)
	hk, _ = perilog.ReplayHousekeeping(hkLog, perilog.HousekeepingOptions{})
	fmt.Println(job.Unresolved()[0].Action, "on", job.Unresolved()[0].Ranks, "and housekeeping on", hk.Unresolved())
	_ = job.Rerun(50, epilog)
	_ = hk.Reattach(50, perilog.Spec{Timeout: 600})
	settle(50)
	hk.Report(60, ended(1))
	settle(60)
	job.Report(70, epilog, ended(2))
	settle(70)
	fmt.Println("the job is over:", job.MayFree()) // for its own log; housekeeping has another
	hk.Report(80, ended(2))
	settle(80)

	// Output:
	// 20.0 launch epilog job-manager.epilog on 0-2
	// 30.0 launch housekeeping on 0
	// 40.0 free 0 final false
	// 41.0 launch housekeeping on 1
	// a restart
	// epilog job-manager.epilog on 2 and housekeeping on 1
	// 50.0 launch epilog job-manager.epilog on 2
	// 60.0 free 1 final false
	// 70.0 launch housekeeping on 2
	// the job is over: true
	// 80.0 free 2 final true
}
