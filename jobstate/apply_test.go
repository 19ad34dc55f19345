package jobstate_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
)

// entry makes an entry at second t; context may be "".
func entry(t int, name, context string) eventlog.Entry {
	e := eventlog.Entry{Timestamp: eventlog.Timestamp(1000 + t), Name: name}
	if context != "" {
		e.Context = []byte(context)
	}
	return e
}

// script is a log in short: a line is a name and, after a space, a context.
// Timestamps rise by a second a line.
func script(lines ...string) []eventlog.Entry {
	out := make([]eventlog.Entry, len(lines))
	for i, line := range lines {
		name, context, _ := strings.Cut(line, " ")
		out[i] = entry(i, name, context)
	}
	return out
}

// run applies a script that no event of which may be refused, and returns the
// job and the last outcome.
func run(t testing.TB, lines ...string) (*jobstate.Job, jobstate.Outcome) {
	t.Helper()
	j := jobstate.NewJob(7)
	var last jobstate.Outcome
	for i, e := range script(lines...) {
		var err error
		last, err = j.Apply(e)
		require.NoError(t, err, lines[i])
	}
	require.NoError(t, jobstate.Check(j))
	return j, last
}

func ids(text string) *idset.Set {
	s, err := idset.Parse(text)
	if err != nil {
		panic(err)
	}
	return s
}

const submit = `submit {"userid":5,"urgency":16,"flags":0,"version":1}`

// upTo returns a script that brings a job into the state.
func upTo(s jobstate.State) []string {
	all := []struct {
		jobstate.State
		line string
	}{
		{jobstate.StateNew, submit}, {jobstate.StateDepend, "validate"}, {jobstate.StatePriority, "depend"},
		{jobstate.StateSched, `priority {"priority":16}`}, {jobstate.StateRun, `alloc {}`},
		{jobstate.StateCleanup, `finish {"status":0}`}, {jobstate.StateInactive, "clean"},
	}
	var out []string
	for _, step := range all {
		if step.State <= s {
			if step.State == jobstate.StateInactive {
				out = append(out, "free")
			}
			out = append(out, step.line)
		}
	}
	return out
}

// samples has a legal context for every event.
var samples = map[string]string{
	"submit": submit[7:], "validate": "", "invalidate": "", "depend": "", "flux-restart": "",
	"jobspec-update":  `{"attributes.system.duration":1}`,
	"resource-update": `{"expiration":1.5}`, "set-flags": `{"flags":["debug"]}`,
	"dependency-add": `{"description":"d"}`, "dependency-remove": `{"description":"d"}`,
	"priority": `{"priority":3}`, "urgency": `{"urgency":3,"userid":1}`, "alloc": "", "start": "", "free": "", "clean": "",
	"prolog-start": `{"description":"d"}`, "prolog-finish": `{"description":"d","status":0}`,
	"epilog-start": `{"description":"d"}`, "epilog-finish": `{"description":"d","status":0}`,
	"finish": `{"status":0}`, "release": `{"ranks":"all","final":true}`,
	"perilog-launch": `{"description":"d","kind":"prolog","attempt":2,"ranks":"0"}`, "perilog-fail": `{"description":"d","kind":"prolog","ranks":"0","cause":"exit","status":1}`,
	"perilog-release": `{"description":"d","kind":"prolog","ranks":"0","status":0}`, "drained": `{"ranks":"0"}`,
	"housekeeping-start": `{"description":"d"}`,
	"exception":          `{"type":"x","severity":0,"note":""}`, "memo": `{"a":1}`, "debug.x": "", "made-up": `{"a":[]}`,
}

// TestEveryEventInEveryState writes the whole machine out: what each event does
// to a job in each state, by RFC 21: each state is left by its events, submit is the first
// event, and an exception of severity 0 leads to CLEANUP from every state but NEW. A dot is applied without a change of state, an
// i ignored, an x refused, a letter the state that follows.
func TestEveryEventInEveryState(t *testing.T) {
	want := map[string]string{ //        before, NDPSRCI
		"submit":             "N xxxxxxx",
		"validate":           "x Dixxxxx",
		"invalidate":         "x .xxxxxx",
		"depend":             "x xPiiiix",
		"flux-restart":       "x ...P..x",
		"jobspec-update":     "x ...P..x",
		"resource-update":    "x xxxx..x",
		"set-flags":          "x ......x",
		"dependency-add":     "x ..iiiix",
		"dependency-remove":  "x iiiiiix",
		"priority":           "x xiS.iix",
		"urgency":            "x ...P..x",
		"alloc":              "x xx.R..x",
		"start":              "x xxxx..x",
		"free":               "x xxii..x",
		"clean":              "x xxxxxIx",
		"prolog-start":       "x ......x",
		"prolog-finish":      "x iiiiiix",
		"epilog-start":       "x ......x",
		"epilog-finish":      "x iiiiiix",
		"perilog-launch":     "x iiiiiix",
		"perilog-fail":       "x iiiiiix",
		"perilog-release":    "x iiiiiix",
		"drained":            "x ......x",
		"housekeeping-start": "i iiiiiix",
		"finish":             "x xxxxCix",
		"release":            "x xxxx..x",
		"exception":          "x xCCCC.x",
		"memo":               "x ......x",
		"debug.x":            "i iiiiiix",
		"made-up":            "i iiiiiix",
	}
	require.Len(t, want, len(samples))
	for name, context := range samples {
		got := cell(t, nil, name, context) + " "
		for s := jobstate.StateNew; ; s <<= 1 {
			got += cell(t, upTo(s), name, context)
			if s == jobstate.StateInactive {
				break
			}
		}
		require.Equal(t, want[name], got, name)
	}
}

