package alloc_test

import (
	"fmt"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
)

// The manager's side: a scheduler that takes one request at a time, a better
// job that comes, and a response.
func Example() {
	q := alloc.NewQueue(alloc.Config{})
	var out []alloc.Send
	out, _ = q.Add(out, alloc.JobInfo{ID: 6731191091817518, Priority: 16, UserID: 1000, Submit: 100})
	q.Hello(nil)
	out, response, _ := q.Ready(out, alloc.Ready{Limit: 1})
	fmt.Println("waiting:", response.Count)

	out, _ = q.Add(out, alloc.JobInfo{ID: 6731191091817519, Priority: 20, UserID: 1000, Submit: 101})
	out, outcome, _ := q.Response(out, alloc.Response{ID: 6731191091817518, Type: alloc.ResponseCancel})
	fmt.Println(outcome)

	for _, s := range out {
		line, _ := alloc.AppendMessage(nil, s.Topic, s.Message([]byte(`{"version":1}`)))
		fmt.Print(string(line))
	}
	fmt.Printf("%+v\n", q.Stats())
	// Output:
	// waiting: 1
	// requeued
	// {"topic":"sched.alloc","payload":{"id":6731191091817518,"priority":16,"userid":1000,"t_submit":100.0,"jobspec":{"version":1}}}
	// {"topic":"sched.cancel","payload":{"id":6731191091817518}}
	// {"topic":"sched.alloc","payload":{"id":6731191091817519,"priority":20,"userid":1000,"t_submit":101.0,"jobspec":{"version":1}}}
	// {Pending:1 Blocked:0 Sent:1 Recalled:0 Canceled:0}
}

// A job is canceled while the scheduler allocates. It is gone at once, and the
// resources that come for it are freed.
func ExampleQueue_Cancel() {
	q := alloc.NewQueue(alloc.Config{})
	q.Hello(nil)
	_, _, _ = q.Ready(nil, alloc.Ready{})
	_, _ = q.Add(nil, alloc.JobInfo{ID: 6731191091817518, Priority: 16})
	out, _ := q.Cancel(nil, 6731191091817518)

	r, _ := rset.Parse([]byte(`{"version":1,"execution":{"R_lite":[{"rank":"0","children":{"core":"0-3"}}]}}`))
	out, outcome, _ := q.Response(out, alloc.Response{ID: 6731191091817518, Type: alloc.ResponseSuccess, R: r})
	fmt.Println(outcome)
	for _, s := range out {
		fmt.Printf("%s %q\n", s.Topic, s.R)
	}
	// Output:
	// returned
	// sched.cancel ""
	// sched.free "rank0/core[0-3]"
}

// Many priorities change at once, and the scheduler is told in one message.
func ExampleQueue_Prioritize() {
	q := alloc.NewQueue(alloc.Config{})
	q.Hello(nil)
	_, _, _ = q.Ready(nil, alloc.Ready{})
	const first = 6731191091817518
	for n := range jobid.ID(3) {
		_, _ = q.Add(nil, alloc.JobInfo{ID: first + n, Priority: 16})
	}
	out, _ := q.Prioritize(nil, []alloc.Priority{{ID: first + 2, Priority: 30}, {ID: first, Priority: 0}, {ID: first + 1, Priority: 5}})
	for _, s := range out {
		line, _ := alloc.AppendMessage(nil, s.Topic, s.Message(nil))
		fmt.Print(string(line))
	}
	// Output:
	// {"topic":"sched.cancel","payload":{"id":6731191091817518}}
	// {"topic":"sched.prioritize","payload":{"jobs":[[6731191091817520,30],[6731191091817519,5]]}}
}

