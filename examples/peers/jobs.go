package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/looplab/fsm"
	"github.com/tidwall/btree"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/purge"
)

func jobTasks(scale int) []task {
	jobs, inactive := 1000/scale, 100_000/scale
	return []task{
		{fmt.Sprintf("fold the events of %d jobs", jobs), machines(jobs)},
		{fmt.Sprintf("add %d jobs, purge half", inactive), purges(inactive)},
	}
}

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
		{name: "looplab/fsm", run: by(func() { machine.SetState("NEW") }, func(i int) error {
			err := machine.Event(context.Background(), life[i].name)
			if errors.As(err, new(fsm.NoTransitionError)) {
				return nil
			}
			return err
		}, machine.Current)},
	}
}

// purges add jobs in any order, and purge the oldest half in batches.
func purges(n int) []side {
	records := make([]jobstate.Summary, n)
	const start = 1.6e9
	for i := range records {
		k := i * 7919 % n // 7919 is a prime
		records[i] = jobstate.Summary{ID: jobid.ID(k + 1), Inactive: eventlog.Timestamp(start + k/3), Result: jobstate.ResultCompleted}
	}
	const batch = 100
	return []side{
		{name: us, run: func() any {
			x, err := purge.New(purge.Config{TombstoneCount: jobstate.Some(0)})
			must(err)
			for _, r := range records {
				must(x.Add(r))
			}
			var order sum
			limits := purge.Limits{MaxCount: jobstate.Some(n / 2), Batch: batch}
			for more := true; more; {
				p, err := x.Claim(eventlog.Timestamp(start+n), limits)
				must(err)
				for _, c := range p.Jobs {
					order.then(c.ID)
				}
				more = p.More
				x.Unlinked(p.IDs(), nil)
			}
			return [2]sum{order, sum(x.Len())}
		}},
		{name: "tidwall/btree", run: func() any {
			tree := btree.NewBTreeGOptions(func(a, b jobstate.Summary) bool {
				return cmp.Or(cmp.Compare(a.Inactive, b.Inactive), cmp.Compare(a.ID, b.ID)) < 0
			}, btree.Options{NoLocks: true})
			byID := make(map[jobid.ID]jobstate.Summary)
			for _, r := range records {
				tree.Set(r)
				byID[r.ID] = r
			}
			var order sum
			due := make([]jobstate.Summary, 0, batch)
			for len(byID) > n/2 {
				due = due[:0]
				tree.Scan(func(r jobstate.Summary) bool {
					due = append(due, r)
					return len(due) < min(batch, len(byID)-n/2)
				})
				for _, r := range due {
					order.then(r.ID)
					tree.Delete(r)
					delete(byID, r.ID)
				}
			}
			return [2]sum{order, sum(len(byID))}
		}},
	}
}

// then adds a job to what tells one order from another.
func (s *sum) then(id jobid.ID) { *s = *s*31 + sum(id) }