func cell(t *testing.T, before []string, name, context string) string {
	t.Helper()
	j, _ := run(t, before...)
	state, text := j.State(), describe(j)
	outcome, err := j.Apply(entry(100, name, context))
	switch {
	case err != nil:
		require.Equal(t, text, describe(j), "a refusal changes nothing: %s", name)
		require.Zero(t, outcome)
		var ee *jobstate.EventError
		require.ErrorAs(t, err, &ee)
		require.Equal(t, name, ee.Event)
		if state == jobstate.StateInactive {
			require.ErrorIs(t, err, jobstate.ErrClosed)
		} else {
			require.ErrorIs(t, err, jobstate.ErrTransition)
		}
		return "x"
	case outcome.Ignored():
		require.Equal(t, text, describe(j), "an ignored event changes nothing: %s", name)
		return "i"
	case j.State() != state, len(before) == 0:
		return j.State().Short()
	}
	return "."
}

func TestRefusedContextsLeaveTheJob(t *testing.T) {
	for name, cases := range map[string][]string{
		"submit": {
			``, `{}`, `[]`, `{"userid":5,"urgency":16}`, `{"userid":-2147483649,"urgency":16,"flags":0}`,
			`{"userid":4294967296,"urgency":16,"flags":0}`, `{"userid":5,"urgency":32,"flags":0}`,
			`{"userid":5,"urgency":-1,"flags":0}`, `{"userid":5.0,"urgency":16,"flags":0}`, `{"userid":"5","urgency":16,"flags":0}`,
			`{"userid":5,"urgency":16,"flags":0,"version":0}`, `{"userid":5,"urgency":16,"flags":null}`,
			`{"userid":5,"urgency":16,"flags":0,"flags":0}`, `{"userid":5,"urgency":16,"flags":0`,
		},
		"priority":          {``, `{}`, `{"priority":-1}`, `{"priority":9223372036854775808}`, `{"priority":1e2}`, `{"priority":true}`},
		"urgency":           {``, `{"urgency":16}`, `{"userid":1}`, `{"urgency":32,"userid":1}`},
		"dependency-add":    {``, `{}`, `{"description":1}`},
		"dependency-remove": {``, `{}`, `{"description":null}`},
		"prolog-start": {
			``, `{"status":0}`, `{"description":"d","ranks":5}`, `{"description":"d","ranks":"all"}`, `{"description":"d","resources":"ssd"}`,
			`{"description":"d","resources":["a","a"]}`, `{"description":"d","resources":[""]}`, `{"description":"d","resources":[1]}`,
			`{"description":"d","per-rank":false}`, `{"description":"d","per-rank":1}`, `{"description":"d","per-rank":true,"leader":0}`,
			`{"description":"d","leader":-1}`, `{"description":"d","leader":2147483648}`, `{"description":"d","attempt":1}`,
			`{"description":"d","per-rank":true,"attempt":0}`, `{"description":"d","timeout":-1}`, `{"description":"d","timeout":"5s"}`,
			`{"description":"d","timeout":1e300}`, `{"description":"d","kill-timeout":null}`,
		},
		"perilog-launch": {
			``, `{"description":"d","kind":"epilog","attempt":2}`, `{"description":"d","kind":"epilog","ranks":"0"}`, `{"kind":"prolog","attempt":2,"ranks":"0"}`, `{"description":"d","attempt":2,"ranks":"0"}`, `{"description":"d","kind":"housekeeping","attempt":2,"ranks":"0"}`, `{"description":"d","kind":1,"attempt":2,"ranks":"0"}`,
			`{"description":"d","kind":"epilog","attempt":0,"ranks":"0"}`, `{"description":"d","kind":"epilog","attempt":4294967296,"ranks":"0"}`, `{"description":"d","kind":"epilog","attempt":2,"ranks":"1-0"}`,
			`{"description":"d","kind":"epilog","attempt":2,"ranks":"0","per-rank":false}`, `{"description":"d","kind":"epilog","attempt":2,"ranks":"0","per-rank":true,"leader":0}`,
			`{"description":"d","kind":"epilog","attempt":2,"ranks":"0","leader":"0"}`, `{"description":"d","kind":"epilog","attempt":2,"ranks":"0","timeout":-1}`,
		},
		"perilog-fail": {
			``, `{"description":"d","kind":"epilog","ranks":"0","cause":"x"}`, `{"description":"d","kind":"epilog","ranks":"0","status":1}`, `{"description":"d","kind":"epilog","cause":"x","status":1}`,
			`{"kind":"epilog","ranks":"0","cause":"x","status":1}`, `{"description":"d","kind":"epilog","ranks":"","cause":"x","status":1}`, `{"description":"d","kind":"epilog","ranks":"0","cause":1,"status":1}`,
			`{"description":"d","kind":"epilog","ranks":"0","cause":"x","status":1,"note":1}`, `{"description":"d","kind":"epilog","ranks":"0","cause":"x","status":1,"drain":1}`,
		},
		"perilog-release":    {``, `{"description":"d","kind":"epilog","ranks":"0"}`, `{"description":"d","kind":"epilog","status":0}`, `{"description":"d","kind":"epilog","ranks":0,"status":0}`, `{"description":"d","kind":"epilog","ranks":"0","status":0,"resources":["x",""]}`},
		"drained":            {``, `{}`, `{"ranks":"00"}`, `{"ranks":null}`},
		"housekeeping-start": {``, `{}`, `{"description":"d","ranks":"all"}`, `{"description":"d","release-after":30}`, `{"description":"d","release-after":"soon"}`, `{"description":"d","release-after":null}`, `{"description":"d","on-failure":"Drain"}`, `{"description":"d","on-failure":""}`, `{"description":"d","on-failure":1}`},
		"prolog-finish":      {``, `{"description":"d"}`, `{"status":0}`, `{"description":"d","status":2147483648}`},
		"epilog-start":       {``, `{"description":[]}`},
		"epilog-finish":      {``, `{"description":"d","status":"0"}`},
		"set-flags":          {``, `{}`, `{"flags":"debug"}`, `{"flags":[1]}`, `{"flags":{}}`, `{"flags":null}`, `{"flags":[`},
		"jobspec-update":     {``, `[]`, `{"attributes.":1}`, `{"tasks..a":1}`, `{"resources.a.":1}`, `{"":1}`, `{"version":1}`, `{".tasks":1}`, `{"attributesx":1}`},
		"resource-update":    {``, `{}`, `{"expiration":-1}`, `{"expiration":"1"}`, `{"expiration":1e999}`},
		"alloc":              {`[]`, `{"annotations":[]}`, `{"annotations":null}`, `{"annotations":{"a":}}`},
		"finish":             {``, `{}`, `{"status":1.5}`, `{"status":-2147483649}`},
		"release":            {``, `{"ranks":"all"}`, `{"final":true}`, `{"ranks":"x","final":true}`, `{"ranks":"1,","final":true}`, `{"ranks":"1,,2","final":true}`, `{"ranks":"all","final":1}`},
		"exception": {``, `{"type":"x"}`, `{"severity":0}`, `{"type":"x","severity":8}`, `{"type":"x","severity":-1}`, `{"type":1,"severity":1}`, `{"type":"x","severity":1,"userid":-2147483649}`,
			`{"type":"x","severity":1,"ranks":"","action":"keep"}`, `{"type":"x","severity":1,"ranks":1,"action":"keep"}`, `{"type":"x","severity":1,"ranks":"1","action":"lose"}`,
			`{"type":"x","severity":1,"ranks":"1","action":null}`, `{"type":"x","severity":1,"ranks":"1","action":"keep","nodelist":1}`},
		"memo": {``, `[]`, `1`, `{"a":1,"a":2}`, `{"a":`},
	} {
		for _, context := range cases {
			before := upTo(stateFor(name))
			if name == "submit" {
				before = nil
			}
			j, _ := run(t, before...)
			text := describe(j)
			outcome, err := j.Apply(entry(100, name, context))
			require.ErrorIs(t, err, jobstate.ErrContext, "%s %s", name, context)
			require.Zero(t, outcome)
			require.Equal(t, text, describe(j), "%s %s", name, context)
			require.ErrorContains(t, err, "malformed context of "+name+": ")
		}
	}
}

