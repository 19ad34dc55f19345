package joblife_test

import (
	"encoding/json"
	"fmt"

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
