package peers

import (
	"context"
	"errors"

	"github.com/looplab/fsm"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate"
)

// states is the state after each event of a life, and how many jobs ended.
type states struct {
	last  [10]string
	ended int
}

// machines fold events into a state. The peer keeps the state alone, in one machine
// that is set back for each job; joblife keeps all that a listing shows.
func machines(jobs int) []side {
	var entries []eventlog.Entry
	for e, err := range eventlog.Entries(lives(1)) {
		must(err)
		entries = append(entries, e)
	}
	by := func(reset func(), step func(event int) error, state func() string) func() any {
		return func() any {
			var s states
			for job := range jobs {
				reset()
				for i := range entries {
					must(step(i))
					if job == jobs-1 {
						s.last[i] = state()
					}
				}
				if state() == "INACTIVE" {
					s.ended++
				}
			}
			return s
		}
	}

	var j *jobstate.Job
	var events fsm.Events
	from := "NEW"
	for _, e := range life {
		events = append(events, fsm.EventDesc{Name: e.name, Src: []string{from}, Dst: e.state})
		from = e.state
	}
	machine := fsm.NewFSM("NEW", events, nil)
	return []side{
		{name: us, run: by(func() { j = jobstate.NewJob(1) }, func(i int) error {
			_, err := j.Apply(entries[i])
			return err
		}, func() string { return j.State().String() })},
		{name: "fsm", run: by(func() { machine.SetState("NEW") }, func(i int) error {
			err := machine.Event(context.Background(), life[i].name)
			if errors.As(err, new(fsm.NoTransitionError)) {
				return nil
			}
			return err
		}, machine.Current)},
	}
}
