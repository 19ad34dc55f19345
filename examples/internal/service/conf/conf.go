// Package conf reads the configuration of a Flux instance, as far as it concerns the job
// manager: the tables access, policy, queues, job-manager and exec, as JSON. It is the one place
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
//   - Each node is free when its epilog is done; job-manager.perilog.partial-release = false
//     frees all of them at the end. Logs have events for that, which flux-core ignores.
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
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

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
	maxName     = 4 << 10 // of a queue, as the Manager has it
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
	root, err := members(text)
	if err != nil || text == nil {
		return old, errors.New("the configuration is not a JSON object")
	}
	cfg, f := old, new(fault)
	var queue string
	cfg.Limits, queue = f.policy("policy", root["policy"])
	cfg.Queues = f.queues(root["queues"])
	if _, ok := cfg.Queues[queue]; queue != "" && !ok {
		f.fail("the [policy] config table defines a default queue %s that is not in [queues] table", queue)
	}
	cfg.Manager.QueuesStopped = true // as flux-core has them at first
	cfg.Warnings = nil
	imp := new(fault).read("%w", root["exec"]).string("imp")
	f.manager(&cfg, root["job-manager"], imp)
	cfg.Manager.Private = f.read("error reading [access] config table: %w", root["access"]).bool("private-mode").Value
	if f.err != nil {
		return old, f.err
	}
	if err := cfg.Manager.Actions.Check(); err != nil {
		return old, err
	}
	return cfg, nil
}

// config is read for a table of RFC 33.
func (f *fault) config(key string, value json.RawMessage) *table {
	return f.read("error parsing ["+strings.ReplaceAll(key, "%", "%%")+"] config table: %w", value)
}

// policy reads a table policy, and returns the default queue too.
func (f *fault) policy(key string, value json.RawMessage) (l service.Limits, queue string) {
	t := f.config(key, value)
	defaults, limits, access := t.take("jobspec"), t.take("limits"), t.take("access")
	t.take("scheduler")
	t.end()
	queue = f.defaults(key+".jobspec", defaults)
	l = f.limits(key+".limits", limits)
	t = f.config(key+".access", access) // job-ingest sees to who may submit
	for _, key := range []string{"allow-user", "allow-group"} {
		if list := t.take(key); list != nil {
			if _, ok := stringsOf(list, ""); !ok {
				t.fail("'%s' must be a string array", key)
			}
		}
	}
	t.end()
	return l, queue
}

// defaults checks what job-ingest sets in a jobspec, and returns the default queue.
func (f *fault) defaults(key string, value json.RawMessage) (queue string) {
	top := f.config(key, value)
	defaults := top.table("defaults")
	system := defaults.table("system")
	length, name := system.take("duration"), system.take("queue")
	for _, t := range []*table{system, defaults, top} {
		t.end()
	}
	fsdOf(length, top.fail, "'defaults.system.duration' is not a valid FSD")
	if name != nil && (kind(name) != "string" || json.Unmarshal(name, &queue) != nil) {
		top.fail("'defaults.system.queue' is not a string")
	}
	return queue
}

func (f *fault) limits(key string, value json.RawMessage) (l service.Limits) {
	t := f.config(key, value)
	sizes := t.take("job-size")
	l.Duration = fsdOf(t.take("duration"), t.fail, "'duration' is not a valid FSD")
	t.end()
	t = f.config(key+".job-size", sizes)
	least, most := t.take("min"), t.take("max")
	t.end()
	l.Min, l.Max = f.size(key+".min", least), f.size(key+".max", most)
	return l
}

func (f *fault) size(key string, value json.RawMessage) service.Size {
	t := f.config(key, value)
	s := service.Size{Nodes: t.int("nnodes"), Cores: t.int("ncores"), GPUs: t.int("ngpus")}
	t.end()
	if min(s.Nodes.Value, s.Cores.Value, s.GPUs.Value) < -1 {
		t.fail("values must be >= -1")
	}
	return s
}

// queues reads the named queues.
func (f *fault) queues(value json.RawMessage) map[string]service.Queue {
	t := f.config("queues", nil)
	list, err := members(value)
	switch {
	case err != nil:
		t.fail("not a table")
	case len(list) > maxQueues:
		t.fail("more than %d queues", maxQueues)
	}
	queues := make(map[string]service.Queue, len(list))
	for _, name := range slices.Sorted(maps.Keys(list)) {
		if f.err != nil {
			break
		}
		switch {
		case name == "":
			t.fail("a queue has no name")
		case !utf8.ValidString(name):
			t.fail("the name of the queue %q is no UTF-8", name)
		case len(name) > maxName:
			t.fail("a queue has a name of %d bytes, at most %d", len(name), maxName)
		}
		queues[name] = f.queue("queues."+name, list[name])
	}
	return queues
}

func (f *fault) queue(key string, value json.RawMessage) (q service.Queue) {
	t := f.config(key, value)
	policy, requires := t.take("policy"), t.take("requires")
	t.end()
	var queue string
	if q.Limits, queue = f.policy(key+".policy", policy); queue != "" {
		t.fail("'policy' must not define a default queue!")
	}
	if requires != nil {
		var ok bool
		if q.Requires, ok = stringsOf(requires, " \t!&'\"`|()"); !ok {
			t.fail("'requires' must be an array of property strings (RFC 20)")
		}
	}
	return q
}

