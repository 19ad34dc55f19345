package main

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/joblife/joblife/rset/sched"
)

// policies are the policies, by name, for the depth that -depth says; 0 is the default. To
// try one of your own, add it here.
var policies = map[string]func(depth int) sched.Policy{
	"fifo": func(int) sched.Policy { return sched.FIFO{} },
	"easy": func(depth int) sched.Policy { return sched.EASY{Depth: depth} },
	// A plan for each of thousands would take hours.
	"conservative": func(depth int) sched.Policy { return sched.Conservative{Depth: cmp.Or(depth, 30)} },
	"fair":         func(depth int) sched.Policy { return fair{cmp.Or(depth, 100)} },
}

var policyNames = strings.Join(slices.Sorted(maps.Keys(policies)), ", ")

// fair is an example of a policy of one's own. Users with the fewest cores go first. The
// first job that has to wait gets a reservation, and others may start if they do not delay it.
type fair struct {
	depth int // how many jobs are considered
}

// Schedule implements [sched.Policy].
func (f fair) Schedule(p *sched.Pass) {
	cores, has := make(map[uint32]int64), p.Pool() // by user
	for j := range p.Running() {
		a, _ := has.Allocation(j.ID)
		cores[j.UserID] += a.R.Count("core")
	}
	var jobs []sched.Job
	for j := range p.Jobs() {
		if jobs = append(jobs, j); len(jobs) == f.depth {
			break
		}
	}
	slices.SortStableFunc(jobs, func(a, b sched.Job) int { return cmp.Compare(cores[a.UserID], cores[b.UserID]) })
	reserved := false
	for _, j := range jobs {
		if !p.Start(j.ID) && !reserved {
			_, reserved = p.Reserve(j.ID)
		}
	}
}
