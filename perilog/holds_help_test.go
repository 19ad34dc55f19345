package perilog_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/rset"
)

// holdsR returns the R of n equal ranks from 0.
func holdsR(t testing.TB, n int) *rset.R {
	t.Helper()
	if n == 0 {
		return nil
	}
	ranks := new(idset.Set)
	ranks.InsertRange(0, uint32(n-1))
	r, err := rset.New(rset.Config{Entries: []rset.Entry{{Ranks: ranks, Children: map[string]*idset.Set{"core": idset.Of(0, 1)}}}})
	require.NoError(t, err)
	return r
}

// A story is a Holds that is told events, a second apart from second 1 on, with
// a ledger that is fed after each. Everything that holds of every log is
// checked after each event.
type story struct {
	t        testing.TB
	r        *rset.R
	options  perilog.HoldsOptions
	holds    *perilog.Holds
	ledger   *rset.Ledger
	log      []byte
	states   []string // after each event
	last     rset.Fragment
	finals   int
	freed    *idset.Set
	now      eventlog.Timestamp
	ready    *idset.Set
	lastNote perilog.Note
}

func newStory(t testing.TB, ranks int, o perilog.HoldsOptions) *story {
	t.Helper()
	r := holdsR(t, ranks)
	return &story{
		t: t, r: r, options: o, holds: perilog.NewHolds(r, o), ledger: rset.NewLedger(r, o.Named...),
		freed: new(idset.Set), ready: new(idset.Set),
	}
}

// tell applies an event, and returns the note in one line. The context is JSON
// whose quotes are written as single ones; "" is none.
func (s *story) tell(name, context string) string {
	s.t.Helper()
	s.now++
	return s.again(name, context)
}

// again is tell at the time of the event before.
func (s *story) again(name, context string) string {
	s.t.Helper()
	e := eventlog.Entry{Timestamp: s.now, Name: name, Context: []byte(strings.ReplaceAll(context, "'", `"`))}
	note, err := s.holds.Apply(e)
	require.NoError(s.t, err)
	s.log, err = eventlog.AppendEntry(s.log, e)
	require.NoError(s.t, err)
	s.lastNote = note
	s.check()
	return noteText(note)
}

// check asserts what holds after every event of every log.
func (s *story) check() {
	s.t.Helper()
	require.NoError(s.t, s.holds.Check())
	s.states = append(s.states, s.holds.String())
	held := s.holds.Held()
	ready := s.holds.Ready(nil)
	require.True(s.t, ready.ContainsAll(s.ready), "ready shrank from %v to %v", s.ready, ready)
	s.ready = ready

	s.last = s.holds.Feed(s.ledger)
	require.NoError(s.t, s.ledger.Check())
	s.freed.UnionWith(s.last.R.Ranks())
	require.True(s.t, s.freed.Equal(s.ledger.Freed()), "I1: fragments are %v, the ledger freed %v", s.freed, s.ledger.Freed())
	require.False(s.t, s.ledger.Freed().Intersects(held), "I3: freed %v, held %v", s.ledger.Freed(), held)
	for x := range s.holds.Holders() {
		require.False(s.t, s.ledger.Freed().Intersects(x.Ranks), "I3: %v holds what is freed", x.Kind)
		for _, name := range x.Named {
			require.Contains(s.t, s.ledger.HeldNamed(), name, "I3")
		}
	}
	if s.last.Final {
		s.finals++
	}
	require.LessOrEqual(s.t, s.finals, 1, "I2")
	require.Equal(s.t, s.finals == 1, s.ledger.IsFinal(), "I2")
	require.True(s.t, s.holds.Feed(s.ledger).IsEmpty(), "a second feed has nothing to tell")
	require.True(s.t, s.holds.Revoked() || s.holds.Unfed() == 0, "a feed costs by what has left since the last")

	again, entries := perilog.NewHolds(s.r, s.options), 0
	for e, err := range eventlog.Entries(s.log) {
		require.NoError(s.t, err)
		_, err = again.Apply(e)
		require.NoError(s.t, err)
		entries++
	}
	require.Equal(s.t, s.holds.String(), again.String(), "I5")
	rebuilt, err := rset.Rebuild(s.r, s.ledger.Released(), s.options.Named...)
	require.NoError(s.t, err)
	require.True(s.t, again.Feed(rebuilt).IsEmpty(), "I5: the crash left nothing to free twice")
	late := rset.NewLedger(s.r, s.options.Named...)
	again.Feed(late)
	if !again.Revoked() { // what left before a revocation was freed then
		require.Equal(s.t, s.ledger.String(), late.String(), "I5: a ledger fed at once is as one fed step by step")
	}
}

