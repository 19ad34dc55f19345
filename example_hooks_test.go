package joblife_test

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
)

// rest is a dependency of a site: {"scheme":"rest","value":"ƒ3DyvX","minutes":5} makes a job wait
// until another one has ended for that long. After a restart the Manager asks again.
func rest(e *joblife.HookEvent, d jobspec.Dependency) (bool, error) {
	if d.Scheme != "rest" {
		return false, nil
	}
	var more struct{ Minutes int }
	id, err := jobid.Parse(d.Value)
	if err = errors.Join(err, json.Unmarshal(d.JSON, &more)); err != nil {
		return true, err
	}
	other, ok := e.Ended(id) // inactive, or purged not long ago
	if !ok {
		return true, fmt.Errorf("job %v has not ended at %v", id, e.Now())
	}
	at := other.Inactive + eventlog.Timestamp(60*more.Minutes) // at once, if that has passed
	e.Post(joblife.DependencyAdd{ID: e.Job.ID(), Description: "rest"})
	e.PostAt(at, joblife.DependencyRemove{ID: e.Job.ID(), Description: "rest"})
	return true, nil
}

// A hook adds a scheme of dependencies.
func ExampleHooks() {
	m := try(joblife.New(joblife.Config{Hooks: []joblife.Hooks{{Name: "rest", Dependency: rest}}}))
	after := try(oneNode().Update("attributes.system.dependencies", []byte(`[{"scheme":"rest","value":"ƒ3DyvX","minutes":5}]`)))
	pass(m, 1_700_000_000, nothing,
		joblife.Submit{ID: second, Spec: after, Urgency: jobstate.UrgencyDefault},
		joblife.Submit{ID: first, Spec: oneNode(), Urgency: jobstate.UrgencyDefault},
		joblife.Raise{ID: first, Type: "cancel"},
		joblife.Submit{ID: second, Spec: after, Urgency: jobstate.UrgencyDefault},
	)
	v, _ := m.Job(second)
	fmt.Println(v.State(), "waits for", v.Job().Waiting())
	at, _ := m.Deadline()
	pass(m, at.Unix(), nothing, joblife.Tick{})
	fmt.Println(v.State(), "after", at.Unix()-1_700_000_000, "seconds")
	// Output:
	// joblife: job refused: job ƒ3DyvX has not ended at 1700000000.0
	// DEPEND waits for dependency rest
	// SCHED after 300 seconds
}
