package perilog

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/fsd"
)

// Defaults of a configuration.
const (
	DefaultPrologTimeout = 30 * time.Minute
	DefaultKillTimeout   = time.Minute // a shorter one drains nodes that are only slow
)

// Limits of a configuration.
const (
	MaxActions     = 256     // of one kind
	MaxDescription = 256     // bytes
	MaxArguments   = 1 << 12 // of a command
	maxArgument    = 1 << 16 // bytes
)

// A Config says which prologs, epilogs and housekeeping the jobs of an instance
// have. The zero Config has none. Its tags name the keys, so that any library for
// TOML, YAML or JSON fills it, and [Config.Check] checks it. A [Job] takes what it
// needs of it once: a later change concerns later jobs.
type Config struct {
	Prologs      []ActionConfig      `json:"prologs,omitempty" toml:"prologs,omitempty" yaml:"prologs,omitempty"`
	Epilogs      []ActionConfig      `json:"epilogs,omitempty" toml:"epilogs,omitempty" yaml:"epilogs,omitempty"`
	Housekeeping *HousekeepingConfig `json:"housekeeping,omitempty" toml:"housekeeping,omitempty" yaml:"housekeeping,omitempty"` // nil: none
	Tolerate     Tolerate            `json:"tolerate,omitzero" toml:"tolerate,omitempty" yaml:"tolerate,omitempty"`

	// WholeJob has an epilog release all of its ranks at once, when it has ended on
	// each and every drain is confirmed, as a resource manager does that knows no
	// partial release. Housekeeping does so without ReleaseAfter.
	WholeJob bool `json:"whole-job,omitempty" toml:"whole-job,omitempty" yaml:"whole-job,omitempty"`
}

// An ActionConfig is one prolog or epilog.
type ActionConfig struct {
	// Description is the name in the job's log; "" means "job-manager.prolog" or
	// "job-manager.epilog", as in the reference. It has at most MaxDescription
	// bytes of UTF-8 and no control characters.
	Description string `json:"description,omitempty" toml:"description,omitempty" yaml:"description,omitempty"`

	// Command may be empty where the embedder knows what to run.
	Command []string `json:"command,omitempty" toml:"command,omitempty" yaml:"command,omitempty"`

	// PerRank runs the command on each rank. Otherwise one command runs on rank
	// Leader, which need not be the job's, and serves all ranks. It ends for all
	// of them at once, but for those that a control line releases before. As it
	// tells nothing of any node in another way, only nodes that control lines
	// name are drained, and that of Leader where the command may run on after it
	// was given up.
	PerRank bool   `json:"per-rank,omitempty" toml:"per-rank,omitempty" yaml:"per-rank,omitempty"`
	Leader  uint32 `json:"leader,omitempty" toml:"leader,omitempty" yaml:"leader,omitempty"`

	// Ranks are those of the job's ranks that the action holds and, per rank,
	// runs on; nil is all. A single command holds the rank where it runs, too. An action per rank that has none of a job's ranks does
	// not run for that job. Resources are named resources that it holds.
	Ranks     *idset.Set `json:"ranks,omitempty" toml:"ranks,omitempty" yaml:"ranks,omitempty"`
	Resources []string   `json:"resources,omitempty" toml:"resources,omitempty" yaml:"resources,omitempty"`

	// Timeout counts from the launch. 0 is the default: DefaultPrologTimeout for
	// a prolog, none for an epilog. fsd.Forever is none.
	Timeout fsd.Duration `json:"timeout,omitempty" toml:"timeout,omitempty" yaml:"timeout,omitempty"`

	// KillTimeout counts from SIGTERM to giving up; 0 is DefaultKillTimeout. It
	// is finite. Kill sends SIGKILL to what is given up, which can leave orphans
	// of the command behind.
	KillTimeout fsd.Duration `json:"kill-timeout,omitempty" toml:"kill-timeout,omitempty" yaml:"kill-timeout,omitempty"`
	Kill        bool         `json:"kill,omitempty" toml:"kill,omitempty" yaml:"kill,omitempty"`

	// CancelOnException has a fatal exception of the job cancel the action; nil
	// is true for a prolog and false for an epilog, as users can raise
	// exceptions on their jobs.
	CancelOnException *bool `json:"cancel-on-exception,omitempty" toml:"cancel-on-exception,omitempty" yaml:"cancel-on-exception,omitempty"`

	// WaitOffline has an epilog per rank wait for ranks that are offline.
	// Otherwise they are drained, and end. A prolog fails on ranks that are
	// offline. One command for all ranks waits for its leader.
	WaitOffline bool `json:"wait-offline,omitempty" toml:"wait-offline,omitempty" yaml:"wait-offline,omitempty"`

	// IgnoreControl takes control lines that are not understood for plain
	// output. Otherwise such a line is a failure of the action.
	IgnoreControl bool `json:"ignore-control,omitempty" toml:"ignore-control,omitempty" yaml:"ignore-control,omitempty"`
}

