package perilog_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/perilog"
)

// encoder is what the contexts of the dialect have in common.
type encoder interface {
	Entry(eventlog.Timestamp) (eventlog.Entry, error)
}

func line(t testing.TB, c encoder) string {
	t.Helper()
	e, err := c.Entry(1.5)
	require.NoError(t, err)
	b, err := eventlog.AppendEntry(nil, e)
	require.NoError(t, err)
	return strings.TrimSpace(strings.ReplaceAll(string(b), `"`, "'"))
}

func TestTheDialectIsWrittenSo(t *testing.T) {
	for want, c := range map[string]encoder{
		"{'timestamp':1.5,'name':'prolog-start','context':{'description':'p'}}": &perilog.ActionStart{
			Kind: jobstate.ActionProlog, Description: "p", Ranks: jobstate.Ranks{All: true},
		},
		"{'timestamp':1.5,'name':'epilog-start','context':{'description':'e','ranks':''}}": &perilog.ActionStart{
			Kind: jobstate.ActionEpilog, Description: "e",
		},
		"{'timestamp':1.5,'name':'epilog-start','context':{'description':'e','ranks':'0-2,5','resources':['b','a'],'x':[1,2]}}": &perilog.ActionStart{
			Kind: jobstate.ActionEpilog, Description: "e", Ranks: jobstate.Ranks{Set: idset.Of(0, 1, 2, 5)},
			Resources: []string{"b", "a"}, Extra: json.RawMessage(` {"x" : [1, 2] } `),
		},
		"{'timestamp':1.5,'name':'epilog-release','context':{'description':'e','ranks':'3','status':256}}": &perilog.ActionRelease{
			Kind: jobstate.ActionEpilog, Description: "e", Ranks: idset.Of(3), Status: 256,
		},
		"{'timestamp':1.5,'name':'prolog-release','context':{'description':'','ranks':'','status':-1,'resources':['fs'],'x':null}}": &perilog.ActionRelease{
			Kind: jobstate.ActionProlog, Status: -1, Resources: []string{"fs"}, Extra: json.RawMessage(`{"x":null}`),
		},
		"{'timestamp':1.5,'name':'exception','context':{'type':'prolog','severity':1,'note':'n','ranks':'3','nodelist':'n3','action':'drop'}}": &perilog.FailedRanks{
			Exception: jobstate.ExceptionContext{Type: "prolog", Severity: 1, Note: "n"},
			Ranks:     idset.Of(3), Nodelist: "n3", Action: perilog.FailedDrop,
		},
		"{'timestamp':1.5,'name':'exception','context':{'type':'x','severity':7,'note':'','userid':5,'wait_status':256,'ranks':'0','action':'keep','y':{}}}": &perilog.FailedRanks{
			Exception: jobstate.ExceptionContext{
				Type: "x", Severity: 7, UserID: jobstate.Some(uint32(5)), WaitStatus: jobstate.Some(int32(256)), Extra: json.RawMessage(`{"y":{}}`),
			},
			Ranks: idset.Of(0), Action: perilog.FailedKeep,
		},
	} {
		require.Equal(t, want, line(t, c))
		e, err := eventlog.Parse([]byte(strings.ReplaceAll(want, "'", `"`)))
		require.NoError(t, err)
		require.Equal(t, want, line(t, reparse(t, e)), "it is read as it was written")
	}
}

// reparse reads an event of the dialect.
func reparse(t testing.TB, e eventlog.Entry) encoder {
	t.Helper()
	switch {
	case strings.HasSuffix(e.Name, "-start"):
		c, err := perilog.ParseActionStart(e)
		require.NoError(t, err)
		return &c
	case strings.HasSuffix(e.Name, "-release"):
		c, err := perilog.ParseActionRelease(e)
		require.NoError(t, err)
		return &c
	default:
		c, ok, err := perilog.ParseFailedRanks(e)
		require.NoError(t, err)
		require.True(t, ok)
		return &c
	}
}