// manager reads the table job-manager. Imp is the program that runs commands of root.
func (f *fault) manager(cfg *service.Config, value json.RawMessage, imp string) {
	t := f.read("job-manager.max-inactive-*: %w", value)
	limits := purge.Limits{MinAge: cfg.Manager.Limits.MinAge, Batch: cfg.Manager.Limits.Batch}
	age, count := t.expect("inactive-age-limit", "string"), t.int("inactive-num-limit")
	if d := fsdOf(age, f.fail, "job-manager.inactive-age-limit: invalid FSD"); d.Set && d.Value != fsd.Forever {
		limits.MaxAge = jobstate.Some(time.Duration(d.Value))
	}
	if count.Set && count.Value != -1 {
		if limits.MaxCount = count; count.Value < 0 {
			f.fail("job-manager.inactive-num-limit: must be >= 0")
		}
	}
	cfg.Manager.Limits = limits
	cfg.MaxActive = 0
	if v := t.take("max-active-jobs"); v != nil {
		if n, err := strconv.ParseInt(string(v), 10, 32); err != nil || n < 0 {
			f.fail("job-manager.max-active-jobs: must be an integer >= 0")
		} else {
			cfg.MaxActive = int(n)
		}
	}
	t.where = "job-manager.stop-queues-on-restart: %w"
	cfg.StopQueues = t.bool("stop-queues-on-restart").Value

	a := perilog.Config{
		Housekeeping: f.housekeeping(cfg, t.take("housekeeping"), imp),
		Prologs:      f.action("prolog", t.take("prolog"), imp),
		Epilogs:      f.action("epilog", t.take("epilog"), imp),
	}
	t = f.read("perilog: error unpacking config: %w", t.take("perilog"))
	partial := t.bool("partial-release")
	a.WholeJob = partial.Set && !partial.Value
	cfg.LogIgnore = f.logIgnore(t.take("log-ignore"))
	cfg.Manager.Actions = a
}

// command reads a command. Without one the program imp runs what has this name.
func command(value json.RawMessage, name, imp string, fail func(string, ...any), malformed, missing string) []string {
	if value == nil {
		if imp == "" {
			fail("%s", missing)
		}
		return []string{imp, "run", name}
	}
	list, ok := stringsOf(value, "")
	if !ok || len(list) == 0 {
		fail("%s", malformed)
	}
	return list
}

func (f *fault) housekeeping(cfg *service.Config, value json.RawMessage, imp string) *perilog.HousekeepingConfig {
	if value == nil {
		return nil
	}
	t := f.read("job-manager.housekeeping: %w", value)
	argv, after := t.take("command"), t.expect("release-after", "string")
	if t.bool("use-systemd-unit").Value {
		cfg.Warnings = append(cfg.Warnings, "job-manager.housekeeping.use-systemd-unit is deprecated - ignoring")
	}
	t.end()
	h := &perilog.HousekeepingConfig{OnFailure: jobstate.OnFailureRelease}
	if d := fsdOf(after, f.fail, "job-manager.housekeeping.release-after FSD parse error"); d.Set && d.Value != fsd.Forever {
		h.ReleaseAfter = &d.Value
	}
	h.Command = command(argv, "housekeeping", imp, f.fail,
		"error creating housekeeping command", "job-manager.housekeeping implies IMP but exec.imp is undefined")
	return h
}

// action reads the table of the prolog or of the epilog.
func (f *fault) action(name string, value json.RawMessage, imp string) []perilog.ActionConfig {
	if value == nil {
		return nil
	}
	t := f.read("[job-manager."+name+"]: %w", value)
	argv, timeout := t.take("command"), t.expect("timeout", "string")
	a := perilog.ActionConfig{KillTimeout: t.seconds("kill-timeout"), PerRank: t.bool("per-rank").Value}
	if cancel := t.bool("cancel-on-exception"); cancel.Set {
		a.CancelOnException = &cancel.Value
	}
	t.end()
	if argv != nil && kind(argv) != "array" {
		t.fail("command must be an array")
	}
	a.Command = command(argv, name, imp, t.fail, "malformed "+name+" command", "no command specified and exec.imp not defined")
	if a.KillTimeout > 0 && name == "epilog" {
		t.fail("kill-timeout not allowed for epilog")
	}
	if d := fsdOf(timeout, t.fail, "invalid "+name+" timeout"); d.Set {
		a.Timeout = cmp.Or(d.Value, fsd.Forever)
	}
	return []perilog.ActionConfig{a}
}

func (f *fault) logIgnore(value json.RawMessage) (ignore []*regexp.Regexp) {
	if value == nil {
		return nil
	}
	t := &table{of: f, where: "[job-manager.perilog]: error parsing log-ignore: %w"}
	if kind(value) != "array" {
		t.fail("not an array")
	}
	list, ok := stringsOf(value, "")
	switch {
	case !ok:
		t.fail("all entries must be a string value")
	case len(list) > maxPatterns:
		t.fail("%d patterns, at most %d", len(list), maxPatterns)
	}
	program := 0
	for _, p := range list {
		if len(p) > maxPattern {
			t.fail("a pattern of %d bytes, at most %d", len(p), maxPattern)
		}
		if f.err != nil {
			return nil
		}
		tree, err := syntax.Parse(p, syntax.Perl)
		if err == nil {
			program += size(tree)
		}
		if program > maxProgram {
			t.fail("too many characters at %s", p)
			return nil
		}
		re, err := regexp.Compile(p)
		if err != nil {
			t.fail("Failed to compile regex: %s", p)
		}
		ignore = append(ignore, re)
	}
	return ignore
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
