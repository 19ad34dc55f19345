package exec

import (
	"errors"
	"fmt"
	"slices"

	"github.com/joblife/joblife/idset"
)

// Check returns an error for an Executor that contradicts itself.
func (x *Executor) Check() error {
	tasks := 0
	for id, j := range x.jobs {
		if j.changed != slices.Contains(x.changed, j) {
			return fmt.Errorf("job %v has changed, and will not be looked at", id)
		}
		if len(j.groups) == 0 || j.id != id {
			return fmt.Errorf("job %v has no tasks", id)
		}
		if j.shells != nil && !slices.Contains(j.groups, j.shells) {
			return fmt.Errorf("job %v has shells that are removed", id)
		}
		for _, g := range j.groups {
			all, n := new(idset.Set), 0
			for s := range g.sets {
				all.UnionWith(&g.sets[s])
				n += g.sets[s].Len()
			}
			if n != g.ranks.Len() || !all.Equal(&g.ranks) || n == 0 {
				return fmt.Errorf("%v is on %v, and has %v in states", g.Task, &g.ranks, all)
			}
			tasks += n
			for rank := range g.ranks.All() {
				if !slices.Contains(x.onRank[rank], g) {
					return fmt.Errorf("node %d does not know of %v", rank, g.Task)
				}
			}
		}
	}
	if tasks != x.tasks {
		return fmt.Errorf("%d tasks are counted, and there are %d", x.tasks, tasks)
	}
	for rank, groups := range x.onRank {
		if tasks -= len(groups); len(groups) == 0 {
			return fmt.Errorf("node %d has no tasks", rank)
		}
	}
	for rank := range x.sessions {
		if !x.online.Contains(rank) || len(x.sessions) != x.online.Len() {
			return fmt.Errorf("%v are online, and have %d sessions", &x.online, len(x.sessions))
		}
	}
	timed := 0
	for _, j := range x.jobs {
		if j.due > 0 {
			timed++
		}
		if j.due < 0 || j.due > 0 && (j.shells == nil || !x.timers.Has(j)) {
			return fmt.Errorf("the timer of %v is wrong", j.id)
		}
	}
	if x.timers != nil && x.timers.Len() != timed {
		return fmt.Errorf("there are %d timers, of %d jobs", x.timers.Len(), timed)
	}
	if tasks != 0 {
		return errors.New("nodes have tasks that no job has")
	}
	return nil
}
