package jobspec_test

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/joblife/joblife/jobstate/jobspec"
)

const exampleSpec = `{
	"version": 1,
	"resources": [{"type": "node", "count": 4, "with": [
		{"type": "slot", "count": 1, "label": "task", "with": [{"type": "core", "count": 2}]}]}],
	"tasks": [{"command": ["/usr/bin/app", "-v"], "slot": "task", "count": {"per_slot": 1}}],
	"attributes": {"system": {"duration": 3600, "queue": "batch"}}}`

// A job is made, printed as the JSON that a Flux instance takes, and read.
func Example() {
	spec, err := jobspec.New(jobspec.Job{
		Nodes: 4, Cores: 2, Duration: time.Hour, Command: []string{"app", "-v"}, Queue: "batch",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	text, _ := json.Marshal(spec)
	spec, err = jobspec.Parse(text)
	if err != nil {
		fmt.Println(err)
		return
	}
	c := spec.Counts()
	fmt.Println(spec.Name(), spec.Duration(), "nodes", c.Nodes, "slots", c.Slots, "cores", c.Cores, "tasks", c.Tasks)
	for i, v := range spec.Vertices() {
		fmt.Println(i, v.Type, v.Label, v.Count, "in", v.Parent)
	}
	// Output:
	// app 1h0m0s nodes 4 slots 4 cores 8 tasks 4
	// 0 node  4 in -1
	// 1 slot task 1 in 0
	// 2 core  2 in 1
}

func ExampleParse_errors() {
	_, err := jobspec.Parse([]byte(`{"version":1,"resources":[{"type":"slot","count":0}]}`))
	fmt.Println(err)
	// Output:
	// jobspec: resources[0].count: offset 49: must be an integer of at least 1
}

func ExampleSpec_UpdateAll() {
	submitted, _ := jobspec.Parse([]byte(exampleSpec))
	// As jobstate.Job.Updates yields them.
	current, err := submitted.UpdateAll(func(yield func(string, json.RawMessage) bool) {
		_ = yield("attributes.system.duration", json.RawMessage(`60`)) &&
			yield("attributes.system.job.name", json.RawMessage(`"short"`))
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(current.Name(), current.Duration())
	fmt.Println(current.Original().Name(), current.Original().Duration())
	_, err = current.Update("tasks", json.RawMessage(`[]`))
	fmt.Println(err)
	// Output:
	// short 1m0s
	// app 1h0m0s
	// jobspec: tasks: must not be empty
}

func ExampleSpec_CountsOn() {
	spec, _ := jobspec.Parse([]byte(`{"version":1,"resources":[{"type":"node","count":2,"exclusive":true,"with":[
		{"type":"slot","count":1,"label":"task","with":[{"type":"core","count":1}]}]}],
		"tasks":[{"command":["app"],"slot":"task","count":{"per_slot":1}}],"attributes":{"system":{"duration":0}}}`))
	fmt.Println(spec.Counts().Cores)
	fmt.Println(spec.CountsOn(jobspec.Resources{Nodes: 2, Cores: 96}).Cores)
	// Output:
	// unknown
	// 96
}

func ExampleParseCount() {
	c, err := jobspec.ParseCount("2-32:2:*")
	if err != nil {
		fmt.Println(err)
		return
	}
	granted, ok := c.Floor(20) // there are 20
	fmt.Println(granted, ok)
	// Output:
	// 16 true
}

func ExampleSpec_Shape() {
	spec, _ := jobspec.Parse([]byte(exampleSpec))
	shape, err := spec.Shape()
	fmt.Println(shape.Nodes, shape.Slots, shape.Cores, shape.GPUs.IsZero(), err)
	// Output:
	// 4 1 2 true <nil>
}
