package perilog_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/perilog"
)

// naiveOp is one event, as the generators make it.
type naiveOp struct {
	name   string // as in the log
	desc   string
	ranks  []uint32 // may name ranks that are not the job's
	all    bool     // no key ranks; of a release: "all"
	names  []string
	status int
	final  bool
	fatal  bool // of an exception
	revoke bool // its type is scheduler-restart
	drop   bool // it drops ranks, rather than keeps them
}

// entry returns the event at time t.
func (o naiveOp) entry(t eventlog.Timestamp) eventlog.Entry {
	ranks := fmt.Sprintf("%q", idset.Of(o.ranks...).String())
	var parts []string
	add := func(key, value string) { parts = append(parts, fmt.Sprintf("%q:%s", key, value)) }
	switch o.name {
	case "prolog-start", "epilog-start", "prolog-finish", "epilog-finish", "epilog-release", "prolog-release":
		add("description", fmt.Sprintf("%q", o.desc))
		if !strings.HasSuffix(o.name, "-start") {
			add("status", fmt.Sprint(o.status))
		}
		if !o.all {
			add("ranks", ranks)
		}
		if len(o.names) > 0 {
			add("resources", `["`+strings.Join(o.names, `","`)+`"]`)
		}
	case "memo":
		add("x", "1")
	case "finish":
		add("status", fmt.Sprint(o.status))
	case "release":
		if o.all {
			ranks = `"all"`
		}
		add("ranks", ranks)
		add("final", fmt.Sprint(o.final))
	case "exception":
		kind, severity := "x", 1
		if o.fatal {
			severity = 0
		}
		if o.revoke {
			kind = "scheduler-restart"
		}
		add("type", fmt.Sprintf("%q", kind))
		add("severity", fmt.Sprint(severity))
		if !o.fatal && !o.all {
			add("ranks", ranks)
			add("action", map[bool]string{true: `"drop"`, false: `"keep"`}[o.drop])
		}
	}
	e := eventlog.Entry{Timestamp: t, Name: o.name}
	if len(parts) > 0 {
		e.Context = []byte("{" + strings.Join(parts, ",") + "}")
	}
	return e
}

const (
	naiveJob  = 0 // the holder ids; actions count from 2
	naiveExec = 1
)

// naiveHolds is a multiset of holders for each rank and each name, moved one by
// one, and the rules of Holds in the simplest words.
type naiveHolds struct {
	ranks   []uint32
	early   bool
	holders map[uint32][]int // of each rank
	uses    map[string][]int // of each name: the actions
	acted   map[string]bool
	left    map[any]bool // ranks and names
	dropped map[uint32]bool
	actions []int // active, in order
	label   map[int]string

	allocated, was, started, finished, cleanup, released, prologFailed, closed, revoked bool
}

func newNaive(ranks int, o perilog.HoldsOptions) *naiveHolds {
	n := &naiveHolds{
		early: o.EarlyRelease, holders: map[uint32][]int{}, uses: map[string][]int{}, acted: map[string]bool{},
		left: map[any]bool{}, dropped: map[uint32]bool{}, label: map[int]string{naiveJob: "job", naiveExec: "executor"},
	}
	for r := range ranks {
		n.ranks = append(n.ranks, uint32(r))
		n.holders[uint32(r)] = nil
	}
	for _, name := range o.Named {
		n.uses[name] = nil
	}
	return n
}

// lose removes one hold of a holder on a rank, and reports whether it was there.
func lose[K comparable](m map[K][]int, key K, id int) bool {
	i := slices.Index(m[key], id)
	if i >= 0 {
		m[key] = slices.Delete(slices.Clone(m[key]), i, i+1)
	}
	return i >= 0
}

func (n *naiveHolds) idle() bool {
	return n.cleanup && (!n.started || n.released) && len(n.actions) == 0
}

// end removes all that a holder holds, and notes where.
func (n *naiveHolds) end(id int, touched map[any]bool) {
	for r := range n.holders {
		if lose(n.holders, r, id) {
			touched[r] = true
		}
	}
	for name := range n.uses {
		if lose(n.uses, name, id) {
			touched[name] = true
		}
	}
}