// stateFor returns a state in which the event is folded.
func stateFor(name string) jobstate.State {
	switch name {
	case "submit", "dependency-add", "dependency-remove":
		return jobstate.StateNew
	case "priority":
		return jobstate.StatePriority
	case "alloc":
		return jobstate.StateSched
	default:
		return jobstate.StateRun
	}
}

func TestErrorsSayWhereAndWhat(t *testing.T) {
	j, _ := run(t, upTo(jobstate.StateSched)...)
	for _, c := range []struct{ name, context, want string }{
		{"urgency", `{"urgency":99,"userid":1}`, `jobstate: job ƒ8: "urgency" in SCHED: malformed context of urgency: urgency: offset 11: must be from 0 to 31`},
		{"urgency", `{"urgency":9}`, `jobstate: job ƒ8: "urgency" in SCHED: malformed context of urgency: userid: offset 0: key is missing`},
		{"clean", ``, `jobstate: job ƒ8: "clean" in SCHED: event is not legal in this state`},
	} {
		_, err := j.Apply(entry(50, c.name, c.context))
		require.EqualError(t, err, c.want)
	}
	_, err := j.Apply(eventlog.Entry{Timestamp: 0, Name: "memo"})
	require.ErrorIs(t, err, eventlog.ErrEntry)
	_, err = j.Apply(eventlog.Entry{Timestamp: 1, Name: strings.Repeat("é", 99)})
	require.NoError(t, err, "any name is data")
	old := jobstate.NewJob(1)
	_, err = old.Apply(entry(1, "submit", `{"userid":1,"urgency":1,"flags":0,"version":2}`))
	require.ErrorIs(t, err, jobstate.ErrVersion)
	require.False(t, old.Submitted())
}

