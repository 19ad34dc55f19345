package jobstate_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
)

// TestMalformedEventsAreRefusedInEveryState: what one reader of a log refuses,
// all refuse, also where the event would have no effect.
func TestMalformedEventsAreRefusedInEveryState(t *testing.T) {
	for name, context := range map[string]string{
		"epilog-start": `{"ranks":5,"description":"e"}`, "depend": `[]`, "priority": `{}`, "dependency-add": `{}`, "validate": `{"a":`,
		"epilog-finish": `{"description":"nobody"}`, "finish": `{"status":"0"}`, "perilog-release": `{"description":"nobody","kind":"prolog"}`,
		"perilog-fail": `{}`, "perilog-launch": `{}`, "drained": `{}`, "housekeeping-start": `{}`, "memo": ``, "alloc": `{"annotations":1}`,
	} {
		for s := jobstate.StateNew; s < jobstate.StateInactive; s <<= 1 {
			j, _ := run(t, upTo(s)...)
			before := describe(j)
			_, err := j.Apply(entry(100, name, context))
			require.ErrorIs(t, err, jobstate.ErrContext, "%s in %v", name, s)
			require.Equal(t, before, describe(j))
		}
	}
}

// TestAnEventHoldsOneEntry: the zero Event and one whose Decode failed hold
// none, and a good entry replaces what there was.
func TestAnEventHoldsOneEntry(t *testing.T) {
	var ev jobstate.Event
	none := func() {
		t.Helper()
		require.Nil(t, ev.Context())
		require.Equal(t, eventlog.Entry{}, ev.Entry())
		_, err := jobstate.NewJob(1).ApplyEvent(&ev)
		require.ErrorIs(t, err, eventlog.ErrEntry)
	}
	none()
	e := entry(1, "priority", `{"priority":3,"more":1}`)
	require.NoError(t, ev.Decode(e))
	require.Equal(t, e, ev.Entry())
	require.Equal(t, &jobstate.PriorityContext{Priority: 3, Extra: []byte(`{"more":1}`)}, ev.Context())
	c, err := jobstate.ParseContext(e)
	require.NoError(t, err)
	require.Equal(t, &jobstate.PriorityContext{Priority: 3, Extra: []byte(`{"more":1}`)}, c)
	for _, bad := range []eventlog.Entry{
		entry(1, "priority", `{}`), entry(1, "", ""), entry(1, "\xff", ""), {Name: "memo", Context: []byte("{}")},
		{Timestamp: eventlog.Timestamp(math.Inf(1)), Name: "start"}, {Timestamp: eventlog.Timestamp(math.NaN()), Name: "start"},
	} {
		require.NoError(t, ev.Decode(e))
		require.Error(t, ev.Decode(bad))
		none()
	}
}

// TestReplayedEntriesAreThoseOfTheLog: they are written as they were read.
func TestReplayedEntriesAreThoseOfTheLog(t *testing.T) {
	const log = `{"timestamp":1,"name":"submit","context":{"userid":1,"urgency":16,"flags":0,"version":1}}
{"timestamp":2.0,"name":"validate"}
{"timestamp":3,"name":"site"}
`
	var ev jobstate.Event
	var again []byte
	require.NoError(t, jobstate.NewJob(1).ReplayWith(&ev, []byte(log), func(ev *jobstate.Event) (err error) {
		again, err = eventlog.AppendEntry(again, ev.Entry())
		return err
	}))
	require.Equal(t, log, string(again))
}

// TestDecodeReplacesAllOfTheEventBefore: what a context leaves out is not what
// the one before it had.
func TestDecodeReplacesAllOfTheEventBefore(t *testing.T) {
	for _, pair := range [][2]string{
		{actionEvents[0], `prolog-start {"description":"a"}`}, {actionEvents[2], `perilog-fail {"description":"a","kind":"prolog","ranks":"1","cause":"b","status":1}`},
		{actionEvents[3], `perilog-release {"description":"a","kind":"prolog","ranks":"","status":1}`}, {actionEvents[4], `exception {"type":"x","severity":1}`},
		{`alloc {"annotations":{"a":1}}`, "alloc"}, {`release {"ranks":"all","final":true}`, `release {"ranks":"1","final":false}`},
		{`set-flags {"flags":["a","b"]}`, `set-flags {"flags":["c"]}`}, {`jobspec-update {"attributes.a":1,"attributes.b":2}`, `jobspec-update {"attributes.c":1}`},
		{`exception {"type":"x","severity":1,"note":"n","userid":1,"wait_status":9}`, `exception {"type":"y","severity":0,"note":""}`},
		{submit, `submit {"userid":5,"urgency":16,"flags":0}`},
	} {
		var ev, fresh jobstate.Event
		for _, e := range script(pair[:]...) {
			require.NoError(t, ev.Decode(e))
		}
		require.NoError(t, fresh.Decode(ev.Entry()))
		text, err := jobstate.AppendContext(nil, ev.Context())
		require.NoError(t, err)
		want, err := jobstate.AppendContext(nil, fresh.Context())
		require.NoError(t, err)
		require.Equal(t, string(want), string(text))
	}
}