// apply folds one event.
func (n *naiveHolds) apply(o naiveOp) {
	touched := map[any]bool{} // ranks and names on which a hold ended
	last := false             // a whole hold ended, or the job was freed
	switch o.name {
	case "alloc":
		if !n.allocated && !n.was && !n.cleanup {
			for _, r := range n.ranks {
				if !n.dropped[r] {
					n.holders[r] = append(n.holders[r], naiveJob)
				}
			}
		}
		if !n.allocated {
			n.revoked = false
		}
		n.allocated, n.was = true, true
	case "start":
		for _, r := range n.ranks {
			if !n.started && !n.released && !n.left[r] && !n.dropped[r] {
				n.holders[r] = append(n.holders[r], naiveExec)
			}
		}
		n.started = true
	case "finish":
		n.finished, n.cleanup = true, true
		n.end(naiveJob, map[any]bool{})
	case "exception":
		if o.fatal {
			n.cleanup = true
			n.end(naiveJob, map[any]bool{})
			if o.revoke && n.allocated {
				n.allocated, n.revoked = false, true
			}
		} else if !o.all && o.drop {
			for _, r := range n.own(o.ranks) {
				if !n.dropped[r] {
					n.dropped[r], touched[r] = true, true
					lose(n.holders, r, naiveJob)
					lose(n.holders, r, naiveExec)
				}
			}
		}
	case "release":
		last = n.release(o, touched)
	case "free":
		last = n.allocated
		n.allocated = false
	case "clean":
		last, n.closed = true, true
	default:
		last = n.action(o, touched)
	}
	if !n.was {
		return
	}
	for x := range touched {
		switch x := x.(type) {
		case uint32:
			if len(n.holders[x]) == 0 {
				n.left[x] = true
			}
		case string:
			if n.cleanup && (!n.started || n.released) && n.acted[x] && len(n.uses[x]) == 0 {
				n.left[x] = true
			}
		}
	}
	if last && n.idle() {
		for _, r := range n.ranks {
			n.left[r] = true
		}
		for name := range n.uses {
			n.left[name] = true
		}
	}
}

// release folds what the executor says, and reports whether it ended its hold.
func (n *naiveHolds) release(o naiveOp, touched map[any]bool) bool {
	ranks := o.ranks
	if o.all {
		ranks = n.ranks
	}
	switch {
	case n.released:
		return false
	case o.final:
		n.released = true
		n.end(naiveExec, touched)
		for name := range n.uses {
			touched[name] = true
		}
		return true
	case !n.started, !n.finished && !n.early:
		return false
	}
	for _, r := range ranks {
		if lose(n.holders, r, naiveExec) {
			touched[r] = true
			if !n.finished {
				lose(n.holders, r, naiveJob) // which may not have begun
			}
		}
	}
	return false
}

// action folds the events of prologs and epilogs, and reports whether one ended.
func (n *naiveHolds) action(o naiveOp, touched map[any]bool) bool {
	kind, what, _ := strings.Cut(o.name, "-")
	label := kind + ":" + o.desc
	if what == "start" {
		if kind == "prolog" && n.started {
			return false
		}
		id := 2 + len(n.label)
		n.label[id] = label
		n.actions = append(n.actions, id)
		ranks := n.own(o.ranks)
		if o.all {
			ranks = n.ranks
		}
		for _, r := range ranks {
			if !n.left[r] && !(o.all && n.dropped[r]) {
				n.holders[r] = append(n.holders[r], id)
			}
		}
		for _, name := range o.names {
			if _, ok := n.uses[name]; ok && !n.left[name] {
				n.uses[name] = append(n.uses[name], id)
				n.acted[name] = true
			}
		}
		return false
	}
	whole := what == "finish" && (kind == "prolog" || o.all && len(o.names) == 0)
	ranks := o.ranks
	if o.all {
		ranks = nil
	}
	if !whole {
		for _, r := range ranks {
			for _, id := range n.actions {
				if n.label[id] == label && lose(n.holders, r, id) {
					touched[r] = true
					break
				}
			}
		}
		for _, name := range o.names {
			for _, id := range n.actions {
				if n.label[id] == label && lose(n.uses, name, id) {
					touched[name] = true
					break
				}
			}
		}
	}
	if what != "finish" {
		return false
	}
	for i, id := range n.actions {
		if n.label[id] == label && (whole || n.bare(id)) {
			n.actions = slices.Delete(slices.Clone(n.actions), i, i+1)
			n.end(id, touched)
			n.prologFailed = n.prologFailed || kind == "prolog" && o.status != 0
			return true
		}
	}
	return false
}

