package perilog

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate/fsd"
)

// Limits of a configuration.
const (
	maxActions   = 256     // of one kind
	maxArguments = 1 << 12 // of a command, and of regular expressions
	maxBytes     = 1 << 16 // of a text
)

// What is wrong with a value.
var (
	errUnknownKey  = errors.New("is not a known key")
	errNotTable    = errors.New("is not a table")
	errNotTables   = errors.New("is not an array of tables")
	errNotString   = errors.New("is not a string")
	errNotStrings  = errors.New("is not an array of strings")
	errNotPattern  = errors.New("is not a regular expression")
	errNotBool     = errors.New("is not a boolean")
	errNotCount    = errors.New("is not a whole number from 0 to 1048576")
	errNotFraction = errors.New("is not a number from 0 to 1")
	errNotRanks    = errors.New("is not an idset")
	errNotDuration = errors.New("is not a duration")
	errInfinite    = errors.New("is not finite")
	errTooMany     = errors.New("has too many elements")
	errTooLarge    = errors.New("has too many bytes")
	errNoCommand   = errors.New("is missing, and so is exec.imp")
	errNotThere    = errors.New("is missing")
	errEmpty       = errors.New("is empty")
	errNotName     = errors.New("is too long, or has control characters or invalid UTF-8")
	errTwice       = errors.New("is the name of an earlier action")
)

// FromMap returns the configuration that a map describes, as any decoder of
// TOML or JSON makes it of a file: tables are map[string]any, arrays []any or
// slices of strings and tables, numbers of any Go type or json.Number. It reads
//
//	[job-manager.prolog], [job-manager.epilog]
//	    command              array of strings; default: exec.imp, "run" and the kind
//	    per-rank             boolean; default: false
//	    timeout              duration; 0 and infinity: none; default: 30m for a prolog, none for an epilog
//	    kill-timeout         finite duration; default and 0: 60s
//	    cancel-on-exception  boolean; default: true for a prolog, false for an epilog
//	    tolerate             table: count, fraction, ranks (an idset), drop (boolean); see [Tolerate]
//	    actions              array of tables: further actions, each with a name
//	[job-manager.perilog]
//	    log-ignore           array of regular expressions
//	[job-manager.housekeeping]
//	    command              as above
//	    release-after        duration; absent and infinity: all at once
//	    timeout              duration; default: none
//	    kill-timeout         as above
//
// and exec.imp, a string; tolerate, actions and the timeouts of housekeeping
// are not known to the reference. A table of actions has the keys above and
// name, which becomes the description; the other keys beside actions, command
// excepted, are defaults for them. With actions, an action of the table itself
// is there only if it has a command.
//
// A duration is a text of package fsd or a number of seconds. A key that is not
// listed, in a table that is, and a value that can not be used are a
// *ConfigError that names the key; of several it is always the same one. Other
// tables and keys belong to others and are not looked at. It retains nothing
// of m.
func FromMap(m map[string]any) (Config, error) {
	r := new(configReader)
	root := table{r: r, values: m, present: true}
	imp := root.sub("exec").text("imp")
	manager := root.sub("job-manager")
	c := Config{
		Prologs: r.actions(manager.sub("prolog"), RunProlog, imp),
		Epilogs: r.actions(manager.sub("epilog"), RunEpilog, imp),
	}
	perilog := manager.sub("perilog")
	perilog.only("log-ignore")
	c.LogIgnore = perilog.patterns("log-ignore")
	c.Housekeeping = r.housekeeping(manager.sub("housekeeping"), imp)
	if r.err != nil {
		return Config{}, r.err
	}
	return c, nil
}

// configReader keeps the first error of reading a configuration.
type configReader struct{ err error }

// table is a table of the configuration, or one that is not there.
type table struct {
	r       *configReader
	path    string // "" of the root
	values  map[string]any
	present bool
}

// bareKey is the characters of keys that need no quotes.
const bareKey = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"

// key returns the dotted name of a key of t, quoted where TOML would.
func (t table) key(name string) string {
	if name == "" || strings.Trim(name, bareKey) != "" {
		name = strconv.Quote(clip(name))
	}
	if t.path == "" {
		return name
	}
	return t.path + "." + name
}

// fail keeps an error about a key of t, unless there is one already.
func (t table) fail(name string, err error) {
	if t.r.err == nil {
		t.r.err = &ConfigError{Key: t.key(name), Err: err}
	}
}

