package service

import (
	"fmt"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/examples/internal/errno"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/rset"
)

const (
	pathBypass = "attributes.system.alloc-bypass.R"
	flagBypass = "alloc-bypass"
)

// bypass returns hooks that give a job the R in its jobspec; no scheduler hears of it. Only
// the owner may ask for that.
func (c *core) bypass() joblife.Hooks {
	return joblife.Hooks{
		Name: flagBypass,
		Validate: func(e *joblife.HookEvent) error {
			r, err := bypassed(e.Job)
			switch {
			case r == nil && err == nil:
				return nil
			case e.Job.UserID() != c.cfg.Manager.Owner:
				return fail(errno.Invalid, "Guest user cannot use alloc bypass")
			case err != nil:
				return fail(errno.Invalid, "alloc-bypass: invalid R: %v", err)
			}
			return nil
		},
		Event: func(e *joblife.HookEvent) { // a restart takes a job from SCHED to PRIORITY again
			state := e.Job.State()
			if state == e.Prev || !state.In(jobstate.StatePriority|jobstate.StateSched) {
				return
			}
			r, err := bypassed(e.Job)
			if r == nil || err != nil {
				return
			}
			if !e.Job.Job().HasFlag(flagBypass) { // must come before SCHED, in which a scheduler is asked
				e.Post(joblife.SetFlags{By: c.self(), ID: e.Job.ID(), Flags: []string{flagBypass}})
			}
			if state == jobstate.StateSched {
				e.Post(joblife.Alloc{By: c.self(), ID: e.Job.ID(), R: r})
			}
		},
	}
}

// bypassed returns the R in a jobspec, nil if there is none.
func bypassed(v joblife.View) (*rset.R, error) {
	text, ok := v.Jobspec().Lookup(pathBypass)
	if !ok {
		return nil, nil
	}
	r, err := rset.Parse(text)
	if err == nil && r.IsEmpty() {
		err = fmt.Errorf("it is empty")
	}
	return r, err
}
