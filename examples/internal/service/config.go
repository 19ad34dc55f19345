package service

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/loop"
)

// A Config configures a [Service]. The zero Config is one anonymous queue without limits.
type Config struct {
	// Manager is the configuration of the Manager. The service adds its own hooks before
	// those in Hooks. Manager.Actions has the commands of prologs, epilogs and
	// housekeeping; each Launch brings its own.
	Manager joblife.Config
	// Lookup returns what the store has of an inactive job, since the Manager knows little
	// more than how it ended. The error is the store's. If it does not have the job, the
	// result is the zero Stored. A nil Lookup has no jobs.
	Lookup func(jobid.ID) (Stored, error)
	// Store and Begin are those of [loop.Config].
	Store loop.Store
	Begin func(rd *joblife.Ready, done func(failed map[jobid.ID]error, err error))
	// Send sends what an Out has, and does not keep it.
	Send func(*Out)
	// Reads reports whether a scheduler or an executor has read what it was sent, or nearly
	// all of it. If it has not, the service sends it nothing more: call Do when it has. Nil
	// means that all have.
	Reads func(sender string) bool
	// Environ is the environment of prologs, epilogs and housekeeping, as os.Environ
	// returns it. The service adds FLUX_JOB_ID, FLUX_JOB_USERID and FLUX_JOB_RANKS.
	Environ []string
	// ASCII says that ids have f for ƒ in the reasons of drains and in FLUX_JOB_ID, as Flux writes
	// them where a terminal may not show it. Who prints the Log has to see to that.
	ASCII bool
	// LogIgnore has the lines of the output of prologs and epilogs that are not logged.
	LogIgnore []*regexp.Regexp
	// Warnings are the words of Parse for an administrator. They are logged once.
	Warnings []string
	// Lost says what becomes of the actions that a restart interrupted; "" is LostFinish.
	Lost Lost
	// Queues are the named queues, instead of those in Manager.
	Queues map[string]Queue
	// StopQueues tells Restore to stop the queues that are started, if there are records.
	StopQueues bool
	// Limits are those of all jobs.
	Limits Limits
	// MaxActive limits the active jobs of each user; 0: no limit.
	MaxActive int
	// Parse reads the configuration in a config-reload; conf.Parse is one. It returns old
	// with what the text says. Nil: there is no such request.
	Parse func(old Config, text []byte) (Config, error)
}

// Stored is what a store has of a job: its eventlog, its jobspec as it was submitted and
// the R that it was given. The updates in the log are not applied. What is not there is
// nil.
type Stored struct {
	Eventlog, Jobspec, R []byte
}

func (c *Config) queues() []string { return slices.Sorted(maps.Keys(c.Queues)) }

// A Queue is what the service knows of a named queue.
type Queue struct {
	// Requires are the properties of the queue's nodes.
	Requires []string
	// Limits override those of all jobs; a limit that is not set does not.
	Limits Limits
}

// Limits say what a job may ask for. What is not set has no limit.
type Limits struct {
	Duration jobstate.Optional[fsd.Duration] // 0, fsd.Forever: no limit
	Max, Min Size
}

// A Size limits the size of a job; -1: no limit.
type Size struct{ Nodes, Cores, GPUs jobstate.Optional[int] }

// override returns the limits of a queue, which come before those of all jobs.
func (l Limits) override(queue Limits) Limits {
	l.Duration = cmp.Or(queue.Duration, l.Duration)
	l.Max, l.Min = l.Max.override(queue.Max), l.Min.override(queue.Min)
	return l
}

func (s Size) override(q Size) Size {
	return Size{cmp.Or(q.Nodes, s.Nodes), cmp.Or(q.Cores, s.Cores), cmp.Or(q.GPUs, s.GPUs)}
}

// A Lost says what becomes of a prolog, an epilog or housekeeping that ran when the
// process of the Service ended: rexec ends its commands then.
type Lost string

// The policies.
const (
	LostFinish Lost = "finish" // it has failed, and its ranks are drained first; the default
	LostRerun  Lost = "rerun"  // it runs again; where it cannot, it is finished
	LostHold   Lost = "hold"   // it keeps its ranks until an operator finishes it
)

func (l Lost) check() error {
	switch l {
	case "", LostFinish, LostRerun, LostHold:
		return nil
	}
	return fmt.Errorf("service: lost: %q is not finish, rerun or hold", l)
}