// only refuses keys that are not among those named.
func (t table) only(names ...string) {
	for _, name := range slices.Sorted(maps.Keys(t.values)) {
		if !slices.Contains(names, name) {
			t.fail(name, errUnknownKey)
			return
		}
	}
}

// sub returns the table that a key names.
func (t table) sub(name string) table {
	v, ok := t.values[name]
	s := table{r: t.r, path: t.key(name)}
	if !ok {
		return s
	}
	if s.values, s.present = v.(map[string]any); !s.present {
		t.fail(name, errNotTable)
	}
	return s
}

// tables returns the array of tables that a key names.
func (t table) tables(name string) []table {
	v, ok := t.values[name]
	if !ok {
		return nil
	}
	var maps []map[string]any
	switch v := v.(type) {
	case []map[string]any:
		maps = v
	case []any:
		for _, e := range v {
			m, ok := e.(map[string]any)
			if !ok {
				t.fail(name, errNotTables)
				return nil
			}
			maps = append(maps, m)
		}
	default:
		t.fail(name, errNotTables)
	}
	if len(maps) > maxActions {
		t.fail(name, errTooMany)
		return nil
	}
	subs := make([]table, len(maps))
	for i, m := range maps {
		path := t.key(name) + "[" + strconv.Itoa(i) + "]"
		subs[i] = table{r: t.r, path: path, values: m, present: true}
	}
	return subs
}

// text returns a string, "" if it is not there.
func (t table) text(name string) string {
	v, ok := t.values[name]
	if !ok {
		return ""
	}
	s, ok := v.(string)
	switch {
	case !ok:
		t.fail(name, errNotString)
	case s == "":
		t.fail(name, errEmpty)
	case len(s) > maxBytes:
		t.fail(name, errTooLarge)
	}
	return s
}

// texts returns an array of strings, nil if it is not there.
func (t table) texts(name string) []string {
	v, ok := t.values[name]
	if !ok {
		return nil
	}
	texts := []string{}
	switch v := v.(type) {
	case []string:
		texts = append(texts, v...)
	case []any:
		for _, e := range v {
			s, ok := e.(string)
			if !ok {
				t.fail(name, errNotStrings)
				return nil
			}
			texts = append(texts, s)
		}
	default:
		t.fail(name, errNotStrings)
	}
	if len(texts) > maxArguments {
		t.fail(name, errTooMany)
	}
	for _, s := range texts {
		if len(s) > maxBytes {
			t.fail(name, errTooLarge)
		}
	}
	return texts
}

// patterns returns an array of regular expressions.
func (t table) patterns(name string) []string {
	texts := t.texts(name)
	for i, s := range texts {
		if _, err := regexp.Compile(s); err != nil {
			t.fail(name, fmt.Errorf("element %d %w", i, errNotPattern))
		}
	}
	return texts
}

// truth returns a boolean, or other if it is not there.
func (t table) truth(name string, other bool) bool {
	v, ok := t.values[name]
	if !ok {
		return other
	}
	b, ok := v.(bool)
	if !ok {
		t.fail(name, errNotBool)
	}
	return b
}

// number returns a number, and false if the value is none.
func number(v any) (float64, bool) {
	switch v := v.(type) {
	case int:
		return float64(v), true
	case int64:
		return float64(v), true
	case uint64:
		return float64(v), true
	case float64:
		return v, true
	case json.Number:
		f, err := v.Float64()
		return f, err == nil
	}
	return 0, false
}

// duration returns a duration, and whether it is there. An infinite one is
// returned as such.
func (t table) duration(name string) (fsd.Duration, bool) {
	v, ok := t.values[name]
	if !ok {
		return 0, false
	}
	var d fsd.Duration
	var err error
	if text, ok := v.(string); ok {
		d, err = fsd.Parse(text)
	} else if seconds, ok := number(v); ok {
		d, err = fsd.FromSeconds(seconds)
	} else {
		err = errNotDuration
	}
	if err != nil {
		t.fail(name, errNotDuration)
	}
	return d, true
}

// timeout returns a duration of which infinite means none and is 0, or other if
// it is not there.
func (t table) timeout(name string, other fsd.Duration) fsd.Duration {
	d, ok := t.duration(name)
	switch {
	case !ok:
		return other
	case d.IsInfinite():
		return 0
	}
	return d
}