func TestDependenciesAreASetByDescription(t *testing.T) {
	t.Log("SM-15")
	add, remove := `dependency-add {"description":"a"}`, `dependency-remove {"description":"a"}`
	j, _ := run(t, submit)
	require.Nil(t, j.Dependencies())
	j, last := run(t, submit, add, "validate", add)
	require.Equal(t, jobstate.IgnoredDependency, last)
	require.Equal(t, []string{"a"}, j.Dependencies())
	j, last = run(t, submit, add, "validate", remove, remove)
	require.Equal(t, jobstate.IgnoredDependency, last)
	require.Equal(t, []string{}, j.Dependencies())
	_, err := j.Apply(entry(50, "dependency-add", `{"description":"a"}`))
	require.ErrorIs(t, err, jobstate.ErrTransition)
	require.ErrorContains(t, err, "dependency was already satisfied")
	_, last = run(t, submit, "validate", `dependency-remove {"description":"b"}`)
	require.Equal(t, jobstate.IgnoredDependency, last)
	_, last = run(t, append(upTo(jobstate.StateSched), add)...)
	require.Equal(t, jobstate.IgnoredState, last, "after depend it comes too late")
}

func TestManyDependenciesStayInOrder(t *testing.T) {
	lines, want := []string{submit}, []string{}
	for i := range 3000 {
		lines = append(lines, fmt.Sprintf(`dependency-add {"description":"d%d"}`, i))
	}
	for i := range 3000 {
		if i%3 == 0 {
			lines = append(lines, fmt.Sprintf(`dependency-remove {"description":"d%d"}`, i))
		} else {
			want = append(want, fmt.Sprintf("d%d", i))
		}
	}
	j, _ := run(t, lines...)
	require.Equal(t, want, j.Dependencies())
}

func TestUrgencyReturnsToPriorityUntilTheNextPriority(t *testing.T) { // flux-core#4940
	t.Log("SM-16")
	sched := upTo(jobstate.StateSched)
	for _, back := range []string{`urgency {"urgency":16,"userid":1}`, "flux-restart", `jobspec-update {"attributes.x":1}`} {
		j, _ := run(t, append(sched, back)...)
		require.Equal(t, jobstate.StatePriority, j.State())
		_, ok := j.Priority()
		require.False(t, ok, "no listing shows the old priority")
		first, _ := j.Entered(jobstate.StatePriority)
		require.Equal(t, eventlog.Timestamp(1002), first, "times of a listing are the first ones")
		j, _ = run(t, append(sched, back, `priority {"priority":16}`)...)
		require.Equal(t, jobstate.StateSched, j.State())
	}
	require.Equal(t, uint32(0), jobstate.PriorityOf(0, 5))
	require.Equal(t, uint32(5), jobstate.PriorityOf(16, 5))
	require.Equal(t, uint32(jobstate.MaxPriority), jobstate.PriorityOf(31, 5))
	j, _ := run(t, `submit {"userid":1,"urgency":0,"flags":0,"version":1}`)
	require.True(t, j.OnHold())
	j, _ = run(t, submit, "validate", "depend", `priority {"priority":0}`)
	require.True(t, j.OnHold(), "a priority of 0 holds, wherever it came from")
	j, _ = run(t, sched...)
	require.False(t, j.OnHold())
	j, _ = run(t, append(upTo(jobstate.StateRun), `urgency {"urgency":0,"userid":1}`)...)
	require.False(t, j.OnHold(), "what runs is not on hold")
}

func TestPrologsAndEpilogsAreCountedByDescription(t *testing.T) {
	t.Log("PL-1")
	runs := upTo(jobstate.StateRun)
	j, _ := run(t, append(runs, `prolog-start {"description":"a"}`, `prolog-start {"description":"a"}`, `epilog-start {"description":"a"}`)...)
	require.False(t, j.MayStart())
	for i, want := range []struct {
		line    string
		outcome jobstate.Outcome
		may     bool
	}{
		{`prolog-finish {"description":"b","status":0}`, jobstate.IgnoredAction, false},
		{`epilog-finish {"description":"a","status":0}`, jobstate.Applied, false},
		{`epilog-finish {"description":"a","status":0}`, jobstate.IgnoredAction, false},
		{`prolog-finish {"description":"a","status":0}`, jobstate.Applied, false},
		{`prolog-finish {"description":"a","status":0}`, jobstate.Applied, true},
		{`prolog-finish {"description":"a","status":0}`, jobstate.IgnoredAction, true},
	} {
		name, context, _ := strings.Cut(want.line, " ")
		outcome, err := j.Apply(entry(50+i, name, context))
		require.NoError(t, err)
		require.Equal(t, want.outcome, outcome, want.line)
		require.Equal(t, want.may, j.MayStart(), want.line)
	}
	j, _ = run(t, append(runs, `prolog-start {"description":"a"}`, `prolog-finish {"description":"a","status":1}`)...)
	require.False(t, j.MayStart(), "I11: a failed prolog never starts a job")
	_, last := run(t, append(runs, "start", `prolog-start {"description":"a"}`)...)
	require.Equal(t, jobstate.IgnoredStarted, last)
}