// The responses to a hello: what jobs hold, and which have given back some of it.
func ExampleAnnounce() {
	r, _ := rset.Parse([]byte(`{"version":1,"execution":{"R_lite":[{"rank":"0-3","children":{"core":"0-1"}}]}}`))
	a := alloc.Announce([]alloc.HelloResponse{
		{JobInfo: alloc.JobInfo{ID: 6731191091817518, Priority: 16, UserID: 1000, Submit: 50}, R: r, Free: idset.Of(1)},
	}, true)
	var lines []byte
	for _, job := range a.Responses {
		lines, _ = alloc.AppendMessage(lines, alloc.TopicHello, job)
	}
	lines, _ = alloc.Line{Topic: alloc.TopicHello, Errnum: alloc.NoData}.AppendText(lines)
	fmt.Print(string(lines))
	// Output:
	// {"topic":"job-manager.sched-hello","payload":{"id":6731191091817518,"priority":16,"userid":1000,"t_submit":50.0,"R":{"version":1,"execution":{"R_lite":[{"rank":"0-3","children":{"core":"0-1"}}],"starttime":0.0,"expiration":0.0}},"free":"1"}}
	// {"topic":"job-manager.sched-hello","errnum":61}
}

// The scheduler's side: a line comes in, a response goes out.
func ExampleParseLine() {
	line, err := alloc.ParseLine([]byte(`{"topic":"sched.alloc","payload":{"id":6731191091817518,"priority":16,"userid":1000,"jobspec":{"version":1}}}`))
	fmt.Println(line.Topic, err)
	request, err := alloc.Parse[alloc.Request](line.Payload)
	if err != nil {
		fmt.Println(err)
	}
	response := alloc.Response{ID: request.ID, Type: alloc.ResponseDeny, Note: "no such queue"}
	out, _ := alloc.AppendMessage(nil, line.Topic, response)
	fmt.Print(string(out))

	_, err = alloc.Parse[alloc.Request]([]byte(`{"id":6731191091817518,"priority":"high","userid":1000,"jobspec":{}}`))
	fmt.Println(err)
	// Output:
	// sched.alloc <nil>
	// {"topic":"sched.alloc","payload":{"id":6731191091817518,"type":2,"note":"no such queue"}}
	// alloc: invalid message: alloc request: priority: offset 34: must be an integer
}

// A named queue is stopped: the requests of its jobs are recalled, and a job that comes
// waits for the start.
func ExampleQueue_Stop() {
	q := alloc.NewQueue(alloc.Config{})
	q.Hello(nil)
	_, _, _ = q.Ready(nil, alloc.Ready{})
	out, _ := q.Add(nil, alloc.JobInfo{ID: 6731191091817518, Priority: 16})
	out, _ = q.Stop(out, 6731191091817518)
	_ = q.AddStopped(alloc.JobInfo{ID: 6731191091817519, Priority: 20})
	for job := range q.All() {
		fmt.Println(job.ID, job.Priority)
	}
	fmt.Println("blocked:", q.Stats().Blocked)
	out, _, _ = q.Response(out, alloc.Response{ID: 6731191091817518, Type: alloc.ResponseCancel})
	out, _ = q.Start(out, 6731191091817518, 6731191091817519)
	for _, s := range out {
		fmt.Println(s.Topic, s.Job.ID)
	}
	// Output:
	// ƒuZZybuNNy 16
	// ƒuZZybuNNz 20
	// blocked: 1
	// sched.alloc ƒuZZybuNNy
	// sched.cancel ƒuZZybuNNy
	// sched.alloc ƒuZZybuNNz
	// sched.alloc ƒuZZybuNNy
}

// A manager reads what a scheduler writes.
func ExampleParseFromScheduler() {
	for _, text := range []string{
		`{"topic":"job-manager.sched-hello","payload":{"partial-ok":true}}`,
		`{"topic":"sched.alloc","payload":{"id":6731191091817518,"type":2,"note":"no such nodes"}}`,
	} {
		_, m, err := alloc.ParseFromScheduler([]byte(text))
		switch m := m.(type) {
		case alloc.Hello:
			fmt.Println("hello, partial-ok:", m.PartialOK)
		case alloc.Response:
			fmt.Println(m.ID, m.Type, m.Note)
		default:
			fmt.Println(err)
		}
	}
	// Output:
	// hello, partial-ok: true
	// ƒuZZybuNNy DENY no such nodes
}