// noteText returns a note in one line.
func noteText(n perilog.Note) string {
	text := n.Kind.String()
	if n.Unknown != nil {
		text += "; unknown " + n.Unknown.String()
	}
	if n.Past != nil {
		text += "; past " + n.Past.String()
	}
	if len(n.Names) > 0 {
		text += fmt.Sprintf("; names %q", n.Names)
	}
	return text
}

// who returns who holds what, and what is ready, in the form of
// testdata/brokers-holds.txt. A description that is not the job manager's
// follows its kind.
func who(h *perilog.Holds) string {
	var parts []string
	for x := range h.Holders() {
		part := x.Kind.String()
		if x.Description != "" && x.Description != "job-manager."+part {
			part += ":" + x.Description
		}
		if part += " " + x.Ranks.String(); x.Ranks.IsEmpty() {
			part += "none"
		}
		for _, name := range x.Named {
			part += " +" + name
		}
		parts = append(parts, part)
	}
	text := strings.Join(parts, ", ")
	if text == "" {
		text = "-"
	}
	if ready, names := h.Ready(nil), h.ReadyNamed(); !ready.IsEmpty() || len(names) > 0 {
		text += "; ready " + ready.String()
		for _, name := range names {
			text += " +" + name
		}
	}
	return text
}

// run tells a script: lines of an event, its context, and after "->" the note
// and who holds what then, where one of them is to be compared:
//
//	epilog-release {'description':'e','ranks':'0','status':0} -> applied | epilog:e 1; ready 0
func (s *story) run(script string) {
	s.t.Helper()
	for i, line := range strings.Split(strings.TrimSpace(script), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		what, want, compare := strings.Cut(line, " -> ")
		name, context, _ := strings.Cut(what, " ")
		context = shorthand(name, strings.TrimSpace(context))
		note := s.tell(name, context)
		if !compare {
			continue
		}
		wantNote, wantWho, both := strings.Cut(want, " | ")
		require.Equal(s.t, wantNote, note, "line %d: %s", i+1, line)
		if both {
			require.Equal(s.t, wantWho, who(s.holds), "line %d: %s", i+1, line)
		}
	}
}

// shorthand spells out the contexts that scripts are full of. A line may give
// a description, then ranks, then a status; a finish its status; a release its
// ranks and "final"; an exception its type and severity.
func shorthand(name, short string) string {
	if strings.HasPrefix(short, "{") {
		return short
	}
	f := strings.Fields(short)
	at := func(i int, otherwise string) string {
		if i < len(f) {
			return f[i]
		}
		return otherwise
	}
	ranks := func(i int) string {
		if r := at(i, "none"); r != "none" {
			return r
		}
		return ""
	}
	switch name {
	case "prolog-start", "epilog-start":
		if len(f) > 1 {
			return fmt.Sprintf("{'description':'%s','ranks':'%s'}", f[0], ranks(1))
		}
		return fmt.Sprintf("{'description':'%s'}", f[0])
	case "prolog-release", "epilog-release":
		return fmt.Sprintf("{'description':'%s','ranks':'%s','status':%s}", f[0], ranks(1), at(2, "0"))
	case "prolog-finish", "epilog-finish":
		return fmt.Sprintf("{'description':'%s','status':%s}", f[0], at(1, "0"))
	case "finish":
		return "{'status':" + at(0, "0") + "}"
	case "release":
		return fmt.Sprintf("{'ranks':'%s','final':%s}", ranks(0), strconv.FormatBool(at(1, "") == "final"))
	case "exception":
		return fmt.Sprintf("{'type':'%s','severity':%s,'note':''}", at(0, "cancel"), at(1, "0"))
	default:
		return ""
	}
}
