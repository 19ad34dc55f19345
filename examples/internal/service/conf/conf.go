// Package conf reads the configuration of a Flux instance, as far as it concerns the job
// manager: the tables policy, queues, job-manager and exec, as JSON. It is the one place
// that knows their keys. What it refuses has the words of flux-core.
//
//	cfg, err := conf.Parse(service.Config{Parse: conf.Parse}, text)
//	s, recovered, err := service.Restore(now, cfg, records)
//
// # Differences from flux-core
//
//   - The tables job-manager.prolog and job-manager.epilog suffice; there is no plugin to
//     load. job-manager.plugins is ignored.
//   - job-manager.max-active-jobs is the number of active jobs that a user may have.
//   - job-manager.perilog.partial-release = true frees each node when its epilog is done.
//     The logs of such jobs have events that flux-core does not know.
//   - kill-timeout is one minute by default.
//   - job-manager.perilog.log-ignore has regular expressions of Go, which know a little more
//     than those of POSIX, and no back references.
//
// # Limits
//
// A configuration has at most 1 MiB and 1024 queues. It has at most 64 patterns of log-ignore,
// each of at most 1 KiB. Together they have about 2^16 characters, of which a repetition
// counts each: those in x{1000} are 1000.
package conf

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"regexp/syntax"
	"slices"
	"time"

	"github.com/joblife/joblife/examples/internal/service"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/purge"
)

// The limits of a configuration. Without them a text of 1 MiB could take gigabytes.
const (
	maxText     = 1 << 20
	maxQueues   = 1 << 10
	maxPatterns = 64
	maxPattern  = 1 << 10
	maxProgram  = 1 << 16
)

// Parse returns old with what the text says. What the text does not say is as by default,
// and what a configuration of Flux cannot say stays.
func Parse(old service.Config, text []byte) (service.Config, error) {
	if len(text) > maxText {
		return old, fmt.Errorf("the configuration has %d bytes, at most %d", len(text), maxText)
	}
	root := read(text)
	if root.err != nil || text == nil {
		return old, errors.New("the configuration is not a JSON object")
	}
	cfg := old
	var err error
	var queue string
	if cfg.Limits, queue, err = readPolicy("policy", root.take("policy")); err != nil {
		return old, err
	}
	if cfg.Queues, err = readQueues(root.take("queues")); err != nil {
		return old, err
	}
	if _, ok := cfg.Queues[queue]; queue != "" && !ok {
		return old, fmt.Errorf("the [policy] config table defines a default queue %s that is not in [queues] table", queue)
	}
	cfg.Manager.QueuesStopped = true // as flux-core has them at first
	cfg.Warnings = nil
	imp := read(root.take("exec")).string("imp").Value
	if err := readManager(&cfg, root.take("job-manager"), imp); err != nil {
		return old, err
	}
	return cfg, nil
}

// bad returns the error for a table of RFC 33.
func bad(key string, err any) error {
	return fmt.Errorf("error parsing [%s] config table: %v", key, err)
}

// readPolicy reads a table policy, and returns the default queue too.
func readPolicy(key string, value json.RawMessage) (l service.Limits, queue string, err error) {
	t := read(value)
	defaults, limits, access := t.take("jobspec"), t.take("limits"), t.take("access")
	t.take("scheduler")
	if err := t.end(); err != nil {
		return l, "", bad(key, err)
	}
	if queue, err = readDefaults(key+".jobspec", defaults); err != nil {
		return l, "", err
	}
	if l, err = readLimits(key+".limits", limits); err != nil {
		return l, "", err
	}
	return l, queue, checkAccess(key+".access", access)
}

// readDefaults checks what job-ingest sets in a jobspec, and returns the default queue.
func readDefaults(key string, value json.RawMessage) (queue string, err error) {
	top := read(value)
	defaults := top.table("defaults")
	system := defaults.table("system")
	length, name := system.take("duration"), system.take("queue")
	for _, t := range []*table{system, defaults, top} {
		if err := t.end(); err != nil {
			return "", bad(key, err)
		}
	}
	var s *string
	if length != nil {
		if _, ok := fsdOf(length); !ok {
			return "", bad(key, "'defaults.system.duration' is not a valid FSD")
		}
	}
	if name != nil {
		if json.Unmarshal(name, &s) != nil || s == nil {
			return "", bad(key, "'defaults.system.queue' is not a string")
		}
		return *s, nil
	}
	return "", nil
}

// fsdOf reads a string with a duration.
func fsdOf(value json.RawMessage) (fsd.Duration, bool) {
	var s *string
	if json.Unmarshal(value, &s) != nil || s == nil {
		return 0, false
	}
	d, err := fsd.Parse(*s)
	return d, err == nil
}