// TestRanksAreReadAsByIdset: an Event, which reuses its set, takes what
// idset.Parse takes, and no more.
func TestRanksAreReadAsByIdset(t *testing.T) {
	var ev jobstate.Event
	check := func(t require.TestingT, text string) {
		err := ev.Decode(entry(1, "drained", `{"ranks":"`+text+`"}`))
		want, wantErr := idset.Parse(text)
		require.Equal(t, wantErr == nil, err == nil, text)
		if err == nil {
			require.True(t, want.Equal(ev.Context().(*jobstate.DrainedContext).Ranks), text)
		}
	}
	for _, text := range []string{
		"", "0", "00", "01", "0-1", "1-1", "2-1", "0,0", "0,1", "1,0", "0-3,3", "0-3,4", ",", "0,", ",0", "-1", "0-", "0--1", "[0-3]", "[]",
		"2147483647", "2147483648", "4294967296", "99999999999", "0-2147483647", "all", " 0", "0 ", "1-2-3", "a",
		strings.Repeat("1", 64), strings.Repeat("1", 65), "0,2,4,6,8,10,12,14,16,18,20,22,24,26,28,30,32,34,36,38,40,42,44,46",
	} {
		check(t, text)
	}
	rapid.Check(t, func(t *rapid.T) { check(t, rapid.StringMatching(`[0-9,-]{0,12}`).Draw(t, "text")) })
}

// plainContexts are contexts that the fast path takes, at its limits.
var plainContexts = []string{
	`submit {"userid":4294967295,"urgency":31,"flags":4294967295,"version":1}`, `submit {"userid":0,"urgency":0,"flags":0,"version":1}`,
	`dependency-add {"description":"after-finish=ƒ33gTWS3"}`, `dependency-remove {"description":""}`,
	`priority {"priority":0}`, `priority {"priority":4294967295}`, `urgency {"userid":10,"urgency":31}`,
	`alloc {"annotations":{}}`, `alloc {"annotations":{"sched":{"resource_summary":"rank[0-3]/core[0-3]"}}}`,
	`alloc {"annotations":{"sched":{"resource_summary":"rank0","reason_pending":null}}}`, `alloc {"annotations":{"sched":{"a":[1,{"b":null}],"c":"é"}}}`,
	`prolog-start {"description":"job-manager.prolog"}`, `epilog-start {"description":"e"}`,
	`prolog-finish {"description":"p","status":0}`, `epilog-finish {"description":"e","status":2147483647}`, `finish {"status":256}`,
	`release {"ranks":"all","final":true}`, `release {"ranks":"0-3,7","final":false}`, `release {"ranks":"","final":false}`,
	`exception {"type":"cancel","severity":0,"userid":0,"note":""}`, `exception {"type":"x","severity":7,"note":"n"}`,
	`exception {"type":"dependency","severity":0,"note":"é","userid":4294967295}`, `memo {}`, `memo {"a":{"b":[null]}}`,
}

// TestPlainContextsAreReadAsAnyOther: the fast path takes the usual contexts, and
// reads none that differs from them a little in another way than the reader of all.
func TestPlainContextsAreReadAsAnyOther(t *testing.T) {
	for _, e := range script(plainContexts...) {
		require.True(t, jobstate.IsPlain(e), "%s %s", e.Name, e.Context)
		_, err := samePlain(t, e)
		require.NoError(t, err)
		for i := range e.Context {
			for _, c := range []byte("\"\\}[, 09-.e\n\x80\xc3A") {
				changed := e
				changed.Context = slices.Concat(e.Context[:i], []byte{c}, e.Context[i+1:])
				_, _ = samePlain(t, changed)
				changed.Context = slices.Concat(e.Context[:i], []byte{c}, e.Context[i:])
				_, _ = samePlain(t, changed)
			}
			changed := e
			changed.Context = e.Context[:i]
			_, _ = samePlain(t, changed)
			changed.Context = slices.Concat(e.Context[:i], e.Context[i+1:])
			_, _ = samePlain(t, changed)
		}
	}
}

