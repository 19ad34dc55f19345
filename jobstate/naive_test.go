package jobstate_test

import (
	"encoding/json"
	"fmt"
	"sort"
	"strings"
)

// naive is a second fold of a job's log, written from RFC 21 and from what the
// reference is known to do, with encoding/json, maps and states as words. It
// shares nothing with the reducer and is not quick.
type naive struct {
	state    string
	times    map[string]float64
	deps     map[string]string // description → "open" or "done"
	active   map[string]int    // "prolog x" → live ones
	notes    map[string]any
	facts    map[string]any // userid, urgency, priority, waitstatus, …
	severity int            // of the worst exception, 99 without
	updates  map[string]any
}

func newNaive() *naive {
	return &naive{
		state: "NEW", times: map[string]float64{}, deps: map[string]string{}, active: map[string]int{},
		notes: map[string]any{}, facts: map[string]any{}, severity: 99, updates: map[string]any{},
	}
}

func (n *naive) to(state string, t float64) {
	if n.state == "SCHED" && state == "PRIORITY" {
		delete(n.facts, "priority")
	}
	if _, ok := n.times[state]; !ok {
		n.times[state] = t
	}
	n.state = state
}

func (n *naive) step(line []byte) {
	var e struct {
		Timestamp float64
		Name      string
		Context   map[string]any
	}
	if err := json.Unmarshal(line, &e); err != nil {
		panic(err)
	}
	t, c := e.Timestamp, e.Context
	switch e.Name {
	case "submit":
		n.times["NEW"] = t
		n.facts["userid"], n.facts["urgency"] = c["userid"], c["urgency"]
		if _, ok := c["version"]; !ok {
			n.to("DEPEND", t)
		}
	case "validate":
		if n.state == "NEW" {
			n.to("DEPEND", t)
		}
	case "dependency-add":
		if d := c["description"].(string); n.state == "NEW" || n.state == "DEPEND" {
			if _, ok := n.deps[d]; !ok {
				n.deps[d] = "open"
			}
		}
	case "dependency-remove":
		if d := c["description"].(string); n.deps[d] != "" && (n.state == "NEW" || n.state == "DEPEND") {
			n.deps[d] = "done"
		}
	case "depend":
		if n.state == "DEPEND" {
			n.to("PRIORITY", t)
		}
	case "priority":
		if n.state == "PRIORITY" || n.state == "SCHED" {
			n.facts["priority"] = c["priority"]
			if n.state == "PRIORITY" {
				n.to("SCHED", t)
			}
		}
	case "urgency", "flux-restart", "jobspec-update":
		if u, ok := c["urgency"]; ok {
			n.facts["urgency"] = u
		}
		if e.Name == "jobspec-update" {
			for k, v := range c {
				n.updates[k] = v
			}
		}
		if n.state == "SCHED" {
			n.to("PRIORITY", t)
		}
	default:
		n.stepRun(e.Name, t, c)
	}
}

func (n *naive) stepRun(name string, t float64, c map[string]any) {
	switch name {
	case "alloc":
		n.facts["resources"] = true
		if a, ok := c["annotations"].(map[string]any); ok {
			naiveMerge(n.notes, a)
		}
		if n.state == "SCHED" {
			n.to("RUN", t)
		}
	case "start":
		n.facts["started"] = true
	case "finish":
		n.facts["waitstatus"] = c["status"]
		n.facts["success"] = c["status"] == 0.0 && n.severity != 0
		if n.state == "RUN" {
			n.to("CLEANUP", t)
		}
	case "free":
		n.facts["resources"] = false
	case "clean":
		n.to("INACTIVE", t)
	case "resource-update":
		n.facts["expiration"] = c["expiration"]
	case "memo":
		naiveMerge(n.notes, map[string]any{"user": c})
	case "exception":
		if sev := int(c["severity"].(float64)); sev < n.severity {
			n.severity = sev
			n.facts["exception_type"], n.facts["exception_note"] = c["type"], c["note"]
		}
		if c["severity"] == 0.0 {
			if c["type"] == "scheduler-restart" {
				n.facts["resources"] = false
			}
			if n.state != "CLEANUP" {
				n.to("CLEANUP", t)
			}
		}
	case "prolog-start", "epilog-start":
		n.active[name[:6]+" "+c["description"].(string)]++
	case "prolog-finish", "epilog-finish":
		if key := name[:6] + " " + c["description"].(string); n.active[key] > 0 {
			n.active[key]--
		}
	}
}

// naiveMerge is RFC 27's update of a dictionary.
func naiveMerge(dst, patch map[string]any) {
	for k, v := range patch {
		sub, isDict := v.(map[string]any)
		old, wasDict := dst[k].(map[string]any)
		switch {
		case v == nil:
			delete(dst, k)
		case isDict:
			if !wasDict {
				old = map[string]any{}
				dst[k] = old
			}
			naiveMerge(old, sub)
			if len(old) == 0 {
				delete(dst, k)
			}
		default:
			dst[k] = v
		}
	}
}

// text is the naive job in canonical form: the same as describe's of a Job.
func (n *naive) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "state %s\n", n.state)
	for _, k := range sortedKeys(n.times) {
		fmt.Fprintf(&b, "time %s %v\n", k, n.times[k])
	}
	for _, k := range sortedKeys(n.deps) {
		if n.deps[k] == "open" {
			fmt.Fprintf(&b, "dependency %s\n", k)
		}
	}
	for _, k := range sortedKeys(n.active) {
		if n.active[k] > 0 {
			fmt.Fprintf(&b, "active %s %d\n", k, n.active[k])
		}
	}
	n.defaults()
	for _, k := range sortedKeys(n.facts) {
		fmt.Fprintf(&b, "%s %v\n", k, n.facts[k])
	}
	fmt.Fprintf(&b, "severity %d\n", n.severity)
	fmt.Fprintf(&b, "updates %s\n", marshal(n.updates))
	fmt.Fprintf(&b, "annotations %s\n", marshal(n.notes))
	return b.String()
}

func (n *naive) defaults() {
	for _, k := range []string{"resources", "started", "success"} {
		if _, ok := n.facts[k]; !ok {
			n.facts[k] = false
		}
	}
}

func marshal(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