// bare reports whether a holder holds nothing.
func (n *naiveHolds) bare(id int) bool {
	for _, ids := range n.holders {
		if slices.Contains(ids, id) {
			return false
		}
	}
	for _, ids := range n.uses {
		if slices.Contains(ids, id) {
			return false
		}
	}
	return true
}

// own returns those of the ranks that are the job's.
func (n *naiveHolds) own(ranks []uint32) []uint32 {
	var out []uint32
	for _, r := range ranks {
		if slices.Contains(n.ranks, r) {
			out = append(out, r)
		}
	}
	return out
}

// text returns the state in the words that holdsText uses of a Holds.
func (n *naiveHolds) text() string {
	var b strings.Builder
	for _, r := range n.ranks {
		fmt.Fprintf(&b, "%d:", r)
		for _, id := range append([]int{naiveJob, naiveExec}, n.actions...) {
			if n.was && slices.Contains(n.holders[r], id) {
				fmt.Fprintf(&b, " %s", n.label[id])
			}
		}
		fmt.Fprintf(&b, " %t; ", n.left[r])
	}
	for _, id := range n.actions {
		fmt.Fprintf(&b, "%s", n.label[id])
		for _, name := range sortedNames(n.uses) {
			if n.was && slices.Contains(n.uses[name], id) {
				fmt.Fprintf(&b, " %s", name)
			}
		}
		b.WriteString("; ")
	}
	for _, name := range sortedNames(n.uses) {
		if n.left[name] {
			fmt.Fprintf(&b, "%s left; ", name)
		}
	}
	start := n.allocated && !n.cleanup && !n.started && !n.prologFailed
	for _, id := range n.actions {
		start = start && !strings.HasPrefix(n.label[id], "prolog")
	}
	fmt.Fprintf(&b, "start %t, free %t, clean %t", start, n.allocated && !n.closed && n.idle(), !n.allocated && !n.closed && n.idle())
	return b.String()
}

func sortedNames(m map[string][]int) []string {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// holdsText returns the state of a Holds of n ranks in the words of naiveHolds.
func holdsText(h *perilog.Holds, ranks int) string {
	var b strings.Builder
	ready, held := h.Ready(nil), h.Held()
	for r := range uint32(ranks) {
		fmt.Fprintf(&b, "%d:", r)
		n := 0
		for x := range h.HoldersOf(r) {
			n++
			if x.Kind >= perilog.HolderProlog {
				fmt.Fprintf(&b, " %v:%s", x.Kind, x.Description)
			} else {
				fmt.Fprintf(&b, " %v", x.Kind)
			}
		}
		if (n > 0) != held.Contains(r) {
			b.WriteString(" Held and HoldersOf differ")
		}
		fmt.Fprintf(&b, " %t; ", ready.Contains(r))
	}
	for x := range h.Holders() {
		if x.Kind >= perilog.HolderProlog {
			fmt.Fprintf(&b, "%v:%s", x.Kind, x.Description)
			for _, name := range x.Named {
				fmt.Fprintf(&b, " %s", name)
			}
			b.WriteString("; ")
		}
	}
	for _, name := range h.ReadyNamed() {
		fmt.Fprintf(&b, "%s left; ", name)
	}
	return b.String() + may(h)
}

// active reports whether an action is.
func (n *naiveHolds) active(label string) bool {
	return slices.ContainsFunc(n.actions, func(id int) bool { return n.label[id] == label })
}

// clone returns a copy that changes by itself: apply replaces slices in maps.
func (n *naiveHolds) clone() *naiveHolds {
	c := *n
	c.holders, c.uses, c.acted = maps.Clone(n.holders), maps.Clone(n.uses), maps.Clone(n.acted)
	c.left, c.dropped, c.label = maps.Clone(n.left), maps.Clone(n.dropped), maps.Clone(n.label)
	c.actions = slices.Clone(n.actions)
	for k, v := range c.holders {
		c.holders[k] = slices.Clone(v)
	}
	for k, v := range c.uses {
		c.uses[k] = slices.Clone(v)
	}
	return &c
}
