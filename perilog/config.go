package perilog

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/fsd"
)

// Defaults of a configuration.
const (
	defaultPrologTimeout = 30 * time.Minute
	defaultKillTimeout   = time.Minute // a shorter one drains nodes that are only slow
)

// Limits of a configuration.
const (
	maxActions     = 256     // of one kind
	maxDescription = 256     // bytes
	maxArguments   = 1 << 12 // of a command
	maxArgument    = 1 << 16 // bytes
	maxResources   = 1 << 16 // bytes of the names, in an event that may have maxRanksText too
)

// A Config says which prologs, epilogs and housekeeping the jobs of an instance have; the zero
// Config has none. Two prologs, or two epilogs, must not have the same description. [Config.Check]
// checks the values.
type Config struct {
	Prologs      []ActionConfig      `json:"prologs,omitempty" toml:"prologs,omitempty" yaml:"prologs,omitempty"`
	Epilogs      []ActionConfig      `json:"epilogs,omitempty" toml:"epilogs,omitempty" yaml:"epilogs,omitempty"`
	Housekeeping *HousekeepingConfig `json:"housekeeping,omitempty" toml:"housekeeping,omitempty" yaml:"housekeeping,omitempty"` // nil: none
	Tolerate     Tolerate            `json:"tolerate,omitzero" toml:"tolerate,omitempty" yaml:"tolerate,omitempty"`

	// WholeJob turns partial release off: an epilog releases all of its ranks at once, when it
	// has ended on every rank and every drain is confirmed. Housekeeping has ReleaseAfter.
	WholeJob bool `json:"whole-job,omitempty" toml:"whole-job,omitempty" yaml:"whole-job,omitempty"`
}

// An ActionConfig is one prolog or epilog.
type ActionConfig struct {
	// Description is the name in logs and reports, of at most 256 bytes of UTF-8 and without
	// control characters; "" means "job-manager.prolog" or "job-manager.epilog", as in flux-core.
	Description string `json:"description,omitempty" toml:"description,omitempty" yaml:"description,omitempty"`

	// Command is the command with its arguments. The Job passes it to the embedder, which
	// chooses what to run if it is nil. An empty one is invalid.
	Command []string `json:"command,omitempty" toml:"command,omitempty" yaml:"command,omitempty"`

	// PerRank runs the command on each rank. Otherwise a single command on rank Leader,
	// which need not be a rank of the job, serves all ranks and ends for all but those that
	// a control line released. If it fails, the Job drains the ranks that control lines
	// named, and Leader if the action holds it and the command may still run there.
	PerRank bool   `json:"per-rank,omitempty" toml:"per-rank,omitempty" yaml:"per-rank,omitempty"`
	Leader  uint32 `json:"leader,omitempty" toml:"leader,omitempty" yaml:"leader,omitempty"`

	// Ranks limits the action to these ranks of the job; nil means all. The action holds them
	// and, with PerRank, runs on them, or not at all if the job has none of them. Without
	// PerRank it also holds Leader, if that is a rank of the job. Resources are the named
	// resources that the action holds, of at most 64 KiB: see JobConfig.Named.
	Ranks     *idset.Set `json:"ranks,omitempty" toml:"ranks,omitempty" yaml:"ranks,omitempty"`
	Resources []string   `json:"resources,omitempty" toml:"resources,omitempty" yaml:"resources,omitempty"`

	// Timeout counts from the launch. 0 means 30 minutes for a prolog and no timeout for an
	// epilog; fsd.Forever means no timeout.
	Timeout fsd.Duration `json:"timeout,omitempty" toml:"timeout,omitempty" yaml:"timeout,omitempty"`

	// KillTimeout counts from SIGTERM. When it expires, the Job stops waiting for the command,
	// and with Kill sends SIGKILL, which can orphan the command's children. 0 means one minute;
	// fsd.Forever is invalid.
	KillTimeout fsd.Duration `json:"kill-timeout,omitempty" toml:"kill-timeout,omitempty" yaml:"kill-timeout,omitempty"`
	Kill        bool         `json:"kill,omitempty" toml:"kill,omitempty" yaml:"kill,omitempty"`

	// CancelOnException cancels the action at a fatal exception of the job. nil means true for
	// a prolog, and false for an epilog: a user who cancels a job cannot stop it.
	CancelOnException *bool `json:"cancel-on-exception,omitempty" toml:"cancel-on-exception,omitempty" yaml:"cancel-on-exception,omitempty"`

	// WaitOffline makes an epilog with PerRank wait for offline ranks. Otherwise it fails on
	// them, and the Job drains them. Without PerRank, an epilog always waits for Leader. A
	// prolog always fails on offline ranks.
	WaitOffline bool `json:"wait-offline,omitempty" toml:"wait-offline,omitempty" yaml:"wait-offline,omitempty"`

	// IgnoreControl treats invalid control lines as plain output, not as failures of the action.
	IgnoreControl bool `json:"ignore-control,omitempty" toml:"ignore-control,omitempty" yaml:"ignore-control,omitempty"`
}

