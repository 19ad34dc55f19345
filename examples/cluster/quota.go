//go:build unix

package main

import (
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

// quota returns hooks that refuse a job with which its user, other than the owner, would have more
// than most. Each Manager needs hooks of its own.
func quota(owner uint32, most load) joblife.Hooks {
	users, jobs := make(map[uint32]load), make(map[jobid.ID]int) // those that count, with their bytes
	count := func(e *joblife.HookEvent) {
		if uid := e.Job.UserID(); uid != owner {
			n, u := len(e.Job.Jobspec().Text()), users[uid]
			users[uid], jobs[e.Job.ID()] = load{u.jobs + 1, u.bytes + n}, n
		}
	}
	return joblife.Hooks{
		Name:     "quota",
		Restored: count,
		Validate: func(e *joblife.HookEvent) error {
			uid, n := e.Job.UserID(), len(e.Job.Jobspec().Text())
			_, counts := jobs[e.Job.ID()] // since before a restart
			switch u := users[uid]; {
			case uid == owner, counts:
			case u.jobs >= most.jobs:
				return fmt.Errorf("user %d has %d jobs that are not over, and may have no more", uid, u.jobs)
			case u.bytes+n > most.bytes:
				return fmt.Errorf("the jobspec has %d bytes, and those of the jobs of user %d that are not over have %d: together they may have %d", n, uid, u.bytes, most.bytes)
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
			n, counts := jobs[id]
			if !counts {
				return
			}
			delete(jobs, id)
			if u := users[uid]; u.jobs > 1 {
				users[uid] = load{u.jobs - 1, u.bytes - n}
			} else {
				delete(users, uid)
			}
		},
	}
}