// A tool that knows RFC 21 alone takes the whole dialect for a good log.
func TestToolsThatKnowRFC21AloneReadTheDialect(t *testing.T) {
	j := jobstate.NewJob(1)
	log := ""
	add := func(c encoder) {
		e, err := c.Entry(5)
		require.NoError(t, err)
		b, err := eventlog.AppendEntry(nil, e)
		require.NoError(t, err)
		log += string(b)
	}
	log += `{"timestamp":1.0,"name":"submit","context":{"userid":5,"urgency":16,"flags":0,"version":1}}` + "\n"
	log += `{"timestamp":1.0,"name":"validate"}` + "\n" + `{"timestamp":1.0,"name":"depend"}` + "\n"
	log += `{"timestamp":1.0,"name":"priority","context":{"priority":16}}` + "\n" + `{"timestamp":1.0,"name":"alloc"}` + "\n"
	add(&perilog.ActionStart{Kind: jobstate.ActionEpilog, Description: "e", Ranks: jobstate.Ranks{Set: idset.Of(1)}, Resources: []string{"fs"}})
	add(&perilog.FailedRanks{Exception: jobstate.ExceptionContext{Type: "x", Severity: 1}, Ranks: idset.Of(1), Action: perilog.FailedDrop})
	add(&perilog.ActionRelease{Kind: jobstate.ActionEpilog, Description: "e", Ranks: idset.Of(1)})
	for e, err := range eventlog.Entries([]byte(log)) {
		require.NoError(t, err)
		out, err := j.Apply(e)
		require.NoError(t, err)
		require.Equal(t, strings.HasSuffix(e.Name, "-release"), out == jobstate.IgnoredUnknown)
	}
	require.Equal(t, jobstate.StateRun, j.State())
	for _, f := range jobstate.Validate([]byte(log)) {
		require.Equal(t, jobstate.LevelNote, f.Level, f)
	}
}

func TestWhatIsNotReadIsNotWritten(t *testing.T) {
	bad := "\xff"
	good := jobstate.ExceptionContext{Type: "x", Severity: 1}
	for name, c := range map[string]encoder{
		"a start of no kind":       &perilog.ActionStart{Description: "e"},
		"a description":            &perilog.ActionStart{Kind: jobstate.ActionEpilog, Description: bad},
		"an empty name":            &perilog.ActionStart{Kind: jobstate.ActionEpilog, Resources: []string{"a", ""}},
		"a name twice":             &perilog.ActionStart{Kind: jobstate.ActionEpilog, Resources: []string{"a", "b", "a"}},
		"a name not UTF-8":         &perilog.ActionStart{Kind: jobstate.ActionEpilog, Resources: []string{bad}},
		"extra ranks":              &perilog.ActionStart{Kind: jobstate.ActionEpilog, Ranks: jobstate.Ranks{All: true}, Extra: json.RawMessage(`{"ranks":"0"}`)},
		"extra resources":          &perilog.ActionStart{Kind: jobstate.ActionEpilog, Extra: json.RawMessage(`{"resources":[]}`)},
		"extra description":        &perilog.ActionStart{Kind: jobstate.ActionEpilog, Extra: json.RawMessage(`{"description":"x"}`)},
		"extra that is no object":  &perilog.ActionStart{Kind: jobstate.ActionEpilog, Extra: json.RawMessage(`[]`)},
		"a release of no kind":     &perilog.ActionRelease{Description: "e"},
		"a release not UTF-8":      &perilog.ActionRelease{Kind: jobstate.ActionEpilog, Description: bad},
		"a release's extra status": &perilog.ActionRelease{Kind: jobstate.ActionEpilog, Extra: json.RawMessage(`{"status":0}`)},
		"extra twice":              &perilog.ActionRelease{Kind: jobstate.ActionEpilog, Extra: json.RawMessage(`{"a":0,"a":0}`)},
		"a fatal exception":        &perilog.FailedRanks{Exception: jobstate.ExceptionContext{Type: "x"}, Ranks: idset.Of(1), Action: perilog.FailedDrop},
		"a severity beyond":        &perilog.FailedRanks{Exception: jobstate.ExceptionContext{Type: "x", Severity: 8}, Ranks: idset.Of(1), Action: perilog.FailedDrop},
		"no ranks":                 &perilog.FailedRanks{Exception: good, Action: perilog.FailedDrop},
		"no action":                &perilog.FailedRanks{Exception: good, Ranks: idset.Of(1)},
		"a nodelist not UTF-8":     &perilog.FailedRanks{Exception: good, Ranks: idset.Of(1), Action: perilog.FailedKeep, Nodelist: bad},
		"an extra nodelist": &perilog.FailedRanks{
			Exception: jobstate.ExceptionContext{Type: "x", Severity: 1, Extra: json.RawMessage(`{"nodelist":"a"}`)},
			Ranks:     idset.Of(1), Action: perilog.FailedKeep,
		},
	} {
		e, err := c.Entry(1)
		require.ErrorIs(t, err, jobstate.ErrContext, name)
		require.Zero(t, e, name)
	}
	for _, at := range []float64{0, math.NaN()} {
		_, err := (&perilog.ActionRelease{Kind: jobstate.ActionEpilog}).Entry(eventlog.Timestamp(at))
		require.ErrorIs(t, err, eventlog.ErrEntry)
	}
}

