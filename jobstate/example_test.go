package jobstate_test

import (
	"fmt"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate"
)

const exampleLog = `{"timestamp":1.5,"name":"submit","context":{"userid":5588,"urgency":16,"flags":0,"version":1}}
{"timestamp":2.5,"name":"validate"}
{"timestamp":3.5,"name":"depend"}
{"timestamp":4.5,"name":"priority","context":{"priority":16}}
{"timestamp":5.5,"name":"alloc"}
{"timestamp":6.5,"name":"start"}
{"timestamp":9.5,"name":"finish","context":{"status":15}}
{"timestamp":9.6,"name":"epilog-start","context":{"description":"scrub"}}
{"timestamp":9.7,"name":"release","context":{"ranks":"all","final":true}}
`

// The loop of a reader that wants each event as well as the job.
func Example() {
	job := jobstate.NewJob(6731191091817518)
	var ev jobstate.Event
	for entry, err := range eventlog.Entries([]byte(exampleLog)) {
		if err != nil {
			fmt.Println(err)
			return
		}
		if err := ev.Decode(entry); err != nil {
			fmt.Println(err)
			return
		}
		if _, err := job.ApplyEvent(&ev); err != nil {
			fmt.Println(err)
			return
		}
		if c, ok := ev.Context().(*jobstate.ActionStartContext); ok {
			fmt.Println(c.Kind, c.Description, "holds ranks", c.Ranks)
		}
	}
	finish, _ := job.FinishTime()
	fmt.Println(job.State(), "since", finish, "may free:", job.MayFree())
	// Output:
	// epilog scrub holds ranks all
	// CLEANUP since 9.5 may free: false
}

func ExampleReplay() {
	j, err := jobstate.Replay(6731191091817518, []byte(exampleLog))
	if err != nil {
		fmt.Println(err)
		return
	}
	result, _ := j.Result()
	code, _ := j.ExitCode()
	fmt.Println(j.State(), result, code)
	fmt.Println("waits for", j.Waiting())
	for a := range j.Actions() {
		fmt.Println(a.Kind, a.Description, "since", a.Since, "started", a.Active, "time")
	}
	// Output:
	// CLEANUP FAILED 143
	// waits for epilog scrub
	// epilog scrub since 9.5999999999999996 started 1 time
}

// A tool has each line decoded once, for the job and for itself.
func ExampleJob_ReplayWith() {
	var ev jobstate.Event
	j, epilogs := jobstate.NewJob(6731191091817518), 0
	err := j.ReplayWith(&ev, []byte(exampleLog), func(ev *jobstate.Event) error {
		if key, ok := ev.Action(); ok && key.Kind == jobstate.ActionEpilog {
			epilogs++
		}
		_, err := j.ApplyEvent(ev)
		return err
	})
	fmt.Println(j.State(), epilogs, err)
	// Output: CLEANUP 1 <nil>
}

func ExampleValidate() {
	log := exampleLog + `{"timestamp":9.8,"name":"free"}` + "\n"
	for _, f := range jobstate.Validate([]byte(log)) {
		fmt.Println(f)
		fmt.Println(f.Level == jobstate.LevelError, f.Line, f.Offset, f.Event)
		fmt.Println(f.Text)
	}
	// Output:
	// line 10: free: error: the resources are freed early: epilog "scrub" has not finished
	// true 10 499 free
	// the resources are freed early: epilog "scrub" has not finished
}

// How the log of a job begins that was submitted with flags, and to which a plugin gave the
// highest priority.
func ExampleSubmitContext() {
	for _, c := range []jobstate.Context{
		&jobstate.SubmitContext{UserID: 5588, Urgency: jobstate.UrgencyDefault, Flags: jobstate.FlagDebug | jobstate.FlagWaitable, Version: jobstate.LogVersion},
		&jobstate.PriorityContext{Priority: jobstate.MaxPriority},
	} {
		entry, err := jobstate.NewEntry(1552593348, c)
		if err != nil {
			fmt.Println(err)
			return
		}
		line, _ := eventlog.AppendEntry(nil, entry)
		fmt.Print(string(line))
	}
	// Output:
	// {"timestamp":1552593348.0,"name":"submit","context":{"userid":5588,"urgency":16,"flags":6,"version":1}}
	// {"timestamp":1552593348.0,"name":"priority","context":{"priority":4294967295}}
}

// A manager posts an event: it encodes, decodes and folds it, and then logs it.
func ExampleNewEntry() {
	job, _ := jobstate.Replay(6731191091817518, []byte(exampleLog))
	entry, err := jobstate.NewEntry(1552593986.335602, &jobstate.ActionFinishContext{
		ActionKey: jobstate.ActionKey{Kind: jobstate.ActionEpilog, Description: "scrub"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	var ev jobstate.Event
	if err := ev.Decode(entry); err != nil {
		fmt.Println(err)
		return
	}
	if _, err := job.ApplyEvent(&ev); err != nil {
		fmt.Println(err)
		return
	}
	line, _ := eventlog.AppendEntry(nil, entry)
	fmt.Print(string(line))
	fmt.Println("may free:", job.MayFree())
	// Output:
	// {"timestamp":1552593986.335602,"name":"epilog-finish","context":{"description":"scrub","status":0}}
	// may free: true
}
