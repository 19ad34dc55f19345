package perilog_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/rset"
)

// drawOp draws an event of a job of n ranks. It may make no sense.
func drawOp(t *rapid.T, n int, names []string) naiveOp {
	o := naiveOp{desc: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "description")}
	o.name = rapid.SampledFrom([]string{
		"alloc", "start", "finish", "free", "clean", "flux-restart", "memo", "release", "release", "exception",
		"prolog-start", "prolog-finish", "epilog-start", "epilog-start", "epilog-finish",
		"epilog-release", "epilog-release", "epilog-release", "prolog-release",
	}).Draw(t, "event")
	for r := range uint32(n) {
		if rapid.Bool().Draw(t, "rank") {
			o.ranks = append(o.ranks, r)
		}
	}
	if rapid.IntRange(0, 9).Draw(t, "stranger") == 0 {
		o.ranks = append(o.ranks, uint32(n+1))
	}
	o.all = rapid.IntRange(0, 2).Draw(t, "all") == 0
	if strings.HasSuffix(o.name, "log-release") {
		o.all = false // its ranks are required
	}
	if o.name == "exception" && len(o.ranks) == 0 {
		o.all = true // that would be malformed
	}
	for _, name := range append([]string{"unknown"}, names...) {
		if rapid.IntRange(0, 2).Draw(t, "name") == 0 {
			o.names = append(o.names, name)
		}
	}
	o.status = rapid.SampledFrom([]int{0, 0, 256}).Draw(t, "status")
	o.final = rapid.IntRange(0, 2).Draw(t, "final") == 0
	o.fatal = rapid.IntRange(0, 3).Draw(t, "fatal") == 0
	o.revoke = rapid.IntRange(0, 7).Draw(t, "revoke") == 0
	o.drop = rapid.Bool().Draw(t, "drop")
	return o
}

// After every event of any log, Holds is what a multiset of holders for each
// rank says, and everything holds that story.check asserts.
func TestHoldsIsAMultisetOfHoldersForEachRank(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		o := perilog.HoldsOptions{EarlyRelease: rapid.Bool().Draw(rt, "early")}
		if rapid.Bool().Draw(rt, "named") {
			o.Named = []string{"fs", "bb"}
		}
		ranks := rapid.IntRange(0, 5).Draw(rt, "ranks")
		s, naive := newStory(t, ranks, o), newNaive(ranks, o)
		// A log mostly begins so; without it nothing ever holds much.
		if rapid.IntRange(0, 9).Draw(rt, "plain") > 0 {
			s.step(rt, naive, naiveOp{name: "alloc"})
		}
		for range rapid.IntRange(1, 25).Draw(rt, "events") {
			s.step(rt, naive, drawOp(rt, ranks, o.Named))
		}
	})
}

// step tells an event to the Holds, perhaps twice, and once to the model.
func (s *story) step(rt *rapid.T, naive *naiveHolds, op naiveOp) {
	s.now++
	e := op.entry(s.now)
	for i := range 1 + rapid.IntRange(0, 9).Draw(rt, "repeated")/9 {
		note, err := s.holds.Apply(e)
		require.NoError(rt, err)
		if i > 0 && note.Kind != perilog.NoteNone {
			require.Equal(rt, perilog.NoteDuplicate, note.Kind)
		}
		s.log, err = eventlog.AppendEntry(s.log, e)
		require.NoError(rt, err)
		s.check()
	}
	naive.apply(op)
	require.Equal(rt, naive.text(), holdsText(s.holds, len(naive.ranks)), "%s", s.log)
	require.Equal(rt, naive.revoked, s.holds.Revoked())
}

