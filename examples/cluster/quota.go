//go:build unix

package main

import (
	"cmp"
	"fmt"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
)

// A load is what jobs that are not over take of the memory of managers and readers: how many they
// are, and how many bytes their jobspecs have.
type load struct{ jobs, bytes int }

// guestLoad is the most that a guest may have. The owner of the instance may have more.
var guestLoad = load{jobs: 10_000, bytes: 64 << 20}

// A tally has the jobs of a guest that are not over, with the bytes of their jobspecs, and so many in all.
type tally struct {
	jobs  map[jobid.ID]int
	bytes int
}

// quota returns hooks that refuse a job with which its user, other than the owner, would have more
// than most. Each Manager needs hooks of its own.
func quota(owner uint32, most load) joblife.Hooks {
	guests := make(map[uint32]*tally) // those that have any
	count := func(e *joblife.HookEvent) {
		uid := e.Job.UserID()
		if uid == owner {
			return
		}
		g, n := guests[uid], len(e.Job.Jobspec().Text())
		if g == nil {
			g = &tally{jobs: make(map[jobid.ID]int)}
			guests[uid] = g
		}
		g.jobs[e.Job.ID()] = n
		g.bytes += n
	}
	return joblife.Hooks{
		Name:     "quota",
		Restored: count,
		Validate: func(e *joblife.HookEvent) error {
			uid, n := e.Job.UserID(), len(e.Job.Jobspec().Text())
			g := cmp.Or(guests[uid], new(tally))
			_, counts := g.jobs[e.Job.ID()] // since before a restart
			switch {
			case uid == owner, counts:
			case len(g.jobs) >= most.jobs:
				return fmt.Errorf("user %d has %d jobs that are not over, and may have no more", uid, len(g.jobs))
			case g.bytes+n > most.bytes:
				return fmt.Errorf("the jobspec has %d bytes, and those of the jobs of user %d that are not over have %d: together they may have %d", n, uid, g.bytes, most.bytes)
			}
			return nil
		},
		Event: func(e *joblife.HookEvent) {
			if e.Entry.Name == jobstate.EventSubmit {
				count(e)
			}
		},
		Inactive: func(e *joblife.HookEvent) {
			uid, id := e.Job.UserID(), e.Job.ID()
			g := guests[uid]
			if g == nil {
				return
			}
			g.bytes -= g.jobs[id]
			if delete(g.jobs, id); len(g.jobs) == 0 {
				delete(guests, uid)
			}
		},
	}
}
