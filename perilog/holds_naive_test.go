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

// naiveHolds is who holds each rank and each named resource, in maps, and the
// rules of Holds in the simplest words. What is legal the job's state says.
type naiveHolds struct {
	ranks    []uint32
	holders  map[uint32][]string // executor, drain, and numbers of actions
	uses     map[string][]string
	acted    map[string]bool
	left     map[any]bool
	drained  map[uint32]bool
	dropped  map[uint32]bool
	actions  []naiveHold
	starts   int
	started  bool
	released bool
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
	if strings.HasSuffix(o.name, "og-release") || strings.HasSuffix(o.name, "-fail") {
		o.all = false // ranks are required
	}
	if len(o.ranks) == 0 && (strings.HasSuffix(o.name, "-fail") || o.name == "exception") {
		o.ranks = []uint32{0}
	}
	return o
}

// apply folds an event that the job has applied.
func (n *naiveHolds) apply(o holdsOp, job *jobstate.Job) {
	ending := job.State().In(jobstate.StateCleanup | jobstate.StateInactive)
	touched := map[any]bool{}
	lose := func(rank uint32, holder string) {
		if i := slices.Index(n.holders[rank], holder); i >= 0 {
			n.holders[rank] = slices.Delete(slices.Clone(n.holders[rank]), i, i+1)
			touched[rank] = true
		}
	}
	hold := func(rank uint32, holder string) { n.holders[rank] = append(slices.Clone(n.holders[rank]), holder) }
	ranks := n.own(o.ranks)
	if o.all {
		ranks = n.ranks
	}
	kind, what, _ := strings.Cut(o.name, "-")
	switch {
	case o.name == "start":
		again := n.started
		if n.started = true; !again && !n.released {
			for _, r := range n.ranks {
				if !n.left[r] && !n.dropped[r] {
					hold(r, "executor")
				}
			}
		}
	case o.name == "release":
		if o.final {
			n.released, ranks = true, n.ranks
			for name := range n.uses {
				touched[name] = true
			}
		}
		for _, r := range ranks {
			if lose(r, "executor"); o.final && n.started {
				touched[r] = true
			}
		}
	case o.name == "finish" && n.started:
		for _, r := range n.ranks {
			touched[r] = true
		}
	case o.name == "clean":
		n.released, n.actions = true, nil
		for _, r := range n.ranks {
			n.holders[r], n.left[r] = nil, job.WasAllocated()
		}
		for name := range n.uses {
			n.uses[name], n.left[name] = nil, job.WasAllocated()
		}
	case o.name == "drained":
		for _, r := range n.own(o.ranks) {
			if slices.Contains(n.holders[r], "drain") {
				n.drained[r] = true
				lose(r, "drain")
			}
		}
	case o.name == "exception":
		if !o.fatal {
			for _, r := range n.own(o.ranks) {
				if o.drop {
					n.drain(r)
					n.dropped[r], touched[r] = true, true
					lose(r, "executor")
				}
			}
		}
	case what == "fail":
		for _, r := range n.own(o.ranks) {
			if o.drain {
				n.drain(r)
			}
		}
	case what == "start":
		n.starts++
		id := fmt.Sprint(n.starts)
		n.actions = append(n.actions, naiveHold{id, kind + ":" + o.desc})
		for _, r := range ranks {
			if !n.left[r] && !(o.all && n.dropped[r]) {
				hold(r, id)
			}
		}
		for _, name := range o.names {
			if _, ok := n.uses[name]; ok && !n.left[name] {
				n.uses[name] = append(slices.Clone(n.uses[name]), id)
				n.acted[name] = true
			}
		}
	case what == "release" || what == "finish":
		n.endAction(kind+":"+o.desc, o, what == "finish", lose, touched)
	}
	n.settle(job, ending, touched)
}

func (n *naiveHolds) endAction(key string, o holdsOp, whole bool, lose func(uint32, string), touched map[any]bool) {
	if whole {
		i := slices.IndexFunc(n.actions, func(a naiveHold) bool { return a.key == key })
		id := n.actions[i].id
		n.actions = slices.Delete(slices.Clone(n.actions), i, i+1)
		for _, r := range n.ranks {
			lose(r, id)
		}
		for name := range n.uses {
			if i := slices.Index(n.uses[name], id); i >= 0 {
				n.uses[name] = slices.Delete(slices.Clone(n.uses[name]), i, i+1)
				touched[name] = true
			}
		}
		return
	}
	for _, r := range n.own(o.ranks) {
		for _, a := range n.actions {
			if a.key == key && slices.Contains(n.holders[r], a.id) {
				lose(r, a.id)
				break
			}
		}
	}
	for _, name := range o.names {
		for _, a := range n.actions {
			if i := slices.Index(n.uses[name], a.id); a.key == key && i >= 0 {
				n.uses[name] = slices.Delete(slices.Clone(n.uses[name]), i, i+1)
				touched[name] = true
				break
			}
		}
	}
}