func TestOtherEventsAreNotOfTheDialect(t *testing.T) {
	alloc := eventlog.Entry{Timestamp: 1, Name: "alloc"}
	_, err := perilog.ParseActionStart(alloc)
	require.ErrorIs(t, err, jobstate.ErrContext)
	_, err = perilog.ParseActionStart(eventlog.Entry{Timestamp: 1, Name: "anything"})
	require.ErrorIs(t, err, jobstate.ErrContext)
	_, err = perilog.ParseActionRelease(eventlog.Entry{Timestamp: 1, Name: "release", Context: []byte(`{"ranks":"all","final":true}`)})
	require.ErrorIs(t, err, jobstate.ErrContext)
	_, _, err = perilog.ParseFailedRanks(alloc)
	require.ErrorIs(t, err, jobstate.ErrContext)
	_, _, err = perilog.ParseFailedRanks(eventlog.Entry{Timestamp: 1, Name: "exception", Context: []byte(`{"severity":1}`)})
	require.ErrorIs(t, err, jobstate.ErrContext)
	for _, context := range []string{`{"type":"a","severity":1}`, `{"type":"a","severity":0,"ranks":"0","action":"drop"}`, `{"type":"a","severity":2,"ranks":7}`} {
		f, ok, err := perilog.ParseFailedRanks(eventlog.Entry{Timestamp: 1, Name: "exception", Context: []byte(context)})
		require.NoError(t, err)
		require.False(t, ok)
		require.Zero(t, f)
	}
}

func TestAContextErrorTellsKeyAndOffset(t *testing.T) {
	for context, want := range map[string]string{
		`{"description":"e","status":0}`:                          `key "ranks": key is missing`,
		`{"description":"e","ranks":"3-1","status":0}`:            `key "ranks": offset 27: idset: offset 2: `,
		`{"description":"e","ranks":"3","status":0,"status":1}`:   `offset `,
		`{"ranks":"3","status":"0","description":"e"}`:            `key "status": offset 22: value has the wrong type`,
		`{"ranks":"3","status":2147483648,"description":"e"}`:     `key "status": offset 22: value is out of range`,
		`{"ranks":"3","status":1e2,"description":"e"}`:            `key "status": offset 22: value has the wrong type`,
		`{"description":"e","ranks":"","status":0,"resources":0}`: `key "resources": offset 53: value has the wrong type`,
	} {
		_, err := perilog.ParseActionRelease(eventlog.Entry{Timestamp: 1, Name: "epilog-release", Context: []byte(context)})
		require.ErrorIs(t, err, jobstate.ErrContext, context)
		require.Contains(t, err.Error(), "context of epilog-release: "+want, context)
	}
}

// The ranks that are read without memory are those that idset.Parse reads, and
// what it refuses is refused with its error.
func TestPlainRanksAreReadAsIdsetReadsThem(t *testing.T) {
	check := func(t require.TestingT, text string) {
		context, err := json.Marshal(map[string]any{"description": "e", "status": 0, "ranks": text})
		require.NoError(t, err)
		a, err := perilog.ParseActionRelease(eventlog.Entry{Timestamp: 1, Name: "epilog-release", Context: context})
		want, wantErr := idset.Parse(text)
		if wantErr != nil {
			require.ErrorContains(t, err, wantErr.Error(), text)
			return
		}
		require.NoError(t, err, text)
		require.True(t, want.Equal(a.Ranks), text)
	}
	for _, text := range []string{
		"", "0", "00", "01", "1,2", "1-2", "2-1", "1-1", "1-2,2", "1-2,3", "0-2147483647", "2147483647", "2147483648", "99999999999",
		"12345678901", "1,", ",", "-", "1-", "1--2", "[1-2]", "[]", "a", " 1", "1 ", "1-2-3", "1,,2", "0-3,5,7-9", "é", "+1",
		strings.Repeat("1", 70), "0-1" + strings.Repeat(",3", 40), "1-02",
	} {
		check(t, text)
	}
	rapid.Check(t, func(rt *rapid.T) {
		check(rt, rapid.StringMatching(`[0-9,\-]{0,12}`).Draw(rt, "text"))
	})
}
