package perilog_test

import (
	"encoding/json"
	"fmt"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/joblife/joblife/perilog"
)

// A prolog on four nodes, of which one fails.
func ExampleRun() {
	run, err := perilog.NewRun(perilog.Spec{
		Kind: perilog.RunProlog, Job: 6731191091817518, Ranks: idset.Of(0, 1, 2, 3), PerRank: true,
		Command: []string{"/etc/flux/prolog"}, Timeout: 30 * fsd.Minute,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	act := func() {
		for _, q := range run.Requests() {
			switch q.Kind {
			case perilog.RequestLaunch:
				fmt.Println("launch", q.Command, "on", q.Ranks)
			case perilog.RequestSignal:
				fmt.Println("send signal", q.Signal, "to", q.Ranks)
			case perilog.RequestDrain:
				fmt.Printf("drain %s, mode %s: %s\n", q.Ranks, q.Mode, q.Reason)
			case perilog.RequestRaise:
				fmt.Printf("raise %s, severity %d: %s\n", q.Exception.Type, q.Exception.Severity, q.Exception.Note)
			}
		}
		for _, end := range run.AppendEnded(nil) {
			fmt.Println("rank", end.Rank, "ended:", end.End.Cause)
		}
	}
	_ = run.Start(1000)
	act()
	run.Report(1001, perilog.Report{Kind: perilog.ReportExited, Rank: 2})
	run.Report(1002, perilog.Report{Kind: perilog.ReportExited, Rank: 3, Status: 1 << 8})
	act()
	run.Report(1003, perilog.Report{Kind: perilog.ReportExited, Rank: 0})
	if deadline, ok := run.Deadline(); ok { // rank 1 says nothing
		run.Tick(deadline)
		act()
	}
	if deadline, ok := run.Deadline(); ok {
		run.Tick(deadline)
		act()
	}
	fmt.Println(run.Outcome().Verdict, run.Outcome().Elapsed())
	// Output:
	// launch [/etc/flux/prolog] on 0-3
	// drain 3, mode update: prolog failed for job ƒuZZybuNNy
	// rank 2 ended: ok
	// rank 3 ended: failed
	// send signal 15 to 1
	// rank 0 ended: ok
	// drain 1, mode update: prolog timed out for job ƒuZZybuNNy
	// raise prolog, severity 0: prolog exited with code=1 on rank 3; timed out on rank 1
	// rank 1 ended: timed out
	// failed 31m
}

// A user cancels the job while its prolog runs: nobody is drained.
func ExampleRun_Exception() {
	run, _ := perilog.NewRun(perilog.Spec{Kind: perilog.RunProlog, Job: 1, Ranks: idset.Of(0, 1), PerRank: true})
	_ = run.Start(1000)
	run.Requests()
	fmt.Println(run.Exception(1001, 0), run)
	run.Report(1002, perilog.Report{Kind: perilog.ReportExited, Rank: 0, Status: 15})
	run.Report(1002, perilog.Report{Kind: perilog.ReportExited, Rank: 1, Status: 15})
	for _, q := range run.Requests() {
		fmt.Println(q.Kind, q.Ranks)
	}
	fmt.Println(run.Outcome().Verdict, run.Outcome().Status)
	// Output:
	// applied prolog job-manager.prolog: canceled; active 0-1; fatal exception; signal 0-1; since 1000.0; at 1001.0; deadline 1061.0
	// signal 0-1
	// canceled 15
}

// A job that asked for 60 nodes goes on with 58.
func ExampleTolerate() {
	ranks := new(idset.Set)
	ranks.InsertRange(0, 59)
	run, _ := perilog.NewRun(perilog.Spec{
		Kind: perilog.RunProlog, Job: 1, Ranks: ranks, PerRank: true,
		Tolerate: perilog.Tolerate{Count: 10, Drop: true},
	})
	_ = run.Start(1000)
	run.Report(1001, perilog.Report{
		Kind: perilog.ReportOutput, Rank: 7, Line: []byte(`perilog-control: {"version":1,"note":"gpu 2 is gone"}`),
	})
	for rank := range ranks.All() {
		status := int32(0)
		if rank == 9 {
			status = 1 << 8
		}
		run.Report(1002, perilog.Report{Kind: perilog.ReportExited, Rank: rank, Status: status})
	}
	o := run.Outcome()
	fmt.Println(o.Verdict, o.Status, o.Failed)
	fmt.Println(o.Exception().Severity, string(o.Exception().Extra))
	fmt.Print(o.Detail)
	// Output:
	// tolerated 0 7,9
	// 2 {"ranks":"7,9","action":"drop"}
	// rank 7: reported node failure: "gpu 2 is gone"
	// rank 9: failed, status 256
}

func ExampleParseControl() {
	for _, line := range []string{
		`perilog-control: {"version":1,"failed":"3-4"}`,
		"the file systems are mounted",
		`perilog-control: {"version":2}`,
	} {
		c, ok, err := perilog.ParseControl([]byte(line))
		fmt.Println(ok, c.Ranks, err)
	}
	// Output:
	// true 3-4 <nil>
	// false  <nil>
	// false  perilog: control line: offset 28: version is not 1
}

func ExampleFromMap() {
	var m map[string]any // as a decoder of TOML would make it, too
	_ = json.Unmarshal([]byte(`{"job-manager": {
		"prolog": {"command": ["/etc/flux/prolog"], "per-rank": true, "timeout": "5m"},
		"housekeeping": {"command": ["/etc/flux/housekeeping"], "release-after": "30s"}
	}}`), &m)
	c, err := perilog.FromMap(m)
	fmt.Println(c.Prologs[0].Timeout, c.Prologs[0].KillTimeout, *c.Housekeeping.ReleaseAfter, err)

	m["job-manager"].(map[string]any)["prolog"].(map[string]any)["time-out"] = "5m"
	_, err = perilog.FromMap(m)
	fmt.Println(err)
	// Output:
	// 5m 1m 30s <nil>
	// perilog: job-manager.prolog.time-out: is not a known key
}
