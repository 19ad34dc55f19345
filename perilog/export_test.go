package perilog

import (
	"fmt"
	"slices"

	"github.com/joblife/joblife/jobstate"
)

// Told returns what the log and the configuration tell of the actions: how far each is,
// how it runs, and whether its start is still to come. It leaves out what only a life
// knows, such as what has ended and is not logged.
func (j *Job) Told() string {
	var lines []string
	tell := func(a *action) {
		if due := j.isDue(a); due || a.stage != stageIdle {
			lines = append(lines, fmt.Sprintln(a.ActionKey, a.stage, due, a.began, a.finished, a.success, a.foreign))
			if a.run != nil {
				lines = append(lines, fmt.Sprintln(a.run.spec.ActionMode))
			}
		}
	}
	for _, a := range j.actions {
		tell(a)
	}
	if h := j.hk; h != nil {
		tell(&h.action)
		lines = append(lines, fmt.Sprintln(h.releaseAfter, h.onFailure, &h.freed))
	}
	slices.Sort(lines)
	return fmt.Sprintln(lines, j.Freed(), j.final, j.Draining())
}

// Active returns the actions that are not over.
func (j *Job) Active() (list []jobstate.ActionKey) {
	for _, a := range j.actions {
		if a.stage == stageActive {
			list = append(list, a.ActionKey)
		}
	}
	if j.hk != nil {
		list = append(list, j.hk.ActionKey)
	}
	return list
}

// Ran returns the actions that the logs have.
func (j *Job) Ran() map[jobstate.ActionKey]bool {
	ran := make(map[jobstate.ActionKey]bool)
	for _, a := range j.actions {
		if a.stage != stageIdle {
			ran[a.ActionKey] = true
		}
	}
	if j.hk != nil {
		ran[j.hk.ActionKey] = true
	}
	return ran
}

// IsEmpty reports whether there is nothing to do.
func (e Effects) IsEmpty() bool {
	return !e.Start && len(e.Post)+len(e.Launch)+len(e.Signal)+len(e.Drain)+len(e.Results) == 0 && e.Free.IsEmpty()
}

// The categories of errors on which only tests branch.
var (
	ErrConfig = errConfig
	ErrPosted = errPosted
	ErrR      = errR
)

// Final reports whether the final fragment was given back.
func (j *Job) Final() bool { return j.final }
