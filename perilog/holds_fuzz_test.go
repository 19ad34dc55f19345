package perilog_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/rset"
)

// FuzzHolds reads its input as a log, or, if the highest bit of the first byte is
// set, as numbers of events, which the model is told too.
func FuzzHolds(f *testing.F) {
	for _, c := range stories {
		if len(c.script) < 2000 {
			s := newStory(f, c.ranks, c.options)
			s.run(c.script)
			f.Add(append([]byte{byte(c.ranks)}, s.log...))
		}
	}
	f.Add([]byte{0xc2, 0, 1, 2, 7, 6, 9, 11, 10, 4})
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) == 0 || len(data) > 1<<14 {
			return
		}
		o := perilog.HoldsOptions{EarlyRelease: data[0]&0x40 != 0}
		if data[0]&0x20 != 0 {
			o.Named = []string{"fs", "ssd"}
		}
		if data[0]&0x80 != 0 {
			fuzzNumbers(t, o, data[1:])
			return
		}
		ranks := int(data[0] & 7)
		r := holdsR(t, ranks)
		h, l := perilog.NewHolds(r, o), rset.NewLedger(r, o.Named...)
		finals := 0
		for e, err := range eventlog.Entries(data[1:]) {
			if err != nil {
				return
			}
			before := h.String()
			note, err := h.Apply(e)
			if err != nil {
				var refused *perilog.EventError
				require.ErrorAs(t, err, &refused)
				require.True(t, errors.Is(err, jobstate.ErrContext))
				require.Equal(t, before, h.String())
			} else {
				require.NotZero(t, note.Kind)
			}
			agree(t, e, err)
			require.NoError(t, h.Check())
			if h.Feed(l).Final {
				finals++
			}
			require.NoError(t, l.Check())
			require.False(t, l.Freed().Intersects(h.Held()))
			require.LessOrEqual(t, finals, 1)
		}
	})
}

// agree checks that Holds refuses what jobstate refuses to decode, and beyond
// that at most what names a key of the dialect.
func agree(t *testing.T, e eventlog.Entry, holdsErr error) {
	t.Helper()
	switch e.Name {
	case "alloc", "finish", "release", "memo", "exception", "prolog-start", "epilog-start", "prolog-finish", "epilog-finish":
	default:
		return
	}
	_, err := jobstate.ParseContext(e)
	if err != nil {
		if errors.Is(holdsErr, jobstate.ErrContext) {
			return
		}
		t.Fatalf("jobstate refuses %q: %v, Holds does not", e.Context, err)
	}
	dialect := bytes.Contains(e.Context, []byte("r")) || bytes.Contains(e.Context, []byte(`\u`)) // ranks, resources
	if e.Name == "release" || e.Name == "prolog-finish" || !dialect {
		require.NoError(t, holdsErr)
	}
}

func fuzzNumbers(t *testing.T, o perilog.HoldsOptions, data []byte) {
	o.Named = nil // the alphabet has none
	data = data[:min(len(data), 40)]
	s, naive := newStory(t, 2, o), newNaive(2, o)
	for _, b := range data {
		op := alphabet[int(b)%len(alphabet)]
		s.now++
		e := op.entry(s.now)
		_, err := s.holds.Apply(e)
		require.NoError(t, err)
		s.log, err = eventlog.AppendEntry(s.log, e)
		require.NoError(t, err)
		naive.apply(op)
		require.Equal(t, naive.text(), holdsText(s.holds, 2))
	}
	s.check()
}

// FuzzDialect: what is read is written so that it reads the same, and writing
// that again changes no byte.
func FuzzDialect(f *testing.F) {
	for _, context := range []string{
		`{"description":"e","ranks":"0-3,7","resources":["a","b"],"x":{"y":[]}}`,
		`{"description":"\u00e9","ranks":"","status":-1}`,
		`{"type":"x","severity":3,"note":"n","ranks":"[1-2]","action":"drop","nodelist":"n[1-2]"}`,
		`{"description":"e" , "status":0,"r\u0061nks":"5"}`,
	} {
		for which := range byte(5) {
			f.Add(which, []byte(context))
		}
	}
	f.Fuzz(func(t *testing.T, which byte, context []byte) {
		names := []string{"prolog-start", "epilog-start", "prolog-release", "epilog-release", "exception"}
		e := eventlog.Entry{Timestamp: 1, Name: names[int(which)%len(names)], Context: context}
		c := parseDialect(e)
		_, holdsErr := perilog.NewHolds(nil, perilog.HoldsOptions{}).Apply(e)
		if c == nil {
			return
		}
		require.NoError(t, holdsErr, "what is parsed is folded")
		once, err := c.Entry(1)
		if err != nil {
			// An extra key may be one that the event knows nothing of only in
			// this spelling; nothing else is refused.
			t.Fatalf("%q is read, and not written: %v", context, err)
		}
		again := parseDialect(once)
		require.NotNil(t, again, "%q is written as %q", context, once.Context)
		require.Equal(t, textOf(c), textOf(again))
		twice, err := again.Entry(1)
		require.NoError(t, err)
		require.Equal(t, string(once.Context), string(twice.Context))
	})
}

// parseDialect returns nil for what is not of the dialect.
func parseDialect(e eventlog.Entry) encoder {
	switch e.Name {
	case "prolog-start", "epilog-start":
		if c, err := perilog.ParseActionStart(e); err == nil {
			return &c
		}
	case "prolog-release", "epilog-release":
		if c, err := perilog.ParseActionRelease(e); err == nil {
			return &c
		}
	default:
		if c, ok, err := perilog.ParseFailedRanks(e); err == nil && ok {
			return &c
		}
	}
	return nil
}

// textOf returns what a context says, field by field.
func textOf(c encoder) []any {
	switch c := c.(type) {
	case *perilog.ActionStart:
		return []any{c.Kind, c.Description, c.Ranks.String(), c.Resources, string(c.Extra)}
	case *perilog.ActionRelease:
		return []any{c.Kind, c.Description, c.Ranks.String(), c.Status, c.Resources, string(c.Extra)}
	case *perilog.FailedRanks:
		x := c.Exception
		return []any{x.Type, x.Severity, x.Note, x.UserID, x.WaitStatus, string(x.Extra), c.Ranks.String(), c.Nodelist, c.Action}
	}
	return nil
}