func TestAnActionIsAsOldAsItsFirstLiveStart(t *testing.T) {
	start, finish := `prolog-start {"description":"a"}`, `prolog-finish {"description":"a","status":0}`
	for _, c := range []struct {
		lines []string
		since eventlog.Timestamp
	}{
		{[]string{start, "memo {}", start}, 1005}, {[]string{start, finish, start}, 1007}, {[]string{start, "memo {}", start, finish}, 1005},
	} {
		j, _ := run(t, append(upTo(jobstate.StateRun), c.lines...)...)
		for a := range j.Actions() {
			require.Equal(t, c.since, a.Since)
			require.Equal(t, jobstate.ActionProlog, a.Kind)
		}
	}
}

func TestMoreThan255PrologsAreCounted(t *testing.T) { // the reference's counter is a byte
	lines := upTo(jobstate.StateRun)
	for i := range 300 {
		lines = append(lines, fmt.Sprintf(`prolog-start {"description":"p%d"}`, i))
	}
	j, _ := run(t, lines...)
	n := 0
	for a := range j.Actions() {
		require.Equal(t, fmt.Sprintf("p%d", n), a.Description)
		n++
	}
	require.Equal(t, 300, n)
}

// Resources follow from events alone (SM-9, SM-10), start is not alloc (SM-11), a prolog
// holds the start and an epilog free and clean (PL-2, flux-core#5011, flux-core#5345).
func TestWhatAJobHoldsAndMayDo(t *testing.T) {
	lost, canceled := `exception {"type":"scheduler-restart","severity":0,"note":""}`, `exception {"type":"cancel","severity":0,"note":""}`
	finish, release := `finish {"status":9}`, `release {"ranks":"all","final":true}`
	prolog, epilog, end := `prolog-start {"description":"p"}`, `epilog-start {"description":"e"}`, `epilog-finish {"description":"e","status":1}`
	for _, c := range []struct {
		state jobstate.State
		lines []string
		want  string
	}{
		{jobstate.StateRun, nil, "holds start"},
		{jobstate.StateRun, []string{"start"}, "holds"},
		{jobstate.StateRun, []string{prolog}, "holds"},
		{jobstate.StateRun, []string{prolog, `prolog-finish {"description":"p","status":0}`}, "holds start"},
		{jobstate.StateRun, []string{prolog, `prolog-finish {"description":"p","status":1}`}, "holds"}, // RFC 21: 0 is success; I11
		{jobstate.StateRun, []string{prolog, `prolog-finish {"description":"p","status":-1}`}, "holds"},
		{jobstate.StateRun, []string{epilog}, "holds start"},
		{jobstate.StateRun, []string{"start", finish, epilog, release}, "holds"},
		{jobstate.StateRun, []string{"start", finish, epilog, release, end}, "holds free"},
		{jobstate.StateRun, []string{"start", finish, epilog, release, end, "free"}, "clean"},
		{jobstate.StateDepend, []string{canceled, epilog}, ""}, // also for a job that never had resources
		{jobstate.StateRun, []string{lost}, "clean"},           // revoked resources need no free
		{jobstate.StateRun, []string{"start", lost}, ""},       // but the executor must let go of what it runs
		{jobstate.StateRun, []string{"start", lost, finish}, ""},
		{jobstate.StateRun, []string{"start", lost, finish, release}, "clean"},
		{jobstate.StateSched, []string{canceled, "alloc"}, "holds free"}, // a late alloc that was logged must be freed
		{jobstate.StateRun, []string{`exception {"type":"scheduler-restart","severity":1,"note":""}`}, "holds start"},
	} {
		j, _ := run(t, append(upTo(c.state), c.lines...)...)
		var got []string
		for word, is := range map[string]bool{"clean": j.MayClean(), "free": j.MayFree(), "holds": j.HasResources(), "start": j.MayStart()} {
			if is {
				got = append(got, word)
			}
		}
		require.ElementsMatch(t, strings.Fields(c.want), got, c.lines)
		require.Equal(t, c.state >= jobstate.StateRun || c.state == jobstate.StateSched, j.WasAllocated())
		require.Equal(t, slices.Contains(c.lines, "start"), j.Started())
	}
}