// A HousekeepingConfig is one command that runs on each rank after the job.
type HousekeepingConfig struct {
	Command     []string     `json:"command,omitempty" toml:"command,omitempty" yaml:"command,omitempty"`
	Timeout     fsd.Duration `json:"timeout,omitempty" toml:"timeout,omitempty" yaml:"timeout,omitempty"`                // 0, fsd.Forever: none
	KillTimeout fsd.Duration `json:"kill-timeout,omitempty" toml:"kill-timeout,omitempty" yaml:"kill-timeout,omitempty"` // 0: one minute

	// ReleaseAfter controls partial release. nil: all ranks are freed at once, when all are
	// done. 0: each is freed when it is done. Otherwise those that are done are freed when this
	// time has passed since the first was, and each of the others when it is done.
	ReleaseAfter *fsd.Duration `json:"release-after,omitempty" toml:"release-after,omitempty" yaml:"release-after,omitempty"`

	// OnFailure says what happens to a rank where the command failed: "drain", the default,
	// frees it when its drain is confirmed; "hold" keeps it until Rerun or ForceFinish;
	// "release" frees it.
	OnFailure jobstate.OnFailure `json:"on-failure,omitempty" toml:"on-failure,omitempty" yaml:"on-failure,omitempty"`
}

// Tolerate says how many ranks of a job may fail in its prologs, together, before the job
// fails. The zero value tolerates no failure.
//
// A failure is tolerated only if a control line or an operator reported the rank, or its
// node is offline or lost. Any other one, such as an exit with 1, fails the job unless
// AnyFailure is set. Without Drop, so does a prolog that timed out or lost its node: it may
// still run. Any number of Ranks may fail; of the others, as many as the greater of Count
// and Fraction. A job fails if all of its ranks failed.
type Tolerate struct {
	Count      int        `json:"count,omitempty" toml:"count,omitempty" yaml:"count,omitempty"`
	Fraction   float64    `json:"fraction,omitempty" toml:"fraction,omitempty" yaml:"fraction,omitempty"` // of the job's ranks, from 0 to 1
	Ranks      *idset.Set `json:"ranks,omitempty" toml:"ranks,omitempty" yaml:"ranks,omitempty"`
	AnyFailure bool       `json:"any-failure,omitempty" toml:"any-failure,omitempty" yaml:"any-failure,omitempty"`

	// Drop removes the failed ranks from the job's effective R; the Job drains and frees them.
	// Otherwise the job keeps them. An exception of severity 1 or more names them.
	Drop bool `json:"drop,omitempty" toml:"drop,omitempty" yaml:"drop,omitempty"`
}

// errConfig is the category of an invalid configuration.
var errConfig = errors.New("perilog: invalid configuration")

