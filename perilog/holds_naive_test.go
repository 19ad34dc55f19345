package perilog_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/perilog"
)

// naiveHolds is who holds each thing, a rank or a named resource, and the rules of Holds in
// the simplest words. What is legal the job's state says.
type naiveHolds struct {
	things                        []any
	holders                       map[any][]string // executor, drain, and numbers of actions
	acted, left, drained, dropped map[any]bool
	ended                         map[any]bool // a hold on them, by the current event
	actions                       []naiveHold
	starts                        int
	started, released             bool
}

type naiveHold struct{ id, key string }

// holdsOp is an event, as the generator makes it.
type holdsOp struct {
	name, desc  string
	ranks       []uint32
	all         bool
	names       []string
	drain       bool
	final, drop bool
	fatal       bool
}

func (o *holdsOp) context() string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	kind, what, action := strings.Cut(o.name, "-")
	action = action && (kind == "prolog" || kind == "epilog")
	ranks := idset.Of(o.ranks...).String()
	switch {
	case action:
		add(`"description":%q`, o.desc)
		if what != "start" {
			add(`"status":%d`, len(o.ranks)%2*256)
		}
		if !o.all {
			add(`"ranks":%q`, ranks)
		}
		if len(o.names) > 0 && what != "fail" {
			add(`"resources":["%s"]`, strings.Join(o.names, `","`))
		}
		if what == "fail" {
			add(`"cause":"failed","drain":%t`, o.drain)
		}
	case o.name == "release":
		if o.all {
			ranks = "all"
		}
		add(`"ranks":%q,"final":%t`, ranks, o.final)
	case o.name == "finish":
		add(`"status":0`)
	case o.name == "drained":
		add(`"ranks":%q`, ranks)
	case o.name == "exception" && o.fatal:
		add(`"type":"cancel","severity":0,"note":""`)
	case o.name == "exception":
		add(`"type":"node","severity":1,"note":"","ranks":%q,"action":%q`, ranks, map[bool]string{true: "drop", false: "keep"}[o.drop])
	default:
		return ""
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func drawHoldsOp(t *rapid.T, n int, names []string) holdsOp {
	o := holdsOp{
		name: rapid.SampledFrom([]string{
			"start", "finish", "free", "clean", "release", "release", "exception", "drained", "drained",
			"prolog-start", "prolog-finish", "prolog-fail", "prolog-release", "epilog-start", "epilog-start", "epilog-finish",
			"epilog-fail", "epilog-release", "epilog-release", "alloc",
		}).Draw(t, "event"),
		desc: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "description"),
		all:  rapid.IntRange(0, 2).Draw(t, "all") == 0, final: rapid.IntRange(0, 2).Draw(t, "final") == 0,
		fatal: rapid.IntRange(0, 3).Draw(t, "fatal") == 0, drop: rapid.Bool().Draw(t, "drop"), drain: rapid.Bool().Draw(t, "drain"),
	}
	for r := range uint32(n + 1) { // the last is not the job's
		if rapid.Bool().Draw(t, "rank") {
			o.ranks = append(o.ranks, r)
		}
	}
	for _, name := range append([]string{"unknown"}, names...) {
		if rapid.IntRange(0, 2).Draw(t, "name") == 0 {
			o.names = append(o.names, name)
		}
	}
	o.all = o.all && (o.name == "release" || strings.HasSuffix(o.name, "-start")) // others name ranks
	if len(o.ranks) == 0 && (strings.HasSuffix(o.name, "-fail") || o.name == "exception") {
		o.ranks = []uint32{0}
	}
	return o
}

// apply folds an event that the job has applied.
func (n *naiveHolds) apply(o holdsOp, job *jobstate.Job) {
	n.ended = map[any]bool{}
	kind, what, action := strings.Cut(o.name, "-")
	key := kind + ":" + o.desc
	for _, x := range n.things {
		rank, isRank := x.(uint32)
		name, _ := x.(string)
		named := isRank && (o.all || slices.Contains(o.ranks, rank)) || slices.Contains(o.names, name)
		switch {
		case o.name == "clean":
			n.holders[x], n.left[x] = nil, job.WasAllocated()
		case o.name == "release" && o.final && (n.started || !isRank), o.name == "finish" && n.started && isRank:
			n.end(x, "executor", o.name == "release")
			n.ended[x] = true
		case o.name == "start" && !n.started && !n.released && isRank && !n.left[x] && !n.dropped[x]:
			n.holders[x] = append(n.holders[x], "executor")
		case !named:
		case o.name == "release":
			n.end(x, "executor", isRank)
		case o.name == "drained" && isRank:
			n.drained[x] = n.end(x, "drain", true) || n.drained[x]
		case o.name == "exception" && !o.fatal && o.drop && isRank:
			n.drain(x)
			n.dropped[x], n.ended[x] = true, true
			n.end(x, "executor", true)
		case what == "fail" && o.drain && isRank:
			n.drain(x)
		case what == "start" && !n.left[x] && !(o.all && n.dropped[x]):
			n.holders[x] = append(n.holders[x], fmt.Sprint(n.starts+1))
			n.acted[x] = true
		case action && what == "release": // of the oldest start that holds it
			for _, a := range n.actions {
				if a.key == key && n.end(x, a.id, true) {
					break
				}
			}
		}
	}
	n.started = n.started || o.name == "start"
	n.released = n.released || o.name == "release" && o.final || o.name == "clean"
	switch {
	case o.name == "clean":
		n.actions = nil
	case what == "start":
		n.starts++
		n.actions = append(n.actions, naiveHold{fmt.Sprint(n.starts), key})
	case what == "finish":
		i := slices.IndexFunc(n.actions, func(a naiveHold) bool { return a.key == key })
		for _, x := range n.things {
			n.end(x, n.actions[i].id, true)
		}
		n.actions = slices.Delete(n.actions, i, i+1)
	}
	n.leave(job)
}