func TestResultsAndExitCodes(t *testing.T) {
	t.Log("SM-13, SM-14")
	fatal := func(kind string) string {
		return `exception {"type":"` + kind + `","severity":0,"note":"n"}`
	}
	for name, c := range map[string]struct {
		lines  []string
		result jobstate.Result
		exit   int // -1: none
		cause  string
	}{
		"success":                               {[]string{"start", `finish {"status":0}`}, jobstate.ResultCompleted, 0, ""},
		"exit 1":                                {[]string{"start", `finish {"status":256}`}, jobstate.ResultFailed, 1, ""},
		"signal 9":                              {[]string{"start", `finish {"status":9}`}, jobstate.ResultFailed, 137, ""},
		"signal 11 with a core":                 {[]string{"start", `finish {"status":139}`}, jobstate.ResultFailed, 139, ""},
		"canceled while it ran":                 {[]string{"start", fatal("cancel"), `finish {"status":36608}`}, jobstate.ResultCanceled, 143, "cancel"},
		"canceled, and its shell said 0":        {[]string{"start", fatal("cancel"), `finish {"status":0}`}, jobstate.ResultCanceled, 0, "cancel"},
		"timeout":                               {[]string{fatal("timeout"), `finish {"status":36352}`}, jobstate.ResultTimeout, 142, "timeout"},
		"never started":                         {[]string{fatal("exec")}, jobstate.ResultFailed, -1, "exec"},
		"canceled after a failure":              {[]string{`finish {"status":256}`, fatal("cancel")}, jobstate.ResultCanceled, 1, "cancel"},
		"canceled after a success":              {[]string{`finish {"status":0}`, fatal("cancel")}, jobstate.ResultCompleted, 0, "cancel"},
		"the first fatal one is the cause":      {[]string{fatal("myfatal"), fatal("cancel")}, jobstate.ResultFailed, -1, "myfatal"},
		"a non-fatal one is no cause":           {[]string{`exception {"type":"cancel","severity":1,"note":""}`, `finish {"status":0}`}, jobstate.ResultCompleted, 0, ""},
		"a listing goes by a non-fatal type":    {[]string{`exception {"type":"timeout","severity":5,"note":""}`, `finish {"status":256}`}, jobstate.ResultTimeout, 1, ""},
		"wait_status of the cause":              {[]string{`exception {"type":"task","severity":0,"note":"","wait_status":11}`}, jobstate.ResultFailed, 139, "task"},
		"finish has wait_status folded in":      {[]string{`exception {"type":"task","severity":0,"note":"","wait_status":11}`, `finish {"status":256}`}, jobstate.ResultFailed, 1, "task"},
		"a second finish does not count":        {[]string{`finish {"status":0}`, `finish {"status":256}`}, jobstate.ResultCompleted, 0, ""},
		"a less severe one leaves the first":    {[]string{fatal("a"), `exception {"type":"b","severity":1,"note":""}`}, jobstate.ResultFailed, -1, "a"},
		"a more severe one replaces what shows": {[]string{`exception {"type":"b","severity":3,"note":""}`, fatal("cancel")}, jobstate.ResultCanceled, -1, "cancel"},
	} {
		j, _ := run(t, append(upTo(jobstate.StateRun), c.lines...)...)
		result, ok := j.Result()
		require.True(t, ok, name)
		require.Equal(t, c.result, result, name)
		exit, ok := j.ExitCode()
		require.Equal(t, c.exit >= 0, ok, name)
		if ok {
			require.Equal(t, c.exit, exit, name)
		}
		cause, ok := j.Cause()
		require.Equal(t, c.cause != "", ok, name)
		require.Equal(t, c.cause, cause.Type, name)
	}
	j, _ := run(t, upTo(jobstate.StateRun)...)
	_, ok := j.Result()
	require.False(t, ok, "no result before CLEANUP")
}

func TestFatalExceptionInNewIsRefused(t *testing.T) {
	t.Log("SM-13")
	j, _ := run(t, submit)
	text := describe(j)
	_, err := j.Apply(entry(9, "exception", `{"type":"x","severity":0,"note":""}`))
	require.ErrorIs(t, err, jobstate.ErrTransition)
	require.Equal(t, text, describe(j))
	_, err = j.Apply(entry(9, "exception", `{"type":"x","severity":1,"note":""}`))
	require.NoError(t, err)
}

func TestRepeatedEntriesChangeNothing(t *testing.T) { // flux-core#2547
	t.Log("EL-5")
	lines := append(upTo(jobstate.StateRun), `prolog-start {"description":"a"}`, `memo {"a":1}`, `prolog-finish {"description":"a","status":0}`, "start", `finish {"status":0}`)
	once, twice := jobstate.NewJob(1), jobstate.NewJob(1)
	for _, e := range script(lines...) {
		_, err := once.Apply(e)
		require.NoError(t, err)
		_, err = twice.Apply(e)
		require.NoError(t, err)
		outcome, err := twice.Apply(e)
		require.NoError(t, err)
		require.Equal(t, jobstate.IgnoredDuplicate, outcome)
		require.Equal(t, describe(once), describe(twice))
	}
	for _, lines := range [][]string{whole, {submit, "invalidate"}} { // the log is closed
		log := logOf(lines...)
		last := strings.SplitAfter(log, "\n")[len(lines)-1]
		_, err := jobstate.Replay(1, []byte(log+last))
		require.NoError(t, err)
		require.Len(t, findings(log+last), 1)
		_, err = jobstate.Replay(1, []byte(log+strings.Replace(last, ".5", ".75", 1)))
		require.ErrorIs(t, err, jobstate.ErrClosed, "another one")
	}
	// An exception that repeats the one before it is one of its own, and changes nothing.
	for _, severity := range []string{"3", "0"} {
		e := entry(49, "exception", `{"type":"x","severity":`+severity+`,"note":""}`)
		for range 2 {
			outcome, err := twice.Apply(e)
			require.NoError(t, err)
			require.Equal(t, jobstate.Applied, outcome)
		}
		_, err := once.Apply(e)
		require.NoError(t, err)
		require.Equal(t, describe(once), describe(twice))
	}
	// The same event at the same time, but not behind itself, is another one.
	e := entry(50, "epilog-start", `{"description":"a"}`)
	for _, e := range []eventlog.Entry{e, entry(50, "made-up", ""), e} {
		_, err := once.Apply(e)
		require.NoError(t, err)
	}
	for a := range once.Actions() {
		require.Equal(t, 2, a.Active)
	}
}