func readLimits(key string, value json.RawMessage) (l service.Limits, err error) {
	t := read(value)
	sizes, length := t.take("job-size"), t.take("duration")
	if err := t.end(); err != nil {
		return l, bad(key, err)
	}
	if length != nil {
		if l.Duration.Value, l.Duration.Set = fsdOf(length); !l.Duration.Set {
			return l, bad(key, "'duration' is not a valid FSD")
		}
	}
	t = read(sizes)
	least, most := t.take("min"), t.take("max")
	if err := t.end(); err != nil {
		return l, bad(key+".job-size", err)
	}
	if l.Min, err = readSize(key+".min", least); err != nil {
		return l, err
	}
	l.Max, err = readSize(key+".max", most)
	return l, err
}

func readSize(key string, value json.RawMessage) (service.Size, error) {
	t := read(value)
	s := service.Size{Nodes: t.int("nnodes"), Cores: t.int("ncores"), GPUs: t.int("ngpus")}
	if err := t.end(); err != nil {
		return s, bad(key, err)
	}
	if min(s.Nodes.Value, s.Cores.Value, s.GPUs.Value) < -1 {
		return s, bad(key, "values must be >= -1")
	}
	return s, nil
}

// checkAccess checks who may submit. job-ingest sees to it.
func checkAccess(key string, value json.RawMessage) error {
	t := read(value)
	users, groups := t.take("allow-user"), t.take("allow-group")
	if err := t.end(); err != nil {
		return bad(key, err)
	}
	if _, ok := stringsOf(users, ""); users != nil && !ok {
		return bad(key, "'allow-user' must be a string array")
	}
	if _, ok := stringsOf(groups, ""); groups != nil && !ok {
		return bad(key, "'allow-group' must be a string array")
	}
	return nil
}

// readQueues reads the named queues.
func readQueues(value json.RawMessage) (map[string]service.Queue, error) {
	t := read(value)
	switch {
	case t.err != nil:
		return nil, bad("queues", "not a table")
	case len(t.rest) > maxQueues:
		return nil, bad("queues", fmt.Sprintf("more than %d queues", maxQueues))
	}
	queues := make(map[string]service.Queue, len(t.rest))
	for _, name := range slices.Sorted(maps.Keys(t.rest)) {
		q, err := readQueue(name, t.rest[name])
		if err != nil {
			return nil, err
		}
		queues[name] = q
	}
	return queues, nil
}

func readQueue(name string, value json.RawMessage) (q service.Queue, err error) {
	key := "queues." + name
	t := read(value)
	policy, requires := t.take("policy"), t.take("requires")
	switch err := t.end(); {
	case err != nil:
		return q, bad(key, err)
	case name == "":
		return q, bad("queues", "a queue has no name")
	}
	var queue string
	if q.Limits, queue, err = readPolicy(key+".policy", policy); err != nil {
		return q, err
	}
	if queue != "" {
		return q, bad(key, "'policy' must not define a default queue!")
	}
	if requires != nil {
		var ok bool
		if q.Requires, ok = stringsOf(requires, " \t!&'\"`|()"); !ok {
			return q, bad(key, "'requires' must be an array of property strings (RFC 20)")
		}
	}
	return q, nil
}

// readManager reads the table job-manager. Imp is the program that runs commands of root.
func readManager(cfg *service.Config, value json.RawMessage, imp string) error {
	t := read(value)
	age, count := t.string("inactive-age-limit"), t.int("inactive-num-limit")
	if t.err != nil {
		return fmt.Errorf("job-manager.max-inactive-*: %w", t.err)
	}
	limits := purge.Limits{MinAge: cfg.Manager.Limits.MinAge, Batch: cfg.Manager.Limits.Batch}
	if age.Set {
		d, err := fsd.Parse(age.Value)
		if err != nil {
			return errors.New("job-manager.inactive-age-limit: invalid FSD")
		}
		if d != fsd.Forever {
			limits.MaxAge = jobstate.Some(time.Duration(d))
		}
	}
	if count.Set && count.Value != -1 {
		if limits.MaxCount = count; count.Value < 0 {
			return errors.New("job-manager.inactive-num-limit: must be >= 0")
		}
	}
	cfg.Manager.Limits = limits
	active := t.int("max-active-jobs")
	if t.err != nil || active.Value < 0 {
		return errors.New("job-manager.max-active-jobs: must be an integer >= 0")
	}
	cfg.MaxActive = active.Value
	cfg.StopQueues = t.bool("stop-queues-on-restart").Value
	if t.err != nil {
		return fmt.Errorf("job-manager.stop-queues-on-restart: %w", t.err)
	}

	var actions perilog.Config
	var err error
	deprecated := false
	if actions.Housekeeping, deprecated, err = readHousekeeping(t.take("housekeeping"), imp); err != nil {
		return err
	}
	if deprecated {
		cfg.Warnings = append(cfg.Warnings, "job-manager.housekeeping.use-systemd-unit is deprecated - ignoring")
	}
	if actions.Prologs, err = readAction("prolog", t.take("prolog"), imp); err != nil {
		return err
	}
	if actions.Epilogs, err = readAction("epilog", t.take("epilog"), imp); err != nil {
		return err
	}
	partial, ignore, err := readPerilog(t.take("perilog"))
	if err != nil {
		return err
	}
	actions.WholeJob, cfg.LogIgnore = !partial, ignore
	if err := actions.Check(); err != nil {
		return err
	}
	cfg.Manager.Actions = actions
	return nil
}