// A HousekeepingConfig is the work on each rank of a job after the job.
type HousekeepingConfig struct {
	Command     []string     `json:"command,omitempty" toml:"command,omitempty" yaml:"command,omitempty"`
	Timeout     fsd.Duration `json:"timeout,omitempty" toml:"timeout,omitempty" yaml:"timeout,omitempty"`                // 0, fsd.Forever: none
	KillTimeout fsd.Duration `json:"kill-timeout,omitempty" toml:"kill-timeout,omitempty" yaml:"kill-timeout,omitempty"` // 0: DefaultKillTimeout

	// ReleaseAfter says when ranks go back that are done while others are not.
	// nil: never, all go back at once. 0: each as it is done. More: all that are
	// done that long after the first one, and after that each as it is done.
	ReleaseAfter *fsd.Duration `json:"release-after,omitempty" toml:"release-after,omitempty" yaml:"release-after,omitempty"`

	// OnFailure says what becomes of a rank where the work failed: "drain", the
	// default, gives it back when its drain is confirmed; "hold" keeps it until
	// the work is repeated or finished by force; "release" gives it back.
	OnFailure string `json:"on-failure,omitempty" toml:"on-failure,omitempty" yaml:"on-failure,omitempty"`
}

// Tolerate says how many ranks of a job may fail in its prologs without the job
// failing. The zero value tolerates none.
//
// It counts the ranks that failed in any prolog of the job. They must have been
// reported as failed: by a control line, by an operator, or because the node is
// offline or was lost. Any other failure, such as an exit with 1, is fatal unless
// AnyFailure is set. The ranks of Ranks may fail in any number. Of the others, as
// many may fail as the greater of Count and Fraction allows. No job starts on
// nothing: one rank at least must not have failed.
type Tolerate struct {
	Count      int        `json:"count,omitempty" toml:"count,omitempty" yaml:"count,omitempty"`
	Fraction   float64    `json:"fraction,omitempty" toml:"fraction,omitempty" yaml:"fraction,omitempty"` // of the job's ranks, from 0 to 1
	Ranks      *idset.Set `json:"ranks,omitempty" toml:"ranks,omitempty" yaml:"ranks,omitempty"`
	AnyFailure bool       `json:"any-failure,omitempty" toml:"any-failure,omitempty" yaml:"any-failure,omitempty"`

	// Drop has the job go on without the failed ranks, which are drained and
	// freed. Otherwise it goes on with all of them, and is told which failed.
	Drop bool `json:"drop,omitempty" toml:"drop,omitempty" yaml:"drop,omitempty"`
}

// ErrConfig is wrapped by the error of a configuration that cannot be used.
var ErrConfig = errors.New("perilog: invalid configuration")