func TestFlagsSurvive(t *testing.T) {
	t.Log("HK-6")
	j, _ := run(t, `submit {"userid":1,"urgency":16,"flags":6,"version":1}`, `set-flags {"flags":["alloc-bypass","novalidate","alloc-bypass"]}`)
	require.True(t, j.HasFlag("waitable"))
	require.True(t, j.HasFlag("alloc-bypass"))
	require.True(t, j.HasFlag("debug"))
	require.True(t, j.HasFlag("novalidate"))
	require.False(t, j.HasFlag("immutable"))
	j, _ = run(t, `submit {"userid":1,"urgency":16,"flags":4,"version":1}`)
	require.True(t, j.HasFlag("waitable"))
	require.False(t, j.HasFlag("debug"))
}

// TestHostileLogsCostInProportion: what a log repeats many times costs the
// same each time. Each of these took minutes where a search was linear.
func TestHostileLogsCostInProportion(t *testing.T) {
	const n = 50_000
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%q", fmt.Sprint("name", i))
	}
	flags := `set-flags {"flags":[` + strings.Join(names, ",") + `]}`
	j, _ := run(t, submit, flags, flags+" ", "memo {}", flags)
	require.True(t, j.HasFlag("name49999"))

	j, _ = run(t, submit)
	for i := range n {
		for k, e := range []eventlog.Entry{
			entry(i, "prolog-start", `{"description":`+names[i]+`}`), entry(i, "memo", `{`+names[i]+`:{}}`),
			entry(i, "memo", `{`+names[i]+`:1}`), entry(i, "dependency-add", `{"description":`+names[i]+`}`),
			entry(i, "prolog-finish", `{"description":`+names[i]+`,"status":0}`), entry(i, "dependency-remove", `{"description":`+names[i]+`}`),
		} {
			_, err := j.Apply(e)
			require.NoError(t, err, k)
		}
	}
	require.NoError(t, jobstate.Check(j))
	require.Empty(t, j.Dependencies())
	for range j.Actions() {
		t.Fatal("all prologs have finished")
	}

	var log strings.Builder
	for _, line := range upTo(jobstate.StateRun) {
		log.WriteString(logOf(line))
	}
	for i := range n {
		fmt.Fprintf(&log, `{"timestamp":9.5,"name":"release","context":{"ranks":"%d","final":false}}`+"\n", 7*i)
	}
	for _, f := range jobstate.Validate([]byte(log.String())) {
		require.Equal(t, jobstate.LevelNote, f.Level, f)
	}
}

// TestDeepAnnotationsCostInProportion: 2000 levels of dictionaries with keys
// at each. Checked anew at each level it took many seconds.
func TestDeepAnnotationsCostInProportion(t *testing.T) {
	const depth = 2000
	var b strings.Builder
	for i := range depth {
		fmt.Fprintf(&b, `{"k%d":%q,"d" : `, i, strings.Repeat("x", 100))
	}
	b.WriteString(`{"a":null,"b":[1, {"c":2}]}` + strings.Repeat("}", depth))
	memo := "memo " + b.String()
	j, _ := run(t, submit, memo, `memo {"other":1}`, memo)
	want := map[string]any{}
	var patch map[string]any
	require.NoError(t, json.Unmarshal([]byte(memo[5:]), &patch))
	naiveMerge(want, map[string]any{"user": patch})
	naiveMerge(want, map[string]any{"user": map[string]any{"other": 1.0}})
	require.JSONEq(t, marshal(want), string(j.Annotations()))
}

func TestWhatNoLogCanHoldIsRefused(t *testing.T) {
	t.Log("SM-2")
	deep := func(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }
	for _, e := range []eventlog.Entry{
		entry(50, "start", `{"a":`), entry(50, "made-up", `{"a":`), entry(50, "priority", `{]`), entry(50, "made-up", `[]`),
		entry(50, "\xff", ""), entry(50, "", ""), entry(50, "a\x00b", ""), entry(50, "made-up", `{"a":1,"a":2}`),
		entry(50, "memo", deep(2047)), entry(50, "made-up", deep(2047)),
	} {
		j, _ := run(t, upTo(jobstate.StateRun)...)
		before := describe(j)
		_, err := j.Apply(e)
		require.Error(t, err, "%q %.20s", e.Name, e.Context)
		require.Equal(t, before, describe(j))
		_, err = eventlog.AppendEntry(nil, e)
		require.Error(t, err)
	}
	for _, e := range []eventlog.Entry{entry(50, "memo", deep(2046)), entry(50, "made-up", deep(2046)), entry(50, "start", ` {"a":1}`)} {
		j, _ := run(t, upTo(jobstate.StateRun)...)
		_, err := j.Apply(e)
		require.NoError(t, err, "%q", e.Name)
		_, err = eventlog.AppendEntry(nil, e)
		require.NoError(t, err)
	}
}

