package joblife_test

import (
	"fmt"
	"time"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
)

// The smallest loop: a job that waits for a scheduler, and is canceled.
func Example() {
	now := time.Unix(1_700_000_000, 0)
	m, err := joblife.New(joblife.Config{Epoch: now})
	if err != nil {
		fmt.Println(err)
		return
	}
	var rd joblife.Ready
	var id jobid.ID
	step := func(in joblife.Input) {
		if err := m.Step(now, in); err != nil {
			fmt.Println(err)
		}
		for m.Ready(&rd) {
			for _, r := range rd.Append { // to be stored here
				fmt.Printf("%v %s", r.Kind, r.Data)
				if r.Kind != joblife.RecordEvent {
					fmt.Println()
				}
			}
			for _, a := range rd.Answers {
				id = a.Job
			}
			if err := m.Done(rd.Seq); err != nil {
				fmt.Println(err)
			}
		}
	}
	spec, _ := jobspec.New(jobspec.Job{Nodes: 1, Command: []string{"true"}})
	step(joblife.Submit{Tag: 1, Spec: spec, Urgency: jobstate.UrgencyDefault})
	step(joblife.Raise{ID: id, Type: "cancel"})
	v, _ := m.Job(id)
	result, _ := v.Result()
	fmt.Println(v.State(), result)
	// Output:
	// jobspec {"attributes":{"system":{"duration":0}},"resources":[{"count":1,"type":"node","with":[{"count":1,"label":"task","type":"slot","with":[{"count":1,"type":"core"}]}]}],"tasks":[{"command":["true"],"count":{"per_slot":1},"slot":"task"}],"version":1}
	// event {"timestamp":1700000000.0,"name":"submit","context":{"userid":0,"urgency":16,"flags":0,"version":1}}
	// event {"timestamp":1700000000.0,"name":"validate"}
	// event {"timestamp":1700000000.0,"name":"depend"}
	// event {"timestamp":1700000000.0,"name":"priority","context":{"priority":16}}
	// event {"timestamp":1700000000.0,"name":"exception","context":{"type":"cancel","severity":0,"note":"","userid":0}}
	// event {"timestamp":1700000000.0,"name":"clean"}
	// INACTIVE CANCELED
}

// The second job waits until the first has ended with success, and ends with it otherwise.
func ExampleDependencies() {
	now := time.Unix(1_700_000_000, 0)
	m, err := joblife.New(joblife.Config{Hooks: []joblife.Hooks{joblife.Dependencies()}})
	if err != nil {
		fmt.Println(err)
		return
	}
	spec, _ := jobspec.New(jobspec.Job{Nodes: 1, Command: []string{"true"}})
	after, _ := spec.Update("attributes.system.dependencies", []byte(`[{"scheme":"afterok","value":"ƒ3DyvX"}]`))
	for _, in := range []joblife.Input{
		joblife.Submit{ID: first, Spec: spec, Urgency: jobstate.UrgencyDefault},
		joblife.Submit{ID: second, Spec: after, Urgency: jobstate.UrgencyDefault},
		joblife.Raise{ID: first, Type: "cancel"},
	} {
		if err := m.Step(now, in); err != nil {
			fmt.Println(err)
		}
		for rd := new(joblife.Ready); m.Ready(rd); { // see the first example
			if err := m.Done(rd.Seq); err != nil {
				fmt.Println(err)
			}
		}
		if v, ok := m.Job(second); ok {
			fmt.Println(v.State(), "waits for", v.Job().Waiting())
		}
	}
	// Output:
	// DEPEND waits for dependency after-success=ƒ3DyvX
	// INACTIVE waits for nothing
}

// A guest of a private instance sees its own jobs. A Follower makes the snapshot, so that
// the manager need not.
func ExampleManager_As() {
	now := time.Unix(1_700_000_000, 0)
	m, _ := joblife.New(joblife.Config{Private: true})
	f := new(joblife.Follower) // a standby, or another process
	all := 0
	spec, _ := jobspec.New(jobspec.Job{Command: []string{"true"}})
	for _, in := range []joblife.Input{
		joblife.Submit{ID: first, By: joblife.Cred{UserID: 1000, Guest: true}, Spec: spec, Urgency: jobstate.UrgencyDefault},
		joblife.Submit{ID: second, By: joblife.Cred{UserID: 1001, Guest: true}, Spec: spec, Urgency: jobstate.UrgencyDefault},
		joblife.Raise{ID: second, Type: "cancel"},
	} {
		if err := m.Step(now, in); err != nil {
			fmt.Println(err)
		}
		for rd := new(joblife.Ready); m.Ready(rd); {
			for _, r := range rd.Append {
				all++
				if err := f.Add(r); err != nil {
					fmt.Println(err)
				}
			}
			if err := m.Done(rd.Seq); err != nil {
				fmt.Println(err)
			}
		}
	}
	guest := m.As(joblife.Cred{UserID: 1000, Guest: true})
	for v := range guest.Jobs(jobstate.StateNew | jobstate.StateDepend | jobstate.StatePriority | jobstate.StateSched | jobstate.StateInactive) {
		fmt.Println("sees", v.ID())
	}
	_, ok := guest.Job(second)
	fmt.Println("sees the other:", ok)
	n := 0
	for range f.Snapshot() {
		n++
	}
	fmt.Println("a snapshot is shorter:", n < all)
	// Output:
	// sees ƒ3DyvX
	// sees the other: false
	// a snapshot is shorter: true
}
