package joblife_test

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
)

// jobspec1 is a jobspec with dependencies.
type jobspec1 struct {
	Nodes, Slots int
	Exclusive    bool
	Name, Queue  string
	Dependencies []map[string]string
}

func (j jobspec1) text() []byte {
	spec, err := jobspec.New(jobspec.Job{
		Nodes: int64(j.Nodes), Slots: int64(j.Slots), Exclusive: j.Exclusive, Name: j.Name, Queue: j.Queue, Command: []string{"true"},
	})
	if err != nil {
		panic(fmt.Sprint(j, err))
	}
	if len(j.Dependencies) > 0 {
		deps, _ := json.Marshal(j.Dependencies)
		if spec, err = spec.Update("attributes.system.dependencies", deps); err != nil {
			panic(err)
		}
	}
	b, _ := spec.MarshalJSON()
	return b
}

// hooks are those of a new Manager.
func (p *play) hooks() []joblife.Hooks {
	return []joblife.Hooks{
		joblife.Dependencies(),
		{
			Name: "site",
			Validate: func(e *joblife.Event) error {
				switch e.Job.Jobspec().Name() {
				case "later":
					return joblife.ErrLater
				case "never":
					return errors.New("never")
				}
				return nil
			},
			Priority: func(e *joblife.Event) (uint32, bool) {
				if e.Job.Jobspec().Name() == "ranked" {
					_, ok := e.Job.Job().Priority()
					return 77, !ok
				}
				return uint32(e.Job.Job().Urgency()), false
			},
		},
		flaky(),
	}
}

// flaky are hooks that fail, with errors and panics, which must not hurt anybody.
func flaky() joblife.Hooks {
	one := func(e *joblife.Event, of jobid.ID, what string) {
		if e.Job.ID()>>24%of == 0 { // the time is there
			panic(what)
		}
	}
	return joblife.Hooks{
		Name: "flaky",
		Validate: func(e *joblife.Event) error {
			if e.Job.Jobspec().Name() == "boom" {
				one(e, 2, "validate")
				return errors.New("boom")
			}
			return nil
		},
		Dependency: func(e *joblife.Event, d jobspec.Dependency) (bool, error) {
			if d.Scheme == "broken" {
				one(e, 2, "dependency")
				return true, errors.New("broken")
			}
			return false, nil
		},
		Event: func(e *joblife.Event) {
			if e.Entry.Name != "submit" {
				one(e, 7, e.Entry.Name)
			}
		},
		Inactive: func(e *joblife.Event) { one(e, 3, "inactive") },
		Removed:  func(e *joblife.Event) { one(e, 3, "removed") },
	}
}
