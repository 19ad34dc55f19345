package exec_test

import (
	"fmt"

	"github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
)

// The manager's side of one job.
func Example() {
	var service exec.Hello
	for _, text := range []string{
		`{"topic":"job-manager.exec-hello","payload":{"service":"job-exec"}}`,
		`{"topic":"job-exec.start","payload":{"id":6731191091817518,"type":"start","data":{}}}`,
		`{"topic":"job-exec.start","payload":{"id":6731191091817518,"type":"finish","data":{"status":0}}}`,
		`{"topic":"job-exec.start","payload":{"id":6731191091817518,"type":"release","data":{"ranks":"all","final":true}}}`,
	} {
		line, err := alloc.ParseLine([]byte(text))
		if err != nil {
			fmt.Println(err)
			return
		}
		switch line.Topic {
		case exec.TopicHello:
			service, _ = exec.Parse[exec.Hello](line.Payload)
			out, _ := alloc.Line{Topic: line.Topic}.AppendText(nil)
			start, _ := exec.Append(nil, exec.Start{ID: 6731191091817518, UserID: 1000, Jobspec: []byte(`{"version":1}`)})
			out, _ = alloc.Line{Topic: service.StartTopic(), Payload: start}.AppendText(out)
			fmt.Print(string(out))
		case service.StartTopic():
			r, err := exec.Parse[exec.Response](line.Payload)
			fmt.Println(r.ID, r.Type, r.Final, err)
		}
	}
	// Output:
	// {"topic":"job-manager.exec-hello"}
	// {"topic":"job-exec.start","payload":{"id":6731191091817518,"userid":1000,"jobspec":{"version":1},"reattach":false}}
	// ƒuZZybuNNy start false <nil>
	// ƒuZZybuNNy finish false <nil>
	// ƒuZZybuNNy release true <nil>
}

// A node burned down: an administrator says so, and its job ends.
func ExampleExecutor_Fail() {
	var x exec.Executor
	s, _ := x.Hello(0, nil)
	r, _ := rset.Parse([]byte(`{"version":1,"execution":{"R_lite":[{"rank":"0","children":{"core":"0-3"}}]}}`))
	_ = x.Handle(exec.Start{ID: 6731191091817518, Jobspec: []byte(`{"version":1}`), R: r})
	_ = x.Update(s, exec.TaskStatus{Task: exec.Task{Job: 6731191091817518}, State: exec.TaskRunning})
	x.Take(1000)
	x.Fail(0, "fire in rack 7")
	for _, r := range x.Take(1001).Responses {
		fmt.Printf("%v %q\n", r.Type, r.Exception.Note)
	}
	// Output:
	// exception "rank 0: the job shell is lost: fire in rack 7"
	// finish ""
	// release ""
}