// Check returns all that is wrong with the configuration, each fault with its
// key, or nil. The error wraps ErrConfig.
func (c *Config) Check() error {
	var faults []error
	bad := func(key, reason string) {
		faults = append(faults, fmt.Errorf("%w: %s %s", ErrConfig, key, reason))
	}
	for _, k := range []jobstate.ActionKind{jobstate.ActionProlog, jobstate.ActionEpilog} {
		list := c.actions(k)
		if len(list) > MaxActions {
			bad(k.String()+"s", "has more than "+strconv.Itoa(MaxActions)+" actions")
			continue
		}
		seen := make(map[string]bool)
		for i := range list {
			key := k.String() + "s[" + strconv.Itoa(i) + "]"
			list[i].check(key, bad)
			if name := list[i].key(k).Description; seen[name] {
				bad(key+".description", "is the name of an earlier action")
			} else {
				seen[name] = true
			}
		}
	}
	if h := c.Housekeeping; h != nil {
		h.check(bad)
	}
	if c.Tolerate.Count < 0 {
		bad("tolerate.count", "is negative")
	}
	if f := c.Tolerate.Fraction; !(f >= 0 && f <= 1) { // NaN too
		bad("tolerate.fraction", "is not from 0 to 1")
	}
	return errors.Join(faults...)
}

// actions returns the actions of a kind.
func (c *Config) actions(k jobstate.ActionKind) []ActionConfig {
	if k == jobstate.ActionProlog {
		return c.Prologs
	}
	return c.Epilogs
}

// key returns the name of the action in a job's log.
func (a *ActionConfig) key(k jobstate.ActionKind) Key {
	if a.Description == "" {
		return Key{k, "job-manager." + k.String()}
	}
	return Key{k, a.Description}
}

func (a *ActionConfig) check(key string, bad func(key, reason string)) {
	if !isLine(a.Description, MaxDescription) {
		bad(key+".description", "is too long, or has control characters or invalid UTF-8")
	}
	if a.Leader > idset.MaxID {
		bad(key+".leader", "is not a rank")
	}
	seen := make(map[string]bool)
	for _, name := range a.Resources {
		if name == "" || seen[name] || !isLine(name, MaxDescription) {
			bad(key+".resources", "has a name that is empty, repeated, too long or not one line")
			break
		}
		seen[name] = true
	}
	checkCommand(key, a.Command, bad)
	checkTimeouts(key, a.Timeout, a.KillTimeout, bad)
}

func (h *HousekeepingConfig) check(bad func(key, reason string)) {
	const key = "housekeeping"
	checkCommand(key, h.Command, bad)
	checkTimeouts(key, h.Timeout, h.KillTimeout, bad)
	if h.ReleaseAfter != nil && *h.ReleaseAfter < 0 {
		bad(key+".release-after", "is not a duration")
	}
	switch h.OnFailure {
	case "", onFailureDrain, onFailureHold, onFailureRelease:
	default:
		bad(key+".on-failure", `is not "drain", "hold" or "release"`)
	}
}

// The values of HousekeepingConfig.OnFailure.
const (
	onFailureDrain   = "drain"
	onFailureHold    = "hold"
	onFailureRelease = "release"
)

func checkCommand(key string, command []string, bad func(key, reason string)) {
	if len(command) > MaxArguments {
		bad(key+".command", "has too many elements")
		return
	}
	for _, s := range command {
		if len(s) > maxArgument {
			bad(key+".command", "has an element that is too long")
			return
		}
	}
}

func checkTimeouts(key string, timeout, kill fsd.Duration, bad func(key, reason string)) {
	if timeout < 0 {
		bad(key+".timeout", "is not a duration")
	}
	if kill < 0 || kill == fsd.Forever {
		bad(key+".kill-timeout", "is not a finite duration")
	}
}

// isLine reports whether text is valid UTF-8 of at most n bytes without control
// characters.
func isLine(text string, n int) bool {
	if len(text) > n || !utf8.ValidString(text) {
		return false
	}
	for _, c := range text {
		if unicode.IsControl(c) {
			return false
		}
	}
	return true
}

// duration converts a configured duration; Forever is 0, for none.
func duration(d fsd.Duration) time.Duration {
	if d == fsd.Forever {
		return 0
	}
	return time.Duration(d)
}

// allows reports whether a job of that many ranks may go on after the given ranks
// failed.
func (t *Tolerate) allows(failed *idset.Set, all int) bool {
	if failed.Len() >= all {
		return false
	}
	n := idset.Difference(failed, t.Ranks).Len()
	if n <= t.Count {
		return true
	}
	// 0.29 of 100 is 28.999999999999996: what is that close to a whole number
	// of ranks is that number.
	const slack = 1e-9
	return float64(n) <= math.Floor(t.Fraction*float64(all)+slack)
}