// end ends a hold on a thing, if it may, and reports whether there was one.
func (n *naiveHolds) end(x any, holder string, may bool) bool {
	i := slices.Index(n.holders[x], holder)
	if i < 0 || !may {
		return false
	}
	n.holders[x] = slices.Delete(n.holders[x], i, i+1)
	n.ended[x] = true
	return true
}

func (n *naiveHolds) drain(x any) {
	if !n.left[x] && !n.drained[x] && !slices.Contains(n.holders[x], "drain") {
		n.holders[x] = append(n.holders[x], "drain")
	}
}

// leave lets leave what nothing holds any more.
func (n *naiveHolds) leave(job *jobstate.Job) {
	if !job.WasAllocated() {
		return
	}
	ending := job.State().In(jobstate.StateCleanup | jobstate.StateInactive)
	executing, draining := n.started && !n.released, false
	for _, x := range n.things {
		_, isRank := x.(uint32)
		may := ending && !executing && n.acted[x]
		if isRank {
			may = ending || n.dropped[x]
		}
		n.left[x] = n.left[x] || n.ended[x] && len(n.holders[x]) == 0 && may
		draining = draining || slices.Contains(n.holders[x], "drain")
	}
	if ending && !executing && len(n.actions) == 0 && !draining && !job.HasResources() {
		for _, x := range n.things {
			n.left[x] = true
		}
	}
}

// text returns who holds what in the words of holdsByThing.
func (n *naiveHolds) text(job *jobstate.Job) string {
	var b strings.Builder
	for _, x := range n.things {
		var who []string
		_, isRank := x.(uint32)
		if isRank && !job.State().In(jobstate.StateCleanup|jobstate.StateInactive) && !n.dropped[x] {
			who = append(who, "job:")
		}
		for _, id := range n.holders[x] {
			if i := slices.IndexFunc(n.actions, func(a naiveHold) bool { return a.id == id }); i >= 0 {
				who = append(who, n.actions[i].key)
			} else {
				who = append(who, id+":")
			}
		}
		if !job.WasAllocated() {
			who = nil
		}
		slices.Sort(who)
		fmt.Fprintf(&b, "%v: %v left %t; ", x, who, n.left[x])
	}
	return b.String()
}

// holdsByThing returns who holds what. Of named resources it says the actions alone.
func holdsByThing(h *perilog.Holds, things []any) string {
	var b strings.Builder
	left := h.Released()
	for _, x := range things {
		var who []string
		rank, isRank := x.(uint32)
		name, _ := x.(string)
		for by := range h.Holders() {
			if isRank && by.Ranks.Contains(rank) || by.Description != "" && slices.Contains(by.Named, name) {
				who = append(who, by.Kind.String()+":"+by.Description)
			}
		}
		slices.Sort(who)
		fmt.Fprintf(&b, "%v: %v left %t; ", x, who, isRank && left.Ranks.Contains(rank) || slices.Contains(left.Named, name))
	}
	return b.String()
}

// After every event of any log Holds is what a set of holders for each rank says,
// and after a restart it is the same.
func TestHoldsIsASetOfHoldersForEachRank(t *testing.T) {
	for range map[bool]int{false: 1, true: 100}[os.Getenv("JOBLIFE_DEEP") != ""] {
		rapid.Check(t, driveHolds)
	}
}

func FuzzHoldsModel(f *testing.F) { f.Fuzz(rapid.MakeFuzz(driveHolds)) }

func driveHolds(t *rapid.T) {
	const ranks = 4
	names := []string{"fs", "bb"}
	s := newHoldsStory(t, ranks, names...)
	n := &naiveHolds{
		things: []any{uint32(0), uint32(1), uint32(2), uint32(3), "bb", "fs"}, holders: map[any][]string{},
		acted: map[any]bool{}, left: map[any]bool{}, drained: map[any]bool{}, dropped: map[any]bool{},
	}
	ops := []holdsOp{{name: "alloc"}}
	if rapid.IntRange(0, 9).Draw(t, "no alloc") == 0 {
		ops = nil
	}
	for i := range rapid.IntRange(1, 30).Draw(t, "events") {
		op := drawHoldsOp(t, ranks, names)
		if i < len(ops) {
			op = ops[i]
		}
		s.now++
		e := entryOf(s.now, op.name, op.context())
		before := s.holds.String()
		outcome, err := s.holds.Apply(e)
		require.NoError(t, s.holds.Check())
		if err != nil || outcome != jobstate.Applied {
			require.Equal(t, before, s.holds.String())
			continue
		}
		s.log, err = eventlog.AppendEntry(s.log, e)
		require.NoError(t, err)
		n.apply(op, s.holds.Job())
		require.Equal(t, n.text(s.holds.Job()), holdsByThing(s.holds, n.things), "%s", s.log)
	}
	require.Equal(t, s.holds.String(), s.replay().String())
}