// An error leaves everything as it was, wherever in a log it comes.
func TestAnErrorChangesNothingAnywhere(t *testing.T) {
	bad := []eventlog.Entry{
		{Timestamp: 1e6, Name: "release", Context: []byte(`{"ranks":"0-1","final":1}`)},
		{Timestamp: 1e6, Name: "epilog-release", Context: []byte(`{"ranks":"0-1","description":"a","status":"x"}`)},
		{Timestamp: 1e6, Name: "epilog-finish", Context: []byte(`{"description":"a","status":0,"ranks":"0,"}`)},
		{Timestamp: 1e6, Name: "exception", Context: []byte(`{"type":"a","severity":1,"ranks":"0","action":"both"}`)},
		{Timestamp: 1e6, Name: "epilog-start", Context: []byte(`{"description":"a","ranks":"0","resources":["x",""]}`)},
		{Timestamp: 0, Name: "free"},
	}
	rapid.Check(t, func(rt *rapid.T) {
		s := newStory(t, 3, perilog.HoldsOptions{})
		naive := newNaive(3, perilog.HoldsOptions{})
		for range rapid.IntRange(0, 12).Draw(rt, "events") {
			s.step(rt, naive, drawOp(rt, 3, nil))
			before := s.holds.String()
			_, err := s.holds.Apply(rapid.SampledFrom(bad).Draw(rt, "bad"))
			require.Error(rt, err)
			require.Equal(rt, before, s.holds.String())
			require.NoError(rt, s.holds.Check())
		}
	})
}

// alphabet is every event of a job of two ranks with one epilog.
var alphabet = []naiveOp{
	{name: "alloc"}, {name: "start"}, {name: "finish"}, {name: "exception", fatal: true}, {name: "free"},
	{name: "release", ranks: []uint32{0}}, {name: "release", all: true, final: true},
	{name: "epilog-start", desc: "e", all: true}, {name: "epilog-start", desc: "e", ranks: []uint32{1}},
	{name: "epilog-release", desc: "e", ranks: []uint32{0}}, {name: "epilog-release", desc: "e", ranks: []uint32{1}},
	{name: "epilog-finish", desc: "e", all: true},
	{name: "exception", ranks: []uint32{1}, drop: true},
}

// Every sequence of up to four events, with and without early release.
func TestEverySequenceOfFourEventsIsWhatTheModelSays(t *testing.T) {
	const want = 2 * (13 + 13*13 + 13*13*13 + 13*13*13*13)
	r, sequences := holdsR(t, 2), 0
	var entries [4][]eventlog.Entry
	for i := range entries {
		for _, op := range alphabet {
			entries[i] = append(entries[i], op.entry(eventlog.Timestamp(i+1)))
		}
	}
	for _, o := range []perilog.HoldsOptions{{}, {EarlyRelease: true}} {
		var path [4]int
		var descend func(depth int)
		descend = func(depth int) {
			if depth == len(path) {
				return
			}
			for k := range alphabet {
				path[depth] = k
				h, l, naive := perilog.NewHolds(r, o), rset.NewLedger(r), newNaive(2, o)
				finals := 0
				for i, k := range path[:depth+1] {
					_, err := h.Apply(entries[i][k])
					require.NoError(t, err)
					naive.apply(alphabet[k])
					if h.Feed(l).Final {
						finals++
					}
				}
				sequences++
				err := h.Check()
				if got := holdsText(h, 2); err != nil || got != naive.text() || finals > 1 || l.Freed().Intersects(h.Held()) ||
					!l.Freed().Equal(h.Ready(nil)) || l.IsFinal() != (finals == 1) {
					t.Fatalf("%v %v: %v\n%s\n%s\nfinals %d, %v", o, path[:depth+1], err, got, naive.text(), finals, l)
				}
				descend(depth + 1)
			}
		}
		descend(0)
	}
	t.Logf("%d sequences", sequences)
	require.Equal(t, want, sequences)
}