// TestOnlyPlainContextsAreReadAsPlain: these come near to it.
func TestOnlyPlainContextsAreReadAsPlain(t *testing.T) {
	deep := func(n int) string {
		return `alloc {"annotations":` + strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) + "}"
	}
	for _, line := range []string{
		`priority {"priority":18446744073709551617}`, `priority {"priority":4294967296}`, `submit {"userid":1,"urgency":32,"flags":0,"version":1}`,
		`submit {"userid":1,"urgency":16,"flags":0,"version":0}`, `exception {"type":"x","severity":0,"userid":1,"note":"","userid":2}`,
		`dependency-add {"description":"\u0041"}`, deep(2046), `priority {"priority":1}}`, `memo {}}`, `release {"ranks":"1-0","final":true}`,
	} {
		e := script(line)[0]
		require.False(t, jobstate.IsPlain(e), line)
		_, _ = samePlain(t, e)
	}
	require.True(t, jobstate.IsPlain(script(deep(2045))[0]))
}

// TestRecordedContextsArePlain: of the contexts that flux-core wrote, the fast
// path leaves two kinds of events and three notes with escapes.
func TestRecordedContextsArePlain(t *testing.T) {
	other, n := map[string]int{}, 0
	for _, list := range recorded(t) {
		for _, r := range list {
			for e, err := range eventlog.Entries([]byte(r.Eventlog)) {
				require.NoError(t, err)
				if n += min(len(e.Context), 1); len(e.Context) > 0 && !jobstate.IsPlain(e) {
					other[e.Name]++
				}
			}
		}
	}
	require.Equal(t, map[string]int{"exception": 3, "jobspec-update": 3, "resource-update": 1}, other)
	require.Equal(t, 2472, n)
}

func TestTimeoutsAreSeconds(t *testing.T) {
	var ev jobstate.Event
	for text, want := range map[string]time.Duration{
		"0": 0, "0.0": 0, "5": 5 * time.Second, "1.5": 1500 * time.Millisecond, "0.000000001": 1, "1e-3": time.Millisecond, "1e-30": 1,
		"9223372036.854775807": math.MaxInt64, "9223372036": 9223372036 * time.Second, "0.1234567891": 123456789, "9.2e9": 9.2e18,
		"31536000.123456789": 31536000123456789,
	} {
		require.NoError(t, ev.Decode(entry(1, "epilog-start", `{"description":"e","timeout":`+text+`}`)), text)
		require.Equal(t, want, ev.Context().(*jobstate.ActionStartContext).Timeout, text)
	}
	for _, text := range []string{"-1", "-1e-9", "9223372037", "1e10", "1e999", `"5s"`, "null", "true"} {
		require.ErrorIs(t, ev.Decode(entry(1, "epilog-start", `{"description":"e","timeout":`+text+`}`)), jobstate.ErrContext, text)
	}
	b, err := jobstate.AppendContext(nil, &jobstate.ActionStartContext{ActionKey: jobstate.ActionKey{Kind: jobstate.ActionEpilog}, ActionMode: jobstate.ActionMode{Timeout: 90 * time.Second, KillTimeout: 1}})
	require.NoError(t, err)
	require.Equal(t, `{"description":"","ranks":"","timeout":90.0,"kill-timeout":0.000000001}`, string(b))
}

