package main

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/joblife/joblife/rset/sched"
)

// A policy considers so many jobs, unless -depth says how many; 0 is all.
type policy struct {
	depth int
	of    func(depth int) sched.Policy
}

// policies are the policies, by name. To try one of your own, add it here.
var policies = map[string]policy{
	"fifo": {0, func(int) sched.Policy { return sched.FIFO{} }},
	"easy": {0, func(depth int) sched.Policy { return sched.EASY{Depth: depth} }},
	// A plan for each of thousands would take hours.
	"conservative": {30, func(depth int) sched.Policy { return sched.Conservative{Depth: depth} }},
	"fair":         {100, func(depth int) sched.Policy { return fair{depth} }},
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
