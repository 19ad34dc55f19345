package perilog_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/joblife/joblife/jobstate/jobid"
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
	job, err := perilog.NewJob(&config, perilog.JobConfig{ID: 6731191091817518, R: r})
	if err != nil {
		fmt.Println(err)
		return
	}
	var log []byte // what is durable

	// act does what the job wants done: the log first.
	act := func(now eventlog.Timestamp) {
		todo := job.Take(now)
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
		act(t)
	}
	exited := func(t eventlog.Timestamp, rank uint32) {
		epilog := jobstate.ActionKey{Kind: jobstate.ActionEpilog, Description: "job-manager.epilog"}
		job.Report(t, perilog.Report{Action: epilog, Attempt: 1, Kind: perilog.ReportExited, Rank: rank})
		act(t)
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

// A reader of logs: the state of a job, what holds which node, and what is wrong
// with the log.
func show(id jobid.ID, log, allocated []byte) error {
	r, err := rset.Parse(allocated)
	if err != nil {
		return err
	}
	holds := perilog.NewHolds(id, r)
	for entry, err := range eventlog.Entries(log) {
		if err == nil {
			_, err = holds.Apply(entry)
		}
		if err != nil {
			return err
		}
	}
	job := holds.Job()
	fmt.Println(job.State(), "waits for", job.Waiting()) // CLEANUP waits for epilog scrub
	if result, ok := job.Result(); ok {
		fmt.Println(result) // COMPLETED
	}
	for h := range holds.Holders() {
		fmt.Println(h.Kind, h.Description, "holds ranks", h.Ranks) // epilog scrub holds ranks 1
	}
	for _, finding := range jobstate.Validate(log) {
		fmt.Println(finding) // line 11: free: error: the resources are freed early: epilog "scrub" has not finished
	}
	return nil
}

func ExampleHolds() {
	r := `{"version":1,"execution":{"R_lite":[{"rank":"0-3","children":{"core":"0-7"}}]}}`
	log := `{"timestamp":1.5,"name":"submit","context":{"userid":5588,"urgency":16,"flags":0,"version":1}}
{"timestamp":2.5,"name":"validate"}
{"timestamp":3.5,"name":"depend"}
{"timestamp":4.5,"name":"priority","context":{"priority":16}}
{"timestamp":5.5,"name":"alloc"}
{"timestamp":6.5,"name":"start"}
{"timestamp":9.5,"name":"finish","context":{"status":0}}
{"timestamp":9.6,"name":"epilog-start","context":{"description":"scrub"}}
{"timestamp":9.7,"name":"release","context":{"ranks":"all","final":true}}
{"timestamp":9.8,"name":"perilog-release","context":{"description":"scrub","kind":"epilog","ranks":"0,2-3","status":0}}
{"timestamp":9.9,"name":"free"}
`
	if err := show(6731191091817518, []byte(log), []byte(r)); err != nil {
		fmt.Println(err)
	}
	// Output:
	// CLEANUP waits for epilog scrub
	// COMPLETED
	// epilog scrub holds ranks 1
	// line 11: free: error: the resources are freed early: epilog "scrub" has not finished
}

// After a restart the log says which actions may still run, and where.
func ExampleRecoverJob() {
	r, _ := rset.Parse([]byte(`{"version":1,"execution":{"R_lite":[{"rank":"0-1","children":{"core":"0-3"}}]}}`))
	config := &perilog.Config{Epilogs: []perilog.ActionConfig{{Description: "scrub", Command: []string{"scrub"}, PerRank: true}}}
	log := `{"timestamp":1.5,"name":"submit","context":{"userid":5588,"urgency":16,"flags":0,"version":1}}
{"timestamp":2.5,"name":"validate"}
{"timestamp":3.5,"name":"depend"}
{"timestamp":4.5,"name":"priority","context":{"priority":16}}
{"timestamp":5.5,"name":"alloc"}
{"timestamp":6.5,"name":"start"}
{"timestamp":9.5,"name":"finish","context":{"status":0}}
{"timestamp":9.6,"name":"epilog-start","context":{"description":"scrub","per-rank":true,"attempt":1}}
{"timestamp":9.7,"name":"release","context":{"ranks":"all","final":true}}
{"timestamp":9.8,"name":"perilog-release","context":{"description":"scrub","kind":"epilog","ranks":"0","status":0}}
`
	job, err := perilog.RecoverJob(20, config, perilog.JobConfig{ID: 6731191091817518, R: r}, []byte(log), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, u := range job.Unresolved() {
		fmt.Println(u.Action, "was lost on ranks", u.Ranks, "since", u.Since)
		if err := job.Rerun(20, u.Action, u.Ranks); err != nil { // or Reattach, if it still runs
			fmt.Println(err)
		}
	}
	for _, l := range job.Take(20).Launch {
		fmt.Println("launch", l.Action, "on ranks", l.Ranks, "attempt", l.Attempt)
	}
	// Output:
	// epilog scrub was lost on ranks 1 since 9.5999999999999996
	// launch epilog scrub on ranks 1 attempt 2
}

// What a site may configure, beside commands. A file has the same keys.
func ExampleConfig() {
	minutes := func(n time.Duration) fsd.Duration { return fsd.Duration(n * time.Minute) }
	config := perilog.Config{
		Prologs: []perilog.ActionConfig{{Description: "check", PerRank: true, IgnoreControl: true}}, // its output is for people
		Epilogs: []perilog.ActionConfig{
			// The command on node 0 serves all, and holds a burst buffer. SIGKILL comes after five minutes.
			{Description: "stage-out", Leader: 0, Resources: []string{"rack0/ssd0"}, KillTimeout: minutes(5), Kill: true},
			// A node that is down runs it when it comes back.
			{Description: "scrub", PerRank: true, WaitOffline: true},
		},
		Housekeeping: &perilog.HousekeepingConfig{Timeout: minutes(60), KillTimeout: minutes(2)},
		Tolerate:     perilog.Tolerate{Fraction: 0.1, AnyFailure: true}, // even a prolog that exits with 1
	}
	fmt.Println(config.Check())
	text, err := json.Marshal(config)
	fmt.Println(string(text), err)
	// Output:
	// <nil>
	// {"prologs":[{"description":"check","per-rank":true,"ignore-control":true}],"epilogs":[{"description":"stage-out","resources":["rack0/ssd0"],"kill-timeout":"5m","kill":true},{"description":"scrub","per-rank":true,"wait-offline":true}],"housekeeping":{"timeout":"1h","kill-timeout":"2m"},"tolerate":{"fraction":0.1,"any-failure":true}} <nil>
}

// A prolog fails on one node of two, which is tolerated. Then an epilog holds what has no node.
func ExampleTolerate() {
	r, _ := rset.Parse([]byte(`{"version":1,"execution":{"R_lite":[{"rank":"0-1","children":{"core":"0-3"}}]}}`))
	config := &perilog.Config{
		Prologs:  []perilog.ActionConfig{{Description: "check", PerRank: true}},
		Epilogs:  []perilog.ActionConfig{{Description: "stage-out", Resources: []string{"rack0/ssd0"}}},
		Tolerate: perilog.Tolerate{Count: 1, AnyFailure: true},
	}
	job, _ := perilog.NewJob(config, perilog.JobConfig{ID: 6731191091817518, R: r, Named: []string{"rack0/ssd0"}})
	event := func(t eventlog.Timestamp, name, context string) {
		if _, err := job.Apply(t, eventlog.Entry{Timestamp: t, Name: name, Context: []byte(context)}); err != nil {
			fmt.Println(errors.Is(err, perilog.ErrOrder), err)
		}
	}
	event(1, "submit", `{"userid":0,"urgency":16,"flags":0,"version":1}`)
	event(1, "validate", "")
	event(1, "depend", "")
	event(1, "priority", `{"priority":16}`)
	event(1, "alloc", "")
	event(1, "start", "") // too early
	for _, l := range job.Take(1).Launch {
		fmt.Println("launch", l.Action, "on ranks", l.Ranks, "timeout", l.Timeout)
		for rank := range l.Ranks.All() {
			job.Report(5, perilog.Report{Action: l.Action, Attempt: l.Attempt, Kind: perilog.ReportExited, Rank: rank, Status: int32(rank) << 8})
		}
	}
	for _, a := range job.Take(5).Results {
		fmt.Println(a.Action, "from", a.Start, "to", a.End, "status", a.Status, "tolerated", a.Tolerated, "failed on", a.Failed)
		for _, g := range a.Groups {
			fmt.Println(g.Cause, g.Code, "on", g.Ranks)
		}
	}
	event(6, "start", "")
	event(9, "finish", `{"status":0}`)
	event(9, "release", `{"ranks":"all","final":true}`)
	for h := range job.Holders() {
		fmt.Println(h.Kind, h.Description, "holds", h.Ranks, h.Named)
	}
	// Output:
	// true perilog: event comes too early: prolog check has not ended (job ƒuZZybuNNy)
	// launch prolog check on ranks 0-1 timeout 30m0s
	// prolog check from 1.0 to 5.0 status 256 tolerated true failed on 1
	// ok 0 on 0
	// failed 1 on 1
	// epilog stage-out holds 0-1 [rack0/ssd0]
	// drain  holds 1 []
}

// A prolog took a minute: a caller may give the job that time back.
func ExampleJob_PrologTime() {
	r, _ := rset.Parse([]byte(`{"version":1,"execution":{"R_lite":[{"rank":"0","children":{"core":"0-3"}}]}}`))
	job, _ := perilog.NewJob(&perilog.Config{Prologs: []perilog.ActionConfig{{Command: []string{"check"}, PerRank: true}}},
		perilog.JobConfig{ID: 6731191091817518, R: r})
	for _, e := range [][2]string{
		{"submit", `{"userid":0,"urgency":16,"flags":0,"version":1}`}, {"validate"}, {"depend"}, {"priority", `{"priority":16}`}, {"alloc"},
	} {
		if _, err := job.Apply(1000, eventlog.Entry{Timestamp: 1000, Name: e[0], Context: []byte(e[1])}); err != nil {
			fmt.Println(err)
		}
	}
	for _, l := range job.Take(1000).Launch {
		job.Report(1060, perilog.Report{Action: l.Action, Attempt: l.Attempt, Kind: perilog.ReportExited, Rank: 0})
	}
	job.Take(1060)
	fmt.Println(job.PrologTime())
	// Output: 1m0s
}