// readHousekeeping reads the table of housekeeping, and reports whether it has the key that is
// deprecated.
func readHousekeeping(value json.RawMessage, imp string) (h *perilog.HousekeepingConfig, deprecated bool, err error) {
	if value == nil {
		return nil, false, nil
	}
	t := read(value)
	command, after := t.take("command"), t.string("release-after")
	deprecated = t.bool("use-systemd-unit").Value
	if err := t.end(); err != nil {
		return nil, false, fmt.Errorf("job-manager.housekeeping: %w", err)
	}
	h = &perilog.HousekeepingConfig{OnFailure: jobstate.OnFailureRelease}
	if after.Set {
		d, err := fsd.Parse(after.Value)
		if err != nil {
			return nil, false, errors.New("job-manager.housekeeping.release-after FSD parse error")
		}
		if d != fsd.Forever {
			h.ReleaseAfter = &d
		}
	}
	switch {
	case command != nil:
		var ok bool
		if h.Command, ok = stringsOf(command, ""); !ok || len(h.Command) == 0 {
			return nil, false, errors.New("error creating housekeeping command")
		}
	case imp == "":
		return nil, false, errors.New("job-manager.housekeeping implies IMP but exec.imp is undefined")
	default:
		h.Command = []string{imp, "run", "housekeeping"}
	}
	return h, deprecated, nil
}

// readAction reads the table of the prolog or of the epilog.
func readAction(name string, value json.RawMessage, imp string) ([]perilog.ActionConfig, error) {
	if value == nil {
		return nil, nil
	}
	bad := func(format string, args ...any) ([]perilog.ActionConfig, error) {
		return nil, fmt.Errorf("[job-manager.%s]: %w", name, fmt.Errorf(format, args...))
	}
	t := read(value)
	command, timeout, kill := t.take("command"), t.string("timeout"), t.seconds("kill-timeout")
	perRank, cancel := t.bool("per-rank"), t.bool("cancel-on-exception")
	if err := t.end(); err != nil {
		return bad("%w", err)
	}
	a := perilog.ActionConfig{PerRank: perRank.Value, KillTimeout: kill}
	if cancel.Set {
		a.CancelOnException = &cancel.Value
	}
	switch {
	case command != nil && kind(command) != "array":
		return bad("command must be an array")
	case command != nil:
		var ok bool
		if a.Command, ok = stringsOf(command, ""); !ok || len(a.Command) == 0 {
			return bad("malformed %s command", name)
		}
	case imp == "":
		return bad("no command specified and exec.imp not defined")
	default:
		a.Command = []string{imp, "run", name}
	}
	if kill > 0 && name == "epilog" {
		return bad("kill-timeout not allowed for epilog")
	}
	if timeout.Set {
		var err error
		if a.Timeout, err = fsd.Parse(timeout.Value); err != nil {
			return bad("invalid %s timeout", name)
		}
		if a.Timeout == 0 {
			a.Timeout = fsd.Forever
		}
	}
	return []perilog.ActionConfig{a}, nil
}

// readPerilog reads what prologs and epilogs have in common: whether an epilog releases nodes
// one by one, and which lines of output are not logged.
func readPerilog(value json.RawMessage) (partial bool, ignore []*regexp.Regexp, err error) {
	t := read(value)
	patterns, release := t.take("log-ignore"), t.bool("partial-release")
	if t.err != nil {
		return false, nil, fmt.Errorf("perilog: error unpacking config: %w", t.err)
	}
	if patterns == nil {
		return release.Value, nil, nil
	}
	bad := func(format string, args ...any) (bool, []*regexp.Regexp, error) {
		return false, nil, fmt.Errorf("[job-manager.perilog]: error parsing log-ignore: "+format, args...)
	}
	if kind(patterns) != "array" {
		return bad("not an array")
	}
	list, ok := stringsOf(patterns, "")
	if !ok {
		return bad("all entries must be a string value")
	}
	if len(list) > maxPatterns {
		return bad("%d patterns, at most %d", len(list), maxPatterns)
	}
	program := 0
	for _, p := range list {
		if len(p) > maxPattern {
			return bad("a pattern of %d bytes, at most %d", len(p), maxPattern)
		}
		tree, err := syntax.Parse(p, syntax.Perl)
		if err == nil {
			program += size(tree)
		}
		if program > maxProgram {
			return bad("too many characters at %s", p)
		}
		re, err := regexp.Compile(p)
		if err != nil {
			return bad("Failed to compile regex: %s", p)
		}
		ignore = append(ignore, re)
	}
	return release.Value, ignore, nil
}

// size returns how many characters a pattern has with all repetitions.
func size(re *syntax.Regexp) int {
	n := 1 + len(re.Rune)
	for _, sub := range re.Sub {
		n += size(sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min, re.Max, 1)
	}
	return n
}