// killTimeout returns a finite duration of which 0 means other, which it also
// is if it is not there.
func (t table) killTimeout(name string, other fsd.Duration) fsd.Duration {
	d, _ := t.duration(name)
	switch {
	case d.IsInfinite():
		t.fail(name, errInfinite)
	case d == 0:
		return other
	}
	return d
}

// command returns a command: that of the table, or that of the reference's
// privileged helper imp.
func (t table) command(kind RunKind, imp string) []string {
	if command := t.texts("command"); command != nil {
		if len(command) == 0 {
			t.fail("command", errEmpty)
		}
		return command
	}
	if imp == "" {
		t.fail("command", errNoCommand)
	}
	return []string{imp, "run", kind.String()}
}

// actions returns the actions of one kind.
func (r *configReader) actions(t table, kind RunKind, imp string) []ActionConfig {
	if !t.present {
		return nil
	}
	t.only("command", "per-rank", "timeout", "kill-timeout", "cancel-on-exception", "tolerate", "actions")
	base := ActionConfig{Kind: kind, KillTimeout: DefaultKillTimeout, Cancel: CancelNever}
	if kind == RunProlog {
		base.Timeout, base.Cancel = DefaultPrologTimeout, CancelOnException
	}
	base = t.action(base)
	var actions []ActionConfig
	_, named := t.values["actions"]
	if _, own := t.values["command"]; own || !named {
		first := base
		first.Description, first.Command = kind.description(), t.command(kind, imp)
		actions = append(actions, first)
	}
	for _, sub := range t.tables("actions") {
		sub.only("name", "command", "per-rank", "timeout", "kill-timeout", "cancel-on-exception", "tolerate")
		a := sub.action(base)
		a.Tolerate = a.Tolerate.clone()
		a.Description, a.Command = sub.text("name"), sub.texts("command")
		switch {
		case a.Description == "":
			sub.fail("name", errNotThere)
		case !describes(a.Description):
			sub.fail("name", errNotName)
		case len(a.Command) == 0:
			sub.fail("command", errNotThere)
		case slices.ContainsFunc(actions, func(b ActionConfig) bool { return b.Description == a.Description }):
			sub.fail("name", errTwice)
		}
		actions = append(actions, a)
	}
	return actions
}

// action returns the action of a table whose keys, where absent, are as in a.
func (t table) action(a ActionConfig) ActionConfig {
	a.PerRank = t.truth("per-rank", a.PerRank)
	a.Timeout = t.timeout("timeout", a.Timeout)
	a.KillTimeout = t.killTimeout("kill-timeout", a.KillTimeout)
	switch {
	case t.truth("cancel-on-exception", a.Cancel == CancelOnException):
		a.Cancel = CancelOnException
	default:
		a.Cancel = CancelNever
	}
	if sub := t.sub("tolerate"); sub.present {
		a.Tolerate = sub.tolerate()
	}
	return a
}

// tolerate returns what a table says of tolerated failures.
func (t table) tolerate() Tolerate {
	t.only("count", "fraction", "ranks", "drop")
	tol := Tolerate{Drop: t.truth("drop", false)}
	if v, ok := t.values["count"]; ok {
		f, ok := number(v)
		if !ok || f != math.Trunc(f) || f < 0 || f > MaxRunRanks {
			t.fail("count", errNotCount)
			return tol
		}
		tol.Count = int(f)
	}
	if v, ok := t.values["fraction"]; ok {
		f, ok := number(v)
		if !ok || !(f >= 0 && f <= 1) {
			t.fail("fraction", errNotFraction)
		}
		tol.Fraction = f
	}
	if text := t.text("ranks"); text != "" {
		ranks, err := idset.Parse(text)
		if err != nil {
			t.fail("ranks", errNotRanks)
		}
		tol.Ranks = ranks
	}
	return tol
}

// housekeeping returns the work after the job, nil if there is none.
func (r *configReader) housekeeping(t table, imp string) *HousekeepingConfig {
	if !t.present {
		return nil
	}
	t.only("command", "release-after", "timeout", "kill-timeout")
	h := &HousekeepingConfig{
		Command:     t.command(RunHousekeeping, imp),
		Timeout:     t.timeout("timeout", 0),
		KillTimeout: t.killTimeout("kill-timeout", DefaultKillTimeout),
	}
	if d, ok := t.duration("release-after"); ok && !d.IsInfinite() {
		h.ReleaseAfter = &d
	}
	return h
}
