package perilog

import (
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset"
)

// DefaultPrologTimeout is the timeout of a prolog whose configuration names
// none. Epilogs and housekeeping have none by default.
const DefaultPrologTimeout = 30 * fsd.Minute

// A Config is how prologs, epilogs and housekeeping are configured. The zero
// Config has none of them. It is a snapshot: nothing in it refers to what it
// was made from, and a [Run] copies what it needs of it.
type Config struct {
	Prologs      []ActionConfig // in the order in which they are written
	Epilogs      []ActionConfig
	Housekeeping *HousekeepingConfig // nil: none
	LogIgnore    []string            // regular expressions of output that is not logged
}

// An ActionConfig is one prolog or epilog.
type ActionConfig struct {
	Kind        RunKind
	Description string // "job-manager.prolog" or "job-manager.epilog", or the name of one of several
	Command     []string
	PerRank     bool
	Timeout     fsd.Duration // 0: none
	KillTimeout fsd.Duration
	Cancel      CancelPolicy // never CancelDefault
	Tolerate    Tolerate
}

// A HousekeepingConfig is the work after the job, which runs on every rank.
type HousekeepingConfig struct {
	Command      []string
	ReleaseAfter *fsd.Duration // nil: all ranks at once; 0: each as it completes
	Timeout      fsd.Duration  // 0: none
	KillTimeout  fsd.Duration
}

// A RunJob is the job that a run is for.
type RunJob struct {
	Job    jobid.ID
	UserID uint32
	R      *rset.R // its ranks and their hosts

	Offline *idset.Set // see [Spec.Offline]
}

// Spec returns the spec of a run of c for a job.
func (c *ActionConfig) Spec(j RunJob) Spec {
	return Spec{
		Kind: c.Kind, Description: c.Description, Command: c.Command,
		PerRank: c.PerRank, Timeout: c.Timeout, KillTimeout: c.KillTimeout,
		Cancel: c.Cancel, Tolerate: c.Tolerate,
		Job: j.Job, UserID: j.UserID, Ranks: j.R.Ranks(), Hosts: j.R, Offline: j.Offline,
	}
}

// Spec returns the spec of a run of c for a job.
func (c *HousekeepingConfig) Spec(j RunJob) Spec {
	return Spec{
		Kind: RunHousekeeping, Command: c.Command, PerRank: true,
		Timeout: c.Timeout, KillTimeout: c.KillTimeout,
		Job: j.Job, UserID: j.UserID, Ranks: j.R.Ranks(), Hosts: j.R, Offline: j.Offline,
	}
}
