package exec_test

import (
	"fmt"

	"github.com/joblife/joblife/perilog/exec"
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