// TestEveryByteCountsForARepetition: one bit at any place of a name or a context, a
// byte more or less, another kind or another time makes another entry.
func TestEveryByteCountsForARepetition(t *testing.T) {
	seen := map[string]string{}
	meet := func(t float64, name, context string) {
		e := eventlog.Entry{Timestamp: eventlog.Timestamp(t), Name: name, Context: []byte(context)}
		mark, text := jobstate.MarkText(e), fmt.Sprintf("%v %q %q", t, name, context)
		if other, ok := seen[mark]; ok && other != text {
			panic(other + " has the mark of " + text)
		}
		seen[mark] = text
	}
	for n := range 70 {
		text := strings.Repeat("a", n)
		for i := range n {
			for bit := range 4 {
				changed := []byte(text)
				changed[i] ^= 1 << bit
				meet(1, "memo", `{"k":"`+string(changed)+`"}`)
				meet(1, "x"+string(changed), "")
				meet(1, "x"+string(changed), `{"k":1}`)
			}
		}
		meet(1, "memo", `{"k":"`+text+`"}`)
		meet(1, "memo", "{}"+strings.Repeat(" ", n))
		meet(1, "x"+text, "")
		for _, name := range []string{"prolog-start", "epilog-start"} {
			meet(1, name, `{"description":"`+text+`"}`)
			meet(1.25, name, `{"description":"`+text+`"}`)
		}
	}
	require.Len(t, seen, 70*(4*69/2*3+7))
}

func TestReplayNamesTheLineAtFault(t *testing.T) {
	log := `{"timestamp":1.0,"name":"submit","context":{"userid":1,"urgency":16,"flags":0,"version":1}}` + "\n" +
		`{"timestamp":2.0,"name":"validate"}` + "\n" + `{"timestamp":3.0,"name":"clean"}` + "\n"
	j, err := jobstate.Replay(1, []byte(log))
	var re *jobstate.EventError
	require.ErrorAs(t, err, &re)
	require.Equal(t, 3, re.Line)
	require.Equal(t, int64(strings.Index(log, `{"timestamp":3`)), re.Offset)
	require.ErrorIs(t, err, jobstate.ErrTransition)
	require.Equal(t, jobstate.StateDepend, j.State(), "the job as far as it could be folded")

	j, err = jobstate.Replay(1, []byte(log[:len(log)-10]))
	require.ErrorIs(t, err, eventlog.ErrTorn)
	require.Equal(t, jobstate.StateDepend, j.State())

	j, err = jobstate.Replay(1, nil)
	require.NoError(t, err)
	require.False(t, j.Submitted())
	require.Equal(t, jobstate.StateNew, j.State())
}

// TestReplayNamesAPositionOnce: that of the fault, or else of the line.
func TestReplayNamesAPositionOnce(t *testing.T) {
	first := `{"timestamp":1,"name":"submit","context":{"userid":1,"urgency":16,"flags":0}}` + "\n"
	for line, want := range map[string]string{
		`{"timestamp":2,"name":"a","name":"b"}` + "\n": `line 2: offset 104: duplicate key "name"`,
		`{"timestamp":2`: `line 2: offset 78: torn last line`,
		`{"timestamp":2,"name":"priority","context":{"priority":-1}}` + "\n": `line 2: offset 78: "priority" in DEPEND: malformed context of priority: priority: offset 12: must be from 0 to 9223372036854775807`,
		`{"timestamp":2,"name":"clean"}` + "\n":                              `line 2: offset 78: "clean" in DEPEND: event is not legal in this state`,
	} {
		_, err := jobstate.Replay(5, []byte(first+line))
		require.EqualError(t, err, "jobstate: job ƒ6: "+want)
	}
}

func TestTheFirstFinishCounts(t *testing.T) {
	j, _ := run(t, whole[:5]...)
	_, finished := j.FinishTime()
	require.False(t, finished)
	j, _ = run(t, with(7, "memo {}", "start", `finish {"status":0}`, `memo {}`, `finish {"status":1}`)...)
	at, ok := j.FinishTime()
	require.True(t, ok)
	require.Equal(t, eventlog.Timestamp(1008), at)
}

func TestZeroJobIsNew(t *testing.T) {
	var j jobstate.Job
	require.Equal(t, jobstate.StateNew, j.State())
	require.NoError(t, jobstate.Check(&j))
	_, err := j.Apply(entry(1, "validate", ""))
	require.True(t, errors.Is(err, jobstate.ErrTransition))
	_, err = j.Apply(script(submit)[0])
	require.NoError(t, err)
	require.Equal(t, jobstate.StateNew, j.State())
}
