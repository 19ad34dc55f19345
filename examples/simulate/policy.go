package main

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/joblife/joblife/rset/sched"
)

// A policy considers so many jobs, unless -depth says how many; 0 is all. It makes so many
// reservations, unless -reservations says how many; 0: it knows itself.
type policy struct {
	depth, reservations int
	of                  func(o *options) sched.Policy
}

// policies are the policies, by name. To try one of your own, add it here.
var policies = map[string]policy{
	"fifo": {0, 0, func(*options) sched.Policy { return sched.FIFO{} }},
	"easy": {0, 0, func(o *options) sched.Policy { return sched.EASY{Depth: o.depth} }},
	// A plan for each of thousands would take hours.
	"conservative": {30, 0, func(o *options) sched.Policy { return sched.Conservative{Depth: o.depth} }},
	"hybrid":       {32, 8, func(o *options) sched.Policy { return hybrid{o.depth, o.reservations} }},
	"fair":         {100, 0, func(o *options) sched.Policy { return fair{o.depth} }},
}

var policyNames = strings.Join(slices.Sorted(maps.Keys(policies)), ", ")

// hybrid is between EASY and conservative backfill, as Fluxion has it: it considers the first jobs
// of the queue, its queue-depth, and the first of them that have to wait get reservations, its
// reservation-depth. Its 64 of 32 jobs would be all.
type hybrid struct{ depth, reservations int }

// Schedule implements [sched.Policy].
func (h hybrid) Schedule(p *sched.Pass) { backfill(p, first(p, h.depth), h.reservations) }

// fair is an example of a policy of one's own. Users with the fewest cores go first. The
// first job that has to wait gets a reservation.
type fair struct{ depth int }

// Schedule implements [sched.Policy].
func (f fair) Schedule(p *sched.Pass) {
	cores, has := make(map[uint32]int64), p.Pool() // by user
	for j := range p.Running() {
		a, _ := has.Allocation(j.ID)
		cores[j.UserID] += a.R.Count("core")
	}
	jobs := first(p, f.depth)
	slices.SortStableFunc(jobs, func(a, b sched.Job) int { return cmp.Compare(cores[a.UserID], cores[b.UserID]) })
	backfill(p, jobs, 1)
}

// first returns the first jobs of the queue.
func first(p *sched.Pass, depth int) (jobs []sched.Job) {
	for j := range p.Jobs() {
		if jobs = append(jobs, j); len(jobs) == depth {
			break
		}
	}
	return jobs
}

// backfill starts jobs in order. Those that do not fit get the reservations, as long as there are
// some, and others start if they do not delay these.
func backfill(p *sched.Pass, jobs []sched.Job, reservations int) {
	for _, j := range jobs {
		if p.Start(j.ID) || reservations == 0 {
			continue
		}
		if _, ok := p.Reserve(j.ID); ok {
			reservations--
		}
	}
}