// Check returns nil, or an error that names every fault with its key.
func (c *Config) Check() error {
	var faults []error
	bad := func(key, reason string) {
		faults = append(faults, fmt.Errorf("%w: %s %s", errConfig, key, reason))
	}
	for _, k := range []jobstate.ActionKind{jobstate.ActionProlog, jobstate.ActionEpilog} {
		list := c.actions(k)
		if len(list) > maxActions {
			bad(k.String()+"s", "has more than "+strconv.Itoa(maxActions)+" actions")
			continue
		}
		seen := make(map[string]bool)
		for i := range list {
			key := k.String() + "s[" + strconv.Itoa(i) + "]"
			list[i].check(key, bad)
			name := list[i].key(k).Description
			if seen[name] {
				bad(key+".description", "is the name of an earlier action")
			}
			seen[name] = true
		}
	}
	if h := c.Housekeeping; h != nil {
		h.action().check("housekeeping", bad)
		if h.ReleaseAfter != nil && *h.ReleaseAfter < 0 {
			bad("housekeeping.release-after", "is not a duration")
		}
		known := []jobstate.OnFailure{"", jobstate.OnFailureDrain, jobstate.OnFailureHold, jobstate.OnFailureRelease}
		if !slices.Contains(known, h.OnFailure) {
			bad("housekeeping.on-failure", `is not "drain", "hold" or "release"`)
		}
	}
	if c.Tolerate.Count < 0 {
		bad("tolerate.count", "is negative")
	}
	if f := c.Tolerate.Fraction; !(f >= 0 && f <= 1) { // NaN too
		bad("tolerate.fraction", "is not from 0 to 1")
	}
	return errors.Join(faults...)
}

func (c *Config) actions(k jobstate.ActionKind) []ActionConfig {
	if k == jobstate.ActionProlog {
		return c.Prologs
	}
	return c.Epilogs
}

// key returns the name of the action in a job's log.
func (a *ActionConfig) key(k jobstate.ActionKind) jobstate.ActionKey {
	return jobstate.ActionKey{Kind: k, Description: cmp.Or(a.Description, standard(k))}
}

// standard returns the description of an action that is given none, which is flux-core's.
func standard(k jobstate.ActionKind) string {
	switch k {
	case jobstate.ActionProlog: // without an allocation for each job
		return "job-manager.prolog"
	case jobstate.ActionEpilog:
		return "job-manager.epilog"
	}
	return "job-manager." + k.String()
}

func (a *ActionConfig) check(key string, bad func(key, reason string)) {
	if !isLine(a.Description, maxDescription) {
		bad(key+".description", "is too long, or has control characters or invalid UTF-8")
	}
	if a.Leader > idset.MaxID {
		bad(key+".leader", "is not a rank")
	}
	seen, size := make(map[string]bool), 0
	for _, name := range a.Resources {
		if name == "" || seen[name] || !isLine(name, maxDescription) {
			bad(key+".resources", "has a name that is empty, repeated, too long or not one line")
			break
		}
		seen[name] = true
		if size += len(name) + len(`"",`); size > maxResources {
			bad(key+".resources", "has too many names")
			break
		}
	}
	if len(a.Command) > maxArguments {
		bad(key+".command", "has too many elements")
	} else if slices.ContainsFunc(a.Command, func(s string) bool { return len(s) > maxArgument }) {
		bad(key+".command", "has an element that is too long")
	} else if a.Command != nil && (len(a.Command) == 0 || a.Command[0] == "") {
		bad(key+".command", "is empty: give a program and its arguments, or leave command out if the embedder chooses")
	}
	if a.Timeout < 0 {
		bad(key+".timeout", "is not a duration")
	}
	if a.KillTimeout < 0 || a.KillTimeout == fsd.Forever {
		bad(key+".kill-timeout", "is not a finite duration")
	}
}

// action returns housekeeping as an action: what an action has beside it is zero.
func (h *HousekeepingConfig) action() *ActionConfig {
	return &ActionConfig{Command: h.Command, PerRank: true, Timeout: h.Timeout, KillTimeout: h.KillTimeout}
}

// isLine reports whether text is UTF-8 of at most n bytes without control characters.
func isLine(text string, n int) bool {
	return len(text) <= n && utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}

// allows reports whether a job of all that many ranks may go on after some failed.
func (t *Tolerate) allows(failed *idset.Set, all int) bool {
	if failed.Len() >= all {
		return false
	}
	n := idset.Difference(failed, t.Ranks).Len()
	if n <= t.Count {
		return true
	}
	const slack = 1e-9 // 0.29 of 100 is 28.999999999999996, and means 29
	return float64(n) <= math.Floor(t.Fraction*float64(all)+slack)
}