// TestFailedRanksAreInNonFatalExceptions: the three keys are the dialect's only
// where severity is above 0 and ranks and action are both there.
func TestFailedRanksAreInNonFatalExceptions(t *testing.T) {
	parse := func(context string) *jobstate.ExceptionContext {
		t.Helper()
		c, err := jobstate.ParseContext(entry(1, "exception", context))
		require.NoError(t, err)
		return c.(*jobstate.ExceptionContext)
	}
	c := parse(`{"action":"drop","ranks":"0-3","nodelist":"n[0-3]","type":"x","severity":2,"note":"n","a":1}`)
	require.Equal(t, "0-3", c.Failed.Ranks.String())
	require.Equal(t, jobstate.FailedDrop, c.Failed.Action)
	require.Equal(t, "n[0-3]", c.Failed.Nodelist)
	require.Equal(t, `{"a":1}`, string(c.Extra))
	for context, extra := range map[string]string{
		`{"type":"x","severity":0,"ranks":[],"action":7}`:   `{"ranks":[],"action":7}`,
		`{"ranks":true,"type":"x","a":1,"severity":3}`:      `{"ranks":true,"a":1}`,
		`{"type":"x","severity":3,"action":1,"nodelist":2}`: `{"action":1,"nodelist":2}`,
	} {
		c := parse(context)
		require.Nil(t, c.Failed)
		require.Equal(t, extra, string(c.Extra))
	}
	require.Equal(t, "FailedAction(7)", jobstate.FailedAction(7).String())
}

// TestFinishEndsItsWholeAction: also with the keys of a partial end.
func TestFinishEndsItsWholeAction(t *testing.T) {
	j, _ := run(t, append(upTo(jobstate.StateCleanup), `epilog-start {"description":"e","ranks":"0-3"}`,
		`perilog-release {"description":"e","kind":"epilog","ranks":"0-3","status":0}`)...)
	require.False(t, j.MayFree(), "a release never ends an action")
	_, err := j.Apply(entry(99, "epilog-finish", `{"description":"e","status":0,"ranks":"0","resources":7}`))
	require.NoError(t, err)
	require.True(t, j.MayFree())
}

// TestEventsOfOldNamesAreRead: flux-core's job manager loads no log with them, so they are
// not written.
func TestEventsOfOldNamesAreRead(t *testing.T) {
	for _, kind := range []string{"prolog", "epilog"} {
		for what, context := range map[string]string{
			"launch": `"attempt":2,"ranks":"3"`, "fail": `"ranks":"3","cause":"exited","status":256`, "release": `"ranks":"0-3","status":0`,
		} {
			line := `{"timestamp":1,"name":"` + kind + "-" + what + `","context":{"description":"d",` + context + "}}\n"
			e, err := eventlog.Parse([]byte(strings.TrimSuffix(line, "\n")))
			require.NoError(t, err)
			old, err := jobstate.ParseContext(e)
			require.NoError(t, err)
			next := entry(1, "perilog-"+what, `{"description":"d","kind":"`+kind+`",`+context+"}")
			now, err := jobstate.ParseContext(next)
			require.NoError(t, err)
			require.Equal(t, now, old)
			again, _, err := jobstate.EncodeEntry(nil, next.Timestamp, old)
			require.NoError(t, err)
			require.Equal(t, next, again)

			j, _ := run(t, append(upTo(jobstate.StateRun), kind+`-start {"description":"d","ranks":"0-3"}`)...)
			e.Timestamp = next.Timestamp
			outcome, err := j.Apply(e)
			require.NoError(t, err)
			require.Equal(t, jobstate.Applied, outcome)
		}
	}
}

func TestNamesOfKindsAndEvents(t *testing.T) {
	for kind, name := range map[jobstate.ActionKind]string{jobstate.ActionProlog: "prolog", jobstate.ActionEpilog: "epilog", jobstate.ActionHousekeeping: "housekeeping"} {
		require.Equal(t, name, kind.String())
		family, key := "perilog", jobstate.ActionKey{Kind: kind}
		if kind == jobstate.ActionHousekeeping {
			family = name
		}
		for event, c := range map[string]jobstate.Context{
			name + "-start": &jobstate.ActionStartContext{ActionKey: key}, family + "-launch": &jobstate.ActionLaunchContext{ActionKey: key},
			family + "-fail": &jobstate.ActionFailContext{ActionKey: key}, family + "-release": &jobstate.ActionReleaseContext{ActionKey: key},
			name + "-finish": &jobstate.ActionFinishContext{ActionKey: key},
		} {
			require.Equal(t, event, jobstate.EventName(c))
		}
	}
	require.Equal(t, "ActionKind(0)", jobstate.ActionKind(0).String())
	require.Empty(t, jobstate.EventName(nil))
	_, err := jobstate.AppendContext(nil, nil)
	require.ErrorIs(t, err, jobstate.ErrContext)
}