func (n *naiveHolds) drain(r uint32) {
	if !n.left[r] && !n.drained[r] && !slices.Contains(n.holders[r], "drain") {
		n.holders[r] = append(slices.Clone(n.holders[r]), "drain")
	}
}

func (n *naiveHolds) settle(job *jobstate.Job, ending bool, touched map[any]bool) {
	executing := n.started && !n.released
	idle := ending && !executing && len(n.actions) == 0
	draining := false
	for x := range touched {
		switch x := x.(type) {
		case uint32:
			if len(n.holders[x]) == 0 && (ending || n.dropped[x]) && job.WasAllocated() {
				n.left[x] = true
			}
		case string:
			if len(n.uses[x]) == 0 && n.acted[x] && ending && !executing && job.WasAllocated() {
				n.left[x] = true
			}
		}
	}
	for _, holders := range n.holders {
		draining = draining || slices.Contains(holders, "drain")
	}
	if idle && !draining && job.WasAllocated() && !job.HasResources() {
		for _, r := range n.ranks {
			n.left[r] = true
		}
		for name := range n.uses {
			n.left[name] = true
		}
	}
}

func (n *naiveHolds) own(ranks []uint32) []uint32 {
	return slices.DeleteFunc(slices.Clone(ranks), func(r uint32) bool { return !slices.Contains(n.ranks, r) })
}

// text returns who holds what in the words of holdsByRank.
func (n *naiveHolds) text(job *jobstate.Job) string {
	var b strings.Builder
	for _, r := range n.ranks {
		fmt.Fprintf(&b, "%d:", r)
		var who []string
		if job.WasAllocated() {
			if !job.State().In(jobstate.StateCleanup|jobstate.StateInactive) && !n.dropped[r] {
				who = append(who, "job")
			}
			for _, id := range n.holders[r] {
				if i := slices.IndexFunc(n.actions, func(a naiveHold) bool { return a.id == id }); i >= 0 {
					id = n.actions[i].key
				}
				who = append(who, id)
			}
		}
		slices.Sort(who)
		fmt.Fprintf(&b, "%s %t; ", strings.Join(who, " "), n.left[r])
	}
	for _, name := range []string{"bb", "fs"} {
		uses := len(n.uses[name])
		if !job.WasAllocated() {
			uses = 0
		}
		fmt.Fprintf(&b, "%s %t %d; ", name, n.left[name], uses)
	}
	return b.String()
}

// holdsByRank returns who holds what, rank by rank.
func holdsByRank(h *perilog.Holds, ranks []uint32) string {
	var b strings.Builder
	left := h.Released().Ranks
	uses := map[string]int{}
	for _, r := range ranks {
		fmt.Fprintf(&b, "%d:", r)
		var who []string
		for x := range h.Holders() {
			if x.Ranks.Contains(r) {
				key := x.Kind.String()
				if x.Description != "" {
					key += ":" + x.Description
				}
				who = append(who, key)
			}
		}
		slices.Sort(who)
		fmt.Fprintf(&b, "%s %t; ", strings.Join(who, " "), left.Contains(r))
	}
	for x := range h.Holders() {
		if x.Description != "" {
			for _, name := range x.Named {
				uses[name]++
			}
		}
	}
	for _, name := range []string{"bb", "fs"} {
		fmt.Fprintf(&b, "%s %t %d; ", name, slices.Contains(h.Released().Named, name), uses[name])
	}
	return b.String()
}

// After every event of any log Holds is what a set of holders for each rank says,
// and after a restart it is the same.
func TestHoldsIsASetOfHoldersForEachRank(t *testing.T) {
	times := 1
	if os.Getenv("JOBLIFE_DEEP") != "" {
		times = 100
	}
	for range times {
		rapid.Check(t, driveHolds)
	}
}

func FuzzHoldsModel(f *testing.F) { f.Fuzz(rapid.MakeFuzz(driveHolds)) }

func driveHolds(t *rapid.T) {
	const ranks = 4
	names := []string{"fs", "bb"}
	s := newHoldsStory(t, ranks, names...)
	n := &naiveHolds{
		holders: map[uint32][]string{}, uses: map[string][]string{"fs": nil, "bb": nil}, acted: map[string]bool{},
		left: map[any]bool{}, drained: map[uint32]bool{}, dropped: map[uint32]bool{},
	}
	for r := range uint32(ranks) {
		n.ranks = append(n.ranks, r)
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
		e := eventlog.Entry{Timestamp: s.now, Name: op.name}
		if c := op.context(); c != "" {
			e.Context = []byte(c)
		}
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
		require.Equal(t, n.text(s.holds.Job()), holdsByRank(s.holds, n.ranks), "%s", s.log)
	}
	require.Equal(t, s.holds.String(), s.replay().String())
}