// Every state that a job of two ranks, a named resource, and at most one live
// start each of a prolog and of an epilog can be in, breadth first; and from each
// state every event.
func TestEveryReachableStateIsWhatTheModelSays(t *testing.T) {
	letters := []naiveOp{
		{name: "alloc"}, {name: "start"}, {name: "finish"}, {name: "free"},
		{name: "release", ranks: []uint32{0}}, {name: "release", ranks: []uint32{1}, final: true},
		{name: "exception", fatal: true}, {name: "exception", ranks: []uint32{1}, drop: true},
		{name: "prolog-start", desc: "p", ranks: []uint32{1}}, {name: "prolog-finish", desc: "p", all: true},
		{name: "epilog-start", desc: "e", all: true, names: []string{"fs"}}, {name: "epilog-finish", desc: "e", all: true},
		{name: "epilog-release", desc: "e", ranks: []uint32{0}, names: []string{"fs"}},
		{name: "epilog-release", desc: "e", ranks: []uint32{1}},
	}
	o := perilog.HoldsOptions{Named: []string{"fs"}, EarlyRelease: true}
	r := holdsR(t, 2)
	type node struct {
		path  []uint8
		naive *naiveHolds
	}
	var entries [40][]eventlog.Entry // by the place in a path
	for i := range entries {
		for _, op := range letters {
			entries[i] = append(entries[i], op.entry(eventlog.Timestamp(i+1)))
		}
	}
	seen, queue, events := map[string]bool{}, []node{{nil, newNaive(2, o)}}, 0
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		for k, op := range letters {
			kind, what, _ := strings.Cut(op.name, "-")
			if what == "start" && at.naive.active(kind+":"+op.desc) {
				continue // a second live start makes no end of states
			}
			h, l, naive := perilog.NewHolds(r, o), rset.NewLedger(r, "fs"), at.naive.clone()
			for i, k := range at.path {
				_, err := h.Apply(entries[i][k])
				require.NoError(t, err)
			}
			h.Feed(l)
			_, err := h.Apply(entries[len(at.path)][k])
			require.NoError(t, err)
			h.Feed(l)
			naive.apply(op)
			events++
			got, want := holdsText(h, 2), naive.text()
			if err := h.Check(); err != nil || got != want || !l.Freed().Equal(h.Ready(nil)) || (len(l.HeldNamed()) == 0) != naive.left["fs"] {
				t.Fatalf("%v %d: %v\n%s\n%s\n%v", at.path, k, err, got, want, l)
			}
			state := stripTimes(h.String())
			if !seen[state] {
				seen[state] = true
				queue = append(queue, node{append(slices.Clone(at.path), uint8(k)), naive})
			}
		}
	}
	t.Logf("%d states, %d events", len(seen), events)
	require.Equal(t, [2]int{2432, 30502}, [2]int{len(seen), events})
}

// Sets that events name are taken one by one while they are small, and whole
// when they are not: both do the same.
func TestLargeSetsAreMovedAsSmallOnesAre(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		const n = 200
		o := perilog.HoldsOptions{EarlyRelease: rapid.Bool().Draw(rt, "early")}
		r := holdsR(t, n)
		whole, single := perilog.NewHolds(r, o), perilog.NewHolds(r, o)
		now := eventlog.Timestamp(0)
		apply := func(h *perilog.Holds, op naiveOp) {
			now++
			_, err := h.Apply(op.entry(now))
			require.NoError(rt, err)
		}
		for _, op := range []naiveOp{
			{name: "alloc"}, {name: "epilog-start", desc: "a", all: true}, {name: "epilog-start", desc: "b", all: true}, {name: "start"},
		}[:rapid.IntRange(0, 4).Draw(rt, "begun")] {
			at := now
			apply(whole, op)
			now = at
			apply(single, op)
		}
		for range 12 {
			op := drawOp(rt, 0, nil)
			first := rapid.IntRange(0, n-1).Draw(rt, "first")
			last := rapid.IntRange(first, n-1).Draw(rt, "last")
			stride := rapid.IntRange(1, 3).Draw(rt, "stride")
			op.ranks = nil
			for i := first; i <= last; i += stride {
				op.ranks = append(op.ranks, uint32(i))
			}
			if op.final || !strings.HasSuffix(op.name, "release") || op.name == "release" && op.all {
				at := now
				apply(whole, op)
				now = at
				apply(single, op)
			} else {
				apply(whole, op)
				for _, rank := range op.ranks {
					op.ranks = []uint32{rank}
					apply(single, op)
				}
			}
			require.NoError(rt, whole.Check())
			require.NoError(rt, single.Check())
			require.Equal(rt, stripTimes(whole.String()), stripTimes(single.String()))
		}
	})
}

// stripTimes removes the times from the text of a Holds.
func stripTimes(text string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(text, " @")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		text = strings.TrimLeft(after, "0123456789.")
	}
}
